"""What a schedule would do: the very decision of the operator, on a virtual clock and with made-up Jobs.

Nothing here decides. A forecast asks `decide` whenever the operator would be woken, writes the ledger it is given,
creates and deletes Jobs as told, lets them last as long as one assumes, and notes what became of every slot. Outages
are times in which nobody asks.

A decision counts the slots it skips, by reason, and does not list them: an outage may have millions. A forecast is
read by people, so it lists them all, and fails if the lists and the counts should ever disagree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

import orjson

from cronwright.core.decide import decide
from cronwright.core.model import Category, Decision, Json, Ledger, Outcome, Run, Schedule, Start, Template, View
from cronwright.core.names import job_name
from cronwright.core.preparing import promised
from cronwright.core.rebuilding import beginning, rebuild
from cronwright.timing import Timetable


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the cluster and the tasks are taken to do."""

    begin: int
    end: int
    """Slots later than `begin`, up to and including `end`, are foreseen."""
    outages: tuple[tuple[int, int], ...] = ()
    """Nobody decides from the first instant on, until the second one."""
    run_time: int = 1
    failing: frozenset[int] = frozenset()
    """Attempts with these numbers fail, as Transient."""


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    started: int
    finished: int
    category: Category | None
    """Why it failed; None: it succeeded."""


