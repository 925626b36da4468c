"""How a run fails and when it is tried again: a template has the default, a schedule the override."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from cronwright.api.common import ApiModel, Duration, Rule, exactly_one_of


class Category(StrEnum):
    """Why a run failed, as far as retrying is concerned."""

    TRANSIENT = "Transient"
    TIMEOUT = "Timeout"
    PERMANENT = "Permanent"
    CANCELLED = "Cancelled"


class Backoff(StrEnum):
    EXPONENTIAL = "Exponential"
    LINEAR = "Linear"
    NONE = "None"


# A cancelled run was ended on purpose: trying it again would undo what somebody asked for.
RetriedCategory = Literal[Category.TRANSIENT, Category.TIMEOUT, Category.PERMANENT]


class Retry(ApiModel):
    """When a failed run is tried again, and how long to wait before that."""

    max_attempts: int = Field(default=3, ge=1, le=20)
    """How often a slot is attempted in all, the first time included: 3 is one run and at most two retries."""

    backoff: Backoff = Backoff.EXPONENTIAL
    """
    How the delay grows. Exponential: initialDelay, then 2x, 4x, 8x of it; Linear: 1x, 2x, 3x; None: always
    initialDelay. Never more than maxDelay.
    """

    initial_delay: Duration = timedelta(seconds=60)
    """The delay before the first retry, counted from the end of the failed attempt, e.g. 30s."""

    max_delay: Duration = timedelta(hours=1)
    """The longest delay between two attempts, e.g. 1h."""

    retry_on: tuple[RetriedCategory, ...] = Field(
        default=(Category.TRANSIENT, Category.TIMEOUT),
        min_length=1,
        max_length=3,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    """Which categories of failure are tried again. Any other failure is final; a cancelled run always is."""


_ONE_CRITERION = "write exactly one of exitCodes (e.g. [3, 4]) or reasons (e.g. [OOMKilled])"


class FailureRule(ApiModel):
    """Puts a failure into a category by its exit code or its reason."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one_of("exit_codes", "reasons", message=_ONE_CRITERION),)

    exit_codes: tuple[Annotated[int, Field(ge=1, le=255)], ...] = Field(
        default=(), min_length=1, max_length=50, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Exit codes of the task's container that this rule is about, e.g. [3, 4]."""

    reasons: tuple[Annotated[str, Field(min_length=1, max_length=128)], ...] = Field(
        default=(), min_length=1, max_length=50, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """
    Kubernetes' own words for why a Job, pod or container failed that this rule is about, e.g. [OOMKilled,
    Evicted, DeadlineExceeded, ImagePullBackOff].
    """

    category: Category
    """
    What such a failure counts as. Transient and Timeout are tried again by default, Permanent is not,
    Cancelled never is.
    """
