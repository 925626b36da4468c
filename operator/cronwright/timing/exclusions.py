"""What is left out of a schedule: days, ranges and cron expressions.

Days and ranges are fixed, so they are turned into closed intervals of instants once, at compile time. That
is not a single conversion of both ends: a date means every instant whose *local* date it is, and where the
clocks go back over midnight (St. John's, at 00:01) these instants are not in one piece. So each end is
applied inside each stretch of constant offset near it.

Expressions stay expressions, since they go on for ever; see `patterns.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cronwright.timing.cron import Expression, expression
from cronwright.timing.dialect import CronError, spreads
from cronwright.timing.errors import TimingError
from cronwright.timing.instants import parse_instant, parse_local_date, parse_local_time
from cronwright.timing.zones import Zone

_DAY = 86_400
# No zone is further from UTC than this, so a local bound is reached within it.
_REACH = 2 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """One entry of `exclude`, as written: `date`, or `from_` and `to`, or `cron`."""

    date: str | None = None
    from_: str | None = None
    to: str | None = None
    cron: str | None = None


class _Bound(NamedTuple):
    at: int
    local: bool

    def instant(self, offset: int) -> int:
        """Return the instant of this bound in a stretch with this offset."""
        return self.at - offset if self.local else self.at


def excluded_expressions(exclude: tuple[Exclusion, ...], field: str) -> tuple[Expression, ...]:
    """Return the compiled expressions among exclusions."""
    return tuple(
        _expression(entry.cron, f"{field}[{i}].cron")
        for i, entry in enumerate(exclude)
        if _kind(entry, f"{field}[{i}]") == "cron" and entry.cron is not None
    )


def closed_intervals(exclude: tuple[Exclusion, ...], zone: Zone, field: str) -> tuple[tuple[int, int], ...]:
    """Return the instants that dates and ranges leave out: sorted, separate intervals [begin, end)."""
    intervals: list[tuple[int, int]] = []
    for i, entry in enumerate(exclude):
        if _kind(entry, f"{field}[{i}]") != "cron":
            intervals += _pieces(zone, *_bounds(entry, f"{field}[{i}]"))
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return tuple(merged)


def _kind(entry: Exclusion, field: str) -> str:
    kinds = [name for name, value in (("date", entry.date), ("cron", entry.cron)) if value is not None]
    if entry.from_ is not None or entry.to is not None:
        kinds.append("range")
    if len(kinds) != 1 or (kinds == ["range"] and None in (entry.from_, entry.to)):
        problem = "says nothing" if not kinds else f"says {' and '.join(kinds)}"
        if kinds == ["range"]:
            problem = f'has only "{"to" if entry.from_ is None else "from"}"'
        raise TimingError("InvalidExclude", field, f"this entry {problem}; write date, or from and to, or cron")
    return kinds[0]


def _expression(text: str, field: str) -> Expression:
    try:
        if spreads(text):
            raise CronError(f'"H" in "{text}" would leave out a time that nobody chose; write the time')
        return expression(text, "")
    except CronError as error:
        raise TimingError(error.reason, field, str(error)) from None


def _bounds(entry: Exclusion, field: str) -> tuple[_Bound, _Bound]:
    if entry.date is not None:
        day = parse_local_date(entry.date)
        if day is None:
            problem = f'"{entry.date}" is not a date; write for example "2026-12-25"'
            raise TimingError("InvalidExclude", f"{field}.date", problem)
        return _Bound(day, local=True), _Bound(day + _DAY, local=True)
    assert entry.from_ is not None
    assert entry.to is not None
    begin, end = _bound(entry.from_, f"{field}.from"), _bound(entry.to, f"{field}.to", whole_day=True)
    if begin.at >= end.at + (_DAY if begin.local != end.local else 0):
        problem = f'"{entry.to}" does not come after from ("{entry.from_}"); write a later time or exchange them'
        raise TimingError("InvalidExclude", f"{field}.to", problem)
    return begin, end


def _bound(text: str, field: str, *, whole_day: bool = False) -> _Bound:
    if (day := parse_local_date(text)) is not None:
        return _Bound(day + _DAY if whole_day else day, local=True)
    if (time := parse_local_time(text)) is not None:
        return _Bound(time, local=True)
    try:
        return _Bound(parse_instant(text), local=False)
    except ValueError:
        problem = (
            f'"{text}" is not a date or a time; write for example "2026-12-25", "2026-12-24T18:00" (local) '
            'or "2026-12-24T18:00:00Z"'
        )
        raise TimingError("InvalidExclude", field, problem) from None


def _pieces(zone: Zone, begin: _Bound, end: _Bound) -> Iterator[tuple[int, int]]:
    """Yield the instants between two bounds; only stretches near a bound need to be looked at."""
    middle = (begin.at + _REACH, end.at - _REACH)
    if middle[0] >= middle[1]:
        near = [(begin.at - _REACH, end.at + _REACH)]
    else:
        near = [(begin.at - _REACH, middle[0]), (middle[1], end.at + _REACH)]
        yield middle
    for lo, hi in near:
        for stretch in zone.stretches(lo, hi):
            first = max(lo, stretch.start, begin.instant(stretch.offset))
            last = min(hi, stretch.end, end.instant(stretch.offset))
            if first < last:
                yield first, last
