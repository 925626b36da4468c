"""`kubectl task`: ask a schedule to run, and see what its schedules do.

kubectl finds this command by its name, kubectl-task. It only ever writes requests (annotations), never a spec and never
a Job: the operator decides, here as for anybody else, and its sentences are passed on word for word.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cronwright.api.schedule import ConcurrencyPolicy
from cronwright.cli import asking, telling
from cronwright.cli.access import BAD_USAGE, FAILED, Failure, Json, Schedules, Where, reach
from cronwright.core.model import Problem
from cronwright.core.model import Schedule as Record
from cronwright.core.observe import schedule_from
from cronwright.core.requests import Kind, backfill_slots
from cronwright.timing import Timetable, parse_duration

ANSWER_WITHIN = 30.0
"""Seconds for an answer that does not depend on a run's end."""

app = typer.Typer(
    help="Run the tasks of Cronwright's schedules now, make up for slots, and see what ran and what is next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _checked(name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
        raise typer.BadParameter(f"{name!r} is not a name: write lower case letters, digits, - and .")
    return name


Name = Annotated[str, typer.Argument(metavar="NAME", callback=_checked, help="The TaskSchedule.", show_default=False)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", callback=_checked, help="Its namespace; the context's unless given."),
]
Context = Annotated[str | None, typer.Option(help="The context of the kubeconfig to use.")]
Kubeconfig = Annotated[str | None, typer.Option(help="The kubeconfig to use.")]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="A parameter's value; repeatable.")
]
Policy = Annotated[
    ConcurrencyPolicy | None,
    typer.Option(help="What to do about runs that are active; the schedule's unless given."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; exit with 1 unless all went well.")]
Timeout = Annotated[
    str | None, typer.Option(metavar="DURATION", help="How long to --wait, e.g. 5m; for ever unless given.")
]
AnswerWait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the operator's answer.")]


@app.command()
def run(
    name: Name,
    parameter: Parameters = None,
    concurrency_policy: Policy = None,
    wait: Wait = False,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Run a schedule's task now, once, besides its slots."""
    patience = _patience(wait, timeout)
    text, _ = asking.compose("RunNow", parameters=asking.pairs(parameter or ()), policy=concurrency_policy)

    async def work(schedules: Schedules) -> None:
        await _ask(schedules, name, "RunNow", text, wait, patience)

    _do(work, Where(namespace, context, kubeconfig))


@app.command()
def backfill(
    name: Name,
    begin: Annotated[str, typer.Option("--from", metavar="TIME", help="The first moment, itself included.")],
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="The last moment, itself included; or now.")],
    parameter: Parameters = None,
    concurrency_policy: Policy = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the slots that would run.")] = False,
    wait: Wait = False,
    timeout: Timeout = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Run the slots of a stretch of the past."""
    patience = _patience(wait, timeout)
    given = asking.pairs(parameter or ())

    async def work(schedules: Schedules) -> None:
        schedule = await schedules.get(name)
        zone, now = telling.zone_of(schedule), time.time()
        times = [asking.instant(text, option, zone, now) for text, option in ((begin, "--from"), (end, "--to"))]
        text, request = asking.compose(
            "Backfill", parameters=given, policy=concurrency_policy, begin=times[0], end=times[1]
        )
        if not dry_run:
            await _ask(schedules, name, "Backfill", text, wait, patience)
            return
        _, timetable = _compiled(schedule)
        found = backfill_slots(timetable, request, int(now))
        if isinstance(found, Problem):
            raise Failure(found.message)
        _print(telling.slots(found, timetable, zone, now))

    _do(work, Where(namespace, context, kubeconfig))


@app.command()
def cancel(
    name: Name,
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", callback=_checked, help="One run, as history names it; all unless given."),
    ] = None,
    wait: AnswerWait = True,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """End the runs of a schedule that are active, waiting or to be retried."""

    async def work(schedules: Schedules) -> None:
        text, _ = asking.compose("Cancel", run=run)
        await _ask(schedules, name, "Cancel", text, wait, ANSWER_WITHIN)

    _do(work, Where(namespace, context, kubeconfig))


@app.command()
def resume(
    name: Name,
    wait: AnswerWait = True,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let a schedule go on that has paused itself after failures."""

    async def work(schedules: Schedules) -> None:
        text, _ = asking.compose("Resume")
        await _ask(schedules, name, "Resume", text, wait, ANSWER_WITHIN)

    _do(work, Where(namespace, context, kubeconfig))


@app.command("list")
def list_(
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Those of all namespaces.")] = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List schedules: what is next, how the last run went, what is active, how many runs failed in a row."""

    async def work(schedules: Schedules) -> None:
        found = await schedules.all(all_namespaces)
        if not found:
            _note(
                "No schedules found." if all_namespaces else f"No schedules found in {schedules.namespace} namespace."
            )
            return
        _print(telling.overview(found, time.time(), namespaces=all_namespaces))

    _do(work, Where(namespace, context, kubeconfig))


@app.command()
def history(name: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Show a schedule's recent runs, newest first."""

    async def work(schedules: Schedules) -> None:
        table = telling.history(await schedules.get(name), time.time())
        if not table.rows:
            _note(f"{name} has not run yet.")
            return
        _print(table)

    _do(work, Where(namespace, context, kubeconfig))


@app.command("next")
def next_(
    name: Name,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 10,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show a schedule's next slots, in its time zone."""

    async def work(schedules: Schedules) -> None:
        schedule, now = await schedules.get(name), time.time()
        record, timetable = _compiled(schedule)
        found: list[int] = []
        while len(found) < count and (slot := timetable.next(found[-1] if found else int(now))) is not None:
            found.append(slot)
        phase = record.status.get("phase", "Active")
        if phase != "Active" and found:
            _note(f"{name} is {phase}: as long as it is, these slots do not run.")
        if record.spec is not None and record.spec.max_runs is not None and found:
            _note(f"spec.maxRuns: of its own slots, {name} runs {record.spec.max_runs} in all.")
        if not found:
            _note(f"{name} has no slot left.")
            return
        _print(telling.slots(found, timetable, telling.zone_of(schedule), now))

    _do(work, Where(namespace, context, kubeconfig))


def _do(work: Callable[[Schedules], Awaitable[None]], where: Where) -> None:
    async def connected() -> None:
        async with reach(where) as schedules:
            await work(schedules)

    asyncio.run(connected())


def _patience(wait: bool, timeout: str | None) -> float | None:
    if timeout is None:
        return None
    if not wait:
        raise Failure("--timeout: it is for --wait; give both or neither.", BAD_USAGE)
    try:
        return float(parse_duration(timeout))
    except ValueError as error:
        raise Failure(f"--timeout: {error}.", BAD_USAGE) from None


async def _ask(schedules: Schedules, name: str, kind: Kind, text: str, wait: bool, patience: float | None) -> None:
    asked = await asking.ask(schedules, name, kind, text)
    typer.echo(asked.id)
    if not wait:
        return
    verdict = asking.verdict(await asking.await_end(schedules, asked, patience, typer.echo, _note), asked)
    if not verdict.good:
        raise Failure(verdict.sentence, FAILED)
    typer.echo(verdict.sentence)


def _compiled(schedule: Json) -> tuple[Record, Timetable]:
    record = schedule_from(schedule)
    if record.timetable is None:
        raise Failure(record.problem.message if record.problem else "The schedule cannot be read.")
    return record, record.timetable


def _note(text: str) -> None:
    typer.echo(text, err=True)


_STYLES = {"Succeeded": "green", "Failed": "red", "Invalid": "red", "Paused": "red", "Running": "cyan"}


def _print(table: telling.Table) -> None:
    """On a terminal, as wide as that is; into a file or pipe, each row is one line."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=100_000)
    rich = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column in table.columns:
        rich.add_column(column, no_wrap=column != table.columns[-1])
    for row in table.rows:
        rich.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(rich)


def main(arguments: Sequence[str] | None = None) -> None:
    try:
        app(arguments, prog_name="kubectl task")
    except Failure as failure:
        _note(f"error: {failure}")
        sys.exit(failure.code)


if __name__ == "__main__":
    main()
