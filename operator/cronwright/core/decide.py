"""The one decision: given what is known of a schedule, what must happen now, and when to look again.

The order of the steps is the order of their effects. Runs that ended are folded into the ledger's counts; due slots
are settled into claims and skips; claims that may start are started. The ledger is written before anything is created
(`Decision.write`), so whatever is started was claimed, and whatever was claimed is known after a crash.

Folding alone does not force a write: as long as a finished Job stands, it is the evidence, and the next claim's write
carries the fold along. Nor does a slot that was claimed ahead (`preparing.py`). That keeps a run at one ledger write,
and puts it where nobody waits for it. A pause is written at once: no claim follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cronwright.api.schedule import CatchUpPolicy, ConcurrencyPolicy, OnDelete, TaskScheduleSpec
from cronwright.core import ending
from cronwright.core.admission import admit, give_way, held, pass_over, unclaim
from cronwright.core.fitness import fitness
from cronwright.core.history import prunable, surplus
from cronwright.core.model import Claim, Decision, Ledger, Problem, Skip, Start, Stop, Trigger, View
from cronwright.core.names import job_name
from cronwright.core.preparing import doubtful, lead, may_hang, may_start_unwritten, prepare, promote
from cronwright.core.progress import Progress, progress_of
from cronwright.core.rebuilding import beginning, rebuild
from cronwright.core.requests import answer, resume, tally
from cronwright.core.status import project
from cronwright.timing import NOTHING_RUNS, CatchUp, Timetable, settle

RECLAIM = 20
"""Seconds after which a claim without a Job is taken to be abandoned: a lease's duration and some grace."""


def decide(view: View) -> Decision:
    known = _known(view)
    if view.schedule.deleting:
        return Decision(known, write=False)
    if doubts := doubtful(view, known):
        return Decision(known, write=False, inspect=doubts, status=view.schedule.status)
    problem = fitness(view)
    if view.unreadable:
        return Decision(known, write=False, status=project(view, known, (), problem))
    shown = promote(view, known)
    edited = _follow_edits(view, shown)
    folded, gone = _fold(view, edited)
    settled, replaced = _fold(view, _admit(view, folded, problem))
    open_ = [progress_of(view, claim) for claim in settled.claims]
    begun, starts = _start(view, settled, open_, problem)
    if starts and (doubts := doubtful(view, known, early=True)):
        return Decision(known, write=False, inspect=doubts, status=view.schedule.status)
    unwritten = may_start_unwritten(view, folded, begun, starts)
    if not unwritten and not any(p.state == "Inspecting" for p in open_):
        begun = prepare(view, begun, passing=problem is None and not _idle(view, begun, problem))

    pruned = surplus(view, begun.claims)
    leaving = {run.name for run in pruned}
    stray = ending.strays(view, begun.claims)
    fragile = any(not p.standing or p.name in leaving for p in (*gone, *replaced))
    changed = edited != shown or (begun != folded and not unwritten) or folded.paused != edited.paused
    return Decision(
        ledger=begun,
        # A write proves that this ledger is the latest, and only then is it sure that nobody claimed a stray.
        write=changed or fragile or not view.recorded or bool(stray) or may_hang(view, known),
        starts=starts,
        stops=(*stray, *(Stop(name, "Delete", "History") for name in sorted(leaving)), *ending.stops(view, open_)),
        inspect=tuple(p.name for p in open_ if p.state == "Inspecting" or ending.needs_a_glimpse(p)),
        forget=tuple(r.name for r in view.runs.values() if not r.standing and prunable(r, begun.claims)),
        answered=tuple(h.id for h in begun.requests if h.id in view.schedule.requests),
        owner=_owner(view),
        status=project(view, begun, open_, problem),
        # What is past has had its say in this decision already: what is due and was not done waits for an event.
        wake=min((at for at in _wakes(view, begun, open_, problem) if at > view.now), default=None),
    )


