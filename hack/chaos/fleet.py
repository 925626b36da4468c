"""What is attacked: schedules of several sorts, and the slots that each of them owes.

The slots are computed here and not by `cronwright.timing`: an observer that asks the accused proves nothing. That is
why only sorts are used whose slots are a matter of arithmetic: intervals from an anchor, and steps of seconds.

Every schedule begins and expires at times given beforehand, so which slots are due does not depend on when anybody
noticed anything. Both times fall on a second that no schedule has a slot at.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

SHORTEST, LONGEST = 5, 10
_QUIET_SECONDS = (1, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)
"""Seconds of a minute that no step from 5 to 10 falls on."""

# A Job that wants no completions is complete at once: all of a Job's life but pods, which are most of its cost.
INSTANT, SHORT = "instant", "short"
_CONTAINER = {"name": "main", "image": "registry.invalid/no/such:image"}


@dataclass(frozen=True)
class Planned:
    """A schedule of the attack."""

    name: str
    step: int
    anchor: int | None
    """Where an interval is counted from; None for a cron expression, whose steps begin anew each minute."""
    spec: Json

    def due(self, begin: int, end: int) -> list[int]:
        """Every slot in [begin, end), as unix seconds."""
        if self.anchor is None:
            return [t for t in range(begin, end) if t % 60 % self.step == 0]
        return [t for t in range(begin, end) if (t - self.anchor) % self.step == 0]


def quiet(second: float) -> int:
    """The first whole second not before this one that no schedule has a slot at, whatever its sort."""
    candidate = int(second)
    while candidate < second or candidate % 60 not in _QUIET_SECONDS:
        candidate += 1
    return candidate


def plan(count: int, begin: int, end: int, rng: random.Random) -> list[Planned]:
    return [_one(f"s{number:03}", begin, end, rng) for number in range(count)]


def _one(name: str, begin: int, end: int, rng: random.Random) -> Planned:
    step = rng.randint(SHORTEST, LONGEST)
    anchor: int | None = None
    if rng.random() < 0.7:
        anchor = rng.choice([t for t in range(begin - step, begin) if (begin - t) % step and (end - t) % step])
        when: Json = {"interval": f"{step}s", "anchor": _said(anchor)}
    else:
        when = {"cron": f"* * * * * */{step}"}
    policy = rng.choices(("Allow", "Forbid", "Queue"), (70, 15, 15))[0]
    catch_up = {"policy": "RunAll", "maxRuns": 100} if rng.random() < 0.85 else {"policy": "RunOnce"}
    spec: Json = {
        "templateRef": {"name": INSTANT if policy == "Allow" else SHORT},
        "schedule": when,
        "startsAt": _said(begin),
        "expiresAt": _said(end),
        "concurrencyPolicy": policy,
        "catchUp": catch_up,
        "history": {"successful": 1, "failed": 1},
    }
    if policy == "Queue":
        spec["queueLimit"] = 3  # a queue that is soon empty, so that the count need not wait for it
    return Planned(name, step, anchor, spec)


def templates() -> Sequence[Json]:
    """The two tasks: one that is over at once, and one with a pod that runs for a while."""
    pod = {"restartPolicy": "Never", "containers": [_CONTAINER]}
    notes = {"annotations": {"cluster.cronwright.dev/run-for": "3s"}}
    instant = {"spec": {"completions": 0, "template": {"spec": pod}}}
    short = {"spec": {"template": {"metadata": notes, "spec": pod}}}
    return [
        {"kind": "TaskTemplate", "metadata": {"name": name}, "spec": {"job": job}}
        for name, job in ((INSTANT, instant), (SHORT, short))
    ]


def manifest(planned: Planned) -> Json:
    return {"kind": "TaskSchedule", "metadata": {"name": planned.name}, "spec": planned.spec}


def _said(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
