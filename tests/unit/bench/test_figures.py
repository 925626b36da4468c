"""The arithmetic of the benchmark: a figure that is computed wrongly is worse than none."""

from __future__ import annotations

import pytest
from hack.bench.lab.figures import (
    Lateness,
    Spread,
    apart,
    bound_of,
    cost_of_run,
    over_repeats,
    per_run,
    percentile,
    quotient,
    ratio,
)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, percent) for percent in (1, 50, 99, 100)] == [1, 50, 99, 100]


def test_the_order_of_values_does_not_matter_to_a_percentile() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2


def test_with_few_values_the_99th_percentile_is_the_largest() -> None:
    assert percentile([1.0, 2.0, 9.0], 99) == 9


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


def test_a_spread_tells_the_median_and_what_it_lies_between() -> None:
    assert Spread.over([5.0, 1.0, 3.0]) == Spread(median=3, low=1, high=5)
    assert Spread.over([1.0, 2.0]).median == 1.5


def test_lateness_counts_from_the_slot_and_the_rate_to_the_last_job() -> None:
    figures = Lateness.of([0.5, 1.0, 2.0, 4.0], lasted=4.0)
    assert (figures.first, figures.p50, figures.p99, figures.last) == (0.5, 1.0, 4.0, 4.0)
    assert figures.per_second == 1.0


def test_figures_over_repeats_are_medians_of_each_repeat_and_not_of_all_jobs() -> None:
    repeats = [Lateness.of([late], lasted=late) for late in (1.0, 2.0, 9.0)]
    assert over_repeats(repeats)["p99"] == Spread(median=2, low=1, high=9)


def test_a_ratio_is_taken_within_each_repeat() -> None:
    """The second repeat met a busy machine, and so did both contestants."""
    assert ratio([1.0, 10.0, 1.0], [2.0, 20.0, 4.0]) == Spread(median=0.5, low=0.25, high=0.5)


def test_figures_not_taken_side_by_side_lie_between_what_their_repeats_allow() -> None:
    assert quotient(Spread(4, low=2, high=6), Spread(2, low=1, high=4)) == Spread(2, low=0.5, high=6)


def test_a_figure_against_nothing_is_beyond_every_limit() -> None:
    assert quotient(Spread(4, low=2, high=6), Spread(0, low=0, high=4)) == Spread(float("inf"), 0.5, float("inf"))


def test_contestants_with_unequal_repeats_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio([1.0], [1.0, 2.0])


def test_calls_are_told_for_one_run_the_most_frequent_first() -> None:
    assert list(per_run({"patch status": 30, "create jobs": 20, "update leases": 40}, runs=20).items()) == [
        ("update leases", 2.0),
        ("patch status", 1.5),
        ("create jobs", 1.0),
    ]


def test_the_cost_of_a_run_leaves_out_what_rest_would_have_cost() -> None:
    assert cost_of_run(busy_cpu=3.0, busy_seconds=100, idle_share=0.01, runs=200) == pytest.approx(0.01)
    assert cost_of_run(busy_cpu=0.5, busy_seconds=100, idle_share=0.01, runs=200) == 0


def test_a_percentile_of_a_histogram_is_the_bound_of_its_bucket() -> None:
    counts = apart({0.001: 90, 0.05: 99, 1.0: 99, float("inf"): 100})
    assert counts == {0.001: 90, 0.05: 9, 1.0: 0, float("inf"): 1}
    assert [bound_of(counts, percent) for percent in (50, 99, 100)] == [0.001, 0.05, float("inf")]