def report(view: View) -> Decision:
    """Nothing but the status, of what has been done so far, for a schedule that has something to do at every look.

    Should the ledger be lost, status is a witness: it must not tell of a claim that is not written yet.
    """
    known = _known(view)
    if not view.recorded or doubtful(view, known):
        return Decision(known, write=False, status=view.schedule.status)
    ledger, _ = _fold(view, _follow_edits(view, promote(view, known)))
    open_ = [progress_of(view, claim) for claim in ledger.claims]
    return Decision(ledger, write=False, status=project(view, ledger, open_, fitness(view)))


def _known(view: View) -> Ledger:
    """The ledger; if its Lease is not there, what is remembered of it and what status and Jobs tell besides."""
    if view.ledger is not None and view.recorded:
        return view.ledger
    return rebuild(view.schedule, view.runs, None if view.ledger is None else promote(view, view.ledger))


def _follow_edits(view: View, ledger: Ledger) -> Ledger:
    """An edit of *when*, a resume, a new generation of a paused schedule: slots before it are not missed."""
    schedule = view.schedule
    since = max(ledger.watermark, beginning(schedule, min(schedule.edited, int(view.now))))
    if ledger.timing != schedule.timing:
        ledger = replace(ledger, timing=schedule.timing, watermark=since, prepared=None)
    if ledger.paused and ledger.paused != schedule.generation:
        ledger = resume(ledger, since)
    return ledger


def _owner(view: View) -> str | None:
    """`onDelete: Delete` makes the template the schedule's owner, so that Kubernetes itself deletes it too."""
    spec, template = view.schedule.spec, view.template
    if spec is None or template is None or template.deleting:
        return None
    wanted = template.uid if spec.template_ref.on_delete == OnDelete.DELETE else ""
    return wanted if view.schedule.owners != ((wanted,) if wanted else ()) else None


def _fold(view: View, ledger: Ledger) -> tuple[Ledger, list[Progress]]:
    """Count the runs that ended and drop their claims."""
    progress = [progress_of(view, claim) for claim in ledger.claims]
    ended = [p for p in progress if p.state == "Ended"]
    if not ended:
        return ledger, []
    for p in sorted(ended, key=lambda p: p.finished):
        ledger = _count(ledger, p)
    claims = tuple(p.claim for p in progress if p.state != "Ended")
    ledger = replace(ledger, claims=claims)
    spec = view.schedule.spec
    limit = spec.pause_after_failures if spec is not None else None
    if limit is not None and ledger.consecutive_failures >= limit and not ledger.paused:
        ledger = replace(ledger, paused=view.schedule.generation, paused_at=int(view.now))
    return ledger, ended


def _count(ledger: Ledger, ended: Progress) -> Ledger:
    assert ended.outcome is not None
    if ended.claim.token and ended.outcome.category != "Cancelled":
        succeeded = ended.outcome.category is None
        ledger = replace(ledger, requests=tally(ledger.requests, ended.claim.token, succeeded=succeeded))
    if ended.outcome.category is None:
        last = max(ledger.last_success or 0, ended.finished)
        return replace(ledger, succeeded=ledger.succeeded + 1, consecutive_failures=0, last_success=last)
    if ended.outcome.category == "Cancelled":
        return replace(ledger, cancelled=ledger.cancelled + 1)
    return replace(
        ledger,
        failed=ledger.failed + 1,
        consecutive_failures=ledger.consecutive_failures + 1,
        last_failure=max(ledger.last_failure or 0, ended.finished),
    )


def _idle(view: View, ledger: Ledger, problem: Problem | None) -> bool:
    """Whether the schedule's own slots do not pass at all now."""
    spec = view.schedule.spec
    if spec is None or view.schedule.timetable is None or spec.suspend or ledger.paused:
        return True
    if problem is not None and problem.waiting:
        return True
    return spec.max_runs is not None and ledger.spent >= spec.max_runs


