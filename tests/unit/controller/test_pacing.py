"""How many schedules are worked on at once, by what the API server's answers say."""

from __future__ import annotations

import pytest

from cronwright.controller.pacing import FEWEST, FIRST, MOST, QUICK, SLOW, Pace


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def pace(clock: list[float]) -> Pace:
    return Pace(lambda: clock[0])


def test_a_round_of_quick_answers_allows_one_more_at_once_up_to_a_limit(pace: Pace) -> None:
    for _ in range(FIRST + 1):
        pace.answered(QUICK / 10)
    assert pace.limit == FIRST + 1
    for _ in range(MOST * MOST):
        pace.answered(QUICK / 10)
    assert pace.limit == MOST


def test_an_api_server_that_has_enough_to_do_gets_no_more(pace: Pace) -> None:
    for _ in range(1000):
        pace.answered(QUICK * 2)
    assert pace.limit == FIRST


def test_a_slow_answer_or_a_refusal_halves_it_once_for_all_that_was_under_way(pace: Pace, clock: list[float]) -> None:
    for _ in range(FIRST):
        pace.answered(SLOW * 2)
    assert pace.limit == FIRST // 2
    clock[0] += 1
    pace.refused()
    assert pace.limit == FIRST // 4
    for _ in range(10):
        clock[0] += 1
        pace.refused()
    assert pace.limit == FEWEST
