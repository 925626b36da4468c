"""What was measured once stays until it is measured again, and a target is judged by its median."""

from __future__ import annotations

from typing import Any

import pytest
from hack.bench.lab.figures import Spread
from hack.bench.lab.reporting import target_rows
from hack.bench.lab.results import Target, merged

TAKEN = {"command": "python hack/bench burst", "at": "2026-11-18T10:00:00Z", "repeats": 3}
LATER = {"command": "python hack/bench burst --sizes 500", "at": "2026-11-19T10:00:00Z", "repeats": 1}


def target(what: str, median: float = 0.5, limit: float = 0.6) -> Target:
    return Target(what, Spread(median, low=0.4, high=0.7), limit)


@pytest.mark.parametrize(("median", "at_most", "met"), [(0.6, True, True), (0.61, True, False), (0.59, False, False)])
def test_a_target_is_judged_by_its_median(median: float, at_most: bool, met: bool) -> None:
    assert Target("x", Spread(median, low=0.1, high=9), 0.6, at_most).met is met


def test_another_size_other_contestants_and_another_part_stay() -> None:
    everything: dict[str, Any] = {}
    for part, run in (("burst", "500: raw"), ("burst", "5000: raw"), ("burst", "500: shipped"), ("scale", "500")):
        everything = merged(everything, part, {run: {"jobs": run}}, [], TAKEN)
    assert {part: list(runs) for part, runs in everything["results"].items()} == {
        "burst": ["500: raw", "5000: raw", "500: shipped"],
        "scale": ["500"],
    }


def test_the_same_run_made_again_replaces_the_old_one_as_a_whole() -> None:
    once = merged({}, "burst", {"500: raw": {"jobs": 1, "pods": True}}, [], TAKEN)
    again = merged(once, "burst", {"500: raw": {"jobs": 2}}, [], LATER)
    assert again["results"]["burst"] == {"500: raw": {**LATER, "jobs": 2}}


def test_a_target_measured_again_replaces_its_old_figure_and_the_others_stay() -> None:
    once = merged({}, "burst", {}, [target("first"), target("last", 0.5)], TAKEN)
    again = merged(once, "burst", {}, [target("last", 0.9)], LATER)["targets"]
    assert {what: (kept["measured"]["median"], kept["met"], kept["at"]) for what, kept in again.items()} == {
        "first": (0.5, True, TAKEN["at"]),
        "last": (0.9, False, LATER["at"]),
    }


def test_what_was_kept_before_is_not_changed_in_place() -> None:
    once = merged({}, "burst", {"500": {}}, [target("last")], TAKEN)
    merged(once, "burst", {"1000": {}}, [target("first")], LATER)
    assert (list(once["results"]["burst"]), list(once["targets"])) == (["500"], ["last"])


def test_a_row_tells_the_spread_the_limit_and_when_and_how_often_it_was_taken() -> None:
    targets = merged({}, "burst", {}, [target("last"), target("late", 0.65)], TAKEN)["targets"]
    assert target_rows(targets) == [
        ("last", "0.5 (0.4-0.7)", "≤ 0.6", "met", "3", TAKEN["at"]),
        ("late", "0.65 (0.4-0.7)", "≤ 0.6", "MISSED", "3", TAKEN["at"]),
    ]


def test_rows_of_a_part_stand_together() -> None:
    everything: dict[str, Any] = {}
    for part, what in (("burst", "500"), ("writes", "calls"), ("burst", "1000")):
        everything = merged(everything, part, {}, [target(what)], TAKEN)
    assert [row[0] for row in target_rows(everything["targets"])] == ["500", "1000", "calls"]
