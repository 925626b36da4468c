"""The operator of the demo: a process of its own that ends with the cluster, on whose pid file it is registered."""

import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import processes
from hack.cluster.api import healthy
from hack.cluster.folder import Folder, free_ports
from hack.demo.errors import DemoError

NAME = "operator"
_PATIENCE = 120.0  # for the first picture to be complete; far more than any machine needs
_POLL = 0.1
_LATENESS = "cronwright_start_lateness_seconds"


@dataclass(frozen=True)
class Operator:
    folder: Folder
    port: int

    def check(self) -> None:
        """Raises, with the end of its log, when the operator is not running any more."""
        if processes.find(self.folder.pids, NAME) is None:
            raise DemoError(f"The operator died. {_tail(self.folder.log(NAME))}")

    def punctuality(self) -> tuple[int, int]:
        """How many runs it has started, and how many of them within 0.1 s of their slot, as its metrics say."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        values = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
        return int(values[f"{_LATENESS}_count"]), int(values[f'{_LATENESS}_bucket{{le="0.1"}}'])


def start(folder: Folder) -> Operator:
    """Start the operator of this checkout, in the place of one that an earlier demo left running."""
    program = Path(sys.executable).with_name("cronwright")
    if not program.exists():
        raise DemoError(f"{program} is missing: start the demo with `make demo`, which installs it.")
    processes.stop(folder.pids, NAME)
    folder.log(NAME).unlink(missing_ok=True)
    operator = Operator(folder, free_ports([NAME])[NAME])
    surroundings = [f"KUBECONFIG={folder.kubeconfig}", "CRONWRIGHT_BIND=127.0.0.1"]
    command = [str(program), "operator", "--port", str(operator.port)]
    processes.start(folder.pids, NAME, ["env", *surroundings, *command], folder.log(NAME))
    deadline = time.monotonic() + _PATIENCE
    while not healthy(operator.port, "/readyz", tls=False):
        operator.check()
        if time.monotonic() > deadline:
            raise DemoError(f"The operator is not ready after {_PATIENCE:.0f} s. {_tail(folder.log(NAME))}")
        time.sleep(_POLL)
    return operator


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
    return "\n".join([f"The last lines of {log}:", *lines])
