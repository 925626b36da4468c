"""A Kubernetes API server in memory: what the controller can observe of a real one, and nothing else.

Every operation happens at one instant. Objects are kept as the bytes that were last written, so nobody can change one
by holding on to it; every change gets the next resourceVersion and goes into a bounded history, from which watches
are fed, and beyond which they get a 410. What a person, the garbage collector or the Job controller does goes through
the same operations, so watchers cannot tell who did it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from cronwright.cluster.port import (
    EVENTS,
    JOBS,
    LEASES,
    PODS,
    SCHEDULES,
    TEMPLATES,
    AlreadyExists,
    Conflict,
    Expired,
    Json,
    Listing,
    NotFound,
    Refused,
    Resource,
)

RESOURCES = (SCHEDULES, TEMPLATES, JOBS, LEASES, PODS, EVENTS)
BY_KIND = {resource.kind: resource for resource in RESOURCES}
WITH_STATUS = (SCHEDULES, TEMPLATES, JOBS, PODS)
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Change:
    """One committed write."""

    version: int
    type: ChangeType
    resource: Resource
    obj: Json
    data: bytes
    by: str
    before: Json | None


@dataclass(slots=True)
class Shelf:
    """All objects of one resource, and their recent history."""

    objects: dict[tuple[str, str], tuple[Json, bytes]] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    forgotten: int = 0
    """The latest version whose change is not in the history any more."""


class ApiServer:
    def __init__(self, now: Callable[[], float], draw: random.Random) -> None:
        self._now = now
        self._draw = draw
        self._shelves = {resource: Shelf() for resource in RESOURCES}
        self.version = 1000
        self.listeners: list[Callable[[Change], None]] = []
        """Called after every commit, in this order: the checks, the watches, the other controllers."""

    # Reading

    def list(self, resource: Resource, namespace: str | None = None, selector: str = "") -> Listing:
        wanted = wanted_by(selector)
        items = [
            orjson.loads(data)
            for (space, _), (obj, data) in self._shelves[resource].objects.items()
            if (namespace is None or space == namespace) and selected(obj, wanted)
        ]
        return Listing(items, str(self.version))

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        found: Json = orjson.loads(self._find(resource, namespace, name)[1])
        return found

    def peek(self, resource: Resource) -> Iterable[Json]:
        """All objects as they stand, for the checks; not to be changed."""
        return [obj for obj, _ in self._shelves[resource].objects.values()]

    def since(self, resource: Resource, version: int) -> Iterable[Change]:
        """What a watch from this version would have missed."""
        shelf = self._shelves[resource]
        if version < shelf.forgotten:
            raise Expired(f"too old resource version: {version} ({shelf.forgotten})")
        return [change for change in shelf.history if change.version > version]

    def remembers(self, resource: Resource, version: int) -> bool:
        """Whether a watch can still begin there."""
        return version >= self._shelves[resource].forgotten

    def compact(self, keep: int) -> None:
        """Forget all but the latest changes: older watches will get a 410."""
        for shelf in self._shelves.values():
            for change in shelf.history[: len(shelf.history) - keep]:
                shelf.forgotten = change.version
            shelf.history = shelf.history[-keep:] if keep else []

    def _find(self, resource: Resource, namespace: str, name: str) -> tuple[Json, bytes]:
        found = self._shelves[resource].objects.get((namespace, name))
        if found is None:
            raise NotFound(f'{resource.plural} "{name}" not found')
        return found

    # Writing

    def create(self, resource: Resource, namespace: str, body: Json, *, by: str, dry_run: bool = False) -> Json:
        obj: Json = orjson.loads(orjson.dumps(body))
        meta = obj["metadata"]
        if "name" not in meta:
            meta["name"] = f"{meta['generateName']}{self.version:x}"
        meta["namespace"] = namespace
        if resource is JOBS:
            _admit_job(obj)
        if (namespace, meta["name"]) in self._shelves[resource].objects:
            raise AlreadyExists(f'{resource.plural} "{meta["name"]}" already exists')
        meta["uid"] = f"{self._draw.getrandbits(64):016x}"
        meta["creationTimestamp"] = self.stamp()
        meta["generation"] = 1
        meta.pop("resourceVersion", None)
        if resource in WITH_STATUS:
            obj.pop("status", None)
        self._note_edit(resource, obj, by)
        if dry_run:
            meta["resourceVersion"] = ""
            return obj
        return self._commit("ADDED", resource, obj, by, None)

    def replace(self, resource: Resource, namespace: str, name: str, body: Json, *, by: str) -> Json:
        new: Json = orjson.loads(orjson.dumps(body))
        if resource is LEASES and (namespace, name) not in self._shelves[resource].objects:
            # The real one makes a Lease that it is told to replace and does not have, whatever version is named.
            if "uid" in new["metadata"]:
                raise Conflict(f'{resource.plural} "{name}": the UID in the precondition is not the object\'s')
            return self.create(resource, namespace, new, by=by)
        old, _ = self._find(resource, namespace, name)
        given = new["metadata"].get("resourceVersion")
        if given is not None and given != old["metadata"]["resourceVersion"]:
            raise Conflict(f'{resource.plural} "{name}": the object has been modified')
        kept = ("uid", "creationTimestamp", "generation", "namespace", "managedFields", "deletionTimestamp")
        new["metadata"].update({key: old["metadata"][key] for key in kept if key in old["metadata"]})
        if resource in WITH_STATUS:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return self._update(resource, old, new, by)

    def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, by: str, sub: str = "") -> Json:
        old, data = self._find(resource, namespace, name)
        new: Json = orjson.loads(data)
        if (patch.get("metadata") or {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise Conflict(f'{resource.plural} "{name}": the UID in the precondition is not the object\'s')
        if sub == "status":
            new["status"] = merged(new.get("status") or {}, patch.get("status") or {})
        else:
            part = {key: value for key, value in patch.items() if key != "status" or resource not in WITH_STATUS}
            new = merged(new, part)
        return self._update(resource, old, new, by)

    def _update(self, resource: Resource, old: Json, new: Json, by: str) -> Json:
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return new
        if resource in (SCHEDULES, TEMPLATES, JOBS) and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
            self._note_edit(resource, new, by)
        return self._commit("MODIFIED", resource, new, by, old)

    def delete(
        self, resource: Resource, namespace: str, name: str, *, by: str, uid: str = "", foreground: bool = False
    ) -> None:
        old, data = self._find(resource, namespace, name)
        if uid and uid != old["metadata"]["uid"]:
            raise Conflict(f'{resource.plural} "{name}": the UID in the precondition is not the object\'s')
        if foreground and resource is JOBS:
            if "deletionTimestamp" not in old["metadata"]:
                new: Json = orjson.loads(data)
                new["metadata"]["deletionTimestamp"] = self.stamp()
                new["metadata"]["finalizers"] = ["foregroundDeletion"]
                self._commit("MODIFIED", resource, new, by, old)
            return
        self.remove(resource, namespace, name, by=by)

    def remove(self, resource: Resource, namespace: str, name: str, *, by: str) -> None:
        """Take the object away at once, whatever its finalizers say."""
        old, data = self._find(resource, namespace, name)
        self._commit("DELETED", resource, orjson.loads(data), by, old)

    def _commit(self, kind: ChangeType, resource: Resource, obj: Json, by: str, before: Json | None) -> Json:
        self.version += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.version)
        data = orjson.dumps(obj)
        shelf = self._shelves[resource]
        key = (meta["namespace"], meta["name"])
        if kind == "DELETED":
            del shelf.objects[key]
        else:
            shelf.objects[key] = (obj, data)
        change = Change(self.version, kind, resource, obj, data, by, before)
        shelf.history.append(change)
        for listener in self.listeners:
            listener(change)
        answer: Json = orjson.loads(data)
        return answer

    def _note_edit(self, resource: Resource, obj: Json, by: str) -> None:
        if resource in (SCHEDULES, TEMPLATES):
            entry = {"manager": by, "operation": "Apply", "time": self.stamp(), "fieldsV1": {"f:spec": {}}}
            obj["metadata"]["managedFields"] = [entry]

    def stamp(self) -> str:
        return datetime.fromtimestamp(int(self._now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _admit_job(job: Json) -> None:
    containers = job["spec"]["template"]["spec"]["containers"]
    if any(container["image"] == "refused" for container in containers):
        raise Refused('Job.batch is invalid: spec.template.spec.containers[0].image: Invalid value: "refused"', 422)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def wanted_by(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if part)


def selected(obj: Json, wanted: dict[str, str]) -> bool:
    if not wanted:
        return True
    labels = obj["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())
