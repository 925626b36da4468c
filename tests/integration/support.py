"""What integration tests are written with: a cluster of their own, and waiting without sleeping.

The cluster is driven through its command line, as a person would, so the tests also cover what people use.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hack.cluster.folder import CHECKOUT, Folder, State

T = TypeVar("T")

PATIENCE = 150.0
"""Seconds for things that must happen, on the slowest machine; never waited out when all is well. Where a test takes
the API server away, Kubernetes' own controllers wait up to a minute before they look again (client-go's backoff for
watches, which grows over all restarts within two minutes), and again if that is when it goes the second time."""
_POLL = 0.05


def eventually(check: Callable[[], T], timeout: float = PATIENCE) -> T:
    """Call `check` until it returns something truthy without an AssertionError, and return that.

    When it never does, the last failure is raised (or shown), because it says more than "timed out".
    """
    deadline = time.monotonic() + timeout
    while True:
        failure: AssertionError | None = None
        result: T | None = None
        try:
            result = check()
            if result:
                return result
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            last = failure if failure is not None else f"it returned {result!r}"
            raise AssertionError(f"not so after {timeout:g} s: {last}") from failure
        time.sleep(_POLL)


def run_cluster(folder: Path, command: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`python3 hack/cluster COMMAND --dir FOLDER …`."""
    line = [sys.executable, str(CHECKOUT / "hack" / "cluster"), command, "--dir", str(folder), *arguments]
    done = subprocess.run(line, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"hack/cluster {command} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    dir: Path

    @classmethod
    def start(cls, folder: Path, *arguments: str) -> "Cluster":
        """A fresh cluster: one that was left over in the folder goes first."""
        run_cluster(folder, "down")
        run_cluster(folder, "up", *arguments)
        return cls(folder)

    def stop(self) -> None:
        run_cluster(self.dir, "down")

    @property
    def state(self) -> State:
        state = Folder(self.dir).load()
        assert state is not None, f"no cluster in {self.dir}"
        return state

    @property
    def kubeconfig(self) -> Path:
        """Of an admin, who may do everything."""
        return Folder(self.dir).kubeconfig

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.state.ports['apiserver']}"

    @property
    def authority(self) -> Path:
        """The certificate that the API server's own is signed with."""
        return Folder(self.dir).certs / "ca.crt"

    def restart(self, part: str, *, kill: bool = False) -> None:
        run_cluster(self.dir, "restart", part, *(["--kill"] if kill else []))

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, namespace: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self._run("kubectl", *arguments, input=input, check=check, namespace=namespace)

    def helm(
        self, *arguments: str, input: str | None = None, check: bool = True, namespace: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self._run("helm", *arguments, input=input, check=check, namespace=namespace)

    def _run(
        self, program: str, *arguments: str, input: str | None, check: bool, namespace: str | None
    ) -> subprocess.CompletedProcess[str]:
        line = [
            str(Path(self.state.bin) / program),
            *(["--namespace", namespace] if namespace else []),
            *arguments,
        ]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(line, input=input, env=environment, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{program} {' '.join(arguments)} exited with {done.returncode}:\n{done.stderr}")
        return done


def namespace_name(test: str) -> str:
    """A test's name as a namespace: letters, digits and dashes, at most 63, unique by its last part."""
    readable = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")
    return f"{readable[:52].strip('-')}-{time.time_ns() % 16**8:08x}"
