"""The operator as a process of its own, and what the kernel says that it uses."""

from __future__ import annotations

import os
import re
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hack.bench.lab import figures
from hack.bench.lab.cluster import SYSTEM, Lab
from hack.bench.lab.errors import BenchError
from hack.cluster import processes
from hack.cluster.api import healthy
from hack.cluster.folder import free_ports

NAME = "operator"
_POLL = 0.02
_PATIENCE = 300.0
_REST = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Operator:
    lab: Lab
    pid: int
    synced_after: float
    """Seconds from the start of the process until it was ready: interpreter, imports and the first listing."""
    port: int
    """Of its probes and metrics."""

    def cpu(self) -> float:
        """CPU seconds since its start, in user and kernel mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss(self) -> int:
        """Bytes of memory that it holds now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise BenchError(f"The operator (pid {self.pid}) is gone. {tail(self.lab.folder.log(NAME))}")

    def await_rest(self) -> None:
        """Wait until it has used less than a fiftieth of a core for some seconds: what is left of its start must not be
        taken for rest, which is subtracted from the cost of a run."""
        deadline = time.monotonic() + _PATIENCE
        before = self.cpu()
        while True:
            time.sleep(_REST)
            self.check()
            now = self.cpu()
            if now - before < _REST / 50:
                return
            if time.monotonic() > deadline:
                raise BenchError(f"The operator does not come to rest. {tail(self.lab.folder.log(NAME))}")
            before = now

    def lag(self) -> Counter[float]:
        """How often the event loop was late, by the upper bound of how late, since its start."""
        found = re.findall(r'^cronwright_loop_lag_seconds_bucket{le="([^"]+)"} (\S+)$', self._metrics(), re.MULTILINE)
        return figures.apart({float(bound): float(count) for bound, count in found})

    def concurrency(self) -> int | None:
        """How many schedules it may work on at once by now; older versions do not tell."""
        found = re.search(r"^cronwright_concurrency (\S+)$", self._metrics(), re.MULTILINE)
        return int(float(found[1])) if found else None

    def _metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def check(self) -> None:
        if processes.find(self.lab.folder.pids, NAME) is None:
            raise BenchError(f"The operator died. {tail(self.lab.folder.log(NAME))}")

    def stop(self) -> None:
        processes.stop(self.lab.folder.pids, NAME)


def start(lab: Lab) -> Operator:
    """Start the operator of this checkout with the chart's rights, and wait until it is synced."""
    program = Path(sys.executable).with_name("cronwright")
    if not program.exists():
        raise BenchError(f"{program} is missing: start with `make bench`, which installs it.")
    port = free_ports([NAME])[NAME]
    environment = [
        f"KUBECONFIG={lab.operator_kubeconfig}",
        "CRONWRIGHT_BIND=127.0.0.1",
        f"CRONWRIGHT_PORT={port}",
        f"CRONWRIGHT_NAMESPACE={SYSTEM}",
        "CRONWRIGHT_IDENTITY=bench",
    ]
    began = time.monotonic()
    command = ["env", *environment, str(program), "operator"]
    process = processes.start(lab.folder.pids, NAME, command, lab.folder.log(NAME))
    while not healthy(port, "/readyz", tls=False):
        if not process.alive():
            raise BenchError(f"The operator died. {tail(lab.folder.log(NAME))}")
        if time.monotonic() - began > _PATIENCE:
            raise BenchError(f"The operator is not ready after {_PATIENCE:.0f} s. {tail(lab.folder.log(NAME))}")
        time.sleep(_POLL)
    return Operator(lab, process.pid, time.monotonic() - began, port)


def tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
    return "\n".join([f"The last lines of {log}:", *lines])
