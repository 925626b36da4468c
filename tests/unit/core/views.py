"""Views in a few words, so that a row of a table fits on a line.

`T` is the present slot of a schedule that runs every minute. Runs before it are letters: what stands at `"AW"` is an
active run of the slot two minutes ago and a waiting one of the slot a minute ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cronwright.api.retrying import Retry
from cronwright.api.template import TaskTemplateSpec
from cronwright.core.model import Claim, Json, Key, Ledger, Outcome, Run, Schedule, Template, View
from cronwright.core.names import job_name
from cronwright.core.observe import schedule_from
from cronwright.timing import format_instant

T = 1_800_000_000  # 2027-01-15T08:00:00Z
MINUTE = 60
RETRY = Retry.model_validate({"maxAttempts": 3, "initialDelay": "90s", "backoff": "None"})
TRANSIENT = Outcome("Transient", 1, "boom")


def at(seconds: float) -> str:
    """The time so many seconds from the present slot, as it stands in a status."""
    return format_instant(T + seconds)


def schedule(
    *,
    status: Json | None = None,
    requests: Mapping[str, str] | None = None,
    created: int = -600,
    edited: int | None = None,
    generation: int = 1,
    deleting: bool = False,
    owners: Iterable[str] = (),
    **spec: Any,
) -> Schedule:
    """A schedule named `s` that runs every minute, made ten minutes ago, unless said otherwise."""
    meta: Json = {
        "namespace": "ns",
        "name": "s",
        "uid": "uid-s",
        "resourceVersion": "1",
        "generation": generation,
        "creationTimestamp": at(created),
        "annotations": {f"request.cronwright.dev/{name}": text for name, text in (requests or {}).items()},
        "ownerReferences": [{"kind": "TaskTemplate", "uid": uid} for uid in owners],
    }
    if deleting:
        meta["deletionTimestamp"] = at(0)
    if edited is not None:
        meta["managedFields"] = [{"time": at(edited), "fieldsV1": {"f:spec": {}}}]
    every_minute = {"schedule": {"interval": "1m", "anchor": at(-86400)}}
    whole = {"templateRef": {"name": "t"}, **every_minute, **spec}
    return schedule_from({"metadata": meta, "spec": whole, "status": status or {}})


def template(*, deleting: bool = False, checked: bool = True, **spec: Any) -> Template:
    whole = spec if {"job", "python", "shell"} & spec.keys() else {"shell": {"script": "true"}, **spec}
    return Template(
        key=Key("ns", "t"),
        uid="uid-t",
        version=1,
        generation=1,
        deleting=deleting,
        spec=TaskTemplateSpec.model_validate(whole),
        problem=None,
        checked=checked,
        status={},
    )


def claim(slot: int, attempt: int = 1, **fields: Any) -> Claim:
    """A claim of the slot so many seconds from the present one, made when it was due."""
    return replace(Claim(T + slot, attempt, "Schedule", T + slot), **fields)


def run(of: Claim, **fields: Any) -> Run:
    """The Job of a claim, with a pod that runs."""
    known = Run(
        name=job_name("s", of),
        uid=f"uid-{of.slot}-{of.attempt}",
        version=1,
        slot=of.slot,
        attempt=of.attempt,
        trigger=of.trigger,
        token=of.token,
        phase="Running",
        created=of.claimed,
        started=of.claimed,
        ready=True,
    )
    return replace(known, **fields)


def failed(of: Claim, after: int = 5, outcome: Outcome | None = TRANSIENT, **fields: Any) -> Run:
    return run(of, phase="Failed", finished=of.claimed + after, outcome=outcome, **fields)


def succeeded(of: Claim, after: int = 5, **fields: Any) -> Run:
    return run(of, phase="Succeeded", finished=of.claimed + after, **fields)


def before(letters: str) -> tuple[tuple[Claim, ...], list[Run]]:
    """Claims of the slots before the present one, a minute apart, and their Jobs.

    A active, P pending (no pod ready yet), W waiting (claimed, no Job), R to be retried later, D a retry that is due,
    I failed and yet to be looked at, S succeeded, F failed for good, X deleted by somebody, L leaving (told to).
    """
    claims, runs = [], []
    for index, letter in enumerate(letters):
        of = claim(MINUTE * (index - len(letters)), claimed=T - 10)
        claims.append(of)
        match letter:
            case "A":
                runs.append(run(of))
            case "P":
                runs.append(run(of, ready=False))
            case "R":
                runs.append(failed(of, retry=RETRY))
            case "D":
                runs.append(failed(of, after=-100, retry=RETRY))
            case "I":
                runs.append(failed(of, outcome=None, retry=RETRY))
            case "S":
                runs.append(succeeded(of))
            case "F":
                runs.append(failed(of))
            case "X":
                runs.append(run(of, gone=True))
            case "L":
                runs.append(run(of, deleting=True, reason="Replaced"))
            case "W":
                pass
            case _:
                raise ValueError(letter)
    return tuple(claims), runs


def ledger(of: Schedule, *claims: Claim, **fields: Any) -> Ledger:
    """All slots before the present one are accounted for."""
    counts = {"runs": len(claims), "spent": len(claims)}
    return Ledger(**{"timing": of.timing, "watermark": T - MINUTE, "claims": claims, **counts, **fields})


def view(
    of: Schedule | None = None,
    *,
    known: Ledger | None = None,
    runs: Iterable[Run] = (),
    now: float = 0,
    using: Template | None = None,
    gone: bool = False,
    elsewhere: int = 0,
    recorded: bool = True,
    unreadable: bool = False,
) -> View:
    """What is known so many seconds after the present slot. `gone`: there is no template. Claims whose Job is not there
    have none for sure."""
    of = of or schedule()
    claims = known.claims if known is not None else ()
    return View(
        schedule=of,
        template=None if gone else using or template(),
        ledger=(known or ledger(of)) if recorded else None,
        recorded=recorded,
        runs={run.name: run for run in runs},
        sought=frozenset(job_name(of.key.name, claim) for claim in claims),
        now=T + now,
        template_active=elsewhere,
        unreadable=unreadable,
    )
