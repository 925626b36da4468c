"""The nouns of a decision, as plain data.

A *run* is one slot of one schedule carried out, over as many attempts as its retry policy allows; one attempt is one
Job. A *claim* is a run that the ledger admits and that has not been settled yet. The *ledger* is the durable memory of
a schedule: it lives in the schedule's claim Lease, changes only by compare-and-set, and is written before any Job is
created. Status is a projection of it, never the other way round (docs/adr/0004-ledger.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import orjson

from cronwright.api.retrying import Retry
from cronwright.api.schedule import TaskScheduleSpec
from cronwright.api.template import TaskTemplateSpec
from cronwright.timing import Timetable

Json = dict[str, Any]
Trigger = Literal["Schedule", "CatchUp", "Manual", "Backfill"]
Category = Literal["Transient", "Timeout", "Permanent", "Cancelled"]

MANAGED_BY = "cronwright"
PREFIX = "cronwright.dev/"
REQUEST_PREFIX = "request.cronwright.dev/"


class Key(NamedTuple):
    """Where an object lives."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something cannot run: a CamelCase reason for machines, one sentence for people."""

    reason: str
    message: str
    waiting: bool = False
    """Nothing is wrong yet: look again, at `until` or when an event comes; slots wait meanwhile."""
    until: float | None = None


@dataclass(slots=True)
class Schedule:
    """A TaskSchedule as the last event told it, compiled once a generation."""

    key: Key
    uid: str
    version: int
    generation: int
    created: int
    edited: int
    deleting: bool
    timing: str
    """Fingerprint of everything that decides *when*: a change of it is an edit that must not act on the past."""
    spec: TaskScheduleSpec | None
    timetable: Timetable | None
    problem: Problem | None
    told: str
    """Its status, as JSON: most schedules are idle, and as objects it would take four times the memory. Not the bytes
    that orjson gives, which keep their whole buffer."""
    requests: Mapping[str, str]
    owners: tuple[str, ...] = ()
    """UIDs of the templates that own this schedule (`templateRef.onDelete: Delete`)."""

    @property
    def status(self) -> Json:
        """Not to be changed: it is shared by those who ask."""
        return _parsed(self.told)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Json:
    """A look at a schedule asks for its status several times."""
    status: Json = orjson.loads(text)
    return status


@dataclass(slots=True)
class Template:
    """A TaskTemplate as the last event told it, and what the API server said of its Job."""

    key: Key
    uid: str
    version: int
    generation: int
    deleting: bool
    spec: TaskTemplateSpec | None
    problem: Problem | None
    checked: bool
    """Whether the API server has dry-run this generation's Job; until then its schedules wait."""
    status: Json


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that the ledger admits: it will be started, exactly once an attempt, or end with a reason."""

    slot: int
    attempt: int
    trigger: Trigger
    claimed: int
    token: str = ""
    """The request that asked for it; empty for the schedule's own slots."""
    parameters: Mapping[str, str] | None = None
    ending: str = ""
    """Why its Job is being taken away before it finished (`Replaced`, `Cancelled`); empty otherwise."""
    policy: str = ""
    """The request's own concurrency policy; empty for the schedule's."""
    since: int = field(default=0, compare=False)
    """The version of the Lease that its first write replaced, and so from before its Job: 0 if there was none."""