def _let_lapse(view: View, ledger: Ledger) -> Ledger:
    """A claim whose Job never appeared, because its claimer died, runs only if the catch-up rules still allow it."""
    spec = view.schedule.spec
    if spec is None or not ledger.claims:
        return ledger
    judged = [(claim, _lapsed(view, claim, spec)) for claim in ledger.claims]
    kept = tuple(claim for claim, reason in judged if reason is None)
    skips = [Skip(claim.slot, reason) for claim, reason in judged if reason is not None]
    return unclaim(replace(ledger, claims=kept), skips)


def _lapsed(view: View, claim: Claim, spec: TaskScheduleSpec) -> str | None:
    abandoned = claim.attempt == 1 and not claim.token and view.now - claim.claimed > RECLAIM
    if not abandoned or not progress_of(view, claim).unstarted:
        return None
    age, rules, policy = view.now - claim.slot, spec.catch_up, spec.concurrency_policy
    if rules.window is not None and age > rules.window.total_seconds() and policy != ConcurrencyPolicy.QUEUE:
        return "TooLate"
    # Under these two a claim starts as soon as it is made, unless its template is at its limit.
    at_once = policy in (ConcurrencyPolicy.ALLOW, ConcurrencyPolicy.FORBID) and not _is_limited(view)
    if rules.policy == CatchUpPolicy.SKIP and at_once and age > rules.tolerance.total_seconds():
        return "CatchUpSkipped"
    return None


def _is_limited(view: View) -> bool:
    spec = view.template.spec if view.template is not None else None
    return spec is not None and spec.max_concurrent_runs is not None


def _admit(view: View, ledger: Ledger, problem: Problem | None) -> Ledger:
    """What is new: requests, and slots that have become due. It waits for attempts that have yet to be looked at,
    because whether one of them will be tried again decides whether its run is over."""
    if any(progress_of(view, claim).state == "Inspecting" for claim in ledger.claims):
        return ledger
    return _settle(view, answer(view, _let_lapse(view, ledger), problem), problem)


def _settle(view: View, ledger: Ledger, problem: Problem | None) -> Ledger:
    """Account for every slot that has become due: each is claimed, or skipped with a reason."""
    spec, timetable = view.schedule.spec, view.schedule.timetable
    if spec is None or timetable is None or _idle(view, ledger, problem):
        return ledger
    if problem is not None:
        return _skip_all(timetable, ledger, problem, view.now)
    catch_up = spec.catch_up
    settlement = settle(
        timetable,
        watermark=ledger.watermark,
        now=view.now,
        catch_up=CatchUp(
            policy=catch_up.policy.value,
            max_runs=catch_up.max_runs,
            window=None if catch_up.window is None else int(catch_up.window.total_seconds()),
            tolerance=int(catch_up.tolerance.total_seconds()),
        ),
    )
    if settlement.watermark == ledger.watermark:
        return ledger
    batch: list[tuple[int, Trigger]] = [(slot, "CatchUp") for slot in settlement.run]
    if settlement.late:
        batch[-1] = (batch[-1][0], "Schedule")
    before = [progress_of(view, claim) for claim in ledger.claims]
    admission = admit(
        batch,
        now=int(view.now),
        policy=spec.concurrency_policy.value,
        queue_limit=spec.queue_limit,
        budget=None if spec.max_runs is None else spec.max_runs - ledger.spent,
        before=before,
    )
    skips = [(Skip(s.last, s.reason), s.count) for s in settlement.skipped]
    skips += [(skip, 1) for skip in admission.skips]
    claims = admission.claims
    missed = ledger.missed + settlement.missed
    ledger = pass_over(replace(ledger, watermark=settlement.watermark, missed=missed, prepared=None), skips)
    if admission.replaced:
        ledger = give_way(ledger, before)
    return replace(
        ledger,
        claims=(*ledger.claims, *claims),
        runs=ledger.runs + len(claims),
        spent=ledger.spent + len(claims),
        last_slot=claims[-1].slot if claims else ledger.last_slot,
    )


