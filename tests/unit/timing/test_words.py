"""Durations and times as people write them."""

from __future__ import annotations

import re

import pytest

from cronwright.timing import format_duration, format_instant, parse_duration, parse_instant


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1d", 86_400), ("1d12h", 129_600), ("007s", 7)],
)
def test_a_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "1m30s"), (86_400, "1d"), (-60, "-1m")])
def test_a_duration_is_written_in_the_shortest_way(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("text", ["", "5", "5x", "m", "-5m", "1.5h", "30m1h", "1m1m", " 5m", "5 m", "1w", "٥m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    sentence = f'"{text}" is not a duration; write for example "90s", "5m", "1h30m" or "1d"'
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2027-03-14T07:00:00Z", "2027-03-14T07:00:00Z"),
        ("2027-03-14t07:00:00z", "2027-03-14T07:00:00Z"),
        ("2027-03-14T07:00:00.999999999Z", "2027-03-14T07:00:00Z"),
        ("2027-03-14T03:00:00-04:00", "2027-03-14T07:00:00Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
    ],
)
def test_a_time_is_read_in_any_offset_and_written_in_utc(text: str, written: str) -> None:
    assert format_instant(parse_instant(text)) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2027-03-14",
        "2027-03-14T07:00Z",
        "2027-03-14T07:00:00",
        "2027-02-30T00:00:00Z",
        "2027-03-14T25:00:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    sentence = f'"{text}" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"'
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        parse_instant(text)
