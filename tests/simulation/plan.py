"""What a seed means: how many replicas, which schedules and templates, what weather, and which disasters.

Most histories draw most things at zero: a fault is found sooner when only a few others blur it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.simulation.controllers import Habits
from tests.simulation.network import CALL_TIMEOUT, Weather

from cronwright.cluster.port import Json
from cronwright.timing import format_instant

EPOCH = 1_790_000_000
"""2026-09-21T14:13:20Z: an ordinary afternoon without a change of clocks; those are timing's own tests."""

DISASTERS = ("crash", "blackout", "stop", "pause", "partition", "clock", "compact")
DEEDS = (
    "edit",
    "suspend",
    "delete-job",
    "delete-lease",
    "delete-schedule",
    "delete-template",
    "edit-template",
    "take-name",
    "edit-shard",
    "scribble",
    "wipe-status",
)
SORE_POINTS = ("crash-writer", "pause-writer", "delete-job", "edit", "delete-lease")


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    start: float
    """The wall clock when the history begins."""
    replicas: int
    shards: int
    chaos: float
    """Seconds of it, before everything is mended."""
    weather: Weather
    habits: Habits
    templates: tuple[Json, ...]
    schedules: tuple[Json, ...]
    skews: tuple[float, ...]
    disasters: tuple[str, ...]
    disaster_every: float
    deeds: tuple[str, ...]
    deed_every: float
    sore_points: tuple[str, ...]
    """What strikes right after a write, where it hurts."""
    soreness: float
    audit_every: float
    request_every: float
    """Seconds between two requests of people; 0 for none."""


def plan_of(seed: int) -> Plan:
    draw = random.Random(f"{seed}/plan")
    start = EPOCH + draw.randrange(3600) + draw.random()
    chaos = draw.uniform(60, 300)
    replicas = draw.choice((1, 1, 1, 2, 2, 3, 4, 5))
    templates = tuple(_template(draw, f"template-{n}") for n in range(draw.choice((1, 1, 2))))
    names = [template["metadata"]["name"] for template in templates]
    schedules = tuple(
        _schedule(draw, f"schedule-{n}", draw.choice(names), start, chaos) for n in range(draw.choice((1, 1, 2, 3)))
    )
    skewed = draw.random() < 0.3
    return Plan(
        seed=seed,
        start=start,
        replicas=replicas,
        shards=draw.choice((1, 1, 2, 3)),
        chaos=chaos,
        weather=_weather(draw),
        habits=Habits(
            start_delay=draw.choice((0.1, 0.5, 3.0)),
            duration=draw.choice((0.5, 3.0, 10.0)),
            failing=draw.choice((0.0, 0.0, 0.2, 0.7)),
            stuck=draw.choice((0.0, 0.0, 0.0, 0.2)),
            collection_delay=draw.choice((0.1, 1.0, 5.0)),
        ),
        templates=templates,
        schedules=schedules,
        skews=tuple(draw.uniform(-30, 30) if skewed else 0.0 for _ in range(replicas)),
        disasters=_some(draw, DISASTERS),
        disaster_every=draw.choice((5.0, 15.0, 40.0)),
        deeds=_some(draw, DEEDS),
        deed_every=draw.choice((5.0, 15.0, 40.0)),
        sore_points=_some(draw, SORE_POINTS),
        soreness=draw.choice((0.02, 0.1, 0.3)),
        audit_every=draw.choice((30.0, 60.0)),
        request_every=random.Random(f"{seed}/requests").choice((0.0, 0.0, 0.0, 4.0, 12.0, 30.0)),
    )


