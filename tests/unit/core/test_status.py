"""Status: what people and kstatus read. Whatever is decided, the API server's schema takes it, and it is bounded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.views import MINUTE, T, at, before, claim, failed, ledger, run, schedule, succeeded, template, view

from cronwright.api.status import MAX_ACTIVE, MAX_MESSAGE, MAX_RECENT_RUNS, MAX_REQUESTS, TaskScheduleStatus
from cronwright.core.decide import decide
from cronwright.core.model import Handled, Json, Outcome, Problem, Skip, View
from cronwright.core.progress import remembered


def status_of(known: View) -> Json:
    """The status that is decided on, as the CRD's schema would take it."""
    status = decide(known).status
    TaskScheduleStatus.model_validate(status)
    return status


def ready(status: Json) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in status["conditions"] if c["type"] == "Ready")


def stalled(status: Json) -> bool:
    return any(c["type"] == "Stalled" and c["status"] == "True" for c in status["conditions"])


INVALID = schedule(schedule={"cron": "61 * * * *"})
WAITING = schedule(created=0)
PHASES: dict[str, tuple[View, str, tuple[str, str]]] = {
    "new": (view(recorded=False, now=-1), "Active", ("True", "Active")),
    "suspended": (view(schedule(suspend=True)), "Suspended", ("True", "Suspended")),
    "paused": (
        view(schedule(pauseAfterFailures=2), known=ledger(schedule(), paused=1, paused_at=T)),
        "Paused",
        ("False", "TooManyFailures"),
    ),
    "budget used up": (
        view(schedule(maxRuns=2), known=ledger(schedule(), spent=2)),
        "Completed",
        ("True", "Completed"),
    ),
    "budget used up, the last run active": (
        view(schedule(maxRuns=1), known=ledger(schedule(), claim(-60)), runs=[run(claim(-60))]),
        "Active",
        ("True", "Active"),
    ),
    "expired": (view(schedule(expiresAt=at(-90))), "Expired", ("True", "Expired")),
    "an invalid expression": (view(INVALID, known=ledger(INVALID)), "Invalid", ("False", "InvalidCron")),
    "no template": (view(gone=True), "Invalid", ("False", "TemplateNotFound")),
    "no template yet": (view(WAITING, known=ledger(WAITING), gone=True), "Active", ("Unknown", "WaitingForTemplate")),
    "a template being checked": (view(using=template(checked=False)), "Active", ("Unknown", "WaitingForTemplate")),
    "parameters": (view(schedule(parameters={"x": "1"})), "Invalid", ("False", "InvalidParameters")),
}


@pytest.mark.parametrize(("known", "phase", "condition"), PHASES.values(), ids=PHASES)
def test_phases_and_the_conditions_that_kstatus_reads(known: View, phase: str, condition: tuple[str, str]) -> None:
    status = status_of(known)
    assert (status["phase"], ready(status)) == (phase, condition)
    assert stalled(status) is (condition[0] == "False"), "only a person can help"
    assert status["observedGeneration"] == 1


def test_a_template_that_is_refused_makes_its_schedules_invalid_with_the_same_words() -> None:
    using = template()
    using.problem = Problem("InvalidJob", 'Job "x" is invalid: spec.template.')
    status = status_of(view(using=using))
    assert ready(status) == ("False", "TemplateInvalid")
    assert status["conditions"][0]["message"] == 'TaskTemplate t: Job "x" is invalid: spec.template.'


def test_a_transition_time_moves_only_with_its_status() -> None:
    first = status_of(view(schedule(suspend=True)))
    later = status_of(view(schedule(status=first), now=30))
    assert later["conditions"][0]["reason"] == "Active"
    assert later["conditions"][0]["lastTransitionTime"] == first["conditions"][0]["lastTransitionTime"] == at(0)
    broken = status_of(view(schedule(status=later), gone=True, now=40))
    assert [c["lastTransitionTime"] for c in broken["conditions"]] == [at(40), at(40)]


def test_the_next_five_slots_and_no_more_than_the_budget() -> None:
    assert status_of(view(now=-1))["upcoming"] == [at(60 * n) for n in range(5)]
    of = schedule(maxRuns=3)
    assert status_of(view(of, known=ledger(of, spent=1), now=-1))["upcoming"] == [at(0), at(60)]
    assert "nextRunTime" not in status_of(view(schedule(suspend=True)))


def test_a_pause_says_what_caused_it_whatever_runs_meanwhile() -> None:
    of = schedule(pauseAfterFailures=3)
    known = ledger(of, paused=1, paused_at=T - 5, consecutive_failures=0)
    assert status_of(view(of, known=known))["paused"] == {
        "since": at(-5),
        "reason": "TooManyFailures",
        "message": "3 runs failed in a row (spec.pauseAfterFailures). Any change of the spec, or a Resume request "
        "(kubectl task resume), starts it again.",
        "generation": 1,
    }


# Records


def record(known: View) -> Json:
    [found] = status_of(known)["recentRuns"]
    assert isinstance(found, dict)
    return found


def known_run(job: Any, **spec: Any) -> View:
    of = schedule(suspend=True, **spec)
    mine = claim(-MINUTE)
    return view(of, known=ledger(of, mine), runs=[job], using=template(captureResult=True))


