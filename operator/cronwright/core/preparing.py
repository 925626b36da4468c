"""Slots claimed ahead of their time, so that at the slot itself one POST is all there is to do.

Shortly before a slot is due the ledger names it as `prepared`. Whoever wrote that may create the Job when the time has
come without writing again: no other replica can have acted since, or the ledger would be theirs. That the Job was
created then shows by the Job itself, or by its record in status, and the next write carries it into the ledger; an edit
in between simply withdraws the name. The watermark stays where it is, because it never moves back.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

from cronwright.core.model import Claim, Ledger, Start, View
from cronwright.core.names import job_name
from cronwright.core.progress import progress_of

SHORTEST_LEAD, SPREAD, PARTS = 10, 20, 64
"""Seconds before a slot at which it is prepared: from 10 to 29.5, by the schedule's UID, so that a full hour's claims
are written one after the other and not all at once. Slots come at whole seconds and have the first half of each to
themselves: claims beside them would delay just what they are there to speed up."""


def lead(uid: str) -> float:
    seconds, part = divmod(zlib.crc32(uid.encode()) % (SPREAD * PARTS), PARTS)
    return SHORTEST_LEAD + seconds + (part + 1) / PARTS / 2


def prepared_claim(ledger: Ledger | None) -> Claim | None:
    """What the prepared slot is once its Job has been asked for."""
    if ledger is None or ledger.prepared is None:
        return None
    return Claim(ledger.prepared, 1, "Schedule", ledger.prepared)


def promised(ledger: Ledger) -> list[Claim]:
    """All that whoever reads this ledger may take for started."""
    prepared = prepared_claim(ledger)
    return [*ledger.claims, *([] if prepared is None else [prepared])]


def promote(view: View, ledger: Ledger) -> Ledger:
    """A prepared slot whose Job is there, was, or may be, is a claim like any other: no edit withdraws it any more."""
    claim = prepared_claim(ledger)
    if claim is None:
        return ledger
    name = job_name(view.schedule.key.name, claim)
    return claimed(ledger, claim) if name in view.asked or _is_known(view, name) else ledger


def doubtful(view: View, known: Ledger, *, early: bool = False) -> tuple[str, ...]:
    """The Jobs of claims that somebody else may have created and we have not heard of.

    Watches may be behind: a Lease can reach a successor without the Jobs and the status that its predecessor wrote
    later. So they are asked for, before anything else. Whoever prepared a slot starts it without another write, so its
    Job is asked for too, once it is due; and `early`, before that, if anything is to be started beside it: by their
    clock it may have been due.
    """
    if view.own or view.ledger is None:
        return ()
    claims = [claim for claim in known.claims if progress_of(view, claim).unstarted]
    prepared, timetable = prepared_claim(known), view.schedule.timetable
    if prepared is not None:
        due = prepared.slot if timetable is None else timetable.due(prepared.slot)
        claims += [prepared] if early or due <= view.now else []
    names = (job_name(view.schedule.key.name, claim) for claim in claims)
    return tuple(name for name in names if not (name in view.sought or name in view.asked or _is_known(view, name)))


def may_hang(view: View, ledger: Ledger) -> bool:
    """Whether the prepared slot is a claim only because its Job was asked for: nothing but the ledger can show it."""
    claim = prepared_claim(ledger)
    if claim is None:
        return False
    name = job_name(view.schedule.key.name, claim)
    return name in view.asked and not _is_known(view, name)


def _is_known(view: View, name: str) -> bool:
    return name in view.runs or any(r["name"] == name for r in view.schedule.status.get("recentRuns") or ())


def claimed(ledger: Ledger, claim: Claim) -> Ledger:
    """The ledger in which the prepared slot has become this claim."""
    return replace(
        ledger,
        prepared=None,
        watermark=max(ledger.watermark, claim.slot),
        claims=(*ledger.claims, claim),
        runs=ledger.runs + 1,
        spent=ledger.spent + 1,
        last_slot=claim.slot,
    )


def may_start_unwritten(view: View, before: Ledger, after: Ledger, starts: Sequence[Start]) -> bool:
    """Whether all that is new is the claim of the slot that this replica prepared, and it starts now.

    One that has to wait, for an earlier run or for a place, has no Job to show for it: it must be written.
    """
    if before.prepared is None or not (view.own and view.recorded and after.claims):
        return False
    claim = after.claims[-1]
    if all(start.claim != claim for start in starts):
        return False
    on_time = claim.trigger == "Schedule" and not claim.token
    return on_time and claim.slot == before.prepared and after == claimed(before, claim)


def prepare(view: View, ledger: Ledger, *, passing: bool) -> Ledger:
    """Name the next slot once its time is near; `passing`: slots do pass now, and could be run."""
    timetable = view.schedule.timetable
    wanted = timetable.next(ledger.watermark) if passing and timetable is not None else None
    if wanted is not None and timetable is not None:
        due = timetable.due(wanted)
        if not due - lead(view.schedule.uid) <= view.now < due:
            wanted = ledger.prepared if ledger.prepared == wanted else None
    return ledger if ledger.prepared == wanted else replace(ledger, prepared=wanted)
