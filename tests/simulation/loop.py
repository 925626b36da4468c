"""An event loop without a clock or a socket: time is a number, and one seeded draw decides who runs next.

asyncio runs ready callbacks in the order they came. Here every ready callback of every replica lies in one bag, and the
seed draws from it, so any interleaving that awaits allow can happen, and happens again with the same seed. Time stands
still while anything is ready and then jumps to the next timer.

Each callback belongs to a process (`Process`, carried by the context that tasks inherit). A paused process's callbacks
are put aside until it goes on, while time and the others do not wait; a dead one's are put aside for good, in the
middle of whatever it was doing. No `finally` of a dead process runs during the history: that is what a crash is.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections.abc import Coroutine, Generator
from typing import Any

STEPS_AT_ONCE = 20_000
"""More callbacks than this at one instant is a loop that never waits."""


class HotLoop(Exception):
    """Time cannot go on: something makes itself ready again and again."""


class Process:
    """Something whose callbacks can be stopped from outside: one life of a replica."""

    def __init__(self, name: str, born: float) -> None:
        self.name = name
        self.born = born
        self.dead = False
        self.paused = False
        self.put_aside: list[asyncio.Handle] = []

    def context(self) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(RUNNING.set, self)
        return context


RUNNING: contextvars.ContextVar[Process | None] = contextvars.ContextVar("RUNNING", default=None)


class CountedTask(asyncio.Task[Any]):
    """A task whose hash is its number: asyncio keeps tasks in sets, and walks them in the order of their hashes."""

    def __init__(self, *args: Any, number: int, **kwargs: Any) -> None:
        self._number = number
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._random = self.jitter = draw.random
        self._instant = 0.0
        self._ready: list[asyncio.Handle] = []
        self._scheduled: list[asyncio.TimerHandle] = []
        self._tasks: list[CountedTask] = []
        self._processes: list[Process] = []
        self._stopping = False
        self.steps = 0
        self._began = 0
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._instant

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **kwargs: Any,
    ) -> CountedTask:
        task = CountedTask(coro, loop=loop, number=len(self._tasks), **kwargs)
        self._tasks.append(task)
        return task

    def process(self, name: str) -> Process:
        self._processes.append(Process(name, self._instant))
        return self._processes[-1]

    def resume(self, process: Process) -> None:
        process.paused = False
        self._ready += process.put_aside
        process.put_aside = []

    def _run_once(self) -> None:
        """One callback, drawn from those that are ready; asyncio's own `run_forever` calls this again and again."""
        scheduled, ready = self._scheduled, self._ready
        if not ready:
            while scheduled and scheduled[0]._cancelled:
                heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
            if not scheduled:
                raise RuntimeError("nothing is ready and nothing will ever be: a deadlock")
            self._instant = max(self._instant, scheduled[0].when())
            self._began = self.steps
        while scheduled and scheduled[0].when() <= self._instant:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        index = int(self._random() * len(ready))
        ready[index], ready[-1] = ready[-1], ready[index]
        handle = ready.pop()
        if handle._cancelled:
            return
        process = handle._context.get(RUNNING)  # type: ignore[attr-defined]
        if process is not None and (process.dead or process.paused):
            process.put_aside.append(handle)
            return
        self.steps += 1
        if self.steps - self._began > STEPS_AT_ONCE:
            ready.append(handle)
            raise HotLoop(f"{STEPS_AT_ONCE} callbacks at one instant; the next would be {handle!r}")
        handle._run()

    def bury(self) -> None:
        """Let every task that is left end, so that nothing outlives the history."""
        for process in self._processes:
            process.dead = False
            self.resume(process)
        self._began = self.steps
        while left := [task for task in self._tasks if not task.done()]:  # an end may begin something, as a goodbye
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._tasks.clear()

    def _process_events(self, event_list: Any) -> None:
        """There are none: nothing here waits for the outside."""

    def _write_to_self(self) -> None:
        """There is no selector to be woken."""
