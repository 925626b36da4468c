"""From observations to figures: percentiles of one repeat, medians and spread over repeats. Pure arithmetic."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least this share of all values does not exceed (nearest rank): one that was seen."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True)
class Spread:
    """One figure over all repeats."""

    median: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Spread:
        seen = list(values)
        return cls(statistics.median(seen), min(seen), max(seen))


@dataclass(frozen=True)
class Lateness:
    """How late the Jobs of one repeat were, in seconds after their slots."""

    jobs: int
    first: float
    p50: float
    p99: float
    last: float
    per_second: float
    """Jobs a second, from the first slot to the last Job: lateness at the start counts too."""

    @classmethod
    def of(cls, lateness: Sequence[float], lasted: float) -> Lateness:
        """`lasted`: seconds from the first slot to the last Job."""
        return cls(
            jobs=len(lateness),
            first=min(lateness),
            p50=percentile(lateness, 50),
            p99=percentile(lateness, 99),
            last=max(lateness),
            per_second=len(lateness) / lasted,
        )


def over_repeats(repeats: Sequence[Any]) -> dict[str, Spread]:
    """The median and spread of each figure, which are the fields of a dataclass."""
    rows = [asdict(repeat) for repeat in repeats]
    return {name: Spread.over(float(row[name]) for row in rows) for name in rows[0]}


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours to theirs within each repeat, where both met the same machine; then over repeats."""
    return Spread.over(mine / other for mine, other in zip(ours, theirs, strict=True))


def quotient(these: Spread, those: Spread) -> Spread:
    """Of the medians of figures that were not taken side by side, so no repeat of one belongs to one of the other; what
    it lies between is the most that their repeats allow."""
    return Spread(
        _over(these.median, those.median),
        _over(these.low, those.high),
        _over(these.high, those.low),
    )


def _over(one: float, other: float) -> float:
    return one / other if other else math.inf


def per_run(calls: Mapping[str, int], runs: int) -> dict[str, float]:
    """Calls by kind for one run, the most frequent first."""
    if runs < 1:
        raise ValueError("there is no cost of a run where none was")
    ordered = sorted(calls.items(), key=lambda item: (-item[1], item[0]))
    return {kind: count / runs for kind, count in ordered}


def cost_of_run(busy_cpu: float, busy_seconds: float, idle_share: float, runs: int) -> float:
    """CPU seconds that one run costs, above what the same time costs when nothing is due."""
    return max(0.0, busy_cpu - idle_share * busy_seconds) / runs


def apart(cumulative: Mapping[float, float]) -> Counter[float]:
    """A histogram as Prometheus tells it, each bucket with the smaller ones in it, as counts by upper bound."""
    counts, below = Counter[float](), 0.0
    for bound in sorted(cumulative):
        counts[bound] = int(cumulative[bound] - below)
        below = cumulative[bound]
    return counts


def bound_of(counts: Counter[float], percent: float) -> float:
    """The upper bound of the bucket that a percentile lies in."""
    return percentile(list(counts.elements()), percent)
