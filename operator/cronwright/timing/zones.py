"""Time zones as stretches of constant offset.

All slot arithmetic happens on naive local time inside one stretch, where a day has 86,400 seconds and
nothing can go wrong; the interesting part is what happens at the ends, and a stretch says that too:

* `fresh`: the instant from which its local times are new. Before it, the clocks had been put back and these
  local times have been seen already (an overlap).
* `gap_from`: the local time from which local times were left out just before it (a gap); where the clocks
  were not put forward it is the stretch's own local beginning, so that the gap is empty.

The standard library gives offsets, but no list of their changes. So they are looked for: the offset is
probed every 2¹⁷ seconds (36 hours) and a change between two probes is found to the second by bisection. The
tests hold that against the transitions in every file of the tz database. Time is cut into blocks of 2²⁵
seconds (about a year) that are worked out when first asked for; a block's border is a stretch's border too,
but one without a change.

The database is the `tzdata` package's, whatever the system has: a slot must not depend on the image or the
laptop that computes it.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

_DATABASE = resources.files("tzdata")
_BLOCK = 25
_PROBE = 17
# datetime ends with the year 9999; beyond both ends a zone keeps the offset it has there.
_EARLIEST, _LATEST = -62_135_510_400, 253_402_128_000


class Stretch(NamedTuple):
    """The instants from `start` to before `end`, in which local time is UTC + `offset`."""

    start: int
    end: int
    offset: int
    fresh: int
    gap_from: int


class Change(NamedTuple):
    """At this instant the clocks go from one offset to another."""

    at: int
    before: int
    after: int


class Zone:
    """One time zone; shared by all schedules in it."""

    __slots__ = ("_blocks", "_found", "_tz", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._tz = _read(key)
        self._blocks: dict[int, tuple[list[int], list[Stretch]]] = {}
        self._found: dict[int, tuple[Change, ...]] = {}

    def stretch(self, t: int) -> Stretch:
        """Return the stretch that an instant lies in."""
        number = t >> _BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._build(number)
        starts, stretches = block
        return stretches[bisect_right(starts, t) - 1]

    def stretches(self, begin: int, end: int) -> Iterator[Stretch]:
        """Yield the stretches that have a part in [begin, end)."""
        while begin < end:
            stretch = self.stretch(begin)
            yield stretch
            begin = stretch.end

    def changes(self, begin: int, end: int) -> Iterator[Change]:
        """Yield the changes of the clocks in (begin, end)."""
        for before, after in pairwise(self.stretches(begin, end)):
            if before.offset != after.offset:
                yield Change(after.start, before.offset, after.offset)

    def _offset(self, t: int) -> int:
        moment = datetime.fromtimestamp(min(max(t, _EARLIEST), _LATEST), self._tz)
        offset = moment.utcoffset()
        assert offset is not None
        return offset.days * 86_400 + offset.seconds

    def _changes(self, number: int) -> tuple[Change, ...]:
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = tuple(self._look_for_changes(number))
        return found

    def _look_for_changes(self, number: int) -> Iterator[Change]:
        begin, end = number << _BLOCK, (number + 1) << _BLOCK
        t, offset = begin - 1, self._offset(begin - 1)
        for probe in range(begin - 1 + (1 << _PROBE), end, 1 << _PROBE):
            target = self._offset(probe)
            while offset != target:
                at = self._first_other(t, probe, offset)
                after = self._offset(at)
                yield Change(at, offset, after)
                t, offset = at, after
            t = probe

    def _first_other(self, same: int, other: int, offset: int) -> int:
        """Return the instant at which the offset ceases to be `offset`, between two instants."""
        while other - same > 1:
            middle = (same + other) // 2
            if self._offset(middle) == offset:
                same = middle
            else:
                other = middle
        return other

    def _build(self, number: int) -> tuple[list[int], list[Stretch]]:
        begin, end = number << _BLOCK, (number + 1) << _BLOCK
        changes = list(self._changes(number))
        # No shift is longer than a block, so what local times were seen is settled by the block before.
        earlier = self._changes(number - 1)
        seen = max((change.at + change.before for change in earlier), default=begin - (1 << _BLOCK))
        if not changes or changes[0].at > begin:
            offset = self._offset(begin)
            changes.insert(0, Change(begin, offset, offset))
        stretches = []
        for i, (at, before, after) in enumerate(changes):
            until = changes[i + 1].at if i + 1 < len(changes) else end
            is_change = before != after
            seen = max(seen, at + before) if is_change else seen
            gap_from = min(seen, at + after) if is_change else at + after
            stretches.append(Stretch(at, until, after, max(at, seen - after), gap_from))
        return [stretch.start for stretch in stretches], stretches


def _read(key: str) -> ZoneInfo:
    with _DATABASE.joinpath("zoneinfo", *key.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key)


class _UTC(Zone):
    """UTC never changes: one stretch for all time, and nothing to look for."""

    __slots__ = ()
    _ALWAYS = Stretch(-(1 << 62), 1 << 62, 0, -(1 << 62), -(1 << 62))

    def stretch(self, t: int) -> Stretch:  # noqa: ARG002
        return self._ALWAYS


@lru_cache(maxsize=1024)
def zone(key: str) -> Zone:
    """Return the zone of an IANA name; ValueError names it and the nearest names that exist."""
    if key not in zone_names():
        raise ValueError(f'"{key}" is not a time zone of the IANA database; {_suggestion(key)}')
    return _UTC(key) if key in ("UTC", "Etc/UTC") else Zone(key)


@cache
def zone_names() -> frozenset[str]:
    """Return all IANA names that `zone` takes; "Factory" stands for a clock that was never set."""
    return frozenset(_DATABASE.joinpath("zones").read_text().split()) - {"Factory"}


def _suggestion(key: str) -> str:
    by_lower = {name.lower(): name for name in sorted(zone_names())}
    cities = {name.rpartition("/")[2]: lower for lower, name in by_lower.items() for name in (lower,)}
    wanted = key.strip().lower().replace(" ", "_")
    near = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=0.7)
    near = near or [cities[city] for city in difflib.get_close_matches(wanted, cities, n=1, cutoff=0.8)]
    if near:
        return f'did you mean "{by_lower[near[0]]}"?'
    return 'write a name such as "Europe/Berlin" or "UTC"'