def _skip_all(timetable: Timetable, ledger: Ledger, problem: Problem, now: float) -> Ledger:
    """A schedule that cannot run misses nothing: its slots are skipped because of what is wrong with it."""
    settlement = settle(timetable, watermark=ledger.watermark, now=now, catch_up=NOTHING_RUNS)
    skips = [
        (Skip(s.last, s.reason) if s.reason == "Excluded" else Skip(s.last, problem.reason, problem.message), s.count)
        for s in settlement.skipped
    ]
    return pass_over(replace(ledger, watermark=settlement.watermark, prepared=None), skips)


def _start(
    view: View, ledger: Ledger, open_: Sequence[Progress], problem: Problem | None
) -> tuple[Ledger, tuple[Start, ...]]:
    """Which claims start now. A retry is claimed (its attempt counted up) before it starts."""
    starts: list[Start] = []
    claims = list(ledger.claims)
    capacity = _capacity(view, open_)
    for index, p in enumerate(open_):
        if capacity is not None and len(starts) >= capacity:
            break
        if p.state == "Retrying" and p.retry_at <= view.now:
            claims[index] = replace(p.claim, attempt=p.claim.attempt + 1, claimed=int(view.now), since=0)
            starts.append(Start(job_name(view.schedule.key.name, claims[index]), claims[index], again=p.name))
        elif p.state == "Waiting" and _may_start(view, ledger, open_, index, problem):
            starts.append(Start(p.name, p.claim, again=_attempt_before(view, p.claim)))
    return replace(ledger, claims=tuple(claims)), tuple(starts)


def _attempt_before(view: View, claim: Claim) -> str | None:
    if claim.attempt == 1:
        return None
    return job_name(view.schedule.key.name, replace(claim, attempt=claim.attempt - 1))


def _capacity(view: View, open_: Sequence[Progress]) -> int | None:
    spec = view.template.spec if view.template is not None else None
    if spec is None or spec.max_concurrent_runs is None:
        return None
    own = sum(p.state == "Active" for p in open_)
    return max(0, spec.max_concurrent_runs - view.template_active - own)


def _may_start(view: View, ledger: Ledger, open_: Sequence[Progress], index: int, problem: Problem | None) -> bool:
    spec, p = view.schedule.spec, open_[index]
    if p.claim.attempt > 1:
        return True  # a run in flight, whose retry was claimed by somebody who died
    if spec is None or problem is not None:
        return False
    if held(view, ledger, p):
        return False
    policy = p.claim.policy or spec.concurrency_policy.value
    if policy == "Allow":
        return True
    # What waits lets those before it go first. One that was held may find a later one running.
    return not any(
        other.unfinished and (other.state != "Waiting" or (place < index and not held(view, ledger, other)))
        for place, other in enumerate(open_)
        if place != index
    )


def _wakes(view: View, ledger: Ledger, open_: Sequence[Progress], problem: Problem | None) -> Iterable[float]:
    """The moments at which, with no event in between, this decision would come out differently."""
    timetable = view.schedule.timetable
    if timetable is not None and not _idle(view, ledger, problem):
        slot = timetable.next(ledger.watermark)
        if slot is not None:
            due = timetable.due(slot)
            yield due if ledger.prepared == slot or problem is not None else due - lead(view.schedule.uid)
    spec = view.schedule.spec
    if spec is not None and spec.expires_at is not None and spec.expires_at.timestamp() > view.now:
        yield spec.expires_at.timestamp()
    if problem is not None and problem.until is not None:
        yield problem.until
    yield from (p.retry_at for p in open_ if p.state == "Retrying")
    yield from ending.wakes(open_)
    for run in view.runs.values():
        if run.ttl is not None and run.finished is not None and run.standing and not run.deleting:
            yield run.finished + run.ttl
