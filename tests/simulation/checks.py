"""What must hold, watched at the API server: after every committed write, and once all faults have stopped.

The checks trust nothing that the controller says of itself: they read the writes that arrive, remember every Job that
ever existed, and count slots by `oracle.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.simulation.apiserver import ApiServer, Change
from tests.simulation.controllers import ended
from tests.simulation.oracle import slots

from cronwright.cluster.port import JOBS, LEASES, PODS, SCHEDULES, Json
from cronwright.controller.store import LEDGER
from cronwright.core import ledger as ledgers
from cronwright.core.model import PREFIX, REQUEST_PREFIX, Claim, Ledger, Problem
from cronwright.core.names import job_name
from cronwright.core.requests import parse
from cronwright.timing import parse_instant

PERSON = "person"
TIMING = ("schedule", "startsAt", "expiresAt", "suspend", "maxRuns")
LEASE_SECONDS = 15
WARM_UP = 60
"""Seconds that a replica may take until it has seen all Leases, in bad weather."""
Identity = tuple[int, str, int]
"""Slot, token, attempt."""


@dataclass(slots=True)
class Story:
    """All that ever happened to one schedule."""

    name: str
    created: int
    spec: Json
    watermark: int = 0
    ledger: Ledger | None = None
    jobs: defaultdict[Identity, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_hand: bool = False
    """A person deleted a Job of it."""
    version: int = 0
    """Of its Lease."""
    deletions: dict[Identity, tuple[float, int]] = field(default_factory=dict)
    """When a person last deleted a Job of theirs, and the version of the ledger then."""
    unrecorded: dict[Identity, tuple[float, int]] = field(default_factory=dict)
    """Those of them whose Job neither status nor ledger told of, or only a status that a person wiped later."""
    completed: set[tuple[int, str]] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)
    budgets: set[int | None] = field(default_factory=set)
    retimed: bool = False
    paused: bool = False
    forgotten: bool = False
    """A person deleted its Lease."""
    witnesses: frozenset[str] = frozenset()
    """The processes that were alive then, and may know what it said."""
    amnesia: bool = False
    """The Lease was written anew by a process that could not know what it had said."""
    deleted: bool = False
    requests: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What people asked for, by id: of several kinds if they asked twice."""


