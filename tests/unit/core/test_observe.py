"""From a Job as the API server tells it to the record of a run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.views import T, at, claim, schedule, template

from cronwright.core.model import Json, Run
from cronwright.core.observe import run_from
from cronwright.core.render import render


def told(spec: Json | None = None, **status: Any) -> Run:
    job = render(schedule(), template(), claim(0), {}, None)
    job["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": at(1)}
    job["spec"] |= spec or {}
    job["status"] = status
    run = run_from(job)
    assert run is not None
    return run


def condition(kind: str, status: str, **more: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": at(9), **more}


SUSPENDED: dict[str, tuple[Run, tuple[bool, bool]]] = {
    "never": (told(startTime=at(2)), (False, False)),
    "created so": (told({"suspend": True}), (True, False)),
    "noted": (told({"suspend": True}, conditions=[condition("Suspended", "True")]), (True, False)),
    "let go, not noted yet": (told({"suspend": False}, conditions=[condition("Suspended", "True")]), (True, False)),
    "let go": (told(startTime=at(5), conditions=[condition("Suspended", "False")]), (False, True)),
}


@pytest.mark.parametrize(("run", "expected"), SUSPENDED.values(), ids=SUSPENDED)
def test_whether_a_queueing_system_holds_a_job(run: Run, expected: tuple[bool, bool]) -> None:
    assert (run.suspended, run.resumed) == expected


ENDED: dict[str, tuple[Run, tuple[str, int | None, str]]] = {
    "new": (told(), ("Pending", None, "")),
    "started": (told(startTime=at(2), active=1), ("Running", None, "")),
    "complete": (told(completionTime=at(8), conditions=[condition("Complete", "True")]), ("Succeeded", T + 8, "")),
    "failed": (
        told(conditions=[condition("Failed", "True", reason="DeadlineExceeded")]),
        ("Failed", T + 9, "DeadlineExceeded"),
    ),
    "about to fail": (told(conditions=[condition("FailureTarget", "True", reason="x")]), ("Pending", None, "")),
    "not failed": (told(conditions=[condition("Failed", "False")]), ("Pending", None, "")),
}


@pytest.mark.parametrize(("run", "expected"), ENDED.values(), ids=ENDED)
def test_how_far_a_job_has_come(run: Run, expected: tuple[str, int | None, str]) -> None:
    assert (run.phase, run.finished, run.reason) == expected


def test_a_pod_on_its_way_out_is_noticed() -> None:
    assert (told(terminating=1).leaving, told(terminating=0).leaving, told().leaving) == (True, False, False)


def test_a_job_without_our_marks_is_no_run() -> None:
    assert run_from({"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}}) is None
