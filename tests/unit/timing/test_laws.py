"""What holds for every schedule: laws over expressions, zones, windows and moments that nobody chose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.unit.timing import tzif
from tests.unit.timing.asking import at

from cronwright.timing import (
    CatchUp,
    Exclusion,
    Timetable,
    TimingError,
    When,
    compile_when,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
    settle,
)

LAWS = settings(max_examples=100, deadline=None)
DAY = 86_400

# Zones with every kind of trouble, and moments close to it.
ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "America/St_Johns"]
TROUBLE = [
    at(moment)
    for moment in (
        "2027-03-14T07:00Z",
        "2027-11-07T06:00Z",
        "2027-10-02T15:30Z",
        "2018-11-04T03:00Z",
        "2018-02-18T02:00Z",
        "2011-12-30T10:00Z",
        "2010-11-07T02:31Z",
        "2028-02-29T00:00Z",
    )
]

moments = st.one_of(
    st.integers(at("2001-01-01T00:00Z"), at("2039-01-01T00:00Z")),
    st.tuples(st.sampled_from(TROUBLE), st.integers(-2 * DAY, 2 * DAY)).map(sum),
)


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(sorted).map(lambda pair: f"{pair[0]}-{pair[1]}")
    steps = st.integers(2, max(2, (high - low) // 2)).map(lambda step: f"*/{step}")
    lists = st.lists(numbers, min_size=1, max_size=3, unique=True).map(lambda values: ",".join(map(str, values)))
    return st.one_of(st.just("*"), lists, ranges, steps)


@st.composite
def crons(draw: st.DrawFn) -> str:
    parts = [draw(fields(*bounds)) for bounds in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))]
    if draw(st.integers(0, 3)) == 0:
        parts.append(draw(fields(0, 59)))
    return " ".join(parts)


@st.composite
def exclusions(draw: st.DrawFn) -> Exclusion:
    if draw(st.booleans()):
        return Exclusion(cron=draw(crons()))
    begin = draw(moments)
    return Exclusion(from_=format_instant(begin), to=format_instant(begin + draw(st.integers(1, 3 * DAY))))


@st.composite
def timetables(draw: st.DrawFn) -> Timetable:
    when: dict[str, Any] = {
        "time_zone": draw(st.sampled_from(ZONES)),
        "jitter": draw(st.sampled_from([0, 0, 45, 7200])),
    }
    kind = draw(st.sampled_from(["cron", "cron", "cron", "interval"]))
    if kind == "cron":
        when |= {"crons": tuple(draw(st.lists(crons(), min_size=1, max_size=3)))}
        when |= {"on_gap": draw(st.sampled_from(["RunAfter", "Skip"]))}
        when |= {"on_overlap": draw(st.sampled_from(["Once", "Twice"]))}
    else:
        when |= {"interval": draw(st.sampled_from([7, 60, 420, 3600, 5000, DAY, 100_000])), "anchor": 12_345}
    when["exclude"] = tuple(draw(st.lists(exclusions(), max_size=2)))
    try:
        return compile_when(When(**when), uid=draw(st.text("abc", max_size=3)), created=0)
    except TimingError:
        assume(False)
        raise


def ranges() -> st.SearchStrategy[tuple[int, int]]:
    lengths = st.sampled_from([1, 60, 3600, 4 * 3600, DAY])
    return st.tuples(moments, lengths).map(lambda pair: (pair[0], pair[0] + pair[1]))


@LAWS
@given(timetables(), ranges())
def test_slots_increase_and_each_is_the_next_after_the_one_before(table: Timetable, within: tuple[int, int]) -> None:
    found = table.slots(*within, 500)
    expected, after = [], within[0]
    for _ in found:
        following = table.next(after)
        assert following is not None
        assert after < following <= within[1]
        expected.append(following)
        after = following
    assert found == expected
    assert len(set(found)) == len(found)
    if len(found) < 500:
        rest = table.next(after)
        assert rest is None or rest > within[1]


@LAWS
@given(timetables(), ranges())
def test_counts_and_last_slots_agree_with_the_list_of_slots(table: Timetable, within: tuple[int, int]) -> None:
    slots = list(table.every(*within))
    runnable, excluded = [s for s, runs in slots if runs], [s for s, runs in slots if not runs]
    assert table.count(*within) == (len(runnable), len(excluded))
    after, until = within
    assert table.last(until, after) == (runnable[-1] if runnable else None)
    assert table.last_excluded(until, after) == (excluded[-1] if excluded else None)
    assert table.latest(after, until, 3) == runnable[-3:]
    assert table.slots(after, until, 3) == runnable[:3]


@LAWS
@given(timetables(), moments)
def test_a_slot_is_due_before_the_next_one(table: Timetable, after: int) -> None:
    slots = table.slots(after, after + 20 * DAY, 20)
    due = [table.due(slot) for slot in slots]
    assert all(slot <= then for slot, then in zip(slots, due, strict=True))
    assert all(then < following for then, following in zip(due, slots[1:], strict=False))


def matches(field: str, value: int, low: int) -> bool:
    """Whether a field of the forms that `fields` makes has this value: written anew, and from no code of ours."""
    if field.startswith("*"):
        return (value - low) % int(field[2:] or 1) == 0
    if "-" in field:
        first, last = map(int, field.split("-"))
        return first <= value <= last
    return value in map(int, field.split(","))


def wall_clock_matches(cron: str, shown: datetime) -> bool:
    minute, hour, day, month, weekday, *second = cron.split()
    by_day, by_week = matches(day, shown.day, 1), matches(weekday, shown.isoweekday() % 7, 0)
    either = day != "*" and weekday != "*"
    return (
        matches(minute, shown.minute, 0)
        and matches(hour, shown.hour, 0)
        and matches(month, shown.month, 1)
        and ((by_day or by_week) if either else (by_day and by_week))
        and matches(second[0] if second else "0", shown.second, 0)
    )


@LAWS
@given(crons(), st.sampled_from(ZONES), moments)
@example("0 0 29 2 *", "UTC", at("2027-01-01T00:00Z"))
def test_a_slot_matches_and_nothing_between_two_slots_does(cron: str, zone: str, after: int) -> None:
    when = When(crons=(cron,), time_zone=zone, on_gap="Skip", on_overlap="Twice")  # every match is a slot, and no other
    try:
        table = compile_when(when, uid="", created=0)
    except TimingError:
        assume(False)
        raise
    tz = tzif.clock(zone)
    step = 1 if len(cron.split()) == 6 else 60
    until = after + 2000 * step
    by_hand = [
        moment
        for moment in range(after - after % step + step, until + 1, step)
        if wall_clock_matches(cron, datetime.fromtimestamp(moment, UTC).astimezone(tz))
    ]
    assert table.slots(after, until, 10_000) == by_hand


@LAWS
@given(
    timetables(),
    moments,
    st.lists(st.integers(0, 2 * DAY), min_size=1, max_size=5),
    st.sampled_from(["Skip", "RunOnce", "RunAll"]),
    st.sampled_from([None, 1, 3600, DAY]),
    st.sampled_from([0, 60, 7200]),
    st.integers(1, 6),
)
def test_catch_up_accounts_for_each_slot_once(
    table: Timetable,
    created: int,
    outages: list[int],
    policy: Literal["Skip", "RunOnce", "RunAll"],
    window: int | None,
    tolerance: int,
    max_runs: int,
) -> None:
    catch_up = CatchUp(policy=policy, window=window, tolerance=tolerance, max_runs=max_runs)
    watermark, now = created, created
    accounted: list[int] = []
    skipped = missed = 0
    for outage in outages:
        now += outage
        settlement = settle(table, watermark=watermark, now=now, catch_up=catch_up)
        assert settlement.watermark >= watermark
        assert all(watermark < slot <= settlement.watermark for slot in settlement.run)
        assert all(table.due(slot) <= now for slot in settlement.run)
        assert len(settlement.run) <= {"Skip": 1, "RunOnce": 1, "RunAll": max_runs + 1}[policy]
        made_up = settlement.run[:-1] if settlement.late else settlement.run
        assert all(window is None or now - table.due(slot) <= window for slot in made_up)
        due = table.count(watermark, settlement.watermark)
        by_reason = {skip.reason: skip.count for skip in settlement.skipped}
        assert all(by_reason.values())
        assert by_reason.get("Excluded", 0) == due.excluded
        assert len(settlement.run) + settlement.missed == due.runnable
        accounted += settlement.run
        skipped += sum(by_reason.values())
        missed += settlement.missed
        watermark = settlement.watermark
        following = table.next(watermark)
        assert following is None or table.due(following) > now
    assert accounted == sorted(set(accounted))
    assert len(accounted) + skipped == sum(table.count(created, watermark))


@given(st.integers(0, 10**9))
def test_a_duration_is_read_as_it_was_written(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(at("1900-01-01T00:00Z"), at("9998-01-01T00:00Z")))
def test_an_instant_is_read_as_it_was_written(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant
