"""What is known of the cluster: small records, kept by events, read by decisions.

Each `observe_*` takes an object as the API server sent it and answers with the keys of the schedules whose decision may
come out differently now. Events may come late, twice or out of order, so an older resourceVersion never replaces a
newer one; our own writes are observed from their responses at once, without waiting for their echo.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from cronwright.core import ledger as ledgers
from cronwright.core.model import PREFIX, Json, Key, Ledger, Run, Schedule, Template, View
from cronwright.core.observe import key_of, owner_of, run_from, schedule_from, template_from
from cronwright.core.preparing import promised

LEDGER = PREFIX + "ledger"

GRAVES = 10_000
"""Deleted schedules that are remembered: far more than can be deleted while an old event is still on its way."""


@dataclass(slots=True)
class Recorded:
    """A ledger and the Lease that it stands in."""

    ledger: Ledger | None
    """None when it cannot be read: somebody else's words stand where ours did."""
    version: int
    holder: str
    transitions: int
    uid: str
    """The Lease's own. A write must name it: see `Actor.record`."""
    own: bool = False
    """Written by this replica since it last took the shard: nobody else can have acted on it meanwhile."""
    lost: bool = False
    """The Lease was deleted: what it said still holds, and it must be written again."""
    sought: frozenset[str] = frozenset()
    """Jobs that it promises, were asked for, and are not there."""
    missing_since: float | None = None
    """When the API server first said that there is no such Lease, while no watch has told of its deletion yet."""


