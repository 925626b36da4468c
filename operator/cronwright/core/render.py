"""From a template and a claim to the Job that carries it out.

Parameters reach a container as environment, and as `$(params.name)` in command, args and env values. They are never
put into a script's text, so no value can become code. What the kubelet would expand inside a value or a script (`$(`,
`$$`) is escaped, so that it arrives as it was written.

A finished Job is not left to the TTL controller: its result may still be needed for a retry or the ledger. Its time to
live stands in an annotation, and the operator deletes it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from cronwright.api.retrying import Retry
from cronwright.api.template import PodOverlay, TaskTemplateSpec
from cronwright.core.model import MANAGED_BY, PREFIX, Claim, Json, Schedule, Template
from cronwright.core.names import job_name, trial_name
from cronwright.timing import format_instant

_REFERENCE = re.compile(r"\$\(params\.([A-Za-z_][A-Za-z0-9_]*)\)")
_EXPANDED = re.compile(r"\$(?=[$(])")

# Calls the function with the parameters by name; what it returns is printed, and kept as the termination message.
_CALL = """\
import importlib, json, os
module, name = os.environ["TASK_ENTRYPOINT"].split(":")
result = getattr(importlib.import_module(module), name)(**json.loads(os.environ["TASK_PARAMETERS"]))
if result is not None:
    text = result if isinstance(result, str) else json.dumps(result, default=str)
    print(text)
    with open("/dev/termination-log", "w") as log:
        log.write(text[:4000])