class Checks:
    def __init__(
        self,
        server: ApiServer,
        report: Callable[[str], None],
        now: Callable[[], float],
        alive: Callable[[], dict[str, float]],
        leaders: Callable[[], Iterable[Sequence[str]]],
        forgetful: bool,
    ) -> None:
        """`leaders`: of each shard, the replicas that would act on it now.
        `forgetful`: the API server says at times that it does not remember what it does (410)."""
        self._server = server
        self._alive = alive
        self._leaders = leaders
        self._forgetful = forgetful
        self._report = report
        self._now = now
        self.stories: dict[str, Story] = {}
        self._shard_lost = float("-inf")
        """When a person last deleted a shard's Lease."""
        self._shard_lost_before = float("-inf")
        """The time before that."""
        self._shard_edited = float("-inf")
        """When a person last wrote another holder into one."""
        self.writes = 0
        """Those of the replicas."""
        self.not_promised: Counter[str] = Counter()
        """What went wrong as docs/simulation.md says that it may, by its kind."""

    def hear(self, change: Change) -> None:
        renewal = change.resource is LEASES and "ownerReferences" not in change.obj["metadata"]
        self.writes += change.by.startswith("replica") and not renewal
        if renewal and change.by == PERSON and change.type == "MODIFIED":
            self._shard_edited = self._now()
        self._one_leader()
        if change.resource is SCHEDULES:
            self._schedule(change)
        elif change.resource is LEASES:
            self._lease(change)
        elif change.resource is JOBS:
            self._job(change)

    def _one_leader(self) -> None:
        for leaders in self._leaders():
            if len(leaders) > 1 and not self._may_have_two_leaders():
                self._report(f"{leaders} would act on the same schedules")

    def _schedule(self, change: Change) -> None:
        meta, spec = change.obj["metadata"], change.obj["spec"]
        if change.type == "ADDED":
            created = parse_instant(meta["creationTimestamp"])
            # A single time in the second of its creation still runs.
            self.stories[meta["uid"]] = Story(meta["name"], created, spec, watermark=created - 1)
        story = self.stories[meta["uid"]]
        if any(story.spec.get(key) != spec.get(key) for key in TIMING):
            story.retimed = True
        story.spec = spec
        story.policies.add(spec.get("concurrencyPolicy", "Forbid"))
        story.budgets.add(spec.get("maxRuns"))
        if change.by == PERSON:
            self._requests(story, meta.get("annotations") or {})
            self._wiped(story)
        if change.type == "DELETED":
            story.deleted = True

    @staticmethod
    def _requests(story: Story, annotations: Json) -> None:
        for mark, text in annotations.items():
            if mark.startswith(REQUEST_PREFIX):
                request = parse(text)
                known = None if isinstance(request, Problem) else request
                story.requests[mark.removeprefix(REQUEST_PREFIX)].add(known.kind if known else "Malformed")
                story.policies |= {known.policy} - {""} if known else set()
                story.by_hand |= known is not None and known.kind == "Cancel"

    def _wiped(self, story: Story) -> None:
        """A person may have wiped the only record of a Job that a person had deleted."""
        for identity, known in story.deletions.items():
            slot, token, attempt = identity
            if not self._recorded(story, identity, job_name(story.name, Claim(slot, attempt, "Schedule", slot, token))):
                story.unrecorded.setdefault(identity, known)

    # The ledger

    def _lease(self, change: Change) -> None:
        text = (change.obj["metadata"].get("annotations") or {}).get(LEDGER)
        if change.type == "DELETED" and change.by == PERSON and "ownerReferences" not in change.obj["metadata"]:
            self._shard_lost_before, self._shard_lost = self._shard_lost, self._now()
        story = self._story(change.obj)
        if text is None or story is None or story.deleted:
            return
        if change.type == "DELETED":
            if change.by == PERSON:
                story.forgotten = True
                story.witnesses = frozenset(self._alive())
            return
        ledger = ledgers.decode(text)
        outdated = ledger.watermark < story.watermark  # it was deleted before its last words had reached the writer
        if change.type == "ADDED" and story.forgotten and (outdated or change.by not in story.witnesses):
            story.amnesia = True
            story.watermark = ledger.watermark
        if ledger.watermark < story.watermark:
            self._report(f"{story.name}: the watermark moved back from {story.watermark} to {ledger.watermark}")
        story.watermark = max(story.watermark, ledger.watermark)
        story.ledger = ledger
        story.version = int(change.obj["metadata"]["resourceVersion"])
        # Paused and resumed in one decision, a schedule is never seen paused; what was due before is past all the same.
        resumed = any(handled.kind == "Resume" and handled.accepted for handled in ledger.requests)
        story.paused |= bool(ledger.paused) or resumed
        budget = next(iter(story.budgets)) if len(story.budgets) == 1 else None
        if budget is not None and ledger.spent > budget:
            self._report(f"{story.name}: {ledger.spent} runs were claimed, maxRuns is {budget}")

    # Jobs

    def _job(self, change: Change) -> None:
        job = change.obj
        story = self._story(job)
        if story is None:
            return
        identity = _identity(job)
        if story.deleted and change.type == "ADDED":
            self.not_promised["Job of a deleted schedule"] += 1
            return
        if ended(job) == "Complete":
            story.completed.add(identity[:2])
        if change.type == "DELETED" and change.by == PERSON:
            story.by_hand = True
            story.deletions[identity] = (self._now(), story.version)
            if not self._recorded(story, identity, job["metadata"]["name"]):
                story.unrecorded[identity] = story.deletions[identity]
        if change.type != "ADDED":
            return
        self._once(story, identity, job, change.by)
        self._due(story, identity)
        wrongs = (*self._unclaimed(story, identity), *self._asked_for(story, identity), *self._beside(story, job))
        for wrong in wrongs:
            if self._may_have_two_leaders():
                self.not_promised["two leaders after a person's deletion or edit"] += 1
            else:
                self._report(wrong)
        story.jobs[identity].append(job["metadata"]["uid"])
        firsts = sum(attempt == 1 and not token for _, token, attempt in story.jobs)
        budget = next(iter(story.budgets)) if len(story.budgets) == 1 else None
        if budget is not None and firsts > budget and not story.amnesia:
            self._report(f"{story.name}: {firsts} runs were started, maxRuns is {budget}")

    def _may_have_two_leaders(self) -> bool:
        """Whether a shard's Lease was deleted, and somebody may have taken it who had never seen it, or had not heard
        that it was made anew; or edited, and its holder may not have heard of it."""
        twice = self._shard_lost < self._shard_lost_before + WARM_UP
        edited = self._now() < self._shard_edited + LEASE_SECONDS
        if edited or (twice and self._now() < self._shard_lost + LEASE_SECONDS):
            return True
        newcomers = any(born > self._shard_lost - WARM_UP for born in self._alive().values())
        return newcomers and self._now() < self._shard_lost + LEASE_SECONDS

    def _once(self, story: Story, identity: Identity, job: Json, by: str) -> None:
        """At most one Job ever; the exceptions are those of docs/simulation.md, "What is not promised"."""
        if not story.jobs.get(identity):
            return
        if story.amnesia:
            self.not_promised["second Job after a ledger's deletion"] += 1
            return
        if identity in story.unrecorded and not self._could_know(*story.unrecorded[identity], by):
            self.not_promised["second Job after the first one's deletion"] += 1
            return
        self._report(f"{story.name}: a second Job for {identity}: {job['metadata']['name']}")

    def _could_know(self, deleted: float, version: int, by: str) -> bool:
        """Whether a process that began after a Job's deletion could still learn of it."""
        return self._alive()[by] > deleted and self._server.remembers(JOBS, version) and not self._forgetful

    def _recorded(self, story: Story, identity: Identity, name: str) -> bool:
        """Whether anything but the Job itself shows that it was created."""
        if story.ledger is not None and not self._claims(story.ledger, identity):
            return True
        told = (
            obj.get("status") or {} for obj in self._server.peek(SCHEDULES) if obj["metadata"]["name"] == story.name
        )
        return any(record["name"] == name for status in told for record in status.get("recentRuns") or ())

    @staticmethod
    def _claims(ledger: Ledger, identity: Identity) -> bool:
        claims = {(claim.slot, claim.token, claim.attempt) for claim in ledger.claims}
        return identity in claims or identity == (ledger.prepared, "", 1)

    def _unclaimed(self, story: Story, identity: Identity) -> Iterator[str]:
        if story.ledger is None or not self._claims(story.ledger, identity):
            yield f"{story.name}: a Job for {identity}, which the ledger does not claim"

    def _due(self, story: Story, identity: Identity) -> None:
        slot, token, _ = identity
        if token or story.retimed:
            return
        if (slot, False) not in slots(story.spec, story.created, slot - 1, slot):
            self._report(f"{story.name}: a Job for {slot}, which is no slot")

    @staticmethod
    def _asked_for(story: Story, identity: Identity) -> Iterator[str]:
        """A request is carried out once, however often its annotation is seen."""
        slot, token, _ = identity
        if not token or story.amnesia:
            return
        if token not in story.requests:
            yield f"{story.name}: a Job for {identity}, which nobody asked for"
        elsewhere = {other for other, known, _ in story.jobs if known == token} - {slot}
        if elsewhere and "Backfill" not in story.requests[token]:
            yield f"{story.name}: {token} was carried out at {elsewhere} and again at {slot}"

    def _beside(self, story: Story, job: Json) -> Iterator[str]:
        """Forbid, Replace and Queue: a run starts when no pod of another can run any more."""
        if "Allow" in story.policies:
            return
        uid = job["metadata"]["uid"]
        for other in self._server.peek(JOBS):
            if other["metadata"]["uid"] != uid and self._story(other) is story and not ended(other):
                name, running = job["metadata"]["name"], other["metadata"]["name"]
                yield f"{story.name}: {name} started while {running} was running ({story.policies})"

    def _story(self, obj: Json) -> Story | None:
        refs = obj["metadata"].get("ownerReferences") or ()
        return next((self.stories[ref["uid"]] for ref in refs if ref["uid"] in self.stories), None)

    # At the end

    def accounts(self) -> None:
        """Every slot was run or skipped with a reason. Asked when the faults are over and the schedules still run."""
        for story in self._standing():
            ledger = story.ledger
            if ledger is None:
                self._report(f"{story.name}: has no ledger")
                continue
            if story.retimed or story.forgotten or story.paused:
                continue
            since = story.created - ("at" in story.spec["schedule"])
            due = slots(story.spec, story.created, since, ledger.watermark)
            runs = ledger.runs - sum(handled.runs for handled in ledger.requests)
            if runs + sum(ledger.skips.values()) != len(due):
                self._report(f"{story.name}: {len(due)} slots were due, {runs} runs and {ledger.skips} tell")
            self._caught_up(story, ledger)

    def _caught_up(self, story: Story, ledger: Ledger) -> None:
        budget = story.spec.get("maxRuns")
        spent = ledger.spent + (ledger.prepared is not None and self._was_prepared(story, ledger.prepared))
        if story.spec.get("suspend") or (budget is not None and spent >= budget):
            return
        slack = 10 + int(story.spec["schedule"].get("jitter", "0s").removesuffix("s"))
        passed = slots(story.spec, story.created, ledger.watermark, int(self._now()) - slack)
        # Excluded ones are counted with the next run, and one that was prepared enters the ledger with the next write.
        late = [slot for slot, excluded in passed if not excluded and not self._was_prepared(story, slot)]
        if late:
            self._report(f"{story.name}: {len(late)} slots are due since {late[0]} and not accounted for")

    @staticmethod
    def _was_prepared(story: Story, slot: int) -> bool:
        return story.ledger is not None and slot == story.ledger.prepared and bool(story.jobs.get((slot, "", 1)))

    def rest(self) -> None:
        """All is quiet: status, ledger and Jobs tell the same."""
        schedules = {obj["metadata"]["uid"]: obj for obj in self._server.peek(SCHEDULES)}
        unfinished: defaultdict[str, list[str]] = defaultdict(list)
        for job in self._server.peek(JOBS):
            if "ownerReferences" not in job["metadata"]:
                continue
            owner = job["metadata"]["ownerReferences"][0]["uid"]
            if owner not in schedules:
                self._report(f"the Job {job['metadata']['name']} outlived its schedule")
            elif not ended(job):
                unfinished[owner].append(job["metadata"]["name"])
        for lease in self._server.peek(LEASES):
            refs = lease["metadata"].get("ownerReferences")
            if refs and refs[0]["uid"] not in schedules:
                self._report(f"the Lease {lease['metadata']['name']} outlived its schedule")
        if any(True for _ in self._server.peek(PODS)) and not any(True for _ in self._server.peek(JOBS)):
            self._report("pods outlived their Jobs")
        for uid, schedule in schedules.items():
            self._tells_the_truth(self.stories[uid], schedule, unfinished[uid])

    def _tells_the_truth(self, story: Story, schedule: Json, unfinished: list[str]) -> None:
        status, ledger, name = schedule.get("status") or {}, story.ledger, story.name
        if ledger is None:
            return
        if status.get("observedGeneration") != schedule["metadata"]["generation"]:
            self._report(f"{name}: status is of generation {status.get('observedGeneration')}")
        if unfinished or status.get("active"):
            self._report(f"{name}: still active: Jobs {unfinished}, status {status.get('active')}")
        for field_ in ("runs", "missed"):
            if status.get(field_, 0) != getattr(ledger, field_):
                self._report(f"{name}: status.{field_} is {status.get(field_)}, ledger {getattr(ledger, field_)}")
        if dict(ledger.skips) != status.get("skips", {}):
            self._report(f"{name}: status.skips is {status.get('skips')}, ledger {dict(ledger.skips)}")
        over = sum(status.get(field_, 0) for field_ in ("succeeded", "failed", "cancelled"))
        waiting = status.get("queued", 0)
        if over + waiting != ledger.runs and not story.forgotten:
            self._report(f"{name}: {ledger.runs} runs, but {over} are over and {waiting} wait")
        if status.get("retrying"):
            self._report(f"{name}: still retrying")
        if any(mark.startswith(REQUEST_PREFIX) for mark in schedule["metadata"].get("annotations") or {}):
            self._report(f"{name}: requests are left: {schedule['metadata']['annotations']}")
        if story.forgotten:
            return
        undisturbed = "Replace" not in story.policies and not story.by_hand
        self._answered(story, status, waiting if undisturbed else ledger.runs)
        if undisturbed and status.get("succeeded", 0) != len(story.completed):
            self._report(f"{name}: status.succeeded is {status.get('succeeded', 0)}, Jobs say {len(story.completed)}")

    def _answered(self, story: Story, status: Json, pending: int) -> None:
        """Each request has its answer, and tells how its runs ended, but for so many that did not."""
        assert story.ledger is not None
        for request in sorted(story.requests.keys() - {handled.id for handled in story.ledger.requests}):
            self._report(f"{story.name}: {request} was not answered")
        for told in status.get("requests") or ():
            if not 0 <= told.get("runs", 0) - told.get("succeeded", 0) - told.get("failed", 0) <= pending:
                self._report(f"{story.name}: {told} does not tell how its runs ended")

    def _standing(self) -> list[Story]:
        return [story for story in self.stories.values() if not story.deleted]


def _identity(job: Json) -> Identity:
    marks = job["metadata"]["annotations"]
    return int(marks[PREFIX + "slot"]), marks.get(PREFIX + "request", ""), int(marks[PREFIX + "attempt"])