def _some(draw: random.Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    if draw.random() < 0.4:
        return ()
    return tuple(kind for kind in kinds if draw.random() < 0.35)


def _weather(draw: random.Random) -> Weather:
    if draw.random() < 0.25:
        return Weather()

    def chance(most: float) -> float:
        return draw.uniform(0, most) if draw.random() < 0.4 else 0.0

    return Weather(
        lost_request=chance(0.1),
        lost_response=chance(0.15),
        hanging=chance(0.05),
        slow=chance(0.1),
        slowness=draw.choice((1.0, 4.0, CALL_TIMEOUT - 1)),
        conflict=chance(0.1),
        throttled=chance(0.1),
        broken=chance(0.1),
        quota=chance(0.1),
        watch_dropped=chance(0.05),
        watch_silent=chance(0.01),
        watch_expired=chance(0.03),
        duplicated=chance(0.2),
        reordered=chance(0.2),
        lag=draw.choice((0.05, 0.05, 1.0, 5.0)),
    )


def _template(draw: random.Random, name: str) -> Json:
    container = {"name": "task", "image": "refused" if draw.random() < 0.05 else "busybox"}
    job: Json = {"template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}}}
    kind = draw.choice(("job", "job", "shell", "python", "suspended"))
    spec: Json
    if kind == "shell":
        spec = {"shell": {"script": "true"}}
    elif kind == "python":
        spec = {"python": {"script": "pass"}}
    else:
        spec = {"job": {"spec": {**job, "suspend": True} if kind == "suspended" else job}}
    optional = {
        "maxConcurrentRuns": (0.15, lambda: draw.randint(1, 3)),
        "ttlAfterFinished": (0.15, lambda: f"{draw.randint(1, 30)}s"),
        "retry": (0.2, lambda: _retry(draw)),
        "timeout": (0.1, lambda: f"{draw.randint(5, 20)}s"),
    }
    spec.update(_drawn(draw, optional))
    return {"metadata": {"name": name}, "spec": spec}


def _schedule(draw: random.Random, name: str, template: str, start: float, chaos: float) -> Json:
    optional = {
        "maxRuns": (0.15, lambda: draw.randint(1, 12)),
        "startsAt": (0.1, lambda: format_instant(int(start + draw.uniform(0, chaos)))),
        "expiresAt": (0.1, lambda: format_instant(int(start + chaos + draw.uniform(0, chaos)))),
        "catchUp": (0.7, lambda: _catch_up(draw)),
        "concurrencyPolicy": (0.8, lambda: draw.choice(("Allow", "Forbid", "Replace", "Queue"))),
        "queueLimit": (0.5, lambda: draw.randint(1, 3)),
        "retry": (0.4, lambda: _retry(draw)),
        "timeout": (0.2, lambda: f"{draw.randint(3, 20)}s"),
        "pendingTimeout": (0.3, lambda: f"{draw.randint(2, 10)}s"),
        "history": (0.6, lambda: {"successful": draw.randint(0, 2), "failed": draw.randint(0, 2)}),
        "pauseAfterFailures": (0.1, lambda: draw.randint(1, 3)),
        "suspend": (0.05, lambda: True),
    }
    spec = {"templateRef": {"name": template}, "schedule": when(draw, start, chaos), **_drawn(draw, optional)}
    at = spec["schedule"].get("at")
    if at is not None:
        spec.pop("startsAt", None)
        spec.pop("expiresAt", None)
    return {"metadata": {"name": name}, "spec": spec}


def when(draw: random.Random, start: float, chaos: float) -> Json:
    kind = draw.choice(("interval", "interval", "anchored", "seconds", "minutes", "crons", "at"))
    schedule: Json
    if kind == "interval":
        schedule = {"interval": f"{draw.randint(3, 40)}s"}
    elif kind == "anchored":
        anchor = format_instant(int(start + draw.uniform(-1000, 60)))
        schedule = {"interval": f"{draw.randint(3, 40)}s", "anchor": anchor}
    elif kind == "seconds":
        schedule = {"cron": f"* * * * * */{draw.choice((5, 10, 15, 20, 30))}"}
    elif kind == "minutes":
        schedule = {"cron": draw.choice(("* * * * *", "*/2 * * * *"))}
    elif kind == "crons":
        schedule = {"crons": [f"* * * * * {draw.randrange(60)}", f"* * * * * */{draw.choice((20, 30))}"]}
    else:
        return {"at": format_instant(int(start + draw.uniform(-10, chaos)))}
    if draw.random() < 0.15:
        schedule["jitter"] = f"{draw.randint(1, 5)}s"
    if draw.random() < 0.15:
        begin = int(start + draw.uniform(0, chaos))
        span = {"from": format_instant(begin), "to": format_instant(begin + draw.randint(10, 60))}
        schedule["exclude"] = [draw.choice((span, {"cron": "*/2 * * * *"}))]
    return schedule


def _catch_up(draw: random.Random) -> Json:
    optional = {
        "policy": (0.8, lambda: draw.choice(("Skip", "RunOnce", "RunAll"))),
        "maxRuns": (0.5, lambda: draw.randint(1, 6)),
        "window": (0.3, lambda: f"{draw.randint(10, 90)}s"),
        "tolerance": (0.6, lambda: f"{draw.randint(0, 20)}s"),
    }
    return _drawn(draw, optional)


def _retry(draw: random.Random) -> Json:
    optional = {
        "maxAttempts": (0.7, lambda: draw.randint(1, 3)),
        "backoff": (0.7, lambda: draw.choice(("Exponential", "Linear", "None"))),
        "retryOn": (0.3, lambda: ["Transient", "Timeout", "Permanent"]),
    }
    return {"initialDelay": f"{draw.randint(0, 8)}s", "maxDelay": "15s", **_drawn(draw, optional)}


def _drawn(draw: random.Random, optional: dict[str, tuple[float, Any]]) -> Json:
    return {name: make() for name, (chance, make) in optional.items() if draw.random() < chance}
