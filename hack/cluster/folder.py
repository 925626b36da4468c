"""The one folder that a cluster writes into, and what it remembers there between commands."""

import dataclasses
import fcntl
import json
import random
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
DEFAULT = CHECKOUT / "build" / "cluster"

# Below the range that systems take outgoing ports from (Linux: 32768 up, others: 49152 up). A client that
# keeps dialling a stopped API server could otherwise be given that very port, connect to itself, and hold it.
_PORTS = range(20000, 32000)


@dataclass
class State:
    """What a cluster is made of; written once by `up`, read by every later command."""

    bin: str
    kind: bool = False
    nodes: int = 1
    ports: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, list[str]] = field(default_factory=dict)  # part -> extra flags


@dataclass(frozen=True)
class Folder:
    root: Path

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def certs(self) -> Path:
        return self.root / "certs"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def pids(self) -> Path:
        return self.root / "pids"

    @property
    def _state(self) -> Path:
        return self.root / "cluster.json"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def load(self) -> State | None:
        """None when no cluster was started here."""
        try:
            return State(**json.loads(self._state.read_text()))
        except FileNotFoundError:
            return None

    def save(self, state: State) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        unfinished = self._state.with_suffix(".tmp")
        unfinished.write_text(json.dumps(dataclasses.asdict(state), indent=2) + "\n")
        unfinished.rename(self._state)

    def clear(self, *, logs: bool = False) -> None:
        """Remove what a cluster wrote, and nothing else that somebody may keep in the same folder."""
        for folder in (self.data, self.certs, self.pids, *([self.logs] if logs else [])):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.kubeconfig, self._state):
            file.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time changes a cluster; another one waits."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def free_ports(names: list[str]) -> dict[str, int]:
    """A free port of 127.0.0.1 for each name, no two the same."""
    chosen: dict[str, int] = {}
    candidates = random.sample(_PORTS, len(_PORTS))
    for name in names:
        chosen[name] = next(port for port in candidates if port not in chosen.values() and _is_free(port))
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
