"""Which Jobs are taken away before they finish, and when to look at those that may have to be.

A Job is deleted to make room (Replace), and ended where it stands, to be read afterwards, when somebody cancelled it,
when no pod of it came to run in time (`pendingTimeout`), or when none ever can. A Job that nobody claimed is not a run:
it can only come from a replica that was paused in the middle of creating it, and it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cronwright.core.model import Claim, Run, Stop, View
from cronwright.core.names import job_name
from cronwright.core.progress import Progress

FIRST_LOOK, NEXT_LOOK = 10, 30
"""Seconds without a ready pod after which a run's pods are looked at, and between two such looks."""


def stops(view: View, open_: Sequence[Progress]) -> Iterator[Stop]:
    for p in open_:
        run = p.run
        if p.state != "Active" or run is None or (run.deleting and (run.reason or not p.claim.ending)):
            continue
        # A Job does not say why it is being deleted, so whoever takes over asks once more, and knows.
        if run.deleting or p.claim.ending == "Replaced" or (p.claim.ending and run.suspended):
            yield Stop(p.name, "Delete", p.claim.ending)
        elif p.claim.ending:
            if run.reason != p.claim.ending:
                yield Stop(p.name, "End", p.claim.ending)
        elif (deadline := _pending_deadline(run)) is not None and deadline <= view.now:
            yield Stop(p.name, "EndIfPending", "PendingTimeout")
        elif _waits(run) and _next_look(run) <= view.now:
            yield Stop(p.name, "EndIfHopeless")


def needs_a_glimpse(p: Progress) -> bool:
    """A pod is going that we did not send away. Why must be asked now: when the Job has failed it will be gone."""
    run = p.run
    if p.state != "Active" or run is None or p.claim.ending or run.deleting or run.reason:
        return False
    return run.leaving and run.glimpsed is None


def strays(view: View, claims: Iterable[Claim]) -> list[Stop]:
    claimed = {job_name(view.schedule.key.name, claim) for claim in claims}
    return [
        Stop(run.name, "Delete", "Stray")
        for run in view.runs.values()
        if run.standing and not run.over and not run.deleting and run.name not in claimed
    ]


def wakes(open_: Iterable[Progress]) -> Iterator[float]:
    for p in open_:
        if p.state == "Active" and p.run is not None and not p.claim.ending and _waits(p.run):
            yield _next_look(p.run)
            if (deadline := _pending_deadline(p.run)) is not None:
                yield deadline


def _waits(run: Run) -> bool:
    """No pod of it has been seen ready. A suspended Job waits for its queue, not for pods."""
    return not (run.ready or run.suspended or run.reason or run.deleting)


def _next_look(run: Run) -> int:
    return run.examined + NEXT_LOOK if run.examined else (run.started or run.created) + FIRST_LOOK


def _pending_deadline(run: Run) -> int | None:
    if run.pending_timeout is None or not _waits(run):
        return None
    return (run.started or run.created) + run.pending_timeout
