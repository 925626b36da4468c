"""TaskTemplate: what to run. A Job written out in full, or a script and an image that are made into one."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from cronwright.api.common import (
    MAX_PARAMETER_VALUE,
    MAX_PARAMETERS,
    PARAMETER_NAME,
    ApiModel,
    PositiveDuration,
    Rule,
    exactly_one_of,
)
from cronwright.api.retrying import Retry

ENTRYPOINT = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"

_VERBATIM: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _keyed_by(key: str) -> WithJsonSchema:
    """A list of Kubernetes objects taken verbatim, except that each is known (and merged) by this key."""
    item = {**_VERBATIM, "properties": {key: {"type": "string"}}, "required": [key]}
    return WithJsonSchema(
        {
            "type": "array",
            "maxItems": 100,
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key],
        }
    )


Verbatim = Annotated[dict[str, Any], WithJsonSchema(_VERBATIM)]
VerbatimList = Annotated[
    tuple[dict[str, Any], ...],
    WithJsonSchema({"type": "array", "maxItems": 100, "items": _VERBATIM, "x-kubernetes-list-type": "atomic"}),
]
Labels = dict[str, Annotated[str, Field(max_length=4096)]]
Image = Annotated[str, Field(min_length=1, max_length=512)]
Script = Annotated[str, Field(min_length=1, max_length=100_000)]


class TemplateType(StrEnum):
    """Which of the three ways to say what runs a template uses."""

    JOB = "job"
    SHELL = "shell"
    PYTHON = "python"


class PodOverlay(ApiModel):
    """The pieces of a pod that a script may need besides its image, in Kubernetes' own words."""

    labels: Labels = Field(default={}, max_length=50)
    """Labels for the Job and its pod, e.g. {team: billing}."""

    annotations: Labels = Field(default={}, max_length=50)
    """Annotations for the pod, e.g. {sidecar.istio.io/inject: "false"}."""

    env: Annotated[tuple[dict[str, Any], ...], _keyed_by("name")] = ()
    """Environment variables, as in a container: {name, value} or {name, valueFrom}."""

    env_from: VerbatimList = ()
    """ConfigMaps and Secrets whose keys become environment variables, as in a container."""

    resources: Verbatim | None = None
    """Requests and limits, as in a container, e.g. {requests: {cpu: 100m}, limits: {memory: 256Mi}}."""

    service_account_name: str | None = Field(default=None, min_length=1, max_length=253)
    """The ServiceAccount that the pod runs as; the namespace's default one unless said."""

    volumes: Annotated[tuple[dict[str, Any], ...], _keyed_by("name")] = ()
    """Volumes, as in a pod."""

    volume_mounts: Annotated[tuple[dict[str, Any], ...], _keyed_by("mountPath")] = ()
    """Where the volumes appear in the container, as in a container."""

    image_pull_secrets: Annotated[tuple[dict[str, Any], ...], _keyed_by("name")] = ()
    """Secrets for pulling the image, as in a pod, e.g. [{name: registry}]."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled: Always, IfNotPresent or Never. Kubernetes chooses by the tag unless said."""

    node_selector: Labels = Field(default={}, max_length=50)
    """Labels a node must have to run the pod, e.g. {kubernetes.io/arch: arm64}."""

    tolerations: VerbatimList = ()
    """Taints the pod tolerates, as in a pod."""

    affinity: Verbatim | None = None
    """Affinity of the pod, as in a pod."""

    security_context: Verbatim | None = None
    """The container's security context, e.g. {readOnlyRootFilesystem: true}."""

    pod_security_context: Verbatim | None = None
    """The pod's security context, e.g. {runAsNonRoot: true, runAsUser: 1000}."""


class ShellTask(ApiModel):
    """A script run by /bin/sh."""

    image: Image = "busybox:1.37"
    """The image the script runs in. It needs a /bin/sh."""

    script: Script
    """
    The script. It is handed to /bin/sh as it stands: parameters are read from the environment, as
    "$TASK_PARAM_<NAME>", and never spliced into the text.
    """

    pod: PodOverlay | None = None
    """Further pieces of the pod: environment, resources, volumes, and so on."""


class PythonTask(ApiModel):
    """A Python script, or a function in the image that is called with the parameters."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one_of("script", "entrypoint", message="write exactly one of script or entrypoint"),
        Rule(
            message="write a module and a function in it, such as reports.daily:main",
            cel=f"!has(self.entrypoint) || self.entrypoint.matches(r'{ENTRYPOINT}')",
            holds=lambda task: task.entrypoint is None or bool(re.fullmatch(ENTRYPOINT, task.entrypoint)),
            field="entrypoint",
        ),
    )

    image: Image = "python:3.13-slim"
    """The image the code runs in. It needs a python3."""

    script: Script | None = None
    """The script, run by python3. Parameters are in os.environ["TASK_PARAM_<NAME>"]."""

    entrypoint: str | None = Field(default=None, min_length=1, max_length=253)
    """
    A function of a module in the image, as pkg.mod:func. It is called with the parameters as keyword
    arguments, and what it returns is the run's result.
    """

    pod: PodOverlay | None = None
    """Further pieces of the pod: environment, resources, volumes, and so on."""


class JobMetadata(ApiModel):
    """Labels and annotations for each Job; its name is the operator's to give."""

    labels: Labels = Field(default={}, max_length=50)
    """Labels for each Job, e.g. {team: billing}."""

    annotations: Labels = Field(default={}, max_length=50)
    """Annotations for each Job."""


