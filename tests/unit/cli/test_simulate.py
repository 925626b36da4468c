"""`cronwright simulate`: the forecast as an array and as a timeline, and how it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.calling import data, manifest, refusal, schedule, text

NEW_YORK = {"cron": "30 2 * * *", "timeZone": "America/New_York"}


def entry(slot: str, decision: str, reason: str, at: str) -> dict[str, str]:
    return {"slot": slot, "decision": decision, "reason": reason, "at": at}


def test_json_is_an_array_of_slots_with_their_decisions(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(catchUp={"policy": "RunOnce"}))
    span = ("--from", "2027-01-01T00:30:00Z", "--to", "2027-01-01T04:00:00Z")
    found = data("simulate", "-f", file, *span, "--down", "2027-01-01T01:30:00Z/2027-01-01T03:30:00Z")
    assert found == [
        entry("2027-01-01T01:00:00Z", "Run", "Schedule", "2027-01-01T01:00:00Z"),
        entry("2027-01-01T02:00:00Z", "Skip", "CatchUpSkipped", "2027-01-01T03:30:00Z"),
        entry("2027-01-01T03:00:00Z", "Run", "CatchUp", "2027-01-01T03:30:00Z"),
        entry("2027-01-01T04:00:00Z", "Run", "Schedule", "2027-01-01T04:00:00Z"),
    ]


def test_outages_may_be_several(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(catchUp={"policy": "Skip"}))
    downs = (
        "--down",
        "2027-01-01T00:50:00Z/2027-01-01T01:30:00Z",
        "--down",
        "2027-01-01T02:50:00Z/2027-01-01T03:30:00Z",
    )
    found = data("simulate", "-f", file, "--from", "2027-01-01T00:30:00Z", "--to", "2027-01-01T04:00:00Z", *downs)
    assert [slot["decision"] for slot in found] == ["Skip", "Run", "Skip", "Run"]


def test_text_is_a_timeline_that_marks_clock_changes_and_outages(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(schedule=NEW_YORK, retry={"initialDelay": "5m"}))
    span = ("--from", "2027-03-13T00:00:00Z", "--to", "2027-03-17T00:00:00Z")
    down = ("--down", "2027-03-15T00:00:00Z/2027-03-15T20:00:00Z")
    assert text("simulate", "-f", file, *span, *down, "--run-time", "10m", "--fail-attempts", "1").splitlines() == [
        "nightly: 30 2 * * *, America/New_York",
        "Sat 2027-03-13 02:30 -05:00  Run   Schedule, attempt 1 at 02:30 failed (Transient) after 10 min, "
        "attempt 2 at 02:45 succeeded after 10 min",
        "Sun 2027-03-14 03:00 -04:00  -- clocks go forward by 1 h: 02:00 becomes 03:00",
        "Sun 2027-03-14 03:00 -04:00  Run   Schedule, attempt 1 at 03:00 failed (Transient) after 10 min, "
        "attempt 2 at 03:15 succeeded after 10 min",
        "Sun 2027-03-14 20:00 -04:00  -- nobody decides until Mon 2027-03-15 16:00 -04:00, for 20 h",
        "Mon 2027-03-15 02:30 -04:00  Run   CatchUp, started 13 h 30 min later, attempt 1 at 16:00 failed (Transient) "
        "after 10 min, attempt 2 at 16:15 succeeded after 10 min",
        "Tue 2027-03-16 02:30 -04:00  Run   Schedule, attempt 1 at 02:30 failed (Transient) after 10 min, "
        "attempt 2 at 02:45 succeeded after 10 min",
        "4 slots: 4 run, 0 skipped",
    ]


def test_clocks_that_go_back_and_a_day_that_is_lost_are_marked(tmp_path: Path) -> None:
    autumn = manifest(tmp_path, schedule(schedule=NEW_YORK))
    lines = text("simulate", "-f", autumn, "--from", "2027-11-07T00:00:00Z", "--to", "2027-11-08T00:00:00Z")
    assert "Sun 2027-11-07 01:00 -05:00  -- clocks go back by 1 h: 02:00 becomes 01:00" in lines
    samoa = manifest(tmp_path, schedule(schedule={"cron": "0 12 * * *", "timeZone": "Pacific/Apia"}))
    lines = text("simulate", "-f", samoa, "--from", "2011-12-29T00:00:00Z", "--to", "2011-12-31T12:00:00Z")
    assert "Sat 2011-12-31 00:00 +14:00  -- clocks go forward by 1 d: Fri 00:00 becomes Sat 00:00" in lines


def test_a_long_row_of_skips_is_folded_in_text_and_complete_in_json(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(schedule={"cron": "* * * * *"}))
    span = ("--from", "2027-01-01T00:00:00Z", "--to", "2027-01-04T00:00:30Z")
    call = ("simulate", "-f", file, *span, "--down", "2027-01-01T00:01:30Z/2027-01-04T00:00:00Z")
    assert text(*call).splitlines() == [
        "nightly: * * * * *, UTC",
        "Fri 2027-01-01 00:01 +00:00  Run   Schedule, succeeded after 1 s",
        "Fri 2027-01-01 00:01 +00:00  -- nobody decides until Mon 2027-01-04 00:00 +00:00, for 2 d 23 h",
        "Fri 2027-01-01 00:02 +00:00  Skip  CatchUpSkipped, decided 2 d 23 h later",
        "                             ... 4,316 more, Skip CatchUpSkipped ...",
        "Sun 2027-01-03 23:59 +00:00  Skip  CatchUpSkipped, decided 1 min later",
        "Mon 2027-01-04 00:00 +00:00  Run   Schedule, succeeded after 1 s",
        "4,320 slots: 2 run, 4,318 skipped (CatchUpSkipped 4,318)",
    ]
    found = data(*call)
    assert len(found) == 4320
    assert found[1]["slot"] == "2027-01-01T00:02:00Z"


def test_a_single_time_in_the_past_is_told(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(schedule={"at": "2026-12-31T00:00:00Z"}))
    found = data("simulate", "-f", file, "--from", "2027-01-01T00:00:00Z", "--to", "2027-01-02T00:00:00Z")
    assert found == [entry("2026-12-31T00:00:00Z", "Skip", "AtInPast", "2027-01-01T00:00:00Z")]


def test_the_template_in_the_manifest_has_its_say(tmp_path: Path) -> None:
    template = {
        "kind": "TaskTemplate",
        "metadata": {"name": "t"},
        "spec": {"shell": {"script": "true"}, "timeout": "5m", "parameters": [{"name": "region", "required": True}]},
    }
    file = manifest(tmp_path, template, schedule(parameters={"region": "eu"}))
    span = ("--from", "2027-01-01T00:30:00Z", "--to", "2027-01-01T01:30:00Z")
    assert "failed (Timeout) after 5 min" in text("simulate", "-f", file, *span, "--run-time", "10m")
    file = manifest(tmp_path, template, schedule())
    (slot,) = data("simulate", "-f", file, *span)
    assert (slot["decision"], slot["reason"]) == ("Skip", "InvalidParameters")


def test_parameters_need_no_template(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule(parameters={"region": "eu"}))
    (slot,) = data("simulate", "-f", file, "--from", "2027-01-01T00:30:00Z", "--to", "2027-01-01T01:30:00Z")
    assert slot["decision"] == "Run"


def test_no_slot_is_an_empty_array(tmp_path: Path) -> None:
    file = manifest(tmp_path, schedule())
    span = ("--from", "2027-01-01T00:00:01Z", "--to", "2027-01-01T00:00:59Z")
    assert data("simulate", "-f", file, *span) == []
    assert text("simulate", "-f", file, *span).splitlines()[-1] == "0 slots: 0 run, 0 skipped"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"--from": "x"}, '--from: "x" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"'),
        (
            {"--to": "2026-01-01T00:00:00Z"},
            '--to: "2026-01-01T00:00:00Z" does not come after --from ("2027-01-01T00:00:00Z"); write a later time.',
        ),
        (
            {"--down": "2027-01-01T00:00:00Z"},
            '--down: "2027-01-01T00:00:00Z" is not two times; write FROM/TO, for example '
            "2027-03-14T02:00:00Z/2027-03-14T05:30:00Z.",
        ),
        (
            {"--down": "x/2027-01-01T00:00:00Z"},
            '--down: "x" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"',
        ),
        (
            {"--down": "2027-01-02T00:00:00Z/2027-01-01T00:00:00Z"},
            '--down: "2027-01-01T00:00:00Z" does not come after "2027-01-02T00:00:00Z"; write the earlier time first.',
        ),
        (
            {"--run-time": "long"},
            '--run-time: "long" is not a duration; write for example "90s", "5m", "1h30m" or "1d"',
        ),
        (
            {"--fail-attempts": "0"},
            '--fail-attempts: "0" is not understood; write numbers from 1, such as 1,2, or all.',
        ),
    ],
)
def test_a_bad_command_ends_with_status_2_and_one_sentence(
    tmp_path: Path, flags: dict[str, str], sentence: str
) -> None:
    usual: dict[str, Any] = {"--from": "2027-01-01T00:00:00Z", "--to": "2027-01-02T00:00:00Z", **flags}
    arguments = [part for flag in usual.items() for part in flag]
    assert refusal("simulate", "-f", manifest(tmp_path, schedule()), *arguments) == sentence


def test_a_bad_schedule_or_template_is_refused(tmp_path: Path) -> None:
    span = ("--from", "2027-01-01T00:00:00Z", "--to", "2027-01-02T00:00:00Z")
    file = manifest(tmp_path, schedule(schedule={"cron": "0 0 31 2 *"}))
    assert refusal("simulate", "-f", file, *span).startswith(
        'TaskSchedule nightly: spec.schedule.cron: "0 0 31 2 *" never runs'
    )
    file = manifest(tmp_path, {"kind": "TaskTemplate", "metadata": {"name": "t"}, "spec": {}}, schedule())
    assert refusal("simulate", "-f", file, *span).startswith("TaskTemplate t: spec")
