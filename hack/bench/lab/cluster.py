"""The one cluster that a benchmark runs on, from its start to its end, also when the end is a Ctrl-C.

What differs between contestants are flags of its parts: the controller-manager as shipped or tuned, the API server
with or without an audit log. A flag that changes restarts its part and nothing else. Every process that a benchmark
starts is registered with the cluster, so that whatever ends the benchmark ends all of them.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.bench.lab import manifests
from hack.bench.lab.api import Api
from hack.bench.lab.errors import BenchError
from hack.cluster import control_plane, parts, processes
from hack.cluster.folder import CHECKOUT, Folder

DEFAULT = CHECKOUT / "build" / "bench"
SYSTEM = "cronwright-system"
ACCOUNT = "cronwright"
OPERATOR_USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
CRONJOB_USER = "system:serviceaccount:kube-system:cronjob-controller"

# Written out although they are the defaults: a part that has been given flags gets its own back only by name.
SHIPPED = ["--kube-api-qps=20", "--kube-api-burst=30", "--concurrent-cron-job-syncs=5"]
TUNED = ["--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-cron-job-syncs=64"]
_UNAUDITED = ["--audit-log-maxsize=100"]

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [OPERATOR_USER, CRONJOB_USER]}, {"level": "None"}],
}
_PATIENCE = 60.0


@dataclass(frozen=True)
class Lab:
    folder: Folder

    @property
    def server(self) -> str:
        state = self.folder.load()
        if state is None:
            raise BenchError(f"No cluster in {self.folder.root}: it was taken down while the benchmark ran.")
        return f"https://127.0.0.1:{state.ports['apiserver']}"

    @property
    def api(self) -> Api:
        return Api(self.server, self.folder.certs)

    @property
    def operator_kubeconfig(self) -> Path:
        return self.folder.data / "operator.kubeconfig"

    @property
    def operator_token(self) -> Path:
        return self.folder.data / "operator.token"

    @property
    def audit_log(self) -> Path:
        return self.folder.data / "audit.log"

    def start(self) -> None:
        self._up({"apiserver": _UNAUDITED, "controller-manager": TUNED})

    def tune(self, flags: list[str]) -> None:
        """Restart the controller-manager with these flags, unless it has them."""
        self._up({"controller-manager": flags})

    def audit(self, wanted: bool) -> None:
        """Let the API server note each request of the contestants, or not."""
        policy = self.folder.data / "audit-policy.json"
        policy.write_text(json.dumps(_POLICY))
        audited = [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}", "--audit-log-maxsize=0"]
        self._up({"apiserver": audited if wanted else _UNAUDITED})

    def restart_apiserver(self) -> None:
        """So that every watch has to be begun anew: what is written to etcd while it is down lies between the place of
        each and the first that the new one knows. It is not an object, so nobody else takes notice."""
        state = self.folder.load()
        assert state is not None
        with self.folder.locked():
            processes.stop(self.folder.pids, "apiserver")
            body = json.dumps({"key": base64.b64encode(b"bench").decode()}).encode()
            urllib.request.urlopen(f"http://127.0.0.1:{state.ports['etcd']}/v3/kv/put", body, timeout=30).close()
            control_plane.restart(self.folder, state, "apiserver")

    def _up(self, arguments: dict[str, list[str]]) -> None:
        with self.folder.locked():
            control_plane.up(self.folder, parts.build(), nodes=1, arguments=arguments)

    def clean(self) -> None:
        """Remove what a contestant left, causes before effects, and wait until it is gone."""
        api = self.api
        for path in (
            manifests.SCHEDULES,
            manifests.CRONJOBS,
            manifests.JOBS,
            manifests.PODS,
            manifests.LEASES,
            manifests.EVENTS,
        ):
            api.remove(path)
        self.run("kubectl", "delete", "namespace", "--selector", f"{manifests.MARK}={manifests.LONE}")

    def open_namespace(self, name: str, *, pods: bool) -> None:
        """One more, with a template like that of the others."""
        self.api.create(manifests.NAMESPACES, [manifests.lone_namespace(name)])
        template = manifests.task_template(pods=pods, namespace=name)
        self.api.create(manifests.within(name, manifests.TEMPLATES), [template])

    def task(self, *, pods: bool) -> None:
        """The template that all schedules share, with pods or without."""
        self.api.remove(manifests.TEMPLATES)
        self.api.create(manifests.TEMPLATES, [manifests.task_template(pods=pods)])

    def run(self, program: str, *arguments: str, text: str | None = None) -> str:
        state = self.folder.load()
        assert state is not None
        environment = {**os.environ, "KUBECONFIG": str(self.folder.kubeconfig)}
        line = [str(Path(state.bin) / program), *arguments]
        done = subprocess.run(line, input=text, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"{program} {' '.join(arguments)} failed:\n{done.stderr.strip()}")
        return done.stdout

    def install(self) -> None:
        """Our two kinds, a namespace to work in, and the chart's own rights for the operator."""
        crds = str(CHECKOUT / "crds")
        self.run("kubectl", "apply", "--server-side", "-f", crds)
        self.run("kubectl", "wait", "--for=condition=Established", "--timeout=120s", "-f", crds)
        for namespace in (manifests.NAMESPACE, SYSTEM):
            self.run("kubectl", "create", "namespace", namespace)
        shown = [part for file in ("serviceaccount", "rbac") for part in ("--show-only", f"templates/{file}.yaml")]
        chart = str(CHECKOUT / "charts" / "cronwright")
        rights = self.run("helm", "template", ACCOUNT, chart, "--namespace", SYSTEM, *shown)
        self.run("kubectl", "apply", "-f", "-", text=rights)
        token = self.run("kubectl", "create", "token", ACCOUNT, "-n", SYSTEM, "--duration=24h").strip()
        self.operator_token.write_text(token)
        self.operator_kubeconfig.write_text(json.dumps(self._kubeconfig(token)))
        self._await_rights()

    def _kubeconfig(self, token: str) -> manifests.Json:
        cluster = {"server": self.server, "certificate-authority": str(self.folder.certs / "ca.crt")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": "operator", "user": {"token": token}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "operator"}}],
            "current-context": "bench",
        }

    def _await_rights(self) -> None:
        """The API server's authorizer learns of a new binding a moment later."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.run("kubectl", "get", "taskschedules,tasktemplates", "-A", f"--as={OPERATOR_USER}")
                return
            except BenchError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


@contextmanager
def open_lab(root: Path, *, keep: bool = False) -> Iterator[Lab]:
    """A fresh cluster with our kinds installed; taken down in the end, whatever the end is."""
    folder = Folder(root.expanduser().resolve())
    lab = Lab(folder)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with folder.locked():
            control_plane.down(folder)
        lab.start()
        lab.install()
        yield lab
    finally:
        if keep:
            print(f"The cluster is left running: python3 hack/cluster down --dir {root}", file=sys.stderr)
        else:
            with folder.locked():
                control_plane.down(folder)
        signal.signal(signal.SIGTERM, previous)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
