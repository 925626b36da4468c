"""Requests: what people ask of a schedule by an annotation `request.cronwright.dev/<id>: <json>`.

Each id is carried out exactly once: what comes of it and its id enter the ledger in one write, and the annotation is
removed afterwards, however often that takes. A request that cannot be carried out is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from cronwright.api.schedule import ConcurrencyPolicy
from cronwright.core import parameters
from cronwright.core.admission import admit, give_way, held
from cronwright.core.model import Claim, Handled, Ledger, Problem, Trigger, View
from cronwright.core.progress import Progress, progress_of
from cronwright.timing import Timetable, format_instant, parse_instant

MOST_RUNS = 100
"""Slots that one backfill may run: a typing error must not start a year of Jobs."""
MOST_PARAMETERS = 65_536
"""Characters of parameters that the claims of requests may hold in all: the ledger is an annotation."""
AT_ONCE = 20
"""Requests taken up in one look; the ledger remembers more ids than that."""

Kind = Literal["RunNow", "Backfill", "Cancel", "Resume"]
_FIELDS: dict[Kind, tuple[str, ...]] = {
    "RunNow": ("parameters", "concurrencyPolicy"),
    "Backfill": ("from", "to", "parameters", "concurrencyPolicy"),
    "Cancel": ("run",),
    "Resume": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    kind: Kind
    parameters: dict[str, str] | None = None
    policy: str = ""
    begin: int = 0
    end: int = 0
    run: str = ""


def parse(text: str) -> Request | Problem:
    """What an annotation asks for. `{}` is a run now."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _bad(f"it is not JSON ({error}); write for example {_EXAMPLE}")
    if not isinstance(data, dict):
        return _bad(f"it is not a JSON object; write for example {_EXAMPLE}")
    kind = data.pop("kind", "RunNow")
    if not isinstance(kind, str) or kind not in _FIELDS:
        return _bad(f"kind: {kind!r} is not known; write one of {', '.join(_FIELDS)}")
    for name in data:
        if name not in _FIELDS[kind]:
            allowed = ", ".join(_FIELDS[kind]) or "no field"
            return _bad(f"{name}: {kind} has no such field; it takes {allowed}")
    return _fields(kind, data)


def _fields(kind: Kind, data: dict[str, Any]) -> Request | Problem:
    given = data.get("parameters")
    if given is not None and not _is_text_map(given):
        return _bad('parameters: write an object of strings, such as {"region": "eu"}')
    policy = data.get("concurrencyPolicy", "")
    if "concurrencyPolicy" in data and policy not in list(ConcurrencyPolicy):
        return _bad(f"concurrencyPolicy: {policy!r} is not one of {', '.join(ConcurrencyPolicy)}")
    run = data.get("run", "")
    if not isinstance(run, str):
        return _bad("run: write the name of a run's Job")
    begin = end = 0
    if kind == "Backfill":
        try:
            begin, end = (parse_instant(str(data[name])) for name in ("from", "to"))
        except KeyError as error:
            return _bad(f"{error.args[0]}: a Backfill needs from and to; write times such as 2026-12-24T18:00:00Z")
        except ValueError as error:
            return _bad(f"from and to: {error}")
        if begin > end:
            return _bad("to: write a time that is not before from")
    return Request(kind=kind, parameters=given, policy=policy, begin=begin, end=end, run=run)


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _bad(message: str) -> Problem:
    return Problem("Malformed", message + ".")


_EXAMPLE = '{"kind": "RunNow", "parameters": {"region": "eu"}}'


def answer(view: View, ledger: Ledger, problem: Problem | None) -> Ledger:
    """Carry out the requests that the ledger does not know yet, in the order of their ids."""
    known = {handled.id for handled in ledger.requests}
    fresh = sorted(view.schedule.requests.keys() - known)
    for name in fresh[:AT_ONCE]:
        request = parse(view.schedule.requests[name])
        if isinstance(request, Problem):
            ledger = _remember(view, ledger, name, "", request)
        elif request.kind in ("RunNow", "Backfill"):
            if problem is not None and problem.waiting:
                continue
            ledger = _run(view, ledger, name, request, problem)
        elif request.kind == "Cancel":
            ledger = _cancel(view, ledger, name, request)
        else:
            ledger = _resume(view, ledger, name)
    return ledger


