"""The attack of `make chaos`, in short: half a minute of faults, a seed of its own each time."""

import json
import subprocess
import sys
from pathlib import Path

from hack.cluster.folder import CHECKOUT

CHAOS = [sys.executable, str(CHECKOUT / "hack" / "chaos")]


def test_no_slot_is_doubled_or_lost_under_attack(tmp_path: Path) -> None:
    report = tmp_path / "chaos.json"
    options = ["--minutes", "0.5", "--schedules", "30", "--replicas", "2", "--shards", "3"]
    done = subprocess.run(
        [*CHAOS, *options, "--dir", str(tmp_path / "cluster"), "--report", str(report)], capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    told = json.loads(report.read_text())
    slots = told["slots"]
    assert slots["due"] == slots["run"] + slots["skipped"] + slots["lostByTheKnownHole"]
    assert slots["run"] > 0
    assert told["faults"]
    assert sum(told["jobs"]["byReplica"].values()) == told["jobs"]["created"] >= slots["run"]


def test_an_attack_on_nothing_is_refused() -> None:
    done = subprocess.run([*CHAOS, "--replicas", "0"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "argument --replicas: must be at least 1, not 0" in done.stderr