HEAD = {"name": f"s-{T - 60}-1", "slot": at(-60), "trigger": "Schedule", "attempt": 1}
MINE = claim(-MINUTE)
RECORDS: dict[str, tuple[Any, Json]] = {
    "created": (run(MINE, started=None, ready=False), {"phase": "Running", "startedAt": at(-60)}),
    "noted by the Job controller": (run(MINE, started=T - 58), {"phase": "Running", "startedAt": at(-60)}),
    "suspended by a queueing system": (
        run(MINE, started=None, suspended=True, phase="Pending", ready=False),
        {"phase": "Pending"},
    ),
    "let go by it": (run(MINE, started=T - 5, resumed=True), {"phase": "Running", "startedAt": at(-5)}),
    "succeeded": (
        succeeded(MINE, started=T - 58, outcome=Outcome(None, 0, "", "42")),
        {"phase": "Succeeded", "startedAt": at(-58), "finishedAt": at(-55), "exitCode": 0, "result": "42"},
    ),
    "failed": (
        failed(MINE, outcome=Outcome("Permanent", 64, "usage")),
        {
            "phase": "Failed",
            "startedAt": at(-60),
            "finishedAt": at(-55),
            "category": "Permanent",
            "exitCode": 64,
            "message": "usage",
        },
    ),
    "deleted": (
        run(MINE, gone=True),
        {
            "phase": "Failed",
            "startedAt": at(-60),
            "finishedAt": at(0),
            "category": "Cancelled",
            "message": "Its Job was deleted before it finished.",
        },
    ),
    "replaced": (
        run(MINE, gone=True, reason="Replaced"),
        {
            "phase": "Failed",
            "startedAt": at(-60),
            "finishedAt": at(0),
            "category": "Cancelled",
            "message": "Replaced by a newer run.",
        },
    ),
}


@pytest.mark.parametrize(("job", "expected"), RECORDS.values(), ids=RECORDS)
def test_records(job: Any, expected: Json) -> None:
    assert record(known_run(job)) == HEAD | expected


def test_what_the_job_controller_notes_while_a_run_is_going_on_costs_no_write() -> None:
    told = status_of(known_run(run(MINE, started=None, ready=False, phase="Pending")))
    for job in (
        run(MINE, started=T - 59, ready=False),
        run(MINE, started=T - 59),
        run(MINE, started=T - 59, version=9),
    ):
        assert status_of(known_run(job, status=told)) == told


def test_a_record_outlives_its_job() -> None:
    told = status_of(known_run(succeeded(MINE)))
    of = schedule(suspend=True, status=told)
    assert status_of(view(of, known=ledger(of)))["recentRuns"] == told["recentRuns"]


def test_what_disappeared_while_nobody_watched_was_deleted() -> None:
    told = status_of(known_run(run(MINE)))
    of = schedule(suspend=True, status=told)
    assert decide(view(of, known=ledger(of, MINE))).inspect == (run(MINE).name,), "it is asked for first"
    [record] = told["recentRuns"]
    status = status_of(view(of, known=ledger(of, MINE), runs=[remembered(MINE, record["name"], record)]))
    assert status["recentRuns"][0]["category"] == "Cancelled"
    assert (status["cancelled"], status["activeRuns"]) == (1, 0)


# Bounds


def test_a_busy_old_schedule_has_a_small_status() -> None:
    of = schedule(concurrencyPolicy="Allow", suspend=True)
    claims = [claim(-MINUTE * n) for n in range(300, 0, -1)]
    runs = [run(c) for c in claims[:150]] + [
        failed(c, outcome=Outcome("Transient", 1, "m" * 5000, "r" * 9000), retry=None) for c in claims[150:]
    ]
    known = ledger(
        of,
        *claims,
        last_skip=Skip(T - 60, "TemplateInvalid", "x" * 5000),
        requests=tuple(Handled(f"i{n}", "RunNow", False, "y" * 5000, T) for n in range(50)),
        skips={"Forbidden": 10**9},
    )
    status = status_of(view(of, known=known, runs=runs))
    assert len(status["active"]) == MAX_ACTIVE
    assert status["activeRuns"] == 150
    assert len(status["recentRuns"]) == MAX_RECENT_RUNS
    assert {len(record["message"]) for record in status["recentRuns"]} == {MAX_MESSAGE}
    assert len(status["requests"]) == MAX_REQUESTS
    assert len(status["lastSkip"]["message"]) == 1024


@pytest.mark.parametrize("letters", ["", "A", "P", "W", "R", "D", "S", "F", "X", "L", "AWRSFX"])
@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace", "Queue"])
def test_every_status_fits_the_schema(policy: str, letters: str) -> None:
    of = schedule(concurrencyPolicy=policy, requests={"a": "{}", "b": "?"})
    claims, runs = before(letters)
    first = decide(view(of, known=ledger(of, *claims), runs=runs))
    TaskScheduleStatus.model_validate(first.status)
    status_of(view(schedule(status=first.status), known=first.ledger, runs=runs, now=1))


SUMMARIES = {
    "every 1m30s": {"interval": "90s"},
    "at 2027-01-01T00:00:00Z": {"at": "2027-01-01T00:00:00Z"},
    "*/5 * * * *": {"cron": "*/5 * * * *"},
    "0 6 * * *, 0 18 * * *": {"crons": ["0 6 * * *", "0 18 * * *"]},
}


@pytest.mark.parametrize(("text", "when"), SUMMARIES.items(), ids=SUMMARIES)
def test_a_schedule_in_a_few_words(text: str, when: Json) -> None:
    of = schedule(schedule=when)
    assert status_of(view(of, known=ledger(of)))["schedule"] == text
