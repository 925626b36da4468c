"""The two kinds, `TaskTemplate` and `TaskSchedule`, as pydantic models.

These models are the one source of truth: the CRDs in `crds/` are generated from them (`cronwright.api.crds`),
the operator parses with them, and the offline tools judge a manifest by the same rules as the API server.
"""

from cronwright.api.retrying import Backoff, Category, FailureRule, Retry
from cronwright.api.schedule import (
    CatchUp,
    CatchUpPolicy,
    ConcurrencyPolicy,
    History,
    OnDelete,
    TaskScheduleSpec,
    TemplateRef,
)
from cronwright.api.status import (
    ActiveRun,
    Condition,
    HandledRequest,
    Pause,
    Phase,
    RequestState,
    RetryingRun,
    RunPhase,
    RunRecord,
    Skip,
    TaskScheduleStatus,
    TaskTemplateStatus,
    Trigger,
)
from cronwright.api.template import (
    JobMetadata,
    JobTemplate,
    Parameter,
    PodOverlay,
    PythonTask,
    ShellTask,
    TaskTemplateSpec,
    TemplateType,
)
from cronwright.api.when import Exclude, OnGap, OnOverlap, Schedule

GROUP = "cronwright.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "ActiveRun",
    "Backoff",
    "CatchUp",
    "CatchUpPolicy",
    "Category",
    "ConcurrencyPolicy",
    "Condition",
    "Exclude",
    "FailureRule",
    "HandledRequest",
    "History",
    "JobMetadata",
    "JobTemplate",
    "OnDelete",
    "OnGap",
    "OnOverlap",
    "Parameter",
    "Pause",
    "Phase",
    "PodOverlay",
    "PythonTask",
    "RequestState",
    "Retry",
    "RetryingRun",
    "RunPhase",
    "RunRecord",
    "Schedule",
    "ShellTask",
    "Skip",
    "TaskScheduleSpec",
    "TaskScheduleStatus",
    "TaskTemplateSpec",
    "TaskTemplateStatus",
    "TemplateRef",
    "TemplateType",
    "Trigger",
]