@dataclass(frozen=True, slots=True)
class Skip:
    slot: int
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Handled:
    """A request that was carried out or refused, so that it is not carried out again."""

    id: str
    kind: str
    accepted: bool
    message: str
    at: int
    runs: int = 0
    """Runs that were claimed for it. Those that neither succeeded nor failed were cancelled, or are not over."""
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that must survive a crash to know what has been run and what has not."""

    timing: str
    watermark: int
    """The latest slot that has been accounted for. It never moves back."""
    prepared: int | None = None
    """The next slot, claimed shortly before it is due: its Job may be created at once then, without a write first."""
    claims: tuple[Claim, ...] = ()
    runs: int = 0
    spent: int = 0
    """Claims that count against `maxRuns`: the schedule's own, not people's requests."""
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    consecutive_failures: int = 0
    missed: int = 0
    skips: Mapping[str, int] = field(default_factory=dict)
    last_skip: Skip | None = None
    last_slot: int | None = None
    last_success: int | None = None
    last_failure: int | None = None
    paused: int = 0
    """The generation at which the schedule paused itself after failures; 0 when it did not."""
    paused_at: int | None = None
    requests: tuple[Handled, ...] = ()
    """Requests that have been dealt with, newest last."""


Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


@dataclass(slots=True, kw_only=True)
class Run:
    """One attempt as its Job shows it."""

    name: str
    uid: str
    version: int
    slot: int
    attempt: int
    trigger: Trigger
    token: str
    phase: Phase
    created: int
    started: int | None = None
    finished: int | None = None
    deleting: bool = False
    gone: bool = False
    """The Job was deleted; kept until the ledger has settled the run."""
    refused: bool = False
    """The API server would not have the Job: there is none, only this record, until the ledger has settled it."""
    suspended: bool = False
    resumed: bool = False
    """It was suspended, and its queue has let it run: it began then, and not with its creation."""
    ready: bool = False
    leaving: bool = False
    """A pod of it is being deleted, though the Job is not."""
    glimpsed: str | None = None
    """Why a pod of it was being deleted, when that was looked at: it is gone by the time the Job has failed."""
    examined: int = 0
    """When its pods were last looked at because none had become ready; the run's creation counts as a look."""
    ttl: int | None = None
    pending_timeout: int | None = None
    retry: Retry | None = None
    """The retry policy the run started with: an edit does not touch a run in flight."""
    reason: str = ""
    message: str = ""
    outcome: Outcome | None = None

    @property
    def over(self) -> bool:
        """No pod of it can run any more."""
        return self.gone or self.finished is not None

    @property
    def standing(self) -> bool:
        """The Job exists, as evidence of how the run is going or how it ended."""
        return not self.gone and not self.refused


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended, once its pods have been looked at."""

    category: Category | None
    exit_code: int | None = None
    message: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """All that a decision may depend on."""

    schedule: Schedule
    template: Template | None
    ledger: Ledger | None
    recorded: bool
    """Whether the ledger is in the cluster as given: False when its Lease is missing."""
    runs: Mapping[str, Run]
    now: float
    template_active: int = 0
    """Runs of the template's other schedules that are active now."""
    own: bool = False
    """The ledger was last written by this replica, which leads since then: nobody else can have acted on it."""
    asked: frozenset[str] = frozenset()
    """Jobs that were asked for without an answer: they may be there even if nobody has seen them."""
    sought: frozenset[str] = frozenset()
    """Jobs that the ledger promises, were asked for, and are not there."""
    unreadable: bool = False
    """There is a Lease, but nobody knows what it says."""


@dataclass(frozen=True, slots=True)
class Start:
    """Create this attempt's Job. `again` names the Job of the attempt before, whose spec it repeats."""

    name: str
    claim: Claim
    again: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Take this Job away: `Delete` removes it, `End` makes it fail where it stands and keeps it as evidence,
    `EndIfPending` does so unless a pod of it has come to run after all, and `EndIfHopeless` if its pods can never
    be: refused by the API server, or waiting for an image that will not come."""

    name: str
    how: Literal["Delete", "End", "EndIfPending", "EndIfHopeless"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """An Event for people."""

    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What must happen, in this order: the ledger, then starts and stops, then status."""

    ledger: Ledger
    write: bool
    starts: tuple[Start, ...] = ()
    stops: tuple[Stop, ...] = ()
    inspect: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    """Runs without a Job whose end the ledger holds: once status tells of them, nobody needs them any more."""
    answered: tuple[str, ...] = ()
    """Requests that were carried out or refused: their annotations can be removed."""
    owner: str | None = None
    """The UID of the template that is to own the schedule from now on; empty for none; None for no change."""
    status: Json = field(default_factory=dict)
    wake: float | None = None
