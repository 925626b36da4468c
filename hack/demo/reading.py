"""What a user would read: schedules, Jobs and Events as `kubectl get -o json` gives them, and nothing from inside."""

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hack.demo.errors import DemoError

Json = dict[str, Any]
_PREFIX = "cronwright.dev/"


@dataclass(frozen=True)
class Kubectl:
    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, input: str | None = None) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run([self.program, *arguments], input=input, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise DemoError(f"kubectl {' '.join(arguments)} failed:\n{done.stderr.strip()}")
        return done.stdout


@dataclass(frozen=True)
class Schedule:
    name: str
    when: str
    phase: str
    last: datetime | None
    next: datetime | None
    active: int
    result: str
    skip: tuple[datetime, str] | None
    """The latest slot that did not run, and the reason."""
    retry: datetime | None
    """When the next attempt of a failed run starts."""


@dataclass(frozen=True)
class Run:
    """One attempt, as its Job shows it."""

    name: str
    schedule: str
    slot: datetime
    attempt: int
    created: datetime
    finished: datetime | None
    state: str  # Running, Complete or Failed


@dataclass(frozen=True)
class Event:
    uid: str
    when: datetime
    about: str
    warning: bool
    reason: str
    message: str


@dataclass(frozen=True)
class Snapshot:
    """Schedules by name; runs and Events newest first."""

    schedules: dict[str, Schedule]
    runs: list[Run]
    events: list[Event]


def read(kubectl: Kubectl) -> Snapshot:
    items: list[Json] = json.loads(kubectl("get", "taskschedules,jobs,events", "-o", "json"))["items"]
    schedules = [_schedule(item) for item in items if item["kind"] == "TaskSchedule"]
    runs = [_run(item) for item in items if item["kind"] == "Job" and _PREFIX + "schedule" in _labels(item)]
    events = [_event(item) for item in items if item["kind"] == "Event" and _is_ours(item)]
    return Snapshot(
        schedules={schedule.name: schedule for schedule in schedules},
        runs=sorted(runs, key=lambda run: (run.created, run.name), reverse=True),
        events=sorted(events, key=lambda event: event.when, reverse=True),
    )


def _labels(item: Json) -> Json:
    return item["metadata"].get("labels") or {}


def _is_ours(event: Json) -> bool:
    return str(event["involvedObject"].get("apiVersion", "")).startswith(_PREFIX)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _schedule(item: Json) -> Schedule:
    status: Json = item.get("status") or {}
    skip = status.get("lastSkip")
    retrying = status.get("retrying") or [{}]
    return Schedule(
        name=item["metadata"]["name"],
        when=status.get("schedule", ""),
        phase=status.get("phase", ""),
        last=_time(status.get("lastScheduleTime")),
        next=_time(status.get("nextRunTime")),
        active=status.get("activeRuns", 0),
        result=status.get("lastResult", ""),
        skip=(datetime.fromisoformat(skip["slot"]), skip["reason"]) if skip else None,
        retry=_time(retrying[0].get("at")),
    )


def _run(item: Json) -> Run:
    metadata, status = item["metadata"], item.get("status") or {}
    ended = next(
        (c for c in status.get("conditions") or () if c["type"] in ("Complete", "Failed") and c["status"] == "True"),
        None,
    )
    annotations = metadata["annotations"]
    return Run(
        name=metadata["name"],
        schedule=_labels(item)[_PREFIX + "schedule"],
        slot=datetime.fromisoformat(annotations[_PREFIX + "scheduled-at"]),
        attempt=int(annotations[_PREFIX + "attempt"]),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        finished=_time(ended["lastTransitionTime"]) if ended else None,
        state=ended["type"] if ended else "Running",
    )


def _event(item: Json) -> Event:
    about = item["involvedObject"]
    return Event(
        uid=item["metadata"]["uid"],
        when=datetime.fromisoformat(item.get("lastTimestamp") or item["metadata"]["creationTimestamp"]),
        about=about["name"],
        warning=item["type"] == "Warning",
        reason=item["reason"],
        message=item["message"],
    )
