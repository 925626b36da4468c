"""`cronwright next`: what it prints for people and machines, and how it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.calling import data, manifest, refusal, schedule, text

SPRING = ("--time-zone", "America/New_York", "--after", "2027-03-13T00:00:00Z", "--count", "3")


def test_json_is_an_array_of_utc_times() -> None:
    assert data("next", "--cron", "30 2 * * *", *SPRING) == [
        "2027-03-13T07:30:00Z",
        "2027-03-14T07:00:00Z",
        "2027-03-15T06:30:00Z",
    ]


def test_text_is_local_time_with_weekday_and_offset_and_how_long_it_is_until_then() -> None:
    assert text("next", "--cron", "30 2 * * *", *SPRING).splitlines() == [
        "Sat 2027-03-13 02:30 -05:00  in 7 h 30 min",
        "Sun 2027-03-14 03:00 -04:00  in 1 d 7 h",
        "Mon 2027-03-15 02:30 -04:00  in 2 d 6 h",
    ]
    assert text("next", "--at", "2027-01-01T03:00:00Z", "--after", "2027-01-01T00:00:00Z") == (
        "Fri 2027-01-01 03:00 +00:00  in 3 h\n"
    )
    assert text("next", "--cron", "* * * * * */30", "--after", "2027-01-01T00:00:00Z", "--count", "2").splitlines() == [
        "Fri 2027-01-01 00:00:30 +00:00  in 30 s",
        "Fri 2027-01-01 00:01:00 +00:00  in 1 min",
    ]


def test_gaps_and_overlaps_are_chosen() -> None:
    assert data("next", "--cron", "30 2 * * *", *SPRING, "--on-gap", "Skip")[1] == "2027-03-15T06:30:00Z"
    autumn = ("--time-zone", "America/New_York", "--after", "2027-11-07T00:00:00Z", "--count", "2")
    assert data("next", "--cron", "30 1 * * *", *autumn) == ["2027-11-07T05:30:00Z", "2027-11-08T06:30:00Z"]
    twice = data("next", "--cron", "30 1 * * *", *autumn, "--on-overlap", "Twice")
    assert twice == ["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"]


def test_several_expressions_are_united() -> None:
    crons = ("--cron", "0 6 * * *", "--cron", "0 */3 * * *")
    found = data("next", *crons, "--after", "2027-01-01T00:00:00Z", "--count", "3")
    assert found == ["2027-01-01T03:00:00Z", "2027-01-01T06:00:00Z", "2027-01-01T09:00:00Z"]


def test_an_interval_counts_from_its_anchor_or_from_after() -> None:
    after = ("--after", "2027-01-01T00:10:00Z", "--count", "2")
    assert data("next", "--interval", "1h", *after) == ["2027-01-01T01:10:00Z", "2027-01-01T02:10:00Z"]
    anchored = data("next", "--interval", "1h", "--anchor", "2026-01-01T00:05:00Z", *after)
    assert anchored == ["2027-01-01T01:05:00Z", "2027-01-01T02:05:00Z"]


def test_what_is_over_has_no_slots() -> None:
    past = ("next", "--at", "2020-01-01T00:00:00Z", "--after", "2027-01-01T00:00:00Z")
    assert data(*past) == []
    assert text(*past) == "There is no slot after 2027-01-01T00:00:00Z.\n"


def test_a_uid_chooses_what_h_stands_for() -> None:
    found = {
        data("next", "--cron", "H H * * *", "--uid", uid, "--after", "2027-01-01T00:00:00Z", "--count", "1")[0]
        for uid in ("one", "two", "three")
    }
    assert len(found) == 3


def test_now_is_where_it_starts_unless_said() -> None:
    (slot,) = data("next", "--cron", "* * * * *", "--count", "1")
    assert slot > "2026"


def test_a_manifest_is_read_with_its_window_and_budget(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Berlin", "exclude": [{"date": "2027-06-03"}]},
        "startsAt": "2027-06-02T00:00:00Z",
        "maxRuns": 2,
    }
    file = manifest(tmp_path, schedule(**spec))
    assert data("next", "-f", file, "--after", "2027-01-01T00:00:00Z") == [
        "2027-06-02T01:00:00Z",
        "2027-06-04T01:00:00Z",
    ]


def test_a_time_needs_no_quotes_in_a_manifest() -> None:
    yaml = """
