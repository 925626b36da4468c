"""The chart's own rights for an operator that runs outside of it.

Tests run the operator as a process, with a token of the ServiceAccount that the chart creates and the roles that it
binds: a right that is missing there is missing here.
"""

import json
from pathlib import Path

from hack.cluster.folder import CHECKOUT
from tests.integration.support import Cluster, eventually

CHART = CHECKOUT / "charts" / "cronwright"
RIGHTS = ("serviceaccount.yaml", "rbac.yaml")


def install_rbac(cluster: Cluster, namespace: str) -> str:
    """Apply the CRDs, and the chart's ServiceAccount and roles for a release in `namespace`; return a token of it.

    The objects bear the namespace's name, so that several can stand side by side in one cluster.
    """
    only = [argument for file in RIGHTS for argument in ("--show-only", f"templates/{file}")]
    named = ("--set", f"fullnameOverride={namespace}")
    rendered = cluster.helm("template", "cronwright", str(CHART), *only, *named, namespace=namespace).stdout
    cluster.kubectl("apply", "--server-side", "-f", str(CHECKOUT / "crds"))
    cluster.kubectl("apply", "-f", "-", input=rendered)
    # The API server's authorizer learns of a new binding, and of a new kind, a moment later.
    account = f"--as=system:serviceaccount:{namespace}:{namespace}"
    kinds = "taskschedules,tasktemplates"
    eventually(lambda: cluster.kubectl("get", kinds, "-A", account, check=False).returncode == 0)
    return cluster.kubectl("create", "token", namespace, "--duration=24h", namespace=namespace).stdout.strip()


def kubeconfig(cluster: Cluster, token: str, path: Path) -> Path:
    """A kubeconfig for whoever has this token."""
    server = {"server": cluster.server, "certificate-authority": str(cluster.authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": server}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "current-context": "context",
    }
    path.write_text(json.dumps(config))
    return path
