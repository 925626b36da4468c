"""A schedule's timing, compiled: what all other rooms of the operator ask about time.

`When` is what a person wrote, `compile_when` judges it once, and a `Timetable` answers from then on. A
timetable is small (a window, a jitter and a uid around a shared timeline): 10,000 schedules that say the
same share one timeline. Nothing here knows the time of day it is; instants come in and go out as unix
seconds.

A *slot* is an instant at which the schedule says to run. It is *runnable* unless an exclusion covers it.
Slots outside of the window [startsAt, expiresAt] do not exist, so they are neither runnable nor excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from cronwright.timing.cron import Expression, expression
from cronwright.timing.dialect import CronError
from cronwright.timing.errors import TimingError
from cronwright.timing.exclusions import Exclusion, closed_intervals, excluded_expressions
from cronwright.timing.jitter import jitter
from cronwright.timing.timelines import FOREVER, CronTimeline, IntervalTimeline, Timeline
from cronwright.timing.zones import Zone, zone

# The last year of datetime is 9999; a slot beyond could not be written down.
_LATEST = 253_370_764_800


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """When to run, as written, with times as unix seconds: exactly one of `at`, `interval` and `crons`."""

    at: int | None = None
    interval: int | None = None
    crons: tuple[str, ...] = ()
    time_zone: str = "UTC"
    anchor: int | None = None  # a slot of the interval; default: the schedule's creation, itself not a slot
    jitter: int = 0
    exclude: tuple[Exclusion, ...] = ()
    on_gap: Literal["RunAfter", "Skip"] = "RunAfter"
    on_overlap: Literal["Once", "Twice"] = "Once"
    starts_at: int | None = None  # inclusive
    expires_at: int | None = None  # inclusive


class Count(NamedTuple):
    """How many slots run and how many an exclusion leaves out."""

    runnable: int
    excluded: int


class Timetable:
    """The slots of one schedule."""

    __slots__ = ("_begin", "_end", "_jitter", "_timeline", "_uid")

    def __init__(self, timeline: Timeline, *, begin: int, end: int, uid: str, jitter: int) -> None:
        self._timeline = timeline
        self._begin = begin
        self._end = end
        self._uid = uid
        self._jitter = jitter

    def next(self, after: int) -> int | None:
        """Return the first runnable slot later than `after`."""
        begin = after + 1
        return self._timeline.first_run(begin if begin > self._begin else self._begin, self._end)

    def last(self, until: int, after: int) -> int | None:
        """Return the latest runnable slot in (after, until]."""
        return self._timeline.final(*self._window(after, until))

    def last_excluded(self, until: int, after: int) -> int | None:
        """Return the latest excluded slot in (after, until]."""
        return self._timeline.final(*self._window(after, until), excluded=True)

    def count(self, after: int, until: int) -> Count:
        """Return the exact number of slots in (after, until]."""
        return Count(*self._timeline.count(*self._window(after, until)))

    def slots(self, after: int, until: int, limit: int) -> list[int]:
        """Return the first `limit` runnable slots in (after, until], ascending."""
        found: list[int] = []
        begin, end = self._window(after, until)
        while len(found) < limit and (slot := self._timeline.first_run(begin, end)) is not None:
            found.append(slot)
            begin = slot + 1
        return found

    def latest(self, after: int, until: int, limit: int) -> list[int]:
        """Return the last `limit` runnable slots in (after, until], ascending."""
        found: list[int] = []
        begin, end = self._window(after, until)
        while len(found) < limit and (slot := self._timeline.final(begin, end)) is not None:
            found.append(slot)
            end = slot
        return found[::-1]

    def every(self, after: int, until: int) -> Iterator[tuple[int, bool]]:
        """Yield each slot in (after, until] and whether it runs: False where an exclusion covers it."""
        begin, end = self._window(after, until)
        while (slot := self._timeline.first_slot(begin, end)) is not None:
            yield slot, self._timeline.first_run(slot, slot + 1) == slot
            begin = slot + 1

    def due(self, slot: int) -> int:
        """Return when the run of a slot starts: the slot and its jitter, always before the next slot.

        That is the next one of all, run or not: a jitter must not lead into a night that is excluded.
        """
        if not self._jitter:
            return slot
        following = self._timeline.first_slot(slot + 1, slot + self._jitter + 1)
        most = self._jitter if following is None else following - slot - 1
        return slot + jitter(self._uid, slot, most)

    def last_due(self, now: int, after: int) -> int | None:
        """Return the latest runnable slot later than `after` whose due time has come by `now`."""
        slot = self.last(now, after)
        if slot is not None and self.due(slot) > now:
            # Its jitter has not passed. Only the latest slot can be so, as a slot is due before the next one.
            return self.last(slot - 1, after)
        return slot

    def ending(self, at: int) -> Timetable:
        """Return the same timetable without the slots later than `at`."""
        end = min(self._end, at + 1)
        return Timetable(self._timeline, begin=self._begin, end=end, uid=self._uid, jitter=self._jitter)

    def _window(self, after: int, until: int) -> tuple[int, int]:
        return max(after + 1, self._begin), min(until + 1, self._end)


def compile_when(
    when: When,
    *,
    uid: str,
    created: int,
    field: str = "spec.schedule",
    single_cron_field: str = "spec.schedule.cron",
) -> Timetable:
    """Return the timetable of a schedule; TimingError if it cannot be kept or would never run.

    `created` is the default anchor of an interval. `field` is where the schedule stands in its resource, for
    messages; `single_cron_field` is the name of an expression that is the only one.
    """
    given = [name for name, value in (("at", when.at), ("interval", when.interval)) if value is not None]
    given += ["cron"] if when.crons else []
    if len(given) != 1:
        said = " and ".join(given) or "none"
        raise TimingError("InvalidSchedule", field, f"says {said}; write exactly one of at, interval, cron or crons")
    if when.jitter < 0:
        raise TimingError("InvalidDuration", f"{field}.jitter", f"{when.jitter}s is negative; write 0s or more")
    place = _zone(when.time_zone, f"{field}.timeZone")
    begin, end = -_LATEST, _LATEST
    if when.at is not None:
        timeline: Timeline = _interval_timeline(when.at, FOREVER, place, when.exclude, field)
        begin, end = when.at, when.at + 1
    elif when.interval is not None:
        if when.interval < 1:
            problem = f"{when.interval}s is too short; write 1s or more"
            raise TimingError("InvalidDuration", f"{field}.interval", problem)
        anchor = created if when.anchor is None else when.anchor
        timeline = _interval_timeline(anchor % when.interval, when.interval, place, when.exclude, field)
        begin = created + 1 if when.anchor is None else when.anchor
    else:
        names = [single_cron_field]
        if len(when.crons) > 1:
            names = [f"{field}.crons[{i}]" for i in range(len(when.crons))]
        expressions = tuple(_expression(*pair, uid) for pair in zip(when.crons, names, strict=True))
        run_after, twice = when.on_gap == "RunAfter", when.on_overlap == "Twice"
        timeline = _cron_timeline(expressions, place, run_after, twice, when.exclude, field)
    if when.exclude and timeline.first_run(max(begin, created), end) is None and when.at is None:
        raise TimingError("NeverRuns", f"{field}.exclude", "leaves no slot to run; exclude less")
    return Timetable(
        timeline,
        begin=begin if when.starts_at is None else max(begin, when.starts_at),
        end=end if when.expires_at is None else min(end, when.expires_at + 1),
        uid=uid,
        jitter=when.jitter,
    )


def _zone(key: str, field: str) -> Zone:
    try:
        return zone(key)
    except ValueError as error:
        raise TimingError("UnknownTimeZone", field, str(error)) from None


def _expression(text: str, field: str, uid: str) -> Expression:
    try:
        return expression(text, uid)
    except CronError as error:
        raise TimingError(error.reason, field, str(error)) from None


@lru_cache(maxsize=16_384)
def _cron_timeline(
    expressions: tuple[Expression, ...],
    place: Zone,
    run_after_gap: bool,
    run_twice: bool,
    exclude: tuple[Exclusion, ...],
    field: str,
) -> Timeline:
    return CronTimeline(
        tuple(dict.fromkeys(expressions)),
        place,
        run_after_gap=run_after_gap,
        run_twice=run_twice,
        excluded=excluded_expressions(exclude, f"{field}.exclude"),
        closed=closed_intervals(exclude, place, f"{field}.exclude"),
    )


@lru_cache(maxsize=4096)
def _interval_timeline(anchor: int, interval: int, place: Zone, exclude: tuple[Exclusion, ...], field: str) -> Timeline:
    return IntervalTimeline(
        anchor,
        interval,
        place,
        excluded=excluded_expressions(exclude, f"{field}.exclude"),
        closed=closed_intervals(exclude, place, f"{field}.exclude"),
    )
