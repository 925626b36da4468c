"""What many schedules cost, most of them idle: memory, CPU, API calls, the time to start, and one run among them.

Sizes are taken in ascending order on the same objects. For each, the operator first meets the schedules (and writes
their statuses); from then on every start is a restart, which is what is measured: until it is synced, then at rest for
a while, then with a few runs due, whose cost is what the CPU took beyond the rest, and last with many that begin at
once and stay: how late is the event loop while they begin, and while everything is listed anew beside them?
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hack.bench.lab import auditing, manifests, operating, plotting, relisting
from hack.bench.lab.auditing import Audit
from hack.bench.lab.cluster import OPERATOR_USER, TUNED, Lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.figures import Spread, bound_of, cost_of_run, over_repeats, quotient
from hack.bench.lab.parts import Part, positive
from hack.bench.lab.reporting import Report, shown
from hack.bench.lab.results import Target

SIZES = [1000, 10_000]
FULL = [1000, 10_000, 50_000]
_YEARLY = "0 0 1 1 *"
_RUNS_A_SECOND = 5
_LEAD = 15.0
_PATIENCE = 300.0
_HELD = "held"
_PREPARING = 30.0
"""Seconds before a slot at which the operator has not begun to prepare it: from then on the run costs something."""
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Sample:
    """One start of the operator."""

    synced: float
    start_cpu: float
    """CPU seconds until it was at rest."""
    rss: float
    """Megabytes, at rest."""
    idle_cpu: float
    """Share of a core, at rest, in percent."""
    idle_writes: float
    """Calls a minute, at rest, that write to schedules or what belongs to them."""
    run_cpu: float
    """CPU milliseconds of one run, from its claim to the last trace of it."""
    lag: float
    """Milliseconds that the event loop was late by, at most, in 99 of 100 cases, while many runs began and stayed."""
    relist_lag: float
    """The same while they stayed and everything was listed anew, from the API server's end to rest."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", nargs="+", type=positive, default=SIZES, help="how many schedules there are")
    parser.add_argument("--full", action="store_true", help=f"sizes {FULL}")
    parser.add_argument("--idle-seconds", type=positive, default=60, help="how long it is watched at rest")
    parser.add_argument("--active", type=positive, default=1000, help="how many runs are active for the loop's lag")
    parser.add_argument("--runs", type=positive, default=200, help="how many runs the cost of one is taken from")


def _run(lab: Lab, options: argparse.Namespace, report: Report) -> None:
    lab.audit(True)
    lab.tune(TUNED)
    lab.clean()
    lab.task(pods=True)
    lab.api.create(manifests.TEMPLATES, [manifests.task_template(pods=False, name=_HELD)])
    sizes = sorted(FULL if options.full else options.sizes)
    samples: dict[int, list[Sample]] = {}
    meetings: dict[int, float] = {}
    idle: dict[int, Counter[str]] = {}
    there = 0
    for size in sizes:
        meetings[size] = _meet(lab, there, size, report)
        there = size
        samples[size], idle[size] = [], Counter()
        for repeat in range(options.repeats):
            report.say(f"{size} schedules, repeat {repeat + 1} of {options.repeats}: restarting the operator")
            sample, calls = _sample(lab, options, report)
            samples[size].append(sample)
            idle[size].update(calls)
    lab.clean()
    _tell(report, options, samples, meetings, idle)


def _meet(lab: Lab, there: int, size: int, report: Report) -> float:
    """Create the schedules that are missing, let the operator meet all, and stop it; the seconds until it rests."""
    report.say(f"{size} schedules: creating {size - there}")
    names = (f"idle-{number:06d}" for number in range(there, size))
    lab.api.create(manifests.SCHEDULES, (manifests.task_schedule(name, _YEARLY, group="idle") for name in names))
    report.say(f"{size} schedules: the operator meets them")
    began = time.monotonic()
    operator = operating.start(lab)
    try:
        Audit(lab.audit_log).await_quiet(OPERATOR_USER)
        return time.monotonic() - began - auditing.QUIET
    finally:
        operator.stop()


