"""The famous clock changes, written down by hand: what runs when, in the words of the clocks on the wall.

The rule is Debian cron's. An expression whose minute or hour begins with a star follows real time; any other names a
time on the wall, which `onGap` and `onOverlap` judge.
"""

from __future__ import annotations

import pytest
from tests.unit.timing.asking import local, timetable

NEW_YORK, LONDON = "America/New_York", "Europe/London"
LORD_HOWE, SAO_PAULO, APIA = "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"

SPRING_IN_NEW_YORK = ("2027-03-13T05:00Z", "2027-03-15T16:00Z")
AUTUMN_IN_NEW_YORK = ("2027-11-06T04:00Z", "2027-11-08T17:00Z")
SPRING_IN_LONDON = ("2027-03-27T12:00Z", "2027-03-28T12:00Z")
AUTUMN_IN_LONDON = ("2027-10-30T23:00Z", "2027-10-31T12:00Z")
SPRING_ON_LORD_HOWE = ("2027-10-02T13:00Z", "2027-10-02T18:00Z")  # 02:00 +1030 becomes 02:30 +11
AUTUMN_ON_LORD_HOWE = ("2027-04-03T13:00Z", "2027-04-03T18:00Z")  # 02:00 +11 becomes 01:30 +1030
SPRING_IN_SAO_PAULO = ("2018-11-03T12:00Z", "2018-11-05T12:00Z")  # 00:00 -03 becomes 01:00 -02
AUTUMN_IN_SAO_PAULO = ("2018-02-17T12:00Z", "2018-02-19T12:00Z")  # 00:00 -02 becomes 23:00 -03
THE_LOST_DAY_OF_APIA = ("2011-12-28T10:00Z", "2012-01-01T10:00Z")  # 30 December did not take place

DEFAULT = {"on_gap": "RunAfter", "on_overlap": "Once"}
SKIP = {"on_gap": "Skip", "on_overlap": "Once"}
TWICE = {"on_gap": "RunAfter", "on_overlap": "Twice"}


