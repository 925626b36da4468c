"""From objects of the API to the records of `model`: the only place that reads their shapes.

Compiling (pydantic, cron expressions) happens once a generation; a status echo of ours only moves `version`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from cronwright.api.common import format_time
from cronwright.api.retrying import Retry
from cronwright.api.schedule import TaskScheduleSpec
from cronwright.api.template import TaskTemplateSpec
from cronwright.core.model import PREFIX, REQUEST_PREFIX, Json, Key, Phase, Problem, Run, Schedule, Template, Trigger
from cronwright.timing import (
    Exclusion,
    Timetable,
    TimingError,
    When,
    compile_when,
    format_instant,
    parse_instant,
)


def key_of(obj: Json) -> Key:
    meta = obj["metadata"]
    return Key(meta["namespace"], meta["name"])


def schedule_from(obj: Json, known: Schedule | None = None) -> Schedule:
    """The record of a TaskSchedule; what `known` compiled is kept while the generation is the same."""
    meta = obj["metadata"]
    uid, generation = meta["uid"], meta.get("generation", 0)
    annotations = meta.get("annotations") or {}
    created = parse_instant(meta["creationTimestamp"])
    same = known is not None and known.uid == uid and known.generation == generation
    if same:
        assert known is not None
        spec, timetable, problem, timing, edited = (
            known.spec,
            known.timetable,
            known.problem,
            known.timing,
            known.edited,
        )
    else:
        spec, timetable, problem = _compile(obj, uid, created)
        timing = fingerprint(obj.get("spec") or {})
        edited = max(created, _edited(meta) or created)
    return Schedule(
        key=Key(meta["namespace"], meta["name"]),
        uid=uid,
        version=int(meta["resourceVersion"]),
        generation=generation,
        created=created,
        edited=edited,
        deleting="deletionTimestamp" in meta,
        timing=timing,
        spec=spec,
        timetable=timetable,
        problem=problem,
        told=orjson.dumps(obj.get("status") or {}).decode(),
        requests={
            name.removeprefix(REQUEST_PREFIX): text
            for name, text in annotations.items()
            if name.startswith(REQUEST_PREFIX)
        },
        owners=tuple(ref["uid"] for ref in meta.get("ownerReferences") or () if ref["kind"] == "TaskTemplate"),
    )


def _compile(obj: Json, uid: str, created: int) -> tuple[TaskScheduleSpec | None, Timetable | None, Problem | None]:
    try:
        spec = TaskScheduleSpec.model_validate(obj.get("spec") or {})
    except ValidationError as error:
        return None, None, Problem("InvalidSpec", sentence(error))
    try:
        return spec, timetable_of(spec, uid=uid, created=created), None
    except TimingError as error:
        return spec, None, Problem(error.reason, str(error))


def timetable_of(spec: TaskScheduleSpec, *, uid: str, created: int) -> Timetable:
    """The compiled *when* of a spec. Raises TimingError."""
    schedule = spec.schedule
    return compile_when(
        When(
            at=_seconds(schedule.at),
            interval=_length(schedule.interval),
            crons=(schedule.cron,) if schedule.cron is not None else tuple(schedule.crons),
            time_zone=schedule.time_zone,
            anchor=_seconds(schedule.anchor),
            jitter=_length(schedule.jitter) or 0,
            exclude=tuple(
                Exclusion(date=_text(e.date), from_=_text(e.from_), to=_text(e.to), cron=e.cron)
                for e in schedule.exclude
            ),
            on_gap=schedule.on_gap.value,
            on_overlap=schedule.on_overlap.value,
            starts_at=_seconds(spec.starts_at),
            expires_at=_seconds(spec.expires_at),
        ),
        uid=uid,
        created=created,
    )


def _seconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())


def _length(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())


def _text(day: date | None) -> str | None:
    if day is None:
        return None
    return format_time(day) if isinstance(day, datetime) else day.isoformat()


def fingerprint(spec: Json) -> str:
    """Equal for specs that have the same slots: the fields that decide *when*, suspension and budget included."""
    when = {k: spec.get(k) for k in ("schedule", "startsAt", "expiresAt", "suspend", "maxRuns")}
    return hashlib.sha256(orjson.dumps(when, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def _edited(meta: Mapping[str, Any]) -> int | None:
    """When the spec was last written, as the API server noted it: known even if nobody was there to see the edit."""
    times = [
        parse_instant(entry["time"])
        for entry in meta.get("managedFields") or ()
        if not entry.get("subresource") and "time" in entry and "f:spec" in (entry.get("fieldsV1") or {})
    ]
    return max(times, default=None)


def template_from(obj: Json, known: Template | None = None) -> Template:
    """The record of a TaskTemplate. A verdict in its status for this very generation spares the dry run."""
    meta = obj["metadata"]
    status = obj.get("status") or {}
    generation = meta.get("generation", 0)
    same = known is not None and known.uid == meta["uid"] and known.generation == generation
    if same and known is not None and known.checked:
        spec, problem, checked = known.spec, known.problem, True
    else:
        try:
            spec, problem = TaskTemplateSpec.model_validate(obj.get("spec") or {}), None
        except ValidationError as error:
            spec, problem = None, Problem("InvalidSpec", sentence(error))
        checked = spec is None
        if status.get("observedGeneration") == generation and problem is None:
            ready = condition(status, "Ready")
            if ready and ready["status"] in ("True", "False"):
                checked = True
                problem = None if ready["status"] == "True" else Problem(ready["reason"], ready.get("message", ""))
    return Template(
        key=Key(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        generation=generation,
        deleting="deletionTimestamp" in meta,
        spec=spec,
        problem=problem,
        checked=checked,
        status=status,
    )


def condition(status: Mapping[str, Any], kind: str) -> Json | None:
    return next((c for c in status.get("conditions") or () if c["type"] == kind), None)


def owner_of(obj: Json) -> str | None:
    """The UID of the TaskSchedule that controls this object."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller") and ref["kind"] == "TaskSchedule":
            return str(ref["uid"])
    return None