def _sample(lab: Lab, options: argparse.Namespace, report: Report) -> tuple[Sample, Counter[str]]:
    log = Audit(lab.audit_log)
    operator = operating.start(lab)
    try:
        log.await_quiet(OPERATOR_USER)
        operator.await_rest()  # kopf lists everything once more, and writes nothing
        start, start_cpu, rss = log.mark(), operator.cpu(), operator.rss()
        report.say(f"synced after {operator.synced_after:.1f} s; at rest for {options.idle_seconds} s")
        began = time.monotonic()
        time.sleep(options.idle_seconds)
        idle_share = (operator.cpu() - start_cpu) / (time.monotonic() - began)
        found = log.between(start)
        writes = sum(call.writes for call in auditing.of(found, OPERATOR_USER))
        run_cpu = _cost_of_run(lab, operator, options.runs, idle_share, report)
        lag, relist_lag = _lags(lab, operator, options.active, report)
        sample = Sample(
            synced=operator.synced_after,
            start_cpu=start_cpu,
            rss=rss / _MEGABYTE,
            idle_cpu=100 * idle_share,
            idle_writes=writes * 60 / options.idle_seconds,
            run_cpu=1000 * run_cpu,
            lag=1000 * lag,
            relist_lag=1000 * relist_lag,
        )
        verbs = Counter(call.verb for call in found if call.user == OPERATOR_USER)
        return sample, verbs
    finally:
        operator.stop()


