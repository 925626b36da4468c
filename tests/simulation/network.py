"""The way from a replica to the API server and back: where requests get lost, late or refused, and watches lie.

`Link` is one replica's port to the cluster. A call travels to the server, happens there at one instant, and its answer
travels back; the seed draws what goes wrong on either way. The replica may be paused or dead by the time the answer
comes: the write has happened all the same.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from tests.simulation.apiserver import ApiServer, Change
from tests.simulation.controllers import OUTSIDE
from tests.simulation.streams import WATCH_SECONDS, Stream

from cronwright.cluster.port import (
    Cluster,
    ClusterError,
    Conflict,
    Expired,
    Json,
    Listing,
    Refused,
    Resource,
    Unavailable,
)

CALL_TIMEOUT = 10.0
PAGE = 4
"""Objects a page: few, so that there is something between two of them."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How often things go wrong on the way, each per call or per event of a watch."""

    lost_request: float = 0.0
    lost_response: float = 0.0
    hanging: float = 0.0
    slow: float = 0.0
    slowness: float = 4.0
    """Less than the client's patience: docs/simulation.md tells why a request may not land after it was given up."""
    conflict: float = 0.0
    throttled: float = 0.0
    broken: float = 0.0
    quota: float = 0.0
    watch_dropped: float = 0.0
    watch_silent: float = 0.0
    watch_expired: float = 0.0
    duplicated: float = 0.0
    reordered: float = 0.0
    lag: float = 0.05


CALM = Weather()


@dataclass(slots=True)
class Net:
    """What all links of a history share."""

    server: ApiServer
    loop: asyncio.AbstractEventLoop
    draw: random.Random
    faults: Counter[str]
    trace: Callable[[str, str], None] | None
    weather: Weather = CALM
    over: bool = False


