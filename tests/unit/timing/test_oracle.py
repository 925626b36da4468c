"""Every zone, around every clock change of 2000 to 2040, against two other opinions.

The oracle knows no arithmetic and no cron parser: it walks through real minutes, asks zoneinfo what the clocks on the
wall show, remembers what they have shown before, and matches by predicates written by hand. cronsim, which
follows Debian's rules too, is asked wherever its dialect and ours agree.

A zone stands for all that keep the same time in these years. Around each of its changes every expression is compared,
under two of the four rules for gaps and overlaps, which take turns from change to change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from tests.unit.timing import tzif

from cronwright.timing import Timetable, When, compile_when, parse_instant
from cronwright.timing.zones import zone, zone_names

FIRST, LAST = parse_instant("2000-01-01T00:00:00Z"), parse_instant("2041-01-01T00:00:00Z")
MINUTE = timedelta(minutes=1)
MODES: list[tuple[Literal["RunAfter", "Skip"], Literal["Once", "Twice"]]] = [
    ("RunAfter", "Once"),
    ("Skip", "Twice"),
    ("RunAfter", "Twice"),
    ("Skip", "Once"),
]

Predicate = Callable[[datetime], bool]

WALL_CLOCK: dict[str, Predicate] = {
    "30 2 * * *": lambda t: (t.hour, t.minute) == (2, 30),
    "0 3 * * *": lambda t: (t.hour, t.minute) == (3, 0),
    "0 0 * * *": lambda t: (t.hour, t.minute) == (0, 0),
    "15,45 0-3 * * *": lambda t: t.hour <= 3 and t.minute in (15, 45),
    "1 23 * * *": lambda t: (t.hour, t.minute) == (23, 1),
    "0-59/7 1-4 * * *": lambda t: 1 <= t.hour <= 4 and t.minute % 7 == 0,
    "59 0-23/2 * * *": lambda t: t.hour % 2 == 0 and t.minute == 59,
    "30 0,1,2 * * 5-7": lambda t: t.hour <= 2 and t.minute == 30 and t.isoweekday() >= 5,
    "20 1 * 3,10 SUN": lambda t: (t.hour, t.minute) == (1, 20) and t.month in (3, 10) and t.isoweekday() == 7,
    "0 1 1-7 * SUN": lambda t: (t.hour, t.minute) == (1, 0) and (t.day <= 7 or t.isoweekday() == 7),
}
WALL_CLOCK_OF_OURS: dict[str, Predicate] = {
    "45 1,2 L * *": lambda t: t.hour in (1, 2) and t.minute == 45 and (t + timedelta(days=1)).day == 1,
    "5 2 * * 0#2": lambda t: (t.hour, t.minute) == (2, 5) and t.isoweekday() == 7 and 8 <= t.day <= 14,
    "0 2 * * L0": lambda t: (t.hour, t.minute) == (2, 0) and t.isoweekday() == 7 and (t + timedelta(7)).day <= 7,
}
REAL_TIME: dict[str, Predicate] = {
    "*/20 * * * *": lambda t: t.minute % 20 == 0,
    "30 * * * *": lambda t: t.minute == 30,
    "*/10 2 * * *": lambda t: t.hour == 2 and t.minute % 10 == 0,
    "0 */2 * * *": lambda t: t.hour % 2 == 0 and t.minute == 0,
}
EVERYTHING = WALL_CLOCK | WALL_CLOCK_OF_OURS | REAL_TIME


@dataclass
class Minute:
    """One real minute: what the clocks show, which minutes they skipped before it, whether it is a repetition."""

    at: int
    shows: datetime
    skipped: list[datetime]
    repeated: bool


def walk(tz: ZoneInfo, begin: int, end: int) -> list[Minute]:
    minutes: list[Minute] = []
    furthest: datetime | None = None
    for at in range(begin, end, 60):
        shows = datetime.fromtimestamp(at, tz).replace(tzinfo=None)
        skipped = []
        while furthest is not None and furthest + MINUTE < shows:
            furthest += MINUTE
            skipped.append(furthest)
        minutes.append(Minute(at, shows, skipped, furthest is not None and shows <= furthest))
        furthest = shows if furthest is None else max(furthest, shows)
    return minutes


@cache
def matching(shows: datetime) -> frozenset[str]:
    """Return the expressions that match what a clock shows: zones show the same, so each is asked once."""
    return frozenset(expression for expression, matches in EVERYTHING.items() if matches(shows))


def expected(minutes: list[Minute]) -> dict[tuple[str, str, str], list[int]]:
    """Return the slots of each expression under each rule."""
    found: dict[tuple[str, str, str], list[int]] = {(e, *mode): [] for e in EVERYTHING for mode in MODES}
    for minute in minutes:
        swallowed = frozenset().union(*map(matching, minute.skipped)) - REAL_TIME.keys()
        for expression in matching(minute.shows) | swallowed:
            for gap, overlap in MODES:
                shown = expression in matching(minute.shows) and (
                    expression in REAL_TIME or overlap == "Twice" or not minute.repeated
                )
                if shown or (expression in swallowed and gap == "RunAfter"):
                    found[expression, gap, overlap].append(minute.at)
    return found


@cache
def distinct_zones() -> dict[str, list[tuple[int, int]]]:
    """Return each zone once, with its changes by how much: a name that keeps the same time as another is left out."""
    names: dict[tuple[object, ...], str] = {}
    known = {tzif.content(name): name for name in sorted(zone_names(), reverse=True)}
    for name in known.values():
        names[zone(name).stretch(FIRST).offset, *tzif.changes(name, FIRST, LAST)] = name
    return {name: [(at, new - old) for at, old, new in tzif.changes(name, FIRST, LAST)] for name in names.values()}


@cache
def timetable(expression: str, name: str, mode: int) -> Timetable:
    gap, overlap = MODES[mode]
    when = When(crons=(expression,), time_zone=name, on_gap=gap, on_overlap=overlap)
    return compile_when(when, uid="oracle", created=FIRST)


def slots(expression: str, name: str, mode: int, begin: int, end: int) -> list[int]:
    table = timetable(expression, name, mode)
    found = table.slots(begin - 1, end - 1, 100_000)
    assert table.count(begin - 1, end - 1) == (len(found), 0)
    return found


def test_every_zone_agrees_with_a_walk_through_real_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    compared = zones = slots_compared = 0
    for name, known in distinct_zones().items():
        zones += 1
        for n, (at, shift) in enumerate(known or [((FIRST + LAST) // 2, 0)]):
            # What was shown before matters as far as it is repeated; the rest of the time is like any other.
            repeated = max(0, -shift)
            begin = (at - repeated - 1800) // 60 * 60
            end = at + repeated + 5400
            wanted = expected(walk(tzif.clock(name), begin, end))
            for i, expression in enumerate(EVERYTHING):
                for mode in ((n + i) % 2, (n + i) % 2 + 2):
                    found = slots(expression, name, mode, begin, end)
                    assert found == wanted[expression, *MODES[mode]], (name, at, expression, MODES[mode])
                    compared += 1
                    slots_compared += len(found)
    with capsys.disabled():
        print(f"\noracle: {compared:,} cases ({zones} zones), {slots_compared:,} slots agree", end=" ")  # noqa: T201
    assert compared > 200_000


def test_every_zone_agrees_with_cronsim(capsys: pytest.CaptureFixture[str]) -> None:
    compared = left_out = 0
    shared = [*WALL_CLOCK, *REAL_TIME]
    for z, (name, known) in enumerate(distinct_zones().items()):
        tz = tzif.clock(name)
        for n, (at, shift) in enumerate(known):
            expression = shared[(n + z) % len(shared)]
            begin = at - 7200 - abs(shift)
            if expression in REAL_TIME and (at % 3600 or shift % 3600):
                # It steps by whole hours: it loses or repeats slots where clocks change at 00:01 (Moncton) or by
                # half an hour (Lord Howe).
                left_out += 1
                continue
            simulated = CronSim(expression, datetime.fromtimestamp(begin, tz))
            theirs = [int(next(simulated).astimezone(UTC).timestamp()) for _ in range(4)]
            assert slots(expression, name, 0, begin + 1, theirs[-1] + 1) == theirs, (name, at, expression)
            compared += 1
    with capsys.disabled():
        print(f"\ncronsim: {compared:,} cases agree, {left_out} left out", end=" ")  # noqa: T201
    assert compared > 5_000
    assert left_out < 200
