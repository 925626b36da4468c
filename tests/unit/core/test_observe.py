"""From a Job as the API server tells it to the record of a run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.views import T, at, claim, schedule, template

from cronwright.core.model import Json, Problem, Run
from cronwright.core.observe import run_from, template_from
from cronwright.core.render import render


def job(spec: Json | None = None, **status: Any) -> Json:
    shown = render(schedule(), template(), claim(0), {}, None)
    shown["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": at(1)}
    shown["spec"] |= spec or {}
    shown["status"] = status
    return shown


def told(spec: Json | None = None, **status: Any) -> Run:
    run = run_from(job(spec, **status))
    assert run is not None
    return run


def scribbled(mark: str, text: str) -> Run | None:
    """A Job on which somebody has written this in the place of our mark."""
    shown = job()
    shown["metadata"]["annotations"][f"cronwright.dev/{mark}"] = text
    return run_from(shown)


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


NO_NUMBERS = ("", "soon", "1.5", "0x10", "9" * 400, "9" * 5000)
NO_POLICIES = ("", "soon", "3", "{", '{"maxAttempts": 99}', '{"initialDelay": "soon"}', "[" * 5000)


@pytest.mark.parametrize(
    ("mark", "text"),
    [(mark, text) for mark in ("pending-timeout", "ttl") for text in NO_NUMBERS]
    + [("retry", text) for text in NO_POLICIES],
    ids=lambda value: value[:20],
)
def test_a_mark_that_cannot_be_read_counts_as_absent(mark: str, text: str) -> None:
    assert scribbled(mark, text) == told()


def test_marks_that_can_be_read_are() -> None:
    shown = job()
    marks = {"pending-timeout": "90", "ttl": "0", "retry": '{"maxAttempts": 2}'}
    shown["metadata"]["annotations"] |= {f"cronwright.dev/{mark}": text for mark, text in marks.items()}
    run = run_from(shown)
    assert run is not None
    assert (run.pending_timeout, run.ttl, run.retry and run.retry.max_attempts) == (90, 0, 2)


@pytest.mark.parametrize(
    ("mark", "text"),
    [(mark, text) for mark in ("slot", "attempt") for text in NO_NUMBERS]
    + [("slot", "999999999999"), ("attempt", "0"), ("trigger", ""), ("trigger", "Whim")],
    ids=lambda value: value[:20],
)
def test_a_job_whose_identity_cannot_be_read_is_no_run(mark: str, text: str) -> None:
    assert scribbled(mark, text) is None


def test_a_condition_without_a_message_is_a_verdict_all_the_same() -> None:
    meta = {"namespace": "ns", "name": "t", "uid": "u", "resourceVersion": "3", "generation": 1}
    refused = {"observedGeneration": 1, "conditions": [condition("Ready", "False", reason="InvalidJob")]}
    known = template_from({"metadata": meta, "spec": {"shell": {"script": "true"}}, "status": refused})
    assert known.problem == Problem("InvalidJob", "")
