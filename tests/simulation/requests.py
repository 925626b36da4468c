"""People who ask: run now, backfill, cancel, resume, and nonsense, by annotations; some twice by the same id."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import orjson
from tests.simulation.apiserver import ApiServer
from tests.simulation.checks import PERSON

from cronwright.cluster.port import SCHEDULES, Json
from cronwright.core.model import REQUEST_PREFIX
from cronwright.timing import format_instant

MOST = 40
"""Requests of a history: fewer than a ledger remembers, so that each can be asked for at the end."""


async def ask_for_things(
    server: ApiServer,
    now: Callable[[], float],
    draw: random.Random,
    every: float,
    faults: Counter[str],
    say: Callable[[str, str], None] | None,
) -> None:
    asked: list[tuple[str, str]] = []
    for number in range(MOST):
        await asyncio.sleep(draw.expovariate(1 / every))
        schedules = list(server.peek(SCHEDULES))
        if not schedules:
            continue
        meta = draw.choice(schedules)["metadata"]
        name = f"request-{number}"
        again = [known for uid, known in asked if uid == meta["uid"]]
        if again and draw.random() < 0.15:
            name = draw.choice(again)
        asked.append((meta["uid"], name))
        text = _request(draw, now())
        faults["request"] += 1
        if say is not None:
            say(PERSON, f"*** {name} to {meta['name']}: {text}")
        patch = {"metadata": {"annotations": {REQUEST_PREFIX + name: text}}}
        server.patch(SCHEDULES, meta["namespace"], meta["name"], patch, by=PERSON)


def _request(draw: random.Random, now: float) -> str:
    kind = draw.choice(("RunNow", "RunNow", "RunNow", "Backfill", "Cancel", "Resume", "nonsense"))
    if kind == "nonsense":
        return draw.choice(("{", '{"kind": "Dance"}', '{"kind": "Backfill"}', '{"parameters": {"a": 1}}'))
    body: Json = {"kind": kind}
    if kind == "Backfill":
        begin = int(now - draw.uniform(0, 120))
        body |= {"from": format_instant(begin), "to": format_instant(begin + draw.randint(0, 90))}
    if kind in ("RunNow", "Backfill") and draw.random() < 0.3:
        body["concurrencyPolicy"] = draw.choice(("Allow", "Forbid", "Replace", "Queue"))
    return orjson.dumps(body).decode()
