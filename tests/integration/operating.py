"""The operator as a process of its own, started, killed and started again by tests as Kubernetes would do it."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from hack.cluster.folder import free_ports
from tests.integration.support import eventually

_FAULTY = Path(__file__).with_name("faulty_operator.py")


class OperatorProcess:
    """One replica. Its log is one file over all of its lives, shown when a test fails to see it ready."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *,
        namespace: str,
        identity: str = "test",
        shards: int = 1,
        lease_seconds: float = 15,
    ) -> None:
        self.log = log
        self.port = free_ports(["probes"])["probes"]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "CRONWRIGHT_BIND": "127.0.0.1",
            "CRONWRIGHT_PORT": str(self.port),
            "CRONWRIGHT_NAMESPACE": namespace,
            "CRONWRIGHT_IDENTITY": identity,
            "CRONWRIGHT_SHARDS": str(shards),
            "CRONWRIGHT_LEASE_SECONDS": str(lease_seconds),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, fault: str | None = None) -> None:
        """Start it and wait until it is synced; with a `fault` (see faulty_operator.py) only until it runs."""
        assert self._process is None, "it runs already"
        program = [str(_FAULTY), fault] if fault else ["-m", "cronwright.cli.main", "operator"]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *program], env=self._environment, stdout=output, stderr=output
            )
        if not fault:
            eventually(self.ready)

    def ready(self) -> bool:
        assert self.running, f"the operator died:\n{self.tail()}"
        try:
            return self.ask("/readyz")[0] == 200
        except OSError:
            return False

    def ask(self, path: str) -> tuple[int, str]:
        """What a probe or a monitoring system would get."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", self.ask("/metrics")[1], re.MULTILINE)
        return sum(map(float, found))

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait until it has ended by itself, and return its exit status."""
        assert self._process is not None
        code = self._process.wait(timeout=60)
        self._process = None
        return code

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        return self.wait()

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
