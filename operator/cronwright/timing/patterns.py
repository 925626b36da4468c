"""Sets of naive local times: what a stretch of constant offset is asked for.

A pattern answers three questions about local seconds in [lo, hi): the first time, the final time, and how
many. Local seconds count as if local time were UTC. A pattern may be a union of expressions without double
slots, may leave out what other expressions match, or may be what is left out; which of the expressions
match is a question of the day, so there are few distinct days, each worked out once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from cronwright.timing.cron import Expression
from cronwright.timing.days import YearSums
from cronwright.timing.daytimes import DAY, DayTimes, SecondTimes, divide, unite, whole_minutes

_FULL_DAY = (1 << DAY) - 1


class Pattern(Protocol):
    """A set of local times."""

    def first(self, lo: int, hi: int, /) -> int | None: ...
    def final(self, lo: int, hi: int, /) -> int | None: ...
    def count(self, lo: int, hi: int, /) -> int: ...


class Simple:
    """The times of one expression: all of it is arithmetic."""

    __slots__ = ("_days", "_times")

    def __init__(self, expression: Expression) -> None:
        self._days = expression.days
        self._times = expression.times

    def first(self, lo: int, hi: int) -> int | None:
        day, at = divmod(lo, DAY)
        match = self._days.on_or_after(day)
        if match == day:
            time = self._times.first(at)
            if time is not None:
                found = day * DAY + time
                return found if found < hi else None
            match = self._days.on_or_after(day + 1)
        if match is None or match * DAY >= hi:
            return None
        time = self._times.first(0)
        return None if time is None or (found := match * DAY + time) >= hi else found

    def final(self, lo: int, hi: int) -> int | None:
        day, at = divmod(hi - 1, DAY)
        match = self._days.on_or_before(day)
        if match == day:
            time = self._times.final(at)
            if time is not None:
                found = day * DAY + time
                return found if found >= lo else None
            match = self._days.on_or_before(day - 1)
        if match is None or (match + 1) * DAY <= lo:
            return None
        time = self._times.final(DAY - 1)
        return None if time is None or (found := match * DAY + time) < lo else found

    def count(self, lo: int, hi: int) -> int:
        if lo >= hi:
            return 0
        (day, at), (last, until) = divmod(lo, DAY), divmod(hi, DAY)
        total = self._days.count(day, last) * self._times.total
        if at and self._days.matches(day):
            total -= self._times.count(0, at)
        if until and self._days.matches(last):
            total += self._times.count(0, until)
        return total


class _Daily:
    """Patterns whose days are looked at one by one: unions, and what exclusions leave.

    Counting is a sum over kinds of years where the times of a day follow from its date (`yearly`). Only an interval
    that does not divide a day, with an exclusion by cron, has its days walked through, at some microseconds each.
    """

    __slots__ = ("_sums",)

    def __init__(self, *, yearly: bool) -> None:
        self._sums = YearSums(lambda day: self._times(day).total) if yearly else None

    def _on_or_after(self, day: int) -> int | None:
        raise NotImplementedError

    def _on_or_before(self, day: int) -> int | None:
        raise NotImplementedError

    def _times(self, day: int) -> DayTimes:
        raise NotImplementedError

    def first(self, lo: int, hi: int) -> int | None:
        day, at = divmod(lo, DAY)
        match = self._on_or_after(day)
        while match is not None and match * DAY < hi:
            time = self._times(match).first(at if match == day else 0)
            if time is not None:
                found = match * DAY + time
                return found if found < hi else None
            match = self._on_or_after(match + 1)
        return None

    def final(self, lo: int, hi: int) -> int | None:
        day, at = divmod(hi - 1, DAY)
        match = self._on_or_before(day)
        while match is not None and (match + 1) * DAY > lo:
            time = self._times(match).final(at if match == day else DAY - 1)
            if time is not None:
                found = match * DAY + time
                return found if found >= lo else None
            match = self._on_or_before(match - 1)
        return None

    def count(self, lo: int, hi: int) -> int:
        if self._sums is None:
            return self._walk(lo, hi)
        if lo >= hi:
            return 0
        (day, at), (last, until) = divmod(lo, DAY), divmod(hi, DAY)
        before = self._times(day).count(0, at) if at else 0
        after = self._times(last).count(0, until) if until else 0
        return self._sums.sum(day, last) - before + after

    def _walk(self, lo: int, hi: int) -> int:
        total = 0
        match = self._on_or_after(lo // DAY)
        while match is not None and (begin := match * DAY) < hi:
            times = self._times(match)
            if lo <= begin and begin + DAY <= hi:
                total += times.total
            else:
                total += times.count(max(0, lo - begin), min(DAY, hi - begin))
            match = self._on_or_after(match + 1)
        return total


class Union(_Daily):
    """The times of several expressions, outside others or (`inside`) within them."""

    __slots__ = ("_expressions", "_inside", "_kinds", "_others")

    def __init__(
        self,
        expressions: tuple[Expression, ...],
        others: tuple[Expression, ...] = (),
        *,
        inside: bool = False,
    ) -> None:
        super().__init__(yearly=True)
        self._expressions = expressions
        self._others = others
        self._inside = inside
        self._kinds: dict[tuple[Expression, ...], DayTimes] = {}

    def _on_or_after(self, day: int) -> int | None:
        days = (expression.days.on_or_after(day) for expression in self._expressions)
        return min((day for day in days if day is not None), default=None)

    def _on_or_before(self, day: int) -> int | None:
        days = (expression.days.on_or_before(day) for expression in self._expressions)
        return max((day for day in days if day is not None), default=None)

    def _times(self, day: int) -> DayTimes:
        kind = tuple(e for e in (*self._expressions, *self._others) if e.days.matches(day))
        times = self._kinds.get(kind)
        if times is None:
            times = unite([e.times for e in kind if e in self._expressions])
            if self._others or self._inside:
                times = divide(times, covered(e for e in kind if e in self._others))[self._inside]
            self._kinds[kind] = times
        return times


def covered(expressions: Iterable[Expression]) -> DayTimes:
    """Return the times that exclusions cover: without a seconds field, a minute is covered as a whole."""
    return unite([e.times if e.has_seconds else whole_minutes(e.times) for e in expressions])


class Every:
    """Every `interval` seconds, for all time: pure division."""

    __slots__ = ("_anchor", "_interval")

    def __init__(self, anchor: int, interval: int) -> None:
        self._anchor = anchor
        self._interval = interval

    def first(self, lo: int, hi: int) -> int | None:
        found = lo + (self._anchor - lo) % self._interval
        return found if found < hi else None

    def final(self, lo: int, hi: int) -> int | None:
        found = hi - 1 - (hi - 1 - self._anchor) % self._interval
        return found if found >= lo else None

    def count(self, lo: int, hi: int) -> int:
        if lo >= hi:
            return 0
        return (hi - 1 - self._anchor) // self._interval - (lo - 1 - self._anchor) // self._interval


class _Never:
    """No second at all."""

    def first(self, _lo: int, _hi: int) -> int | None:
        return None

    def final(self, _lo: int, _hi: int) -> int | None:
        return None

    def count(self, _lo: int, _hi: int) -> int:
        return 0


ALWAYS, NEVER = Every(0, 1), _Never()


class EveryFiltered(_Daily):
    """Every `interval` seconds, outside expressions or (`inside`) within them."""

    __slots__ = ("_covered", "_every", "_inside", "_kinds", "_mask", "_others")

    def __init__(self, anchor: int, interval: int, others: tuple[Expression, ...], *, inside: bool) -> None:
        super().__init__(yearly=DAY % interval == 0)
        self._every = Every(anchor, interval)
        self._others = others
        self._inside = inside
        self._mask = _steps(interval)
        self._covered: dict[tuple[Expression, ...], int] = {}
        self._kinds: dict[tuple[Expression, ...], SecondTimes] = {}

    def _on_or_after(self, day: int) -> int | None:
        found = self._every.first(day * DAY, 1 << 62)
        return None if found is None else found // DAY

    def _on_or_before(self, day: int) -> int | None:
        found = self._every.final(-(1 << 62), (day + 1) * DAY)
        return None if found is None else found // DAY

    def _times(self, day: int) -> DayTimes:
        first = self._every.first(day * DAY, (day + 1) * DAY)
        if first is None:
            return SecondTimes(0)
        kind = tuple(e for e in self._others if e.days.matches(day))
        times = self._kinds.get(kind)
        if times is None:
            times = SecondTimes(self._mask << first % DAY & self._covering(kind))
            if self._sums is not None:  # the interval divides a day, so it begins all days alike
                self._kinds[kind] = times
        return times

    def _covering(self, others: tuple[Expression, ...]) -> int:
        mask = self._covered.get(others)
        if mask is None:
            mask = covered(others).mask
            self._covered[others] = mask = mask if self._inside else ~mask & _FULL_DAY
        return mask


def _steps(interval: int) -> int:
    """Return one bit at 0 and at each multiple of `interval` within a day."""
    mask, length = 1, interval
    while length < DAY:
        mask |= mask << length
        length *= 2
    return mask
