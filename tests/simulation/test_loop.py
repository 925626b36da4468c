"""The virtual loop keeps asyncio's promises, and breaks only those that a crash or a pause breaks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from tests.simulation.loop import HotLoop, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(random.Random(1))
    yield made
    made.bury()
    made.close()


def test_time_passes_only_while_everybody_waits(loop: VirtualLoop) -> None:
    async def wait() -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert loop.run_until_complete(wait()) == 3600


def test_timeouts_work(loop: VirtualLoop) -> None:
    async def wait() -> None:
        async with asyncio.timeout(5):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        loop.run_until_complete(wait())
    assert loop.time() == 5


def test_the_seed_draws_the_order() -> None:
    def order(seed: int) -> list[int]:
        told: list[int] = []

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(6):
                    group.create_task(tell(number))

        async def tell(number: int) -> None:
            told.append(number)

        made = VirtualLoop(random.Random(seed))
        made.run_until_complete(main())
        made.close()
        return told

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(20)}) > 10


def test_a_paused_process_stands_still_while_time_goes_on(loop: VirtualLoop) -> None:
    told: list[float] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            told.append(loop.time())

    async def main() -> None:
        process = loop.process("p")
        loop.create_task(tick(), context=process.context())
        await asyncio.sleep(2.5)
        process.paused = True
        await asyncio.sleep(10)
        loop.resume(process)
        await asyncio.sleep(1.6)

    loop.run_until_complete(main())
    assert told == [1, 2, 12.5, 13.5]


def test_a_dead_process_does_not_even_clean_up(loop: VirtualLoop) -> None:
    told: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            told.append("cleaned up")

    async def main() -> list[str]:
        process = loop.process("p")
        loop.create_task(work(), context=process.context())
        await asyncio.sleep(1)
        process.dead = True
        await asyncio.sleep(100)
        return list(told)

    assert loop.run_until_complete(main()) == []


def test_a_loop_that_never_waits_is_found(loop: VirtualLoop) -> None:
    async def turn() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    work: Coroutine[Any, Any, None] = turn()
    with pytest.raises(HotLoop):
        loop.run_until_complete(work)
