"""Which days: the date part of a cron expression (day-of-month, month, day-of-week).

Whether a day matches depends only on its place in the year, on whether the year is a leap year and on the
weekday it begins with. There are 14 such years. So a rule is worked out at most 14 times, and then "the
next matching day" is a bisection and "how many matching days in ten years" is ten additions; nothing scans
days. It also settles whether a rule can ever match, without searching.

A day is the number of days since 1970-01-01.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from itertools import accumulate

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
FIRST_YEAR, LAST_YEAR = 1, 9999
_FIRST_DAY = date(FIRST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL
_LAST_DAY = date(LAST_YEAR, 12, 31).toordinal() - _EPOCH_ORDINAL

# One year for each of the 14 calendars; the calendar repeats every 28 years between 1901 and 2099.
_MODEL = {(calendar.isleap(y), date(y, 1, 1).weekday()): y for y in range(2000, 2028)}
LAST = 0  # in place of n: the last such weekday of the month


@lru_cache(maxsize=1024)
def _year(year: int) -> tuple[int, int]:
    """Return the day on which a year begins, and the model year with the same calendar."""
    begin = date(year, 1, 1)
    return begin.toordinal() - _EPOCH_ORDINAL, _MODEL[calendar.isleap(year), begin.weekday()]


@dataclass(frozen=True, slots=True)
class DayRule:
    """The days that a cron expression matches. Weekdays are cron's: 0 is Sunday."""

    month_days: frozenset[int]
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]  # (weekday, n), n from 1 to 5 or LAST
    either: bool  # both day fields are restricted: a day matches when one of them does
    every_day: bool = field(init=False, compare=False)
    _models: dict[int, tuple[int, ...]] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        full_month = len(self.month_days) == 31
        full_week = len(self.weekdays) == 7
        all_days = (full_month or full_week) if self.either else (full_month and full_week)
        object.__setattr__(self, "every_day", len(self.months) == 12 and all_days)

    def matches_some_day(self) -> bool:
        """Whether any year has a day that matches."""
        return self.every_day or any(self._in_model(model) for model in _MODEL.values())

    def matches(self, day: int) -> bool:
        return self.every_day or self.on_or_after(day) == day

    def on_or_after(self, day: int) -> int | None:
        """Return the first matching day that is not before `day`."""
        if self.every_day:
            return day
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return None
        year = date.fromordinal(day + _EPOCH_ORDINAL).year
        while year <= LAST_YEAR:
            begin, model = _year(year)
            days = self._in_model(model)
            i = bisect_left(days, day - begin)
            if i < len(days):
                return begin + days[i]
            year += 1
        return None

    def on_or_before(self, day: int) -> int | None:
        """Return the last matching day that is not after `day`."""
        if self.every_day:
            return day
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return None
        year = date.fromordinal(day + _EPOCH_ORDINAL).year
        while year >= FIRST_YEAR:
            begin, model = _year(year)
            days = self._in_model(model)
            i = bisect_right(days, day - begin)
            if i:
                return begin + days[i - 1]
            year -= 1
        return None

    def count(self, first: int, end: int) -> int:
        """Return how many days from `first` to before `end` match."""
        if end <= first:
            return 0
        if self.every_day:
            return end - first
        return self._count_before(end) - self._count_before(first) + self._count_years(first, end)

    def _count_before(self, day: int) -> int:
        """Return how many days of its own year come before `day` and match."""
        begin, model = _year(date.fromordinal(day + _EPOCH_ORDINAL).year)
        return bisect_left(self._in_model(model), day - begin)

    def _count_years(self, first: int, end: int) -> int:
        years = range(*(date.fromordinal(day + _EPOCH_ORDINAL).year for day in (first, end)))
        return sum(len(self._in_model(_year(year)[1])) for year in years)

    def _in_model(self, model: int) -> tuple[int, ...]:
        """Return the days of a model year that match, counted from 0."""
        days = self._models.get(model)
        if days is None:
            begin = date(model, 1, 1)
            length = 366 if calendar.isleap(model) else 365
            days = tuple(d for d in range(length) if self._matches_date(begin + timedelta(days=d)))
            self._models[model] = days
        return days

    def _matches_date(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        length = calendar.monthrange(day.year, day.month)[1]
        by_month = day.day in self.month_days or (self.last_day and day.day == length)
        weekday = day.isoweekday() % 7
        nth = (weekday, (day.day + 6) // 7)
        by_week = (
            weekday in self.weekdays
            or nth in self.nth_weekdays
            or (day.day + 7 > length and (weekday, LAST) in self.nth_weekdays)
        )
        return (by_month or by_week) if self.either else (by_month and by_week)


@lru_cache(maxsize=4096)
def day_rule(
    month_days: frozenset[int],
    last_day: bool,
    months: frozenset[int],
    weekdays: frozenset[int],
    nth_weekdays: frozenset[tuple[int, int]],
    either: bool,
) -> DayRule:
    """Return the one shared rule for these days, so that its tables exist once for all expressions."""
    return DayRule(month_days, last_day, months, weekdays, nth_weekdays, either)


class YearSums:
    """Sums over days of a number that depends only on a day's place in its kind of year."""

    __slots__ = ("_models", "_number")

    def __init__(self, number: Callable[[int], int]) -> None:
        self._number = number
        self._models: dict[int, tuple[int, ...]] = {}

    def sum(self, first: int, end: int) -> int:
        """Return the sum over the days from `first` to before `end`, at one addition a year."""
        year, last = (date.fromordinal(day + _EPOCH_ORDINAL).year for day in (first, end))
        whole = sum(self._year(y)[1][-1] for y in range(year, last))
        (begin, head), (until, tail) = self._year(year), self._year(last)
        return whole + tail[end - until] - head[first - begin]

    def _year(self, year: int) -> tuple[int, tuple[int, ...]]:
        """Return the day on which a year begins, and the sums of all its beginnings."""
        begin, model = _year(year)
        sums = self._models.get(model)
        if sums is None:
            first, length = _year(model)[0], 366 if calendar.isleap(model) else 365
            sums = tuple(accumulate(map(self._number, range(first, first + length)), initial=0))
            self._models[model] = sums
        return begin, sums