@pytest.mark.parametrize(
    ("cron", "zone", "days", "rule", "slots"),
    [
        # New York, spring: 02:00 EST becomes 03:00 EDT.
        (
            "30 2 * * *",
            NEW_YORK,
            SPRING_IN_NEW_YORK,
            DEFAULT,
            ["03-13 02:30 -0500", "03-14 03:00 -0400", "03-15 02:30 -0400"],
        ),
        ("30 2 * * *", NEW_YORK, SPRING_IN_NEW_YORK, SKIP, ["03-13 02:30 -0500", "03-15 02:30 -0400"]),
        # A time at the end of the gap exists, and is not run twice when the gap swallowed another.
        (
            "0 2,3 * * *",
            NEW_YORK,
            SPRING_IN_NEW_YORK,
            DEFAULT,
            ["03-13 02:00 -0500", "03-13 03:00 -0500", "03-14 03:00 -0400", "03-15 02:00 -0400", "03-15 03:00 -0400"],
        ),
        # Several swallowed times come to one run.
        (
            "0,20,40 2 14 3 *",
            NEW_YORK,
            SPRING_IN_NEW_YORK,
            DEFAULT,
            ["03-14 03:00 -0400"],
        ),
        # Real time: nothing is made up for, and nothing is left out.
        ("*/30 2 * * *", NEW_YORK, ("2027-03-14T05:00Z", "2027-03-15T05:00Z"), DEFAULT, []),
        (
            "30 * 14 3 *",
            NEW_YORK,
            ("2027-03-14T05:00Z", "2027-03-14T09:00Z"),
            DEFAULT,
            ["03-14 00:30 -0500", "03-14 01:30 -0500", "03-14 03:30 -0400", "03-14 04:30 -0400"],
        ),
        (
            "0 */2 14 3 *",
            NEW_YORK,
            ("2027-03-14T05:00Z", "2027-03-14T11:00Z"),
            DEFAULT,
            ["03-14 00:00 -0500", "03-14 04:00 -0400", "03-14 06:00 -0400"],
        ),
        # New York, autumn: 02:00 EDT becomes 01:00 EST.
        (
            "30 1 * * *",
            NEW_YORK,
            AUTUMN_IN_NEW_YORK,
            DEFAULT,
            ["11-06 01:30 -0400", "11-07 01:30 -0400", "11-08 01:30 -0500"],
        ),
        (
            "30 1 * * *",
            NEW_YORK,
            AUTUMN_IN_NEW_YORK,
            TWICE,
            ["11-06 01:30 -0400", "11-07 01:30 -0400", "11-07 01:30 -0500", "11-08 01:30 -0500"],
        ),
        # 02:00 comes once, after the repetition of 01:00.
        (
            "0 1,2 7 11 *",
            NEW_YORK,
            AUTUMN_IN_NEW_YORK,
            DEFAULT,
            ["11-07 01:00 -0400", "11-07 02:00 -0500"],
        ),
        (
            "30 * 7 11 *",
            NEW_YORK,
            ("2027-11-07T04:00Z", "2027-11-07T08:00Z"),
            DEFAULT,
            ["11-07 00:30 -0400", "11-07 01:30 -0400", "11-07 01:30 -0500", "11-07 02:30 -0500"],
        ),
        # London: the gap begins at 01:00, and the hour from 01:00 comes twice.
        ("30 1 * * *", LONDON, SPRING_IN_LONDON, DEFAULT, ["03-28 02:00 +0100"]),
        ("30 1 * * *", LONDON, SPRING_IN_LONDON, SKIP, []),
        ("30 1 * * *", LONDON, AUTUMN_IN_LONDON, DEFAULT, ["10-31 01:30 +0100"]),
        ("30 1 * * *", LONDON, AUTUMN_IN_LONDON, TWICE, ["10-31 01:30 +0100", "10-31 01:30 +0000"]),
        # Lord Howe moves by half an hour.
        ("15 2 * * *", LORD_HOWE, SPRING_ON_LORD_HOWE, DEFAULT, ["10-03 02:30 +1100"]),
        ("45 2 * * *", LORD_HOWE, SPRING_ON_LORD_HOWE, DEFAULT, ["10-03 02:45 +1100"]),
        ("15 2 * * *", LORD_HOWE, SPRING_ON_LORD_HOWE, SKIP, []),
        ("45 1 * * *", LORD_HOWE, AUTUMN_ON_LORD_HOWE, DEFAULT, ["04-04 01:45 +1100"]),
        ("45 1 * * *", LORD_HOWE, AUTUMN_ON_LORD_HOWE, TWICE, ["04-04 01:45 +1100", "04-04 01:45 +1030"]),
        (
            "*/30 1 4 4 *",
            LORD_HOWE,
            AUTUMN_ON_LORD_HOWE,
            DEFAULT,
            ["04-04 01:00 +1100", "04-04 01:30 +1100", "04-04 01:30 +1030"],
        ),
        # São Paulo used to change at midnight: a day without 00:00, and a day with two 23:00.
        ("0 0 * * *", SAO_PAULO, SPRING_IN_SAO_PAULO, DEFAULT, ["11-04 01:00 -0200", "11-05 00:00 -0200"]),
        ("0 0 * * *", SAO_PAULO, SPRING_IN_SAO_PAULO, SKIP, ["11-05 00:00 -0200"]),
        ("30 23 * * *", SAO_PAULO, AUTUMN_IN_SAO_PAULO, DEFAULT, ["02-17 23:30 -0200", "02-18 23:30 -0300"]),
        (
            "30 23 * * *",
            SAO_PAULO,
            AUTUMN_IN_SAO_PAULO,
            TWICE,
            ["02-17 23:30 -0200", "02-17 23:30 -0300", "02-18 23:30 -0300"],
        ),
        # Sunday begins twice in no calendar: 00:00 is reached once only.
        ("0 0 * * *", SAO_PAULO, AUTUMN_IN_SAO_PAULO, TWICE, ["02-18 00:00 -0300", "02-19 00:00 -0300"]),
        # Samoa went from 29 December straight to the 31st: the 30th's slots come to one, as it ended.
        (
            "0 12 * * *",
            APIA,
            THE_LOST_DAY_OF_APIA,
            DEFAULT,
            ["12-28 12:00 -1000", "12-29 12:00 -1000", "12-31 00:00 +1400", "12-31 12:00 +1400", "01-01 12:00 +1400"],
        ),
        (
            "0 12 * * *",
            APIA,
            THE_LOST_DAY_OF_APIA,
            SKIP,
            ["12-28 12:00 -1000", "12-29 12:00 -1000", "12-31 12:00 +1400", "01-01 12:00 +1400"],
        ),
        ("0 9 30 12 *", APIA, THE_LOST_DAY_OF_APIA, DEFAULT, ["12-31 00:00 +1400"]),
        ("0 9 30 12 *", APIA, THE_LOST_DAY_OF_APIA, SKIP, []),
        ("* 9 30 12 *", APIA, THE_LOST_DAY_OF_APIA, DEFAULT, []),
        # Offsets change without summer time too: Istanbul stayed on +03 in 2016, Pyongyang put its clocks forward by
        # half an hour in 2018, Volgograd put them back in 2020.
        (
            "30 3 * * *",
            "Europe/Istanbul",
            ("2016-10-29T12:00Z", "2016-10-31T12:00Z"),
            DEFAULT,
            ["10-30 03:30 +0300", "10-31 03:30 +0300"],
        ),
        (
            "45 23 * * *",
            "Asia/Pyongyang",
            ("2018-05-03T16:00Z", "2018-05-05T16:00Z"),
            DEFAULT,
            ["05-05 00:00 +0900", "05-05 23:45 +0900"],
        ),
        (
            "30 1 * * *",
            "Europe/Volgograd",
            ("2020-12-26T12:00Z", "2020-12-28T12:00Z"),
            TWICE,
            ["12-27 01:30 +0400", "12-27 01:30 +0300", "12-28 01:30 +0300"],
        ),
        # Casablanca puts its clocks back for Ramadan, and forward after it.
        ("30 2 * * *", "Africa/Casablanca", ("2026-03-22T00:00Z", "2026-03-22T12:00Z"), DEFAULT, ["03-22 03:00 +0100"]),
    ],
)
def test_a_clock_change(cron: str, zone: str, days: tuple[str, str], rule: dict[str, str], slots: list[str]) -> None:
    assert local(timetable(cron, time_zone=zone, **rule), zone, *days) == slots


