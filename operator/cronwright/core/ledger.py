"""The ledger as text: what stands in the claim Lease's annotation.

Short keys and left-out defaults keep a Lease small: it is written once a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from cronwright.core.model import Claim, Handled, Ledger, Run, Schedule, Skip
from cronwright.timing import parse_instant

FORMAT = 1
REQUESTS_REMEMBERED = 50
MESSAGE_REMEMBERED = 256


def encode(ledger: Ledger) -> str:
    """One line of JSON, the same for equal ledgers."""
    data: dict[str, Any] = {"v": FORMAT, "timing": ledger.timing, "watermark": ledger.watermark}
    if ledger.claims:
        data["claims"] = [_encode_claim(c) for c in ledger.claims]
    for name in _COUNTS:
        if value := getattr(ledger, name):
            data[name] = value
    if ledger.skips:
        data["skips"] = dict(ledger.skips)
    if ledger.last_skip:
        data["last_skip"] = [ledger.last_skip.slot, ledger.last_skip.reason, ledger.last_skip.message]
    if ledger.requests:
        data["requests"] = [
            [r.id, r.kind, r.accepted, r.message[:MESSAGE_REMEMBERED], r.at, r.runs, r.succeeded, r.failed]
            for r in ledger.requests[-REQUESTS_REMEMBERED:]
        ]
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS).decode()


def decode(text: str) -> Ledger:
    """The inverse of `encode`. Raises ValueError for what `encode` never wrote."""
    data = orjson.loads(text)
    if not isinstance(data, dict) or data.get("v") != FORMAT:
        raise ValueError(f"a ledger of format {FORMAT} was expected")
    last_skip = data.get("last_skip")
    return Ledger(
        timing=data["timing"],
        watermark=data["watermark"],
        claims=tuple(_decode_claim(c) for c in data.get("claims", ())),
        skips=data.get("skips", {}),
        last_skip=Skip(*last_skip) if last_skip else None,
        requests=tuple(Handled(*entry) for entry in data.get("requests", ())),
        **{name: data[name] for name in _COUNTS if name in data},
    )


_COUNTS = (
    "prepared",
    "runs",
    "spent",
    "succeeded",
    "failed",
    "cancelled",
    "consecutive_failures",
    "missed",
    "last_slot",
    "last_success",
    "last_failure",
    "paused",
    "paused_at",
)


def _encode_claim(claim: Claim) -> dict[str, Any]:
    data: dict[str, Any] = {"slot": claim.slot, "attempt": claim.attempt, "trigger": claim.trigger}
    data["claimed"] = claim.claimed
    if claim.token:
        data["token"] = claim.token
    if claim.parameters:
        data["parameters"] = dict(claim.parameters)
    if claim.ending:
        data["ending"] = claim.ending
    if claim.policy:
        data["policy"] = claim.policy
    return data


def _decode_claim(data: Mapping[str, Any]) -> Claim:
    return Claim(**data)


def rebuild(schedule: Schedule, runs: Mapping[str, Run]) -> Ledger:
    """The ledger of a schedule whose Lease is not there: new, or deleted by someone.

    A new schedule starts at its creation. Otherwise status and the Jobs that exist tell what was accounted for, so
    that a deleted Lease repeats no slot; and the last edit may have been one of *when*, so nothing before it is due.
    """
    status = schedule.status
    skip = status.get("lastSkip") or {}
    seen = [beginning(schedule, schedule.edited if status else schedule.created)]
    seen += [parse_instant(t) for t in (status.get("lastScheduleTime"), skip.get("slot")) if t]
    seen += [run.slot for run in runs.values() if run.trigger in ("Schedule", "CatchUp")]
    unfinished = [run for run in runs.values() if not run.over]
    return Ledger(
        timing=schedule.timing,
        watermark=max(seen),
        claims=tuple(
            Claim(run.slot, run.attempt, run.trigger, run.created, run.token)
            for run in sorted(unfinished, key=lambda run: (run.slot, run.attempt))
        ),
        runs=status.get("runs", 0),
        spent=status.get("runs", 0),
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


def merge(remembered: Ledger, rebuilt: Ledger) -> Ledger:
    """What is remembered of a lost ledger may be older than its last words: whatever tells of more is right."""
    known = {(claim.slot, claim.token, claim.attempt) for claim in remembered.claims} | {(remembered.prepared, "", 1)}
    new = (claim for claim in rebuilt.claims if (claim.slot, claim.token, claim.attempt) not in known)
    reasons = remembered.skips.keys() | rebuilt.skips.keys()
    counts: dict[str, Any] = {name: _more(getattr(remembered, name), getattr(rebuilt, name)) for name in _GROWING}
    return replace(
        remembered,
        claims=(*remembered.claims, *new),
        skips={
            reason: max(remembered.skips.get(reason, 0), rebuilt.skips.get(reason, 0)) for reason in sorted(reasons)
        },
        **counts,
    )


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
