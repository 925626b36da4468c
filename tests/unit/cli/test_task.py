"""What `kubectl task` writes, reads and says, without a cluster."""

from __future__ import annotations

import json
import re
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cronwright.cli import asking, telling
from cronwright.cli.access import Failure, sentence
from cronwright.cli.asking import Asked
from cronwright.cli.task import main
from cronwright.cluster.port import NotFound, Refused, Unavailable
from cronwright.core.model import Claim
from cronwright.core.names import job_name
from cronwright.core.observe import schedule_from
from cronwright.core.requests import Kind, Request
from cronwright.timing import format_instant

NOW = 1_795_002_300  # 2026-11-18T11:45:00Z
BERLIN = ZoneInfo("Europe/Berlin")
ASKED = Asked("nightly", "run-20261118-114500-x7k2")


def schedule(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {
        "namespace": "shop",
        "name": "nightly",
        "uid": "s",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-11-01T00:00:00Z",
    }
    when = {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}
    return {"metadata": meta, "spec": {"templateRef": {"name": "t"}, "schedule": when, **spec}, "status": status or {}}


def record(slot: int = NOW, attempt: int = 1, phase: str = "Succeeded", id: str = ASKED.id, **more: Any) -> Any:
    name = job_name("nightly", Claim(slot, attempt, "Manual", 0, id))
    head = {"name": name, "slot": format_instant(slot), "trigger": "Manual", "attempt": attempt, "phase": phase}
    return {**head, **more}


def came_of(runs: int, succeeded: int, failed: int, *records: Any, message: str = "") -> asking.Verdict:
    """The verdict on a request that is done."""
    counts = {"runs": runs, "succeeded": succeeded, "failed": failed}
    request = {"id": ASKED.id, "kind": "RunNow", "state": "Done", "message": message, **counts}
    return asking.verdict(schedule({"requests": [request], "recentRuns": list(records)}), ASKED)


@pytest.mark.parametrize("kind", ["RunNow", "Backfill", "Cancel", "Resume"])
def test_an_id_tells_what_and_when_and_is_the_name_of_an_annotation(kind: Kind) -> None:
    made = asking.new_id(kind, NOW)
    assert re.fullmatch(r"(run|backfill|cancel|resume)-20261118-114500-[a-z0-9]{4}", made)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", made)


def test_ids_of_the_same_second_differ() -> None:
    assert len({asking.new_id("RunNow", NOW) for _ in range(20)}) > 10


def test_the_operator_reads_what_was_composed() -> None:
    text, request = asking.compose("Backfill", parameters={"a": "b=c"}, policy="Queue", begin=NOW - 60, end=NOW)
    assert request == Request(kind="Backfill", parameters={"a": "b=c"}, policy="Queue", begin=NOW - 60, end=NOW)
    assert json.loads(text)["to"] == "2026-11-18T11:45:00Z"
    assert json.loads(asking.compose("RunNow")[0]) == {"kind": "RunNow"}
    assert asking.compose("Cancel", run="nightly-1-1")[1] == Request(kind="Cancel", run="nightly-1-1")


def test_a_stretch_that_ends_before_it_begins_is_bad_usage() -> None:
    with pytest.raises(Failure, match="to: write a time that is not before from") as caught:
        asking.compose("Backfill", begin=NOW, end=NOW - 1)
    assert caught.value.code == 2


def test_a_parameter_may_be_empty_and_hold_equals_signs() -> None:
    assert asking.pairs(["a=", "b=x=y"]) == {"a": "", "b": "x=y"}


@pytest.mark.parametrize(
    ("given", "said"), [(["region"], "name=value"), (["=eu"], "name=value"), (["a=1", "a=2"], "given twice")]
)
def test_a_malformed_parameter_is_bad_usage(given: list[str], said: str) -> None:
    with pytest.raises(Failure, match=said) as caught:
        asking.pairs(given)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-18T11:45:00Z", NOW),
        ("2026-11-18T12:45:00+01:00", NOW),
        ("2026-11-18T12:45", NOW),
        ("2026-11-18 12:45:00", NOW),
        ("2026-11-18", NOW - 12 * 3600 - 45 * 60),
        ("2026-07-01", 1_782_856_800),
        ("now", NOW),
    ],
)
def test_a_time_without_an_offset_is_in_the_zone_of_the_schedule(text: str, at: int) -> None:
    assert asking.instant(text, "--from", BERLIN, NOW + 0.5) == at


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "12:00", "2026-11-18T12:45+0100", ""])
def test_what_is_no_time_is_bad_usage(text: str) -> None:
    with pytest.raises(Failure, match=r"--to: .* is not a time; write for example") as caught:
        asking.instant(text, "--to", BERLIN, NOW)
    assert caught.value.code == 2


