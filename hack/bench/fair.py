"""One tenant's crowd beside others' single slots, due in the same second: who waits for whom?

A crowd of slots is in one namespace, and each single one in a namespace of its own. If namespaces take turns, a single
slot has its Job while the crowd's are still coming; if whoever came first is served first, the singles, whose schedules
are made last, wait for the whole crowd. What is judged is a ratio, the last single slot's lateness to the crowd's last
in the same turn: how long a crowd takes is the doing of the machine and of the API server, and how far ahead of its end
a single slot is served is ours alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from hack.bench.lab import comparing, plotting
from hack.bench.lab.cluster import Lab
from hack.bench.lab.contestants import Contestant, Cronwright
from hack.bench.lab.figures import over_repeats, percentile
from hack.bench.lab.parts import Part, positive, turn_options
from hack.bench.lab.racing import Course
from hack.bench.lab.reporting import Report, shown
from hack.bench.lab.results import Target

CROWD, SINGLES = 1000, 10


@dataclass(frozen=True)
class Fairness:
    """Of one repeat, in seconds after the slot."""

    crowd_p50: float
    crowd_p99: float
    crowd_last: float
    singles_p50: float
    singles_last: float
    ratio: float
    """The last single one against the crowd's last: near 0 where namespaces take turns, 1 where they queue."""

    @classmethod
    def of(cls, crowd: Sequence[float], singles: Sequence[float]) -> Fairness:
        return cls(
            crowd_p50=percentile(crowd, 50),
            crowd_p99=percentile(crowd, 99),
            crowd_last=max(crowd),
            singles_p50=percentile(singles, 50),
            singles_last=max(singles),
            ratio=max(singles) / max(crowd),
        )


def _options(parser: argparse.ArgumentParser) -> None:
    turn_options(parser)
    parser.add_argument("--crowd", type=positive, default=CROWD, help="slots of one namespace")
    parser.add_argument("--singles", type=positive, default=SINGLES, help="namespaces with one slot each")


def _run(lab: Lab, options: argparse.Namespace, report: Report) -> None:
    lab.audit(False)
    course = Course(options.crowd, lone=options.singles, lead=options.lead, patience=options.patience)

    def same(_: Contestant) -> Course:
        return course

    title = f"{options.singles} single slots beside {options.crowd:,} of one namespace"
    racing: dict[str, Contestant] = {"cronwright": Cronwright(options.pods)}
    turns = comparing.compare(lab, racing, same, options.repeats, report, title)["cronwright"]
    crowds = [turn.lateness[: options.crowd] for turn in turns]
    singles = [turn.lateness[options.crowd :] for turn in turns]
    repeats = [Fairness.of(crowd, single) for crowd, single in zip(crowds, singles, strict=True)]
    over = over_repeats(repeats)
    labels = {
        "crowd_p50": "the crowd's p50, s",
        "crowd_p99": "the crowd's p99, s",
        "crowd_last": "the crowd's last, s",
        "singles_p50": "single slots' p50, s",
        "singles_last": "single slots' last, s",
        "ratio": "single slots' last : the crowd's last",
    }
    report.table(title, ("", "median (low-high)"), [(label, shown(over[name])) for name, label in labels.items()])
    promised = (options.crowd, options.singles) == (CROWD, SINGLES)
    targets = [Target(f"fair: {title}, their last against its last", over["ratio"], 0.35)] if promised else []
    plot = plotting.lateness("fair", {title: {"the crowd": crowds, "single slots": singles}}, "seconds")
    run = {"pods": options.pods, "repeats": repeats, "over_repeats": over}
    report.save({f"{options.crowd} and {options.singles}": run}, targets, plot)


PART = Part("fair", __doc__, _options, _run)
main = PART.main
