"""Contestants side by side: in each repeat all of them in turn, each repeat beginning with another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hack.bench.lab import figures, racing
from hack.bench.lab.cluster import Lab
from hack.bench.lab.contestants import Contestant
from hack.bench.lab.figures import Spread
from hack.bench.lab.racing import Course, Turn
from hack.bench.lab.reporting import Report, shown

Turns = dict[str, list[Turn]]
"""By contestant, one for each repeat."""


def compare(
    lab: Lab,
    contestants: Mapping[str, Contestant],
    course: Callable[[Contestant], Course],
    repeats: int,
    report: Report,
    title: str,
) -> Turns:
    turns: Turns = {who: [] for who in contestants}
    racing.clean(lab, report.say)
    for repeat in range(repeats):
        for who in rotated(list(contestants), repeat):
            contestant = contestants[who]

            def tell(line: str, number: int = repeat + 1) -> None:
                report.say(f"{title}, repeat {number} of {repeats}: {line}")

            turns[who].append(racing.take_turn(lab, contestant, course(contestant), tell))
            racing.clean(lab, tell)
    return turns


def rotated(names: Sequence[str], by: int) -> list[str]:
    start = by % len(names)
    return [*names[start:], *names[:start]]


def taken(turns: Sequence[Turn], figure: str) -> list[float]:
    """One figure of each repeat."""
    return [float(getattr(turn.figures, figure)) for turn in turns]


def against(turns: Turns, figure: str, other: str) -> Spread | None:
    """Ours against another's, if both took part."""
    if "cronwright" not in turns or other not in turns:
        return None
    return figures.ratio(taken(turns["cronwright"], figure), taken(turns[other], figure))


def tabulate(
    report: Report, title: str, contestants: Mapping[str, Contestant], turns: Turns, figure: str, *, rate: bool
) -> None:
    """A row for each contestant; the last column is ours against theirs, by `figure`.

    Without the `rate` where slots are spread out: Jobs a second would then tell of the slots and not of the contestant.
    """
    named = {"first": "first, s", "p50": "p50, s", "p99": "p99, s", "last": "last, s"}
    named |= {"per_second": "Jobs/s"} if rate else {}
    rows = []
    for who, taken_turns in turns.items():
        over = figures.over_repeats([turn.figures for turn in taken_turns])
        ratio = against(turns, figure, who)
        cells = [shown(over[name]) for name in named]
        at_once = [turn.at_once for turn in taken_turns if turn.at_once is not None]
        cells.append(shown(Spread.over(at_once)) if at_once else "")
        rows.append((contestants[who].name, *cells, shown(ratio) if ratio and who != "cronwright" else ""))
    report.table(title, ("median (low-high)", *named.values(), "at once", f"our {figure} : theirs"), rows)


def recorded(turns: Turns) -> dict[str, Any]:
    """For the JSON: the figures of each repeat, and over them."""
    return {
        who: {
            "repeats": [{**asdict(turn.figures), "at_once": turn.at_once} for turn in taken_turns],
            "over_repeats": figures.over_repeats([turn.figures for turn in taken_turns]),
        }
        for who, taken_turns in turns.items()
    }


def lateness(contestants: Mapping[str, Contestant], turns: Turns) -> dict[str, list[list[float]]]:
    """That of every Job, by repeat, for a plot."""
    return {contestants[who].name: [turn.lateness for turn in ts] for who, ts in turns.items()}


def run_of(size: str, contestants: Mapping[str, Contestant]) -> str:
    """What a run is kept as: who took part makes it another one, in which order they came does not."""
    return f"{size}: {', '.join(sorted(contestants))}"