def test_a_refusal_is_the_sentence_of_the_operator() -> None:
    request = {"id": ASKED.id, "kind": "RunNow", "state": "Refused", "message": "The run of … is not over."}
    verdict = asking.verdict(schedule({"requests": [request]}), ASKED)
    assert verdict == asking.Verdict(False, "The run of … is not over.")


def test_what_starts_no_run_is_answered_by_the_operators_sentence() -> None:
    request = {"id": ASKED.id, "kind": "Resume", "state": "Done", "message": "The schedule runs again."}
    assert asking.verdict(schedule({"requests": [request]}), ASKED) == asking.Verdict(True, "The schedule runs again.")


def test_a_run_that_succeeded_tells_its_result() -> None:
    mine = record(result="42 rows")
    assert came_of(1, 1, 0, record(id="other"), mine) == asking.Verdict(True, f"Run {mine['name']} succeeded: 42 rows")


def test_a_run_that_failed_tells_why() -> None:
    mine = record(phase="Failed", exitCode=3, category="Permanent", message="No such table.")
    said = f"Run {mine['name']} failed (exit code 3, Permanent): No such table."
    assert came_of(1, 0, 1, mine) == asking.Verdict(False, said)


def test_a_run_that_succeeded_when_tried_again_succeeded() -> None:
    verdict = came_of(1, 1, 0, record(attempt=2), record(attempt=1, phase="Failed"))
    assert verdict.good
    assert "-2 succeeded" in verdict.sentence


def test_a_cancelled_run_is_not_a_good_end() -> None:
    mine = record(phase="Failed", category="Cancelled", message="Cancelled by a request.")
    assert came_of(1, 0, 0, mine) == asking.Verdict(False, f"Run {mine['name']} was cancelled: Cancelled by a request.")
    assert came_of(1, 0, 0) == asking.Verdict(False, "The run was cancelled.")


def test_the_counts_are_believed_when_the_records_are_gone() -> None:
    assert came_of(1, 0, 1) == asking.Verdict(False, "The run failed.")
    assert came_of(1, 1, 0, record(id="other", phase="Failed")) == asking.Verdict(True, "The run succeeded.")


def test_a_backfill_is_good_when_all_of_its_runs_are() -> None:
    assert came_of(3, 3, 0) == asking.Verdict(True, "3 runs: 3 succeeded.")
    broken = record(slot=NOW - 60, phase="Failed", message="Out of memory.")
    verdict = came_of(4, 2, 1, record(), broken)
    assert not verdict.good
    assert verdict.sentence == (
        f"Run {broken['name']} failed: Out of memory.\n4 runs: 2 succeeded, 1 failed, 1 cancelled."
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59, "59 s"), (60, "1 m"), (7_199, "1 h"), (86_400, "1 d"), (864_000, "10 d")]
)
def test_lengths_of_time_are_told_by_their_largest_unit(seconds: int, said: str) -> None:
    assert telling.about(seconds) == said


def test_the_overview_says_in_how_long_and_how_long_ago() -> None:
    status = {
        "phase": "Active",
        "schedule": "0 6 * * *",
        "nextRunTime": format_instant(NOW + 200),
        "lastScheduleTime": format_instant(NOW - 90_000),
        "lastResult": "Failed",
        "activeRuns": 1,
        "queued": 2,
        "retrying": [{}],
        "consecutiveFailures": 4,
        "recentRuns": [record(slot=NOW - 7_300, startedAt=format_instant(NOW - 7_300))],
    }
    table = telling.overview([schedule(status)], NOW + 0.9, namespaces=True)
    assert dict(zip(table.columns, table.rows[0], strict=True)) == {
        "NAMESPACE": "shop",
        "NAME": "nightly",
        "SCHEDULE": "0 6 * * *",
        "TIME ZONE": "Europe/Berlin",
        "PHASE": "Active",
        "NEXT": "in 3 m",
        "LAST": "2 h ago",
        "RESULT": "Failed",
        "ACTIVE": "1, 2 queued, 1 retrying",
        "FAILURES": "4",
    }


