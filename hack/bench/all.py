"""Every part that needs a cluster, one after the other on the same one, and all targets: what `make bench` runs."""

from __future__ import annotations

import argparse

from hack.bench import burst, fair, punctual, scale, targets, writes
from hack.bench.lab.cluster import Lab
from hack.bench.lab.parts import on_cluster, place, positive


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hack/bench all", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    place(parser)
    parser.add_argument("--repeats", type=positive, default=3, help="how often each figure is taken")
    parser.add_argument("--full", action="store_true", help="the largest sizes too: some hours")
    options = parser.parse_args(arguments)
    repeats = ["--repeats", str(options.repeats)]
    full = ["--full"] if options.full else []

    def work(lab: Lab) -> None:
        burst.PART.on(lab, [*repeats, *full])
        punctual.PART.on(lab, repeats)
        fair.PART.on(lab, repeats)
        writes.PART.on(lab, repeats)
        scale.PART.on(lab, [*repeats, *full])

    return on_cluster(options.dir, options.keep, work) or targets.main([])
