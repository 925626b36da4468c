"""What a next slot and a compiled expression cost, beside croniter and cronsim used directly.

All three are asked the same questions in turns, in one process, so that a busy machine is busy for all of them; a
figure is the median over rounds of the CPU time of one operation. The answers are compared as well: a fast wrong slot
is no slot. Where the dialects part (clock changes), the questions stay away from it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from cronwright.timing import When, compile_when, cron, days, parse_instant, timetable

EXPRESSIONS = ["* * * * *", "*/5 * * * *", "0 * * * *", "30 6 * * 1-5", "0 0 1 * *", "0 12 29 2 *"]
ZONES = ["UTC", "America/New_York"]
SUMMER = parse_instant("2027-06-01T00:00:00Z"), parse_instant("2027-09-01T00:00:00Z")
SCHEDULES = 1000
"""Schedules that share the expressions above, as schedules do."""

Contender = Callable[[], object]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="hack/bench timing", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--moments", type=int, default=200, help="how many moments each round asks about")
    options = parser.parse_args(arguments)
    moments = [random.Random(4).randrange(*SUMMER) for _ in range(options.moments)]
    slower = False
    print("One next slot after any moment, in microseconds (median of rounds, CPU time):\n")
    print(f"| {'expression':<14} | {'zone':<16} | cronwright | croniter | cronsim | croniter : ours |")
    print(f"|{'-' * 16}|{'-' * 18}|-----------:|---------:|--------:|----------------:|")
    for zone in ZONES:
        for expression in EXPRESSIONS:
            ours, theirs, third = _race(_next_slots(expression, zone, moments), options.rounds, len(moments))
            costs = f"{ours:>10.1f} | {theirs:>8.1f} | {third:>7.1f} | {theirs / ours:>14.1f}x"
            print(f"| {f'`{expression}`':<14} | {zone:<16} | {costs} |")
            slower |= ours > theirs
    print(f"\nOne compiled expression, in microseconds, for {SCHEDULES:,} schedules that share {len(EXPRESSIONS)}:\n")
    ours, theirs, third = _race(_compilations(), options.rounds, SCHEDULES)
    first = _first_compilation(options.rounds)
    print("| cronwright, shared | cronwright, its first use | croniter | cronsim |")
    print("|-------------------:|--------------------------:|---------:|--------:|")
    print(f"| {ours:>18.1f} | {first:>25.1f} | {theirs:>8.1f} | {third:>7.1f} |")
    slower |= ours > theirs
    print(f"\ncronwright is {'SLOWER than croniter somewhere' if slower else 'nowhere slower than croniter'}.")
    return int(slower)


def _next_slots(expression: str, zone: str, moments: list[int]) -> list[Contender]:
    """The same questions to all three; each keeps what it can keep between two of them."""
    table = compile_when(When(crons=(expression,), time_zone=zone), uid="bench", created=0)
    tz = UTC if zone == "UTC" else ZoneInfo(zone)
    starts = [datetime.fromtimestamp(moment, tz) for moment in moments]
    shared = croniter(expression, starts[0])

    def ours() -> list[Any]:
        return [table.next(moment) for moment in moments]

    def theirs() -> list[Any]:
        return [shared.get_next(float, start_time=start) for start in starts]

    def third() -> list[Any]:
        return [next(CronSim(expression, start)) for start in starts]

    slots = ours()
    assert slots == [int(slot) for slot in theirs()], expression
    assert slots == [int(slot.timestamp()) for slot in third()], expression
    return [ours, theirs, third]


def _compilations() -> list[Contender]:
    wanted = [EXPRESSIONS[n % len(EXPRESSIONS)] for n in range(SCHEDULES)]
    start = datetime.fromtimestamp(SUMMER[0], UTC)

    def ours() -> None:
        _forget()
        for n, expression in enumerate(wanted):
            compile_when(When(crons=(expression,)), uid=str(n), created=0)

    def theirs() -> None:
        for expression in wanted:
            croniter(expression, start)

    def third() -> None:
        for expression in wanted:
            CronSim(expression, start)

    return [ours, theirs, third]


def _first_compilation(rounds: int) -> float:
    def first() -> None:
        for expression in EXPRESSIONS:
            _forget()
            compile_when(When(crons=(expression,)), uid="bench", created=0)

    return statistics.median(_cost(first) for _ in range(rounds)) / len(EXPRESSIONS)


def _forget() -> None:
    """Empty what is shared, so that the first compilation is paid for, too."""
    for shared in (cron._compile_fixed, cron._compile, timetable._cron_timeline, days.day_rule):
        shared.cache_clear()


def _race(contenders: list[Contender], rounds: int, operations: int) -> list[float]:
    """Microseconds of one operation of each, asked in turns."""
    costs: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, cost in zip(contenders, costs, strict=True):
            cost.append(_cost(contender))
    return [statistics.median(cost) / operations for cost in costs]


def _cost(contender: Contender) -> float:
    begin = time.process_time_ns()
    contender()
    return (time.process_time_ns() - begin) / 1000
