"""What every part of the benchmark has in common: its options, the cluster it gets, and how it ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.bench.lab.cluster import DEFAULT, Lab, open_lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.reporting import Report
from hack.cluster.errors import ClusterError


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Lab, argparse.Namespace, Report], None]

    def main(self, arguments: list[str]) -> int:
        """On a cluster of its own."""
        options = self.parse(arguments)
        return on_cluster(options.dir, options.keep, lambda lab: self.on(lab, arguments))

    def on(self, lab: Lab, arguments: list[str]) -> None:
        options = self.parse(arguments)
        report = Report(self.name, arguments, options.repeats)
        report.console.rule(f"[bold]{self.name}", align="left")
        self.run(lab, options, report)

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"hack/bench {self.name}",
            description=self.about.splitlines()[0],
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        place(parser)
        parser.add_argument("--repeats", type=positive, default=3, help="how often each figure is taken")
        self.options(parser)
        return parser.parse_args(arguments)


def place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", type=Path, default=DEFAULT, help="the folder the cluster writes into")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running, to look into it")


def race_options(parser: argparse.ArgumentParser, *, contestants: Sequence[str]) -> None:
    """The options of parts that let contestants race."""
    parser.add_argument(
        "--contestants", nargs="+", choices=contestants, default=contestants, metavar="WHO", help="who takes part"
    )
    parser.add_argument("--concurrency", type=positive, default=32, help="raw POSTs in flight at once")
    turn_options(parser)


def turn_options(parser: argparse.ArgumentParser) -> None:
    """The options of whoever takes a turn."""
    parser.add_argument("--pods", action="store_true", help="let Jobs have (pretended) pods instead of being suspended")
    parser.add_argument("--lead", type=float, default=15.0, help="seconds to prepare in, beyond those for each object")
    parser.add_argument("--patience", type=float, default=900.0, help="seconds after the last slot to wait for Jobs")


def on_cluster(folder: Path, keep: bool, work: Callable[[Lab], None]) -> int:
    try:
        with open_lab(folder, keep=keep) as lab:
            work(lab)
    except (BenchError, ClusterError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; what was started has been stopped.", file=sys.stderr)
        return 130
    return 0


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number
