"""What is looked at first: slots before what events bring, namespaces in turn, each key by one worker at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from cronwright.controller import queueing
from cronwright.controller.queueing import FEW, WorkQueue
from cronwright.core.model import Key

NOW = 1000.0


def keys(namespace: str, count: int) -> list[Key]:
    return [Key(namespace, f"s{number}") for number in range(count)]


def due(queue: WorkQueue, which: Iterable[Key]) -> None:
    """As `keep_time` does when their time has come."""
    for key in which:
        queue._add(key, queue._due)


async def taken(queue: WorkQueue) -> list[Key]:
    """All that may be worked on at once now."""
    found: list[Key] = []
    while True:
        taking = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        if not taking.done():
            taking.cancel()
            return found
        found.append(taking.result())


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue(lambda: NOW)


async def test_without_slots_all_that_was_touched_is_worked_on(queue: WorkQueue) -> None:
    queue.add(keys("a", 10))
    assert await taken(queue) == keys("a", 10)


async def test_namespaces_take_turns(queue: WorkQueue) -> None:
    due(queue, [*keys("a", 3), *keys("b", 1)])
    assert [key.namespace for key in await taken(queue)] == ["a", "b", "a", "a"]


async def test_slots_come_first_and_nothing_beside_them(queue: WorkQueue) -> None:
    queue.add(keys("touched", 10))
    due(queue, keys("due", 5))
    assert await taken(queue) == keys("due", 5)
    queue.done(keys("due", 5)[0])
    assert await taken(queue) == []


async def test_the_others_are_held_back_until_a_moment_after_the_last_slot_but_for_a_few(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "CALM", 3600.0)
    due(queue, keys("due", 2))
    slots = await taken(queue)
    queue.add(keys("touched", 10))
    assert await taken(queue) == []
    for key in slots:
        queue.done(key)
    assert await taken(queue) == keys("touched", FEW)
    queue._calm_from = float("-inf")
    assert len(await taken(queue)) == 10 - FEW


async def test_under_a_load_that_does_not_end_they_are_not_held_back_for_ever(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "CALM", 0.01)
    monkeypatch.setattr(queueing, "LONGEST_HOLD", 0.02)
    due(queue, keys("due", 1))
    assert await taken(queue) == keys("due", 1)
    queue.add(keys("touched", 10))
    assert await taken(queue) == []
    async with asyncio.timeout(30):
        await queue.take()
    assert len(await taken(queue)) == 10 - 1


async def test_whoever_waits_for_calm_is_called_when_it_comes(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "CALM", 0.01)
    due(queue, keys("due", 1))
    [slot] = await taken(queue)
    touched = keys("touched", FEW + 1)
    queue.add(touched)
    queue.done(slot)
    assert await taken(queue) == touched[:FEW]
    async with asyncio.timeout(30):
        assert await queue.take() == touched[-1]


async def test_a_key_that_is_touched_while_it_is_worked_on_comes_again_afterwards(queue: WorkQueue) -> None:
    [key] = keys("a", 1)
    queue.add([key])
    assert await taken(queue) == [key]
    queue.add([key])
    assert await taken(queue) == []
    queue.done(key)
    assert await taken(queue) == [key]


async def test_a_slot_does_not_wait_in_the_place_of_what_an_event_brought(queue: WorkQueue) -> None:
    touched = keys("touched", 2)
    due(queue, keys("due", 1))
    queue.add(touched)
    assert await taken(queue) == keys("due", 1)
    due(queue, touched[-1:])
    queue.add(touched[-1:])
    assert await taken(queue) == touched[-1:]
    assert queue.depth == 1


async def test_a_slot_of_a_key_that_is_worked_on_comes_before_what_events_brought(queue: WorkQueue) -> None:
    [key] = keys("a", 1)
    queue.add([key])
    assert await taken(queue) == [key]
    due(queue, [key, *keys("due", 1)])
    queue.add([key, *keys("touched", 5)])
    queue.done(key)
    assert (await taken(queue))[:2] == [*keys("due", 1), key]
