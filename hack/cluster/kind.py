"""The same commands on kind, for machines that have Docker and a node image: real kubelets and containers."""

import shutil
import subprocess

from hack.cluster.errors import ClusterError
from hack.cluster.folder import Folder
from hack.cluster.parts import Parts

NAME = "cronwright"


def up(folder: Folder, parts: Parts, image: str | None) -> bool:
    """Create the kind cluster. False when it was there."""
    if not shutil.which("docker"):
        raise ClusterError("--kind needs Docker, and there is no `docker` on the PATH. Without --kind none is needed.")
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True)
    if asked.returncode != 0:
        reason = (asked.stderr.strip().splitlines() or ["docker info failed"])[-1]
        raise ClusterError(f"--kind needs a running Docker: {reason}")
    if exists(parts):
        _kind(parts, "export", "kubeconfig", "--name", NAME, "--kubeconfig", str(folder.kubeconfig))
        return False
    chosen = ["--image", image] if image else []
    _kind(
        parts,
        "create",
        "cluster",
        "--name",
        NAME,
        "--kubeconfig",
        str(folder.kubeconfig),
        "--wait=120s",
        *chosen,
    )
    return True


def exists(parts: Parts) -> bool:
    listed = subprocess.run([parts.path("kind"), "get", "clusters"], capture_output=True, text=True)
    return NAME in listed.stdout.split()


def down(folder: Folder, parts: Parts) -> None:
    _kind(parts, "delete", "cluster", "--name", NAME, "--kubeconfig", str(folder.kubeconfig))


def _kind(parts: Parts, *arguments: str) -> None:
    if subprocess.run([parts.path("kind"), *arguments]).returncode != 0:
        raise ClusterError(f"kind {' '.join(arguments[:2])} failed")
