"""The API server's audit log: the truth about what was created and deleted, by whom, and what the ledgers said then.

A watch cannot see a Job that came and went while it was down; the audit log can. The one thing that it may lack is the
last request before the API server itself was killed, done but not yet logged: the recorder's watch sees that one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

LEDGER = "cronwright.dev/ledger"


@dataclass(frozen=True)
class Entry:
    """One request that was answered."""

    at: float
    actor: str
    """A replica's name, or the user as Kubernetes knows it."""
    verb: str
    resource: str
    name: str
    code: int
    uid: str
    """Of what was created."""
    request: Json

    @property
    def done(self) -> bool:
        return 200 <= self.code < 300

    @property
    def ledger(self) -> Json | None:
        """What a claim Lease was written with."""
        text = ((self.request.get("metadata") or {}).get("annotations") or {}).get(LEDGER)
        return json.loads(text) if text else None

    @property
    def schedule(self) -> str:
        """The schedule that it is about, as far as it is a replica's work for one."""
        if self.resource == "leases":
            return self.name.rpartition("-claim-")[0]
        if (self.verb, self.resource) == ("create", "jobs"):
            [owner] = self.request["metadata"].get("ownerReferences") or [{"name": ""}]
            return str(owner["name"])
        return self.name if self.resource == "taskschedules/status" else ""

    def said(self) -> str:
        """One line for a person who looks for the cause of something."""
        text = f"{datetime.fromtimestamp(self.at).time()} {self.actor:8} {self.verb} {self.resource} {self.name}"
        text += f" -> {self.code}"
        if self.ledger:
            text += f" {json.dumps(self.ledger)}"
        told = [record["name"] for record in (self.request.get("status") or {}).get("recentRuns") or ()]
        if told:
            text += f" tells of {', '.join(told[:3])}"
        return text


def write_policy(path: Path, namespace: str) -> Path:
    """Little more than what is counted: the log is written while the API server is under load."""
    ours = [namespace]
    changes = ["create", "update", "patch", "delete"]
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [
            {
                "level": "RequestResponse",
                "namespaces": ours,
                "verbs": ["create"],
                "resources": [{"group": "batch", "resources": ["jobs"]}],
            },
            {
                "level": "Request",
                "namespaces": ours,
                "verbs": changes,
                "resources": [
                    {"group": "batch", "resources": ["jobs"]},
                    {"group": "coordination.k8s.io", "resources": ["leases"]},
                    {"group": "cronwright.dev", "resources": ["taskschedules/status"]},
                ],
            },
            {"level": "None"},
        ],
    }
    path.write_text(json.dumps(policy))
    return path


def arguments(policy: Path, log: Path) -> list[str]:
    return [
        f"--apiserver-arg=--audit-policy-file={policy}",
        f"--apiserver-arg=--audit-log-path={log}",
        "--apiserver-arg=--audit-log-maxsize=4000",  # megabytes: never rotated
    ]


def read(log: Path, actors: dict[str, str]) -> Iterator[Entry]:
    """Each request, in the order of their answers; `actors` names those who are known by their tokens."""
    with log.open(errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # half a line: the API server was killed while it wrote
            if "dryRun" not in event["requestURI"]:
                yield _entry(event, actors)


def _entry(event: Json, actors: dict[str, str]) -> Entry:
    user, about = event["user"], event.get("objectRef") or {}
    [token] = (user.get("extra") or {}).get("authentication.kubernetes.io/credential-id") or [""]
    made = event.get("responseObject") or {}
    sub = f"/{about['subresource']}" if "subresource" in about else ""
    return Entry(
        at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        actor=actors.get(token, user["username"]),
        verb=event["verb"],
        resource=about.get("resource", "") + sub,
        name=about.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        uid=(made.get("metadata") or {}).get("uid", ""),
        request=event.get("requestObject") or {},
    )
