"""Events: one for each transition that a person would care for, and none for routine repetition."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.views import at

from cronwright.core.model import Json, Note
from cronwright.core.story import story


def ready(state: str = "True", reason: str = "Active", message: str = "") -> Json:
    return {"conditions": [{"type": "Ready", "status": state, "reason": reason, "message": message}]}


def attempt(number: int = 1, slot: int = 0, **fields: Any) -> Json:
    return {"name": f"s-{number}", "slot": at(slot), "attempt": number, "phase": "Running", **fields}


def ended(phase: str, number: int = 1, slot: int = 0, **fields: Any) -> Json:
    return attempt(number, slot, **{"phase": phase, "finishedAt": at(9), **fields})


RUNNING = {"recentRuns": [attempt()]}
FAILED = {"recentRuns": [ended("Failed", category="Transient", exitCode=3, message="disk full.")]}
CANCELLED = {"recentRuns": [ended("Failed", category="Cancelled", message="Replaced by a newer run.")]}
RETRY = {"retrying": [{"slot": at(0), "attempt": 2, "at": at(60)}]}
SKIP = {"lastSkip": {"slot": at(0), "reason": "Forbidden", "message": "The run of X is not over."}}
NEXT_SKIP = {"lastSkip": {"slot": at(60), "reason": "Forbidden"}}
REFUSED = {"requests": [{"id": "a", "kind": "RunNow", "state": "Refused", "message": "No."}]}
ACCEPTED = {"requests": [{"id": "a", "kind": "RunNow", "state": "Accepted", "message": "1 run claimed."}]}

ROWS: dict[str, tuple[Json, Json, list[tuple[str, str, str]]]] = {
    # Routine
    "nothing changed": (FAILED | SKIP, FAILED | SKIP, []),
    "a new schedule": ({}, ready() | {"phase": "Active"}, []),
    "a run starts": ({}, RUNNING, []),
    "a run succeeds": (RUNNING, {"recentRuns": [ended("Succeeded")]}, []),
    # Runs
    "a run fails": (RUNNING, FAILED, [("Warning", "RunFailed", "s-1 failed (Transient, exit code 3). disk full.")]),
    "a run fails that nobody saw start": (
        {},
        FAILED,
        [("Warning", "RunFailed", "s-1 failed (Transient, exit code 3). disk full.")],
    ),
    "a run fails and is tried again": (
        RUNNING,
        FAILED | RETRY,
        [
            (
                "Warning",
                "RunFailed",
                f"s-1 failed (Transient, exit code 3). disk full. Attempt 2 starts at {at(60)}.",
            )
        ],
    ),
    "a failure that was told": (FAILED, FAILED | {"runs": 2}, []),
    "a run succeeds after all": (
        {"recentRuns": [attempt(2)]},
        {"recentRuns": [ended("Succeeded", 2)]},
        [("Normal", "RunSucceeded", "s-2 succeeded at attempt 2.")],
    ),
    "a run is replaced": (RUNNING, CANCELLED, [("Normal", "RunCancelled", "s-1 was ended. Replaced by a newer run.")]),
    "two runs fail, told in their order": (
        {},
        {"recentRuns": [ended("Failed", 2, 60, category="Timeout"), ended("Failed", 1, 0, category="Timeout")]},
        [("Warning", "RunFailed", "s-1 failed (Timeout)."), ("Warning", "RunFailed", "s-2 failed (Timeout).")],
    ),
    "a success after failures": (
        {"consecutiveFailures": 3},
        {"consecutiveFailures": 0},
        [("Normal", "Recovered", "A run succeeded after 3 that failed.")],
    ),
    # Slots
    "a slot is skipped": (
        {},
        SKIP,
        [("Warning", "Forbidden", f"The slot {at(0)} did not run. The run of X is not over.")],
    ),
    "and the next one": (SKIP, NEXT_SKIP, []),
    "and one after a run": (
        SKIP,
        NEXT_SKIP | {"lastScheduleTime": at(30)},
        [("Warning", "Forbidden", f"The slot {at(60)} did not run.")],
    ),
    "and one for another reason": (
        SKIP,
        {"lastSkip": {"slot": at(60), "reason": "QueueFull"}},
        [("Warning", "QueueFull", f"The slot {at(60)} did not run.")],
    ),
    "slots are missed": (
        {},
        {"missed": 3, "lastSkip": {"slot": at(0), "reason": "CatchUpSkipped"}},
        [("Warning", "Missed", "3 slots were missed while nobody was there to run them (see spec.catchUp).")],
    ),
    # Whether it can run
    "it cannot run": ({}, ready("False", "InvalidCron", "No."), [("Warning", "InvalidCron", "No.")]),
    "it still cannot": (ready("False", "InvalidCron", "No."), ready("False", "InvalidCron", "No."), []),
    "and its slots are skipped": (
        ready("False", "TemplateNotFound", "No."),
        ready("False", "TemplateNotFound", "No.") | {"lastSkip": {"slot": at(0), "reason": "TemplateNotFound"}},
        [],
    ),
    "it can again": (
        ready("False", "InvalidCron", "No."),
        ready(),
        [("Normal", "Ready", "What was wrong has been mended.")],
    ),
    # Requests
    "a request is refused": ({}, REFUSED, [("Warning", "RequestRefused", "Request a (RunNow): No.")]),
    "a request is accepted": ({}, ACCEPTED, [("Normal", "RequestAccepted", "Request a (RunNow): 1 run claimed.")]),
    "a request was told": (ACCEPTED, {"requests": [{**ACCEPTED["requests"][0], "state": "Done"}]}, []),
    # Lifecycle
    "completed": (
        {"phase": "Active"},
        {"phase": "Completed", **ready("True", "Completed", "Nothing is left.")},
        [("Normal", "Completed", "Nothing is left.")],
    ),
    "its time was past": (
        {},
        {"phase": "Completed", **ready("True", "AtInPast", "Past.")},
        [("Warning", "AtInPast", "Past.")],
    ),
    "suspended": (
        {"phase": "Active"},
        {"phase": "Suspended"},
        [("Normal", "Suspended", "spec.suspend is true: no new runs are started.")],
    ),
    "resumed": (
        {"phase": "Suspended"},
        {"phase": "Active", "nextRunTime": at(60)},
        [("Normal", "Resumed", f"The next run is at {at(60)}.")],
    ),
    "resumed after a pause": (
        {"phase": "Paused", **ready("False", "TooManyFailures", "3 runs.")},
        {"phase": "Active", "nextRunTime": at(60), **ready()},
        [("Normal", "Resumed", f"The next run is at {at(60)}.")],
    ),
    "paused": (
        {"phase": "Active", **ready()},
        {"phase": "Paused", **ready("False", "TooManyFailures", "3 runs.")},
        [("Warning", "TooManyFailures", "3 runs.")],
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), ROWS.values(), ids=ROWS)
def test_what_is_told(old: Json, new: Json, expected: list[tuple[Any, str, str]]) -> None:
    assert list(story(old, new)) == [Note(*note) for note in expected]