@dataclass(slots=True)
class Foreseen:
    """What becomes of one slot. `reason` is the trigger of a run, or why there is none."""

    slot: int
    decision: Literal["Run", "Skip"]
    reason: str
    at: int
    """When its first attempt starts, or when it was decided that there is none."""
    attempts: list[Attempt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Forecast:
    slots: list[Foreseen]
    status: Json
    """The schedule's status when all that was foreseen is over."""


def forecast(schedule: Schedule, template: Template, assumptions: Assumptions) -> Forecast:
    """Foresee every slot of the range. The schedule must be valid, and nothing is taken to have run before."""
    assert schedule.timetable is not None
    return _Simulation(schedule, template, schedule.timetable, assumptions).run()


class _Simulation:
    def __init__(self, schedule: Schedule, template: Template, timetable: Timetable, assumptions: Assumptions) -> None:
        self._assumed = assumptions
        # No slot is born after the end, so that what is under way then comes to its own end.
        self._timetable = timetable.ending(assumptions.end)
        self._schedule = replace(schedule, timetable=self._timetable, told="{}")
        self._template = template
        self._begin = max(assumptions.begin, schedule.created)
        self._ledger = replace(rebuild(self._schedule, {}), watermark=beginning(schedule, self._begin))
        self._runs: dict[str, Run] = {}
        self._ends: dict[str, tuple[int, Category | None]] = {}
        self._slots: dict[int, Foreseen] = {}

    def run(self) -> Forecast:
        self._note_past()
        now: int | None = self._present(self._begin)
        while now is not None:
            wake = self._look(now)
            now = self._following(now, wake)
        self._note_rest()
        return Forecast([self._slots[slot] for slot in sorted(self._slots)], self._schedule.status)

    # The clock

    def _present(self, moment: int) -> int:
        """The moment, or the end of the outage that it falls into."""
        for begin, end in sorted(self._assumed.outages):
            if begin <= moment < end:
                moment = end
        return moment

    def _following(self, now: int, wake: float | None) -> int | None:
        """When the operator is next woken: by its own wish or by a Job that ends."""
        moments = [end for end, _ in self._ends.values()]
        moments += [] if wake is None else [math.ceil(wake)]
        moments += [self._assumed.end]
        later = [moment for moment in moments if moment > now]
        return self._present(min(later)) if later else None

    # The operator

    def _look(self, now: int) -> float | None:
        """Decide, and act, until there is nothing more to do at this moment; return when to look again."""
        while True:
            self._finish_jobs(now)
            view = View(
                self._schedule,
                self._template,
                self._ledger,
                recorded=True,
                runs=self._runs,
                now=now,
                sought=frozenset(job_name(self._schedule.key.name, claim) for claim in promised(self._ledger)),
            )
            decision = decide(view)
            self._note(self._ledger, decision.ledger, now)
            if decision.write:
                self._ledger = decision.ledger
            self._schedule.told = orjson.dumps(decision.status).decode()
            if not self._act(decision, now):
                return decision.wake

    def _act(self, decision: Decision, now: int) -> bool:
        """Carry a decision out; return whether something has come of it that must be decided on at once."""
        for start in decision.starts:
            self._start(start, now)
        for name in decision.forget:
            self._runs.pop(name)
        replaced = False
        for stop in decision.stops:
            if stop.why == "History":
                del self._runs[stop.name]
            else:
                replaced = True
                self._runs[stop.name].gone = True
                self._note_attempt(self._runs[stop.name], now, "Cancelled")
        return replaced or any(end <= now for end, _ in self._ends.values())

    # Jobs

    def _start(self, start: Start, now: int) -> None:
        assert self._schedule.spec is not None
        assert self._template.spec is not None
        claim = start.claim
        timeout: timedelta | None = self._schedule.spec.timeout or self._template.spec.timeout
        category: Category | None = "Transient" if claim.attempt in self._assumed.failing else None
        length = self._assumed.run_time
        if timeout is not None and timeout.total_seconds() < length:
            length, category = int(timeout.total_seconds()), "Timeout"
        self._ends[start.name] = (now + length, category)
        self._runs[start.name] = Run(
            name=start.name,
            uid=start.name,
            version=1,
            slot=claim.slot,
            attempt=claim.attempt,
            trigger=claim.trigger,
            token=claim.token,
            phase="Running",
            created=now,
            started=now,
            ready=True,
            retry=self._schedule.spec.retry or self._template.spec.retry,
        )
        if claim.attempt == 1:
            self._slots[claim.slot] = Foreseen(claim.slot, "Run", claim.trigger, now)

    def _finish_jobs(self, now: int) -> None:
        for name, (end, category) in list(self._ends.items()):
            if end <= now:
                run = self._runs[name]
                run.finished = end
                run.phase = "Succeeded" if category is None else "Failed"
                run.outcome = Outcome(category)
                self._note_attempt(run, end, category)

    def _note_attempt(self, run: Run, finished: int, category: Category | None) -> None:
        del self._ends[run.name]
        self._slots[run.slot].attempts.append(Attempt(run.attempt, run.created, finished, category))

    # The story

    def _note(self, before: Ledger, after: Ledger, now: int) -> None:
        """Note what a decision did about slots without starting them: those it skipped, and claims it dropped."""
        kept = {claim.slot for claim in after.claims}
        dropped = [c.slot for c in before.claims if c.slot not in kept and c.slot not in self._slots]
        for slot, reason in _skipped(self._timetable, before, after, dropped):
            # An excluded slot is not decided on: nobody was woken for it.
            self._slots[slot] = Foreseen(slot, "Skip", reason, slot if reason == "Excluded" else now)

    def _note_past(self) -> None:
        """A single time before the schedule existed lies before the range, and is what one wants to be told of."""
        assert self._schedule.spec is not None
        at = self._schedule.spec.schedule.at
        if at is not None and (slot := int(at.timestamp())) <= self._ledger.watermark:
            self._slots[slot] = Foreseen(slot, "Skip", "AtInPast", self._begin)

    def _note_rest(self) -> None:
        """Note the slots that nobody decides on, as the schedule stands still: they pass without being missed."""
        waiting = [claim.slot for claim in self._ledger.claims if claim.slot not in self._slots]
        passing = self._timetable.every(self._ledger.watermark, self._assumed.end)
        why = self._standstill()
        for slot, runs in (*((slot, True) for slot in waiting), *passing):
            self._slots[slot] = Foreseen(slot, "Skip", why if runs else "Excluded", self._timetable.due(slot))

    def _standstill(self) -> str:
        assert self._schedule.spec is not None
        if self._schedule.spec.suspend:
            return "Suspended"
        return "Paused" if self._ledger.paused else "MaxRunsReached"


_OLDEST_FIRST = ("TooLate", "CatchUpSkipped", "CatchUpCapped")
"""What catch-up leaves out is older than all that it lets through to be skipped for other reasons."""


def _skipped(timetable: Timetable, before: Ledger, after: Ledger, dropped: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield the slots that a decision skipped, each with its reason, from what it counted.

    `dropped` are slots that had been claimed and did not start: newer ones took their place, or it got too late.
    """
    claimed = {claim.slot for claim in after.claims}
    slots = [(s, runs) for s, runs in timetable.every(before.watermark, after.watermark) if s not in claimed]
    counts = Counter(after.skips)
    counts.subtract(before.skips)
    for slot in dropped:
        reason = next(reason for reason in ("Replaced", *_OLDEST_FIRST) if counts[reason] > 0)
        counts[reason] -= 1
        yield slot, reason
    excluded = ["Excluded"] * counts.pop("Excluded", 0)
    reasons = [reason for reason in (*_OLDEST_FIRST, *(counts.keys() - _OLDEST_FIRST)) for _ in range(counts[reason])]
    yield from zip((slot for slot, runs in slots if not runs), excluded, strict=True)
    yield from zip((slot for slot, runs in slots if runs), reasons, strict=True)
