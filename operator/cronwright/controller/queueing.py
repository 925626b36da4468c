"""Which schedule is looked at next, and when: keys that are due now in two lanes, and a heap of those due later.

What time brings goes before what events bring, because a slot cannot wait and a status can, for a while: as long as the
former keeps us busy none of the latter are worked on, and for a moment after only a few. A status write costs the API
server more than a Job does, and some beside them would hold up the Jobs of that second and the watches that tell of
them. But a status is also a witness of what was run, so under a load that does not end it waits no longer than
`LONGEST_HOLD`.

Inside a lane namespaces take turns, so that one tenant's thousand runs do not delay another's single one. A key is
never handed to two workers at once; if it is added while a worker has it, it comes again afterwards. Only the earliest
wake-up of a key counts, so a schedule costs one heap entry however often it is looked at.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from cronwright.core.model import Key

FEW = 2
"""How many keys that events brought are worked on at once when those that time brought have just been served: a single
run is told of at once."""

CALM = 0.5
"""Seconds without a key that time brought after which the others need not be held back any more."""

LONGEST_HOLD = 2.0
"""Seconds after which they are not held back any longer, calm or not."""

LONGEST_SLEEP = 1.0
"""Seconds after which the wall clock is read again: a clock that jumps is noticed, and no sleep drifts past a slot."""


class _Lane:
    """First come, first served inside a namespace; namespaces in turn."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, dict[Key, None]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self._turns.get(key.namespace, ())

    def put(self, key: Key) -> None:
        self._turns.setdefault(key.namespace, {})[key] = None

    def remove(self, key: Key) -> None:
        keys = self._turns[key.namespace]
        del keys[key]
        if not keys:
            del self._turns[key.namespace]

    def take(self) -> Key:
        namespace, keys = self._turns.popitem(last=False)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._turns[namespace] = keys
        return key


class WorkQueue:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._due = _Lane()
        self._touched = _Lane()
        self._busy: set[Key] = set()
        self._urgent: set[Key] = set()
        """Those of the busy ones that time brought."""
        self._calm_from = float("-inf")
        self._held_since: float | None = None
        self._reconsidering = False
        self._again: dict[Key, _Lane] = {}
        """Where those of the busy ones go next that came up meanwhile."""
        self._wakes: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._takers: deque[asyncio.Future[None]] = deque()
        self._sooner = asyncio.Event()

    def add(self, keys: Iterable[Key]) -> None:
        """Look at these as soon as a worker is free."""
        for key in sorted(keys):  # sets come in; the order must not depend on the process's hash seed
            self._add(key, self._touched)

    def _add(self, key: Key, lane: _Lane) -> None:
        if key in self._busy:
            if lane is self._due or key not in self._again:
                self._again[key] = lane
            return
        if key in self._due or (key in self._touched and lane is self._touched):
            return
        if key in self._touched:
            self._touched.remove(key)  # it can wait no longer
        lane.put(key)
        self._call_a_taker()

    def wake(self, key: Key, at: float | None) -> None:
        """Look at this one at that time, instead of at the time set before."""
        if at is None:
            self._wakes.pop(key, None)
            return
        if self._wakes.get(key) == at:
            return
        self._wakes[key] = at
        heapq.heappush(self._heap, (at, key))
        if self._heap[0][1] == key:
            self._sooner.set()

    def wake_by(self, key: Key, at: float) -> None:
        """Look at this one at that time, unless it is woken earlier anyway."""
        if self._wakes.get(key, at) >= at:
            self.wake(key, at)

    async def take(self) -> Key:
        while not (self._due or self._may_touch()):
            self._reconsider_later()
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            await taker
        if self._due:
            key = self._due.take()
            self._urgent.add(key)
        else:
            key = self._touched.take()
        self._busy.add(key)
        return key

    def _may_touch(self) -> bool:
        now = asyncio.get_running_loop().time()
        if not self._touched or (not self._urgent and now >= self._calm_from):
            self._held_since = None
            return bool(self._touched)
        if not self._urgent and len(self._busy) < FEW:
            return True
        if self._held_since is None:
            self._held_since = now
        return now >= self._held_since + LONGEST_HOLD

    def _reconsider_later(self) -> None:
        """What is held back is not called by an event when its time has come."""
        if self._touched and not self._reconsidering:
            self._reconsidering = True
            asyncio.get_running_loop().call_later(CALM / 2, self._reconsider)

    def _reconsider(self) -> None:
        self._reconsidering = False
        if self._may_touch():
            self._call_a_taker()
        else:
            self._reconsider_later()

    def _call_a_taker(self) -> None:
        """Wake one worker for one key: waking all of them for each would cost more than the work."""
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def done(self, key: Key) -> None:
        self._busy.discard(key)
        if key in self._urgent:
            self._urgent.discard(key)
            self._calm_from = asyncio.get_running_loop().time() + CALM
        if (lane := self._again.pop(key, None)) is not None:
            self._add(key, lane)
        if self._may_touch():
            self._call_a_taker()

    async def keep_time(self) -> None:
        """Move keys whose time has come from the heap to the queue, for ever."""
        before = self._now()
        while True:
            now = self._now()
            if now < before - LONGEST_SLEEP:  # the clock jumped back: what was to come soon must not wait for it
                self.add(self._wakes)
            before = now
            while self._heap and self._heap[0][0] <= now:
                at, key = heapq.heappop(self._heap)
                if self._wakes.get(key) == at:
                    del self._wakes[key]
                    self._add(key, self._due)
            self._sooner.clear()
            pause = min(LONGEST_SLEEP, self._heap[0][0] - now) if self._heap else LONGEST_SLEEP
            try:
                async with asyncio.timeout(pause):
                    await self._sooner.wait()
            except TimeoutError:
                pass

    @property
    def depth(self) -> int:
        return len(self._due) + len(self._touched)
