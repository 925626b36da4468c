"""The chart as an administrator meets it: linted, rendered, installed, upgraded and uninstalled by Helm.

CRDs and cluster roles belong to the whole cluster, so these tests have one of their own. It enforces what the strictest
clusters do: the permission to block an owner's deletion (as OpenShift does), and restricted pods in the namespace.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.cluster.folder import CHECKOUT
from tests.integration.chart import CHART, install_rbac
from tests.integration.support import Cluster, eventually, namespace_name

HOME = "cronwright-system"
ACCOUNT = f"system:serviceaccount:{HOME}:cronwright"
OWNER_PERMISSIONS = "--apiserver-arg=--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
CRDS = ["taskschedules.cronwright.dev", "tasktemplates.cronwright.dev"]

VALUES = {path.name: yaml.safe_load(path.read_text()) for path in sorted((CHART / "ci").glob("*.yaml"))}
EVERYTHING = VALUES["everything-values.yaml"]
REFUSED = [
    pytest.param(case["set"], case["refused"], id=case["set"])
    for case in yaml.safe_load((Path(__file__).parent / "bad/values.yaml").read_text())
]

EVERYWHERE = {
    "taskschedules.cronwright.dev": "get list watch patch",
    "tasktemplates.cronwright.dev": "get list watch",
    "taskschedules.cronwright.dev/status": "patch",
    "tasktemplates.cronwright.dev/status": "patch",
    "taskschedules.cronwright.dev/finalizers": "update",
    "tasktemplates.cronwright.dev/finalizers": "update",
    "jobs.batch": "get list watch create patch delete",
    "pods": "list",
    "leases.coordination.k8s.io": "get list watch create update",
    "events": "create list",
}
FORBIDDEN = [
    "get secrets",
    "list configmaps",
    "get pods",
    "create pods",
    "delete pods",
    "get pods/log",
    "create pods/exec",
    "create serviceaccounts/token",
    # The patch that it has is for annotations; whole schedules are not its to write.
    "update taskschedules.cronwright.dev",
    "create taskschedules.cronwright.dev",
    "delete taskschedules.cronwright.dev",
    "patch tasktemplates.cronwright.dev",
    "update jobs.batch",
    "delete leases.coordination.k8s.io",
]
AT_HOME = {**EVERYWHERE, "leases.coordination.k8s.io": "get list watch create update delete"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster.start(tmp_path_factory.mktemp("chart") / "cluster", OWNER_PERMISSIONS)
    running.kubectl("create", "namespace", HOME)
    running.kubectl("label", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted")
    yield running
    running.stop()


@pytest.fixture
def installed(strict: Cluster) -> Iterator[Cluster]:
    """A release named cronwright, which is gone afterwards, and the CRDs with it."""
    strict.helm("install", "cronwright", str(CHART), "--wait", namespace=HOME)
    yield strict
    remove(strict)


@pytest.fixture
def team(strict: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The namespace of somebody who uses what the administrator installed."""
    name = namespace_name(request.node.name)
    strict.kubectl("create", "namespace", name)
    yield name
    strict.kubectl("delete", "namespace", name, "--wait=false")


def remove(cluster: Cluster) -> None:
    cluster.helm("uninstall", "cronwright", "--ignore-not-found", "--wait", namespace=HOME)
    cluster.kubectl("delete", "crd", "--ignore-not-found", *CRDS)


def render(cluster: Cluster, values: dict[str, Any], *arguments: str) -> list[dict[str, Any]]:
    line = ("template", "other", str(CHART), "--values", "-", *arguments)
    rendered = cluster.helm(*line, input=yaml.safe_dump(values), namespace=HOME).stdout
    return [document for document in yaml.safe_load_all(rendered) if document]


def get(cluster: Cluster, *what: str, namespace: str = HOME) -> Any:
    return json.loads(cluster.kubectl("get", *what, "-o", "json", namespace=namespace).stdout)


def crds(cluster: Cluster) -> list[str]:
    listed = cluster.kubectl("get", "crd", "-o", "name").stdout.split()
    return sorted(name.rpartition("/")[2] for name in listed)


def granted(cluster: Cluster, account: str, namespace: str) -> set[tuple[str, str]]:
    """Every (resource, verb) that the account has in the namespace, in Kubernetes' own words."""
    line = ("auth", "can-i", "--list", "--no-headers", f"--as={account}")
    rows = cluster.kubectl(*line, namespace=namespace).stdout.splitlines()
    resources = [row.partition(" ")[0] for row in rows]
    verbs = [row.rpartition("[")[2].rstrip("]").split() for row in rows]
    return {(what, verb) for what, row in zip(resources, verbs, strict=True) if what for verb in row}


