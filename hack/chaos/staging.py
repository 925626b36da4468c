"""The stage: a cluster of its own with an audit log, the chart's rights, the replicas, and the schedules."""

import os
import subprocess
from pathlib import Path

from hack.chaos import audit, fleet
from hack.chaos.api import OURS, Person
from hack.chaos.errors import ChaosError
from hack.chaos.replicas import Replica, Settings, token_id, write_kubeconfig
from hack.cluster import cli as cluster
from hack.cluster.folder import CHECKOUT, Folder, State

NAMESPACE = "chaos"
_CHART = CHECKOUT / "charts" / "cronwright"
_RIGHTS = ("serviceaccount.yaml", "rbac.yaml")


def audit_log(folder: Folder) -> Path:
    return folder.logs / "audit.log"


def start_cluster(folder: Folder) -> State:
    """Fresh: one that was left over in the folder goes first."""
    cluster.main(["down", "--dir", str(folder.root)])
    folder.root.mkdir(parents=True, exist_ok=True)
    policy = audit.write_policy(folder.root / "audit-policy.json", NAMESPACE)
    audit_log(folder).unlink(missing_ok=True)
    unthrottled = [f"--controller-manager-arg=--kube-api-{limit}" for limit in ("qps=500", "burst=1000")]
    arguments = [*audit.arguments(policy, audit_log(folder)), *unthrottled]
    if cluster.main(["up", "--dir", str(folder.root), *arguments]):
        raise ChaosError("The cluster did not start.")
    state = folder.load()
    assert state is not None
    return state


def install(folder: Folder, state: State, person: Person) -> None:
    """The two kinds, and the rights that the chart gives: one that is missing there is missing here."""
    person.create("/api/v1", "", "namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
    only = [argument for file in _RIGHTS for argument in ("--show-only", f"templates/{file}")]
    named = ("--set", f"fullnameOverride={NAMESPACE}", "--namespace", NAMESPACE)
    rights = _run(folder, state, "helm", "template", "cronwright", str(_CHART), *only, *named)
    _run(folder, state, "kubectl", "apply", "--server-side", "-f", str(CHECKOUT / "crds"))
    _run(folder, state, "kubectl", "wait", "--for=condition=Established", "-f", str(CHECKOUT / "crds"))
    _run(folder, state, "kubectl", "apply", "-f", "-", text=rights)


def make_replicas(
    folder: Folder, state: State, person: Person, names: list[str], settings: Settings
) -> tuple[dict[str, Replica], dict[str, str]]:
    """The replicas, not started yet, and whose token is whose."""
    replicas: dict[str, Replica] = {}
    actors: dict[str, str] = {}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAMESPACE}/token"
    for name in names:
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
        token = person.post(path, asked)["status"]["token"]
        actors[token_id(token)] = name
        replicas[name] = Replica(name, folder, write_kubeconfig(folder, state, name, token), settings)
    return replicas, actors


def create_schedules(person: Person, planned: list[fleet.Planned]) -> None:
    for template in fleet.templates():
        person.create(OURS, NAMESPACE, "tasktemplates", template)
    for schedule in planned:
        person.create(OURS, NAMESPACE, "taskschedules", fleet.manifest(schedule))


def _run(folder: Folder, state: State, program: str, *arguments: str, text: str | None = None) -> str:
    environment = {**os.environ, "KUBECONFIG": str(folder.kubeconfig)}
    line = [str(Path(state.bin) / program), *arguments]
    done = subprocess.run(line, input=text, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise ChaosError(f"{program} {' '.join(arguments)} exited with {done.returncode}: {done.stderr}")
    return done.stdout
