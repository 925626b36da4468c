"""The cluster's programs: built from source once, kept in a cache that checkouts share.

No registry and no release page is needed, only Go modules; every version stands in go.mod and nowhere else.
Each part is built by itself and moved into place when it is whole, so a build that was interrupted goes on
with the parts that are missing. The cache folder's name is a hash of all that the parts are made of: another
version of anything is another folder, and a folder that has every part is never built into again.
"""

import fcntl
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hack.cluster import golang
from hack.cluster.errors import ClusterError

MODULE = Path(__file__).resolve().parent

# The heaviest first: what it compiles, the others share.
PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "etcd": "go.etcd.io/etcd/server/v3",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kind": "sigs.k8s.io/kind",
    "certs": "./certs",
}

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_NETWORK_TROUBLE = re.compile(
    r"dial tcp|no such host|i/o timeout|connection refused|proxyconnect|TLS handshake|module lookup disabled",
    re.I,
)
_QUIET_TICK = 30.0  # seconds between signs of life where nobody watches a terminal


@dataclass(frozen=True)
class Parts:
    """Where the built programs are."""

    bin: Path

    def path(self, part: str) -> str:
        return str(self.bin / part)

    def missing(self) -> list[str]:
        return [part for part in PACKAGES if not (self.bin / part).exists()]


def module_version(module: str, go_mod: str | None = None) -> str:
    """The version that go.mod requires of a module."""
    text = (MODULE / "go.mod").read_text() if go_mod is None else go_mod
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE)
    if not found:
        raise ClusterError(f"hack/cluster/go.mod does not require {module}")
    return found.group(1)


def kubernetes_version() -> str:
    return module_version("k8s.io/kubernetes")


def target() -> tuple[str, str]:
    """GOOS and GOARCH of this machine, known without asking Go: a built cluster does not need it any more."""
    machine = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def cache_home() -> Path:
    if chosen := os.environ.get("CRONWRIGHT_CACHE"):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "cronwright"


def locate() -> Parts:
    """The folder that belongs to what go.mod, go.sum and our own Go code say now."""
    digest = hashlib.sha256()
    for source in (MODULE / "go.mod", MODULE / "go.sum", *sorted(MODULE.glob("*/*.go"))):
        digest.update(source.read_bytes())
    digest.update("/".join(target()).encode())
    return Parts(cache_home() / f"cluster-{digest.hexdigest()[:12]}" / "bin")


def build() -> Parts:
    """Build the parts that are missing. Two builds at once wait for each other."""
    parts = locate()
    if not parts.missing():
        return parts
    parts.bin.mkdir(parents=True, exist_ok=True)
    with _locked(parts.bin.parent / "lock"):
        missing = parts.missing()
        if missing:
            go = golang.find(MODULE, cache_home())
            began = time.monotonic()
            print(f"Building {len(missing)} of {len(PACKAGES)} parts into {parts.bin}", flush=True)
            for leftover in parts.bin.glob(".*"):
                leftover.unlink()
            for part in missing:
                _build_part(go, part, parts)
            print(f"Built in {time.monotonic() - began:.0f} s", flush=True)
    return parts


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another build is under way: waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _linker_flags() -> str:
    kubernetes = kubernetes_version()
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    base = "k8s.io/component-base/version"
    stamps = {
        f"{base}.gitVersion": kubernetes,
        f"{base}.gitMajor": major,
        f"{base}.gitMinor": minor,
        f"{base}.gitTreeState": "clean",
        "sigs.k8s.io/kwok/pkg/consts.Version": module_version("sigs.k8s.io/kwok"),
        "helm.sh/helm/v4/internal/version.version": module_version("helm.sh/helm/v4"),
    }
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def _build_part(go: str, part: str, parts: Parts) -> None:
    goos, goarch = target()
    # Named after this process: the compiler of a build that was killed may still be writing its own.
    unfinished = parts.bin / f".{part}.{os.getpid()}"
    command = [go, "build", "-ldflags", _linker_flags(), "-o", str(unfinished), PACKAGES[part]]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch}
    log = parts.bin.parent / f"{part}.log"
    title = f"[{list(PACKAGES).index(part) + 1}/{len(PACKAGES)}] {part}"
    with log.open("w+") as output:
        building = subprocess.Popen(command, cwd=MODULE, env=environment, stdout=output, stderr=output)
        try:
            code = _watch(building, title)
        finally:
            if building.poll() is None:
                building.terminate()
                building.wait()
        if code != 0:
            raise ClusterError(_explain(part, output))
    log.unlink()
    unfinished.rename(parts.bin / part)


def _watch(building: "subprocess.Popen[bytes]", title: str) -> int:
    live = sys.stdout.isatty()
    began = time.monotonic()
    while True:
        try:
            code = building.wait(timeout=1.0 if live else _QUIET_TICK)
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - began
            print(
                f"\r{title}  {elapsed:.0f} s" if live else f"{title}  … {elapsed:.0f} s",
                end="" if live else "\n",
            )
            sys.stdout.flush()
            continue
        print(f"{chr(13) if live else ''}{title}  {time.monotonic() - began:.0f} s", flush=True)
        return code


def _explain(part: str, output: IO[str]) -> str:
    output.seek(0)
    text = output.read()
    tail = "\n".join(text.splitlines()[-20:])
    hint = ""
    if _NETWORK_TROUBLE.search(text):
        hint = (
            "\nThe Go modules could not be downloaded: check the network, or set GOPROXY to a proxy that this"
            " machine reaches. What was built so far is kept."
        )
    return f"{part} could not be built:\n{tail}{hint}"