class Store:
    def __init__(self) -> None:
        self.schedules: dict[Key, Schedule] = {}
        self.templates: dict[Key, Template] = {}
        self.runs: defaultdict[str, dict[str, Run]] = defaultdict(dict)
        self.ledgers: dict[str, Recorded] = {}
        self.starting: defaultdict[Key, set[str]] = defaultdict(set)
        """Runs of a template that are being created right now: they count against its limit already."""
        self.asked: defaultdict[str, set[str]] = defaultdict(set)
        """By schedule, the Jobs that were asked for and that neither an answer nor a watch has told of yet."""
        self._graves: dict[Key, int] = {}
        self._keys: dict[str, Key] = {}
        self._users: defaultdict[Key, set[Key]] = defaultdict(set)
        self._busy: defaultdict[Key, set[Key]] = defaultdict(set)
        """Of a template's users those with an active run, and some that had or might have had one when last counted."""

    # Schedules and templates

    def observe_schedule(self, obj: Json, *, deleted: bool = False) -> set[Key]:
        key = key_of(obj)
        known = self.schedules.get(key)
        if known is not None and _is_old(obj, known.version, deleted=deleted):
            return set()
        if known is None and int(obj["metadata"]["resourceVersion"]) < self._graves.get(key, 0):
            return set()
        if deleted and known is not None and known.uid != obj["metadata"]["uid"]:
            return set()  # its predecessor of the same name is gone, which is no news
        if known is not None and (deleted or known.uid != obj["metadata"]["uid"]):
            self._drop(known)
            known = None
        if deleted:
            self._bury(key, int(obj["metadata"]["resourceVersion"]))
            return set()
        schedule = schedule_from(obj, known)
        if known is not None and known.spec is not None:
            self._users[self.template_key(known)].discard(key)
        self.schedules[key] = schedule
        self._keys[schedule.uid] = key
        if schedule.spec is not None:
            self._users[self.template_key(schedule)].add(key)
            if known is None or known.spec is not schedule.spec:
                self._busy[self.template_key(schedule)].add(key)
        return {key}

    def _bury(self, key: Key, version: int) -> None:
        """An event or answer from before its end must not bring a schedule back to life."""
        self._graves.pop(key, None)
        self._graves[key] = version
        if len(self._graves) > GRAVES:
            del self._graves[next(iter(self._graves))]

    def _drop(self, schedule: Schedule) -> None:
        self.schedules.pop(schedule.key, None)
        self._keys.pop(schedule.uid, None)
        self.runs.pop(schedule.uid, None)
        self.ledgers.pop(schedule.uid, None)
        self.asked.pop(schedule.uid, None)
        if schedule.spec is not None:
            self._users[self.template_key(schedule)].discard(schedule.key)

    def observe_template(self, obj: Json, *, deleted: bool = False) -> set[Key]:
        key = key_of(obj)
        known = self.templates.get(key)
        if known is not None and _is_old(obj, known.version, deleted=deleted):
            return set()
        if deleted and known is not None and known.uid != obj["metadata"]["uid"]:
            return set()
        if deleted:
            self.templates.pop(key, None)
            return set(self._users[key])
        self.templates[key] = template = template_from(obj, known)
        if known is not None and verdict(known) == verdict(template):
            return set()
        return set(self._users[key])

    def users(self, template: Key) -> set[Key]:
        """The schedules that refer to this template."""
        return set(self._users[template])

    @staticmethod
    def template_key(schedule: Schedule) -> Key:
        assert schedule.spec is not None
        return Key(schedule.key.namespace, schedule.spec.template_ref.name)

    def active_runs(self, template: Key) -> int:
        """Of all its schedules. Thousands may share a template, and few are busy at a time."""
        counts = {key: self._active(self.schedules[key].uid) for key in self._busy[template] & self._users[template]}
        self._busy[template] = {key for key, count in counts.items() if count}
        return sum(counts.values())

    def _active(self, uid: str) -> int:
        return sum(not run.over for run in self.runs.get(uid, {}).values())

    # Jobs and Leases

    def observe_job(self, job: Json, *, deleted: bool = False) -> set[Key]:
        uid = owner_of(job)
        if uid is None:
            return set()
        self.answered(uid, job["metadata"]["name"])
        runs = self.runs[uid]
        known = runs.get(job["metadata"]["name"])
        if known is not None and _is_old(job, known.version, deleted=deleted):
            return set()
        run = run_from(job, gone=deleted)
        if run is None:
            return set()
        if known is not None:
            if known.gone and known.uid == run.uid:
                return set()
            if known.uid == run.uid:
                run.outcome = known.outcome
                run.ready |= known.ready
                run.examined = known.examined
                run.glimpsed = known.glimpsed
                run.reason = run.reason or known.reason
        if deleted and known is None and not self._claimed(uid, run):
            return set()
        runs[run.name] = run
        key = self._keys.get(uid)
        if key is None:
            return set()
        if not run.over and self.schedules[key].spec is not None:
            self._busy[self.template_key(self.schedules[key])].add(key)
        affected = {key}
        if run.over:
            affected |= self._waiting_for_capacity(key)
        return affected

    def answered(self, uid: str, name: str) -> None:
        """It is known by now what became of a Job that was asked for."""
        if uid in self.asked:
            self.asked[uid].discard(name)
            if not self.asked[uid]:
                del self.asked[uid]

    def _claimed(self, uid: str, run: Run) -> bool:
        """Whether the ledger waits for this run: then its end matters, even if its beginning was never seen."""
        recorded = self.ledgers.get(uid)
        ledger = recorded.ledger if recorded is not None else None
        if ledger is None:
            return False
        return any((c.slot, c.token, c.attempt) == (run.slot, run.token, run.attempt) for c in promised(ledger))

    def doubts(self) -> list[int]:
        """Since when there are claims of which no Job is known, oldest first: theirs may have come and gone.

        A prepared slot is claimed in writing when its Job is long there: what counts is where it was prepared.
        """
        return sorted({version for uid, recorded in self.ledgers.items() for version in self._doubts(uid, recorded)})

    def _doubts(self, uid: str, recorded: Recorded) -> Iterable[int]:
        ledger = recorded.ledger
        if ledger is None or recorded.lost:
            return
        runs = {(run.slot, run.token, run.attempt) for run in self.runs.get(uid, {}).values()}
        for claim in promised(ledger):
            if (claim.slot, claim.token, claim.attempt) not in runs:
                yield claim.since or recorded.version

    def reconcile_jobs(self, uids: Set[str], version: int) -> set[Key]:
        """Runs whose Job a complete listing does not show are gone, also those that no watch ever told of."""
        affected: set[Key] = set()
        for owner, runs in self.runs.items():
            missing = [r for r in runs.values() if r.standing and r.version <= version and r.uid not in uids]
            for run in missing:
                run.gone = True
            if missing and (key := self._keys.get(owner)) is not None:
                affected |= {key} | self._waiting_for_capacity(key)
        return affected

    def _waiting_for_capacity(self, key: Key) -> set[Key]:
        schedule = self.schedules[key]
        if schedule.spec is None:
            return set()
        template_key = self.template_key(schedule)
        template = self.templates.get(template_key)
        if template is None or template.spec is None or template.spec.max_concurrent_runs is None:
            return set()
        return set(self._users[template_key])

    def observe_lease(self, lease: Json, *, deleted: bool = False) -> set[Key]:
        uid = owner_of(lease)
        text = (lease["metadata"].get("annotations") or {}).get(LEDGER)
        if uid is None:
            return set()
        known = self.ledgers.get(uid)
        version = int(lease["metadata"]["resourceVersion"])
        key = self._keys.get(uid)
        if deleted:
            if known is None or known.lost or version < known.version:
                return set()
            # The event of a deletion carries the last words, which may be another replica's.
            known.ledger = _read(text) or known.ledger
            return self._lose(uid, known)
        if known is not None and version <= known.version and not known.lost:
            return set()
        spec = lease.get("spec") or {}
        self.ledgers[uid] = Recorded(
            ledger=_read(text),
            version=version,
            holder=spec.get("holderIdentity") or "",
            transitions=spec.get("leaseTransitions") or 0,
            uid=lease["metadata"]["uid"],
        )
        return {key} if key else set()

    def reconcile_leases(self, uids: Set[str], version: int) -> set[Key]:
        """Ledgers whose Lease a complete listing does not show are lost; nobody tells their last words."""
        missing = [
            (owner, known)
            for owner, known in self.ledgers.items()
            if not known.lost and known.version <= version and known.uid not in uids
        ]
        return set().union(*(self._lose(owner, known) for owner, known in missing))

    def _lose(self, owner: str, known: Recorded) -> set[Key]:
        known.lost = True
        if known.ledger is None:
            del self.ledgers[owner]
        key = self._keys.get(owner)
        return {key} if key else set()

    def disown(self, concerns: Callable[[str], bool]) -> set[Key]:
        """A shard has just become ours: what its last holder wrote of its schedules may not have reached us yet."""
        for uid, recorded in self.ledgers.items():
            if concerns(uid):
                recorded.own = False
        return {key for uid, key in self._keys.items() if concerns(uid)}

    # Decisions

    def view(self, key: Key, now: float) -> View | None:
        schedule = self.schedules.get(key)
        if schedule is None:
            return None
        template = None
        elsewhere = 0
        if schedule.spec is not None:
            template_key = self.template_key(schedule)
            template = self.templates.get(template_key)
            if template is not None and template.spec is not None and template.spec.max_concurrent_runs:
                own = self._active(schedule.uid)
                starting = self.starting[template_key] - self.runs[schedule.uid].keys()
                elsewhere = self.active_runs(template_key) - own + len(starting)
        recorded = self.ledgers.get(schedule.uid)
        return View(
            schedule=schedule,
            template=template,
            ledger=recorded.ledger if recorded is not None else None,
            recorded=recorded is not None and not recorded.lost,
            own=recorded is not None and recorded.own,
            sought=recorded.sought if recorded is not None else frozenset(),
            asked=frozenset(self.asked.get(schedule.uid, ())),
            unreadable=recorded is not None and recorded.ledger is None,
            runs=self.runs[schedule.uid],
            now=now,
            template_active=elsewhere,
        )

    def forget(self, uid: str, names: Iterable[str]) -> None:
        for name in names:
            self.runs[uid].pop(name, None)


def _is_old(obj: Json, version: int, *, deleted: bool) -> bool:
    """Whether an object is no news: older than what is known, or the echo of an answer that was observed already."""
    given = int(obj["metadata"]["resourceVersion"])
    return given < version or (given == version and not deleted)


def _read(text: str | None) -> Ledger | None:
    try:
        return ledgers.decode(text) if text is not None else None
    except (ValueError, KeyError, TypeError):
        return None


def verdict(template: Template) -> tuple[object, ...]:
    """All of a template that a decision, or a Job, depends on."""
    return template.uid, template.generation, template.deleting, template.checked, template.problem
