"""Many schedules due in the same second: how long until each has its Job, and how many Jobs a second that is.

Beside the operator stand the CronJob controller, as shipped and tuned, and bare POSTs of equal Jobs. Each is alone on
the API server in its turn, and an independent watch notes when a Job appears.
"""

from __future__ import annotations

import argparse
from typing import Any

from hack.bench.lab import comparing, plotting
from hack.bench.lab.cluster import Lab
from hack.bench.lab.contestants import Contestant, contestants
from hack.bench.lab.parts import Part, positive, race_options
from hack.bench.lab.racing import Course
from hack.bench.lab.reporting import Report
from hack.bench.lab.results import Target

SIZES = [500, 1000]
FULL = [500, 1000, 5000]


def _options(parser: argparse.ArgumentParser) -> None:
    race_options(parser, contestants=["cronwright", "raw", "tuned", "shipped"])
    parser.add_argument("--sizes", nargs="+", type=positive, default=SIZES, help="how many are due in the same second")
    parser.add_argument("--full", action="store_true", help=f"sizes {FULL}; the shipped CronJob takes ten minutes each")


def _run(lab: Lab, options: argparse.Namespace, report: Report) -> None:
    lab.audit(False)
    chosen = contestants(pods=options.pods, concurrency=options.concurrency)
    racing = {who: chosen[who] for who in options.contestants}
    asked = {"pods": options.pods, "concurrency": options.concurrency}
    runs: dict[str, Any] = {}
    panels: dict[str, dict[str, list[list[float]]]] = {}
    targets: list[Target] = []
    for size in FULL if options.full else options.sizes:
        course = Course(size, lead=options.lead, patience=options.patience)

        def same(_: Contestant, course: Course = course) -> Course:
            return course

        title = f"{size} due in one second"
        turns = comparing.compare(lab, racing, same, options.repeats, report, title)
        comparing.tabulate(report, title, racing, turns, "last", rate=True)
        runs[comparing.run_of(str(size), racing)] = {**asked, "contestants": comparing.recorded(turns)}
        panels[title] = comparing.lateness(racing, turns)
        targets += _targets(size, turns)
    report.save(runs, targets, plotting.lateness("burst", panels, "seconds"))


def _targets(size: int, turns: comparing.Turns) -> list[Target]:
    found = []
    if size == 1000 and (ratio := comparing.against(turns, "per_second", "raw")):
        found.append(Target(f"burst {size}: Jobs/s against raw POSTs", ratio, 0.8, at_most=False))
    for who, name, limit in (("tuned", "tuned", 0.6), ("shipped", "as shipped", 0.04)):
        if size in SIZES and (ratio := comparing.against(turns, "last", who)):
            found.append(Target(f"burst {size}: time to the last Job against CronJob {name}", ratio, limit))
    return found


PART = Part("burst", __doc__, _options, _run)
main = PART.main