def test_each_of_several_expressions_follows_its_own_rule_and_one_instant_is_one_slot() -> None:
    both = timetable("30 2 * * *", "0 */3 * * *", time_zone=NEW_YORK)
    assert local(both, NEW_YORK, "2027-03-14T05:00Z", "2027-03-14T12:00Z") == [
        "03-14 00:00 -0500",
        "03-14 03:00 -0400",
        "03-14 06:00 -0400",
    ]
    both = timetable("30 1 * * *", "*/30 1 * * *", time_zone=NEW_YORK)
    assert local(both, NEW_YORK, "2027-11-07T04:00Z", "2027-11-07T12:00Z") == [
        "11-07 01:00 -0400",
        "11-07 01:30 -0400",
        "11-07 01:00 -0500",
        "11-07 01:30 -0500",
    ]


def test_seconds_are_left_in_a_gap_too() -> None:
    assert local(timetable("59 1 * * * 30", "30 2 * * * 15", time_zone=NEW_YORK), NEW_YORK, *SPRING_IN_NEW_YORK) == [
        "03-13 01:59 -0500",
        "03-13 02:30 -0500",
        "03-14 01:59 -0500",
        "03-14 03:00 -0400",
        "03-15 01:59 -0400",
        "03-15 02:30 -0400",
    ]
