"""Templates: each new generation is tried on the API server, and each status says who uses it.

The dry run finds at apply time what would otherwise fail at two in the morning. Counts of schedules and active runs
change with every run, so they are written at most once in `COUNT_INTERVAL`; who uses the template, which changes when
somebody edits, once in `LISTING_INTERVAL`; the verdict at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from cronwright.api.status import MAX_SCHEDULE_NAMES
from cronwright.cluster.port import JOBS, TEMPLATES, Cluster, ClusterError, NotFound, Refused
from cronwright.controller.acting import Actor
from cronwright.controller.pacing import delay_after
from cronwright.controller.queueing import WorkQueue
from cronwright.controller.store import Store
from cronwright.core.model import Json, Key, Problem, Schedule, Template
from cronwright.core.parameters import placeholder
from cronwright.core.render import trial
from cronwright.core.status import conditions
from cronwright.core.story import readiness

log = logging.getLogger(__name__)

COUNT_INTERVAL = 30.0
LISTING_INTERVAL = 1.0
RETRY = 5.0
RECHECK = 60.0


class Templates:
    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        actor: Actor,
        now: Callable[[], float],
        dirty: Callable[[Iterable[Key]], None],
        leads: Callable[[str], bool],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._actor = actor
        self._now = now
        self._dirty = dirty
        self._leads = leads
        self._written: dict[Key, float] = {}
        self._tried: dict[Key, float] = {}
        self.queue = WorkQueue(now)

    def used(self, schedule: Schedule) -> None:
        """This schedule refers to its template, or does so no more."""
        self._look_within(schedule, LISTING_INTERVAL)

    def ran(self, schedule: Schedule) -> None:
        """A run of this schedule has begun or ended."""
        self._look_within(schedule, COUNT_INTERVAL)

    def _look_within(self, schedule: Schedule, interval: float) -> None:
        """A look counts all schedules of a template, so a thousand of them must not cause a thousand looks."""
        if schedule.spec is not None:
            key = self._store.template_key(schedule)
            now = self._now()
            # No later than the interval from now: the clock may have jumped back since the last write.
            self.queue.wake_by(key, min(max(now, self._written.get(key, 0.0) + interval), now + interval))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.keep_time())
            for _ in range(4):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.take()
            try:
                await self._look(key)
            except ClusterError as error:
                delay = delay_after(error, RETRY)
                log.warning("template %s: the API server: %s; again in %.0f s", key, error, delay)
                self.queue.wake(key, self._now() + delay)
            except Exception:
                log.exception("template %s: looking at it failed; others are not affected", key)
                self.queue.wake(key, self._now() + RETRY)
            finally:
                self.queue.done(key)

    async def _look(self, key: Key) -> None:
        template = self._store.templates.get(key)
        if template is None or template.deleting or not self._leads(template.uid):
            self.queue.wake(key, None)
            return
        if template.spec is not None and (not template.checked or self._doubtful(template)):
            problem = await self._try(template)
            changed = problem != template.problem or not template.checked
            template.problem, template.checked = problem, True
            self._tried[key] = self._now()
            if changed:
                self._dirty(self._store.users(key))
        wakes = [await self._tell(template)]
        if template.spec is not None and template.problem is not None:
            wakes.append(self._tried.get(key, 0.0) + RECHECK)
        self.queue.wake(key, min((at for at in wakes if at is not None), default=None))

    def _doubtful(self, template: Template) -> bool:
        """A refusal may be mended elsewhere (a policy, a priority class), so it is asked for again."""
        return template.problem is not None and self._now() >= self._tried.get(template.key, 0.0) + RECHECK

    async def _try(self, template: Template) -> Problem | None:
        assert template.spec is not None
        body = trial(template, placeholder(template.spec))
        try:
            await self._cluster.create(JOBS, template.key.namespace, body, dry_run=True)
        except (Refused, NotFound) as error:
            if "exceeded quota" in str(error):
                return None  # that is about this moment and not about the Job: each run will find out for itself
            return Problem("InvalidJob", str(error))
        return None

    async def _tell(self, template: Template) -> float | None:
        """Write the status if it changed; when that has to wait, until when."""
        old, new = template.status, self._project(template)
        if old == new:
            return None
        interval = COUNT_INTERVAL if _without_counts(old) == _without_counts(new) else LISTING_INTERVAL
        earliest = self._written.get(template.key, 0.0) + interval
        # Further away than the interval, it was set by a clock that has jumped back since.
        if old.get("conditions") == new["conditions"] and earliest - interval <= self._now() < earliest:
            return earliest
        written = await self._actor.write_status(TEMPLATES, template.key, template.uid, old, new)
        self._written[template.key] = self._now()
        if written is None:
            return None
        self._dirty(self._store.observe_template(written))
        if written["metadata"].get("generation", 0) != template.generation:
            self.queue.add((template.key,))  # edited meanwhile: its event is no news any more
        for note in readiness(old, new):
            await self._actor.tell(TEMPLATES, template.key, template.uid, note)
        return None

    def _project(self, template: Template) -> Json:
        names = sorted(key.name for key in self._store.users(template.key))
        problem = template.problem
        status: Json = {
            "observedGeneration": template.generation,
            "type": template.spec.type.value if template.spec is not None else None,
            "schedules": len(names),
            "scheduleNames": names[:MAX_SCHEDULE_NAMES],
            "activeRuns": self._store.active_runs(template.key),
        }
        status = {key: value for key, value in status.items() if value not in (None, [])}
        status["conditions"] = conditions(
            template.status,
            "True" if problem is None else "False",
            "JobAccepted" if problem is None else problem.reason,
            "The API server accepts the Job." if problem is None else problem.message,
            generation=template.generation,
            now=self._now(),
        )
        return status


def _without_counts(status: Json) -> Json:
    return {name: value for name, value in status.items() if name != "activeRuns"}
