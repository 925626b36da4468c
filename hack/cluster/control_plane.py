"""The processes of a real control plane on loopback, with kwok in the place of kubelets.

Everything that Kubernetes decides is decided here by its own code: admission, RBAC, the Job, CronJob, garbage
collection, TTL and namespace controllers, the scheduler. Only the containers are pretended (stages.yaml).

`up` is a repair: it starts whatever is not running and waits until the cluster is usable, whether that is all
of it or one part that died. Ports are chosen once and kept, so a part that restarts is found where it was.
"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import kubeconfig, parts, processes
from hack.cluster.api import Api, UnansweredError, healthy
from hack.cluster.errors import ClusterError
from hack.cluster.folder import Folder, State, free_ports

# In the order they start; they stop in reverse.
PARTS = ("etcd", "apiserver", "controller-manager", "scheduler", "kwok")
_PORTS = [*PARTS, "etcd-peer"]
_CLIENTS = ("controller-manager", "scheduler", "kwok")
_PATIENCE = 180.0  # for one part to get healthy; far more than any machine needs
_POLL = 0.05
_ATTEMPTS = 3


class PortTakenError(ClusterError):
    """Somebody took a port between its choice and its use."""


@dataclass(frozen=True)
class Health:
    name: str
    pid: int | None
    port: int | None
    state: str  # up, down or unhealthy


def up(folder: Folder, built: parts.Parts, *, nodes: int | None, arguments: dict[str, list[str]]) -> bool:
    """Make the cluster whole. False when it already was. `arguments` that differ restart their part."""
    for attempt in range(1, _ATTEMPTS + 1):
        fresh = folder.load() is None
        state = folder.load() or _prepare(folder, built)
        try:
            return _repair(folder, state, nodes=nodes, arguments=arguments) or fresh
        except PortTakenError:
            if not fresh or attempt == _ATTEMPTS:
                raise
            down(folder)
    raise AssertionError("unreachable")


def _repair(folder: Folder, state: State, *, nodes: int | None, arguments: dict[str, list[str]]) -> bool:
    state.nodes = nodes or state.nodes
    for part, extra in arguments.items():
        if extra and extra != state.arguments.get(part, []):
            state.arguments[part] = extra
            processes.stop(folder.pids, part)
    folder.save(state)
    changed = False
    for group in (("etcd", "apiserver"), _CLIENTS):
        started = [part for part in group if processes.find(folder.pids, part) is None]
        for part in started:
            _start(folder, state, part)
        for part in group:
            _await_health(folder, state, part)
        changed = changed or bool(started)
    _await_nodes(folder, state)
    return changed


def _prepare(folder: Folder, built: parts.Parts) -> State:
    folder.clear(logs=True)
    folder.logs.mkdir(parents=True, exist_ok=True)
    state = State(bin=str(built.bin), ports=free_ports(_PORTS))
    subprocess.run([built.path("certs"), "-dir", str(folder.certs)], check=True)
    port = state.ports["apiserver"]
    for client in _CLIENTS:
        kubeconfig.write(_client_config(folder, client), certs=folder.certs, user=client, port=port)
    kubeconfig.write(folder.kubeconfig, certs=folder.certs, user="admin", port=port)
    return state


def restart(folder: Folder, state: State, part: str, *, kill: bool = False) -> None:
    """Stop one part and start it again on the same port, with the same data."""
    processes.stop(folder.pids, part, kill=kill)
    _start(folder, state, part)
    _await_health(folder, state, part)


def down(folder: Folder) -> list[str]:
    """Stop every registered process, the clients of the API server before it; the names of those that ran."""
    order = list(reversed(PARTS))
    others = [name for name in processes.names(folder.pids) if name not in order]
    stopped = [name for name in (*others, *order) if processes.stop(folder.pids, name)]
    folder.clear()
    return stopped


def status(folder: Folder, state: State) -> list[Health]:
    others = [name for name in processes.names(folder.pids) if name not in PARTS]
    rows = []
    for name in (*PARTS, *others):
        process = processes.find(folder.pids, name)
        condition = "down" if process is None else "up"
        if process is not None and name in PARTS and not _is_healthy(state, name):
            condition = "unhealthy"
        rows.append(Health(name, process.pid if process else None, state.ports.get(name), condition))
    return rows


def _client_config(folder: Folder, part: str) -> Path:
    return folder.certs / f"{part}.kubeconfig"


def _start(folder: Folder, state: State, part: str) -> None:
    command = _COMMANDS[part](folder, state) + state.arguments.get(part, [])
    processes.start(folder.pids, part, command, folder.log(part))


def _is_healthy(state: State, part: str) -> bool:
    path = {"etcd": "/health", "apiserver": "/readyz"}.get(part, "/healthz")
    return healthy(state.ports[part], path, tls=part not in ("etcd", "kwok"))


def _await_health(folder: Folder, state: State, part: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        # Alive is asked first: another process may answer on the port of one that died.
        if processes.find(folder.pids, part) is None:
            raise _death(folder, part)
        if _is_healthy(state, part):
            return
        if time.monotonic() > deadline:
            raise ClusterError(f"{part} is not healthy after {_PATIENCE:.0f} s. {_tail(folder, part)}")
        time.sleep(_POLL)


def _death(folder: Folder, part: str) -> ClusterError:
    tail = _tail(folder, part)
    kind = PortTakenError if "address already in use" in tail else ClusterError
    return kind(f"{part} died. {tail}")


def _tail(folder: Folder, part: str) -> str:
    log = folder.log(part)
    lines = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
    return "\n".join([f"The last lines of {log}:", *lines])


def _await_nodes(folder: Folder, state: State) -> None:
    """Usable means: pods can be created (the default service account is there) and scheduled."""
    api = Api(state.ports["apiserver"], folder.certs)
    deadline = time.monotonic() + _PATIENCE
    for number in range(1, state.nodes + 1):
        name = f"node-{number}"
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        code, answer = api.request("POST", "/api/v1/nodes", node)
        if code not in (201, 409):
            raise ClusterError(f"{name} could not be created: {answer}")
    while not _is_usable(api, state.nodes):
        if time.monotonic() > deadline:
            raise ClusterError(f"no node is ready after {_PATIENCE:.0f} s. {_tail(folder, 'kwok')}")
        time.sleep(_POLL)


def _is_usable(api: Api, nodes: int) -> bool:
    try:
        code, account = api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
        _, found = api.request("GET", "/api/v1/nodes")
    except UnansweredError:
        return False
    if code != 200 or not isinstance(found, dict):
        return False
    ready = [
        node
        for node in found.get("items", [])
        if not node["spec"].get("taints")
        and any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
    ]
    return len(ready) >= nodes and bool(account)


def _etcd(folder: Folder, state: State) -> list[str]:
    client, peer = (f"http://127.0.0.1:{state.ports[name]}" for name in ("etcd", "etcd-peer"))
    return [
        str(Path(state.bin) / "etcd"),
        f"--data-dir={folder.data / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a cluster that is thrown away need not survive a power cut
        "--quota-backend-bytes=4294967296",
    ]


def _apiserver(folder: Folder, state: State) -> list[str]:
    return [
        str(Path(state.bin) / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{state.ports['etcd']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={state.ports['apiserver']}",
        "--endpoint-reconciler-type=none",  # an Endpoints object may not hold a loopback address
        "--shutdown-send-retry-after=true",  # otherwise a restart waits a minute for open watches to end
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--client-ca-file={folder.certs / 'ca.crt'}",
        f"--tls-cert-file={folder.certs / 'apiserver.crt'}",
        f"--tls-private-key-file={folder.certs / 'apiserver.key'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={folder.certs / 'service-account.pub'}",
        f"--service-account-signing-key-file={folder.certs / 'service-account.key'}",
        f"--proxy-client-cert-file={folder.certs / 'front-proxy.crt'}",
        f"--proxy-client-key-file={folder.certs / 'front-proxy.key'}",
        f"--requestheader-client-ca-file={folder.certs / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]


def _controller_manager(folder: Folder, state: State) -> list[str]:
    return [
        str(Path(state.bin) / "kube-controller-manager"),
        *_served_to(folder, state, "controller-manager"),
        "--use-service-account-credentials=true",
        f"--root-ca-file={folder.certs / 'ca.crt'}",
        f"--service-account-private-key-file={folder.certs / 'service-account.key'}",
        f"--cluster-signing-cert-file={folder.certs / 'ca.crt'}",
        f"--cluster-signing-key-file={folder.certs / 'ca.key'}",
    ]


def _scheduler(folder: Folder, state: State) -> list[str]:
    return [str(Path(state.bin) / "kube-scheduler"), *_served_to(folder, state, "scheduler")]


def _served_to(folder: Folder, state: State, part: str) -> list[str]:
    config = _client_config(folder, part)
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.ports[part]}",
        "--leader-elect=false",  # there is one of each, and a restart need not wait for its own old lease
    ]


def _kwok(folder: Folder, state: State) -> list[str]:
    return [
        str(Path(state.bin) / "kwok"),
        f"--kubeconfig={_client_config(folder, 'kwok')}",
        f"--config={Path(__file__).with_name('stages.yaml')}",
        "--manage-all-nodes=true",
        "--node-ip=127.0.0.1",
        "--cidr=10.128.0.0/9",
        f"--server-address=127.0.0.1:{state.ports['kwok']}",
    ]


_COMMANDS: dict[str, Callable[[Folder, State], list[str]]] = {
    "etcd": _etcd,
    "apiserver": _apiserver,
    "controller-manager": _controller_manager,
    "scheduler": _scheduler,
    "kwok": _kwok,
}
