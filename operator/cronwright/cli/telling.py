"""Schedules and runs as tables for people: "in 3 m", "2 h ago", and times in the schedule's own zone.

Pure: objects of the API and the time in, rows out. What a task has said (its result, its message) may hold anything, so
cells are one line of printable text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from cronwright.cli.access import Json
from cronwright.timing import Timetable, format_duration, parse_instant


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def zone_of(schedule: Json) -> tzinfo:
    """The zone that a schedule is written in; UTC where it names one that does not exist."""
    try:
        return ZoneInfo(schedule["spec"]["schedule"].get("timeZone") or "UTC")
    except (KeyError, ValueError, OSError):
        return UTC


def local(instant: int, zone: tzinfo) -> str:
    """`2026-11-18T06:00:00+01:00`: to be read here, and to be written into --from and --to."""
    return datetime.fromtimestamp(instant, zone).isoformat()


def about(seconds: int) -> str:
    """A length of time by its largest unit, rounded down: `45 s`, `3 m`, `2 h`, `5 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def ago(text: str | None, now: float) -> str:
    if not text:
        return ""
    return f"{about(max(0, int(now) - parse_instant(text)))} ago"


def ahead(text: str | None, now: float) -> str:
    """When something is due. What should have happened by now is overdue: nobody seems to be at work."""
    if not text:
        return ""
    distance = parse_instant(text) - int(now)
    if distance > 0:
        return f"in {about(distance)}"
    return "now" if distance > -10 else f"{about(-distance)} overdue"


def overview(schedules: Sequence[Json], now: float, *, namespaces: bool) -> Table:
    columns = ("NAME", "SCHEDULE", "TIME ZONE", "PHASE", "NEXT", "LAST", "RESULT", "ACTIVE", "FAILURES")
    rows = []
    for schedule in sorted(schedules, key=lambda s: (s["metadata"]["namespace"], s["metadata"]["name"])):
        meta, status = schedule["metadata"], schedule.get("status") or {}
        row = (
            meta["name"],
            status.get("schedule", ""),
            schedule["spec"]["schedule"].get("timeZone") or "UTC",
            status.get("phase", "Unknown"),
            ahead(status.get("nextRunTime"), now),
            ago(_last(status), now),
            status.get("lastResult", ""),
            _active(status),
            str(status.get("consecutiveFailures", 0)),
        )
        rows.append((meta["namespace"], *row) if namespaces else row)
    return Table(("NAMESPACE", *columns) if namespaces else columns, rows)


def _last(status: Json) -> str | None:
    """When something last ran, by the clock or by request."""
    times = [record.get("startedAt") or record["slot"] for record in status.get("recentRuns") or ()]
    return max((t for t in (*times, status.get("lastScheduleTime")) if t), key=parse_instant, default=None)


def _active(status: Json) -> str:
    waiting = [(status.get("queued", 0), "queued"), (len(status.get("retrying") or ()), "retrying")]
    return "".join([str(status.get("activeRuns", 0)), *(f", {count} {word}" for count, word in waiting if count)])


def history(schedule: Json, now: float) -> Table:
    """The recent attempts, newest first."""
    zone = zone_of(schedule)
    rows = [
        (
            record["name"],
            local(parse_instant(record["slot"]), zone),
            record["trigger"],
            str(record["attempt"]),
            record["phase"],
            _duration(record, now),
            str(record.get("exitCode", "")),
            record.get("category", ""),
            one_line(record.get("message") or record.get("result") or ""),
        )
        for record in (schedule.get("status") or {}).get("recentRuns") or ()
    ]
    return Table(
        ("RUN", "SLOT", "TRIGGER", "ATTEMPT", "PHASE", "DURATION", "EXIT", "CATEGORY", "MESSAGE OR RESULT"), rows
    )


def _duration(record: Json, now: float) -> str:
    if "startedAt" not in record:
        return ""
    end = parse_instant(record["finishedAt"]) if "finishedAt" in record else int(now)
    return format_duration(max(0, end - parse_instant(record["startedAt"])))


def one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def slots(found: Sequence[int], timetable: Timetable, zone: tzinfo, now: float) -> Table:
    """Slots with their distance; where jitter delays a start, also when it is due."""
    dues = [timetable.due(slot) for slot in found]
    jittered = dues != list(found)
    rows = []
    for slot, due in zip(found, dues, strict=True):
        distance = due - int(now)
        said = f"in {about(distance)}" if distance > 0 else f"{about(-distance)} ago"
        rows.append((local(slot, zone), *((local(due, zone),) if jittered else ()), said))
    return Table(("SLOT", *(("STARTS",) if jittered else ()), "WHEN"), rows)
