"""How long it is until the API server is asked again: at once where that can help, and never without end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.simulation.loop import VirtualLoop
from tests.unit.controller.scripted import ScriptedCluster, Step

from cronwright.cluster.port import JOBS, Expired, Json, Listing, NotFound, Resource, Unavailable
from cronwright.controller.operator import AUDIT_DELAY, Clocks, Operator
from cronwright.controller.watching import FIRST_DELAY, LONGEST_DELAY, Watch

BOOKMARK: Step = ("BOOKMARK", {"metadata": {"resourceVersion": "30"}})
GONE = Expired("too old")


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(random.Random(1))
    yield made
    made.bury()
    made.close()


def nothing(*_: Any, **__: Any) -> None:
    """An observer, or a reconciler, that does not care."""


async def pauses(*watches: Sequence[Step]) -> list[float]:
    """The seconds between the end of each of these watches and the next one."""
    cluster = ScriptedCluster([Listing([], "5")] * (len(watches) + 1), watches)
    watch = Watch(cluster, JOBS, "", nothing, nothing)
    await watch.sync()
    following = asyncio.create_task(watch.follow())
    await cluster.finished.wait()
    following.cancel()
    lives = [sum(step for step in watch if isinstance(step, float)) for watch in watches]
    steps = [after - before for before, after in pairwise(cluster.asked_at)]
    return [round(step - life, 6) for step, life in zip(steps, lives, strict=True)]


ONCE: dict[str, list[Step]] = {
    "a normal end": [290.0],
    "a place that was lost": [GONE],
    "a place that was lost after a while": [BOOKMARK, 60.0, GONE],
}


@pytest.mark.parametrize("watch", ONCE.values(), ids=ONCE)
def test_what_happens_now_and_then_is_followed_at_once(loop: VirtualLoop, watch: list[Step]) -> None:
    assert loop.run_until_complete(pauses(watch)) == [0.0]


def test_places_that_are_lost_now_and_then_are_followed_at_once(loop: VirtualLoop) -> None:
    found = loop.run_until_complete(pauses([GONE], [BOOKMARK, GONE], [BOOKMARK, 290.0], [60.0, GONE]))
    assert found == [0.0, 0.0, 0.0, 0.0]


def test_a_place_that_is_lost_each_time_is_sought_less_and_less_often(loop: VirtualLoop) -> None:
    found = loop.run_until_complete(pauses(*[[GONE]] * 9))
    assert found == [0.0, *(FIRST_DELAY * 2**n for n in range(6)), LONGEST_DELAY, LONGEST_DELAY]


def test_a_place_that_is_lost_after_a_silence_each_time_is_too(loop: VirtualLoop) -> None:
    silent: Sequence[Step] = [5.0, GONE]
    assert loop.run_until_complete(pauses(silent, silent, silent)) == [0.0, FIRST_DELAY, FIRST_DELAY * 2]


def test_a_watch_that_ends_as_soon_as_it_is_open_is_opened_less_and_less_often(loop: VirtualLoop) -> None:
    found = loop.run_until_complete(pauses(*[[0.1]] * 8))
    assert found == [*(FIRST_DELAY * 2**n for n in range(6)), LONGEST_DELAY, LONGEST_DELAY]


def test_whatever_is_heard_makes_the_delay_short_again(loop: VirtualLoop) -> None:
    found = loop.run_until_complete(pauses([], [], [], [BOOKMARK], [], [GONE], [BOOKMARK, 9.0], [], []))
    assert found == [0.2, 0.4, 0.8, 0.2, 0.4, 0, 0, 0.2, 0.4]


def test_a_watch_comes_again_when_the_api_server_said(loop: VirtualLoop) -> None:
    refused: list[list[Step]] = [[Unavailable("429", 30.0)], [Unavailable("429", 0.1)], [Unavailable("500")]]
    assert loop.run_until_complete(pauses(*refused)) == [30.0, FIRST_DELAY * 2, FIRST_DELAY * 4]


class _Busy(ScriptedCluster):
    """Refuses the first call with a Retry-After of 30 s, and notes when it was asked."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__([])
        self._now = now
        self.calls: list[float] = []

    def _called(self) -> None:
        self.calls.append(self._now())
        if len(self.calls) == 1:
            raise Unavailable("429: too many requests", 30.0)

    async def pages(self, resource: Resource, **_: Any) -> AsyncIterator[Listing]:
        self._called()
        yield Listing([], "5")

    async def create(self, *_: Any, **__: Any) -> Json:
        self._called()
        return {}

    async def patch(self, *_: Any, **__: Any) -> Any:
        raise NotFound("gone")


def operator_of(cluster: _Busy, loop: VirtualLoop) -> Operator:
    return Operator(cluster, identity="test", clocks=Clocks(loop.time, loop.time))


async def for_a_minute(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    await asyncio.wait([task], timeout=60)
    task.cancel()


def test_the_first_picture_is_asked_for_again_when_the_api_server_said(loop: VirtualLoop) -> None:
    cluster = _Busy(loop.time)
    loop.run_until_complete(for_a_minute(operator_of(cluster, loop).sync()))
    assert cluster.calls[:2] == [0.0, 30.0]


def test_an_audit_is_repeated_when_the_api_server_said(loop: VirtualLoop) -> None:
    cluster = _Busy(loop.time)
    operator = operator_of(cluster, loop)
    operator.audit_soon()
    loop.call_at(50.0, operator.audit_soon)
    loop.run_until_complete(for_a_minute(operator._audit_for_ever()))
    assert cluster.calls == [AUDIT_DELAY, *[AUDIT_DELAY + 30.0] * 2, *[AUDIT_DELAY + 50.0] * 2]


def test_a_template_is_tried_again_when_the_api_server_said(loop: VirtualLoop) -> None:
    cluster = _Busy(loop.time)
    operator = operator_of(cluster, loop)
    operator.engine.templates._leads = lambda _: True
    meta = {"namespace": "ns", "name": "t", "uid": "u", "resourceVersion": "3", "generation": 1}
    operator.observe_template({"metadata": meta, "spec": {"shell": {"script": "true"}}})
    loop.run_until_complete(for_a_minute(operator.engine.templates.run()))
    assert cluster.calls[:2] == [0.0, 30.0]
