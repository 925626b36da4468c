"""A port that answers from a script, for what can be said of watches without an API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from cronwright.cluster.port import Cluster, ClusterError, EventType, Json, Listing, Resource

Step = tuple[EventType, Json] | ClusterError | float
"""What a watch says, how it fails, or for how many seconds it is silent."""


class ScriptedCluster(Cluster):
    """Lists and watches go through their scripts once; a watch whose script is used up is silent for ever."""

    def __init__(self, listings: Sequence[Listing], watches: Sequence[Sequence[Step]] = ()) -> None:
        self._listings = list(listings)
        self._watches = list(watches)
        self.asked_from: list[str] = []
        """The versions that watches were opened at."""
        self.asked_at: list[float] = []
        """And when, by the loop's clock."""
        self.warmed_for = 0
        self.finished = asyncio.Event()
        """Every script has been gone through."""

    async def pages(
        self, resource: Resource, *, namespace: str | None = None, selector: str = "", fields: str = ""
    ) -> AsyncIterator[Listing]:
        yield self._listings.pop(0)

    async def watch(
        self, resource: Resource, *, version: str, selector: str = "", seconds: int | None = None
    ) -> AsyncIterator[tuple[EventType, Json]]:
        self.asked_from.append(version)
        self.asked_at.append(asyncio.get_running_loop().time())
        if not self._watches:
            self.finished.set()
            await asyncio.Event().wait()
        for step in self._watches.pop(0):
            if isinstance(step, ClusterError):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step

    async def warm(self, calls: int) -> None:
        self.warmed_for = calls

    async def get(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    create = replace = patch = delete = get