class JobTemplate(ApiModel):
    """A batch/v1 JobTemplateSpec, taken verbatim."""

    metadata: JobMetadata | None = None
    """Labels and annotations for each Job."""

    spec: Annotated[
        dict[str, Any],
        WithJsonSchema({**_VERBATIM, "properties": {"template": _VERBATIM}, "required": ["template"]}),
    ]
    """
    The Job's spec, as in batch/v1; see kubectl explain job.spec. $(params.name) in command, args and env
    values becomes the parameter's value. backoffLimit is 0 unless you set it: retries belong to the schedule.
    """


class Parameter(ApiModel):
    """A value that schedules and run-now requests may set."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            message="write a name of letters, digits and underscores, such as output_dir",
            cel=f"self.name.matches('{PARAMETER_NAME}')",
            holds=lambda parameter: bool(re.fullmatch(PARAMETER_NAME, parameter.name)),
            field="name",
        ),
        Rule(
            message="write a default that is one of enum",
            cel="!has(self.default) || !has(self.enum) || self.default in self.enum",
            holds=lambda p: p.default is None or not p.enum or p.default in p.enum,
            field="default",
        ),
        Rule(
            message="a required parameter is always given: remove required or default",
            cel="!has(self.default) || !has(self.required) || !self.required",
            holds=lambda parameter: parameter.default is None or not parameter.required,
        ),
    )

    name: str = Field(min_length=1, max_length=63)
    """
    The parameter's name: letters, digits and underscores. The container gets it as $TASK_PARAM_<NAME>, in
    upper case.
    """

    description: str | None = Field(default=None, max_length=1024)
    """What the parameter is for, for people."""

    default: str | None = Field(default=None, max_length=MAX_PARAMETER_VALUE)
    """The value when nobody gives one. Without it the parameter is empty, unless it is required."""

    required: bool = False
    """Whether every schedule and request has to give a value; false unless said."""

    enum: tuple[Annotated[str, Field(max_length=MAX_PARAMETER_VALUE)], ...] = Field(
        default=(), min_length=1, max_length=50, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """
    The values that are allowed, e.g. [small, large]. Any value is, unless this or pattern says otherwise.
    """

    pattern: str | None = Field(default=None, min_length=1, max_length=256)
    """A regular expression that the whole value has to match, e.g. [0-9]{4}-[0-9]{2}."""


def _differ_in_more_than_case(template: TaskTemplateSpec) -> bool:
    names = [parameter.name.lower() for parameter in template.parameters]
    return len(names) == len(set(names))


class TaskTemplateSpec(ApiModel):
    """What to run: exactly one of job, shell or python, and the limits and parameters that go with it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one_of("job", "shell", "python", message="write exactly one of job, shell or python"),
        Rule(
            message="write parameter names that differ in more than case: they become TASK_PARAM_<NAME>",
            cel=(
                "!has(self.parameters) || self.parameters.all(p,"
                " self.parameters.exists_one(q, q.name.lowerAscii() == p.name.lowerAscii()))"
            ),
            holds=_differ_in_more_than_case,
            field="parameters",
        ),
    )

    description: str | None = Field(default=None, max_length=1024)
    """What the task is for, for people."""

    job: JobTemplate | None = None
    """A batch/v1 Job written out in full, taken verbatim: {metadata: {labels, annotations}, spec: {…}}."""

    shell: ShellTask | None = None
    """A shell script and the image it runs in, e.g. {script: "echo hello"}."""

    python: PythonTask | None = None
    """
    A Python script, or a function in an image, e.g. {image: reports:1.4, entrypoint: "reports.daily:main"}.
    """

    parameters: tuple[Parameter, ...] = Field(
        default=(),
        max_length=MAX_PARAMETERS,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """
    What a schedule or a run-now request may set. Parameters reach the container as environment
    $TASK_PARAM_<NAME>, and as $(params.name) in command, args and env values. Unknown or invalid ones are
    refused.
    """

    timeout: PositiveDuration | None = None
    """How long a run may take before it is ended and fails as Timeout, e.g. 30m. No limit unless said."""

    pending_timeout: PositiveDuration | None = None
    """
    How long a run's pod may wait to be scheduled or for its image before the run fails as Timeout, e.g. 10m.
    No limit unless said.
    """

    retry: Retry | None = None
    """
    When a failed run is tried again, for the schedules that do not say so themselves. Without it a failed run
    is not retried; with an empty one, {}, it is attempted three times.
    """

    capture_result: bool = False
    """
    Take the container's termination message (/dev/termination-log) as the run's result in the schedule's
    status. A python task always does.
    """

    max_concurrent_runs: int | None = Field(default=None, ge=1, le=10_000)
    """
    How many runs of this template may be active at once, over all of its schedules. No limit unless said.
    """

    ttl_after_finished: PositiveDuration | None = None
    """
    How long a finished Job is kept, e.g. 1d. It is deleted then, even if a schedule's history would have kept it.
    """

    @property
    def type(self) -> TemplateType:
        if self.job:
            return TemplateType.JOB
        return TemplateType.SHELL if self.shell else TemplateType.PYTHON
