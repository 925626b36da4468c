"""How far each claim has come: the ledger's promise beside what its Job (or what is left of it) shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cronwright.api.retrying import Retry
from cronwright.core.failures import delay_before, may_retry
from cronwright.core.model import Category, Claim, Json, Outcome, Run, View
from cronwright.core.names import job_name
from cronwright.timing import parse_instant

State = Literal["Waiting", "Active", "Inspecting", "Retrying", "Ended"]


@dataclass(frozen=True, slots=True)
class Progress:
    claim: Claim
    name: str
    state: State
    run: Run | None = None
    outcome: Outcome | None = None
    finished: int = 0
    retry_at: int = 0
    asked: bool = False
    """Its Job was asked for without an answer, and nobody has seen it."""

    @property
    def unfinished(self) -> bool:
        """The run is not over yet: it waits to start, has pods, will be tried again, or nobody knows yet whether."""
        return self.state != "Ended"

    @property
    def unstarted(self) -> bool:
        """It has certainly not begun: dropping it is all there is to do."""
        return self.state == "Waiting" and not self.asked

    @property
    def standing(self) -> bool:
        """The Job still exists as evidence of how the run ended."""
        return self.run is not None and self.run.standing


def progress_of(view: View, claim: Claim) -> Progress:
    name = job_name(view.schedule.key.name, claim)
    run = view.runs.get(name)
    if run is None:
        return _without_job(view, claim, name)
    if run.finished is not None:
        return _finished(view, claim, run)
    if run.gone:
        outcome = cancelled(claim.ending or run.reason)
        return Progress(claim, name, "Ended", run, outcome, int(view.now))
    return Progress(claim, name, "Active", run)


def cancelled(reason: str) -> Outcome:
    """The outcome of a run whose Job was taken away before it finished."""
    return Outcome("Cancelled", None, _CANCELLED.get(reason, _CANCELLED["Deleted"]))


_CANCELLED = {
    "Replaced": "Replaced by a newer run.",
    "Cancelled": "Cancelled by a request.",
    "Deleted": "Its Job was deleted before it finished.",
}


def _finished(view: View, claim: Claim, run: Run) -> Progress:
    assert run.finished is not None
    if run.outcome is None:
        if not run.gone and needs_inspection(view, run):
            return Progress(claim, run.name, "Inspecting", run, None, run.finished)
        category: Category | None = None if run.phase == "Succeeded" else "Cancelled" if claim.ending else "Transient"
        outcome = Outcome(category, None, run.message)
    else:
        outcome = run.outcome
    if not run.gone and not claim.ending and may_retry(outcome, run.attempt, run.retry):
        assert run.retry is not None
        at = run.finished + delay_before(run.attempt + 1, run.retry)
        return Progress(claim, run.name, "Retrying", run, outcome, run.finished, at)
    return Progress(claim, run.name, "Ended", run, outcome, run.finished)


def needs_inspection(view: View, run: Run) -> bool:
    """Whether the pods have something to tell that the Job does not: why it failed, or its result."""
    if run.phase == "Failed":
        return True
    spec = view.template.spec if view.template else None
    return spec is not None and (spec.capture_result or spec.python is not None)


def _without_job(view: View, claim: Claim, name: str) -> Progress:
    """No Job is known: not started yet, or started and gone, or our picture of the Jobs is older than that of status.

    So where status has seen it, or it was being ended, the Job itself is asked for before anything is concluded.
    """
    if claim.ending or record_of(view.schedule.status, name) is not None:
        return Progress(claim, name, "Inspecting")
    return Progress(claim, name, "Waiting", asked=name in view.asked)


def record_of(status: Json, name: str) -> Json | None:
    return next((r for r in status.get("recentRuns") or () if r["name"] == name), None)


def retry_of(status: Json, schedule: str, claim: Claim) -> Json | None:
    """The next attempt, if status says that one is waiting for its time."""
    following = job_name(schedule, replace(claim, attempt=claim.attempt + 1))
    return next((r for r in status.get("retrying") or () if r["name"] == following), None)


def remembered(claim: Claim, name: str, record: Json | None, retry: Retry | None = None) -> Run:
    """A run whose Job is certainly not there, as far as status remembers it.

    With a `retry` it was refused, and waits for its next attempt; otherwise it is gone.
    """
    run = Run(
        name=name,
        uid="",
        version=0,
        slot=claim.slot,
        attempt=claim.attempt,
        trigger=claim.trigger,
        token=claim.token,
        phase="Running",
        created=claim.claimed,
        gone=True,
    )
    if record is None or "finishedAt" not in record:
        return run
    run.phase, run.finished = record["phase"], parse_instant(record["finishedAt"])
    run.gone, run.refused, run.retry = retry is None, retry is not None, retry
    category = None if run.phase == "Succeeded" else record.get("category", "Transient")
    run.outcome = Outcome(category, record.get("exitCode"), record.get("message", ""), record.get("result", ""))
    return run
