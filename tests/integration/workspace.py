"""A namespace as a user works in it: YAML in, `kubectl get` out."""

import json
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.integration.support import Cluster, eventually

Json = dict[str, Any]

# A task that takes a second and succeeds, as every pod of a Job does on the embedded cluster.
HELLO = """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: hello}
spec:
  shell: {script: echo hello}
"""

# One slot, a second or two after the schedule is created, however long its creation takes.
ONE_RUN = "schedule: {interval: 1s}\nmaxRuns: 1"


def schedule(name: str, spec: str, template: str = "hello") -> str:
    """A TaskSchedule; `spec` is the YAML that a user would write below `spec:`, without templateRef."""
    body = textwrap.indent(textwrap.dedent(spec).strip(), "  ")
    head = f"apiVersion: cronwright.dev/v1alpha1\nkind: TaskSchedule\nmetadata: {{name: {name}}}\nspec:\n"
    return f"---\n{head}  templateRef: {{name: {template}}}\n{body}\n"


def template(name: str, spec: str = "", overlay: str = "", **pod: str) -> str:
    """A TaskTemplate whose pods fare as the annotations of hack/cluster/README.md say: `run_for="1h"`.

    `spec` is further YAML below its `spec:`, `overlay` below `spec.shell.pod:`.
    """
    notes = "".join(
        f"        cluster.cronwright.dev/{key.replace('_', '-')}: {json.dumps(value)}\n" for key, value in pod.items()
    )
    head = f"apiVersion: cronwright.dev/v1alpha1\nkind: TaskTemplate\nmetadata: {{name: {name}}}\nspec:\n"
    if spec:
        head += textwrap.indent(textwrap.dedent(spec).strip(), "  ") + "\n"
    if overlay:
        notes += textwrap.indent(textwrap.dedent(overlay).strip(), "      ") + "\n"
    notes = notes or "        {}\n"
    return f"---\n{head}  shell:\n    script: echo {name}\n    pod:\n      annotations:\n{notes}"


def in_seconds(seconds: float) -> str:
    """A time that lies ahead, as one writes it into a manifest."""
    return datetime.fromtimestamp(int(time.time() + seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Workspace:
    cluster: Cluster
    namespace: str

    def apply(self, *manifests: str) -> None:
        self.cluster.kubectl("apply", "-f", "-", input="\n---\n".join(manifests), namespace=self.namespace)

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(*arguments, namespace=self.namespace).stdout

    def get(self, kind: str, name: str) -> Json:
        found: Json = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return found

    def all(self, kind: str, *arguments: str) -> list[Json]:
        found: list[Json] = json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"]
        return found

    def patch(self, kind: str, name: str, patch: Json) -> None:
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    def ask(self, name: str, request: str, **fields: Any) -> None:
        """Make a request of a schedule, as one does by hand."""
        self.kubectl("annotate", "ts", name, f"request.cronwright.dev/{request}={json.dumps(fields)}")

    def asked(self, name: str) -> set[str]:
        """The requests that have not been taken away yet."""
        notes = self.get("ts", name)["metadata"].get("annotations", {})
        return {key.split("/")[1] for key in notes if key.startswith("request.cronwright.dev/")}

    def answer(self, name: str, request: str) -> Json:
        """What came of a request, once it is known and its annotation is gone."""
        status = self.until(name, lambda s: any(r["id"] == request for r in s.get("requests", [])))
        eventually(lambda: request not in self.asked(name))
        [found] = [r for r in status["requests"] if r["id"] == request]
        assert isinstance(found, dict)
        return found

    def status(self, name: str, kind: str = "ts") -> Json:
        """Empty as long as the operator has not seen this generation."""
        found = self.get(kind, name)
        status: Json = found.get("status", {})
        return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}

    def condition(self, name: str, kind: str = "ts", type: str = "Ready") -> Json:
        """One condition; empty when it is not there."""
        found = [c for c in self.status(name, kind).get("conditions", []) if c["type"] == type]
        return found[0] if found else {}

    def jobs(self, name: str) -> list[Json]:
        """The Jobs of a schedule, by slot and attempt."""
        found = self.all("jobs", "-l", f"cronwright.dev/schedule={name}")
        return sorted(found, key=lambda job: (slot(job), attempt(job)))

    def events(self, name: str, kind: str = "TaskSchedule") -> list[tuple[str, str, str]]:
        selector = f"involvedObject.name={name},involvedObject.kind={kind}"
        found = self.all("events", f"--field-selector={selector}")
        ordered = sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])
        return [(event["type"], event["reason"], event["message"]) for event in ordered]

    def until(self, name: str, check: Callable[[Json], Any], kind: str = "ts") -> Json:
        """The status of a schedule once it is as `check` wants it."""

        def look() -> Json | None:
            status = self.status(name, kind)
            assert status, "the operator has not seen it yet"
            assert check(status), json.dumps(status, indent=1)
            return status

        found = eventually(look)
        assert found is not None
        return found


def moment(text: str) -> float:
    """A time of a status or an object's metadata, as unix seconds."""
    return datetime.fromisoformat(text).timestamp()


def created(job: Json) -> float:
    return moment(job["metadata"]["creationTimestamp"])


def finished(job: Json) -> float:
    """When a Job succeeded or failed."""
    [end] = [c for c in job["status"]["conditions"] if c["type"] in ("Complete", "Failed")]
    return moment(end["lastTransitionTime"])


def slot(job: Json) -> int:
    return int(job["metadata"]["annotations"]["cronwright.dev/slot"])


def attempt(job: Json) -> int:
    return int(job["metadata"]["annotations"]["cronwright.dev/attempt"])


def environment(job: Json) -> dict[str, str]:
    [container] = job["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}