def test_a_slot_that_nobody_runs_is_overdue() -> None:
    assert telling.ahead(format_instant(NOW - 5), NOW) == "now"
    assert telling.ahead(format_instant(NOW - 300), NOW) == "5 m overdue"


def test_a_schedule_that_the_operator_has_not_seen_is_listed() -> None:
    [row] = telling.overview([schedule()], NOW, namespaces=False).rows
    assert row == ("nightly", "", "Europe/Berlin", "Unknown", "", "", "", "0", "0")


def test_history_tells_of_each_attempt_in_the_zone_of_the_schedule() -> None:
    times: Any = {"startedAt": format_instant(NOW), "finishedAt": format_instant(NOW + 90)}
    failed = record(phase="Failed", exitCode=0, category="Timeout", message="Too\nslow\x1b[31m.", result="r", **times)
    running = record(slot=NOW + 95, phase="Running", startedAt=format_instant(NOW + 95))
    table = telling.history(schedule({"recentRuns": [running, failed]}), NOW + 100)
    assert [row[1:] for row in table.rows] == [
        ("2026-11-18T12:46:35+01:00", "Manual", "1", "Running", "5s", "", "", ""),
        ("2026-11-18T12:45:00+01:00", "Manual", "1", "Failed", "1m30s", "0", "Timeout", "Too slow [31m."),
    ]


def test_slots_are_in_the_zone_of_the_schedule_with_its_offset() -> None:
    timetable = schedule_from(schedule()).timetable
    assert timetable is not None
    found = timetable.slots(NOW - 86_400, NOW + 86_400, 5)
    table = telling.slots(found, timetable, BERLIN, NOW)
    assert table.columns == ("SLOT", "WHEN")
    assert table.rows == [("2026-11-18T06:00:00+01:00", "6 h ago"), ("2026-11-19T06:00:00+01:00", "in 17 h")]


def test_with_jitter_the_start_is_shown_too() -> None:
    timetable = schedule_from(schedule(schedule={"interval": "1h", "jitter": "30m"})).timetable
    assert timetable is not None
    table = telling.slots([NOW - NOW % 3600], timetable, BERLIN, NOW)
    assert table.columns == ("SLOT", "STARTS", "WHEN")


def test_an_unknown_time_zone_is_no_reason_to_fail() -> None:
    assert telling.zone_of(schedule(schedule={"cron": "0 6 * * *", "timeZone": "Europe/Belin"})) is UTC


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotFound("404 page not found"), "install Cronwright"),
        (Refused("Unauthorized", 401), "renew the credentials"),
        (Refused('User "u" cannot patch resource', 403), 'refuses: User "u" cannot patch resource.'),
        (Unavailable("503: etcd is away"), "does not answer: 503: etcd is away."),
    ],
)
def test_what_the_api_server_answers_becomes_a_sentence(error: Any, said: str) -> None:
    assert said in sentence(error)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("run nightly -p region", 2, "error: -p 'region': write a parameter as name=value"),
        ("run nightly --timeout 5m", 2, "error: --timeout: it is for --wait"),
        ("run nightly --wait --timeout soon", 2, 'error: --timeout: "soon" is not a duration'),
        ("run Nightly", 2, "'Nightly' is not a name"),
        ("run nightly --concurrency-policy Hope", 2, "'Hope' is not one of 'Allow', 'Forbid', 'Replace', 'Queue'"),
        ("run", 2, "NAME"),
        ("backfill nightly --from now", 2, "--to"),
        ("list", 1, "error: There is no kubeconfig at"),
    ],
)
def test_bad_usage_is_told_without_a_cluster(
    line: str, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == code
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""


def test_a_run_without_a_name_is_not_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    """`kubectl task cancel nightly "$RUN"` with RUN unset must not cancel them all."""
    with pytest.raises(SystemExit) as caught:
        main(["cancel", "nightly", ""])
    assert caught.value.code == 2


@pytest.mark.parametrize("text", ["", "a: [", "{contexts: [], current-context: none}"])
def test_a_kubeconfig_that_cannot_be_used_is_one_line(
    text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["list", "--kubeconfig", str(path)])
    assert caught.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: The kubeconfig {path} cannot be used: ")


def test_no_cluster_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c}}],"
        " current-context: c}"
    )
    with pytest.raises(SystemExit) as caught:
        main(["run", "nightly", "--kubeconfig", str(path)])
    assert caught.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: The API server does not answer: Cannot connect to host 127.0.0.1:1")
