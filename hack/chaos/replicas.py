"""The operator's replicas: processes that are killed, put to sleep, asked to go, and started again.

Each has a token of its own, so the audit log tells which of them did what. They are registered with the cluster, so
`hack/cluster down` ends them too, whatever becomes of the attack itself.
"""

import base64
import json
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from hack.chaos.errors import ChaosError
from hack.cluster import processes
from hack.cluster.api import healthy
from hack.cluster.folder import Folder, State, free_ports

_PATIENCE = 60.0
_POLL = 0.05


@dataclass(frozen=True)
class Settings:
    namespace: str
    shards: int
    lease: float


@dataclass
class Replica:
    name: str
    folder: Folder
    kubeconfig: Path
    settings: Settings
    wanted: bool = False
    """Whether it should be running now: one that is not running all the same has died by itself."""
    deaths: list[str] = field(default_factory=list)
    """The last words of each life that nobody ended."""
    ready_since: float | None = None
    """Wall clock; None while it is away, asleep or not synced."""

    def __post_init__(self) -> None:
        self.port = free_ports([self.name])[self.name]

    @property
    def _process(self) -> str:
        return f"replica-{self.name}"

    def start(self) -> bool:
        """Start it and wait until it is synced, or for a while: with no API server it cannot be."""
        program = Path(sys.executable).with_name("cronwright")
        if not program.exists():
            raise ChaosError(f"{program} is missing: start the attack with `make chaos`, which installs it.")
        self.wanted = True
        surroundings = {
            "KUBECONFIG": self.kubeconfig,
            "CRONWRIGHT_BIND": "127.0.0.1",
            "CRONWRIGHT_PORT": self.port,
            "CRONWRIGHT_NAMESPACE": self.settings.namespace,
            "CRONWRIGHT_IDENTITY": self.name,
            "CRONWRIGHT_SHARDS": self.settings.shards,
            "CRONWRIGHT_LEASE_SECONDS": self.settings.lease,
        }
        given = [f"{key}={value}" for key, value in surroundings.items()]
        processes.start(self.folder.pids, self._process, ["env", *given, str(program), "operator"], self.log)
        return self.await_ready()

    def await_ready(self) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while self.running and time.monotonic() < deadline:
            if healthy(self.port, "/readyz", tls=False):
                self.ready_since = time.time()
                return True
            time.sleep(_POLL)
        return False

    @property
    def log(self) -> Path:
        return self.folder.log(self._process)

    @property
    def running(self) -> bool:
        return processes.find(self.folder.pids, self._process) is not None

    def end(self, *, kill: bool) -> None:
        self._note_death()
        self.wanted, self.ready_since = False, None
        processes.stop(self.folder.pids, self._process, kill=kill)

    def wake_and_end(self) -> None:
        """For good, in whatever state it is."""
        self._send(signal.SIGCONT)
        self.end(kill=True)

    def sleep(self) -> None:
        self.ready_since = None
        self._send(signal.SIGSTOP)

    def wake(self) -> None:
        self._send(signal.SIGCONT)
        self.await_ready()

    def _send(self, number: signal.Signals) -> None:
        process = processes.find(self.folder.pids, self._process)
        if process is not None:
            process.send(number)

    def live_on(self) -> None:
        """If it has died by itself, start it again, as Kubernetes would."""
        if self._note_death():
            self.start()

    def _note_death(self) -> bool:
        if not self.wanted or self.running:
            return False
        self.wanted, self.ready_since = False, None
        self.deaths.append("\n".join(self.log.read_text(errors="replace").splitlines()[-40:]))
        return True


def write_kubeconfig(folder: Folder, state: State, name: str, token: str) -> Path:
    path = folder.root / f"{name}.kubeconfig"
    server = f"https://127.0.0.1:{state.ports['apiserver']}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server, "certificate-authority": str(folder.certs / "ca.crt")}}
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return path


def token_id(token: str) -> str:
    """What the audit log calls this token."""
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"
