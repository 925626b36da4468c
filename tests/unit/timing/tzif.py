"""The clock changes of a zone as its file in the tz database says them (RFC 9636): no probing, and no code of ours.

A file lists changes up to some year; what comes after them follows from the rule in its last line.
"""

from __future__ import annotations

import calendar
import re
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

_NAME = r"(?:[A-Za-z]+|<[^>]+>)"
_RULE = re.compile(rf"{_NAME}([-+:\d]+)(?:{_NAME}([-+:\d]+)?,([^,]+),([^,]+))?")


@cache
def content(name: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@cache
def clock(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def changes(name: str, first: int, last: int) -> list[tuple[int, int, int]]:
    """Return when the offset of a zone changes, from what and to what, within [first, last)."""
    times, offsets, initial, rule = _read(content(name))
    explicit = list(zip(times, offsets, strict=True))
    told_until = times[-1] if times else -(1 << 62)
    by_rule = [change for change in _follow(rule, first, last) if change[0] > told_until]
    found, before = [], initial
    for at, after in (*explicit, *by_rule):
        if after != before and first <= at < last:
            found.append((at, before, after))
        before = after
    return found


def _read(data: bytes) -> tuple[list[int], list[int], int, str]:
    """Return the instants, the offset from each on, the offset before all of them, and the rule for what follows."""
    counts = _counts(data)
    start = 44 + _length(counts, 4)
    counts = _counts(data[start:])
    _, _, _, timecnt, typecnt, _ = counts
    body = data[start + 44 :]
    times = list(struct.unpack(f">{timecnt}q", body[: 8 * timecnt]))
    kinds = body[8 * timecnt : 9 * timecnt]
    types = [struct.unpack(">iBB", body[9 * timecnt + 6 * n :][:6])[0] for n in range(typecnt)]
    rule = body[_length(counts, 8) :].strip(b"\n").decode()
    return times, [types[kind] for kind in kinds], types[0], rule


def _counts(data: bytes) -> tuple[int, ...]:
    assert data[:4] == b"TZif"
    return struct.unpack(">6I", data[20:44])


def _length(counts: tuple[int, ...], width: int) -> int:
    isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt = counts
    return timecnt * (width + 1) + typecnt * 6 + charcnt + leapcnt * (width + 4) + isstdcnt + isutcnt


def _follow(rule: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield each change of a rule such as `EST5EDT,M3.2.0,M11.1.0`, and the offset from then on."""
    found = _RULE.fullmatch(rule)
    assert found is not None, rule
    if found[3] is None:
        return
    standard = -_seconds(found[1])
    summer = -_seconds(found[2]) if found[2] else standard + 3600
    years = range(*(datetime.fromtimestamp(t, UTC).year + n for t, n in ((first, -1), (last, 2))))
    for year in years:
        begin = _local(found[3], year) - standard, summer
        end = _local(found[4], year) - summer, standard
        yield from sorted((begin, end))


def _local(text: str, year: int) -> int:
    """The local second of `M3.2.0/2`: the second Sunday of March, at two (which is what it is unless said)."""
    day, _, time = text.partition("/")
    assert day.startswith("M"), text
    month, week, weekday = map(int, day[1:].split("."))
    first = date(year, month, 1)
    chosen = first + timedelta((weekday - first.isoweekday()) % 7 + 7 * (week - 1))
    while chosen.month != month or chosen.year != year:
        chosen -= timedelta(7)
    return calendar.timegm(chosen.timetuple()) + (_seconds(time) if time else 7200)


def _seconds(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    size = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
    return -size if text.startswith("-") else size
