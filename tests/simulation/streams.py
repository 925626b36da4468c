"""One watch of one replica: in order and complete, unless the seed wants it otherwise."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import orjson
from tests.simulation.apiserver import selected, wanted_by
from tests.simulation.controllers import OUTSIDE

from cronwright.cluster.port import ClusterError, EventType, Expired, Json, Resource, Unavailable

if TYPE_CHECKING:
    from tests.simulation.network import Link, Net

WATCH_SECONDS = 290.0
WATCH_SILENCE = 90.0
BOOKMARKS = 60.0


class Stream:
    """One watch. Not an async generator: those are closed by the garbage collector, at a time of its own."""

    def __init__(self, net: Net, link: Link, resource: Resource, version: str, selector: str, seconds: float) -> None:
        self._net = net
        self._link = link
        self.resource = resource
        self._version = int(version)
        self._seconds = seconds
        self._wanted = wanted_by(selector)
        self._events: deque[tuple[EventType, bytes] | ClusterError | None] = deque()
        self._arrived = asyncio.Event()
        self._open = False
        self._silent = False
        self._last = 0.0
        self._held: list[tuple[EventType, bytes] | ClusterError | None] = []
        self._overtaken: tuple[EventType, bytes] | None = None

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> tuple[EventType, Json]:
        if self._net.over:
            raise Unavailable("the history is over")
        if not self._open:
            await self._connect()
        while not self._events:
            self._arrived.clear()
            try:
                async with asyncio.timeout(WATCH_SILENCE):
                    await self._arrived.wait()
            except TimeoutError:
                self._close()
                self._link.say(f"watch {self.resource.plural}: silent for too long")
                raise Unavailable("the watch is silent") from None
        event = self._events.popleft()
        if event is None:
            self._close()
            raise StopAsyncIteration
        if isinstance(event, ClusterError):
            self._close()
            raise event
        kind, data = event
        return kind, orjson.loads(data)

    async def _connect(self) -> None:
        try:
            await self._link.call("watch", self.resource, "", self._begin)
        except ClusterError:
            self._close()
            raise
        self._link.say(f"watch {self.resource.plural}: open from {self._version}")

    def _begin(self) -> None:
        """At the server: from here on nothing is missed."""
        net = self._net
        if self._link.closed:
            return
        if net.weather.watch_expired and net.draw.random() < net.weather.watch_expired:
            net.faults["410"] += 1
            raise Expired("too old resource version")
        missed = net.server.since(self.resource, self._version)
        self._open = True
        self._link.streams.append(self)
        for change in missed:
            self.send(change.type, change.obj, change.data)
        net.loop.call_later(min(BOOKMARKS, self._seconds - 2), self._bookmark, context=OUTSIDE)
        net.loop.call_later(self._seconds, self._end, context=OUTSIDE)

    def _close(self) -> None:
        self._open = False
        if self in self._link.streams:
            self._link.streams.remove(self)

    def send(self, kind: EventType, obj: Json, data: bytes) -> None:
        if not selected(obj, self._wanted):
            return
        weather = self._net.weather
        if self._happens("watch dropped", weather.watch_dropped):
            self._deliver(Unavailable("the watch was cut"))
            return
        if self._happens("watch silent", weather.watch_silent):
            self._silent = True
        if self._happens("410", weather.watch_expired):
            self._deliver(Expired("too old resource version"))
            return
        self._deliver((kind, data), late=self._happens("events reordered", weather.reordered))
        if self._happens("event twice", weather.duplicated):
            self._deliver((kind, data))

    def _deliver(self, event: tuple[EventType, bytes] | ClusterError, *, late: bool = False) -> None:
        net = self._net
        lag = net.draw.uniform(0.001, 0.01) if net.draw.random() < 0.8 else net.draw.uniform(0, net.weather.lag)
        at = max(self._last + 1e-6, net.loop.time() + lag)
        self._last = at
        net.loop.call_at(at, self._put, event, late, context=OUTSIDE)

    def _put(self, event: tuple[EventType, bytes] | ClusterError | None, late: bool = False) -> None:
        """At the replica. A late event changes places with the next one, but is never lost."""
        if self._silent or not self._open:
            return
        if self._link.partitioned:
            self._held.append(event)
            return
        if late and self._overtaken is None and isinstance(event, tuple):
            self._overtaken = event
            return
        swapped = isinstance(event, tuple) and event[0] != "BOOKMARK"
        pair = (event, self._overtaken) if swapped else (self._overtaken, event)
        self._events.extend(e for e in pair if e is not None or e is event)
        self._overtaken = None
        self._arrived.set()

    def flush(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._put(event)

    def _bookmark(self) -> None:
        if not self._open or self._net.over:
            return
        mark = {"kind": self.resource.kind, "metadata": {"resourceVersion": str(self._net.server.version)}}
        self._deliver(("BOOKMARK", orjson.dumps(mark)))
        self._net.loop.call_later(BOOKMARKS, self._bookmark, context=OUTSIDE)

    def _end(self) -> None:
        """Behind all that was said before it, however late that arrives."""
        self._net.loop.call_at(max(self._last + 1e-6, self._net.loop.time()), self._put, None, context=OUTSIDE)

    def _happens(self, kind: str, chance: float) -> bool:
        if chance and self._net.draw.random() < chance:
            self._net.faults[kind] += 1
            self._link.say(f"watch {self.resource.plural}: {kind}")
            return True
        return False
