"""The engine: takes a key, asks `core` for the decision, carries it out through the port, and comes again when told.

One look at a schedule either acts (ledger, Jobs) or, with nothing left to do, writes its status; acting makes the
schedule due for another look at once. So a status is always written from what is true after the actions, and a run
costs one status write when it starts and one when it is over. Writes of a busy schedule are at least
`STATUS_INTERVAL` apart; the last one always arrives, because the look that held it back wakes again.

A slot that was prepared is decided ahead of its time too: at the slot itself, one POST of a Job that is ready to be
sent is all that is left to do.

A call that fails leaves everything as it was: the look is repeated after a growing delay, for that schedule alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import orjson

from cronwright.cluster.port import SCHEDULES, Cluster, ClusterError, Json, Unavailable
from cronwright.controller.acting import Actor
from cronwright.controller.metrics import Metrics
from cronwright.controller.pacing import Pace, delay_after
from cronwright.controller.queueing import WorkQueue
from cronwright.controller.store import Store, verdict
from cronwright.controller.templates import Templates
from cronwright.core.decide import decide, report
from cronwright.core.model import Decision, Key, Problem, Schedule, Start, Template, View
from cronwright.core.story import story

log = logging.getLogger(__name__)

STATUS_INTERVAL: Final = 1.0
LONGEST_SILENCE: Final = 3.0
FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 60.0
FULL: Final = 8
"""Starts in one second for which connections are opened before it comes."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A start that was decided before its time, and its Job, ready to be sent."""

    due: float
    schedule: Schedule
    start: Start
    version: int
    """Of the ledger that the decision was made on."""
    template: object
    """What its Job was rendered from, by `verdict`: an edit of it may not have been looked at yet."""
    body: str
    """Text, because the bytes that orjson gives keep their whole buffer, and thousands may wait for a full hour."""


