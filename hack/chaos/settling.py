"""Waiting, after the faults, until every schedule has nothing left to do: only then is there something to count."""

import time
from collections.abc import Callable, Mapping

from hack.chaos.api import OURS, Json, Person
from hack.chaos.errors import ChaosError


def settled(schedule: Json) -> bool:
    """Expired, with every run over and nothing waiting."""
    status = schedule.get("status") or {}
    quiet = not (status.get("activeRuns") or status.get("queued") or status.get("retrying"))
    return quiet and status.get("phase") == "Expired"


def await_settled(
    person: Person, namespace: str, end: int, patience: float, tend: Callable[[], None]
) -> tuple[Mapping[str, Json], list[str]]:
    """Every schedule as it is in the end, and the names of those that did not settle in time."""
    deadline = time.monotonic() + max(0.0, end - time.time()) + patience
    while True:
        tend()
        found = person.list(OURS, namespace, "taskschedules")
        if found is not None:
            restless = [s["metadata"]["name"] for s in found if not settled(s)]
            if (time.time() > end and not restless) or time.monotonic() > deadline:
                return {s["metadata"]["name"]: s for s in found}, restless
        elif time.monotonic() > deadline:
            raise ChaosError("The API server does not answer any more: there is nothing to count.")
        time.sleep(1.0)