def run_from(job: Json, *, gone: bool = False) -> Run | None:
    """The record of a Job of ours; None for a Job that does not carry our marks."""
    meta = job["metadata"]
    annotations = meta.get("annotations") or {}
    slot = _number(annotations.get(PREFIX + "slot"))
    attempt = _number(annotations.get(PREFIX + "attempt"))
    trigger: Any = annotations.get(PREFIX + "trigger")
    if slot is None or attempt is None or attempt < 1 or trigger not in get_args(Trigger):
        return None
    status = job.get("status") or {}
    spec = job.get("spec") or {}
    phase, finished, reason, message = _ended(status)
    suspensions = [c["status"] for c in status.get("conditions") or () if c["type"] == "Suspended"]
    if phase is None:
        phase = "Running" if status.get("active") or status.get("startTime") else "Pending"
    return Run(
        name=meta["name"],
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        slot=slot,
        attempt=attempt,
        trigger=trigger,
        token=annotations.get(PREFIX + "request", ""),
        phase=phase,
        created=parse_instant(meta["creationTimestamp"]),
        started=parse_instant(status["startTime"]) if status.get("startTime") else None,
        finished=finished,
        deleting="deletionTimestamp" in meta,
        gone=gone,
        # Between its queue's word and the Job controller's next look it is neither, and has no start to count from.
        suspended=bool(spec.get("suspend")) or "True" in suspensions,
        resumed="False" in suspensions,
        ready=bool(status.get("ready")),
        leaving=bool(status.get("terminating")),
        pending_timeout=_number(annotations.get(PREFIX + "pending-timeout")),
        retry=_retry(annotations.get(PREFIX + "retry")),
        ttl=_number(annotations.get(PREFIX + "ttl")),
        reason=annotations.get(PREFIX + "ended", "") or reason,
        message=annotations.get(PREFIX + "ended-message", "") or message,
    )


def _number(text: str | None) -> int | None:
    """A number that we wrote on a Job; None where it is missing, or somebody has scribbled over it.

    One beyond the times that can be written down is not ours either: what follows from it could not be waited for.
    """
    try:
        number = int(text or "")
        format_instant(number)
    except (ValueError, OverflowError):
        return None
    return number


@lru_cache(maxsize=1024)
def _retry(text: str | None) -> Retry | None:
    """A retry policy that we wrote on a Job; None as for a number."""
    try:
        return Retry.model_validate_json(text or "")
    except ValidationError:
        return None


def _ended(status: Json) -> tuple[Phase | None, int | None, str, str]:
    for entry in status.get("conditions") or ():
        if entry["status"] == "True" and entry["type"] in ("Complete", "Failed"):
            when = status.get("completionTime") or entry.get("lastTransitionTime")
            phase: Phase = "Succeeded" if entry["type"] == "Complete" else "Failed"
            finished = parse_instant(when) if when else 0
            return phase, finished, entry.get("reason", ""), entry.get("message", "")
    return None, None, "", ""


def sentence(error: ValidationError) -> str:
    """The first problem of a spec, in one sentence that names the field and says what to write."""
    first = error.errors()[0]
    where = "spec"
    for part in first["loc"]:
        if isinstance(part, int):
            where += f"[{part}]"
        elif "[" not in part:  # else it is pydantic's name for one of several types that a field may have
            where += f".{part}"
    if field := first.get("ctx", {}).get("field"):
        where += f".{field}"
    if first["type"] == "extra_forbidden":
        return f"{where}: there is no such field; remove it or correct its name."
    return f"{where}: {first['msg'].removeprefix('Value error, ')}."