class Link(Cluster):
    def __init__(self, net: Net, name: str) -> None:
        self.net = net
        self.name = name
        self.partitioned = False
        self.closed = False
        self.calls: Counter[str] = Counter()
        self.streams: list[Stream] = []
        net.server.listeners.append(self._hear)

    def close(self) -> None:
        """The process is gone, and its connections with it."""
        self.closed = True
        self.net.server.listeners.remove(self._hear)
        self.streams.clear()

    def heal(self) -> None:
        """What was under way on connections that survived the partition arrives now."""
        self.partitioned = False
        for stream in list(self.streams):
            stream.flush()

    def _hear(self, change: Change) -> None:
        for stream in list(self.streams):
            if stream.resource is change.resource:
                stream.send(change.type, change.obj, change.data)

    def pages(self, resource: Resource, *, namespace: str | None = None, selector: str = "", fields: str = "") -> Pages:
        if fields:  # only Events are asked for by fields, and nobody here writes any about Jobs
            return Pages(self, resource, lambda: Listing([], "0"))
        return Pages(self, resource, lambda: self.net.server.list(resource, namespace, selector))

    async def warm(self, calls: int) -> None:
        """There are no connections."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        serve = lambda: self.net.server.get(resource, namespace, name)  # noqa: E731
        return await self._object("get", resource, name, serve)

    async def create(self, resource: Resource, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        server = self.net.server
        serve = lambda: server.create(resource, namespace, orjson.loads(data), by=self.name, dry_run=dry_run)  # noqa: E731
        name = orjson.loads(data)["metadata"].get("name", "")
        return await self._object("dry-run" if dry_run else "create", resource, name, serve)

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        data = orjson.dumps(body)
        serve = lambda: self.net.server.replace(resource, namespace, name, orjson.loads(data), by=self.name)  # noqa: E731
        return await self._object("replace", resource, name, serve)

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        data = orjson.dumps(patch)
        server = self.net.server
        serve = lambda: server.patch(resource, namespace, name, orjson.loads(data), by=self.name, sub=sub)  # noqa: E731
        return await self._object("patch", resource, name, serve)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, foreground: bool = False
    ) -> None:
        server = self.net.server
        serve = lambda: server.delete(resource, namespace, name, by=self.name, uid=uid, foreground=foreground)  # noqa: E731
        await self.call("delete", resource, name, serve)

    def watch(self, resource: Resource, *, version: str, selector: str = "", seconds: int | None = None) -> Stream:
        return Stream(self.net, self, resource, version, selector, seconds or WATCH_SECONDS)

    async def _object(self, verb: str, resource: Resource, name: str, serve: Callable[[], Json]) -> Json:
        answer: Json = await self.call(verb, resource, name, serve)
        return answer

    async def call(self, verb: str, resource: Resource, name: str, serve: Callable[[], Any]) -> Any:
        net = self.net
        if net.over:
            raise Unavailable("the history is over")
        self.calls[verb] += 1
        answer: asyncio.Future[Any] = net.loop.create_future()
        what = f"{verb} {resource.plural} {name}".rstrip()
        _Exchange(net, self, verb, resource, what, serve, answer).send()
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return await answer
        except TimeoutError:
            self.say(f"{what}: gave up waiting")
            raise Unavailable(f"{what}: timed out") from None

    def say(self, text: str) -> None:
        if self.net.trace is not None:
            self.net.trace(self.name, text)


class Pages:
    """One listing, a page at a time, all of the moment of the first. Not an async generator, as `Stream` is none."""

    def __init__(self, link: Link, resource: Resource, snapshot: Callable[[], Listing]) -> None:
        self._link = link
        self._resource = resource
        self._snapshot = snapshot
        self._taken: Listing | None = None
        self._given = 0

    def __aiter__(self) -> Pages:
        return self

    async def __anext__(self) -> Listing:
        if self._taken is not None and self._given >= len(self._taken.items):
            raise StopAsyncIteration
        page: Listing = await self._link.call("list", self._resource, "", self._serve)
        self._given += PAGE
        return page

    def _serve(self) -> Listing:
        """At the server. It keeps the moment of the first page for some minutes only."""
        net = self._link.net
        if self._given and net.weather.watch_expired and net.draw.random() < net.weather.watch_expired:
            net.faults["410 between pages"] += 1
            raise Expired("the provided continue parameter is too old")
        if self._taken is None:
            self._taken = self._snapshot()
        return Listing(self._taken.items[self._given : self._given + PAGE], self._taken.version)


@dataclass(slots=True)
class _Exchange:
    """One request and its answer."""

    net: Net
    link: Link
    verb: str
    resource: Resource
    what: str
    serve: Callable[[], Any]
    answer: asyncio.Future[Any]

    def send(self) -> None:
        weather = self.net.weather
        if self._happens("hanging", weather.hanging):
            return
        if self._happens("lost request", weather.lost_request):
            self._back(None, Unavailable("connection reset before the request was sent"))
            return
        self._after(self._way("late request"), self._arrive)

    def _arrive(self) -> None:
        if self.net.over or self.link.partitioned:
            return
        refusal = self._refusal()
        if refusal is not None:
            self._back(None, refusal)
            return
        try:
            result = self.serve()
        except ClusterError as error:
            self.link.say(f"{self.what}: {type(error).__name__}")
            self._back(None, error)
            return
        self.link.say(f"{self.what}: ok{_version(result)}")
        if self._happens("lost response", self.net.weather.lost_response):
            self._back(None, Unavailable("connection reset while waiting for the answer"))
            return
        self._back(result, None)

    def _refusal(self) -> ClusterError | None:
        weather = self.net.weather
        if self._happens("429", weather.throttled):
            return Unavailable("429: too many requests", float(self.net.draw.randint(1, 5)))
        if self._happens("5xx", weather.broken):
            return Unavailable("503: etcdserver: leader changed")
        if self.verb in ("replace", "patch") and self._happens("conflict", weather.conflict):
            return Conflict("the object has been modified")
        if self.what.startswith("create jobs") and self._happens("quota", weather.quota):
            return Refused("jobs is forbidden: exceeded quota: compute", 403)
        return None

    def _back(self, result: Any, error: ClusterError | None) -> None:
        self._after(self._way("late response"), self._deliver, result, error)

    def _deliver(self, result: Any, error: ClusterError | None) -> None:
        if self.link.partitioned or self.answer.done():
            return
        if error is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(result)

    def _way(self, kind: str) -> float:
        draw, weather = self.net.draw, self.net.weather
        if self._happens(kind, weather.slow):
            return draw.uniform(0.2, weather.slowness)
        return draw.uniform(0.001, 0.01)

    def _happens(self, kind: str, chance: float) -> bool:
        if chance and self.net.draw.random() < chance:
            self.net.faults[kind] += 1
            self.link.say(f"{self.what}: {kind}")
            return True
        return False

    def _after(self, delay: float, act: Callable[..., None], *args: object) -> None:
        self.net.loop.call_later(delay, act, *args, context=OUTSIDE)


def _version(result: Any) -> str:
    if isinstance(result, Listing):
        return f" ({len(result.items)} at {result.version})"
    if isinstance(result, dict):
        return f" (at {result['metadata'].get('resourceVersion')})"
    return ""
