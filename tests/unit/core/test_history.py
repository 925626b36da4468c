"""Which finished Jobs are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.core.views import MINUTE, T, claim, failed, ledger, run, schedule, succeeded, view

from cronwright.core.decide import decide
from cronwright.core.history import surplus
from cronwright.core.model import Claim, Run


def good(minutes: int, **fields: Any) -> Run:
    return succeeded(claim(-MINUTE * minutes), **fields)


def bad(minutes: int, attempt: int = 1, **fields: Any) -> Run:
    return failed(claim(-MINUTE * minutes, attempt), **fields)


ROWS: dict[str, tuple[dict[str, int], list[Run], list[Claim], list[Run]]] = {
    "nothing over the limit": ({}, [good(1), good(2), good(3)], [], []),
    "the oldest goes": ({}, [good(1), good(2), good(3), good(4)], [], [good(4)]),
    "successes and failures apart": (
        {"successful": 1, "failed": 2},
        [good(1), good(2), bad(3), bad(4), bad(5)],
        [],
        [good(2), bad(5)],
    ),
    "none are kept": ({"successful": 0, "failed": 0}, [good(1), bad(2)], [], [good(1), bad(2)]),
    "by finish time, not by slot": (
        {"successful": 1},
        [good(9, after=9 * MINUTE), good(1, after=5)],
        [],
        [good(1, after=5)],
    ),
    "active ones are never pruned": ({"successful": 0, "failed": 0}, [run(claim(-60)), good(2)], [], [good(2)]),
    "each attempt is a Job": ({"failed": 1}, [bad(1, 1), bad(1, 2, after=9)], [], [bad(1, 1)]),
    "not what a retry needs": ({"failed": 0}, [bad(1, 1), bad(2)], [claim(-60, 1)], [bad(2)]),
    "not an earlier attempt of a run in flight": ({"failed": 0}, [bad(1, 1)], [claim(-60, 2)], []),
    "not what is leaving already": ({"successful": 0}, [good(1, deleting=True)], [], []),
    "not what is gone": ({"successful": 0}, [good(1, gone=True)], [], []),
    "not what never was": ({"failed": 0}, [bad(1, refused=True)], [], []),
    "past its time to live, inclusive": ({}, [good(1, ttl=55)], [], [good(1, ttl=55)]),
    "not yet past it": ({}, [good(1, ttl=56)], [], []),
    "past it, but needed": ({}, [bad(1, ttl=1)], [claim(-60)], []),
    "over both limits once": ({"successful": 0}, [good(1, ttl=1)], [], [good(1, ttl=1)]),
}


@pytest.mark.parametrize(("limits", "runs", "claims", "expected"), ROWS.values(), ids=ROWS)
def test_what_is_removed(limits: dict[str, int], runs: list[Run], claims: Sequence[Claim], expected: list[Run]) -> None:
    of = schedule(history=limits)
    found = surplus(view(of, runs=runs), claims)
    assert sorted(run.name for run in found) == sorted(run.name for run in expected)


def test_a_job_is_not_removed_before_the_ledger_holds_how_it_ended() -> None:
    of = schedule(history={"successful": 0}, suspend=True)
    decision = decide(view(of, known=ledger(of, claim(-60)), runs=[good(1)]))
    assert [stop.why for stop in decision.stops] == ["History"]
    assert (decision.write, decision.ledger.succeeded) == (True, 1), "written first, removed then"


def test_a_time_to_live_wakes_the_schedule() -> None:
    assert decide(view(schedule(suspend=True), runs=[good(1, ttl=100)])).wake == T - 55 + 100
