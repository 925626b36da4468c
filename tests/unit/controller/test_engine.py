"""When a schedule is looked at again after the API server said no."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.controller.scripted import ScriptedCluster

from cronwright.cluster.port import ClusterError, Conflict, Unavailable
from cronwright.controller.engine import FIRST_DELAY, FULL, LONGEST_DELAY, Engine
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

    def wake_by(self, key: Key, at: float) -> None:
        assert key == KEY
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


async def test_only_looks_that_asked_the_api_server_tell_how_quick_it_is() -> None:
    """Thousands of looks that find nothing to do made it seem to have nothing to do either."""
    engine = Engine(ScriptedCluster([]), lambda: NOW, lambda: 0.0, "test", Metrics(), lambda _: True)
    before = engine.concurrency
    for _ in range(10 * before):
        await engine._work(KEY)
    assert engine.concurrency == before


async def test_connections_are_opened_for_a_full_second_before_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ScriptedCluster([])
    engine = Engine(cluster, lambda: NOW, lambda: 0.0, "test", Metrics(), lambda _: True)

    async def second(_: float) -> None:
        if len(seconds) == 2:
            raise asyncio.CancelledError
        seconds.append(cluster.warmed_for)
        due = [NOW + 0.5] * 50 + [NOW + 1.5] * (FULL - 2 + len(seconds)) + [NOW + 2.5] * 50
        engine._ahead = {Key("ns", str(number)): ahead(at) for number, at in enumerate(due)}

    def ahead(due: float) -> Any:
        return SimpleNamespace(due=due)

    seconds: list[int] = []
    monkeypatch.setattr("cronwright.controller.engine.asyncio.sleep", second)
    with pytest.raises(asyncio.CancelledError):
        await engine._keep_warm()
    assert seconds == [0, 0], "few do not call for it"
    assert cluster.warmed_for == FULL
