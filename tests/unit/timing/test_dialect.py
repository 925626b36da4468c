"""The dialect of cron: what each form means, by literal slots, and what is refused, by the very sentence."""

from __future__ import annotations

import itertools
import re

import pytest
from tests.unit.timing.asking import timetable, utc

from cronwright.timing import TimingError, When, compile_when

AFTER = "2027-01-01T00:00Z"  # a Friday


@pytest.mark.parametrize(
    ("cron", "after", "slots"),
    [
        ("30 6 * * 1-5", AFTER, ["2027-01-01T06:30:00Z", "2027-01-04T06:30:00Z"]),
        ("0 6 * * MON,wed", AFTER, ["2027-01-04T06:00:00Z", "2027-01-06T06:00:00Z"]),
        ("0 6 * * 7", AFTER, ["2027-01-03T06:00:00Z", "2027-01-10T06:00:00Z"]),
        ("0 6 * * 5-7", AFTER, ["2027-01-01T06:00:00Z", "2027-01-02T06:00:00Z", "2027-01-03T06:00:00Z"]),
        ("0 0 1 jan,Jul *", AFTER, ["2027-07-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("10-30/10 5 * * *", AFTER, ["2027-01-01T05:10:00Z", "2027-01-01T05:20:00Z", "2027-01-01T05:30:00Z"]),
        ("50/5 5 * * *", AFTER, ["2027-01-01T05:50:00Z", "2027-01-01T05:55:00Z", "2027-01-02T05:50:00Z"]),
        ("*/25 5 * * *", AFTER, ["2027-01-01T05:00:00Z", "2027-01-01T05:25:00Z", "2027-01-01T05:50:00Z"]),
        ("*/61 5 * * *", AFTER, ["2027-01-01T05:00:00Z", "2027-01-02T05:00:00Z"]),
        ("5-5 5 * * *", AFTER, ["2027-01-01T05:05:00Z", "2027-01-02T05:05:00Z"]),
        ("0 5 ? * ?", AFTER, ["2027-01-01T05:00:00Z", "2027-01-02T05:00:00Z"]),
        ("  0   5 *  * * ", AFTER, ["2027-01-01T05:00:00Z"]),
        # Strictly after: a slot is never its own successor.
        ("0 0 * * *", AFTER, ["2027-01-02T00:00:00Z"]),
        # Seconds are the sixth field.
        ("59 23 31 12 * 58,59", AFTER, ["2027-12-31T23:59:58Z", "2027-12-31T23:59:59Z", "2028-12-31T23:59:58Z"]),
        ("* * * * * */20", AFTER, ["2027-01-01T00:00:20Z", "2027-01-01T00:00:40Z", "2027-01-01T00:01:00Z"]),
        # The aliases.
        ("@hourly", AFTER, ["2027-01-01T01:00:00Z", "2027-01-01T02:00:00Z"]),
        ("@daily", AFTER, ["2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"]),
        ("@midnight", AFTER, ["2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"]),
        ("@weekly", AFTER, ["2027-01-03T00:00:00Z", "2027-01-10T00:00:00Z"]),
        ("@monthly", AFTER, ["2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"]),
        ("@yearly", AFTER, ["2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"]),
        ("@Annually", AFTER, ["2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"]),
        # Month ends and year ends.
        ("0 0 31 * *", AFTER, ["2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z", "2027-05-31T00:00:00Z"]),
        ("0 0 30 * *", "2027-01-30T00:00Z", ["2027-03-30T00:00:00Z", "2027-04-30T00:00:00Z"]),
        ("0 0 L * *", AFTER, ["2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z"]),
        ("0 0 15,L 2 *", AFTER, ["2027-02-15T00:00:00Z", "2027-02-28T00:00:00Z", "2028-02-15T00:00:00Z"]),
        ("59 23 31 12 *", AFTER, ["2027-12-31T23:59:00Z", "2028-12-31T23:59:00Z"]),
        ("* * * * *", "2027-12-31T23:58Z", ["2027-12-31T23:59:00Z", "2028-01-01T00:00:00Z"]),
        # Leap days: 2100 is no leap year, 2400 is one.
        ("0 0 29 2 *", AFTER, ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("0 0 29 2 *", "2095-01-01T00:00Z", ["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"]),
        ("0 0 29 2 *", "2396-03-01T00:00Z", ["2400-02-29T00:00:00Z", "2404-02-29T00:00:00Z"]),
        ("0 0 L 2 *", "2027-06-01T00:00Z", ["2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"]),
        ("0 0 * 2 1#5", AFTER, ["2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z"]),
        # The nth and the last weekday of a month.
        ("0 9 * * MON#1", AFTER, ["2027-01-04T09:00:00Z", "2027-02-01T09:00:00Z"]),
        ("0 9 * * 5#5", AFTER, ["2027-01-29T09:00:00Z", "2027-04-30T09:00:00Z"]),
        ("0 9 * * TUE#2,TUE#4", AFTER, ["2027-01-12T09:00:00Z", "2027-01-26T09:00:00Z", "2027-02-09T09:00:00Z"]),
        ("0 9 * * L5", AFTER, ["2027-01-29T09:00:00Z", "2027-02-26T09:00:00Z"]),
        ("0 9 * * FRIL", AFTER, ["2027-01-29T09:00:00Z", "2027-02-26T09:00:00Z"]),
        # Both day fields restricted: either is enough, as in Kubernetes; a step restricts too.
        ("0 0 13 * 5", AFTER, ["2027-01-08T00:00:00Z", "2027-01-13T00:00:00Z", "2027-01-15T00:00:00Z"]),
        ("0 0 */10 * 5", AFTER, ["2027-01-08T00:00:00Z", "2027-01-11T00:00:00Z", "2027-01-15T00:00:00Z"]),
        ("0 0 30 2 MON", AFTER, ["2027-02-01T00:00:00Z", "2027-02-08T00:00:00Z"]),
        ("0 0 */1 * 5", AFTER, ["2027-01-08T00:00:00Z", "2027-01-15T00:00:00Z"]),
    ],
)
def test_an_expression_means_these_slots(cron: str, after: str, slots: list[str]) -> None:
    assert utc(timetable(cron), after, len(slots)) == slots


def test_several_expressions_have_no_double_slots() -> None:
    table = timetable("0 */2 * * *", "0 */3 * * *", "0 0 * * * 30")
    assert [slot[11:19] for slot in utc(table, AFTER, 10)] == [
        "00:00:30",
        "02:00:00",
        "03:00:00",
        "04:00:00",
        "06:00:00",
        "08:00:00",
        "09:00:00",
        "10:00:00",
        "12:00:00",
        "14:00:00",
    ]


def test_an_h_stays_the_same_for_a_schedule_and_differs_between_schedules() -> None:
    slots = [utc(timetable("H H * * *", uid=uid), AFTER, 3) for uid in ("one", "two", "one")]
    assert slots[0] == ["2027-01-01T08:05:00Z", "2027-01-02T08:05:00Z", "2027-01-03T08:05:00Z"]
    assert slots[0] == slots[2] != slots[1]


def test_an_h_spreads_over_its_whole_range_and_no_further() -> None:
    minutes = {utc(timetable("H(10-19) * * * *", uid=str(n)), AFTER, 1)[0][14:16] for n in range(500)}
    assert minutes == {str(n) for n in range(10, 20)}
    days = {utc(timetable("0 0 H * *", uid=str(n)), "2026-12-31T23:59Z", 1)[0][8:10] for n in range(2000)}
    assert days == {f"{n:02}" for n in range(1, 29)}  # a monthly schedule runs in every month


def test_a_stepped_h_begins_somewhere_and_keeps_its_step() -> None:
    firsts = set()
    for n in range(300):
        found = [int(slot[14:16]) for slot in utc(timetable("H/15 * * * *", uid=str(n)), "2026-12-31T23:59Z", 4)]
        assert [b - a for a, b in itertools.pairwise(found)] == [15, 15, 15]
        firsts.add(found[0])
    assert firsts == set(range(15))


REFUSED = {
    "R * * * *": 'minute "R" in "R * * * *" is random, which differs on every replica; write "H", spread by the uid',
    "0 3 * * R/2": 'day-of-week "R/2" in "0 3 * * R/2" is random, which differs on every replica; write "H", spread by '
    "the uid",
    "5-1 * * * *": 'minute "5-1" in "5-1 * * * *" is a range that wraps; write "5-59,0-1"',
    "0 22-6 * * *": 'hour "22-6" in "0 22-6 * * *" is a range that wraps; write "22-23,0-6"',
    "0 0 * NOV-FEB *": 'month "NOV-FEB" in "0 0 * NOV-FEB *" is a range that wraps; write "11-12,1-2"',
    "0 0 * * FRI-MON": 'day-of-week "FRI-MON" in "0 0 * * FRI-MON" is a range that wraps; write "5-6,0-1"',
    "0 0 * * FRI-SUN": 'day-of-week "FRI-SUN" in "0 0 * * FRI-SUN" is a range that wraps; write "5-7"',
    "0 0 * * 7-3": 'day-of-week "7-3" in "0 0 * * 7-3" is a range that wraps; write "0-3"',
    "59/15 * * * *": 'minute "59/15" in "59/15 * * * *" steps on from the last value; write "59" or "*/15"',
    "0 23/2 * * *": 'hour "23/2" in "0 23/2 * * *" steps on from the last value; write "23" or "*/2"',
    "* * * *": '"* * * *" has 4 fields; write five (minute hour day-of-month month day-of-week) and, if needed, '
    "seconds as the sixth",
    "* * * * * * *": '"* * * * * * *" has a seventh field (year), which is not taken; use startsAt and expiresAt',
    "* * * * * * * *": '"* * * * * * * *" has 8 fields; write five (minute hour day-of-month month day-of-week) and, '
    "if needed, seconds as the sixth",
    "@reboot": '"@reboot" is not taken, since a cluster does not reboot; write at or a cron time',
    "@every 5m": '"@every 5m" is not taken; write it as interval, for example interval: 5m',
    "@fortnightly": '"@fortnightly" is not known; write one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, '
    "@annually",
    "60 * * * *": 'minute "60" in "60 * * * *" is out of range; write 0 to 59',
    "* 24 * * *": 'hour "24" in "* 24 * * *" is out of range; write 0 to 23',
    "0 0 0 * *": 'day-of-month "0" in "0 0 0 * *" is out of range; write 1 to 31',
    "0 0 0 * * 0": 'day-of-month "0" in "0 0 0 * * 0" is out of range; write 1 to 31',
    "0 0 1 13 *": 'month "13" in "0 0 1 13 *" is out of range; write 1 to 12 or JAN to DEC',
    "0 0 * * 8": 'day-of-week "8" in "0 0 * * 8" is out of range; write 0 to 6 or SUN to SAT',
    "* * * * * 60": 'second "60" in "* * * * * 60" is out of range; write 0 to 59',
    "*/0 * * * *": 'minute "*/0" in "*/0 * * * *" has no step; write a number of at least 1 after "/"',
    "1,,2 * * * *": 'minute "" in "1,,2 * * * *" is not understood; write 0 to 59',
    "0 3 * JANUARY *": 'month "JANUARY" in "0 3 * JANUARY *" is not understood; write 1 to 12 or JAN to DEC',
    "-1 * * * *": 'minute "-1" in "-1 * * * *" is not understood; write 0 to 59',
    "٣ * * * *": 'minute "٣" in "٣ * * * *" is not understood; write 0 to 59',
    "0 0 15W * *": 'day-of-month "15W" in "0 0 15W * *" uses "W", which is not taken; write a day, "L", or a weekday '
    "such as MON#1",
    "0 0 * * L": 'day-of-week "L" in "0 0 * * L" does not say which weekday is last; write for example "5L", the last '
    "Friday",
    "0 0 * * MON#6": 'day-of-week "MON#6" in "0 0 * * MON#6" counts weekdays of a month; write 1 to 5 after the #, for '
    "example MON#2",
    "0 0 * * MON#1,FRI": 'day-of-week "MON#1,FRI" in "0 0 * * MON#1,FRI" mixes weekdays with "#" or "L"; write two '
    "expressions under crons",
    "5,H * * * *": 'minute "H" in "5,H * * * *" is "H" in a list; write "H" alone in its field, or two expressions '
    "under crons",
    "H(5-1) * * * *": 'minute "H(5-1)" in "H(5-1) * * * *" is not a range; write for example "H(0-59)"',
    "H/90 * * * *": 'minute "H/90" in "H/90 * * * *" steps further than its range; write a step of at most 60',
    "*,5 * * * *": 'minute "*,5" in "*,5 * * * *" lists a star beside other values; write "*" alone, or the values '
    "without it",
    "? * * * *": 'minute "?" in "? * * * *" is for day fields only; write "*"',
    "TZ=UTC 0 3 * * *": 'a time zone inside the expression "TZ=UTC 0 3 * * *" is not taken; write it in timeZone',
}


@pytest.mark.parametrize("cron", REFUSED)
def test_an_expression_is_refused_in_words_that_name_the_field_and_the_fix(cron: str) -> None:
    with pytest.raises(TimingError, match=f"^spec.schedule.cron: {re.escape(REFUSED[cron])}$") as refused:
        timetable(cron)
    assert refused.value.reason == "InvalidCron"


@pytest.mark.parametrize(
    ("cron", "date"),
    [
        ("0 0 31 2 *", 'day-of-month "31" and month "2"'),
        ("0 0 30 FEB *", 'day-of-month "30" and month "FEB"'),
        ("0 0 31 4,6,9,11 *", 'day-of-month "31" and month "4,6,9,11"'),
    ],
)
def test_a_date_that_no_year_has_is_refused(cron: str, date: str) -> None:
    sentence = f'"{cron}" never runs: no year has a date with {date}; write a date that exists'
    with pytest.raises(TimingError, match=f"^spec.schedule.cron: {re.escape(sentence)}$") as refused:
        timetable(cron)
    assert refused.value.reason == "NeverRuns"


def test_the_bad_one_of_several_expressions_is_named() -> None:
    with pytest.raises(TimingError, match=r'^spec\.schedule\.crons\[1\]: minute "61" in "61 \* \* \* \*" is out of'):
        timetable("0 * * * *", "61 * * * *")


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Berln", 'did you mean "Europe/Berlin"?'),
        ("berlin", 'did you mean "Europe/Berlin"?'),
        ("New York", 'did you mean "America/New_York"?'),
        ("Middle/Earth", 'write a name such as "Europe/Berlin" or "UTC"'),
        ("../../etc/passwd", 'write a name such as "Europe/Berlin" or "UTC"'),
        ("localtime", 'write a name such as "Europe/Berlin" or "UTC"'),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(zone: str, hint: str) -> None:
    sentence = f'spec.schedule.timeZone: "{zone}" is not a time zone of the IANA database; {hint}'
    with pytest.raises(TimingError, match=f"^{re.escape(sentence)}$") as refused:
        timetable("0 3 * * *", time_zone=zone)
    assert refused.value.reason == "UnknownTimeZone"


def test_a_schedule_says_exactly_one_thing() -> None:
    for when, said in ((When(), "none"), (When(at=1, interval=60), "at and interval")):
        with pytest.raises(TimingError, match=f"^spec.schedule: says {said}; write exactly one of at, interval, cron"):
            compile_when(when, uid="u", created=0)
