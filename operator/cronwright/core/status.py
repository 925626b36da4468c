"""Status: the projection of ledger, runs and spec that people and kstatus read. It decides nothing.

It is written so that a run changes it twice, when it starts and when it is over: a started run shows as `Running` from
its Job's creation, whatever its pods are doing in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cronwright.api.schedule import TaskScheduleSpec
from cronwright.api.status import (
    MAX_ACTIVE,
    MAX_MESSAGE,
    MAX_RECENT_RUNS,
    MAX_REQUESTS,
    MAX_RESULT,
    MAX_UPCOMING,
    MAX_WAITING_BYTES,
)
from cronwright.core.model import Handled, Json, Ledger, Outcome, Problem, Run, View
from cronwright.core.names import job_name
from cronwright.core.observe import condition
from cronwright.core.progress import Progress, cancelled
from cronwright.timing import format_duration, format_instant


def project(view: View, ledger: Ledger, open_: Sequence[Progress], problem: Problem | None) -> Json:
    schedule = view.schedule
    upcoming = _upcoming(view, ledger, problem)
    phase, ready, reason, message = _phase(view, ledger, open_, problem, bool(upcoming))
    active = [p for p in open_ if p.state == "Active"]
    records = _records(view, open_)
    status: Json = {
        "observedGeneration": schedule.generation,
        "phase": phase,
        "schedule": summary(schedule.spec) if schedule.spec is not None else None,
        "nextRunTime": upcoming[0] if upcoming else None,
        "upcoming": upcoming,
        "lastScheduleTime": _time(ledger.last_slot),
        "lastSuccessTime": _time(ledger.last_success),
        "lastFailureTime": _time(ledger.last_failure),
        "lastResult": next((r["phase"] for r in records if "finishedAt" in r), None),
        "active": [_active(p) for p in active[:MAX_ACTIVE]],
        "activeRuns": len(active),
        "queued": sum(p.state == "Waiting" for p in open_),
        "waiting": _waiting(open_),
        "retrying": [_retrying(p, schedule.key.name) for p in open_ if p.state == "Retrying"][:MAX_ACTIVE],
        "runs": ledger.runs,
        "spent": ledger.spent if ledger.spent != ledger.runs else None,
        "succeeded": ledger.succeeded,
        "failed": ledger.failed,
        "cancelled": ledger.cancelled,
        "consecutiveFailures": ledger.consecutive_failures,
        "missed": ledger.missed,
        "skipped": sum(ledger.skips.values()),
        "skips": dict(ledger.skips),
        "lastSkip": _skip(ledger),
        "paused": _paused(schedule.spec, ledger),
        "recentRuns": records,
        "requests": _requests(ledger),
    }
    status = {key: value for key, value in status.items() if value not in (None, [], {})}
    status["conditions"] = conditions(
        schedule.status, ready, reason, message, generation=schedule.generation, now=view.now
    )
    return status


def summary(spec: TaskScheduleSpec) -> str:
    """The schedule in a few words, for the SCHEDULE column."""
    when = spec.schedule
    if when.at is not None:
        return f"at {format_instant(int(when.at.timestamp()))}"
    if when.interval is not None:
        return f"every {format_duration(int(when.interval.total_seconds()))}"
    return ", ".join((when.cron,) if when.cron is not None else when.crons)[:256]


def _upcoming(view: View, ledger: Ledger, problem: Problem | None) -> list[str]:
    spec, timetable = view.schedule.spec, view.schedule.timetable
    if spec is None or timetable is None or spec.suspend or ledger.paused or problem is not None:
        return []
    count = MAX_UPCOMING if spec.max_runs is None else min(MAX_UPCOMING, spec.max_runs - ledger.spent)
    slots: list[str] = []
    after = ledger.watermark
    while len(slots) < count and (slot := timetable.next(after)) is not None:
        slots.append(format_instant(timetable.due(slot)))
        after = slot
    return slots


def _phase(
    view: View, ledger: Ledger, open_: Sequence[Progress], problem: Problem | None, more: bool
) -> tuple[str, str, str, str]:
    """Phase, and the Ready condition's status, reason and message."""
    spec = view.schedule.spec
    if problem is not None and problem.waiting:
        return "Active", "Unknown", problem.reason, problem.message
    if problem is not None:
        return "Invalid", "False", problem.reason, problem.message
    assert spec is not None
    if ledger.paused:
        return "Paused", "False", "TooManyFailures", _pause_message(spec)
    if spec.suspend:
        return "Suspended", "True", "Suspended", "spec.suspend is true: no new runs are started."
    if more or any(p.unfinished for p in open_):
        return "Active", "True", "Active", "Runs are started as they become due."
    if spec.expires_at is not None and spec.expires_at.timestamp() <= view.now:
        return "Expired", "True", "Expired", "spec.expiresAt has passed: nothing is left to run."
    if spec.schedule.at is not None and not _accounted(ledger, int(spec.schedule.at.timestamp())):
        return (
            "Completed",
            "True",
            "AtInPast",
            "spec.schedule.at was already past when the schedule was created or changed, so it does not run.",
        )
    return "Completed", "True", "Completed", "Every slot has been run or skipped: nothing is left."


