"""Our own watch of Jobs and Leases: list, then follow, and list again when the API server has lost our place.

kopf's machinery costs twenty times as much an event, and a run's Job has about five. Objects that vanished while no
watch was open are found by comparing each listing with what was known, so nobody waits for an event that never comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from typing import Protocol

from cronwright.cluster.port import Cluster, ClusterError, Expired, Json, Resource

log = logging.getLogger(__name__)

FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0


class Observer(Protocol):
    def __call__(self, obj: Json, *, deleted: bool = False) -> None: ...


class Reconciler(Protocol):
    def __call__(self, uids: Set[str], version: int) -> None: ...


class Watch:
    """Keeps an observer informed of all objects of a resource that match a selector."""

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        selector: str,
        observe: Observer,
        expired: Callable[[], None] = lambda: None,
        reconcile: Reconciler | None = None,
    ) -> None:
        """`expired` is called when the API server has lost our place, and so perhaps that of other watches too."""
        self._cluster = cluster
        self._resource = resource
        self._selector = selector
        self._observe = observe
        self._expired = expired
        self._reconcile = reconcile
        self._known: dict[str, Json] = {}
        self._version = ""

    async def sync(self) -> None:
        """One complete listing; what was known and is not in it has been deleted."""
        listing = await self._cluster.list(self._resource, selector=self._selector)
        found: dict[str, Json] = {}
        for number, obj in enumerate(listing.items):
            found[obj["metadata"]["uid"]] = _trace(obj)
            self._observe(obj)
            if number % 200 == 199:
                await asyncio.sleep(0)
        names = {_name(trace) for trace in found.values()}
        for uid in [uid for uid in self._known if uid not in found]:
            trace = self._known[uid]
            if _name(trace) in names:
                continue  # made anew under its name: the new one has been observed, and is not to be taken for gone
            trace["metadata"]["resourceVersion"] = listing.version
            self._observe(trace, deleted=True)
        self._known = found
        self._version = listing.version
        if self._reconcile is not None:
            self._reconcile(found.keys(), int(listing.version))

    async def follow(self) -> None:
        """Watch for ever; after `sync` was called once."""
        delay = FIRST_DELAY
        while True:
            try:
                if not self._version:
                    await self.sync()
                async for kind, obj in self._cluster.watch(
                    self._resource, version=self._version, selector=self._selector
                ):
                    delay = FIRST_DELAY
                    self._version = obj["metadata"]["resourceVersion"]
                    if kind == "BOOKMARK":
                        continue
                    uid = obj["metadata"]["uid"]
                    if kind == "DELETED":
                        self._known.pop(uid, None)
                    else:
                        self._known[uid] = _trace(obj)
                    self._observe(obj, deleted=kind == "DELETED")
            except Expired:
                self._version = ""
                self._expired()
            except ClusterError as error:
                log.warning("watching %s: %s; again in %.1f s", self._resource.plural, error, delay)
                await asyncio.sleep(delay)
                delay = min(LONGEST_DELAY, delay * 2)


def _name(obj: Json) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _trace(obj: Json) -> Json:
    """The little that must be kept of an object to report its deletion."""
    meta = obj["metadata"]
    kept = {k: meta[k] for k in _KEPT if k in meta}
    return {"metadata": kept, "status": _ending(obj.get("status") or {})}


_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "ownerReferences", "annotations")


def _ending(status: Json) -> Json:
    return {k: status[k] for k in ("conditions", "completionTime", "startTime") if k in status}