def _cost_of_run(lab: Lab, operator: operating.Operator, runs: int, idle_share: float, report: Report) -> float:
    """CPU seconds of one of a few runs a second, with pods that succeed."""
    log = Audit(lab.audit_log)
    claims = lab.api.count(manifests.LEASES)
    first = int(time.time() + _LEAD + runs / 50 + _PREPARING)
    due = [manifests.Fire(f"due-{number:05d}", first + number // _RUNS_A_SECOND) for number in range(runs)]
    crons = ((fire.name, manifests.cron_at(fire.slot, seconds=True)) for fire in due)
    lab.api.create(manifests.SCHEDULES, (manifests.task_schedule(name, cron) for name, cron in crons))
    log.await_quiet(OPERATOR_USER)
    begin = first - _PREPARING
    if time.time() > begin:
        raise BenchError(f"{runs} schedules were not met in time for their slots; take fewer with --runs.")
    time.sleep(max(0.0, begin - time.time()))
    start, began, cpu = log.mark(), time.monotonic(), operator.cpu()
    _await_runs(lab, operator, runs, due[-1].slot + _PATIENCE, report)
    log.await_quiet(OPERATOR_USER)
    busy, lasted = operator.cpu() - cpu, time.monotonic() - began
    started = auditing.runs_in(auditing.of(log.between(start), OPERATOR_USER))
    _remove_due(lab, claims)
    return cost_of_run(busy, lasted, idle_share, started)


def _lags(lab: Lab, operator: operating.Operator, active: int, report: Report) -> tuple[float, float]:
    """Seconds that the loop is late by, at most, in 99 of 100 cases: while so many runs begin at once and stay, and
    then while everything is listed anew beside them."""
    log = Audit(lab.audit_log)
    claims = lab.api.count(manifests.LEASES)
    slot = int(time.time() + _LEAD + active / 20)
    cron = manifests.cron_at(slot, seconds=True)
    names = (f"held-{number:05d}" for number in range(active))
    lab.api.create(manifests.SCHEDULES, (manifests.task_schedule(name, cron, template=_HELD) for name in names))
    time.sleep(max(0.0, slot - 1 - time.time()))
    before = operator.lag()
    while (found := lab.api.count(manifests.JOBS)) < active:
        operator.check()
        report.say(f"{found} of {active} runs have begun")
        if time.time() > slot + _PATIENCE:
            raise BenchError(f"Only {found} of {active} runs began in time; look into the operator's log.")
        time.sleep(1.0)
    log.await_quiet(OPERATOR_USER)
    begun = operator.lag()
    report.say(f"{active} runs are active: restarting the API server, so that everything is listed anew")
    relisting.relist(lab, operator)
    relisted = operator.lag()
    _remove_due(lab, claims)
    return bound_of(begun - before, 99), bound_of(relisted - begun, 99)


def _remove_due(lab: Lab, claims: int) -> None:
    """The idle ones keep their claims; those of the others go with them, by the garbage collector."""
    lab.api.remove(manifests.SCHEDULES, f"{manifests.MARK}=due")
    for path in (manifests.JOBS, manifests.PODS, manifests.EVENTS):
        lab.api.remove(path)
    deadline = time.monotonic() + _PATIENCE
    while (left := lab.api.count(manifests.LEASES)) > claims:
        if time.monotonic() > deadline:
            raise BenchError(f"{left - claims} claims outlived their schedules by {_PATIENCE:.0f} s.")
        time.sleep(0.5)


def _await_runs(lab: Lab, operator: operating.Operator, runs: int, deadline: float, report: Report) -> None:
    while True:
        operator.check()
        found = lab.api.list(manifests.SCHEDULES, f"{manifests.MARK}=due")
        over = sum(schedule.get("status", {}).get("succeeded", 0) for schedule in found)
        report.say(f"{over} of {runs} runs are over")
        if over >= runs:
            return
        if time.time() > deadline:
            raise BenchError(f"Only {over} of {runs} runs were over in time; look into the operator's log.")
        time.sleep(1.0)


def _tell(
    report: Report,
    options: argparse.Namespace,
    samples: dict[int, list[Sample]],
    meetings: dict[int, float],
    idle: dict[int, Counter[str]],
) -> None:
    over = {size: over_repeats(taken) for size, taken in samples.items()}
    minutes = options.repeats * options.idle_seconds / 60
    verbs = {size: {verb: count / minutes for verb, count in sorted(idle[size].items())} for size in samples}
    labels = {
        "synced": "start to synced, s",
        "start_cpu": "CPU of a start, s",
        "rss": "memory at rest, MB",
        "idle_cpu": "CPU at rest, % of a core",
        "idle_writes": "writes a minute at rest",
        "run_cpu": "CPU of one run, ms",
        "lag": "loop late by (p99), ms at most",
        "relist_lag": "loop late by while all is listed anew (p99), ms at most",
    }
    rows = [(label, *(shown(over[size][name]) for size in samples)) for name, label in labels.items()]
    rows.append(("first meeting until at rest, s", *(f"{meetings[size]:.1f}" for size in samples)))
    for verb in sorted({verb for counts in verbs.values() for verb in counts}):
        rows.append((f"{verb} a minute at rest", *(f"{verbs[size].get(verb, 0):.1f}" for size in samples)))
    report.table("Schedules, most of them idle", ("median (low-high)", *(f"{size:,}" for size in samples)), rows)
    panels = {label: {float(size): over[size][name] for size in samples} for name, label in labels.items()}
    plot = plotting.curves("scale", panels, "schedules")
    asked = {"idle_seconds": options.idle_seconds, "runs": options.runs, "active": options.active}
    runs: dict[str, Any] = {
        str(size): {
            **asked,
            "repeats": samples[size],
            "over_repeats": over[size],
            "meeting": meetings[size],
            "idle_calls_a_minute": verbs[size],
        }
        for size in samples
    }
    report.save(runs, _targets(over, options.active), plot)


def _targets(over: dict[int, dict[str, Spread]], active: int) -> list[Target]:
    found = []
    if ten := over.get(10_000):
        late = "loop late by (p99), ms at most"
        found += [
            Target("10k idle: memory, MB", ten["rss"], 160),
            Target("10k idle: CPU at rest, % of a core", ten["idle_cpu"], 2),
            Target("10k idle: start to synced, s", ten["synced"], 10),
            Target("10k idle: writes a minute", ten["idle_writes"], 0),
            Target(f"10k, {active:,} runs begin and stay: {late}", ten["lag"], 50),
            Target(f"10k, {active:,} runs active, all listed anew: {late}", ten["relist_lag"], 50),
        ]
        if fifty := over.get(50_000):
            limits = {"rss": ("memory", 5.5), "synced": ("start to synced", 5.5), "run_cpu": ("CPU of a run", 1.1)}
            for name, (label, limit) in limits.items():
                found.append(Target(f"50k against 10k: {label}", quotient(fifty[name], ten[name]), limit))
    return found


PART = Part("scale", __doc__, _options, _run)
main = PART.main
