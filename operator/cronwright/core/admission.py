"""Which due slots become claims, and which are skipped: overlap policy and budget.

A batch is all the slots that one look finds due: normally one, several after an outage with `RunAll`. Policies speak
about a batch and the runs before it; inside a batch the runs follow each other (`Replace` keeps its latest only).

What may wait is limited by `queueLimit`, under Allow too, where only a template's `maxConcurrentRuns` makes runs wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cronwright.core.model import Claim, Ledger, Skip, Trigger, View
from cronwright.core.progress import Progress
from cronwright.timing import format_instant

MOST_OPEN = 1000
"""Runs of a schedule that may be claimed and not over: each takes room in the ledger, which is an annotation."""


@dataclass(slots=True)
class Admission:
    claims: list[Claim] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    replaced: bool = False
    """The runs before this batch give way to it."""


def admit(
    batch: Sequence[tuple[int, Trigger]],
    *,
    now: int,
    policy: str,
    queue_limit: int,
    budget: int | None,
    before: Sequence[Progress],
) -> Admission:
    admission = Admission()
    unfinished = [p for p in before if p.unfinished]
    waiting = sum(p.state == "Waiting" for p in before)
    held_up = sum(p.state == "Waiting" and p.claim.claimed < now for p in before)
    for index, (slot, trigger) in enumerate(batch):
        skip = None
        if budget is not None and len(admission.claims) >= budget:
            skip = Skip(slot, "MaxRunsReached", "spec.maxRuns has been used up.")
        elif policy == "Forbid" and unfinished:
            skip = Skip(slot, "Forbidden", f"The run of {_said(unfinished[0])} is not over.")
        elif policy == "Replace":
            if index < len(batch) - 1:
                skip = Skip(slot, "Replaced", f"Replaced by the slot {format_instant(batch[-1][0])}.")
        elif held_up >= queue_limit or (
            policy == "Queue" and unfinished and waiting + len(admission.claims) >= queue_limit
        ):
            skip = Skip(slot, "QueueFull", f"{_count(queue_limit)} waiting already (spec.queueLimit).")
        elif len(before) + len(admission.claims) >= MOST_OPEN:
            skip = Skip(slot, "TooManyRuns", f"{MOST_OPEN} runs of this schedule are not over.")
        if skip is not None:
            admission.skips.append(skip)
        else:
            admission.claims.append(Claim(slot, 1, trigger, now))
    admission.replaced = policy == "Replace" and bool(admission.claims)
    return admission


def _count(runs: int) -> str:
    return "1 run is" if runs == 1 else f"{runs} runs are"


def held(view: View, ledger: Ledger, p: Progress) -> bool:
    """A slot's run that waits because its schedule is suspended or has paused itself: nothing need wait for it."""
    spec = view.schedule.spec
    if p.state != "Waiting" or p.claim.token or p.claim.attempt > 1:
        return False
    return bool(ledger.paused) or (spec is not None and spec.suspend)


def give_way(ledger: Ledger, before: Sequence[Progress]) -> Ledger:
    """Replace: runs with pods are ended and leave first. What has not started is dropped: a slot is skipped then; a
    run that somebody asked for, or that has been tried before, is cancelled."""
    dropped = [p.claim for p in before if p.unstarted]
    kept = [replace(p.claim, ending="Replaced") if p.unfinished else p.claim for p in before if not p.unstarted]
    slots = [claim for claim in dropped if claim.attempt == 1 and not claim.token]
    ledger = replace(ledger, claims=tuple(kept), cancelled=ledger.cancelled + len(dropped) - len(slots))
    return unclaim(ledger, [Skip(claim.slot, "Replaced", "Replaced before it could start.") for claim in slots])


def unclaim(ledger: Ledger, skips: Sequence[Skip]) -> Ledger:
    """Slots that had been claimed and do not run after all are skipped slots, and no runs.

    What they took of `maxRuns` is not given back: their Job may have been created where nobody has seen it.
    """
    ledger = replace(ledger, runs=ledger.runs - len(skips))
    return pass_over(ledger, [(skip, 1) for skip in skips])


def pass_over(ledger: Ledger, skips: Sequence[tuple[Skip, int]]) -> Ledger:
    """Count slots that do not run, by reason; each skip is the latest of so many."""
    if not skips:
        return ledger
    counts = dict(ledger.skips)
    for skip, count in skips:
        counts[skip.reason] = counts.get(skip.reason, 0) + count
    return replace(ledger, skips=counts, last_skip=max((skip for skip, _ in skips), key=lambda skip: skip.slot))


def _said(progress: Progress) -> str:
    return format_instant(progress.claim.slot)
