"""`cronwright simulate`: what a schedule would do, slot by slot, outages and failures included."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from cronwright.cli import input as given
from cronwright.cli.wording import Calendar, Output, span
from cronwright.core.forecast import Assumptions, Attempt, Foreseen, forecast
from cronwright.core.model import Key, Schedule, Template
from cronwright.core.status import summary
from cronwright.timing import format_instant, zone

_SHOWN_OF_A_ROW = 3


def simulate(
    file: Annotated[
        str, typer.Option("-f", "--filename", metavar="FILE", help="A manifest with a TaskSchedule; - is stdin.")
    ],
    begin: Annotated[
        str, typer.Option("--from", metavar="T", help="When the schedule is created, unless its manifest says earlier.")
    ],
    end: Annotated[str, typer.Option("--to", metavar="T", help="The last moment whose slots are shown.")],
    down: Annotated[
        list[str] | None,
        typer.Option(metavar="T/T", help="Nobody decides from the first time to the second; may be given again."),
    ] = None,
    run_time: Annotated[str, typer.Option(metavar="D", help="How long each attempt runs, e.g. 10m.")] = "1s",
    fail_attempts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N",
            help="Attempts of each slot that fail, as Transient: 1 is the first, 1,2 the first two, all is every one.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Which TaskSchedule, if the manifest has several.")] = None,
    uid: Annotated[
        str | None,
        typer.Option(
            metavar="U",
            help="The schedule's UID, for H and jitter; unless said the manifest's, or the nil UUID (all zeros).",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option("-o", "--output", help="json is an array of {slot, decision, reason, at}.")
    ] = Output.TEXT,
) -> None:
    """Show what a schedule would do with each slot after --from, up to --to.

    Decisions are the operator's own. Each slot is a Run or a Skip.

    A Run's reason is its trigger: Schedule, or CatchUp after an outage.

    "at" is when a run starts, or when it was decided that there is none.

    The manifest's TaskTemplate, if it is there, has its say, too.
    """
    since, until = given.moment("--from", begin), given.moment("--to", end)
    if since >= until:
        given.refuse(f'--to: "{end}" does not come after --from ("{begin}"); write a later time.')
    assumptions = Assumptions(
        begin=since,
        end=until,
        outages=tuple(_outage(text) for text in down or ()),
        run_time=given.length("--run-time", run_time),
        failing=frozenset(number for text in fail_attempts or () for number in _numbers(text)),
    )
    objects = given.documents(file)
    schedule = given.schedule_of(given.the_schedule(objects, file, name), uid=uid, created=since)
    assert schedule.spec is not None
    spec = given.template_spec(objects, schedule.spec)
    key = Key(schedule.key.namespace, schedule.spec.template_ref.name)
    template = Template(key, "template", 1, 1, deleting=False, spec=spec, problem=None, checked=True, status={})
    found = forecast(schedule, template, assumptions)
    if output is Output.JSON:
        lines = ",\n".join(f" {json.dumps(_entry(slot))}" for slot in found.slots)
        typer.echo(f"[\n{lines}\n]" if lines else "[]")
        return
    for line in _timeline(schedule, assumptions, found.slots):
        typer.echo(line)


def _outage(text: str) -> tuple[int, int]:
    begin, slash, end = text.partition("/")
    if not slash:
        given.refuse(f'--down: "{text}" is not two times; write FROM/TO, for example {_EXAMPLE}.')
    outage = given.moment("--down", begin), given.moment("--down", end)
    if outage[0] >= outage[1]:
        given.refuse(f'--down: "{end}" does not come after "{begin}"; write the earlier time first.')
    return outage


_EXAMPLE = "2027-03-14T02:00:00Z/2027-03-14T05:30:00Z"
_ALL_ATTEMPTS = range(1, 21)  # no retry policy may have more


def _numbers(text: str) -> Iterable[int]:
    if text == "all":
        return _ALL_ATTEMPTS
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isdecimal() and int(number) >= 1 for number in numbers):
        given.refuse(f'--fail-attempts: "{text}" is not understood; write numbers from 1, such as 1,2, or all.')
    return [int(number) for number in numbers]


def _entry(slot: Foreseen) -> dict[str, str]:
    return {
        "slot": format_instant(slot.slot),
        "decision": slot.decision,
        "reason": slot.reason,
        "at": format_instant(slot.at),
    }


def _timeline(schedule: Schedule, assumed: Assumptions, slots: list[Foreseen]) -> Iterator[str]:
    """The slots in their order, with what happened to the clocks and to the operator between them."""
    assert schedule.spec is not None
    place = zone(schedule.spec.schedule.time_zone)
    calendar = Calendar(place, (t for s in slots for t in (s.slot, s.at, *(a.started for a in s.attempts))))
    yield f"{schedule.key.name}: {summary(schedule.spec)}, {place.key}"
    marks = [(c.at, f"-- {calendar.change(*c)}") for c in place.changes(assumed.begin, assumed.end)]
    for begin, end in assumed.outages:
        marks.append((begin, f"-- nobody decides until {calendar.day_and_time(end)}, for {span(end - begin)}"))
    lines = sorted([*((at, 0, mark, None) for at, mark in marks), *((s.slot, 1, "", s) for s in slots)], key=_order)
    for alike, group in itertools.groupby(lines, key=_likeness):
        row = list(group)
        hidden = len(row) - 2 if alike and len(row) > _SHOWN_OF_A_ROW else 0
        for n, (at, _, mark, slot) in enumerate(row):
            if hidden and n == 1:
                yield f"{'':{len(calendar.day_and_time(at))}}  ... {hidden:,} more, {alike} ..."
            if hidden and 0 < n < len(row) - 1:
                continue
            yield f"{calendar.day_and_time(at)}  {mark if slot is None else _said(slot, calendar)}"
    yield from _totals(slots)


_Line = tuple[int, int, str, Foreseen | None]


def _order(line: _Line) -> tuple[int, int]:
    return line[0], line[1]


def _likeness(line: _Line) -> str:
    """Slots that are skipped alike, one after the other, are shown as the first and the last of them."""
    slot = line[3]
    return "" if slot is None or slot.decision == "Run" else f"{slot.decision} {slot.reason}"


def _said(slot: Foreseen, calendar: Calendar) -> str:
    words = [f"{slot.decision:<4}  {slot.reason}"]
    if slot.at > slot.slot:
        words.append(f"{'started' if slot.decision == 'Run' else 'decided'} {span(slot.at - slot.slot)} later")
    if len(slot.attempts) == 1:
        words.append(_ended(slot.attempts[0]))
    elif slot.attempts:
        words += [f"attempt {a.number} at {calendar.time(a.started)} {_ended(a)}" for a in slot.attempts]
    return ", ".join(words)


def _ended(attempt: Attempt) -> str:
    how = "succeeded" if attempt.category is None else f"failed ({attempt.category})"
    return f"{how} after {span(attempt.finished - attempt.started)}"


def _totals(slots: list[Foreseen]) -> Iterator[str]:
    skips = Counter(slot.reason for slot in slots if slot.decision == "Skip")
    runs = len(slots) - skips.total()
    why = f" ({', '.join(f'{reason} {count:,}' for reason, count in skips.most_common())})" if skips else ""
    yield f"{len(slots):,} slots: {runs:,} run, {skips.total():,} skipped{why}"
