"""The models accept what the API server accepts, refuse what it refuses, and write what it can store."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cronwright.api import (
    Backoff,
    CatchUpPolicy,
    Category,
    Condition,
    RunPhase,
    RunRecord,
    TaskScheduleSpec,
    TaskScheduleStatus,
    TaskTemplateSpec,
    TemplateType,
    Trigger,
)

ROOT = Path(__file__).parents[3]
SPECS: dict[str, type[TaskTemplateSpec | TaskScheduleSpec]] = {
    "TaskTemplate": TaskTemplateSpec,
    "TaskSchedule": TaskScheduleSpec,
}
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
BAD = {"TaskTemplate": "templates.yaml", "TaskSchedule": "schedules.yaml"}

# What the models leave to the API server: fields nobody knows, and pieces of a pod that are taken verbatim.
_API_SERVER_ONLY = ("unknown field", "Duplicate value", "spec.job.spec.template", "pod.env[0].name")


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def bad_specs() -> list[Any]:
    return [
        pytest.param(kind, case["spec"], id=case["name"])
        for kind, file in BAD.items()
        for case in yaml.safe_load((ROOT / "tests/integration/bad" / file).read_text())
        if not any(words in case["refused"] for words in _API_SERVER_ONLY)
    ]


def schedule(**fields: object) -> TaskScheduleSpec:
    return TaskScheduleSpec.model_validate({"templateRef": {"name": "hello"}, "schedule": {"interval": "5m"}, **fields})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_accepted(path: Path) -> None:
    for document in documents(path):
        SPECS[document["kind"]].model_validate(document["spec"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_brings_the_template_of_its_schedules(path: Path) -> None:
    found = documents(path)
    templates = {each["metadata"]["name"] for each in found if each["kind"] == "TaskTemplate"}
    used = {each["spec"]["templateRef"]["name"] for each in found if each["kind"] == "TaskSchedule"}
    assert used == templates


def test_the_first_example_has_twelve_lines() -> None:
    assert len((ROOT / "examples/first.yaml").read_text().splitlines()) == 12


@pytest.mark.parametrize(("kind", "spec"), bad_specs())
def test_what_the_api_server_refuses_is_refused_offline_too(kind: str, spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SPECS[kind].model_validate(spec)


def test_a_schedule_that_says_little_gets_the_documented_defaults() -> None:
    spec = schedule()
    assert spec.catch_up.policy is CatchUpPolicy.RUN_ONCE
    assert (spec.catch_up.max_runs, spec.catch_up.window) == (5, None)
    assert spec.catch_up.tolerance == timedelta(minutes=1)
    assert (spec.concurrency_policy, spec.queue_limit) == ("Forbid", 10)
    assert (spec.history.successful, spec.history.failed) == (3, 3)
    assert (spec.schedule.time_zone, spec.schedule.on_gap, spec.schedule.on_overlap) == (
        "UTC",
        "RunAfter",
        "Once",
    )
    assert (spec.template_ref.on_delete, spec.suspend, spec.retry) == ("Keep", False, None)


def test_an_empty_retry_is_three_attempts() -> None:
    retry = schedule(retry={}).retry
    assert retry is not None
    assert (retry.max_attempts, retry.backoff) == (3, Backoff.EXPONENTIAL)
    assert (retry.initial_delay, retry.max_delay) == (timedelta(minutes=1), timedelta(hours=1))
    assert retry.retry_on == (Category.TRANSIENT, Category.TIMEOUT)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_durations_are_lengths_of_time(text: str, length: timedelta) -> None:
    assert schedule(timeout=text).timeout == length


def test_the_longest_duration_still_fits_a_calendar() -> None:
    longest = schedule(timeout="99999d999999h99999999m999999999s").timeout
    assert longest is not None
    assert datetime(2026, 1, 1, tzinfo=UTC) + longest < datetime.max.replace(tzinfo=UTC)


def test_times_are_utc_and_whole_seconds() -> None:
    assert schedule(startsAt="2026-01-01T01:30:00.75+01:00").starts_at == datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


def test_exclusions_are_days_or_times() -> None:
    exclude = [
        {"date": "2026-12-25"},
        {"from": "2026-12-28", "to": "2026-12-28"},
        {"from": "2027-02-06T12:00:00Z", "to": "2027-02-06T16:00:00+01:00"},
    ]
    found = schedule(schedule={"interval": "5m", "exclude": exclude}).schedule.exclude
    assert found[0].date == date(2026, 12, 25)
    assert (found[1].from_, found[1].to) == (date(2026, 12, 28), date(2026, 12, 28))
    assert found[2].to == datetime(2027, 2, 6, 15, tzinfo=UTC)
    assert [each.to_json() for each in found[:2]] == exclude[:2]


def test_a_stretch_of_no_time_is_refused() -> None:
    moment = "2027-02-06T12:00:00Z"
    with pytest.raises(ValidationError, match="write a to that comes after from"):
        schedule(schedule={"interval": "5m", "exclude": [{"from": moment, "to": moment}]})


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"job": {"spec": {"template": {}}}}, TemplateType.JOB),
        ({"shell": {"script": "echo"}}, TemplateType.SHELL),
        ({"python": {"entrypoint": "reports:main"}}, TemplateType.PYTHON),
    ],
)
def test_a_template_knows_its_type(spec: dict[str, Any], kind: TemplateType) -> None:
    assert TaskTemplateSpec.model_validate(spec).type is kind


def test_unknown_fields_are_ignored_since_a_newer_crd_may_have_them() -> None:
    assert schedule(fieldOfTheFuture=True) == schedule()


def test_a_status_is_written_as_the_api_server_stores_it() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    status = TaskScheduleStatus(
        conditions=(Condition(type="Ready", status="True", reason="Active", last_transition_time=moment),),
        recent_runs=(
            RunRecord(name="hello-1", slot=moment, trigger=Trigger.SCHEDULE, attempt=1, phase=RunPhase.SUCCEEDED),
        ),
    )
    written = status.to_json()
    assert written["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Active",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    assert written["recentRuns"][0] == {
        "name": "hello-1",
        "slot": "2026-01-01T00:00:00Z",
        "trigger": "Schedule",
        "attempt": 1,
        "phase": "Succeeded",
    }
    assert TaskScheduleStatus.model_validate(written) == status
