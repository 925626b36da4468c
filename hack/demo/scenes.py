"""What the demo has to show before it may end, and how each is recognised in what a user can read.

Only what happened since the demo began counts: on a cluster that has been up for a while, an earlier demo's Jobs are
still there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template

from hack.demo.reading import Run, Schedule, Snapshot

_AHEAD = timedelta(seconds=15)
_MANIFEST = Path(__file__).with_name("schedules.yaml")


def manifest(now: datetime) -> str:
    """The demo's schedules; the one that runs once is due soon."""
    soon = (now + _AHEAD).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Template(_MANIFEST.read_text()).safe_substitute(SOON=soon)


@dataclass(frozen=True)
class Scene:
    title: str
    schedule: str
    seen: Callable[[Schedule, list[Run], datetime], str]
    """What was seen, in a sentence; empty as long as it was not."""


def look(snapshot: Snapshot, since: datetime) -> dict[str, str]:
    """The scenes that this snapshot shows, by title."""
    shown = {}
    for scene in SCENES:
        schedule = snapshot.schedules.get(scene.schedule)
        runs = [run for run in snapshot.runs if run.schedule == scene.schedule and run.slot >= since]
        if schedule is not None and (sentence := scene.seen(schedule, runs, since)):
            shown[scene.title] = sentence
    return shown


def _fired(schedule: Schedule, runs: list[Run], _: datetime) -> str:
    """A Job of it is Complete, and its status tells of that and of what comes next."""
    complete = next((run for run in runs if run.state == "Complete"), None)
    if complete is None or schedule.last is None or schedule.last < complete.slot:
        return ""
    if schedule.next is not None:
        following = f"next run {schedule.next:%H:%M:%S}"
    elif schedule.phase == "Completed":
        following = "nothing left to run: Completed"
    else:
        return ""
    return f"{complete.name} is Complete; last run {schedule.last:%H:%M:%S}, {following}"


def _retried(_: Schedule, runs: list[Run], __: datetime) -> str:
    again = next((run for run in runs if run.attempt > 1), None)
    if again is None:
        return ""
    before = next((run for run in runs if (run.slot, run.attempt) == (again.slot, again.attempt - 1)), None)
    wait = f", {(again.created - before.finished).seconds} s after the one before" if before and before.finished else ""
    return f"{again.name} is attempt {again.attempt} of the slot {again.slot:%H:%M:%S}{wait}"


def _skipped(schedule: Schedule, _: list[Run], since: datetime) -> str:
    if schedule.skip is None or schedule.skip[0] < since:
        return ""
    slot, reason = schedule.skip
    return f"the slot {slot:%H:%M:%S} did not run: {reason}, because the run before it was not over"


SCENES = (
    Scene("once", "demo-once", _fired),
    Scene("interval", "demo-interval", _fired),
    Scene("cron", "demo-cron", _fired),
    Scene("retry", "demo-retry", _retried),
    Scene("skip", "demo-forbid", _skipped),
)
