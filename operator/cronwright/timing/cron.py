"""One cron expression, compiled: which days, which times of these days, and whose clock it follows.

croniter is the parser: it expands a checked expression (`dialect.py`) into the set of values of each field.
What follows from these sets is computed here and not by croniter, which can neither count slots nor step
over a gap, and is slow.

Expressions are shared: 10,000 schedules at `0 3 * * *` hold one object. One with `H` is first turned into
the plain expression that the uid's hash makes of it, and that one is shared too: `H * * * *` comes to 60
expressions at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from croniter import CroniterError, croniter

from cronwright.timing.days import LAST, DayRule, day_rule
from cronwright.timing.daytimes import MinuteTimes, bits, repeated
from cronwright.timing.dialect import FIELDS, CronError, Field, resolve, split, spreads


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression; compared by identity, since equal ones are shared."""

    text: str
    days: DayRule
    times: MinuteTimes
    real_time: bool  # minute or hour begins with a star: follows elapsed time through clock changes
    has_seconds: bool


def expression(text: str, uid: str) -> Expression:
    """Return the compiled expression of a schedule; CronError if it is refused or can never match."""
    if spreads(text):
        return _compile(resolve(text, uid))
    return _compile_fixed(text)


@lru_cache(maxsize=4096)
def _compile_fixed(text: str) -> Expression:
    try:
        return _compile(resolve(text, ""))
    except CronError as error:
        if error.reason == "NeverRuns":
            raise CronError(_never(text), reason="NeverRuns") from None
        raise


@lru_cache(maxsize=16_384)
def _compile(plain: str) -> Expression:
    fields = plain.split()
    try:
        expanded, nth = croniter.expand(plain)
    except CroniterError as error:
        raise CronError(f'"{plain}" is not understood ({error}); write five fields of cron') from error
    minutes, hours, days, months, weekdays, *seconds = expanded
    rule = day_rule(
        _values(FIELDS[2], days),
        "l" in list[object](days),
        _values(FIELDS[3], months),
        frozenset() if nth else _values(FIELDS[4], weekdays),
        frozenset((day, n if isinstance(n, int) else LAST) for day, ns in nth.items() for n in ns),
        fields[2] != "*" and fields[4] != "*",
    )
    if not rule.matches_some_day():
        raise CronError(_never(plain), reason="NeverRuns")
    hour = bits(_values(FIELDS[0], minutes))
    times = MinuteTimes(
        repeated(hour, 60, bits(_values(FIELDS[1], hours))),
        bits(_values(FIELDS[5], seconds[0])) if seconds else 1,
    )
    real_time = fields[0].startswith("*") or fields[1].startswith("*")
    return Expression(plain, rule, times, real_time, bool(seconds))


def _values(field: Field, expanded: Iterable[object]) -> frozenset[int]:
    if "*" in (values := list(expanded)):
        return frozenset(range(field.low, field.high + 1))
    return frozenset(value for value in values if isinstance(value, int))


def _never(text: str) -> str:
    _, _, day, month, weekday, *_ = (part.upper() for part in split(text))
    parts = [f'{name} "{value}"' for name, value in (("day-of-month", day), ("month", month)) if value != "*"]
    parts += [f'day-of-week "{weekday}"'] if weekday != "*" else []
    return f'"{text}" never runs: no year has a date with {" and ".join(parts)}; write a date that exists'
