"""Those who make life hard: disasters that befall replicas, and people who edit and delete at the worst moment."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable

from tests.simulation.apiserver import ApiServer, Change
from tests.simulation.checks import PERSON
from tests.simulation.controllers import OUTSIDE
from tests.simulation.loop import VirtualLoop
from tests.simulation.plan import Plan, when
from tests.simulation.replica import Replica
from tests.simulation.requests import ask_for_things

from cronwright.cluster.port import JOBS, LEASES, SCHEDULES, TEMPLATES, AlreadyExists, Json, NotFound, Resource
from cronwright.core.model import PREFIX, Claim
from cronwright.core.names import job_name
from cronwright.timing import parse_instant

NAMESPACE = "default"


class Adversary:
    def __init__(
        self,
        plan: Plan,
        server: ApiServer,
        loop: VirtualLoop,
        replicas: list[Replica],
        faults: Counter[str],
        say: Callable[[str, str], None] | None,
    ) -> None:
        self._plan = plan
        self._server = server
        self._loop = loop
        self._replicas = replicas
        self._faults = faults
        self._say = say
        self._draw = random.Random(f"{plan.seed}/adversary")
        self._background: list[asyncio.Task[None]] = []
        self.calm = False

    def begin(self) -> None:
        if self._plan.disasters:
            self._spawn(self._disasters())
        if self._plan.deeds:
            self._spawn(self._deeds())
        if self._plan.request_every:
            draw = random.Random(f"{self._plan.seed}/asking")
            self._spawn(
                ask_for_things(self._server, self._now, draw, self._plan.request_every, self._faults, self._say)
            )

    def _now(self) -> float:
        return self._plan.start + self._loop.time()

    def _spawn(self, coro: object) -> None:
        self._background.append(self._loop.create_task(coro, context=OUTSIDE.copy()))  # type: ignore[arg-type]

    async def mend(self) -> None:
        """Everything that was broken works again: clocks, connections, processes."""
        self.calm = True
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for replica in self._replicas:
            replica.skew = 0.0
            if replica.link is not None:
                replica.link.heal()
            if replica.process is not None and replica.process.paused and replica.alive:
                self._loop.resume(replica.process)
            if replica.alive and replica.stopping:
                replica.crash()  # nobody waits for its clean-up any more
            if not replica.alive:
                replica.boot()

    # Disasters

    async def _disasters(self) -> None:
        while True:
            await asyncio.sleep(self._draw.expovariate(1 / self._plan.disaster_every))
            kind = self._draw.choice(self._plan.disasters)
            replica = self._draw.choice(self._replicas)
            length = self._draw.choice((1.0, 10.0, 60.0)) * self._draw.random()
            if kind == "crash":
                self._crash(replica, length)
            elif kind == "blackout":
                for each in self._replicas:
                    self._crash(each, length + self._draw.random())
            elif kind == "stop" and replica.alive and not _paused(replica):
                self._note("stop", replica)
                self._spawn(self._stop(replica, length))
            elif kind == "pause":
                self._pause(replica, length)
            elif kind == "partition" and replica.alive:
                self._note("partition", replica, f"for {length:.1f} s")
                self._partition(replica, length)
            elif kind == "clock":
                self._jump(replica)
            elif kind == "compact":
                self._note("compaction", None)
                self._server.compact(self._draw.choice((0, 5)))

    def _crash(self, replica: Replica, away: float) -> None:
        if not replica.alive:
            return
        self._note("crash", replica, f"for {away:.1f} s")
        replica.crash()
        self._spawn(self._boot_later(replica, away))

    async def _boot_later(self, replica: Replica, away: float) -> None:
        await asyncio.sleep(away)
        if not replica.alive:
            self._tell(replica, "boots")
            replica.boot()

    async def _stop(self, replica: Replica, away: float) -> None:
        await replica.stop()
        await self._boot_later(replica, away)

    def _pause(self, replica: Replica, length: float) -> None:
        process = replica.process
        if process is None or not replica.alive or process.paused:
            return
        self._note("pause", replica, f"for {length:.1f} s")
        process.paused = True
        self._loop.call_later(length, self._loop.resume, process, context=OUTSIDE)

    def _partition(self, replica: Replica, length: float) -> None:
        link = replica.link
        assert link is not None
        link.partitioned = True
        self._loop.call_later(length, link.heal, context=OUTSIDE)

    def _jump(self, replica: Replica) -> None:
        replica.skew += self._draw.choice((-1, 1)) * self._draw.choice((2, 30, 600)) * self._draw.random()
        self._note("clock jump", replica, f"to {replica.skew:+.1f} s")

    # Deeds of people

    async def _deeds(self) -> None:
        while True:
            await asyncio.sleep(self._draw.expovariate(1 / self._plan.deed_every))
            self._do(self._draw.choice(self._plan.deeds))

    def _do(self, deed: str, name: str | None = None) -> None:
        with contextlib.suppress(NotFound, AlreadyExists):
            if deed == "edit":
                self._edit(self._any(SCHEDULES, name))
            elif deed == "suspend":
                self._suspend(self._any(SCHEDULES, name))
            elif deed == "delete-job":
                self._delete(JOBS, self._any(JOBS, name))
            elif deed == "delete-lease":
                self._delete(LEASES, self._any(LEASES, name))
            elif deed == "delete-schedule":
                self._delete_and_restore(SCHEDULES, self._any(SCHEDULES, name))
            elif deed == "delete-template":
                self._delete_and_restore(TEMPLATES, self._any(TEMPLATES, name))
            elif deed == "edit-template":
                self._edit_template(self._any(TEMPLATES, name))
            elif deed == "take-name":
                self._take_name(self._any(SCHEDULES, name))
            elif deed == "edit-shard":
                self._edit_shard()
            elif deed == "scribble":
                self._scribble(self._any(JOBS, name))
            elif deed == "wipe-status":
                self._wipe_status(self._any(SCHEDULES, name))

    def _any(self, resource: Resource, name: str | None) -> Json | None:
        objects = [obj for obj in self._server.peek(resource) if name is None or obj["metadata"]["name"] == name]
        return self._draw.choice(objects) if objects else None

    def _edit(self, schedule: Json | None) -> None:
        if schedule is None:
            return
        name = schedule["metadata"]["name"]
        change: Json = {"concurrencyPolicy": self._draw.choice(("Allow", "Forbid", "Replace", "Queue"))}
        if self._draw.random() < 0.6:
            old = dict.fromkeys(schedule["spec"]["schedule"])
            new = when(self._draw, self._now(), self._plan.chaos)
            change = {"schedule": {**old, **new}, "startsAt": None, "expiresAt": None}
        self._note(f"edit of {name}", None)
        self._server.patch(SCHEDULES, NAMESPACE, name, {"spec": change}, by=PERSON)

    def _suspend(self, schedule: Json | None) -> None:
        if schedule is None:
            return
        name, suspended = schedule["metadata"]["name"], not schedule["spec"].get("suspend", False)
        self._note(f"{'suspension' if suspended else 'resumption'} of {name}", None)
        self._server.patch(SCHEDULES, NAMESPACE, name, {"spec": {"suspend": suspended}}, by=PERSON)

    def _edit_template(self, template: Json | None) -> None:
        if template is None or "job" not in template["spec"]:
            return
        name = template["metadata"]["name"]
        image = self._draw.choice(("busybox", "alpine", "refused"))
        pod = {"restartPolicy": "Never", "containers": [{"name": "task", "image": image}]}
        self._note(f"edit of {name}", None)
        spec = {"job": {"spec": {"template": {"spec": pod}}}}
        self._server.patch(TEMPLATES, NAMESPACE, name, {"spec": spec}, by=PERSON)

    def _edit_shard(self) -> None:
        shards = [obj for obj in self._server.peek(LEASES) if obj["metadata"]["name"].startswith("cronwright-shard-")]
        if not shards:
            return
        name = self._draw.choice(shards)["metadata"]["name"]
        holder = self._draw.choice(("", "nobody"))
        self._note(f"edit of {name}", None, f"to {holder!r}")
        self._server.patch(LEASES, NAMESPACE, name, {"spec": {"holderIdentity": holder}}, by=PERSON)

    def _scribble(self, job: Json | None) -> None:
        """On what tells how a run is to be treated; who scribbles on which run it is makes it another one."""
        if job is None:
            return
        name, mark = job["metadata"]["name"], self._draw.choice(("ttl", "retry", "pending-timeout", "deadline"))
        self._note(f"scribble of {mark} on {name}", None)
        patch = {"metadata": {"annotations": {PREFIX + mark: self._draw.choice(("", "soon", "{}", "-1"))}}}
        self._server.patch(JOBS, NAMESPACE, name, patch, by=PERSON)

    def _wipe_status(self, schedule: Json | None) -> None:
        if schedule is None:
            return
        name = schedule["metadata"]["name"]
        self._note(f"wiping of the status of {name}", None)
        told = dict.fromkeys(schedule.get("status") or {})
        self._server.patch(SCHEDULES, NAMESPACE, name, {"status": told}, by=PERSON, sub="status")

    def _take_name(self, schedule: Json | None) -> None:
        """A Job of somebody else gets the name, and all the marks, that the next run will want."""
        upcoming = ((schedule or {}).get("status") or {}).get("nextRunTime")
        if schedule is None or upcoming is None:
            return
        claim = Claim(parse_instant(upcoming), 1, "Schedule", 0)
        marks = {PREFIX + "slot": str(claim.slot), PREFIX + "attempt": "1", PREFIX + "trigger": "Schedule"}
        pod = {"restartPolicy": "Never", "containers": [{"name": "task", "image": "busybox"}]}
        body: Json = {
            "metadata": {"name": job_name(schedule["metadata"]["name"], claim), "annotations": marks},
            "spec": {"template": {"metadata": {}, "spec": pod}},
        }
        self._note(f"taking of the name {body['metadata']['name']}", None)
        self._server.create(JOBS, NAMESPACE, body, by=PERSON)

    def _delete(self, resource: Resource, obj: Json | None) -> None:
        if obj is not None:
            self._note(f"deletion of {resource.kind} {obj['metadata']['name']}", None)
            self._server.delete(resource, NAMESPACE, obj["metadata"]["name"], by=PERSON)

    def _delete_and_restore(self, resource: Resource, obj: Json | None) -> None:
        if obj is None:
            return
        self._delete(resource, obj)
        if self._draw.random() < 0.8:
            kept = {key: obj["metadata"][key] for key in ("name", "annotations") if key in obj["metadata"]}
            body = {"metadata": kept, "spec": obj["spec"]}
            away = self._draw.choice((0.01, 5.0, 30.0)) * self._draw.random()
            self._loop.call_later(away, self._restore, resource, body, context=OUTSIDE)

    def _restore(self, resource: Resource, body: Json) -> None:
        with contextlib.suppress(AlreadyExists):
            self._server.create(resource, NAMESPACE, body, by=PERSON)

    # Right where it hurts

    def hear(self, change: Change) -> None:
        """A replica has just written a claim or a Job: the moment at which a blow does most harm."""
        plan = self._plan
        if self.calm or not plan.sore_points or not change.by.startswith("replica") or change.type == "DELETED":
            return
        if change.resource not in (LEASES, JOBS) or self._draw.random() > plan.soreness:
            return
        blow = self._draw.choice(plan.sore_points)
        delay = self._draw.choice((0.0, 0.005, 0.02, 0.5))
        self._loop.call_later(delay, self._strike, blow, change, context=OUTSIDE)

    def _strike(self, blow: str, change: Change) -> None:
        if self.calm:
            return
        writer = next(r for r in self._replicas if change.by.startswith(f"replica-{r.number}."))
        meta = change.obj["metadata"]
        if blow == "crash-writer":
            self._crash(writer, self._draw.choice((0.01, 5.0, 30.0)) * self._draw.random())
        elif blow == "pause-writer":
            self._pause(writer, self._draw.choice((1.0, 30.0)) * self._draw.random())
        elif blow == "delete-job" and change.resource is JOBS:
            self._do("delete-job", meta["name"])
        elif blow == "delete-lease" and change.resource is LEASES:
            self._do("delete-lease", meta["name"])
        elif blow == "edit":
            self._do("edit", meta["ownerReferences"][0]["name"] if meta.get("ownerReferences") else None)

    def _note(self, what: str, replica: Replica | None, more: str = "") -> None:
        self._faults[what.split(" of ")[0]] += 1
        if self._say is not None:
            who = replica.process.name if replica is not None and replica.process is not None else PERSON
            self._say(who, f"*** {what} {more}".rstrip())

    def _tell(self, replica: Replica, what: str) -> None:
        if self._say is not None:
            self._say(f"replica-{replica.number}", f"*** {what}")


def _paused(replica: Replica) -> bool:
    return replica.process is not None and replica.process.paused
