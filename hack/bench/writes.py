"""What a run costs the API server: calls by kind, from the slot to the last trace, beside the CronJob controller.

Schedules and CronJobs with the same expression run side by side for some minutes, with (pretended) pods that succeed
and a history of one Job, so that after a warm-up every run also removes the one before it. Only calls are counted, no
time is taken, so neither is in the other's way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from hack.bench.lab import auditing, manifests, operating, plotting
from hack.bench.lab.auditing import Audit, Call
from hack.bench.lab.cluster import CRONJOB_USER, OPERATOR_USER, TUNED, Lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.figures import Spread, per_run
from hack.bench.lab.parts import Part, positive
from hack.bench.lab.reporting import Report, shown
from hack.bench.lab.results import Target

_WARM_UP = 2  # minutes until the history is full
_MIDDLE = 35  # the second of a minute at which the runs of that minute are over
_ESSENTIAL = (
    "create leases",
    "update leases",
    "patch leases",
    "create jobs",
    "patch taskschedules/status",
    "update cronjobs/status",
)
_CONTESTANTS = {"cronwright": OPERATOR_USER, "CronJob tuned": CRONJOB_USER}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=positive, default=20, help="how many of each, due once a minute")


def _run(lab: Lab, options: argparse.Namespace, report: Report) -> None:
    lab.audit(True)
    lab.tune(TUNED)
    lab.clean()
    lab.task(pods=True)
    operator = operating.start(lab)
    try:
        _create(lab, options.schedules)
        log = Audit(lab.audit_log)
        until = _middle_after(time.time()) + 60 * _WARM_UP
        _wait(until, operator, report, "warming up")
        marks = [log.mark()]
        for minute in range(1, options.repeats + 1):
            _wait(until + 60 * minute, operator, report, f"counting, minute {minute} of {options.repeats}")
            marks.append(log.mark())
        minutes = [log.between(start, end) for start, end in pairwise(marks)]
    finally:
        operator.stop()
    lab.clean()
    _tell(report, options.schedules, minutes)


def _create(lab: Lab, count: int) -> None:
    """Under different names: the CronJob controller takes a Job for its own by its controller's name alone."""
    history = {"successful": 1, "failed": 1}
    minutely = "* * * * *"
    ours = (manifests.task_schedule(f"ours-{n:04d}", minutely, history=history) for n in range(count))
    theirs = (
        manifests.cron_job(f"cron-{n:04d}", minutely, pods=True, successfulJobsHistoryLimit=1) for n in range(count)
    )
    lab.api.create(manifests.SCHEDULES, ours)
    lab.api.create(manifests.CRONJOBS, theirs)


def _middle_after(now: float) -> float:
    return (now - _MIDDLE) // 60 * 60 + 60 + _MIDDLE


def _wait(until: float, operator: operating.Operator, report: Report, what: str) -> None:
    while (left := until - time.time()) > 0:
        operator.check()
        report.say(f"{what}: {left:.0f} s to go")
        time.sleep(min(left, 1.0))


def _tell(report: Report, schedules: int, minutes: Sequence[Sequence[Call]]) -> None:
    counts = {who: count(who, user, minutes) for who, user in _CONTESTANTS.items()}
    kinds = sorted({kind for each in counts.values() for kind in each.calls})
    rows = [(kind, *(f"{each.calls.get(kind, 0):.2f}" for each in counts.values())) for kind in kinds]
    rows.append(("all", *(f"{sum(each.calls.values()):.2f}" for each in counts.values())))
    rows.append(("all writes", *(shown(each.writes) for each in counts.values())))
    rows.append(("  of them claim, Job and status", *(shown(each.essential) for each in counts.values())))
    rows.append(("runs counted", *(str(each.runs) for each in counts.values())))
    report.table("API calls of one run, from its slot to the last trace of it", ("call", *counts), rows)
    for who, each in counts.items():
        idle = ", ".join(f"{kind} {often:.1f}" for kind, often in sorted(each.background.items()))
        report.console.print(f"{who}, a minute, whatever runs: {idle or 'nothing'}", markup=False, highlight=False)
    targets = [Target("API writes a run: claim, Job, status", counts["cronwright"].essential, 4)]
    plot = plotting.stacks("writes", {who: each.calls for who, each in counts.items()}, "API calls a run")
    report.save({str(schedules): {"contestants": counts}}, targets, plot)


@dataclass(frozen=True)
class Counts:
    """Of one contestant. Calls and writes are those of one run; writes with their spread over the minutes."""

    runs: int
    calls: dict[str, float]
    writes: Spread
    essential: Spread
    """The writes without which a run could not be: what removes older Jobs and sums up templates is left out."""
    background: dict[str, float]
    """Calls a minute that are not about the benchmark's objects."""


def count(who: str, user: str, minutes: Sequence[Sequence[Call]]) -> Counts:
    mine = [auditing.of(minute, user) for minute in minutes]
    runs = [auditing.runs_in(minute) for minute in mine]
    if not all(runs):
        raise BenchError(f"{who} started no run in one of {len(runs)} minutes; look into the logs.")
    other = auditing.of(chain.from_iterable(minutes), user, background=True)
    return Counts(
        runs=sum(runs),
        calls=per_run(auditing.by_kind(chain.from_iterable(mine)), sum(runs)),
        writes=Spread.over(sum(call.writes for call in minute) / run for minute, run in zip(mine, runs, strict=True)),
        essential=Spread.over(
            sum(call.writes and call.kind in _ESSENTIAL for call in minute) / run
            for minute, run in zip(mine, runs, strict=True)
        ),
        background={kind: often / len(minutes) for kind, often in auditing.by_kind(other).items()},
    )


PART = Part("writes", __doc__, _options, _run)
main = PART.main
