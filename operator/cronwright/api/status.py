"""Status of the two kinds: all the operator has to say, for `kubectl get`, for kstatus and for people.

Every list and text here is bounded: a schedule that ran for years is no larger than one that ran for a day.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from cronwright.api.common import MAX_PARAMETERS, ApiModel, Time
from cronwright.api.retrying import Category
from cronwright.api.schedule import ConcurrencyPolicy
from cronwright.api.template import TemplateType

MAX_UPCOMING = 5
MAX_RECENT_RUNS = 10
MAX_REQUESTS = 20
MAX_SCHEDULE_NAMES = 100
MAX_ACTIVE = 100
MAX_WAITING_BYTES = 16384
MAX_RESULT = 4096
MAX_MESSAGE = 1024

_BY_TYPE: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_ATOMIC: JsonDict = {"x-kubernetes-list-type": "atomic"}

Count = Annotated[int, Field(ge=0)]
Message = Annotated[str, Field(max_length=MAX_MESSAGE)]
JobName = Annotated[str, Field(max_length=63)]


class Phase(StrEnum):
    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    EXPIRED = "Expired"
    INVALID = "Invalid"


class Trigger(StrEnum):
    """Why a run was started."""

    SCHEDULE = "Schedule"
    CATCH_UP = "CatchUp"
    MANUAL = "Manual"
    BACKFILL = "Backfill"


class RunPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class RequestState(StrEnum):
    ACCEPTED = "Accepted"
    DONE = "Done"
    REFUSED = "Refused"


class Condition(ApiModel):
    """One aspect of the object's state, in the form all of Kubernetes uses."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Which aspect: Ready, or Stalled."""

    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""

    observed_generation: int | None = None
    """The generation of the spec that this is about."""

    last_transition_time: Time
    """When status last changed."""

    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Why, in one word for programs, e.g. InvalidCron."""

    message: Annotated[str, Field(max_length=32768)] = ""
    """Why, in a sentence for people."""


class ActiveRun(ApiModel):
    """A run that has been started and has not ended."""

    name: JobName
    """The name of its Job."""

    slot: Time
    """The time it was due."""

    trigger: Trigger
    """Why it was started: Schedule, CatchUp, Manual or Backfill."""

    attempt: int = Field(ge=1)
    """Which attempt at the slot this is, from 1."""

    started_at: Time | None = None
    """When its Job started; absent while it is pending."""


class WaitingRun(ApiModel):
    """A run that will be started, and has not been yet."""

    name: JobName
    """The name that its Job will have."""

    slot: Time
    """The time it was due."""

    trigger: Trigger
    """Why it will be started: Schedule, CatchUp, Manual or Backfill."""

    attempt: int = Field(default=1, ge=1)
    """Which attempt at the slot this will be, from 1."""

    request: Annotated[str, Field(max_length=63)] | None = None
    """The request that asked for it; absent for the schedule's own slots."""

    parameters: dict[str, str] = Field(default={}, max_length=MAX_PARAMETERS)
    """The parameters that the request gave."""

    concurrency_policy: ConcurrencyPolicy | None = None
    """The request's own concurrency policy, if it gave one."""


class RetryingRun(ApiModel):
    """A run that failed and will be tried again."""

    name: JobName
    """The name of the Job that the next attempt will have."""

    slot: Time
    """The time it was due."""

    trigger: Trigger = Trigger.SCHEDULE
    """Why it was first started."""

    attempt: int = Field(ge=2)
    """Which attempt the next one will be."""

    at: Time
    """When it will be tried again."""

    category: Category
    """What the last failure counted as."""


class RunRecord(ApiModel):
    """What became of one attempt."""

    name: JobName
    """The name of its Job, which may be gone."""

    slot: Time
    """The time it was due."""

    trigger: Trigger
    """Why it was started: Schedule, CatchUp, Manual or Backfill."""

    attempt: int = Field(ge=1)
    """Which attempt at the slot it was, from 1."""

    phase: RunPhase
    """Pending, Running, Succeeded or Failed."""

    started_at: Time | None = None
    """When its Job started."""

    finished_at: Time | None = None
    """When it ended."""

    category: Category | None = None
    """What its failure counted as: Transient, Timeout, Permanent or Cancelled."""

    exit_code: int | None = None
    """The exit code of the task's container, where it is known."""

    message: Message | None = None
    """Why it failed, in a sentence."""

    result: Annotated[str, Field(max_length=MAX_RESULT)] | None = None
    """What the task returned, where the template captures it."""


class Skip(ApiModel):
    """A slot that did not run."""

    slot: Time
    """The time it was due."""

    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """Why, in one word, e.g. Forbidden, CatchUpSkipped, TooLate, Excluded, QueueFull."""

    message: Message | None = None
    """Why, in a sentence."""