def _accounted(ledger: Ledger, slot: int) -> bool:
    return ledger.last_slot == slot or (ledger.last_skip is not None and ledger.last_skip.slot == slot)


def conditions(old: Json, ready: str, reason: str, message: str, *, generation: int, now: float) -> list[Json]:
    """Ready, and Stalled where only a person can help; a transition time moves only with the status."""
    wanted = [("Ready", ready, reason, message)]
    if ready == "False":
        wanted.append(("Stalled", "True", reason, message))
    made = []
    for kind, state, why, text in wanted:
        before = condition(old, kind)
        since = before["lastTransitionTime"] if before and before["status"] == state else format_instant(int(now))
        made.append(
            {
                "type": kind,
                "status": state,
                "reason": why,
                "message": text,
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        )
    return made


def _records(view: View, open_: Iterable[Progress]) -> list[Json]:
    """The newest attempts: what status remembered, overridden by what the Jobs show now."""
    found: dict[str, Json] = {record["name"]: record for record in view.schedule.status.get("recentRuns") or ()}
    by_name = {p.name: p for p in open_}
    for run in view.runs.values():
        known = found.get(run.name)
        if run.finished is None and run.gone:
            if known is None or "finishedAt" not in known:
                found[run.name] = _gone(_record(run, None), cancelled(run.reason), view.now)
            continue
        p = by_name.get(run.name)
        outcome = p.outcome if p is not None else run.outcome
        if known is None or "finishedAt" not in known or outcome is not None:
            found[run.name] = _record(run, outcome)
    for name, record in found.items():
        if "finishedAt" not in record and name not in view.runs and name not in by_name:
            found[name] = _gone(record, cancelled(""), view.now)
    ordered = sorted(found.values(), key=lambda r: (r["slot"], r["attempt"], r["name"]), reverse=True)
    return ordered[:MAX_RECENT_RUNS]


def _record(run: Run, outcome: Outcome | None) -> Json:
    record: Json = {
        "name": run.name,
        "slot": format_instant(run.slot),
        "trigger": run.trigger,
        "attempt": run.attempt,
        "phase": "Pending" if run.suspended and not run.over else "Running",
        **_began(run),
    }
    if run.finished is not None:
        record["phase"] = run.phase
        record["finishedAt"] = format_instant(run.finished)
    if outcome is not None:
        found = {
            "category": outcome.category,
            "exitCode": outcome.exit_code,
            "message": outcome.message[:MAX_MESSAGE],
            "result": outcome.result[:MAX_RESULT],
        }
        record.update({key: value for key, value in found.items() if value not in (None, "")})
    return record


def _began(run: Run) -> Json:
    """A run begins with its Job, and the Job controller notes that a moment later: not worth a write of its own."""
    if run.suspended and not run.over:
        return {}
    noted = run.started is not None and (run.over or run.resumed)
    return {"startedAt": format_instant(run.started if noted and run.started is not None else run.created)}


def _gone(record: Json, outcome: Outcome, now: float) -> Json:
    end = {"finishedAt": format_instant(int(now)), "category": outcome.category, "message": outcome.message}
    return {**record, "phase": "Failed", **end}


def _active(p: Progress) -> Json:
    assert p.run is not None
    return {
        "name": p.name,
        "slot": format_instant(p.claim.slot),
        "trigger": p.claim.trigger,
        "attempt": p.claim.attempt,
        **_began(p.run),
    }


def _waiting(open_: Iterable[Progress]) -> list[Json]:
    """As many as there is room for. Should the ledger be lost, this is what is left of them (`rebuilding.py`)."""
    entries: list[Json] = []
    room = MAX_WAITING_BYTES
    for p in [p for p in open_ if p.state == "Waiting"][:MAX_ACTIVE]:
        claim = p.claim
        entry: Json = {"name": p.name, "slot": format_instant(claim.slot), "trigger": claim.trigger}
        more = {
            "attempt": claim.attempt if claim.attempt > 1 else None,
            "request": claim.token,
            "parameters": dict(claim.parameters or {}),
            "concurrencyPolicy": claim.policy,
        }
        entry |= {key: value for key, value in more.items() if value}
        room -= len(str(entry))
        if room < 0:
            break
        entries.append(entry)
    return entries


def _retrying(p: Progress, schedule: str) -> Json:
    assert p.outcome is not None
    following = replace(p.claim, attempt=p.claim.attempt + 1)
    return {
        "name": job_name(schedule, following),
        "slot": format_instant(p.claim.slot),
        "trigger": p.claim.trigger,
        "attempt": following.attempt,
        "at": format_instant(p.retry_at),
        "category": p.outcome.category,
    }


def _skip(ledger: Ledger) -> Json | None:
    skip = ledger.last_skip
    if skip is None:
        return None
    entry: dict[str, Any] = {"slot": format_instant(skip.slot), "reason": skip.reason}
    if skip.message:
        entry["message"] = skip.message[:MAX_MESSAGE]
    return entry


def _requests(ledger: Ledger) -> list[Json]:
    """The newest first. An accepted one is done when no claim of it is open any more."""
    open_ = {claim.token for claim in ledger.claims}
    return [
        {
            "id": handled.id[:63],
            "kind": handled.kind,
            "state": "Refused" if not handled.accepted else "Accepted" if handled.id in open_ else "Done",
            "message": handled.message[:MAX_MESSAGE],
            "at": format_instant(handled.at),
            **_counts(handled),
        }
        for handled in reversed(ledger.requests[-MAX_REQUESTS:])
    ]


def _counts(handled: Handled) -> Json:
    if not handled.runs:
        return {}
    return {"runs": handled.runs, "succeeded": handled.succeeded, "failed": handled.failed}


def _paused(spec: TaskScheduleSpec | None, ledger: Ledger) -> Json | None:
    if spec is None or not ledger.paused or ledger.paused_at is None:
        return None
    return {
        "since": format_instant(ledger.paused_at),
        "reason": "TooManyFailures",
        "message": _pause_message(spec),
        "generation": ledger.paused,
    }


def _pause_message(spec: TaskScheduleSpec) -> str:
    """It does not count on: a run that somebody asks for meanwhile changes nothing about the pause."""
    limit = spec.pause_after_failures or 1
    return (
        f"{limit} run{'s' if limit > 1 else ''} failed in a row (spec.pauseAfterFailures). "
        "Any change of the spec, or a Resume request (kubectl task resume), starts it again."
    )


def _time(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)
