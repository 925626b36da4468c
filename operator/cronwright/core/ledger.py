"""The ledger as text: what stands in the claim Lease's annotation.

Short keys and left-out defaults keep a Lease small: it is written once a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from cronwright.core.model import Claim, Handled, Ledger, Skip

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
    _expect(int, data["watermark"], *(data[name] for name in _COUNTS if name in data), *data.get("skips", {}).values())
    _expect(str, data["timing"])
    return Ledger(
        timing=data["timing"],
        watermark=data["watermark"],
        claims=tuple(_decode_claim(c) for c in data.get("claims", ())),
        skips=data.get("skips", {}),
        last_skip=_decode_skip(*last_skip) if last_skip else None,
        requests=tuple(_decode_handled(*entry) for entry in data.get("requests", ())),
        **{name: data[name] for name in _COUNTS if name in data},
    )


def stamped(ledger: Ledger, version: int) -> Ledger:
    """The ledger as it is written over that version of its Lease: new claims remember it."""
    if all(claim.since for claim in ledger.claims):
        return ledger
    return replace(ledger, claims=tuple(c if c.since else replace(c, since=version) for c in ledger.claims))


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
    if claim.since:
        data["since"] = claim.since
    return data


def _decode_claim(data: Mapping[str, Any]) -> Claim:
    claim = Claim(**data)
    _expect(int, claim.slot, claim.attempt, claim.claimed, claim.since)
    _expect(str, claim.trigger, claim.token, claim.ending, claim.policy, *(claim.parameters or {}).values())
    return claim


def _decode_skip(slot: int, reason: str, message: str) -> Skip:
    _expect(int, slot)
    _expect(str, reason, message)
    return Skip(slot, reason, message)


def _decode_handled(name: str, kind: str, accepted: bool, message: str, *counts: int) -> Handled:
    _expect(str, name, kind, message)
    _expect(int, *counts)
    return Handled(name, kind, accepted, message, *counts)


def _expect(kind: type, *values: object) -> None:
    """What people scribble must be found out here, and not where it is used: that would end the operator."""
    if not all(type(value) is kind for value in values):
        raise ValueError(f"a ledger has {values}, where each is of type {kind.__name__}")
