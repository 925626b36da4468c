"""Which finished Jobs are kept. Successes and failures are counted apart, newest first; what is active stays."""

from __future__ import annotations

from collections.abc import Sequence

from cronwright.core.model import Claim, Run, View


def prunable(run: Run, claims: Sequence[Claim]) -> bool:
    """No claim needs this Job any more: neither as evidence nor as the pattern of a retry."""
    return run.over and not any(c.slot == run.slot and c.token == run.token for c in claims)


def surplus(view: View, claims: Sequence[Claim]) -> list[Run]:
    """The finished Jobs that are over the schedule's history limits or their time to live."""
    spec = view.schedule.spec
    if spec is None:
        return []
    standing = [r for r in view.runs.values() if r.standing and not r.deleting and prunable(r, claims)]
    standing.sort(key=lambda run: (run.finished or 0, run.slot, run.attempt), reverse=True)
    good = [run for run in standing if run.phase == "Succeeded"]
    bad = [run for run in standing if run.phase != "Succeeded"]
    over = good[spec.history.successful :] + bad[spec.history.failed :]
    names = {run.name for run in over}
    expired = [
        run
        for run in standing
        if run.ttl is not None and run.finished is not None and run.finished + run.ttl <= view.now
    ]
    return over + [run for run in expired if run.name not in names]
