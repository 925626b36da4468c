"""TaskSchedule: when to run a template, and what to do about slots that were missed, overlap, or fail."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from cronwright.api.common import (
    MAX_PARAMETER_VALUE,
    MAX_PARAMETERS,
    PARAMETER_NAME,
    ApiModel,
    Duration,
    PositiveDuration,
    Rule,
    Time,
)
from cronwright.api.retrying import FailureRule, Retry
from cronwright.api.when import Schedule

_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"


class CatchUpPolicy(StrEnum):
    SKIP = "Skip"
    RUN_ONCE = "RunOnce"
    RUN_ALL = "RunAll"


class ConcurrencyPolicy(StrEnum):
    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"
    QUEUE = "Queue"


class OnDelete(StrEnum):
    """What becomes of a schedule when its template is deleted."""

    KEEP = "Keep"
    DELETE = "Delete"


class TemplateRef(ApiModel):
    """The TaskTemplate to run, in the same namespace."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            message="write the name of a TaskTemplate: lower case letters, digits, - and .",
            cel=f"self.name.matches('{_NAME}')",
            holds=lambda ref: bool(re.fullmatch(_NAME, ref.name)),
            field="name",
        ),
    )

    name: str = Field(min_length=1, max_length=253)
    """The name of the TaskTemplate, in the schedule's namespace."""

    on_delete: OnDelete = OnDelete.KEEP
    """
    What happens to the schedule when the template is deleted: Keep leaves it, not ready, until the template
    is back; Delete deletes it too.
    """


class CatchUp(ApiModel):
    """What to do about slots that passed while the operator was away."""

    policy: CatchUpPolicy = CatchUpPolicy.RUN_ONCE
    """Skip runs none of them, RunOnce the latest one, RunAll all of them, oldest first, at most maxRuns."""

    max_runs: int = Field(default=5, ge=1, le=100)
    """The most runs that RunAll makes up for at once; the latest ones are taken."""

    window: PositiveDuration | None = None
    """
    Slots older than this are never made up for, e.g. 6h. A slot exactly this old still is. No limit unless
    said.
    """

    tolerance: Duration = timedelta(minutes=1)
    """The latest slot is late, not missed, when it is no older than this, and runs under every policy."""


class History(ApiModel):
    """How many finished Jobs are kept. The last ten run records stay in status regardless."""

    successful: int = Field(default=3, ge=0, le=100)
    """How many Jobs that succeeded are kept."""

    failed: int = Field(default=3, ge=0, le=100)
    """How many Jobs that failed are kept."""


def _parameter_names_are_names(schedule: TaskScheduleSpec) -> bool:
    return all(re.fullmatch(PARAMETER_NAME, name) for name in schedule.parameters)


def _runs_in_its_window(schedule: TaskScheduleSpec) -> bool:
    at = schedule.schedule.at
    if at is None:
        return True
    return not ((schedule.starts_at and at < schedule.starts_at) or (schedule.expires_at and at > schedule.expires_at))


class TaskScheduleSpec(ApiModel):
    """Which template to run, when, and what to do about missed slots, overlapping runs and failures."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            message="write an expiresAt that is after startsAt",
            cel="!has(self.startsAt) || !has(self.expiresAt) || self.startsAt < self.expiresAt",
            holds=lambda s: not (s.starts_at and s.expires_at) or s.starts_at < s.expires_at,
            field="expiresAt",
        ),
        Rule(
            message="schedule.at would never run: write a time between startsAt and expiresAt",
            cel=(
                "!has(self.schedule.at)"
                " || (!has(self.startsAt) || self.schedule.at >= self.startsAt)"
                " && (!has(self.expiresAt) || self.schedule.at <= self.expiresAt)"
            ),
            holds=_runs_in_its_window,
            field="schedule.at",
        ),
        Rule(
            message="write parameter names of letters, digits and underscores, as the template does",
            cel=f"!has(self.parameters) || self.parameters.all(name, name.matches('{PARAMETER_NAME}'))",
            holds=_parameter_names_are_names,
            field="parameters",
        ),
    )

    template_ref: TemplateRef
    """The TaskTemplate to run, e.g. {name: backup}."""

    parameters: dict[str, Annotated[str, Field(max_length=MAX_PARAMETER_VALUE)]] = Field(
        default={}, max_length=MAX_PARAMETERS
    )
    """Values for the template's parameters, e.g. {region: eu}. All of them are strings."""

    schedule: Schedule
    """
    When to run: exactly one of at, interval, cron or crons, e.g. {cron: "0 6 * * *", timeZone:
    Europe/Berlin}.
    """

    starts_at: Time | None = None
    """No slot before this time runs, e.g. 2026-09-01T00:00:00Z."""

    expires_at: Time | None = None
    """No slot after this time runs, and the schedule's phase becomes Expired, e.g. 2026-12-31T23:59:59Z."""

    max_runs: int | None = Field(default=None, ge=1)
    """
    After this many slots have been run the schedule's phase becomes Completed. Retries, manual runs and
    skipped slots do not count.
    """

    suspend: bool = False
    """
    Start no new runs while true. Slots that pass meanwhile are not missed, and runs that are active are not
    touched.
    """

    catch_up: CatchUp = CatchUp()
    """What to do about slots that passed while the operator was away, e.g. {policy: RunAll, window: 1d}."""

    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    """
    What to do when a slot is due and an earlier run is still active. Allow: run both. Forbid: skip the slot,
    and count it. Replace: end the old run, then start the new one. Queue: run it after the old one.
    """

    queue_limit: int = Field(default=10, ge=1, le=1000)
    """
    How many slots may wait: behind an earlier run with concurrencyPolicy Queue, or for a place where the template has
    a limit (maxConcurrentRuns). One more is skipped, and counted.
    """

    retry: Retry | None = None
    """
    When a failed run is tried again; replaces the template's as a whole. Without one here or in the template
    a failed run is not retried; with an empty one, {}, it is attempted three times.
    """

    failure_rules: tuple[FailureRule, ...] = Field(
        default=(), max_length=50, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """
    Which failures are worth a retry, asked in order before the built-in rules, e.g. [{exitCodes: [3],
    category: Permanent}].
    """

    timeout: PositiveDuration | None = None
    """
    How long a run may take before it is ended and fails as Timeout, e.g. 30m. The template's unless said.
    """

    pending_timeout: PositiveDuration | None = None
    """
    How long a run's pod may wait to be scheduled or for its image before the run fails as Timeout, e.g. 10m.
    The template's unless said.
    """

    history: History = History()
    """How many finished Jobs are kept, e.g. {successful: 1, failed: 5}."""

    pause_after_failures: int | None = Field(default=None, ge=1, le=1000)
    """
    After this many failed runs in a row the schedule pauses itself, in its status. Any change of its spec, or
    kubectl task resume, starts it again.
    """
