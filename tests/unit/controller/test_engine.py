"""When a schedule is looked at again after the API server said no."""

from __future__ import annotations

import pytest
from tests.unit.controller.scripted import ScriptedCluster

from cronwright.cluster.port import ClusterError, Conflict, Unavailable
from cronwright.controller.engine import FIRST_DELAY, LONGEST_DELAY, Engine
from cronwright.controller.metrics import Metrics
from cronwright.controller.queueing import WorkQueue
from cronwright.core.model import Key

NOW = 1_000_000.0
KEY = Key("ns", "s")


class Wakes(WorkQueue):
    """Notes when a schedule is to be looked at again."""

    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.at = 0.0

    def wake(self, key: Key, at: float | None) -> None:
        assert key == KEY
        assert at is not None
        self.at = at


class Postponed:
    """A schedule whose looks all fail."""

    def __init__(self) -> None:
        self._engine = Engine(ScriptedCluster([]), lambda: NOW, lambda: 0.0, "test", Metrics(), lambda _: True)
        self._engine.queue = self._wakes = Wakes()

    def delay_after(self, error: ClusterError) -> float:
        self._engine._postpone(KEY, error)
        return self._wakes.at - NOW


async def test_a_look_that_failed_is_repeated_after_a_growing_delay_up_to_a_limit() -> None:
    schedule = Postponed()
    delays = [schedule.delay_after(Conflict("changed")) for _ in range(12)]
    assert delays[:3] == [FIRST_DELAY, FIRST_DELAY * 2, FIRST_DELAY * 4]
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST_DELAY


@pytest.mark.parametrize("seconds", [7.0, 300.0])
async def test_retry_after_is_obeyed(seconds: float) -> None:
    schedule = Postponed()
    assert schedule.delay_after(Unavailable("429: too many requests", seconds)) == seconds


async def test_retry_after_does_not_shorten_the_delay() -> None:
    schedule = Postponed()
    for _ in range(5):
        longest = schedule.delay_after(Unavailable("500"))
    assert schedule.delay_after(Unavailable("429: too many requests", 1.0)) == longest * 2
