"""The port: the few verbs the controller uses on Kubernetes, on plain dicts, and the ways they can fail.

The real adapter (`adapter.py`) and the simulated API server of the tests both stand behind this Protocol, so the
controller runs unchanged on either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Json = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class Resource:
    """Where a kind lives in the API."""

    prefix: str
    plural: str
    kind: str

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        parts = [self.prefix]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, sub) if part]
        return "/".join(parts)


SCHEDULES = Resource("/apis/cronwright.dev/v1alpha1", "taskschedules", "TaskSchedule")
TEMPLATES = Resource("/apis/cronwright.dev/v1alpha1", "tasktemplates", "TaskTemplate")
JOBS = Resource("/apis/batch/v1", "jobs", "Job")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases", "Lease")
PODS = Resource("/api/v1", "pods", "Pod")
EVENTS = Resource("/api/v1", "events", "Event")


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects, and the version of the cluster that they are of: all there are, or one page of them."""

    items: list[Json]
    version: str


class ClusterError(Exception):
    """Whatever the API server answered that is not what was asked for."""


class Unavailable(ClusterError):
    """No answer, or one that says try again (429, 5xx) or who are you (401). The write may or may not have happened."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotFound(ClusterError):
    """There is no such object (or namespace, or kind)."""


class Conflict(ClusterError):
    """The object has changed since it was read."""


class AlreadyExists(ClusterError):
    """There is an object of that name already."""


class Expired(ClusterError):
    """The API server no longer knows that resourceVersion (410): list again."""


class Refused(ClusterError):
    """The API server will not have it (400, 403, 422): its own words."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Cluster(Protocol):
    """All that we ask of Kubernetes. Every call ends within a bounded time; a failure is a ClusterError."""

    def pages(
        self, resource: Resource, *, namespace: str | None = None, selector: str = "", fields: str = ""
    ) -> AsyncIterator[Listing]:
        """All objects, of one namespace or of all; `selector` is one of labels, `fields` one of fields.

        A page at a time, so that a large cluster is never in memory as a whole; all pages are of one version.
        """
        ...

    async def list(
        self, resource: Resource, *, namespace: str | None = None, selector: str = "", fields: str = ""
    ) -> Listing:
        """The same at once, where there are few."""
        items: list[Json] = []
        version = ""
        async for page in self.pages(resource, namespace=namespace, selector=selector, fields=fields):
            items += page.items
            version = page.version
        return Listing(items, version)

    def watch(
        self, resource: Resource, *, version: str, selector: str = "", seconds: int | None = None
    ) -> AsyncIterator[tuple[EventType, Json]]:
        """What happens after that version, in order. It ends after so many seconds, a BOOKMARK two seconds before."""
        ...

    async def warm(self, calls: int) -> None:
        """Get ready for so many calls at once. Nothing is lost where that fails, or where there is nothing to do."""
        ...

    async def get(self, resource: Resource, namespace: str, name: str) -> Json: ...

    async def create(self, resource: Resource, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        """`bytes` are JSON already."""
        ...

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        """Compare-and-set: the body carries the resourceVersion that it replaces."""
        ...

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        """A JSON merge patch."""
        ...

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, foreground: bool = False
    ) -> None: ...
