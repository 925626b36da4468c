"""The embedded cluster is a real one: what other integration tests conclude from it is true of Kubernetes."""

import json
import os
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hack.cluster import parts, processes
from hack.cluster.control_plane import PARTS
from hack.cluster.folder import Folder, free_ports
from hack.cluster.golang import parse_version, required_version
from tests.integration.support import Cluster, eventually, run_cluster

PREFIX = "cluster.cronwright.dev"


def job(name: str, annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    notes = {f"{PREFIX}/{key}": value for key, value in annotations.items()}
    container = {"name": "main", "image": "registry.invalid/no/such:image"}
    restart = spec.pop("restartPolicy", "Never")
    template = {
        "metadata": {"annotations": notes},
        "spec": {"restartPolicy": restart, "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": template, **spec},
    }


def apply(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    # A namespace's service account follows it a moment later, and pods cannot be created before.
    eventually(lambda: cluster.kubectl("get", "serviceaccount", "default", check=False, namespace=namespace).stdout)
    cluster.kubectl("apply", "-f", "-", input=json.dumps(listed), namespace=namespace)


def get(cluster: Cluster, namespace: str, *what: str) -> Any:
    return json.loads(cluster.kubectl("get", *what, "-o", "json", namespace=namespace).stdout)


def outcome(job: dict[str, Any]) -> str | None:
    """Complete, Failed, or None while it runs."""
    for condition in job["status"].get("conditions", []):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["type"])
    return None


class Fleet:
    """One Job for each behaviour, all started at once: together they take as long as the slowest."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def finished(self, name: str) -> dict[str, Any]:
        def check() -> Any:
            found = get(self.cluster, self.namespace, "job", name)
            return found if outcome(found) else None

        result: dict[str, Any] = eventually(check)
        return result

    def pod(self, name: str) -> dict[str, Any]:
        selector = f"batch.kubernetes.io/job-name={name}"
        pods: list[dict[str, Any]] = get(self.cluster, self.namespace, "pods", "-l", selector)["items"]
        assert len(pods) == 1, f"{name} has {len(pods)} pods"
        return pods[0]

    def terminated(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = self.pod(name)["status"]["containerStatuses"][0]["state"]["terminated"]
        return state


@pytest.fixture(scope="module")
def fleet(cluster: Cluster) -> Fleet:
    namespace = "fleet"
    cluster.kubectl("create", "namespace", namespace)
    on_exit_3 = {
        "rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [3]}},
        ]
    }
    apply(
        cluster,
        namespace,
        job("plain", {}),
        job("long", {"run-for": "3s"}),
        job("message", {"termination-message": 'rows: 12\n"quoted"'}),
        job("exit", {"exit-code": "3", "termination-message": "no such table"}),
        job("oom", {"behaviour": "OOMKilled"}),
        job("evicted", {"behaviour": "Evicted"}),
        job("pending", {"behaviour": "Pending"}),
        job("pull", {"behaviour": "ImagePullBackOff"}),
        job("never", {"behaviour": "NeverStart"}),
        job("hang", {"behaviour": "Hang", "run-for": "1ms"}),
        job("policy", {"exit-code": "3"}, backoffLimit=6, podFailurePolicy=on_exit_3),
        job("restarts", {"exit-code": "5", "run-for": "1ms"}, backoffLimit=1, restartPolicy="OnFailure"),
    )
    return Fleet(cluster, namespace)


def test_every_part_reports_the_version_that_go_mod_pins(cluster: Cluster) -> None:
    versions = json.loads(cluster.kubectl("version", "-o", "json").stdout)
    assert versions["clientVersion"]["gitVersion"] == parts.kubernetes_version()
    assert versions["serverVersion"]["gitVersion"] == parts.kubernetes_version()
    assert cluster.helm("version", "--short").stdout.startswith(parts.module_version("helm.sh/helm/v4"))


def test_up_says_that_a_healthy_cluster_is_up_already(cluster: Cluster) -> None:
    said = run_cluster(cluster.dir, "up").stdout
    assert "Already up" in said
    assert str(cluster.kubeconfig) in said


def test_status_lists_every_part_as_up(cluster: Cluster) -> None:
    rows = run_cluster(cluster.dir, "status").stdout.splitlines()[1:]
    assert {row.split()[0]: row.split()[1] for row in rows} == dict.fromkeys(PARTS, "up")


def test_env_is_for_the_shell(cluster: Cluster) -> None:
    printed = run_cluster(cluster.dir, "env").stdout
    script = 'eval "$0"; kubectl config view -o jsonpath={..server}'
    done = subprocess.run(["sh", "-c", script, printed], capture_output=True, text=True, check=True)
    assert done.stdout == cluster.server


def test_a_service_account_without_a_role_is_refused(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "serviceaccount", "nobody", namespace=namespace)
    token = cluster.kubectl("create", "token", "nobody", namespace=namespace).stdout.strip()

    def ask() -> int:
        url = f"{cluster.server}/api/v1/namespaces/{namespace}/configmaps"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        try:
            context = ssl.create_default_context(cafile=str(cluster.authority))
            with urllib.request.urlopen(request, context=context) as response:
                return int(response.status)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code

    assert ask() == 403
    subject = f"--serviceaccount={namespace}:nobody"
    cluster.kubectl("create", "rolebinding", "look", "--clusterrole=view", subject, namespace=namespace)
    assert eventually(lambda: ask() == 200)


def test_a_job_succeeds_by_default(fleet: Fleet) -> None:
    assert outcome(fleet.finished("plain")) == "Complete"
    ended = fleet.terminated("plain")
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert "message" not in ended


def test_run_for_is_how_long_the_container_runs(fleet: Fleet) -> None:
    assert outcome(fleet.finished("long")) == "Complete"
    ended = fleet.terminated("long")
    took = datetime.fromisoformat(ended["finishedAt"]) - datetime.fromisoformat(ended["startedAt"])
    assert took.total_seconds() >= 3


def test_a_termination_message_arrives_as_it_was_written(fleet: Fleet) -> None:
    assert outcome(fleet.finished("message")) == "Complete"
    assert fleet.terminated("message")["message"] == 'rows: 12\n"quoted"'


def test_an_exit_code_fails_the_job(fleet: Fleet) -> None:
    assert outcome(fleet.finished("exit")) == "Failed"
    ended = fleet.terminated("exit")
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "no such table")
    assert ended["startedAt"] <= ended["finishedAt"]
    assert fleet.pod("exit")["status"]["phase"] == "Failed"


def test_an_oom_kill_looks_like_one(fleet: Fleet) -> None:
    assert outcome(fleet.finished("oom")) == "Failed"
    ended = fleet.terminated("oom")
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_an_eviction_is_the_pods_reason(fleet: Fleet) -> None:
    assert outcome(fleet.finished("evicted")) == "Failed"
    status = fleet.pod("evicted")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert "low on resource" in status["message"]


@pytest.mark.parametrize(
    ("name", "waiting"), [("pull", "ImagePullBackOff"), ("never", "ContainerCreating")], ids=["pull", "never"]
)
def test_a_pod_can_be_stuck_before_it_starts(fleet: Fleet, name: str, waiting: str) -> None:
    def check() -> bool:
        status = fleet.pod(name)["status"]
        assert status["phase"] == "Pending"
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == waiting
        return True

    eventually(check)


def test_a_pod_can_be_scheduled_and_then_ignored(fleet: Fleet) -> None:
    fleet.finished("long")  # by now its kubelet would have done something, if it were to
    pod = fleet.pod("pending")
    assert pod["spec"]["nodeName"]
    assert pod["status"]["phase"] == "Pending"
    assert "containerStatuses" not in pod["status"]


def test_a_pod_can_hang(fleet: Fleet) -> None:
    fleet.finished("long")
    assert outcome(get(fleet.cluster, fleet.namespace, "job", "hang")) is None
    assert fleet.pod("hang")["status"]["phase"] == "Running"


def test_a_pod_failure_policy_sees_the_exit_code(fleet: Fleet) -> None:
    failed = fleet.finished("policy")
    reasons = [c["reason"] for c in failed["status"]["conditions"] if c["type"] == "Failed"]
    assert reasons == ["PodFailurePolicy"]


def test_a_container_is_restarted_on_failure_until_the_backoff_limit(fleet: Fleet) -> None:
    failed = fleet.finished("restarts")
    reasons = [c["reason"] for c in failed["status"]["conditions"] if c["type"] == "Failed"]
    assert reasons == ["BackoffLimitExceeded"]


def test_a_deleted_job_takes_its_running_pod_along(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, job("hang", {"behaviour": "Hang", "stop-after": "1h"}))
    eventually(lambda: "Running" in cluster.kubectl("get", "pods", namespace=namespace).stdout)
    cluster.kubectl("delete", "job", "hang", "--wait=false", "--cascade=foreground", namespace=namespace)

    def terminating() -> bool:
        pods = get(cluster, namespace, "pods")["items"]
        return bool(pods) and "deletionTimestamp" in pods[0]["metadata"]

    eventually(terminating)
    cluster.kubectl("annotate", "pods", "--all", "--overwrite", f"{PREFIX}/stop-after=1ms", namespace=namespace)
    eventually(lambda: not get(cluster, namespace, "jobs,pods")["items"])


def test_a_pod_of_no_job_simply_runs(cluster: Cluster, namespace: str) -> None:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": pod}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    apply(cluster, namespace, deployment)
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s", namespace=namespace)


@pytest.mark.parametrize("part", ["apiserver", "etcd"])
def test_a_part_that_is_killed_comes_back_on_its_port_with_its_data(
    cluster: Cluster, namespace: str, part: str
) -> None:
    before = cluster.server
    cluster.kubectl("create", "configmap", "kept", namespace=namespace)
    cluster.restart(part, kill=True)
    assert cluster.server == before
    found = eventually(lambda: cluster.kubectl("get", "configmap", "kept", check=False, namespace=namespace).stdout)
    assert "kept" in found


def test_up_starts_what_died(cluster: Cluster) -> None:
    run_cluster(cluster.dir, "stop", "scheduler", "--kill")
    assert run_cluster(cluster.dir, "status", check=False).returncode == 1
    assert "Already up" not in run_cluster(cluster.dir, "up").stdout
    assert run_cluster(cluster.dir, "status").returncode == 0


def test_a_second_cluster_stands_beside_the_first_and_down_leaves_no_process(cluster: Cluster, tmp_path: Path) -> None:
    second = Cluster.start(tmp_path / "second", "--nodes", "2", "--apiserver-arg=--max-requests-inflight=50")
    try:
        assert second.server != cluster.server
        assert len(get(second, "default", "nodes")["items"]) == 2
        assert len(get(cluster, "default", "nodes")["items"]) == 1
        ran = [processes.find(Folder(second.dir).pids, part) for part in processes.names(Folder(second.dir).pids)]
        sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        ran.append(processes.register(Folder(second.dir).pids, "operator", sleeper.pid))
    finally:
        second.stop()
    sleeper.wait()
    assert len(ran) == 6
    assert [process for process in ran if process is None or process.alive()] == []
    assert not (second.dir / "data").exists()
    assert run_cluster(cluster.dir, "status").returncode == 0


def test_a_part_that_dies_at_start_shows_its_log(tmp_path: Path) -> None:
    try:
        done = run_cluster(tmp_path, "up", "--apiserver-arg=--no-such-flag", check=False)
    finally:
        run_cluster(tmp_path, "down")
    assert done.returncode == 1
    assert "apiserver died" in done.stderr
    assert "unknown flag: --no-such-flag" in done.stderr


def test_chosen_ports_are_free_and_differ() -> None:
    names = [str(number) for number in range(50)]
    ports = free_ports(names)
    assert len(set(ports.values())) == len(names)
    for port in ports.values():
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_a_taken_port_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        other = free_ports(["other"])["other"]
        monkeypatch.setattr("hack.cluster.folder._PORTS", [taken, other])
        assert free_ports(["only"]) == {"only": other}


def test_a_recycled_pid_is_not_stopped(tmp_path: Path) -> None:
    mine = processes.register(tmp_path, "stranger", os.getpid())
    record = json.dumps({"pid": mine.pid, "began": f"{mine.began}1"})
    (tmp_path / "stranger.pid").write_text(record)
    assert processes.find(tmp_path, "stranger") is None
    assert not processes.stop(tmp_path, "stranger", kill=True)
    assert processes.names(tmp_path) == []


def test_go_is_asked_for_the_version_that_go_mod_needs() -> None:
    assert required_version("module x\n\ngo 1.26.0\n") == (1, 26, 0)
    assert parse_version("go1.26.8") == (1, 26, 8)
    assert parse_version("devel") is None
