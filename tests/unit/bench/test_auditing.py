"""Calls are counted once, as what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hack.bench.lab.auditing import Audit, by_kind, calls, of, runs_in
from hack.bench.lab.errors import BenchError
from hack.bench.lab.figures import Spread
from hack.bench.writes import count

OURS = "system:serviceaccount:cronwright-system:cronwright"


def event(verb: str, resource: str, *, stage: str = "ResponseComplete", code: int = 200, **reference: Any) -> bytes:
    return orjson.dumps(
        {
            "stage": stage,
            "verb": verb,
            "requestURI": reference.pop("uri", "/"),
            "user": {"username": OURS},
            "objectRef": {"resource": resource, "namespace": "bench", **reference},
            "responseStatus": {"code": code},
        }
    )


def test_a_call_is_named_by_verb_and_subresource() -> None:
    found = list(calls([event("patch", "taskschedules", subresource="status")]))
    assert by_kind(found) == {"patch taskschedules/status": 1}


def test_clients_of_one_user_are_told_apart_by_what_they_call_themselves() -> None:
    lines = [orjson.dumps({**orjson.loads(event("list", "jobs")), "userAgent": name}) for name in ("kopf/1.45", "cw")]
    assert [call.agent for call in calls(lines)] == ["kopf", "cw"]


def test_a_watch_is_counted_when_it_opens_and_not_again_when_it_ends() -> None:
    stages = [event("watch", "jobs", stage=stage) for stage in ("ResponseStarted", "ResponseComplete")]
    assert by_kind(calls(stages)) == {"watch jobs": 1}


def test_a_conflict_is_a_call_but_not_a_run() -> None:
    found = list(calls([event("create", "jobs", code=code) for code in (201, 409)]))
    assert (by_kind(found), runs_in(found)) == ({"create jobs": 2}, 1)


def test_a_dry_run_is_neither_a_write_nor_a_run() -> None:
    found = list(calls([event("create", "jobs", code=201, uri="/apis/batch/v1/jobs?dryRun=All")]))
    assert ([call.writes for call in found], runs_in(found)) == ([False], 0)


def test_leadership_is_background_and_a_claim_is_not() -> None:
    found = list(calls([event("update", "leases"), event("update", "leases", namespace="cronwright-system")]))
    assert [call.namespace for call in of(found, OURS)] == ["bench"]
    assert [call.namespace for call in of(found, OURS, background=True)] == ["cronwright-system"]


def test_requests_that_are_not_about_objects_are_left_out() -> None:
    version = orjson.loads(event("get", "x"))
    del version["objectRef"]
    assert list(calls([orjson.dumps(version)])) == []


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.log")
    assert (audit.mark(), audit.between(0)) == (0, [])
    first, second = event("create", "jobs"), event("delete", "jobs")
    audit.log.write_bytes(first + b"\n" + second[:20])
    mark = audit.mark()
    assert by_kind(audit.between(0, mark)) == {"create jobs": 1}
    audit.log.write_bytes(first + b"\n" + second + b"\n")
    assert by_kind(audit.between(mark)) == {"delete jobs": 1}


def test_writes_are_told_for_one_run_of_each_minute() -> None:
    """A call that only removes an older Job is a write, but not one without which the run could not be."""
    claim, job = event("update", "leases"), event("create", "jobs", code=201)
    removal, renewal = event("delete", "jobs"), event("update", "leases", namespace="cronwright-system")
    minutes = [list(calls([claim, job, renewal])), list(calls([claim, job, removal, renewal]))]
    counts = count("ours", OURS, minutes)
    assert (counts.runs, counts.calls["delete jobs"], counts.background) == (2, 0.5, {"update leases": 1.0})
    assert (counts.writes, counts.essential) == (Spread(2.5, 2, 3), Spread(2, 2, 2))


def test_a_minute_without_a_run_is_no_result() -> None:
    with pytest.raises(BenchError, match="no run"):
        count("ours", OURS, [list(calls([event("update", "leases")]))])
