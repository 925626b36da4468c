"""The port on the real Kubernetes.

The official client gives configuration, TLS, credentials and their renewal. Requests are plain dicts through orjson:
its model objects would cost more than the request itself. Every call has a deadline, so that a silent API server is
noticed; nothing is retried here, because only the controller knows whether a repeat is safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import orjson
from kubernetes.aio import client, config

from cronwright.cluster.port import (
    AlreadyExists,
    Cluster,
    Conflict,
    EventType,
    Expired,
    Json,
    Listing,
    NotFound,
    Refused,
    Resource,
    Unavailable,
)

CALL_TIMEOUT = 10.0
"""Seconds for one call. Longer than any healthy API server takes, shorter than a lease."""

PAGE = 500
"""Objects a page when listing. Parsing one, of schedules of 3.4 kB, takes 11 to 14 ms, and 21 ms when the garbage
collector joins in: that is how long the loop stands still for it."""

WATCH_SECONDS = 290
"""The API server ends a watch then, and we go on from where it was; a dead connection is found by then at latest."""

WATCH_SILENCE = 90.0
"""Bookmarks come about once a minute: a watch that is silent for longer than this is taken for dead."""


CONNECTIONS = 128
"""More than are ever worked on at once: a call never waits for one."""

KEEP_ALIVE = 45.0
"""Seconds for which an idle connection is kept: those that wrote a slot's claim (up to 29 s ahead) are still open when
it is due. Shorter than the API server's own patience (90 s) and that of what stands before it."""

OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the namespace that it is in."""

NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError, config.ConfigException)
"""What stands for an answer where there is none to go by. One that is not JSON is not the API server's: whoever stands
between us has given it, or cut it short. Credentials that cannot be read just now may be there in a moment."""


class KubernetesCluster(Cluster):
    """`async with KubernetesCluster.connect() as cluster`."""

    def __init__(
        self, configuration: Any, namespace: str, user_agent: str, source: tuple[str | None, str | None]
    ) -> None:
        self.namespace = namespace
        self._source = source
        self._api = client.ApiClient(configuration)
        self._api.user_agent = user_agent
        self._host: str = configuration.host
        self._session: aiohttp.ClientSession | None = None
        self._at_once = 0
        self._most_at_once = (0, 0.0)
        """The most calls that were under way at once lately, and when: so many connections are open."""

    @classmethod
    async def connect(
        cls, user_agent: str = "cronwright", *, kubeconfig: str | None = None, context: str | None = None
    ) -> KubernetesCluster:
        """The cluster that we run in, or else the one that $KUBECONFIG or ~/.kube/config names.

        Whoever names a file or a context means just that. Its namespace is the cluster's `namespace`, as in kubectl.
        """
        return cls(*await _load(kubeconfig, context), user_agent, (kubeconfig, context))

    async def __aenter__(self) -> KubernetesCluster:
        # The client's own session would ask the environment for a proxy at every call, which doubles its cost, and
        # close its connections between a claim and the slot.
        connector = aiohttp.TCPConnector(
            ssl=self._api.rest_client.ssl_context, limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE
        )
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=2**21)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
        await self._api.close()

    async def pages(
        self, resource: Resource, *, namespace: str | None = None, selector: str = "", fields: str = ""
    ) -> AsyncIterator[Listing]:
        query = {"limit": str(PAGE), "labelSelector": selector, "fieldSelector": fields}
        while True:
            page = await self._call("GET", resource.path(namespace), query)
            yield Listing(page.get("items") or [], page["metadata"]["resourceVersion"])
            token = page["metadata"].get("continue")
            if not token:
                return
            query["continue"] = token

    async def watch(
        self, resource: Resource, *, version: str, selector: str = "", seconds: int | None = None
    ) -> AsyncIterator[tuple[EventType, Json]]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds or WATCH_SECONDS),
            "labelSelector": selector,
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CALL_TIMEOUT, sock_read=WATCH_SILENCE)
        try:
            async with await self._send("GET", resource.path(), query, timeout=timeout) as response:
                if response.status == 401:
                    await self._renew_credentials()
                if response.status != 200:
                    raise _error(response.status, await response.read(), response.headers)
                async for line in response.content:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise _error(status.get("code", 500), orjson.dumps(status), {})
                    yield event["type"], event["object"]
        except NO_ANSWER as error:
            raise Unavailable(f"watching {resource.plural}: {error!r}") from error

    async def warm(self, calls: int) -> None:
        """So many calls that cost nothing, unless as many were under way since connections were last closed."""
        most, when = self._most_at_once
        stale = asyncio.get_running_loop().time() > when + KEEP_ALIVE / 2
        if stale or most < calls:
            self._most_at_once = (0, 0.0)
            await asyncio.gather(*(self._call("GET", "/version") for _ in range(calls)), return_exceptions=True)

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return await self._call("GET", resource.path(namespace, name))

    async def create(self, resource: Resource, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        query = {"dryRun": "All"} if dry_run else None
        return await self._call("POST", resource.path(namespace), query, body)

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        return await self._call("PUT", resource.path(namespace, name), None, body)

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        return await self._call(
            "PATCH", resource.path(namespace, name, sub), None, patch, "application/merge-patch+json"
        )

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, foreground: bool = False
    ) -> None:
        body = {
            "preconditions": {"uid": uid},
            "propagationPolicy": "Foreground" if foreground else "Background",
        }
        await self._call("DELETE", resource.path(namespace, name), None, body)

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | bytes | None = None,
        content_type: str = "application/json",
    ) -> Json:
        try:
            with self._counted():
                async with (
                    asyncio.timeout(CALL_TIMEOUT),
                    await self._send(method, path, query, body, content_type) as response,
                ):
                    data = await response.read()
            if response.status == 401:
                await self._renew_credentials()
            if response.status >= 300:
                raise _error(response.status, data, response.headers)
            answer: Json = orjson.loads(data)
        except NO_ANSWER as error:
            raise Unavailable(f"{method} {path}: {error!r}") from error
        return answer

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._at_once += 1
        if self._at_once >= self._most_at_once[0]:
            self._most_at_once = (self._at_once, asyncio.get_running_loop().time())
        try:
            yield
        finally:
            self._at_once -= 1

    async def _renew_credentials(self) -> None:
        """A token has expired or was replaced: what stands on disk by now is the one to use."""
        configuration, _ = await _load(*self._source)
        self._api.configuration.api_key.update(configuration.api_key)
        # In a pod the key is set anew before each call, from what the hook's owner has read at most a minute ago.
        self._api.configuration.refresh_api_key_hook = configuration.refresh_api_key_hook

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | bytes | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "use it as a context manager"
        headers = {
            "Content-Type": content_type,
            "Accept": "application/json",
            "User-Agent": self._api.user_agent,
        }
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        url = self._host + path
        if query:
            url += "?" + urlencode({key: value for key, value in query.items() if value})
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        return await self._session.request(method, url, data=data, headers=headers, timeout=timeout)


async def _load(kubeconfig: str | None, context: str | None) -> tuple[Any, str]:
    """The configuration as it stands on disk now, and the namespace that goes with it."""
    configuration = client.Configuration()
    if kubeconfig is None and context is None:
        try:
            config.load_incluster_config(client_configuration=configuration)
            return configuration, _own_namespace()
        except config.ConfigException:
            pass
    loader = await config.load_kube_config(kubeconfig, context, client_configuration=configuration)
    return configuration, loader.current_context["context"].get("namespace") or "default"


def _own_namespace() -> str:
    return OWN_NAMESPACE.read_text().strip() if OWN_NAMESPACE.exists() else "default"


def _error(status: int, data: bytes, headers: Mapping[str, str]) -> Exception:
    try:
        answer = orjson.loads(data)
        message, reason = str(answer.get("message", "")), str(answer.get("reason", ""))
    except (orjson.JSONDecodeError, AttributeError):
        message, reason = data[:500].decode(errors="replace").strip(), ""
    if status == 404:
        return NotFound(message)
    if status == 409:
        return AlreadyExists(message) if reason == "AlreadyExists" else Conflict(message)
    if status == 410:
        return Expired(message)
    # Not to be known, or not to have the right, says nothing of what was asked for: it is not refused, it has to wait.
    unauthorized = status == 401 or (status == 403 and " cannot " in message and " resource " in message)
    if status == 429 or status >= 500 or unauthorized:
        after = headers.get("Retry-After", "")
        return Unavailable(f"{status}: {message}", float(after) if after.isdigit() else None)
    return Refused(message, status)