"""


def render(
    schedule: Schedule,
    template: Template,
    claim: Claim,
    parameters: Mapping[str, str],
    previous_success: int | None,
) -> Json:
    """The Job of one attempt, ready to be created."""
    assert schedule.spec is not None
    assert template.spec is not None
    name = job_name(schedule.key.name, claim)
    context = {
        "TASK_SCHEDULE": schedule.key.name,
        "TASK_RUN": name,
        "TASK_ATTEMPT": str(claim.attempt),
        "TASK_SCHEDULED_AT": format_instant(claim.slot),
        "TASK_PREVIOUS_SUCCESS_AT": format_instant(previous_success) if previous_success else "",
    }
    job = _body(template.spec, parameters, context)
    meta = job["metadata"]
    meta["name"] = name
    meta["namespace"] = schedule.key.namespace
    meta["ownerReferences"] = [owner_reference(schedule)]
    marks = {
        PREFIX + "schedule": schedule.key.name,
        PREFIX + "template": template.key.name,
        "app.kubernetes.io/managed-by": MANAGED_BY,
    }
    labels = {key: value for key, value in marks.items() if len(value) <= 63}
    meta["labels"] = {**meta.get("labels", {}), **labels}
    meta["annotations"] = {**meta.get("annotations", {}), **_identity(claim), **_policy(schedule, template)}
    pod = job["spec"]["template"].setdefault("metadata", {})
    pod["labels"] = {**pod.get("labels", {}), **labels}
    timeout = schedule.spec.timeout or template.spec.timeout
    if timeout is not None:
        job["spec"]["activeDeadlineSeconds"] = _whole(timeout)
    return job


def trial(template: Template, parameters: Mapping[str, str]) -> Json:
    """A Job of this template for the API server to judge; it belongs to no schedule and is never run."""
    assert template.spec is not None
    context = dict.fromkeys(_CONTEXT, "")
    job = _body(template.spec, parameters, context)
    job["metadata"].update(name=trial_name(template.key.name, template.uid), namespace=template.key.namespace)
    return job


def again(job: Json, schedule: Schedule, claim: Claim) -> Json:
    """The next attempt of a run: the Job of the attempt before, with what is particular to that one replaced.

    A template or schedule that was edited in between does not change a run that has begun.
    """
    body = copy.deepcopy({"metadata": {}, "spec": job["spec"]})
    name = job_name(schedule.key.name, claim)
    old = job["metadata"]
    body["apiVersion"], body["kind"] = "batch/v1", "Job"
    body["metadata"] = {
        "name": name,
        "namespace": old["namespace"],
        "labels": _own(old.get("labels")),
        "annotations": {**_own(old.get("annotations")), **_identity(claim)},
        "ownerReferences": [owner_reference(schedule)],
    }
    for mark in ("ended", "ended-message"):
        body["metadata"]["annotations"].pop(PREFIX + mark, None)
    spec = body["spec"]
    spec.pop("selector", None)
    if PREFIX + "suspend" in old["annotations"]:
        spec["suspend"] = True  # its queue let the attempt before run, and shall be asked anew
    spec["template"]["metadata"]["labels"] = _own(spec["template"]["metadata"].get("labels"))
    restored = old["annotations"].get(PREFIX + "deadline")
    if restored is not None:
        spec.pop("activeDeadlineSeconds", None)
        if restored.isdecimal():
            spec["activeDeadlineSeconds"] = int(restored)
        body["metadata"]["annotations"].pop(PREFIX + "deadline", None)
    fresh = {"TASK_RUN": name, "TASK_ATTEMPT": str(claim.attempt)}
    for container in _containers(spec["template"]["spec"]):
        for entry in container.get("env", ()):
            if entry["name"] in fresh:
                entry["value"] = fresh[entry["name"]]
    return body


def _own(marks: Mapping[str, str] | None) -> dict[str, str]:
    """Without what the Job controller added for that very Job."""
    generated = ("batch.kubernetes.io/", "controller-uid", "job-name")
    return {key: value for key, value in (marks or {}).items() if not key.startswith(generated)}


def owner_reference(schedule: Schedule) -> Json:
    """What we create for a schedule goes with it, whether the operator is there or not."""
    return {
        "apiVersion": "cronwright.dev/v1alpha1",
        "kind": "TaskSchedule",
        "name": schedule.key.name,
        "uid": schedule.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


_CONTEXT = (
    "TASK_SCHEDULE",
    "TASK_RUN",
    "TASK_ATTEMPT",
    "TASK_SCHEDULED_AT",
    "TASK_PREVIOUS_SUCCESS_AT",
)


def _identity(claim: Claim) -> dict[str, str]:
    marks = {
        PREFIX + "slot": str(claim.slot),
        PREFIX + "scheduled-at": format_instant(claim.slot),
        PREFIX + "attempt": str(claim.attempt),
        PREFIX + "trigger": claim.trigger,
    }
    if claim.token:
        marks[PREFIX + "request"] = claim.token
    return marks


def _policy(schedule: Schedule, template: Template) -> dict[str, str]:
    """What is decided about this run later, as it stands now: an edit does not touch a run in flight."""
    assert schedule.spec is not None
    assert template.spec is not None
    marks = {}
    if retry := retry_policy(schedule, template):
        marks[PREFIX + "retry"] = orjson.dumps(retry.to_json()).decode()
    if pending := schedule.spec.pending_timeout or template.spec.pending_timeout:
        marks[PREFIX + "pending-timeout"] = str(_whole(pending))
    return marks


def retry_policy(schedule: Schedule, template: Template | None) -> Retry | None:
    """The schedule's own, or else its template's."""
    of_schedule = schedule.spec.retry if schedule.spec is not None else None
    of_template = template.spec.retry if template is not None and template.spec is not None else None
    return of_schedule or of_template


def _body(spec: TaskTemplateSpec, parameters: Mapping[str, str], context: Mapping[str, str]) -> Json:
    if spec.job is not None:
        meta = spec.job.metadata
        job: Json = {
            "metadata": {
                "labels": dict(meta.labels) if meta else {},
                "annotations": dict(meta.annotations) if meta else {},
            },
            "spec": _substitute(spec.job.spec, parameters),
        }
    else:
        job = _script_job(spec, parameters)
    job["apiVersion"], job["kind"] = "batch/v1", "Job"
    job["spec"].setdefault("backoffLimit", 0)
    ttl = job["spec"].pop("ttlSecondsAfterFinished", None)
    if spec.ttl_after_finished is not None:
        ttl = _whole(spec.ttl_after_finished)
    if ttl is not None:
        job["metadata"].setdefault("annotations", {})[PREFIX + "ttl"] = str(ttl)
    if job["spec"].get("suspend"):
        job["metadata"].setdefault("annotations", {})[PREFIX + "suspend"] = "true"
    env = [{"name": "TASK_PARAM_" + name.upper(), "value": _literal(value)} for name, value in parameters.items()]
    env += [{"name": name, "value": _literal(value)} for name, value in context.items()]
    ours = {entry["name"] for entry in env}
    for container in _containers(job["spec"].get("template", {}).get("spec", {})):
        theirs = [entry for entry in container.get("env", ()) if entry["name"] not in ours]
        container["env"] = env + theirs  # ours first: theirs may refer to them
    return job


def _script_job(spec: TaskTemplateSpec, parameters: Mapping[str, str]) -> Json:
    if spec.shell is not None:
        image, pod = spec.shell.image, spec.shell.pod
        command, env = ["/bin/sh", "-c", _literal(spec.shell.script)], list[Json]()
    else:
        assert spec.python is not None
        image, pod = spec.python.image, spec.python.pod
        if spec.python.script is not None:
            command, env = ["python3", "-c", _literal(spec.python.script)], []
        else:
            command = ["python3", "-c", _literal(_CALL)]
            env = [
                {"name": "TASK_ENTRYPOINT", "value": spec.python.entrypoint},
                {"name": "TASK_PARAMETERS", "value": _literal(orjson.dumps(dict(parameters)).decode())},
            ]
    container: Json = {"name": "task", "image": image, "command": command, "env": env}
    pod_spec: Json = {"restartPolicy": "Never", "containers": [container]}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    if pod is not None:
        labels, annotations = dict(pod.labels), dict(pod.annotations)
        _overlay(container, pod_spec, _substitute(pod.to_json(), parameters), pod)
    return {
        "metadata": {"labels": dict(labels)},
        "spec": {"template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod_spec}},
    }


_OF_CONTAINER = ("envFrom", "resources", "volumeMounts", "imagePullPolicy", "securityContext")
_OF_POD = ("serviceAccountName", "volumes", "imagePullSecrets", "nodeSelector", "tolerations", "affinity")


def _overlay(container: Json, pod_spec: Json, given: Json, pod: PodOverlay) -> None:
    container["env"] = container["env"] + given.get("env", [])
    container.update({key: given[key] for key in _OF_CONTAINER if given.get(key)})
    pod_spec.update({key: given[key] for key in _OF_POD if given.get(key)})
    if pod.pod_security_context is not None:
        pod_spec["securityContext"] = pod.pod_security_context


def _substitute(tree: Any, parameters: Mapping[str, str]) -> Any:
    """A copy of a Job's spec (or pod overlay) with `$(params.name)` replaced where Kubernetes expands `$(VAR)` too."""
    tree = copy.deepcopy(tree)
    pod = tree.get("template", {}).get("spec", {}) if "template" in tree else None
    containers = _containers(pod) if pod is not None else [tree]
    for container in containers:
        for key in ("command", "args"):
            if isinstance(container.get(key), list):
                container[key] = [_expand(item, parameters) for item in container[key]]
        for entry in container.get("env") or ():
            if isinstance(entry, dict) and "value" in entry:
                entry["value"] = _expand(entry["value"], parameters)
    return tree


def _expand(text: Any, parameters: Mapping[str, str]) -> Any:
    if not isinstance(text, str):
        return text
    return _REFERENCE.sub(lambda match: _literal(parameters[match[1]]) if match[1] in parameters else match[0], text)


def _literal(value: str) -> str:
    """A value that the kubelet leaves as it is."""
    return _EXPANDED.sub("$$", value)


def _containers(pod_spec: Json) -> list[Json]:
    found = [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]
    return [container for container in found if isinstance(container, dict)]


def _whole(duration: timedelta) -> int:
    return int(duration.total_seconds())
