"""The objects that are measured: the same work, written for each contestant.

`job_template` is the one place that says what a run is. Unless pods are wanted, its Jobs are suspended: they are
created, seen and counted like any other, but no pod follows, so that what is measured is the way from a slot to a Job
and not how fast pods are made, which is nobody's merit here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from cronwright.core.model import Claim
from cronwright.core.observe import schedule_from, template_from
from cronwright.core.render import render

Json = dict[str, Any]

NAMESPACE = "bench"
MARK = "bench.cronwright.dev/group"
TEMPLATE = "bench"

NAMESPACES = "/api/v1/namespaces"
ALL_SCHEDULES = "/apis/cronwright.dev/v1alpha1/taskschedules"
ALL_JOBS = "/apis/batch/v1/jobs"
SCHEDULES = "/apis/cronwright.dev/v1alpha1/namespaces/bench/taskschedules"
TEMPLATES = "/apis/cronwright.dev/v1alpha1/namespaces/bench/tasktemplates"
CRONJOBS = "/apis/batch/v1/namespaces/bench/cronjobs"
JOBS = "/apis/batch/v1/namespaces/bench/jobs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/bench/leases"
PODS = "/api/v1/namespaces/bench/pods"
EVENTS = "/api/v1/namespaces/bench/events"

LONE = "lone"
"""The group of namespaces with a single schedule each, which go with the clean-up."""


@dataclass(frozen=True)
class Fire:
    """One slot of one schedule: what is due, and when (unix seconds)."""

    name: str
    slot: int
    namespace: str = NAMESPACE


def within(namespace: str, path: str) -> str:
    """The same collection in another namespace."""
    return path.replace(f"/namespaces/{NAMESPACE}/", f"/namespaces/{namespace}/")


def lone_namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {MARK: LONE}}}


def job_template(*, pods: bool) -> Json:
    container = {"name": "task", "image": "busybox:1.37", "command": ["true"]}
    spec = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {"spec": spec if pods else {**spec, "suspend": True}}


def task_template(*, pods: bool, name: str = TEMPLATE, namespace: str = NAMESPACE) -> Json:
    meta = {"name": name, "namespace": namespace}
    return _custom("TaskTemplate", meta, {"job": job_template(pods=pods)})


def task_schedule(
    name: str, cron: str, *, group: str = "due", template: str = TEMPLATE, namespace: str = NAMESPACE, **spec: Any
) -> Json:
    meta = {"name": name, "namespace": namespace, "labels": {MARK: group}}
    return _custom("TaskSchedule", meta, {"templateRef": {"name": template}, "schedule": {"cron": cron}, **spec})


def cron_job(name: str, cron: str, *, pods: bool, **spec: Any) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedule": cron, "timeZone": "UTC", "jobTemplate": job_template(pods=pods), **spec},
    }


def raw_job(fire: Fire, template: Json) -> Json:
    """The very Job that the operator would make of it, but for its owner, without a controller behind it."""
    made = task_schedule(fire.name, cron_at(fire.slot, seconds=True))
    made["metadata"] |= {"uid": "", "resourceVersion": "0", "creationTimestamp": "2026-01-01T00:00:00Z"}
    claim = Claim(fire.slot, 1, "Schedule", fire.slot)
    job = render(schedule_from(made), template_from(template), claim, {}, None)
    job["metadata"]["name"] = fire.name
    [owner] = job["metadata"]["ownerReferences"]
    owner |= {"kind": "TaskTemplate", "name": TEMPLATE, "uid": template["metadata"]["uid"]}
    return job


def cron_at(slot: int, *, seconds: bool) -> str:
    """An expression that is due at this moment and then not again for a day. CronJobs know no seconds."""
    moment = time.gmtime(slot)
    if not seconds and moment.tm_sec:
        raise ValueError(f"{slot} is not a whole minute")
    return f"{moment.tm_min} {moment.tm_hour} * * *" + (f" {moment.tm_sec}" if seconds else "")


def _custom(kind: str, meta: Json, spec: Json) -> Json:
    return {"apiVersion": "cronwright.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
