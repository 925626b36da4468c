"""The cluster as a person (the admin) reaches it, and a watch of it that goes on after an outage.

None of this is the operator's own client: what counts its Jobs must not share its faults.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hack.chaos.errors import ChaosError
from hack.cluster.api import Api, UnansweredError

Json = dict[str, Any]

JOBS = "/apis/batch/v1"
LEASES = "/apis/coordination.k8s.io/v1"
OURS = "/apis/cronwright.dev/v1alpha1"
SELECTOR = "app.kubernetes.io/managed-by=cronwright"
_PATIENCE = 60.0
_POLL = 0.1


class Person:
    """Does what people do with kubectl, without the cost of starting it."""

    def __init__(self, port: int, certs: Path) -> None:
        self._api = Api(port, certs)

    def create(self, group: str, namespace: str, plural: str, body: Json) -> None:
        """While nothing is wrong yet: an answer other than yes ends the attack, but for kinds too new to be served."""
        deadline = time.monotonic() + _PATIENCE
        path = f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
        version = group.removeprefix("/apis/").removeprefix("/api/")
        while True:
            code, answer = self._api.request("POST", path, {"apiVersion": version, **body})
            if code in (201, 409):
                return
            if code != 404 or time.monotonic() > deadline:
                raise ChaosError(f"{body['kind']} {body['metadata']['name']} could not be created: {answer}")
            time.sleep(_POLL)

    def post(self, path: str, body: Json) -> Json:
        code, answer = self._api.request("POST", path, body)
        if code != 201:
            raise ChaosError(f"POST {path} was answered with {code}: {answer}")
        found: Json = answer
        return found

    def list(self, group: str, namespace: str, plural: str) -> list[Json] | None:
        """None when the API server does not answer, as it may in the middle of an attack."""
        try:
            code, answer = self._api.request("GET", f"{group}/namespaces/{namespace}/{plural}")
        except UnansweredError:
            return None
        if code != 200:
            return None
        items: list[Json] = answer["items"]
        return items

    def delete(self, group: str, namespace: str, plural: str, name: str) -> bool:
        path = f"{group}/namespaces/{namespace}/{plural}/{name}?propagationPolicy=Background"
        try:
            return self._api.request("DELETE", path)[0] == 200
        except UnansweredError:
            return False


class Recorder(threading.Thread):
    """Tells of every object of a kind that is ever seen: lists, follows, resumes, and lists again when it must."""

    def __init__(self, port: int, certs: Path, path: str, see: Callable[[Json], None], *, slim: bool) -> None:
        super().__init__(name=f"recorder of {path}", daemon=True)
        self._port = port
        self._path = path
        self._see = see
        self._context = ssl.create_default_context(cafile=str(certs / "ca.crt"))
        self._context.load_cert_chain(certs / "admin.crt", certs / "admin.key")
        kind = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
        self._accept = {True: kind.format("List"), False: kind.format("")} if slim else {}
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        version = ""
        while not self._ended.is_set():
            try:
                version = version or self._list()
                version = self._follow(version)
            except (OSError, http.client.HTTPException, ValueError):
                self._ended.wait(_POLL)

    def _list(self) -> str:
        with self._ask(f"labelSelector={SELECTOR}", listing=True) as response:
            answer = json.loads(response.read())
        if response.status != 200:
            raise OSError(f"{response.status}")
        for obj in answer["items"] or ():
            self._see(obj)
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        """Where to go on from; nowhere ("") when the API server has forgotten that place."""
        query = f"labelSelector={SELECTOR}&watch=true&allowWatchBookmarks=true&timeoutSeconds=30"
        try:
            with self._ask(f"{query}&resourceVersion={version}", listing=False) as response:
                if response.status == 410:
                    return ""
                if response.status != 200:
                    raise OSError(f"{response.status}")
                while not self._ended.is_set() and (line := response.readline()):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return ""
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._see(event["object"])
        except (OSError, http.client.HTTPException, ValueError):
            self._ended.wait(_POLL)
        return version

    @contextmanager
    def _ask(self, query: str, *, listing: bool) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=self._context)
        with closing(connection):
            accept = self._accept.get(listing, "application/json")
            connection.request("GET", f"{self._path}?{query}", headers={"Accept": accept})
            with connection.getresponse() as response:
                yield response
