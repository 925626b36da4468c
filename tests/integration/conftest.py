"""The cluster that all integration tests of a session share, and a namespace of its own for each of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hack.cluster.folder import CHECKOUT
from tests.integration.chart import install_rbac, kubeconfig
from tests.integration.operating import OperatorProcess
from tests.integration.support import Cluster, eventually, namespace_name
from tests.integration.workspace import Workspace

# As shipped, the controllers hold themselves to 20 requests a second: that is half of a cluster's start.
UNTHROTTLED = (
    "--controller-manager-arg=--kube-api-qps=500",
    "--controller-manager-arg=--kube-api-burst=1000",
)
SYSTEM = "cronwright-system"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Fresh for each session; CRONWRIGHT_KEEP_CLUSTER=1 leaves it running, to look into after a failure."""
    running = Cluster.start(CHECKOUT / "build" / "test-cluster", *UNTHROTTLED)
    yield running
    if os.environ.get("CRONWRIGHT_KEEP_CLUSTER") != "1":
        running.stop()


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, named after the test; its deletion is not waited for."""
    name = namespace_name(request.node.name)
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Cluster:
    """The cluster with our two kinds, served and discovered."""

    def answers(*arguments: str) -> bool:
        return cluster.kubectl(*arguments, check=False).returncode == 0

    cluster.kubectl("apply", "--server-side", "-f", str(CHECKOUT / "crds"))
    eventually(lambda: all(answers("get", kind) for kind in ("ts", "tt")))
    eventually(lambda: all(answers("explain", f"{kind}.spec") for kind in ("ts", "tt")))
    return cluster


@pytest.fixture(scope="session")
def rights(api: Cluster) -> Path:
    """A kubeconfig with the rights of the chart's own ServiceAccount: one that is missing there is missing here."""
    api.kubectl("create", "namespace", SYSTEM)
    return kubeconfig(api, install_rbac(api, SYSTEM), api.dir / "operator.kubeconfig")


@pytest.fixture(scope="session")
def operator(api: Cluster, rights: Path) -> Iterator[OperatorProcess]:
    """The operator that all tests share; one that kills it starts it again."""
    process = OperatorProcess(rights, api.dir / "logs" / "operator.log", namespace=SYSTEM)
    process.start()
    yield process
    if process.running:
        assert process.stop() == 0


@pytest.fixture
def work(api: Cluster, operator: OperatorProcess, namespace: str) -> Workspace:
    """A namespace of the test's own, with the operator at work."""
    eventually(lambda: api.kubectl("get", "serviceaccount", "default", check=False, namespace=namespace).stdout)
    return Workspace(api, namespace)