class HandledRequest(ApiModel):
    """A request (run now, backfill) that was carried out or refused."""

    id: Annotated[str, Field(min_length=1, max_length=63)]
    """The id in the annotation request.cronwright.dev/<id>."""

    kind: Annotated[str, Field(max_length=32)]
    """What was asked for, e.g. RunNow or Backfill."""

    state: RequestState
    """Accepted, Done or Refused."""

    message: Message | None = None
    """What came of it, or why it was refused."""

    at: Time
    """When this was decided."""

    runs: Count = 0
    """How many runs were claimed for it. When it is Done, those not counted below were cancelled."""

    succeeded: Count = 0
    """How many of its runs succeeded, at whichever attempt."""

    failed: Count = 0
    """How many of its runs failed, after all their attempts."""


class Pause(ApiModel):
    """Why the schedule has paused itself."""

    since: Time
    """When it paused."""

    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """Why, in one word, e.g. TooManyFailures."""

    message: Message | None = None
    """Why, in a sentence, and what starts it again."""

    generation: int
    """The generation of the spec that was paused. A newer one runs again."""


class TaskScheduleStatus(ApiModel):
    """What the schedule has done, is doing and will do next. Written by the operator only."""

    observed_generation: int | None = None
    """The generation of the spec that this status is about."""

    conditions: tuple[Condition, ...] = Field(default=(), max_length=16, json_schema_extra=_BY_TYPE)
    """
    Ready says whether the schedule will run; Stalled is there when it cannot until somebody changes
    something.
    """

    phase: Phase | None = None
    """
    Active, Suspended (spec.suspend), Paused (by pauseAfterFailures), Completed (nothing left to run), Expired
    (past expiresAt) or Invalid (see the Ready condition).
    """

    schedule: Annotated[str, Field(max_length=256)] | None = None
    """The schedule in a few words, e.g. "*/5 * * * *", "every 30s" or "at 2030-12-24T18:00:00Z"."""

    next_run_time: Time | None = None
    """When the next slot is due; absent when there is none."""

    upcoming: tuple[Time, ...] = Field(default=(), max_length=MAX_UPCOMING, json_schema_extra=_ATOMIC)
    """The next five slots."""

    last_schedule_time: Time | None = None
    """The latest slot that was run."""

    last_success_time: Time | None = None
    """When a run last succeeded."""

    last_failure_time: Time | None = None
    """When a run last failed."""

    last_result: RunPhase | None = None
    """How the latest attempt that ended did: Succeeded or Failed."""

    active: tuple[ActiveRun, ...] = Field(default=(), max_length=MAX_ACTIVE, json_schema_extra=_ATOMIC)
    """The runs that have been started and have not ended; the first hundred of them."""

    active_runs: Count = 0
    """How many runs are active."""

    queued: Count = 0
    """How many slots wait for an earlier run to end."""

    waiting: tuple[WaitingRun, ...] = Field(default=(), max_length=MAX_ACTIVE, json_schema_extra=_ATOMIC)
    """
    The runs that wait to start; the first hundred of them, fewer if their parameters are long. `queued` counts all.
    """

    retrying: tuple[RetryingRun, ...] = Field(default=(), max_length=MAX_ACTIVE, json_schema_extra=_ATOMIC)
    """The runs that failed and will be tried again, and when."""

    runs: Count = 0
    """How many slots have been run in all; retries of a slot are not counted again."""

    spent: Count | None = None
    """How many of them count against `maxRuns`, where that is another number: requests (run now, backfill) do not."""

    succeeded: Count = 0
    """How many runs succeeded, at whichever attempt."""

    failed: Count = 0
    """How many runs failed, after all their attempts."""

    cancelled: Count = 0
    """How many runs were ended on purpose: replaced by a newer one, or deleted by somebody."""

    consecutive_failures: Count = 0
    """How many runs have failed in a row since the last success."""

    missed: Count = 0
    """How many slots passed while the operator was away and were not made up for."""

    skipped: Count = 0
    """How many slots did not run, for whichever reason."""

    skips: dict[str, Count] = Field(default={}, max_length=32)
    """How many slots did not run, by reason, e.g. {Forbidden: 3, TooLate: 1}."""

    last_skip: Skip | None = None
    """The latest slot that did not run, and why."""

    paused: Pause | None = None
    """Why and since when the schedule has paused itself; absent when it has not."""

    recent_runs: tuple[RunRecord, ...] = Field(default=(), max_length=MAX_RECENT_RUNS, json_schema_extra=_ATOMIC)
    """The last ten attempts, newest first. They stay when their Jobs are gone."""

    requests: tuple[HandledRequest, ...] = Field(default=(), max_length=MAX_REQUESTS, json_schema_extra=_ATOMIC)
    """The last twenty requests (run now, backfill) and what came of them."""


class TaskTemplateStatus(ApiModel):
    """Whether the template can run, and who uses it. Written by the operator only."""

    observed_generation: int | None = None
    """The generation of the spec that this status is about."""

    conditions: tuple[Condition, ...] = Field(default=(), max_length=16, json_schema_extra=_BY_TYPE)
    """
    Ready says whether the API server would accept a Job of this template; Stalled is there when it would not.
    """

    type: TemplateType | None = None
    """How the template says what to run: job, shell or python."""

    schedules: Count = 0
    """How many schedules use this template."""

    schedule_names: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), max_length=MAX_SCHEDULE_NAMES, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """The names of the schedules that use this template; the first hundred of them."""

    active_runs: Count = 0
    """How many runs of this template are active."""
