"""Times for people: what the clocks on the wall show, and how long it is until then."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cronwright.timing import Zone

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


class Calendar:
    """Writes instants as local times of a zone, all of them with seconds or none."""

    def __init__(self, zone: Zone, instants: Iterable[int]) -> None:
        self.zone = zone
        self._seconds = any(instant % 60 for instant in instants)

    def day_and_time(self, instant: int) -> str:
        """`Sun 2027-03-14 03:00 -04:00`"""
        offset = self.zone.stretch(instant).offset
        return f"{self._local(instant, offset):%a %Y-%m-%d} {self.time(instant)} {offset_of(offset)}"

    def time(self, instant: int) -> str:
        local = self._local(instant, self.zone.stretch(instant).offset)
        return f"{local:%H:%M:%S}" if self._seconds else f"{local:%H:%M}"

    def change(self, at: int, before: int, after: int) -> str:
        """`clocks go forward by 1 h: 02:00 becomes 03:00`"""
        way = "forward" if after > before else "back"
        old, new = self._local(at, before), self._local(at, after)
        form = "%H:%M" if old.date() == new.date() else "%a %H:%M"
        return f"clocks go {way} by {span(abs(after - before))}: {old:{form}} becomes {new:{form}}"

    @staticmethod
    def _local(instant: int, offset: int) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant + offset)


def offset_of(seconds: int) -> str:
    """`-04:00`"""
    hours, rest = divmod(abs(seconds), 3600)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"


def span(seconds: int) -> str:
    """A length in its two largest units: `3 h`, `1 d 4 h`."""
    parts = []
    for unit, size in _UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"
