"""The ledger of a schedule whose Lease is not there: because it is new, or because somebody deleted it.

Three witnesses are left, and each may know what the others do not: what a replica remembers of the ledger, what status
told of it, and the Jobs. Whatever tells of more is right. A slot of which none of them knows anything, though a later
one has run, had been accounted for in what is lost: it is skipped, and the reason says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cronwright.api.schedule import ConcurrencyPolicy
from cronwright.core.admission import pass_over
from cronwright.core.ledger import REQUESTS_REMEMBERED
from cronwright.core.model import Claim, Handled, Json, Ledger, Run, Schedule, Skip
from cronwright.core.names import job_name
from cronwright.timing import NOTHING_RUNS, parse_instant, settle

LOST = "LedgerLost"


def rebuild(schedule: Schedule, runs: Mapping[str, Run], remembered: Ledger | None = None) -> Ledger:
    """A new schedule starts at its creation. Of any other, no slot that a witness knows of is repeated or lost."""
    told = _told(schedule, runs)
    return _with_jobs(told if remembered is None else merge(remembered, told), schedule, runs)


def _told(schedule: Schedule, runs: Mapping[str, Run]) -> Ledger:
    """What status tells. The last edit may have been one of *when*, so nothing before it is due."""
    status = schedule.status
    skip = status.get("lastSkip") or {}
    seen = [beginning(schedule, schedule.edited if status else schedule.created)]
    seen += [parse_instant(t) for t in (status.get("lastScheduleTime"), skip.get("slot")) if t]
    return Ledger(
        timing=schedule.timing,
        watermark=max(seen),
        claims=(*_waiting(status, runs), *_retrying(schedule.key.name, status, runs)),
        runs=status.get("runs", 0),
        spent=status["spent"] if "spent" in status else status.get("runs", 0),
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
        cancelled=status.get("cancelled", 0),
        consecutive_failures=status.get("consecutiveFailures", 0),
        missed=status.get("missed", 0),
        skips=status.get("skips", {}),
        last_skip=Skip(parse_instant(skip["slot"]), skip["reason"], skip.get("message", "")) if skip else None,
        last_slot=_instant(status.get("lastScheduleTime")),
        last_success=_instant(status.get("lastSuccessTime")),
        last_failure=_instant(status.get("lastFailureTime")),
        paused=(status.get("paused") or {}).get("generation", 0),
        paused_at=_instant((status.get("paused") or {}).get("since")),
        requests=tuple(
            Handled(
                r["id"],
                r["kind"],
                r["state"] != "Refused",
                r.get("message", ""),
                parse_instant(r["at"]),
                *(r.get(count, 0) for count in ("runs", "succeeded", "failed")),
            )
            for r in reversed(status.get("requests") or ())
        ),
    )


def _waiting(status: Json, runs: Mapping[str, Run]) -> Iterable[Claim]:
    for entry in status.get("waiting") or ():
        if entry["name"] not in runs:
            slot = parse_instant(entry["slot"])
            yield Claim(
                slot,
                entry.get("attempt", 1),
                entry["trigger"],
                slot,
                token=entry.get("request", ""),
                parameters=entry.get("parameters"),
                policy=entry.get("concurrencyPolicy", ""),
            )


def _retrying(schedule: str, status: Json, runs: Mapping[str, Run]) -> Iterable[Claim]:
    """The attempts that failed and are to be followed by another. Which request they belong to, their Jobs know."""
    for entry in status.get("retrying") or ():
        if entry["name"] in runs:
            continue
        slot, attempt, trigger = parse_instant(entry["slot"]), entry["attempt"], entry.get("trigger", "Schedule")
        for token in ("", *{run.token for run in runs.values() if run.slot == slot and run.token}):
            if job_name(schedule, Claim(slot, attempt, trigger, slot, token)) == entry["name"]:
                yield Claim(slot, attempt - 1, trigger, slot, token)


def _with_jobs(ledger: Ledger, schedule: Schedule, runs: Mapping[str, Run]) -> Ledger:
    """Jobs that are not over, and those of slots and requests that nobody else tells of, are claims."""
    own = [run for run in runs.values() if run.trigger in ("Schedule", "CatchUp") and run.slot > ledger.watermark]
    asked = _asked_for(ledger, runs)
    found = [run for run in runs.values() if not run.over] + own + asked
    jobs = [Claim(r.slot, r.attempt, r.trigger, r.created, r.token, ending=_ending(schedule, r, own)) for r in found]
    ledger = replace(ledger, claims=_joined(ledger.claims, sorted(jobs, key=lambda c: (c.slot, c.attempt))))
    answers = {run.token: Handled(run.token, "RunNow", True, "1 run claimed.", run.slot, 1) for run in asked}
    ledger = replace(ledger, requests=_both(ledger.requests, answers.values()), runs=ledger.runs + len(answers))
    new = {run.slot for run in own}
    if not new:
        return ledger
    ledger = _skip_between(ledger, schedule, new)
    return replace(
        ledger,
        watermark=max(ledger.watermark, *new),
        runs=ledger.runs + len(new),
        spent=ledger.spent + len(new),
        last_slot=max(ledger.last_slot or 0, *new),
    )


def _asked_for(ledger: Ledger, runs: Mapping[str, Run]) -> list[Run]:
    """The runs of requests to run now that only they tell of. A backfill is not over with the Jobs that it has, and to
    answer it again makes no second ones."""
    known = {handled.id for handled in ledger.requests} | {claim.token for claim in ledger.claims}
    return [run for run in runs.values() if run.trigger == "Manual" and run.token and run.token not in known]


def _ending(schedule: Schedule, run: Run, own: Iterable[Run]) -> str:
    """A later run shows that one before it was not to be tried again, unless they may run side by side."""
    apart = schedule.spec is not None and schedule.spec.concurrency_policy != ConcurrencyPolicy.ALLOW
    return "Replaced" if apart and run.over and any(run.slot < other.slot for other in own) else ""


def _skip_between(ledger: Ledger, schedule: Schedule, new: set[int]) -> Ledger:
    timetable = schedule.timetable
    if timetable is None:
        return ledger
    passed = settle(timetable, watermark=ledger.watermark, now=timetable.due(max(new)), catch_up=NOTHING_RUNS)
    due = sum(s.count for s in passed.skipped if s.reason != "Excluded")
    skips = [(Skip(s.last, s.reason), s.count) for s in passed.skipped if s.reason == "Excluded"]
    if due > len(new):
        message = "What had become of it stood in a Lease that was deleted."
        skips.append((Skip(max(new), LOST, message), due - len(new)))
    return pass_over(ledger, skips)


def _joined(claims: Iterable[Claim], more: Iterable[Claim]) -> tuple[Claim, ...]:
    """One claim for each run: that of the latest attempt, in the place of the first."""
    joined: dict[tuple[int, str], Claim] = {}
    for claim in (*claims, *more):
        known = joined.get((claim.slot, claim.token))
        if known is None or known.attempt < claim.attempt:
            joined[claim.slot, claim.token] = claim
    return tuple(joined.values())


def merge(remembered: Ledger, told: Ledger) -> Ledger:
    """What is remembered of a lost ledger may be older than its last words, and so may be what status tells."""
    known = {(claim.slot, claim.token) for claim in remembered.claims}
    answered = {handled.id for handled in remembered.requests}

    def is_news(claim: Claim) -> bool:
        """Of what it does not claim, the remembered ledger knows the end if it knows the beginning."""
        older = claim.token in answered if claim.token else claim.slot <= remembered.watermark
        return (claim.slot, claim.token) in known or not older

    prepared = remembered.prepared
    reasons = sorted(remembered.skips.keys() | told.skips.keys())
    counts: dict[str, Any] = {name: _more(getattr(remembered, name), getattr(told, name)) for name in _GROWING}
    return replace(
        remembered,
        claims=_joined(remembered.claims, filter(is_news, told.claims)),
        skips={reason: max(remembered.skips.get(reason, 0), told.skips.get(reason, 0)) for reason in reasons},
        requests=_both(remembered.requests, told.requests),
        prepared=None if prepared is not None and prepared <= counts["watermark"] else prepared,
        **counts,
    )


def _both(one: Iterable[Handled], other: Iterable[Handled]) -> tuple[Handled, ...]:
    handled: dict[str, Handled] = {}
    for each in (*one, *other):
        known = handled.setdefault(each.id, each)
        if each.succeeded + each.failed > known.succeeded + known.failed:
            handled[each.id] = each
    return tuple(sorted(handled.values(), key=lambda each: each.at)[-REQUESTS_REMEMBERED:])


_GROWING = (
    "watermark",
    "runs",
    "spent",
    "succeeded",
    "failed",
    "cancelled",
    "missed",
    "last_slot",
    "last_success",
    "last_failure",
)


def _more(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def beginning(schedule: Schedule, moment: int) -> int:
    """The watermark of a schedule that was created, edited or resumed in this second.

    The slots of that second are past, except for a single time: "now" is what its author meant, and there is no other.
    """
    once = schedule.spec is not None and schedule.spec.schedule.at is not None
    return moment - 1 if once else moment


def _instant(text: str | None) -> int | None:
    return parse_instant(text) if text else None
