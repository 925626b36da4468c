"""`cronwright next`: the next slots of an expression, an interval, a single time or a manifest."""

from __future__ import annotations

import json
import re
import time
from typing import Annotated, Any

import typer

from cronwright.api.schedule import TaskScheduleSpec
from cronwright.api.when import OnGap, OnOverlap
from cronwright.cli import input as given
from cronwright.cli.wording import Calendar, Output, span
from cronwright.timing import Timetable, TimingError, When, compile_when, format_instant, zone

_FLAGS = {"timeZone": "--time-zone", "interval": "--interval", "cron": "--cron"}


def next_slots(
    cron: Annotated[
        list[str] | None, typer.Option("--cron", metavar="E", help="A cron expression; give it again for several.")
    ] = None,
    interval: Annotated[str | None, typer.Option(metavar="D", help="A length of time, e.g. 90s or 1h30m.")] = None,
    at: Annotated[str | None, typer.Option(metavar="T", help="A single time, e.g. 2027-03-14T07:00:00Z.")] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--filename", metavar="FILE", help="A manifest with a TaskSchedule; - is stdin.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Which TaskSchedule, if the manifest has several.")] = None,
    time_zone: Annotated[str | None, typer.Option(metavar="Z", help="An IANA name; UTC unless said.")] = None,
    on_gap: Annotated[OnGap | None, typer.Option(help="What a time that the clocks jump over becomes.")] = None,
    on_overlap: Annotated[OnOverlap | None, typer.Option(help="How often a time that comes twice is run.")] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="T", help="Where an interval counts from; --after unless said.")
    ] = None,
    uid: Annotated[
        str | None,
        typer.Option(
            metavar="U",
            help="The schedule's UID, for H and jitter; unless said the manifest's, or the nil UUID (all zeros).",
        ),
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="T", help="Slots later than this; now unless said.")] = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many slots.")] = 5,
    output: Annotated[Output, typer.Option("-o", "--output", help="json is an array of UTC times.")] = Output.TEXT,
) -> None:
    """Show the next slots of a schedule.

    Give one of --cron, --interval, --at and -f. No cluster is asked.

    Slots are shown without their jitter, and "in 3 h" counts from --after.
    """
    sources = {"--cron": bool(cron), "--interval": interval is not None, "--at": at is not None, "-f": file is not None}
    if sum(sources.values()) != 1:
        said = " and ".join(flag for flag, used in sources.items() if used) or "none"
        given.refuse(f"Write exactly one of --cron, --interval, --at and -f; you wrote {said}.")
    since = int(time.time()) if after is None else given.moment("--after", after)
    if file is not None:
        own = {"--time-zone": time_zone, "--on-gap": on_gap, "--on-overlap": on_overlap, "--anchor": anchor}
        if clash := [flag for flag, value in own.items() if value is not None]:
            given.refuse(f"{clash[0]}: the manifest says this; leave the flag out, or write the schedule as flags.")
        spec, timetable = _of_manifest(file, name, uid, since)
        place, suspended = spec.schedule.time_zone, spec.suspend
        count = count if spec.max_runs is None else min(count, spec.max_runs)
    else:
        if anchor is not None and interval is None:
            given.refuse("--anchor: goes with --interval only; remove it.")
        place, suspended = time_zone or "UTC", False
        timetable = _of_flags(
            since,
            uid or given.ANY_UID,
            at=None if at is None else given.moment("--at", at),
            interval=None if interval is None else given.length("--interval", interval),
            crons=tuple(cron or ()),
            time_zone=place,
            anchor=None if anchor is None else given.moment("--anchor", anchor),
            on_gap=(on_gap or OnGap.RUN_AFTER).value,
            on_overlap=(on_overlap or OnOverlap.ONCE).value,
        )
    slots = _slots(timetable, since, count)
    if output is Output.JSON:
        typer.echo(json.dumps([format_instant(slot) for slot in slots]))
        return
    if not slots:
        typer.echo(f"There is no slot after {format_instant(since)}.")
    elif suspended:
        typer.echo("spec.suspend is true: until it is false, none of these is run.")
    calendar = Calendar(zone(place), slots)
    for slot in slots:
        typer.echo(f"{calendar.day_and_time(slot)}  in {span(slot - since)}")


def _slots(timetable: Timetable, after: int, count: int) -> list[int]:
    slots: list[int] = []
    while len(slots) < count and (slot := timetable.next(after)) is not None:
        slots.append(slot)
        after = slot
    return slots


def _of_manifest(file: str, name: str | None, uid: str | None, since: int) -> tuple[TaskScheduleSpec, Timetable]:
    obj = given.the_schedule(given.documents(file), file, name)
    schedule = given.schedule_of(obj, uid=uid, created=since)
    assert schedule.spec is not None
    assert schedule.timetable is not None
    return schedule.spec, schedule.timetable


def _of_flags(since: int, uid: str, **when: Any) -> Timetable:
    try:
        return compile_when(When(**when), uid=uid, created=since)
    except TimingError as error:
        field = error.field.removeprefix("spec.schedule.")
        if several := re.fullmatch(r"crons\[(\d+)]", field):
            given.refuse(f"--cron (number {int(several[1]) + 1}): {error.problem}")
        given.refuse(f"{_FLAGS.get(field, field)}: {error.problem}")
