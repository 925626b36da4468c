"""Few slots at a time, for a while: how late is a Job when there is nothing to queue behind?

The operator gets 20 slots at every second of a minute. A CronJob is due at whole minutes only, so it gets the 20 of one
second at each of several minutes, and the rest of the minute to recover: the load of a moment is the same, the load of
a minute is a sixtieth. What is compared is the lateness of one Job, p50 and p99.
"""

from __future__ import annotations

import argparse

from hack.bench.lab import comparing, plotting
from hack.bench.lab.cluster import Lab
from hack.bench.lab.contestants import Contestant, contestants
from hack.bench.lab.parts import Part, positive, race_options
from hack.bench.lab.racing import Course
from hack.bench.lab.reporting import Report
from hack.bench.lab.results import Target


def _options(parser: argparse.ArgumentParser) -> None:
    race_options(parser, contestants=["cronwright", "raw", "tuned"])
    parser.add_argument("--rate", type=positive, default=20, help="slots due at the same moment")
    parser.add_argument("--seconds", type=positive, default=60, help="how many seconds, for those that know seconds")
    parser.add_argument("--minutes", type=positive, default=3, help="how many minutes, for CronJobs")


def _run(lab: Lab, options: argparse.Namespace, report: Report) -> None:
    lab.audit(False)
    chosen = contestants(pods=options.pods, concurrency=options.concurrency)
    racing = {who: chosen[who] for who in options.contestants}

    def course(contestant: Contestant) -> Course:
        moments = options.seconds if contestant.step == 1 else options.minutes
        return Course(options.rate, moments, lead=options.lead, patience=options.patience)

    title = f"{options.rate} slots at a moment"
    turns = comparing.compare(lab, racing, course, options.repeats, report, title)
    comparing.tabulate(report, title, racing, turns, "p99", rate=False)
    ratio = comparing.against(turns, "p99", "tuned")
    targets = [Target("punctual: p99 against CronJob tuned", ratio, 0.5)] if ratio else []
    plot = plotting.lateness("punctual", {title: comparing.lateness(racing, turns)}, "seconds")
    asked = {name: getattr(options, name) for name in ("rate", "seconds", "minutes", "pods", "concurrency")}
    run = {**asked, "contestants": comparing.recorded(turns)}
    report.save({comparing.run_of(str(options.rate), racing): run}, targets, plot)


PART = Part("punctual", __doc__, _options, _run)
main = PART.main