def _run(view: View, ledger: Ledger, name: str, request: Request, problem: Problem | None) -> Ledger:
    spec, template = view.schedule.spec, view.template
    if problem is not None:
        return _remember(view, ledger, name, request.kind, problem)
    assert spec is not None
    assert template is not None
    assert template.spec is not None
    resolved = parameters.resolve(template.spec, spec.parameters, request.parameters or {}, where="parameters")
    now = int(view.now)
    slots = [now] if request.kind == "RunNow" else backfill_slots(view.schedule.timetable, request, now)
    for refusal in (resolved, slots):
        if isinstance(refusal, Problem):
            return _remember(view, ledger, name, request.kind, refusal)
    assert isinstance(slots, list)
    trigger: Trigger = "Manual" if request.kind == "RunNow" else "Backfill"
    policy = request.policy or spec.concurrency_policy.value
    before = [progress_of(view, claim) for claim in ledger.claims]
    admission = admit(
        [(slot, trigger) for slot in slots],
        now=now,
        policy=policy,
        queue_limit=spec.queue_limit,
        budget=None,
        before=[p for p in before if not held(view, ledger, p)],
    )
    if not admission.claims:
        skip = admission.skips[-1]
        return _remember(view, ledger, name, request.kind, Problem(skip.reason, skip.message))
    claims = [
        replace(claim, token=name, parameters=request.parameters, policy=request.policy) for claim in admission.claims
    ]
    if _weight([*ledger.claims, *claims]) > MOST_PARAMETERS:
        return _remember(view, ledger, name, request.kind, _TOO_HEAVY)
    if admission.replaced:
        ledger = give_way(ledger, before)
    ledger = replace(ledger, claims=(*ledger.claims, *claims), runs=ledger.runs + len(claims))
    said = f"{len(claims)} run{'s' if len(claims) > 1 else ''} claimed"
    if admission.skips:
        said += f", {len(admission.skips)} not: {admission.skips[-1].message.rstrip('.')}"
    return _remember(view, ledger, name, request.kind, said + ".", runs=len(claims))


def _weight(claims: Iterable[Claim]) -> int:
    return sum(len(orjson.dumps(dict(claim.parameters))) for claim in claims if claim.parameters)


_TOO_HEAVY = Problem(
    "TooManyParameters",
    f"parameters: the requests that wait for their runs have more than {MOST_PARAMETERS} characters of them; "
    "write shorter ones, or ask again later.",
)


def backfill_slots(timetable: Timetable | None, request: Request, now: int) -> list[int] | Problem:
    """The slots that a Backfill asks for; those that lie ahead are the schedule's own to run."""
    assert timetable is not None
    until = min(request.end, now)
    count = timetable.count(request.begin - 1, until).runnable
    if count == 0:
        return Problem(
            "NoSlots",
            f"The schedule has no slot from {format_instant(request.begin)} to {format_instant(until)}; "
            "write a from and to in the past that have one between them.",
        )
    if count > MOST_RUNS:
        return Problem(
            "TooManySlots", f"from and to span {count} slots; write a stretch of at most {MOST_RUNS} at a time."
        )
    return timetable.slots(request.begin - 1, until, count)


def _cancel(view: View, ledger: Ledger, name: str, request: Request) -> Ledger:
    progress = [progress_of(view, claim) for claim in ledger.claims]
    chosen = [p for p in progress if p.unfinished and request.run in ("", p.name)]
    if not chosen:
        which = f"run {request.run} of this schedule" if request.run else "run of this schedule"
        return _remember(view, ledger, name, request.kind, Problem("NoSuchRun", f"No {which} is active or waiting."))
    waiting = {p.name for p in chosen if p.unstarted}
    claims = tuple(
        replace(p.claim, ending="Cancelled") if p in chosen else p.claim for p in progress if p.name not in waiting
    )
    ledger = replace(ledger, claims=claims, cancelled=ledger.cancelled + len(waiting))
    return _remember(view, ledger, name, request.kind, f"Cancelled: {_names(chosen)}.")


def _names(progress: Sequence[Progress]) -> str:
    return ", ".join(p.name for p in progress[:5]) + (f" and {len(progress) - 5} more" if len(progress) > 5 else "")


def _resume(view: View, ledger: Ledger, name: str) -> Ledger:
    if not ledger.paused:
        return _remember(view, ledger, name, "Resume", Problem("NotPaused", "The schedule has not paused itself."))
    return _remember(view, resume(ledger, int(view.now)), name, "Resume", "The schedule runs again.")


def resume(ledger: Ledger, since: int) -> Ledger:
    """No longer paused: failures count from zero, and slots before this moment are not missed."""
    watermark = max(ledger.watermark, since)
    return replace(ledger, paused=0, paused_at=None, consecutive_failures=0, watermark=watermark)


def tally(requests: tuple[Handled, ...], token: str, *, succeeded: bool) -> tuple[Handled, ...]:
    """A run of the request `token` is over: whoever asked for it wants to know how it went."""

    def counted(handled: Handled) -> Handled:
        if succeeded:
            return replace(handled, succeeded=handled.succeeded + 1)
        return replace(handled, failed=handled.failed + 1)

    return tuple(counted(handled) if handled.id == token else handled for handled in requests)


def _remember(view: View, ledger: Ledger, name: str, kind: str, came: str | Problem, runs: int = 0) -> Ledger:
    if isinstance(came, Problem):
        handled = Handled(name, kind or "Unknown", False, came.message, int(view.now))
    else:
        handled = Handled(name, kind, True, came, int(view.now), runs)
    return replace(ledger, requests=(*ledger.requests, handled))
