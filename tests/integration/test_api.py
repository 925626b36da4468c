"""The API as people meet it: what `kubectl` accepts, refuses, explains and prints, on a real API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.cluster.folder import CHECKOUT
from tests.integration.support import Cluster

from cronwright.api import (
    API_VERSION,
    ActiveRun,
    Category,
    Condition,
    HandledRequest,
    Pause,
    Phase,
    RequestState,
    RetryingRun,
    RunPhase,
    RunRecord,
    Skip,
    TaskScheduleStatus,
    TaskTemplateStatus,
    TemplateType,
    Trigger,
)
from cronwright.api.crds import KINDS, openapi_schema

EXAMPLES = sorted((CHECKOUT / "examples").glob("*.yaml"))
BAD = {"TaskTemplate": "templates.yaml", "TaskSchedule": "schedules.yaml"}
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

FULL_SCHEDULE_STATUS = TaskScheduleStatus(
    observed_generation=1,
    conditions=(
        Condition(
            type="Ready",
            status="True",
            reason="Active",
            message="Runs are started as they become due.",
            observed_generation=1,
            last_transition_time=MOMENT,
        ),
    ),
    phase=Phase.ACTIVE,
    schedule="every 30s",
    next_run_time=datetime(2030, 12, 24, 18, tzinfo=UTC),
    upcoming=(datetime(2030, 12, 24, 18, tzinfo=UTC),),
    last_schedule_time=MOMENT,
    last_success_time=MOMENT,
    last_failure_time=MOMENT,
    last_result=RunPhase.SUCCEEDED,
    active=(ActiveRun(name="hello-1-1", slot=MOMENT, trigger=Trigger.MANUAL, attempt=1, started_at=MOMENT),),
    active_runs=1,
    queued=2,
    retrying=(
        RetryingRun(
            name="hello-2-2",
            slot=MOMENT,
            trigger=Trigger.CATCH_UP,
            attempt=2,
            at=MOMENT,
            category=Category.TIMEOUT,
        ),
    ),
    runs=20,
    spent=19,
    succeeded=10,
    failed=4,
    cancelled=6,
    consecutive_failures=1,
    missed=5,
    skipped=7,
    skips={"Forbidden": 7},
    last_skip=Skip(slot=MOMENT, reason="Forbidden", message="The run before it was still active."),
    paused=Pause(since=MOMENT, reason="TooManyFailures", message="Five in a row.", generation=1),
    recent_runs=(
        RunRecord(
            name="hello-1-1",
            slot=MOMENT,
            trigger=Trigger.BACKFILL,
            attempt=1,
            phase=RunPhase.FAILED,
            started_at=MOMENT,
            finished_at=MOMENT,
            category=Category.PERMANENT,
            exit_code=3,
            message="It exited with 3.",
            result="half of it",
        ),
    ),
    requests=(HandledRequest(id="a1", kind="RunNow", state=RequestState.DONE, message="hello-1-1", at=MOMENT),),
)
FULL_TEMPLATE_STATUS = TaskTemplateStatus(
    observed_generation=1,
    conditions=FULL_SCHEDULE_STATUS.conditions,
    type=TemplateType.SHELL,
    schedules=1,
    schedule_names=("hello",),
    active_runs=1,
)


def bad_manifests() -> list[Any]:
    return [
        pytest.param(kind, case["spec"], case["refused"], id=case["name"])
        for kind, file in BAD.items()
        for case in yaml.safe_load((Path(__file__).parent / "bad" / file).read_text())
    ]


def get(api: Cluster, namespace: str, *what: str) -> Any:
    return json.loads(api.kubectl("get", *what, "-o", "json", namespace=namespace).stdout)


def write_status(api: Cluster, namespace: str, kind: str, status: TaskScheduleStatus | TaskTemplateStatus) -> None:
    patch = json.dumps({"status": status.to_json()})
    how = ("--subresource=status", "--type=merge", "-p", patch)
    api.kubectl("patch", kind, "hello", *how, namespace=namespace)


def words(text: str) -> str:
    """The text without the line breaks that kubectl puts into it."""
    return " ".join(text.split())


def table(printed: str) -> dict[str, str]:
    """The one row that `kubectl get` printed, by column; cells are cut where the headings begin."""
    head, row = printed.splitlines()
    starts = [i for i, c in enumerate(head) if c != " " and (i == 0 or head[max(0, i - 3) : i] == "   ")]
    cells = zip(starts, [*starts[1:], None], strict=True)
    return {head[begin:end].strip(): row[begin:end].strip() for begin, end in cells}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_accepted(api: Cluster, path: Path) -> None:
    api.kubectl("apply", "--server-side", "--dry-run=server", "-f", str(path))


def test_all_examples_live_in_one_namespace(api: Cluster, namespace: str) -> None:
    api.kubectl("apply", "-f", str(CHECKOUT / "examples"), namespace=namespace)
    again = api.kubectl("apply", "-f", str(CHECKOUT / "examples"), namespace=namespace).stdout
    assert {line.split()[-1] for line in again.splitlines()} == {"unchanged"}


@pytest.mark.parametrize(("kind", "spec", "refused"), bad_manifests())
def test_a_bad_manifest_is_refused_in_these_words(api: Cluster, kind: str, spec: dict[str, Any], refused: str) -> None:
    manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "bad"}, "spec": spec}
    done = api.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(manifest), check=False)
    assert done.returncode == 1
    assert [line.rstrip() for line in done.stderr.splitlines()] == refused.splitlines()


def test_the_api_server_fills_in_the_defaults(api: Cluster, namespace: str) -> None:
    api.kubectl("apply", "-f", str(CHECKOUT / "examples/first.yaml"), namespace=namespace)
    assert get(api, namespace, "ts", "hello")["spec"] == {
        "templateRef": {"name": "hello", "onDelete": "Keep"},
        "schedule": {"interval": "30s", "timeZone": "UTC", "onGap": "RunAfter", "onOverlap": "Once"},
        "suspend": False,
        "catchUp": {"policy": "RunOnce", "maxRuns": 5, "tolerance": "1m"},
        "concurrencyPolicy": "Forbid",
        "queueLimit": 10,
        "history": {"successful": 3, "failed": 3},
    }
    shell = get(api, namespace, "tt", "hello")["spec"]["shell"]
    assert shell["image"] == "busybox:1.37"


def test_a_schedule_may_change_from_cron_to_interval(api: Cluster, namespace: str) -> None:
    manifest: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "TaskSchedule", "metadata": {"name": "a"}}
    for when in ({"cron": "0 6 * * *"}, {"interval": "5m"}):
        manifest["spec"] = {"templateRef": {"name": "hello"}, "schedule": when}
        api.kubectl("apply", "-f", "-", input=json.dumps(manifest), namespace=namespace)
    assert "cron" not in get(api, namespace, "ts", "a")["spec"]["schedule"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("TaskSchedule", "ts.spec"),
        ("TaskSchedule", "ts.spec.schedule"),
        ("TaskSchedule", "ts.status"),
        ("TaskTemplate", "tt.spec"),
        ("TaskTemplate", "tt.spec.shell.pod"),
    ],
)
def test_kubectl_explain_describes_every_field(api: Cluster, kind: str, path: str) -> None:
    [schema] = [openapi_schema(each) for each in KINDS if each.name == kind]
    for name in path.split(".")[1:]:
        schema = schema["properties"][name]
    explained = words(api.kubectl("explain", path).stdout)
    for name, field in schema["properties"].items():
        assert f" {name} <" in explained
        assert words(field["description"]) in explained


def test_kubectl_get_prints_the_agreed_columns(api: Cluster, namespace: str) -> None:
    api.kubectl("apply", "-f", str(CHECKOUT / "examples/first.yaml"), namespace=namespace)
    for kind, status in (("ts", FULL_SCHEDULE_STATUS), ("tt", FULL_TEMPLATE_STATUS)):
        write_status(api, namespace, kind, status)
    schedule = table(api.kubectl("get", "ts", namespace=namespace).stdout)
    assert list(schedule) == (
        ["NAME", "SCHEDULE", "TIMEZONE", "PHASE", "LAST", "LAST RESULT", "NEXT", "ACTIVE", "FAILURES", "AGE"]
    )
    told = [schedule[column] for column in ("SCHEDULE", "TIMEZONE", "PHASE", "LAST RESULT", "NEXT")]
    assert told == ["every 30s", "UTC", "Active", "Succeeded", "2030-12-24T18:00:00Z"]
    assert (schedule["ACTIVE"], schedule["FAILURES"]) == ("1", "4")
    assert schedule["LAST"].endswith("d")
    assert table(api.kubectl("get", "ts", "-o", "wide", namespace=namespace).stdout)["TEMPLATE"] == "hello"
    template = table(api.kubectl("get", "tt", namespace=namespace).stdout)
    assert {**template, "AGE": ""} == (
        {"NAME": "hello", "TYPE": "shell", "SCHEDULES": "1", "ACTIVE": "1", "READY": "True", "AGE": ""}
    )


def test_both_kinds_are_in_the_category_cronwright(api: Cluster, namespace: str) -> None:
    api.kubectl("apply", "-f", str(CHECKOUT / "examples/first.yaml"), namespace=namespace)
    found = api.kubectl("get", "cronwright", "-o", "name", namespace=namespace).stdout.split()
    assert sorted(found) == ["taskschedule.cronwright.dev/hello", "tasktemplate.cronwright.dev/hello"]


@pytest.mark.parametrize(
    ("kind", "status"), [("ts", FULL_SCHEDULE_STATUS), ("tt", FULL_TEMPLATE_STATUS)], ids=["ts", "tt"]
)
def test_every_field_of_a_status_is_stored(
    api: Cluster, namespace: str, kind: str, status: TaskScheduleStatus | TaskTemplateStatus
) -> None:
    assert all(getattr(status, name) is not None for name in type(status).model_fields), "none is left out here"
    api.kubectl("apply", "-f", str(CHECKOUT / "examples/first.yaml"), namespace=namespace)
    write_status(api, namespace, kind, status)
    assert get(api, namespace, kind, "hello")["status"] == status.to_json()
