"""Catch-up: what becomes of the slots that are due.

`settle` is asked with the last slot that was accounted for (the watermark) and the time. It accounts for
every slot since then whose due time has come: each is run, or skipped with a reason, and the counts add up.
It never lists what it only needs to count, so an outage of ten years costs as much as one of a minute.

The latest due slot, if no older than the tolerance, is merely *late*, and runs under every policy: a busy
minute is no outage. Every other slot has *passed*, and the policy decides which of those are made up for;
the rest was missed. A late slot is the latest one, so where it runs `RunOnce` has nothing to make up for.

Age counts from when the run was due, its jitter included, and in whole seconds, as slots do: nobody wakes
in the very instant of a slot, and a tolerance of 0s must not mean never. Both limits are inclusive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cronwright.timing.timetable import Timetable


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """What to do with slots that have passed."""

    policy: Literal["Skip", "RunOnce", "RunAll"] = "RunOnce"
    max_runs: int = 5  # RunAll: so many of them run, the newest ones, oldest first
    window: int | None = None  # one that is older than this never runs
    tolerance: int = 60  # the latest slot is late and has not passed while no older than this


NOTHING_RUNS = CatchUp(policy="Skip", tolerance=-1)
"""Slots are counted, and all of them skipped."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Slots that do not run: why, how many, and the latest of them."""

    reason: str  # CatchUpSkipped, CatchUpCapped, TooLate or Excluded
    count: int
    last: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of all slots up to the new watermark: `run`, ascending, or `skipped`."""

    run: tuple[int, ...]
    late: bool  # the last one of `run` is on time or late; all others make up for an outage
    skipped: tuple[Skipped, ...]
    watermark: int

    @property
    def missed(self) -> int:
        """How many slots passed and were not made up for; what is left out on purpose was not missed."""
        return sum(skip.count for skip in self.skipped if skip.reason != "Excluded")


def settle(timetable: Timetable, *, watermark: int, now: float, catch_up: CatchUp) -> Settlement:
    """Account for every slot later than `watermark` whose due time has come by `now`."""
    second = math.floor(now)
    latest = timetable.last_due(second, watermark)
    # What is excluded after a slot that still waits for its jitter is accounted for after it.
    waiting = timetable.next(watermark if latest is None else latest)
    until = second if waiting is None else min(second, waiting - 1)
    late = latest is not None and second - timetable.due(latest) <= catch_up.tolerance
    passed_until = latest - 1 if late and latest is not None else until
    runnable, excluded = timetable.count(watermark, until)
    caught, skipped = _catch_up(timetable, watermark, passed_until, runnable - late, second, catch_up, late=late)
    if excluded:
        last = timetable.last_excluded(until, watermark)
        assert last is not None
        skipped.append(Skipped("Excluded", excluded, last))
    run = (*caught, latest) if late and latest is not None else tuple(caught)
    accounted = max([watermark, *run, *(skip.last for skip in skipped)])
    return Settlement(run, late, tuple(skipped), accounted)


def _catch_up(
    timetable: Timetable, after: int, until: int, passed: int, now: int, catch_up: CatchUp, *, late: bool
) -> tuple[list[int], list[Skipped]]:
    """Return which of the `passed` slots in (after, until] run, and what is skipped of them."""
    skipped: list[Skipped] = []
    if catch_up.window is not None:
        too_late = timetable.last_due(min(until, now - catch_up.window - 1), after)
        if too_late is not None:
            skipped.append(Skipped("TooLate", timetable.count(after, too_late).runnable, too_late))
            passed -= skipped[-1].count
            after = too_late
    allowed = {"Skip": 0, "RunOnce": 0 if late else 1, "RunAll": catch_up.max_runs}[catch_up.policy]
    caught = timetable.latest(after, until, allowed)
    if passed > len(caught):
        last = timetable.last(caught[0] - 1 if caught else until, after)
        assert last is not None
        reason = "CatchUpCapped" if catch_up.policy == "RunAll" else "CatchUpSkipped"
        skipped.append(Skipped(reason, passed - len(caught), last))
    return caught, skipped
