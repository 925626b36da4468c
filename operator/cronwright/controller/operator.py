"""The controller as a whole: watches feed the store, leadership says which schedules are ours, the engine works.

kopf (`feeding.py`) says neither when its first listing is complete nor what vanished across a relist, so an auditor
lists both kinds itself: once before the engine starts, whenever a watch had to be begun anew, and every
`AUDIT_INTERVAL` seconds. It all runs on a port and
on clocks that are given, so the simulation runs this very class.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from cronwright.cluster.port import (
    JOBS,
    LEASES,
    SCHEDULES,
    TEMPLATES,
    Cluster,
    ClusterError,
    Json,
    Resource,
)
from cronwright.controller.engine import Engine
from cronwright.controller.leadership import Leadership, Terms, shard_of
from cronwright.controller.metrics import Metrics
from cronwright.controller.pacing import delay_after
from cronwright.controller.watching import Observer, Watch, each_alone
from cronwright.core.model import MANAGED_BY, Key
from cronwright.core.observe import key_of

log = logging.getLogger(__name__)

AUDIT_INTERVAL = 600.0
AUDIT_DELAY = 1.0
"""Seconds to wait when an audit is wanted: several watches tend to lose their place at once, and a listing's events
come one by one."""
_BOOTTIME: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
SELECTOR = f"app.kubernetes.io/managed-by={MANAGED_BY}"


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock, for slots, and one that never jumps and goes on while the machine sleeps, for leadership."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = lambda: time.clock_gettime(_BOOTTIME)


class Operator:
    def __init__(
        self,
        cluster: Cluster,
        *,
        identity: str,
        namespace: str = "default",
        shards: int = 1,
        clocks: Clocks | None = None,
        terms: Terms | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        clocks = clocks or Clocks()
        self.synced = False
        self._cluster = cluster
        self._metrics = Metrics()
        self.leadership = Leadership(
            cluster,
            identity=identity,
            namespace=namespace,
            shards=shards,
            now=clocks.wall,
            monotonic=clocks.monotonic,
            acquired=self._acquired,
            settled=self._settled,
            terms=terms,
            jitter=jitter,
        )
        self.engine = Engine(cluster, clocks.wall, clocks.monotonic, identity, self._metrics, self.leadership.leads)
        self._jobs = Watch(
            cluster,
            JOBS,
            SELECTOR,
            self._observe_job,
            self._reconcile_jobs,
            self.audit_soon,
            self.engine.store.doubts,
        )
        self._leases = Watch(cluster, LEASES, SELECTOR, self._observe_lease, self._reconcile_leases, self.audit_soon)
        self._audit_wanted = asyncio.Event()

    def _observe_job(self, obj: Json, *, deleted: bool = False) -> None:
        self.engine.queue.add(self.engine.store.observe_job(obj, deleted=deleted))

    def _observe_lease(self, obj: Json, *, deleted: bool = False) -> None:
        self.leadership.observe(obj, deleted=deleted)
        self.engine.queue.add(self.engine.store.observe_lease(obj, deleted=deleted))

    def _reconcile_jobs(self, uids: Set[str], version: int) -> None:
        self.engine.queue.add(self.engine.store.reconcile_jobs(uids, version))

    def _reconcile_leases(self, uids: Set[str], version: int) -> None:
        self.leadership.reconcile(uids, version)
        self.engine.queue.add(self.engine.store.reconcile_leases(uids, version))

    def observe_schedule(self, obj: Json, *, deleted: bool = False) -> None:
        store = self.engine.store
        known = store.schedules.get(key_of(obj))
        self.engine.queue.add(store.observe_schedule(obj, deleted=deleted))
        current = store.schedules.get(key_of(obj))
        for schedule in (known, current):
            if schedule is not None and (known is None or current is None or known.spec is not current.spec):
                self.engine.templates.used(schedule)

    def observe_template(self, obj: Json, *, deleted: bool = False) -> None:
        store, key = self.engine.store, key_of(obj)
        known = store.templates.get(key)
        self.engine.queue.add(store.observe_template(obj, deleted=deleted))
        if store.templates.get(key) is not known:
            self.engine.templates.queue.add((key,))

    def _acquired(self, shard: int) -> None:
        self.engine.queue.add(self.engine.store.disown(self._belonging_to(shard)))
        self.engine.templates.queue.add(self.engine.store.templates)

    async def _settled(self, shard: int) -> None:
        await self.engine.settle(self._belonging_to(shard))

    def _belonging_to(self, shard: int) -> Callable[[str], bool]:
        """Whether the object with a UID does."""
        return lambda uid: shard_of(uid, self.leadership.shards) == shard

    def note_lag(self, seconds: float) -> None:
        self._metrics.loop_lag.observe(max(0.0, seconds))

    def measure(self) -> bytes:
        """The metrics, as they are now."""
        self._metrics.schedules.set(len(self.engine.store.schedules))
        self._metrics.queue_depth.set(self.engine.queue.depth)
        self._metrics.concurrency.set(self.engine.concurrency)
        for shard in range(self.leadership.shards):
            self._metrics.shard_held.labels(str(shard)).set(self.leadership.holds(shard))
        return self._metrics.render()

    async def run(self) -> None:
        """Campaign and work until cancelled; after `sync`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.follow(), name="jobs")
            group.create_task(self._leases.follow(), name="leases")
            group.create_task(self._audit_for_ever(), name="audit")
            group.create_task(self.engine.run(), name="engine")
            group.create_task(self.leadership.run(), name="leadership")

    async def sync(self) -> None:
        """The first complete picture; as long as it takes, e.g. until the two kinds are installed."""
        delay = 0.5
        while True:
            try:
                await self.audit()
                # Leases after Jobs: of what a newer one claims the watch will tell, of what an older one, recalling.
                await self._jobs.sync()
                await self._leases.sync()
                await self._jobs.recall()
                break
            except ClusterError as error:
                pause = delay_after(error, delay)
                log.warning("syncing: %s; again in %.1f s", error, pause)
                await asyncio.sleep(pause)
                delay = min(10.0, delay * 2)
        self.synced = True
        store = self.engine.store
        log.info("synced: %d schedules, %d templates", len(store.schedules), len(store.templates))

    async def audit(self) -> None:
        """Compare both kinds with what is known, and make good what no event told."""
        store = self.engine.store
        await self._audit(TEMPLATES, lambda: store.templates, self.observe_template)
        await self._audit(SCHEDULES, lambda: store.schedules, self.observe_schedule)

    async def _audit(self, resource: Resource, known: Callable[[], Any], observer: Observer) -> None:
        observe = each_alone(observer, resource)
        before = {key: record.uid for key, record in known().items()}
        listed = set()
        version = ""
        async for page in self._cluster.pages(resource):
            version = page.version
            for number, obj in enumerate(page.items):
                listed.add(obj["metadata"]["uid"])
                observe(obj)
                if number % 100 == 99:
                    await asyncio.sleep(0)
        for key, uid in before.items():
            current = known().get(key)
            # One that was made anew under its name has taken its place: reporting the old one would drop the new.
            if uid not in listed and current is not None and current.uid == uid:
                self._report_vanished(key, uid, version, observe)

    @staticmethod
    def _report_vanished(key: Key, uid: str, version: str, observe: Observer) -> None:
        meta = {"namespace": key.namespace, "name": key.name, "uid": uid, "resourceVersion": version}
        observe({"metadata": meta}, deleted=True)

    def audit_soon(self) -> None:
        """A watch has listed anew: what vanished meanwhile was told by no event, and must not run on until the next
        audit."""
        self._audit_wanted.set()

    async def _audit_for_ever(self) -> None:
        delay = AUDIT_DELAY
        while True:
            try:
                async with asyncio.timeout(AUDIT_INTERVAL):
                    await self._audit_wanted.wait()
            except TimeoutError:
                pass
            await asyncio.sleep(delay)
            delay = AUDIT_DELAY
            self._audit_wanted.clear()
            try:
                await self.audit()
            except ClusterError as error:
                delay = delay_after(error, AUDIT_DELAY)
                log.warning("auditing: %s; again in %.1f s", error, delay)
                self._audit_wanted.set()  # a listing that failed has found nothing out
