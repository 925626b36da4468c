"""An edit that arrives with the answer to a write of ours: its event is no news any more, so the answer has to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from cronwright.cluster.port import Cluster
from cronwright.controller.engine import Engine
from cronwright.controller.metrics import Metrics
from cronwright.core.model import Key

KEY = Key("ns", "s")


def schedule(version: int, generation: int) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "ns",
            "name": "s",
            "uid": "u",
            "resourceVersion": str(version),
            "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"templateRef": {"name": "t"}, "schedule": {"interval": "1h"}},
    }


async def test_an_edit_that_came_with_an_answer_is_looked_at() -> None:
    engine = Engine(cast(Cluster, None), lambda: 0.0, lambda: 0.0, "test", Metrics(), lambda _: True)
    engine.store.observe_schedule(schedule(1, 1))
    before = replace(engine.store.schedules[KEY])
    engine.store.observe_schedule(schedule(2, 1))
    engine._notice_edit(before)
    assert engine.queue.depth == 0, "the echo of a status is no edit"
    engine.store.observe_schedule(schedule(3, 2))
    engine._notice_edit(before)
    assert engine.queue.depth == 1
    assert engine.store.observe_schedule(schedule(3, 2)) == set(), "the event itself is no news"
