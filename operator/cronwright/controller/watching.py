"""Our own watch of Jobs and Leases: list, then follow, and list again when the API server has lost our place.

kopf's machinery costs twenty times as much an event, and a run's Job has about five. Objects that vanished while no
watch was open are found by comparing what is known with each complete listing, so nobody waits for an event that never
comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from typing import Protocol

from cronwright.cluster.port import Cluster, ClusterError, Expired, Json, Resource, Unavailable
from cronwright.controller.pacing import delay_after
from cronwright.core.observe import key_of

log = logging.getLogger(__name__)

FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0

SHORT_LIFE = 1.0
"""Seconds. A watch that ends earlier than that was not ended because its time was over."""

RECALL_SECONDS = 4
"""How long a look into the past may take. It is over as soon as a BOOKMARK says so, two seconds before."""


class Observer(Protocol):
    def __call__(self, obj: Json, *, deleted: bool = False) -> None: ...


class Reconciler(Protocol):
    """Takes the UIDs that a complete listing of this version shows."""

    def __call__(self, uids: Set[str], version: int) -> object: ...


def each_alone(observe: Observer, resource: Resource) -> Observer:
    """An object that cannot be observed is a mistake of ours, and must not hide the others."""

    def attempt(obj: Json, *, deleted: bool = False) -> None:
        try:
            observe(obj, deleted=deleted)
        except Exception:
            log.exception("%s %s: it cannot be observed; others are not affected", resource.kind, key_of(obj))

    return attempt


class Watch:
    """Keeps an observer informed of all objects of a resource that match a selector."""

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        selector: str,
        observe: Observer,
        reconcile: Reconciler,
        expired: Callable[[], None] = lambda: None,
        doubts: Callable[[], Sequence[int]] = lambda: (),
    ) -> None:
        """`reconcile` is told what a complete listing shows, and so what is gone. `expired` is called when the API
        server has lost our place, and so perhaps that of other watches too. `doubts` are the versions, oldest first,
        since when it matters what came and went before the listing; there are none if it does not."""
        self._cluster = cluster
        self._resource = resource
        self._selector = selector
        self._observe = each_alone(observe, resource)
        self._reconcile = reconcile
        self._expired = expired
        self._doubts = doubts
        self._version = ""

    async def sync(self) -> None:
        """One complete listing; what was known and is not in it has been deleted."""
        uids: set[str] = set()
        version = ""
        async for page in self._cluster.pages(self._resource, selector=self._selector):
            version = page.version
            for number, obj in enumerate(page.items):
                uids.add(obj["metadata"]["uid"])
                self._observe(obj)
                if number % 100 == 99:
                    await asyncio.sleep(0)
        self._reconcile(uids, int(version))
        self._version = version

    async def recall(self) -> None:
        """Hear of objects that came and went before the listing, as far back as the API server remembers them."""
        version = self._version
        doubts = [since for since in self._doubts() if since < int(version)]
        if not doubts:
            return
        self._version = ""  # the listing is good for nothing without its past
        while doubts:
            try:
                await self._hear_since(doubts[0])
                break
            except Expired:
                log.info("%s: what was deleted since %d is forgotten", self._resource.plural, doubts[0])
                doubts = doubts[(len(doubts) + 1) // 2 :]  # one old claim must not hide the past of all others
        self._version = version

    async def _hear_since(self, version: int) -> None:
        """Up to the API server's bookmark, or for as long as it had the time to send one."""
        clock = asyncio.get_running_loop().time
        opened = clock()
        async for kind, obj in self._cluster.watch(
            self._resource, version=str(version), selector=self._selector, seconds=RECALL_SECONDS
        ):
            if kind == "BOOKMARK":
                return
            if kind == "DELETED":
                self._observe(obj, deleted=True)
        if clock() < opened + RECALL_SECONDS - 1:
            raise Unavailable(f"{self._resource.plural}: the watch ended before it had told all of the past")

    async def follow(self) -> None:
        """Watch for ever; after `sync` was called once.

        A watch whose time was over is followed by the next at once, and so is a place that was lost by a new listing.
        But an API server that has nothing else to say is asked less and less often, until it tells of something.
        """
        clock = asyncio.get_running_loop().time
        delay, relisted = FIRST_DELAY, False
        while True:
            pause = 0.0
            try:
                if not self._version:
                    await self.sync()
                    await self.recall()
                opened = clock()
                async for kind, obj in self._cluster.watch(
                    self._resource, version=self._version, selector=self._selector
                ):
                    delay, relisted = FIRST_DELAY, False
                    self._version = obj["metadata"]["resourceVersion"]
                    if kind == "BOOKMARK":
                        continue
                    self._observe(obj, deleted=kind == "DELETED")
                if clock() < opened + SHORT_LIFE:
                    pause = delay
            except Expired:
                self._version = ""
                self._expired()
                pause = delay if relisted else 0.0
                relisted = True
            except ClusterError as error:
                pause = delay_after(error, delay)
                log.warning("watching %s: %s; again in %.1f s", self._resource.plural, error, pause)
            if pause:
                await asyncio.sleep(pause)
                delay = min(LONGEST_DELAY, delay * 2)
