"""Who asks for runs learns how they ended, from the status alone: it outlives the Jobs and the run records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from cronwright.api import TaskTemplateSpec
from cronwright.core.decide import decide
from cronwright.core.ledger import decode, encode
from cronwright.core.model import Category, Decision, Key, Outcome, Run, Schedule, Template, View
from cronwright.core.observe import schedule_from
from cronwright.core.rebuilding import rebuild

NOW = 1_795_046_400
TEMPLATE = Template(
    key=Key("shop", "report"),
    uid="t",
    version=1,
    generation=1,
    deleting=False,
    spec=TaskTemplateSpec.model_validate({"shell": {"script": "true"}}),
    problem=None,
    checked=True,
    status={},
)


def hourly(**annotations: str) -> Schedule:
    meta: dict[str, Any] = {
        "namespace": "shop",
        "name": "report",
        "uid": "s",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-11-01T00:00:00Z",
        "annotations": {f"request.cronwright.dev/{name}": text for name, text in annotations.items()},
    }
    spec = {
        "templateRef": {"name": "report"},
        "concurrencyPolicy": "Allow",
        "schedule": {"cron": "0 * * * *"},
        "suspend": True,  # only what is asked for runs
    }
    return schedule_from({"metadata": meta, "spec": spec})


def look(schedule: Schedule, before: Decision | None = None, runs: dict[str, Run] | None = None) -> Decision:
    ledger = None if before is None else before.ledger
    return decide(View(schedule, TEMPLATE, ledger, ledger is not None, runs or {}, NOW + 60))


def ended(decision: Decision, *categories: Category | None) -> dict[str, Run]:
    """The runs that a decision started, each ended as given: None is a success."""
    return {
        start.name: Run(
            name=start.name,
            uid=start.name,
            version=1,
            slot=start.claim.slot,
            attempt=1,
            trigger=start.claim.trigger,
            token=start.claim.token,
            phase="Failed" if category else "Succeeded",
            created=NOW,
            finished=NOW + 30,
            outcome=Outcome(category),
        )
        for start, category in zip(decision.starts, categories, strict=True)
    }


def backfill(hours: int) -> str:
    return f'{{"kind": "Backfill", "from": "2026-11-05T00:00:00Z", "to": "2026-11-05T{hours - 1:02}:30:00Z"}}'


def test_a_backfill_counts_how_its_runs_ended() -> None:
    schedule = hourly(b=backfill(3))
    asked = look(schedule)
    [request] = asked.status["requests"]
    assert (request["state"], request["runs"], request["succeeded"], request["failed"]) == ("Accepted", 3, 0, 0)
    done = look(schedule, asked, ended(asked, None, "Permanent", None))
    [request] = done.status["requests"]
    assert (request["state"], request["runs"], request["succeeded"], request["failed"]) == ("Done", 3, 2, 1)


def test_a_cancelled_run_is_neither_a_success_nor_a_failure() -> None:
    schedule = hourly(b=backfill(2))
    asked = look(schedule)
    done = look(schedule, asked, ended(asked, None, "Cancelled"))
    [request] = done.status["requests"]
    assert (request["state"], request["runs"], request["succeeded"], request["failed"]) == ("Done", 2, 1, 0)


def test_each_request_counts_its_own_runs() -> None:
    schedule = hourly(a="{}", b="{}")
    asked = look(schedule)
    done = look(schedule, asked, ended(asked, "Permanent", None))
    counts = {r["id"]: (r["succeeded"], r["failed"]) for r in done.status["requests"]}
    assert counts == {"a": (0, 1), "b": (1, 0)}


def test_a_refused_request_has_no_runs_to_count() -> None:
    [request] = look(hourly(b='{"kind": "Resume"}')).status["requests"]
    assert request["state"] == "Refused"
    assert "runs" not in request


def test_the_counts_survive_in_the_ledger_and_without_it() -> None:
    schedule = hourly(b=backfill(3))
    asked = look(schedule)
    done = look(schedule, asked, ended(asked, None, "Permanent", None))
    assert decode(encode(done.ledger)).requests == done.ledger.requests
    assert rebuild(replace(schedule, told=orjson.dumps(done.status).decode()), {}).requests == done.ledger.requests


def test_a_ledger_from_before_the_counts_is_still_read() -> None:
    [request] = decode(
        '{"v":1,"timing":"x","watermark":1,"requests":[["a","RunNow",true,"1 run claimed.",5]]}'
    ).requests
    assert (request.id, request.runs) == ("a", 0)
