"""One turn of one contestant: prepare, warm up, wait for the slots, see the Jobs appear, clean up.

Creating the objects takes a while, and a CronJob is due at whole minutes only; so the slots are chosen first and the
objects are created while the time to them passes. A handful that is due earlier warms the contestant up: the same
processes then serve the slots that count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hack.bench.lab.cluster import Lab
from hack.bench.lab.contestants import Contestant
from hack.bench.lab.errors import BenchError
from hack.bench.lab.figures import Lateness
from hack.bench.lab.manifests import NAMESPACE, Fire
from hack.bench.lab.observing import Observer, Sighting

WARM_UP = 20
_LINGER = 2.0  # after the last expected Job: one too many would be seen in that time
_SOON = 4.0
_POLL = 0.2
_PATIENCE_TO_PREPARE = 0.025  # seconds for each object


@dataclass(frozen=True)
class Course:
    """What is due: `rate` slots at each of `moments`, which lie a contestant's step apart, in one namespace; and at the
    first of them `lone` slots more, each in a namespace of its own."""

    rate: int
    moments: int = 1
    lone: int = 0
    lead: float = 15.0
    """Seconds to prepare in, beyond what the number of objects asks for."""
    patience: float = 900.0
    """Seconds after the last slot in which every Job must have been seen."""


@dataclass(frozen=True)
class Turn:
    figures: Lateness
    lateness: list[float]
    """Of each Job, in seconds, in the order of their slots; the lone ones last."""
    at_once: int | None = None
    """How many slots the contestant may have worked on at once, as far as it tells."""


def slots(step: int, now: float, count: int, lead: float) -> tuple[int, int]:
    """The warm-up's slot and the first that counts: later than that, and with time to create `count` objects."""
    warm = _next(step, now + _SOON)
    return warm, _next(step, max(now + lead + count * _PATIENCE_TO_PREPARE, warm + min(step, 5)))


def _next(step: int, moment: float) -> int:
    return int(-(-moment // step) * step)


def fires_of(course: Course, first: int, step: int) -> list[Fire]:
    crowd = [
        Fire(f"due-{moment:04d}-{number:05d}", first + moment * step)
        for moment in range(course.moments)
        for number in range(course.rate)
    ]
    lone = [Fire(f"lone-{number:03d}", first, f"{NAMESPACE}-lone-{number:03d}") for number in range(course.lone)]
    return [*crowd, *lone]


def take_turn(lab: Lab, contestant: Contestant, course: Course, tell: Callable[[str], None]) -> Turn:
    observer = Observer(lab)
    contestant.begin(lab)
    try:
        observer.start()
        warm, first = slots(contestant.step, time.time(), course.rate * course.moments, course.lead)
        fires = fires_of(course, first, contestant.step)
        tell(f"{contestant.name}: preparing {len(fires)}, due in {first - time.time():.0f} s")
        contestant.schedule(lab, [Fire(f"warm-{number:02d}", warm) for number in range(WARM_UP)])
        contestant.schedule(lab, fires)
        contestant.settle(lab, first - _SOON)
        if time.time() > first - 1:
            raise BenchError(f"{len(fires)} objects were not there in time for their slot. Give more time with --lead.")
        last = max(fire.slot for fire in fires)
        _await(observer, WARM_UP + len(fires), last + course.patience, f"{contestant.name}: ", tell)
        time.sleep(_LINGER)
        at_once = contestant.at_once()
    finally:
        contestant.end(lab)
    return replace(judge(observer.stop(), fires), at_once=at_once)


def clean(lab: Lab, tell: Callable[[str], None]) -> None:
    tell("cleaning up")
    lab.clean()


def _await(observer: Observer, expected: int, deadline: float, prefix: str, tell: Callable[[str], None]) -> None:
    while (seen := observer.count()) < expected:
        tell(f"{prefix}{max(0, seen - WARM_UP)} of {expected - WARM_UP} Jobs")
        if time.time() > deadline:
            raise BenchError(
                f"{prefix}only {seen} of {expected} Jobs appeared. Wait longer with --patience, or look into the logs."
            )
        time.sleep(_POLL)


def judge(sightings: Sequence[Sighting], fires: Sequence[Fire]) -> Turn:
    """How late each fire's Job was. One that has no Job, or two, is no result but an error."""
    slot_of = {fire.name: fire.slot for fire in fires}
    seen: dict[str, float] = {}
    for sighting in sightings:
        name = sighting.owner if sighting.owner in slot_of else sighting.job
        if name not in slot_of:
            continue
        if name in seen:
            raise BenchError(f"{name} has two Jobs for one slot.")
        seen[name] = sighting.at
    if missing := slot_of.keys() - seen.keys():
        raise BenchError(f"{len(missing)} of {len(fires)} slots have no Job, among them {min(missing)}.")
    lateness = [seen[fire.name] - fire.slot for fire in fires]
    lasted = max(seen.values()) - min(slot_of.values())
    return Turn(Lateness.of(lateness, lasted), lateness)
