"""Slots on the real time line: patterns of local time laid into the stretches of a zone.

A timeline cuts time into *pieces* [start, end) inside which everything is constant: the offset, whether the
local times are a repetition (after the clocks went back), whether an exclusion by date or range is in
force. For each piece it names the pattern to ask; the first, the final and the number of slots are then a
walk over pieces. Ten years in a zone with summer time are some thirty pieces, whatever the schedule, which
is why the length of an outage costs nothing.

The rule for clock changes is Debian cron's. An expression whose minute or hour begins with `*` follows real
time: it matches whatever local time it is. Any other is a wall-clock time: repeated local times are left
out (`onOverlap: Once`), and if a gap swallowed a match, the first instant after the gap is a slot (`onGap:
RunAfter`); that instant is a piece of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from cronwright.timing.cron import Expression
from cronwright.timing.patterns import ALWAYS, NEVER, Every, EveryFiltered, Pattern, Simple, Union
from cronwright.timing.zones import Stretch, Zone

FOREVER = 1 << 60
# All 14 kinds of year come by within 40 years; what has not run by then never will.
_CYCLE = 50 * 366 * 86_400

Intervals = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    start: int
    end: int
    offset: int
    all: Pattern
    runs: Pattern
    excluded: Pattern


class _Faces(NamedTuple):
    """One set of local times seen three ways: all of it, what may run, what an expression excludes."""

    all: Pattern
    runs: Pattern
    excluded: Pattern


class Timeline:
    """All slots of a schedule, without its window: shared by every schedule that says the same."""

    def __init__(self, closed: Intervals, patience: int) -> None:
        self._closed = closed
        self._closed_starts = [begin for begin, _ in closed]
        self._patience = patience

    def first_run(self, lo: int, hi: int) -> int | None:
        """Return the first slot in [lo, hi) that is not excluded."""
        hi = min(hi, max(lo, self._closed[-1][1] if self._closed else lo) + self._patience)
        while lo < hi:
            piece = self._piece(lo)
            offset = piece.offset
            end = piece.end if piece.end < hi else hi
            found = piece.runs.first(lo + offset, end + offset)
            if found is not None:
                return found - offset
            lo = end
        return None

    def first_slot(self, lo: int, hi: int) -> int | None:
        """Return the first slot in [lo, hi), excluded or not."""
        while lo < hi:
            piece = self._piece(lo)
            end = min(hi, piece.end)
            found = piece.all.first(lo + piece.offset, end + piece.offset)
            if found is not None:
                return found - piece.offset
            lo = end
        return None

    def final(self, lo: int, hi: int, *, excluded: bool = False) -> int | None:
        """Return the last slot in [lo, hi) that runs, or that is excluded."""
        while lo < hi:
            piece = self._piece(hi - 1)
            start = max(lo, piece.start)
            pattern = piece.excluded if excluded else piece.runs
            found = pattern.final(start + piece.offset, hi + piece.offset)
            if found is not None:
                return found - piece.offset
            hi = start
        return None

    def count(self, lo: int, hi: int) -> tuple[int, int]:
        """Return how many slots in [lo, hi) run and how many are excluded."""
        runs = total = 0
        while lo < hi:
            piece = self._piece(lo)
            end = min(hi, piece.end)
            runs += piece.runs.count(lo + piece.offset, end + piece.offset)
            total += piece.all.count(lo + piece.offset, end + piece.offset)
            lo = end
        return runs, total - runs

    def _piece(self, t: int) -> Piece:
        raise NotImplementedError

    def _cut(self, t: int, start: int, end: int, offset: int, faces: _Faces) -> Piece:
        """Return the piece around `t`, cut where an exclusion by date or range begins or ends."""
        if not self._closed:
            return Piece(start, end, offset, *faces)
        i = bisect_right(self._closed_starts, t)
        if i and t < self._closed[i - 1][1]:
            begin, until = self._closed[i - 1]
            return Piece(max(start, begin), min(end, until), offset, faces.all, NEVER, faces.all)
        if i:
            start = max(start, self._closed[i - 1][1])
        if i < len(self._closed):
            end = min(end, self._closed[i][0])
        return Piece(start, end, offset, *faces)


class CronTimeline(Timeline):
    """The slots of one or more cron expressions."""

    def __init__(
        self,
        expressions: tuple[Expression, ...],
        zone: Zone,
        *,
        run_after_gap: bool,
        run_twice: bool,
        excluded: tuple[Expression, ...],
        closed: Intervals,
    ) -> None:
        super().__init__(closed, _CYCLE)
        self._zone = zone
        self._excluded = excluded
        self._fresh = _faces(expressions, excluded)
        repeats = expressions if run_twice else tuple(e for e in expressions if e.real_time)
        self._repeated = _faces(repeats, excluded)
        wall_clock = tuple(e for e in expressions if not e.real_time)
        self._swallowed = _faces(wall_clock if run_after_gap else (), ()).all

    def _piece(self, t: int) -> Piece:
        stretch = self._zone.stretch(t)
        start, end, offset, fresh, gap_from = stretch
        if t < fresh:
            return self._cut(t, start, min(fresh, end), offset, self._repeated)
        if gap_from < start + offset and self._swallowed is not NEVER:
            if t == start:
                return self._cut(t, start, start + 1, offset, self._after_gap(stretch))
            start += 1
        return self._cut(t, max(start, fresh), end, offset, self._fresh)

    def _after_gap(self, stretch: Stretch) -> _Faces:
        """Return what holds for the one instant after a gap."""
        local = stretch.start + stretch.offset
        if self._swallowed.first(stretch.gap_from, local) is None:
            return self._fresh
        if _matches(self._excluded, local):
            return _Faces(ALWAYS, NEVER, ALWAYS)
        return _Faces(ALWAYS, ALWAYS, NEVER)


class IntervalTimeline(Timeline):
    """The slots of an interval: elapsed time. It has a zone only for what its exclusions mean."""

    def __init__(
        self, anchor: int, interval: int, zone: Zone, *, excluded: tuple[Expression, ...], closed: Intervals
    ) -> None:
        super().__init__(closed, _CYCLE + interval)
        self._anchor = anchor
        self._interval = interval
        self._zone = zone
        self._excluded = excluded
        every = Every(anchor, interval)
        self._plain = _Faces(every, every, NEVER)
        self._by_offset: dict[int, _Faces] = {}

    def _piece(self, t: int) -> Piece:
        if not self._excluded:
            return self._cut(t, -FOREVER, FOREVER, 0, self._plain)
        start, end, offset, _, _ = self._zone.stretch(t)
        faces = self._by_offset.get(offset)
        if faces is None:
            faces = self._by_offset[offset] = self._filtered(self._anchor + offset)
        return self._cut(t, start, end, offset, faces)

    def _filtered(self, anchor: int) -> _Faces:
        return _Faces(
            Every(anchor, self._interval),
            EveryFiltered(anchor, self._interval, self._excluded, inside=False),
            EveryFiltered(anchor, self._interval, self._excluded, inside=True),
        )


def _faces(expressions: tuple[Expression, ...], excluded: tuple[Expression, ...]) -> _Faces:
    if not expressions:
        return _Faces(NEVER, NEVER, NEVER)
    everything = Simple(expressions[0]) if len(expressions) == 1 else Union(expressions)
    if not excluded:
        return _Faces(everything, everything, NEVER)
    return _Faces(everything, Union(expressions, excluded), Union(expressions, excluded, inside=True))


def _matches(expressions: tuple[Expression, ...], local: int) -> bool:
    """Whether one of these exclusions covers a local time."""
    return any(_covers(expression, local) for expression in expressions)


def _covers(expression: Expression, local: int) -> bool:
    minute = local if expression.has_seconds else local - local % 60
    return Simple(expression).first(minute, minute + 1) is not None