def pairs(rights: dict[str, str]) -> set[tuple[str, str]]:
    return {(what, verb) for what, verbs in rights.items() for verb in verbs.split()}


def test_helm_has_nothing_to_say_against_the_chart(strict: Cluster) -> None:
    said = strict.helm("lint", "--strict", str(CHART)).stdout
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


@pytest.mark.parametrize("values", [{}, *VALUES.values()], ids=["defaults", *VALUES])
def test_the_api_server_accepts_what_is_rendered(strict: Cluster, values: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": render(strict, values)}
    line = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    done = strict.kubectl(*line, input=json.dumps(listed))
    assert "arning" not in done.stderr


def test_everything_that_is_set_arrives_in_the_pod(strict: Cluster) -> None:
    [deployment] = render(strict, EVERYTHING, "--show-only", "templates/deployment.yaml")
    assert deployment["metadata"]["name"] == "other-wright"
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (3, {"type": "Recreate"})
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["annotations"] == {"example.com/a": "1"}
    assert pod["metadata"]["labels"]["team"] == "data"
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "wright"
    verbatim = ("imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations", "affinity")
    for field in (*verbatim, "topologySpreadConstraints"):
        assert pod["spec"][field] == EVERYTHING[field]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.com/team/cronwright@sha256:{'0' * 64}"
    assert container["ports"][0]["containerPort"] == 9090
    assert container["livenessProbe"]["initialDelaySeconds"] == 3
    environment = {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}
    assert environment == {
        "CRONWRIGHT_PORT": "9090",
        "CRONWRIGHT_LOG_LEVEL": "DEBUG",
        "CRONWRIGHT_SHARDS": "4",
        "CRONWRIGHT_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        "CRONWRIGHT_IDENTITY": {"fieldRef": {"fieldPath": "metadata.name"}},
        "CRONWRIGHT_LEASE_SECONDS": "30",
    }


def test_a_service_monitor_selects_the_metrics_service(strict: Cluster) -> None:
    wanted = {"serviceMonitor": {"enabled": True, "interval": "1m", "labels": {"release": "prometheus"}}}
    found = {each["kind"]: each for each in render(strict, wanted)}
    monitor, service = found["ServiceMonitor"], found["Service"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"] == [{"port": "metrics", "path": "/metrics", "interval": "1m"}]
    assert [port["name"] for port in service["spec"]["ports"]] == ["metrics"]


@pytest.mark.parametrize(("setting", "message"), REFUSED)
def test_a_bad_value_is_refused_in_these_words(strict: Cluster, setting: str, message: str) -> None:
    done = strict.helm("template", "cronwright", str(CHART), "--set", setting, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def test_the_operators_pod_is_admitted_where_pods_are_restricted(installed: Cluster) -> None:
    [pod] = get(installed, "pods", "-l", "app.kubernetes.io/name=cronwright")["items"]
    assert pod["status"]["phase"] == "Running"
    loose = ("run", "loose", "--image=loose", "--dry-run=server")
    refused = installed.kubectl(*loose, check=False, namespace=HOME)
    assert 'violates PodSecurity "restricted' in refused.stderr


def test_the_notes_start_a_first_schedule_when_pasted(installed: Cluster, team: str) -> None:
    notes = installed.helm("get", "notes", "cronwright", namespace=HOME).stdout
    begin, end = notes.index("kubectl apply"), notes.index("\nYAML\n") + len("\nYAML\n")
    environment = {
        **os.environ,
        "KUBECONFIG": str(installed.kubeconfig),
        "PATH": f"{installed.state.bin}:{os.environ['PATH']}",
    }
    pasted = f'kubectl() {{ command kubectl --namespace {team} "$@"; }}\n{notes[begin:end]}'
    subprocess.run(["bash", "-ec", pasted], env=environment, check=True, capture_output=True)
    assert get(installed, "ts", "hello", namespace=team)["spec"]["schedule"]["interval"] == "30s"


def test_an_upgrade_upgrades_the_crds_and_the_pods(strict: Cluster, tmp_path: Path) -> None:
    old = tmp_path / "cronwright"
    shutil.copytree(CHART, old)
    crd = old / "templates/crds/taskschedules.cronwright.dev.yaml"
    crd.write_text(crd.read_text().replace("name: Failures", "name: Failed"))
    try:
        strict.helm("install", "cronwright", str(old), "--wait", namespace=HOME)
        assert "Failed" in columns(strict)
        strict.helm("upgrade", "cronwright", str(CHART), "--set", "replicas=2", "--wait", namespace=HOME)
        assert "Failures" in columns(strict)
        assert "Failed" not in columns(strict)
        assert get(strict, "deployment", "cronwright")["status"]["readyReplicas"] == 2
    finally:
        remove(strict)


def columns(cluster: Cluster) -> list[str]:
    [version] = get(cluster, "crd", "taskschedules.cronwright.dev")["spec"]["versions"]
    return [column["name"] for column in version["additionalPrinterColumns"]]


def test_schedules_outlive_the_release_and_are_found_by_the_next(installed: Cluster, team: str) -> None:
    first = str(CHECKOUT / "examples/first.yaml")
    installed.kubectl("apply", "-f", first, namespace=team)
    uid = get(installed, "ts", "hello", namespace=team)["metadata"]["uid"]
    installed.helm("uninstall", "cronwright", "--wait", namespace=HOME)
    own = "all,role,rolebinding,serviceaccount,clusterrole,clusterrolebinding"
    eventually(lambda: "cronwright" not in installed.kubectl("get", own, "-o", "name", namespace=HOME).stdout)
    assert crds(installed) == CRDS
    installed.helm("install", "cronwright", str(CHART), "--wait", namespace=HOME)
    assert get(installed, "ts", "hello", namespace=team)["metadata"]["uid"] == uid


def test_the_crds_go_with_the_release_if_told_so(strict: Cluster) -> None:
    try:
        strict.helm("install", "cronwright", str(CHART), "--set", "crds.keep=false", "--wait", namespace=HOME)
        assert crds(strict) == CRDS
        strict.helm("uninstall", "cronwright", "--wait", namespace=HOME)
        assert crds(strict) == []
    finally:
        remove(strict)


@pytest.mark.parametrize(("where", "rights"), [("default", EVERYWHERE), (HOME, AT_HOME)], ids=["everywhere", "at-home"])
def test_the_operator_may_do_this_and_nothing_else(installed: Cluster, where: str, rights: dict[str, str]) -> None:
    anybody = f"system:serviceaccount:{HOME}:nobody"

    def check() -> bool:
        own = granted(installed, ACCOUNT, where) - granted(installed, anybody, where)
        assert own == pairs(rights)
        return True

    eventually(check)


def test_the_operator_may_not_do_these(installed: Cluster) -> None:
    """The list above, read from the other side, by the API server's own judgement."""

    def may(what: str) -> bool:
        verb, kind = what.split()
        resource, _, sub = kind.partition("/")
        line = ("auth", "can-i", verb, resource, f"--as={ACCOUNT}", *([f"--subresource={sub}"] if sub else []))
        return installed.kubectl(*line, check=False, namespace="default").stdout.strip() != "no"

    eventually(lambda: may("list pods"))
    assert [what for what in FORBIDDEN if may(what)] == []


def test_the_operator_may_block_the_deletion_of_a_schedule(installed: Cluster, team: str) -> None:
    installed.kubectl("apply", "-f", str(CHECKOUT / "examples/first.yaml"), namespace=team)
    owner = {
        "apiVersion": "cronwright.dev/v1alpha1",
        "kind": "TaskSchedule",
        "name": "hello",
        "uid": get(installed, "ts", "hello", namespace=team)["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "claim", "ownerReferences": [owner]},
    }
    line = ("create", f"--as={ACCOUNT}", "-f", "-")
    eventually(lambda: installed.kubectl(*line, input=json.dumps(lease), check=False, namespace=team).stdout)


def test_the_roles_of_a_namespace_cover_its_schedules(installed: Cluster, team: str) -> None:
    reading, writing = {"get", "list", "watch"}, {"create", "update", "patch", "delete", "deletecollection"}
    expected = {"view": reading, "edit": reading | writing, "admin": reading | writing}
    for role in expected:
        subject = f"--serviceaccount={team}:{role}"
        installed.kubectl("create", "rolebinding", role, f"--clusterrole={role}", subject, namespace=team)

    def check() -> bool:
        for role, verbs in expected.items():
            rights = granted(installed, f"system:serviceaccount:{team}:{role}", team)
            ours = {(what, verb) for what, verb in rights if "cronwright.dev" in what}
            assert ours == {(kind, verb) for kind in CRDS for verb in verbs}, role
        return True

    eventually(check)


def test_a_token_of_the_charts_account_is_enough_to_see_schedules(strict: Cluster, team: str) -> None:
    try:
        token = install_rbac(strict, team)
        connection = (f"--server={strict.server}", f"--certificate-authority={strict.authority}", f"--token={token}")
        alone = ("-A", "--kubeconfig=/dev/null", *connection)
        assert strict.kubectl("get", "ts", *alone).returncode == 0
        assert "cannot list resource" in strict.kubectl("get", "secrets", *alone, check=False).stderr
    finally:
        remove(strict)
