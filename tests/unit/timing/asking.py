"""How the tables ask: times in and out as text, so that a test reads like a wall calendar."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.unit.timing import tzif

from cronwright.timing import Timetable, When, compile_when, format_instant, parse_instant

UID = "6b6c2f0e-7d3a-4a55-9a0e-0d8f3f3f7c11"


def at(text: str) -> int:
    """`2027-03-14T07:00Z` or `2027-03-14T07:00:30Z` as unix seconds."""
    return parse_instant(text if text.count(":") == 2 else text.replace("Z", ":00Z"))


def timetable(*crons: str, uid: str = UID, created: str = "2020-01-01T00:00Z", **fields: Any) -> Timetable:
    return compile_when(When(crons=crons, **fields), uid=uid, created=at(created))


def utc(table: Timetable, after: str, count: int) -> list[str]:
    """The next slots after a moment, as UTC."""
    return [format_instant(slot) for slot in table.slots(at(after), at("9998-12-31T00:00Z"), count)]


def local(table: Timetable, zone: str, begin: str, end: str) -> list[str]:
    """The slots of [begin, end) as the clocks on the wall show them: `03-14 03:00 -0400`."""
    tz = tzif.clock(zone)
    slots = table.slots(at(begin) - 1, at(end) - 1, 1000)
    return [datetime.fromtimestamp(slot, UTC).astimezone(tz).strftime("%m-%d %H:%M %z") for slot in slots]
