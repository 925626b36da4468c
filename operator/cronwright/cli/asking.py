"""Requests as the command line writes them, and the wait for what comes of them.

A request is an annotation on the schedule, and all that came of it stands in the schedule's status: so the right to
get and patch TaskSchedules is all that is needed, here as with kubectl annotate.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

import orjson

from cronwright.cli.access import BAD_USAGE, Failure, Json, Schedules
from cronwright.cluster.port import Unavailable
from cronwright.core.model import REQUEST_PREFIX, Claim, Problem
from cronwright.core.names import job_name
from cronwright.core.requests import Kind, Request, parse
from cronwright.timing import format_instant, parse_instant

POLL = 0.5
"""Seconds between two looks at the schedule: its status is not written more often than about once a second."""
PATIENCE = 15.0
"""Seconds after which a person who waits is told that nobody answers."""

_WORDS: dict[Kind, str] = {"RunNow": "run", "Backfill": "backfill", "Cancel": "cancel", "Resume": "resume"}
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that are taken for each other
_WALL_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?")


def new_id(kind: Kind, now: float) -> str:
    """`run-20261118-114500-x7k2`: what, when (in UTC), and something that no one else has."""
    chance = "".join(secrets.choice(_LETTERS) for _ in range(4))
    return f"{_WORDS[kind]}-{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{chance}"


def compose(
    kind: Kind,
    *,
    parameters: dict[str, str] | None = None,
    policy: str | None = None,
    begin: int | None = None,
    end: int | None = None,
    run: str | None = None,
) -> tuple[str, Request]:
    """The annotation's text, and what the operator will read in it."""
    fields = {
        "kind": kind,
        "from": None if begin is None else format_instant(begin),
        "to": None if end is None else format_instant(end),
        "parameters": parameters,
        "concurrencyPolicy": policy,
        "run": run,
    }
    text = orjson.dumps({name: value for name, value in fields.items() if value}).decode()
    request = parse(text)
    if isinstance(request, Problem):
        raise Failure(request.message, BAD_USAGE)
    return text, request


def pairs(given: Iterable[str]) -> dict[str, str]:
    """The parameters of `-p key=value -p …`."""
    found: dict[str, str] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise Failure(f'-p {pair!r}: write a parameter as name=value, such as "-p region=eu".', BAD_USAGE)
        if name in found:
            raise Failure(f"-p {name}: it is given twice; give it once.", BAD_USAGE)
        found[name] = value
    return found


def instant(text: str, option: str, zone: tzinfo, now: float) -> int:
    """A time as people write it: RFC 3339, a date or time without an offset in the schedule's zone, or `now`."""
    if text == "now":
        return int(now)
    try:
        if _WALL_TIME.fullmatch(text):
            return int(datetime.fromisoformat(text.upper()).replace(tzinfo=zone).timestamp())
        return parse_instant(text)
    except ValueError:
        raise Failure(
            f'{option}: "{text}" is not a time; write for example 2026-12-24T18:00:00Z, 2026-12-24T18:00 '
            "(in the schedule's time zone) or now.",
            BAD_USAGE,
        ) from None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has been written down."""

    schedule: str
    id: str


async def ask(schedules: Schedules, name: str, kind: Kind, text: str) -> Asked:
    asked = Asked(name, new_id(kind, time.time()))
    await schedules.annotate(name, REQUEST_PREFIX + asked.id, text)
    return asked


async def await_end(
    schedules: Schedules, asked: Asked, timeout: float | None, said: Callable[[str], None], warn: Callable[[str], None]
) -> Json:
    """The schedule once the request is refused or all of its runs are over. `said` hears the operator's answer."""
    begun = time.monotonic()
    answer: Json | None = None
    warned = False
    while True:
        try:
            schedule = await schedules.get(asked.schedule)
        except Unavailable:
            schedule = None  # an API server that restarts is no reason to give up
        if schedule is not None:
            found = entry(schedule, asked.id)
            if found is None and answer is not None:
                raise Failure(f"The status no longer tells of {asked.id}: too many requests came after it.")
            if found is not None and found["state"] != "Accepted":
                return schedule
            if found is not None and answer is None:
                said(found.get("message", "Accepted."))
            answer = found
        waited = time.monotonic() - begun
        if timeout is not None and waited >= timeout:
            raise Failure(_too_late(asked, answer is not None, timeout))
        if answer is None and waited >= PATIENCE and not warned:
            warn("The operator has not answered yet; is it running?")
            warned = True
        await asyncio.sleep(POLL if timeout is None else min(POLL, timeout - waited))


def _too_late(asked: Asked, accepted: bool, timeout: float) -> str:
    if accepted:
        return f"Not over after {timeout:g} s, and still going on; see kubectl task history {asked.schedule}."
    return f"No answer to {asked.id} after {timeout:g} s; is the operator running? The request stands."


def entry(schedule: Json, id: str) -> Json | None:
    """What the status tells of a request."""
    return next((r for r in (schedule.get("status") or {}).get("requests") or () if r["id"] == id), None)


@dataclass(frozen=True, slots=True)
class Verdict:
    good: bool
    sentence: str


def verdict(schedule: Json, asked: Asked) -> Verdict:
    """What came of a request that is over."""
    request = entry(schedule, asked.id)
    assert request is not None
    message, runs = request.get("message", ""), request.get("runs", 0)
    if request["state"] == "Refused" or not runs:
        return Verdict(request["state"] != "Refused", message)
    records = own_records(schedule, asked)
    if runs == 1:
        return _of_one(request, records[0] if records else None)
    succeeded, failed = request.get("succeeded", 0), request.get("failed", 0)
    cancelled = runs - succeeded - failed
    counts = [(succeeded, "succeeded"), (failed, "failed"), (cancelled, "cancelled")]
    total = f"{runs} runs: " + ", ".join(f"{count} {word}" for count, word in counts if count) + "."
    bad = [_of_record(record) for record in reversed(records) if record["phase"] == "Failed"]
    return Verdict(succeeded == runs, "\n".join([*bad, total]))


def _of_one(request: Json, record: Json | None) -> Verdict:
    good = bool(request.get("succeeded"))
    if record is None or (record["phase"] == "Succeeded") != good:
        return Verdict(
            good, f"The run {'succeeded' if good else 'failed' if request.get('failed') else 'was cancelled'}."
        )
    return Verdict(good, _of_record(record))


def _of_record(record: Json) -> str:
    if record["phase"] == "Succeeded":
        result = record.get("result", "")
        return f"Run {record['name']} succeeded" + (f": {result}" if result else ".")
    what = "was cancelled" if record.get("category") == "Cancelled" else "failed"
    details = [f"exit code {record['exitCode']}"] if "exitCode" in record else []
    details += [record["category"]] if record.get("category") not in (None, "Cancelled") else []
    known = f" ({', '.join(details)})" if details else ""
    return f"Run {record['name']} {what}{known}" + (f": {record['message']}" if record.get("message") else ".")


def own_records(schedule: Json, asked: Asked) -> list[Json]:
    """The last attempt of each run that was started for a request, as far as status still has it; newest first."""
    found: dict[str, Json] = {}
    for record in (schedule.get("status") or {}).get("recentRuns") or ():
        claim = Claim(parse_instant(record["slot"]), record["attempt"], record["trigger"], 0, asked.id)
        if record["name"] == job_name(asked.schedule, claim):
            found.setdefault(record["slot"], record)
    return list(found.values())
