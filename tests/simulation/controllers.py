"""The other controllers of the cluster: Jobs get pods that run and end, and what lost its owner is collected.

They are as slow, and their pods as unreliable, as the seed draws. They act on the simulated API server directly and see
its changes at once: the faults are for the controller under test, not for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.apiserver import ApiServer, Change

from cronwright.cluster.port import JOBS, LEASES, PODS, SCHEDULES, TEMPLATES, Json, NotFound
from cronwright.timing import parse_instant

OUTSIDE = contextvars.Context()
"""The context of everything that is no replica."""

SLOWEST_END = 45.0
"""No pod runs for longer, so that a history can come to rest."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How the pods of a history behave."""

    start_delay: float
    duration: float
    failing: float
    stuck: float
    collection_delay: float


class Controllers:
    def __init__(
        self,
        server: ApiServer,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        draw: random.Random,
        habits: Habits,
    ) -> None:
        self._server = server
        self._loop = loop
        self._now = now
        self._draw = draw
        self._habits = habits

    def hear(self, change: Change) -> None:
        if change.resource is JOBS:
            self._job(change)
        elif change.resource is PODS and change.type == "DELETED":
            self._finish_foreground(change.obj)
        if change.type == "DELETED":
            self._collect(change.obj["metadata"]["uid"])
        elif change.type == "ADDED":
            self._later(self._draw.uniform(0, self._habits.collection_delay), self._collect_orphan, change)

    def _later(self, delay: float, act: Callable[..., None], *args: object) -> None:
        def unless_gone() -> None:
            with contextlib.suppress(NotFound):
                act(*args)

        self._loop.call_later(delay, unless_gone, context=OUTSIDE)

    # Jobs and their pods

    def _job(self, change: Change) -> None:
        job = change.obj
        if change.type == "DELETED":
            return
        if "deletionTimestamp" in job["metadata"]:
            self._later(self._draw.uniform(0, 0.2), self._finish_foreground, job)
            for pod in self._pods(job):
                self._stop_pod(pod)
        elif change.type == "ADDED":
            self._later(self._draw.uniform(0, self._habits.start_delay), self._start, job)
        elif change.before is not None and change.before["spec"] != job["spec"]:
            self._keep_deadline(job)

    def _current(self, job: Json) -> Json | None:
        """The Job as it stands now, if it is still the same one and not over."""
        meta = job["metadata"]
        found = self._server.get(JOBS, meta["namespace"], meta["name"])
        if found["metadata"]["uid"] != meta["uid"] or "deletionTimestamp" in found["metadata"]:
            return None
        return None if ended(found) else found

    def _start(self, job: Json) -> None:
        current = self._current(job)
        if current is None:
            return
        if current["spec"].get("suspend"):
            self._later(self._draw.uniform(1, 10), self._admit, job)
            return
        self._status(current, {"startTime": self._server.stamp(), "active": 1, "ready": 0})
        pod = self._make_pod(current)
        self._keep_deadline(self._server.get(JOBS, job["metadata"]["namespace"], job["metadata"]["name"]))
        stuck = self._draw.random() < self._habits.stuck
        delay = SLOWEST_END / 2 if stuck else self._draw.uniform(0, self._habits.start_delay)
        self._later(delay, self._run, job, pod)

    def _admit(self, job: Json) -> None:
        """A queueing system lets a suspended Job go."""
        if (current := self._current(job)) is not None:
            meta = current["metadata"]
            self._server.patch(JOBS, meta["namespace"], meta["name"], {"spec": {"suspend": False}}, by="kueue")
            self._later(self._draw.uniform(0, self._habits.start_delay), self._start, job)

    def _make_pod(self, job: Json) -> Json:
        meta = job["metadata"]
        body = {
            "metadata": {
                "generateName": meta["name"] + "-",
                "labels": {"batch.kubernetes.io/job-name": meta["name"]},
                "ownerReferences": [{"kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}],
            }
        }
        pod = self._server.create(PODS, meta["namespace"], body, by="job-controller")
        return self._pod_status(pod, {"phase": "Pending"})

    def _run(self, job: Json, pod: Json) -> None:
        if (current := self._current(job)) is None:
            return
        self._pod_status(pod, {"phase": "Running"})
        self._status(current, {"active": 1, "ready": 1})
        duration = min(SLOWEST_END / 2, self._draw.expovariate(1 / self._habits.duration))
        self._later(duration, self._end, job, pod)

    def _end(self, job: Json, pod: Json) -> None:
        current = self._current(job)
        if current is None:
            return
        if self._draw.random() >= self._habits.failing:
            self._pod_status(pod, {"phase": "Succeeded", **_terminated(0, "Completed", "done")})
            self._over(current, "Complete", "CompletionsReached")
            return
        code = self._draw.choice((1, 1, 1, 64, 75, 137))
        status = {"phase": "Failed", **_terminated(code, "OOMKilled" if code == 137 else "Error", "it broke")}
        if self._draw.random() < 0.2:
            status["reason"] = "Evicted"
        self._pod_status(pod, status)
        self._over(current, "Failed", "BackoffLimitExceeded")

    def _keep_deadline(self, job: Json) -> None:
        seconds = job["spec"].get("activeDeadlineSeconds")
        started = (job.get("status") or {}).get("startTime")
        if seconds is None or started is None:
            return
        self._later(max(0.0, parse_instant(started) + seconds - self._now()), self._expire, job, seconds)

    def _expire(self, job: Json, seconds: int) -> None:
        current = self._current(job)
        if current is None or current["spec"].get("activeDeadlineSeconds") != seconds:
            return
        for pod in self._pods(current):
            self._stop_pod(pod)
        self._over(current, "Failed", "DeadlineExceeded")

    def _over(self, job: Json, kind: str, reason: str) -> None:
        when = self._server.stamp()
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": when}
        status = {"active": 0, "ready": 0, "conditions": [condition]}
        if kind == "Complete":
            status["completionTime"] = when
        self._status(job, status)

    def _status(self, job: Json, status: Json) -> None:
        meta = job["metadata"]
        self._server.patch(JOBS, meta["namespace"], meta["name"], {"status": status}, by="job-controller", sub="status")

    def _pod_status(self, pod: Json, status: Json) -> Json:
        meta = pod["metadata"]
        return self._server.patch(PODS, meta["namespace"], meta["name"], {"status": status}, by="kubelet", sub="status")

    def _pods(self, job: Json) -> list[Json]:
        uid = job["metadata"]["uid"]
        return [pod for pod in self._server.peek(PODS) if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def _stop_pod(self, pod: Json) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            return
        mark = {"metadata": {"deletionTimestamp": self._server.stamp()}}
        self._server.patch(PODS, meta["namespace"], meta["name"], mark, by="kubelet")
        self._later(self._draw.uniform(0, 3), self._remove_pod, pod)

    def _remove_pod(self, pod: Json) -> None:
        meta = pod["metadata"]
        self._server.remove(PODS, meta["namespace"], meta["name"], by="kubelet")

    def _finish_foreground(self, obj: Json) -> None:
        """A Job that is deleted in the foreground goes when its last pod has gone."""
        uid = obj["metadata"]["uid"]
        if obj["metadata"].get("ownerReferences"):
            owners = {ref["uid"] for ref in obj["metadata"]["ownerReferences"]} | {uid}
            for job in self._server.peek(JOBS):
                meta = job["metadata"]
                if meta["uid"] in owners and "deletionTimestamp" in meta and not self._pods(job):
                    self._server.remove(JOBS, meta["namespace"], meta["name"], by="garbage-collector")

    # Garbage

    def _collect(self, owner: str) -> None:
        for resource in (JOBS, LEASES, PODS, SCHEDULES):
            for obj in self._server.peek(resource):
                if any(ref["uid"] == owner for ref in obj["metadata"].get("ownerReferences") or ()):
                    change = Change(0, "DELETED", resource, obj, b"", "", None)
                    self._later(self._draw.uniform(0, self._habits.collection_delay), self._remove, change)

    def _collect_orphan(self, change: Change) -> None:
        """What was created for an owner that is gone already is garbage too."""
        refs = change.obj["metadata"].get("ownerReferences") or ()
        if not refs or change.resource is PODS:
            return
        owners = {obj["metadata"]["uid"] for kind in (SCHEDULES, TEMPLATES, JOBS) for obj in self._server.peek(kind)}
        if not any(ref["uid"] in owners for ref in refs):
            self._remove(change)

    def _remove(self, change: Change) -> None:
        meta = change.obj["metadata"]
        current = self._server.get(change.resource, meta["namespace"], meta["name"])
        if current["metadata"]["uid"] != meta["uid"]:
            return
        if change.resource is PODS:
            self._stop_pod(current)
        else:
            self._server.remove(change.resource, meta["namespace"], meta["name"], by="garbage-collector")


def ended(job: Json) -> str | None:
    """`Complete` or `Failed`, once a Job is over."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            return str(condition["type"])
    return None


def _terminated(code: int, reason: str, message: str) -> Json:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "task", "state": state}]}
