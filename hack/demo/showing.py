"""Two ways to watch: a picture that is drawn anew each second, and for logs one line for each thing that happens."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from hack.demo.reading import Event, Run, Schedule, Snapshot
from hack.demo.scenes import SCENES
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

_COLOURS = {"Complete": "green", "Succeeded": "green", "Failed": "red", "Running": "cyan", "Active": "green"}
_PLAIN_WIDTH = 120


class View(Protocol):
    def show(self, snapshot: Snapshot, shown: dict[str, str], elapsed: float) -> None: ...


def console_for(out: Console) -> Console:
    """Where no terminal says how wide it is, wide enough for every table."""
    return out if out.is_terminal else Console(width=_PLAIN_WIDTH, soft_wrap=True)


@contextmanager
def view_on(console: Console, since: datetime) -> Iterator[View]:
    if console.is_terminal and not console.is_dumb_terminal and os.environ.get("CI", "") in ("", "false"):
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            yield _Picture(live)
    else:
        yield _Lines(console, since)


class _Picture:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, snapshot: Snapshot, shown: dict[str, str], elapsed: float) -> None:
        height = self._live.console.height
        self._live.update(picture(snapshot, shown, elapsed, height=height), refresh=True)


class _Lines:
    """Each run when it starts and when it ends, each Event, each scene; never the same thing twice."""

    def __init__(self, console: Console, since: datetime) -> None:
        self._console = console
        self._since = since
        self._told: set[tuple[str, ...]] = set()

    def show(self, snapshot: Snapshot, shown: dict[str, str], elapsed: float) -> None:
        news = [(run.created, run.name, run.state, _run_line(run)) for run in snapshot.runs if run.slot >= self._since]
        news += [(e.when, e.uid, "", _event_line(e)) for e in snapshot.events if e.when >= self._since]
        for _, name, state, line in sorted(news):
            self._tell(elapsed, line, name, state)
        for title in shown:
            self._tell(elapsed, f"✓ {title}", title, "shown")

    def _tell(self, elapsed: float, line: str, *identity: str) -> None:
        if identity not in self._told:
            self._told.add(identity)
            self._console.print(f"{elapsed:4.0f} s  {line}", markup=False, highlight=False)


def _run_line(run: Run) -> str:
    took = f" after {(run.finished - run.created).seconds} s" if run.finished else ""
    return f"{run.schedule:16} {run.name:32} slot {run.slot:%H:%M:%S}  {lateness(run):10} {run.state}{took}"


def _event_line(event: Event) -> str:
    return f"{event.about:16} Event {event.reason}: {event.message}"


def lateness(run: Run) -> str:
    """From the slot to the Job's creation, in the whole seconds that Kubernetes notes."""
    late = int((run.created - run.slot).total_seconds())
    return f"{late} s late" if run.attempt == 1 else f"attempt {run.attempt}"


def picture(snapshot: Snapshot, shown: dict[str, str], elapsed: float, *, height: int | None = None) -> Group:
    """Schedules, runs and Events; with a height, as many of each as fit."""
    room = None if height is None else max(12, height - 14)
    schedules, runs, events = (None, 12, 8) if room is None else (room // 2, room // 3, room // 6)
    return Group(
        _progress(shown, elapsed),
        "",
        *_schedules(snapshot, schedules),
        "",
        _runs(snapshot.runs[:runs]),
        "",
        _events(snapshot.events[: max(3, events)]),
    )


def _progress(shown: dict[str, str], elapsed: float) -> Text:
    text = Text(f"{elapsed:3.0f} s   ")
    for scene in SCENES:
        seen = scene.title in shown
        text.append(f"{'✓' if seen else '·'} {scene.title}   ", "green" if seen else "dim")
    return text.append("(times are UTC)", "dim")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


def _schedules(snapshot: Snapshot, limit: int | None) -> list[RenderableType]:
    table = _table("SCHEDULE", "WHEN", "PHASE", "LAST", "NEXT", "ACTIVE", "RESULT", "")
    now = datetime.now(UTC)
    staged = [scene.schedule for scene in SCENES]
    ordered = sorted(snapshot.schedules.values(), key=lambda s: (*_rank(s, staged), s.name))
    for s in ordered[:limit]:
        table.add_row(
            escape(s.name), escape(s.when), _coloured(s.phase), _clock(s.last), _countdown(s.next, now),
            str(s.active), _coloured(s.result), _remark(s, now),
        )  # fmt: skip
    left = len(ordered) - len(ordered[:limit])
    return [table, Text(f"and {left} more", "dim")] if left else [table]


def _rank(schedule: Schedule, staged: list[str]) -> tuple[int, float]:
    """The demo's own first, in their order; then whoever is next."""
    if schedule.name in staged:
        return staged.index(schedule.name), 0.0
    return len(staged), schedule.next.timestamp() if schedule.next else float("inf")


def _remark(schedule: Schedule, now: datetime) -> str:
    if schedule.retry is not None:
        return f"[yellow]retry {_countdown(schedule.retry, now)}[/]"
    if schedule.skip is not None:
        slot, reason = schedule.skip
        return f"[yellow]{reason} {_clock(slot)}[/]"
    return ""


def _runs(runs: list[Run]) -> Table:
    table = _table("JOB", "SLOT", "STARTED", "STATUS", "TOOK")
    for run in runs:
        took = f"{(run.finished - run.created).seconds} s" if run.finished else ""
        table.add_row(escape(run.name), _clock(run.slot), lateness(run), _coloured(run.state), took)
    return table


def _events(events: list[Event]) -> Table:
    table = _table("EVENT", "ABOUT", "REASON", "MESSAGE")
    table.expand = True
    table.columns[-1].ratio = 1  # a long message is cut; nothing else gives way to it
    for event in events:
        style = "yellow" if event.warning else "green"
        reason = f"[{style}]{escape(event.reason)}[/]"
        table.add_row(_clock(event.when), escape(event.about), reason, escape(event.message))
    return table


def _clock(time: datetime | None) -> str:
    return f"{time:%H:%M:%S}" if time else ""


def _countdown(time: datetime | None, now: datetime) -> str:
    """`in 4 s`; for what is further away, the day or the time, as a person would say it."""
    if time is None:
        return ""
    seconds = (time - now).total_seconds()
    if seconds < 100:
        return f"in {max(0.0, seconds):.0f} s"
    return _clock(time) if time.date() == now.date() else f"{time:%Y-%m-%d}"


def _coloured(word: str) -> str:
    colour = _COLOURS.get(word)
    return f"[{colour}]{word}[/]" if colour else escape(word)