class Engine:
    def __init__(
        self,
        cluster: Cluster,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        identity: str,
        metrics: Metrics,
        leads: Callable[[str], bool],
    ) -> None:
        self._cluster = cluster
        self.store = Store()
        self.queue = WorkQueue(now)
        self.metrics = metrics
        self._now = now
        self._leads = leads
        self._monotonic = monotonic
        self._pace = Pace(monotonic)
        self._under_way = 0
        self._freed = asyncio.Event()
        self._ahead: dict[Key, Ahead] = {}
        self._creations: dict[asyncio.Task[bool], str] = {}
        """Those under way, and the UID of the schedule of each."""
        self._untold: dict[Key, float] = {}
        self._actor = Actor(cluster, self.store, now, identity)
        self.templates = Templates(cluster, self.store, self._actor, now, self.queue.add, leads)
        self._written: dict[Key, float] = {}
        self._delays: dict[Key, float] = {}

    async def run(self) -> None:
        """Work until cancelled. The store must hold a complete picture before this is called."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.keep_time(), name="time")
            group.create_task(self.templates.run(), name="templates")
            group.create_task(self._dispatch(group), name="dispatch")
            group.create_task(self._keep_warm(), name="warmth")

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        """Begin a look for each key, as many at once as the API server bears."""
        while True:
            while self._under_way >= self._pace.limit:
                self._freed.clear()
                await self._freed.wait()
            key = await self.queue.take()
            self._under_way += 1
            group.create_task(self._work(key))

    @property
    def concurrency(self) -> int:
        return self._pace.limit

    async def _keep_warm(self) -> None:
        """Between one and two seconds before a full one, have a connection open for each Job that will be sent at once:
        a handshake each would be paid for at the slot."""
        while True:
            await asyncio.sleep(1.0)
            now = self._now()
            soon = sum(now + 1 < ahead.due <= now + 2 for ahead in self._ahead.values())
            if soon >= FULL:
                await self._cluster.warm(min(soon, self._pace.limit))

    async def _work(self, key: Key) -> None:
        began = self._monotonic()
        try:
            asked = await self._look(key)
            self._delays.pop(key, None)
            if asked:
                self._pace.answered(self._monotonic() - began)
        except ClusterError as error:
            self._postpone(key, error)
        except Exception:
            log.exception("%s: looking at it failed; other schedules are not affected", key)
            self._postpone(key, None)
        finally:
            self._under_way -= 1
            self._freed.set()
            self.queue.done(key)

    def _postpone(self, key: Key, error: ClusterError | None) -> None:
        delay = min(LONGEST_DELAY, self._delays.get(key, FIRST_DELAY / 2) * 2)
        self._delays[key] = delay
        if isinstance(error, Unavailable):
            self._pace.refused()
        if error is not None:
            delay = delay_after(error, delay)
            log.warning("%s: the API server: %s; again in %.1f s", key, error, delay)
        self.queue.wake_by(key, self._now() + delay)

    async def _look(self, key: Key) -> bool:
        """Whether anything was asked of the API server."""
        ahead = self._ahead.pop(key, None)
        if ahead is not None and self._may_fire(key, ahead):
            await self._fire(ahead)
            self.queue.add((key,))
            return True
        view = self.store.view(key, self._now())
        if view is None or view.schedule.deleting or not self._leads(view.schedule.uid):
            self.queue.wake(key, None)
            self._written.pop(key, None)
            self._untold.pop(key, None)
            return False
        decision = decide(view)
        if await self._act(view, decision):
            self.queue.add((key,))
            await self._tell_overdue(key)
            return True
        self.queue.wake(key, decision.wake)  # first: a status that cannot be written must not delay a slot
        written = self._written.get(key)
        if (at := await self._tell(view.schedule, decision)) is not None:
            self.queue.wake_by(key, at)
        self._foresee(key)
        return self._written.get(key) != written

    async def _tell_overdue(self, key: Key) -> None:
        """A schedule with something to do at every look must tell of it too: status is a witness of what was run."""
        since = self._untold.setdefault(key, self._now())
        view = self.store.view(key, self._now())
        if view is not None and not since <= self._now() <= since + LONGEST_SILENCE:
            await self._tell(view.schedule, report(view))

    def _foresee(self, key: Key) -> None:
        """With a slot prepared: decide now what will be decided when it is due, if nothing happens until then.

        Whatever does happen to the schedule makes it due for a look, and a look forgets what was foreseen.
        """
        view = self.store.view(key, self._now())
        if view is None or view.ledger is None or view.ledger.prepared is None or not view.own:
            return
        if view.schedule.timetable is None:
            return  # edited while its status was being written: it is due for another look
        due = view.schedule.timetable.due(view.ledger.prepared)
        limited = view.template is None or view.template.spec is None or view.template.spec.max_concurrent_runs
        if due <= view.now or limited:
            return
        decision = decide(replace(view, now=float(due)))
        others = decision.stops or decision.inspect or decision.answered or decision.owner is not None
        if decision.write or others or len(decision.starts) != 1:
            return
        [start] = decision.starts
        body = self._actor.body(view.schedule, view.template, decision.ledger, start)
        if not isinstance(body, Problem):
            version = self.store.ledgers[view.schedule.uid].version
            assert view.template is not None
            text = orjson.dumps(body).decode()
            self._ahead[key] = Ahead(due, view.schedule, start, version, verdict(view.template), text)

    def _may_fire(self, key: Key, ahead: Ahead) -> bool:
        schedule, recorded = self.store.schedules.get(key), self.store.ledgers.get(ahead.schedule.uid)
        template = self._template_of(ahead.schedule)
        return (
            ahead.due <= self._now()
            and schedule is not None
            and not schedule.deleting
            and (schedule.uid, schedule.generation) == (ahead.schedule.uid, ahead.schedule.generation)
            and recorded is not None
            and recorded.own
            and recorded.version == ahead.version
            and template is not None
            and verdict(template) == ahead.template
            and self._leads(schedule.uid)
        )

    async def _fire(self, ahead: Ahead) -> None:
        await self._create(ahead.schedule, self._template_of(ahead.schedule), ahead.start, ahead.body.encode())

    def _template_of(self, schedule: Schedule) -> Template | None:
        return self.store.templates.get(self.store.template_key(schedule))

    async def _create(
        self, schedule: Schedule, template: Template | None, start: Start, job: Json | bytes | Problem
    ) -> bool:
        """Whether it was asked for. What has been sent cannot be taken back: it is seen through even if the work is
        cancelled meanwhile."""
        creation = asyncio.create_task(self._send(schedule, template, start, job))
        self._creations[creation] = schedule.uid
        creation.add_done_callback(self._created)
        return await asyncio.shield(creation)

    def _created(self, creation: asyncio.Task[bool]) -> None:
        del self._creations[creation]
        if not creation.cancelled():
            creation.exception()  # whoever waits for it is told; if nobody does any more, it is nobody's error

    async def _send(
        self, schedule: Schedule, template: Template | None, start: Start, job: Json | bytes | Problem
    ) -> bool:
        if not self._leads(schedule.uid):  # asked last: whoever sleeps over an answer may be deposed by then
            return False
        await self._actor.create(schedule, template, start, job)
        self.metrics.started(start.claim.trigger, self._lateness(schedule, start))
        return True

    async def settle(self, concerns: Callable[[str], bool]) -> None:
        """Wait until no creation is under way for a schedule whose UID is of concern: whoever acts on it next must not
        be overtaken by one."""
        creations = [creation for creation, uid in self._creations.items() if concerns(uid)]
        if creations:
            await asyncio.wait(creations)

    async def _act(self, view: View, decision: Decision) -> bool:
        """Whether anything was done that calls for another look."""
        schedule = view.schedule
        reserved = self._reserve(view, decision)
        try:
            # Starts and stops are fenced by a write even where the ledger stays as it is, unless ours is known to be
            # the latest: an old one does not know which Jobs are claimed.
            fenced = decision.write or (bool(decision.starts or decision.stops) and not view.own)
            if fenced and not await self._actor.record(schedule, decision.ledger):
                return True
            for start in decision.starts:
                job = await self._actor.job(schedule, view.template, decision.ledger, start)
                if not await self._create(schedule, view.template, start, job):
                    return True
        finally:
            for name in reserved:
                self.store.starting[self.store.template_key(schedule)].discard(name)
        for stop in decision.stops:
            if not self._leads(schedule.uid):
                return True
            await self._actor.stop(schedule, stop)
        for name in decision.inspect:
            await self._actor.inspect(schedule, decision.ledger, name)
        if decision.answered:
            await self._actor.remove_requests(schedule, decision.answered)
        if decision.owner is not None and schedule.spec is not None:
            await self._actor.own(schedule, schedule.spec.template_ref.name, decision.owner)
            return True
        return bool(decision.write or decision.starts or decision.stops or decision.inspect or decision.answered)

    def _lateness(self, schedule: Schedule, start: Start) -> float | None:
        """Seconds from the moment a slot was due; None for what was not started by the clock alone."""
        if schedule.timetable is None or start.claim.trigger != "Schedule" or start.claim.attempt > 1:
            return None
        return self._now() - schedule.timetable.due(start.claim.slot)

    def _reserve(self, view: View, decision: Decision) -> list[str]:
        if not decision.starts or view.schedule.spec is None:
            return []
        names = [start.name for start in decision.starts]
        self.store.starting[self.store.template_key(view.schedule)].update(names)
        return names

    def _notice_edit(self, before: Schedule) -> None:
        """An answer may bring an edit along that nobody has decided on yet; its event is no news any more then."""
        now = self.store.schedules.get(before.key)
        if now is None or _asked(now) != _asked(before):
            self.queue.add((before.key,))

    async def _tell(self, schedule: Schedule, decision: Decision) -> float | None:
        """Write the status if it changed; when that has to wait, until when."""
        self._untold.pop(schedule.key, None)
        old, new = schedule.status, decision.status
        if old == new:
            self.store.forget(schedule.uid, decision.forget)
            return None
        earliest = self._written.get(schedule.key, 0.0) + STATUS_INTERVAL
        # Further away than the interval, it was set by a clock that has jumped back since.
        held = earliest - STATUS_INTERVAL <= self._now() < earliest
        if held and new.get("observedGeneration") == old.get("observedGeneration"):
            return earliest
        written = await self._actor.write_status(SCHEDULES, schedule.key, schedule.uid, old, new)
        self._written[schedule.key] = self._now()
        self.store.forget(schedule.uid, decision.forget)
        if written is None:
            return None
        self.store.observe_schedule(written)
        self._notice_edit(schedule)
        self.metrics.changed(old, new)
        for note in story(old, new):
            await self._actor.tell(SCHEDULES, schedule.key, schedule.uid, note)
        self.templates.ran(schedule)
        return None


def _asked(schedule: Schedule) -> tuple[object, ...]:
    """All of a schedule that is people's to change."""
    return schedule.uid, schedule.generation, schedule.deleting, schedule.requests, schedule.owners
