"""Intervals, single times, and what bounds them all: startsAt, expiresAt, exclusions, jitter."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.timing.asking import UID, at, local, timetable, utc

from cronwright.timing import Exclusion, Timetable, TimingError, When, compile_when, format_instant

CREATED = "2027-01-01T10:00:07Z"
NEW_YORK = "America/New_York"


def every(seconds: int, **fields: Any) -> Timetable:
    return compile_when(When(interval=seconds, **fields), uid=UID, created=at(CREATED))


def once(moment: str, **fields: Any) -> Timetable:
    return compile_when(When(at=at(moment), **fields), uid=UID, created=at(CREATED))


def left_out(table: Timetable, begin: str, end: str) -> list[str]:
    return [format_instant(slot) for slot, runs in table.every(at(begin), at(end)) if not runs]


def test_an_interval_counts_from_the_creation_which_is_no_slot_itself() -> None:
    assert utc(every(90), "2020-01-01T00:00Z", 3) == [
        "2027-01-01T10:01:37Z",
        "2027-01-01T10:03:07Z",
        "2027-01-01T10:04:37Z",
    ]


def test_an_anchor_is_a_slot_and_none_comes_before_it() -> None:
    table = every(3600, anchor=at("2027-01-01T12:30Z"))
    assert utc(table, "2020-01-01T00:00Z", 2) == ["2027-01-01T12:30:00Z", "2027-01-01T13:30:00Z"]


def test_an_interval_never_drifts() -> None:
    table = every(7, anchor=at("2000-01-01T00:00Z"))
    after = at("2027-06-01T00:00Z")
    first = table.next(after)
    assert first is not None
    assert (first - at("2000-01-01T00:00Z")) % 7 == 0
    assert after < first <= after + 7
    assert table.count(at("2000-01-01T00:00Z"), after).runnable == (after - at("2000-01-01T00:00Z")) // 7


def test_an_interval_is_elapsed_time_whatever_the_clocks_do() -> None:
    table = every(6 * 3600, anchor=at("2027-03-14T05:00Z"), time_zone=NEW_YORK)
    assert local(table, NEW_YORK, "2027-03-14T05:00Z", "2027-03-15T05:00Z") == [
        "03-14 00:00 -0500",
        "03-14 07:00 -0400",
        "03-14 13:00 -0400",
        "03-14 19:00 -0400",
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"interval": 0}, "spec.schedule.interval: 0s is too short; write 1s or more"),
        ({"interval": 60, "jitter": -1}, "spec.schedule.jitter: -1s is negative; write 0s or more"),
    ],
)
def test_a_length_that_makes_no_sense_is_refused(fields: dict[str, int], sentence: str) -> None:
    with pytest.raises(TimingError, match=f"^{re.escape(sentence)}$"):
        compile_when(When(**fields), uid=UID, created=0)  # type: ignore[arg-type]


def test_an_interval_of_a_second_is_the_shortest() -> None:
    assert utc(every(1), "2027-01-02T00:00Z", 2) == ["2027-01-02T00:00:01Z", "2027-01-02T00:00:02Z"]


def test_a_single_time_is_one_slot() -> None:
    table = once("2027-05-01T12:00Z")
    assert utc(table, "2020-01-01T00:00Z", 5) == ["2027-05-01T12:00:00Z"]
    assert utc(table, "2027-05-01T12:00Z", 5) == []


def test_a_single_time_of_the_past_is_a_slot_that_the_watermark_has_passed() -> None:
    assert utc(once("2026-12-31T00:00Z"), CREATED, 5) == []


def test_both_ends_of_the_window_are_inside() -> None:
    table = timetable("0 * * * *", starts_at=at("2027-01-01T10:00Z"), expires_at=at("2027-01-01T12:00Z"))
    assert utc(table, "2020-01-01T00:00Z", 9) == [
        "2027-01-01T10:00:00Z",
        "2027-01-01T11:00:00Z",
        "2027-01-01T12:00:00Z",
    ]
    assert table.count(0, at("2030-01-01T00:00Z")) == (3, 0)
    assert table.last(at("2030-01-01T00:00Z"), 0) == at("2027-01-01T12:00Z")


def test_a_single_time_at_the_moment_of_expiry_runs() -> None:
    moment = "2027-05-01T12:00:00Z"
    assert utc(once(moment, expires_at=at(moment), starts_at=at(moment)), CREATED, 2) == [moment]


def test_a_window_does_not_move_the_slots_of_an_interval() -> None:
    table = every(3600, starts_at=at("2027-01-02T00:00Z"))
    assert utc(table, CREATED, 2) == ["2027-01-02T00:00:07Z", "2027-01-02T01:00:07Z"]


def test_a_day_is_left_out_in_the_schedules_zone() -> None:
    table = timetable("0 */12 * * *", time_zone=NEW_YORK, exclude=(Exclusion(date="2027-07-04"),))
    assert local(table, NEW_YORK, "2027-07-03T12:00Z", "2027-07-05T13:00Z") == [
        "07-03 12:00 -0400",
        "07-05 00:00 -0400",
    ]
    assert left_out(table, "2027-07-03T12:00Z", "2027-07-05T13:00Z") == ["2027-07-04T04:00:00Z", "2027-07-04T16:00:00Z"]
    assert table.count(at("2027-07-03T12:00Z"), at("2027-07-05T13:00Z")) == (2, 2)


@pytest.mark.parametrize(
    ("begin", "end", "gone"),
    [
        # Days: the last one is left out as a whole.
        ("2027-07-03", "2027-07-04", ["07-03T12", "07-04T00", "07-04T12"]),
        # Moments: the beginning is left out, the end is not.
        ("2027-07-03T12:00:00Z", "2027-07-04T12:00:00Z", ["07-03T12", "07-04T00"]),
        # Local times, which the offline tools take.
        ("2027-07-03T12:00", "2027-07-04T00:00:01", ["07-03T12", "07-04T00"]),
    ],
)
def test_a_stretch_is_left_out(begin: str, end: str, gone: list[str]) -> None:
    table = timetable("0 */12 * * *", exclude=(Exclusion(from_=begin, to=end),))
    assert [text[5:13] for text in left_out(table, "2027-07-03T00:00Z", "2027-07-06T00:00Z")] == gone


def test_a_day_that_begins_twice_is_left_out_in_both_its_parts() -> None:
    # St. John's used to put its clocks back at 00:01: Sunday began, became Saturday again, and began anew.
    place = "America/St_Johns"
    table = timetable("*/30 * * * *", time_zone=place, exclude=(Exclusion(date="2010-11-07"),))
    assert local(table, place, "2010-11-07T01:30Z", "2010-11-07T04:30Z") == [
        "11-06 23:00 -0230",
        "11-06 23:30 -0230",
        "11-06 23:30 -0330",
    ]
    assert left_out(table, "2010-11-07T01:30Z", "2010-11-07T03:30Z") == ["2010-11-07T02:30:00Z", "2010-11-07T03:30:00Z"]


def test_an_expression_leaves_out_what_it_matches_and_a_minute_counts_as_a_whole() -> None:
    nights = (Exclusion(cron="* 0-5 * * *"),)
    table = timetable("0 */3 * * *", "30 5 * * * 45", exclude=nights)
    assert [text[11:] for text in utc(table, "2027-01-01T00:00Z", 3)] == ["06:00:00Z", "09:00:00Z", "12:00:00Z"]
    assert [text[11:] for text in left_out(table, "2027-01-01T00:00Z", "2027-01-01T12:00Z")] == [
        "03:00:00Z",
        "05:30:45Z",
    ]
    table = every(4 * 3600, exclude=nights)  # at 02:00:07, 06:00:07, ...
    assert [text[11:] for text in utc(table, "2027-01-02T00:00Z", 6)][-2:] == ["22:00:07Z", "06:00:07Z"]


def test_an_exclusion_by_cron_is_read_in_the_zone_on_both_sides_of_a_clock_change() -> None:
    table = every(3600, anchor=at("2027-03-14T00:00Z"), time_zone=NEW_YORK, exclude=(Exclusion(cron="* 1-3 * * *"),))
    assert local(table, NEW_YORK, "2027-03-14T05:00Z", "2027-03-14T09:00Z") == [
        "03-14 00:00 -0500",
        "03-14 04:00 -0400",
    ]


def test_what_a_gap_moved_is_left_out_where_it_lands() -> None:
    table = timetable("30 2 * * *", time_zone=NEW_YORK, exclude=(Exclusion(cron="0 3 * * *"),))
    assert local(table, NEW_YORK, "2027-03-14T05:00Z", "2027-03-15T12:00Z") == ["03-15 02:30 -0400"]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (Exclusion(), "spec.schedule.exclude[0]: this entry says nothing; write date, or from and to, or cron"),
        (
            Exclusion(date="2027-02-30"),
            'spec.schedule.exclude[0].date: "2027-02-30" is not a date; write for example "2026-12-25"',
        ),
        (
            Exclusion(from_="2027-02-01"),
            'spec.schedule.exclude[0]: this entry has only "from"; write date, or from and to, or cron',
        ),
        (
            Exclusion(from_="2027-02-02", to="2027-02-01"),
            'spec.schedule.exclude[0].to: "2027-02-01" does not come after from ("2027-02-02"); write a later time or '
            "exchange them",
        ),
        (
            Exclusion(cron="H 3 * * *"),
            'spec.schedule.exclude[0].cron: "H" in "H 3 * * *" would leave out a time that nobody chose; '
            "write the time",
        ),
        (Exclusion(cron="* * * * *"), "spec.schedule.exclude: leaves no slot to run; exclude less"),
    ],
)
def test_a_bad_exclusion_is_refused(entry: Exclusion, sentence: str) -> None:
    with pytest.raises(TimingError, match=f"^{re.escape(sentence)}$"):
        timetable("0 3 * * *", exclude=(entry,))


def test_jitter_moves_the_start_and_not_the_slot() -> None:
    table = timetable("0 * * * *", jitter=600)
    slots = table.slots(at("2027-01-01T00:00Z"), at("2027-03-01T00:00Z"), 1000)
    delays = [table.due(slot) - slot for slot in slots]
    assert all(slot % 3600 == 0 for slot in slots)
    assert all(0 <= delay <= 600 for delay in delays)
    assert min(delays) < 30
    assert max(delays) > 570
    assert delays == [table.due(slot) - slot for slot in slots]
    assert delays != [timetable("0 * * * *", jitter=600, uid="other").due(slot) - slot for slot in slots]


def test_jitter_never_reaches_the_next_slot_nor_into_what_is_left_out() -> None:
    for table in (
        timetable("* * * * *", jitter=3600),
        timetable("* * * * *", jitter=3600, exclude=(Exclusion(cron="* 0-5 * * *"),)),
    ):
        for slot in table.slots(at("2027-01-01T23:00Z"), at("2027-01-02T07:00Z"), 1000):
            assert slot <= table.due(slot) < slot + 60


def test_jitter_of_a_single_time_and_of_the_last_slot_is_not_cut_off() -> None:
    moment = at("2027-05-01T12:00Z")
    single = [compile_when(When(at=moment, jitter=100), uid=str(n), created=0).due(moment) for n in range(300)]
    last = [timetable("0 * * * *", uid=str(n), jitter=100, expires_at=moment).due(moment) for n in range(300)]
    for due in (single, last):
        assert min(due) < moment + 10
        assert moment + 90 < max(due) <= moment + 100


def test_a_schedule_that_ends_earlier_keeps_its_other_slots_and_its_jitter() -> None:
    table = timetable("0 * * * *", jitter=600)
    short = table.ending(at("2027-01-01T02:00Z"))
    assert utc(short, "2027-01-01T00:00Z", 9) == ["2027-01-01T01:00:00Z", "2027-01-01T02:00:00Z"]
    assert short.due(at("2027-01-01T02:00Z")) == table.due(at("2027-01-01T02:00Z"))
