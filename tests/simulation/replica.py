"""One replica: the real `Operator`, fed as kopf would feed it, with a clock of its own and a life that can end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Link, Net

from cronwright.cluster.port import SCHEDULES, TEMPLATES, ClusterError, Expired, Json, Resource
from cronwright.controller.operator import Clocks, Operator


@dataclass(slots=True)
class Replica:
    net: Net
    loop: VirtualLoop
    number: int
    truth: Callable[[], float]
    """The wall clock that the API server has."""
    shards: int
    died: Callable[[str], None]
    skew: float = 0.0
    life: int = 0
    stopping: bool = False
    process: Process | None = None
    link: Link | None = None
    operator: Operator | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return self.process is not None and not self.process.dead

    def now(self) -> float:
        return self.truth() + self.skew

    def boot(self) -> None:
        self.life += 1
        self.stopping = False
        name = f"replica-{self.number}.{self.life}"
        self.process = self.loop.process(name)
        self.link = Link(self.net, name)
        context = self.process.context()
        self.operator = context.run(self._construct, name)
        work = (
            self._live(self.operator),
            feed(self.link, SCHEDULES, self.operator.observe_schedule),
            feed(self.link, TEMPLATES, self.operator.observe_template),
        )
        self.tasks = [self.loop.create_task(coro, context=self.process.context()) for coro in work]
        for task in self.tasks:
            task.add_done_callback(self._ended)

    def _construct(self, name: str) -> Operator:
        assert self.link is not None
        clocks = Clocks(self.now, self.loop.time)
        return Operator(self.link, identity=name, shards=self.shards, clocks=clocks, jitter=self.loop.jitter)

    @staticmethod
    async def _live(operator: Operator) -> None:
        await operator.sync()
        await operator.run()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if self.net.over or task.cancelled():
            return
        self.died(f"{self.process.name if self.process else self.number}: a task ended: {task.exception()!r}")

    def crash(self) -> None:
        """SIGKILL: nothing of it runs any more, in the middle of whatever it was doing."""
        assert self.process is not None
        assert self.link is not None
        self.process.dead = True
        self.process.put_aside += ()
        self.link.close()
        self.operator = None

    async def stop(self) -> None:
        """SIGTERM: it may finish its clean-up, then it is gone."""
        self.stopping = True
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks, timeout=30)
        if self.alive:
            self.crash()


async def feed(link: Link, resource: Resource, observe: Callable[..., None]) -> None:
    """kopf: list, watch, list again after a 410 — and then no word of what has vanished meanwhile."""
    version = ""
    while True:
        try:
            if not version:
                listing = await link.list(resource)
                for obj in listing.items:
                    observe(obj)
                version = listing.version
            async for kind, obj in link.watch(resource, version=version):
                version = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    _tell(observe, obj, kind)
        except Expired:
            version = ""
        except ClusterError:
            await asyncio.sleep(1.0)


def _tell(observe: Callable[..., None], obj: Json, kind: str) -> None:
    observe(obj, deleted=kind == "DELETED")