kind: TaskSchedule
metadata: {name: once, creationTimestamp: null}
spec: {templateRef: {name: t}, schedule: {at: 2027-05-01T12:00:00Z}}
"""
    assert data("next", "-f", "-", "--after", "2027-01-01T00:00:00Z", stdin=yaml) == ["2027-05-01T12:00:00Z"]


def test_a_time_is_read_as_kubectl_would_and_not_as_yaml_might() -> None:
    yaml = (
        "{kind: TaskSchedule, metadata: {name: x}, spec: {templateRef: {name: t}, schedule: {at: 2027-05-01 12:00:00}}}"
    )
    assert refusal("next", "-f", "-", stdin=yaml) == (
        'TaskSchedule x: spec.schedule.at: "2027-05-01 12:00:00" is not an RFC 3339 time; write for example '
        '"2027-03-14T07:00:00Z".'
    )


def test_one_schedule_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    other = schedule("hourly", schedule={"cron": "30 * * * *"})
    file = manifest(tmp_path, {"kind": "TaskTemplate"}, schedule(), other)
    after = ("--after", "2027-01-01T00:00:00Z", "--count", "1")
    assert data("next", "-f", file, "--name", "hourly", *after) == ["2027-01-01T00:30:00Z"]
    assert refusal("next", "-f", file) == (
        f"-f: {file} has 2 TaskSchedules; choose one of them with --name: nightly, hourly."
    )
    assert refusal("next", "-f", file, "--name", "weekly") == (
        f"--name: {file} has no TaskSchedule weekly; it has nightly, hourly."
    )


def test_a_suspended_schedule_is_told_to_be_so(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(suspend=True))
    assert text("next", "-f", file, "--count", "1").startswith("spec.suspend is true: until it is false,")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--cron", "0 0 31 2 *"),
            '--cron: "0 0 31 2 *" never runs: no year has a date with day-of-month "31" and month "2"; write a date '
            "that exists",
        ),
        (
            ("--cron", "0 3 * * *", "--cron", "61 * * * *"),
            '--cron (number 2): minute "61" in "61 * * * *" is out of range; write 0 to 59',
        ),
        (
            ("--cron", "0 3 * * *", "--time-zone", "Europe/Berln"),
            '--time-zone: "Europe/Berln" is not a time zone of the IANA database; did you mean "Europe/Berlin"?',
        ),
        (
            ("--interval", "5x"),
            '--interval: "5x" is not a duration; write for example "90s", "5m", "1h30m" or "1d"',
        ),
        (("--interval", "0s"), "--interval: 0s is too short; write 1s or more"),
        (("--at", "noon"), '--at: "noon" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"'),
        (
            ("--cron", "@daily", "--after", "2027-02-30T00:00:00Z"),
            '--after: "2027-02-30T00:00:00Z" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"',
        ),
        (
            ("--interval", "5m", "--anchor", "x"),
            '--anchor: "x" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"',
        ),
        (("--cron", "@daily", "--anchor", "x"), "--anchor: goes with --interval only; remove it."),
        ((), "Write exactly one of --cron, --interval, --at and -f; you wrote none."),
        (
            ("--cron", "@daily", "--interval", "5m"),
            "Write exactly one of --cron, --interval, --at and -f; you wrote --cron and --interval.",
        ),
        (("-f", "absent.yaml"), "-f: absent.yaml cannot be read: No such file or directory."),
        (
            ("-f", "-", "--time-zone", "UTC"),
            "--time-zone: the manifest says this; leave the flag out, or write the schedule as flags.",
        ),
    ],
)
def test_a_bad_command_ends_with_status_2_and_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert refusal("next", *arguments) == sentence


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"schedule": {}}, "spec.schedule: write exactly one of at, interval, cron or crons."),
        (
            {"schedule": {"cron": "* *"}},
            "spec.schedule.cron: write five fields (minute, hour, day of month, month, day of week), such as "
            "30 6 * * 1-5, or @daily.",
        ),
        (
            {"schedule": {"cron": "5-1 * * * *"}},
            'spec.schedule.cron: minute "5-1" in "5-1 * * * *" is a range that wraps; write "5-59,0-1".',
        ),
        (
            {"schedule": {"crons": ["0 3 * * *", "0 25 * * *"]}},
            'spec.schedule.crons[1]: hour "25" in "0 25 * * *" is out of range; write 0 to 23.',
        ),
        ({"schedule": {"interval": "5x"}}, "spec.schedule.interval: write a duration such as 90s, 5m, 1h30m or 1d."),
        (
            {"schedule": {"cron": "@daily", "timezone": "UTC"}},
            "spec.schedule.timezone: there is no such field; remove it or correct its name.",
        ),
        (
            {"schedule": {"cron": "@daily", "exclude": [{"from": "x", "to": "y"}]}},
            'spec.schedule.exclude[0].from: "x" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z".',
        ),
        (
            {"startsAt": "2027-01-01T00:00:00Z", "expiresAt": "2026-01-01T00:00:00Z"},
            "spec.expiresAt: write an expiresAt that is after startsAt.",
        ),
    ],
)
def test_a_bad_manifest_ends_with_the_models_sentence(tmp_path: Path, spec: dict[str, Any], sentence: str) -> None:
    file = manifest(tmp_path, schedule(**spec))
    assert refusal("next", "-f", file) == f"TaskSchedule nightly: {sentence}"


@pytest.mark.parametrize(
    ("yaml", "sentence"),
    [
        ("kind: TaskTemplate", "-f: - has no TaskSchedule; give a manifest that has one."),
        ("", "-f: - has no TaskSchedule; give a manifest that has one."),
        ("a: [", "-f: - is not YAML: "),
        (
            "{kind: TaskSchedule, metadata: x}",
            "-f: - has an object whose metadata is not a mapping; write metadata: {name: ...}.",
        ),
    ],
)
def test_what_is_no_manifest_is_refused(yaml: str, sentence: str) -> None:
    assert refusal("next", "-f", "-", stdin=yaml).startswith(sentence)


def test_the_command_itself_exits_with_status_2() -> None:
    command = [sys.executable, "-c", "from cronwright.cli.main import app; app()", "next", "--cron", "R * * * *"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == (
        '--cron: minute "R" in "R * * * *" is random, which differs on every replica; write "H", spread by the uid\n'
    )
