"""The adapter against an HTTP server that misbehaves as real ones do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import certifi
import pytest
from aiohttp import web
from kubernetes.aio.config import incluster_config, kube_config

from cronwright.cluster.adapter import KubernetesCluster
from cronwright.cluster.port import JOBS, Expired, Json, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[str, int]]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        [(host, port)] = runner.addresses
        yield host, port
    finally:
        await runner.cleanup()


@asynccontextmanager
async def cluster_of(handler: Handler, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    async with serving(handler) as (host, port):
        write_kubeconfig(kubeconfig, f"http://{host}:{port}", "first")
        # The client reads $KUBECONFIG when it is imported.
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        async with await KubernetesCluster.connect() as cluster:
            yield cluster


@asynccontextmanager
async def own_cluster_of(handler: Handler, token: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The cluster as it is found from a pod, whose token stands there."""
    async with serving(handler) as (host, port):
        mount(token, monkeypatch)
        async with await KubernetesCluster.connect() as cluster:
            cluster._host = f"http://{host}:{port}"  # where a pod finds it there is TLS, which our server has not
            yield cluster


def mount(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod has."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", certifi.where())
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(token.with_name("none")))
    token.write_text("first")


def write_kubeconfig(path: Path, server: str, token: str) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))


def streaming(*chunks: bytes) -> Handler:
    """A watch that says this and ends."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return handler


def event(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def watched(cluster: Any) -> list[tuple[str, Json]]:
    return [found async for found in cluster.watch(JOBS, version="1")]


async def test_an_event_of_a_large_object_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = {"metadata": {"name": "large", "annotations": {"note": "x" * 1_500_000}}}
    async with cluster_of(streaming(event("ADDED", large)), tmp_path / "config", monkeypatch) as cluster:
        assert await watched(cluster) == [("ADDED", large)]


async def test_half_an_event_is_a_watch_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster_of(streaming(b'{"type": "ADD'), tmp_path / "config", monkeypatch) as cluster:
        with pytest.raises(Unavailable):
            await watched(cluster)


async def test_a_place_that_was_forgotten_is_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
    async with cluster_of(streaming(forgotten), tmp_path / "config", monkeypatch) as cluster:
        with pytest.raises(Expired, match="too old"):
            await watched(cluster)


async def test_too_many_requests_says_when_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(_: web.Request) -> web.Response:
        return web.json_response({"message": "too many"}, status=429, headers={"Retry-After": "7"})

    async with cluster_of(busy, tmp_path / "config", monkeypatch) as cluster:
        with pytest.raises(Unavailable) as refused:
            await cluster.get(JOBS, "ns", "a")
    assert refused.value.retry_after == 7


@pytest.mark.parametrize("body", ["", "<html>Who knows?</html>", '{"metadata": {'])
async def test_an_answer_that_is_not_json_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    async def proxy(_: web.Request) -> web.Response:
        return web.Response(text=body)

    async with cluster_of(proxy, tmp_path / "config", monkeypatch) as cluster:
        with pytest.raises(Unavailable):
            await cluster.get(JOBS, "ns", "a")


async def doorkeeper(request: web.Request) -> web.Response:
    if request.headers["Authorization"].lower() != "bearer second":
        return web.json_response({"message": "who are you"}, status=401)
    return web.json_response({"metadata": {"name": "a"}})


async def ask(cluster: Any, by: str) -> object:
    return await (cluster.get(JOBS, "ns", "a") if by == "call" else watched(cluster))


@pytest.mark.parametrize("by", ["call", "watch"])
async def test_a_token_that_is_no_longer_taken_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    config = tmp_path / "config"
    async with cluster_of(doorkeeper, config, monkeypatch) as cluster:
        server = json.loads(config.read_text())["clusters"][0]["cluster"]["server"]
        write_kubeconfig(config, server, "second")
        with pytest.raises(Unavailable, match="who are you"):
            await ask(cluster, by)
        assert await cluster.get(JOBS, "ns", "a") == {"metadata": {"name": "a"}}


@pytest.mark.parametrize("by", ["call", "watch"])
async def test_a_pods_token_is_read_anew_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    token = tmp_path / "token"
    async with own_cluster_of(doorkeeper, token, monkeypatch) as cluster:
        token.write_text("second")
        with pytest.raises(Unavailable, match="who are you"):
            await ask(cluster, by)
        assert await cluster.get(JOBS, "ns", "a") == {"metadata": {"name": "a"}}


AN_HOUR_LATER = SimpleNamespace(
    datetime=SimpleNamespace(now=lambda: datetime.now() + timedelta(hours=1)), timedelta=timedelta
)


@pytest.mark.parametrize("old", [False, True], ids=["refused", "too old to be used"])
@pytest.mark.parametrize("missing", [False, True], ids=["empty", "missing"])
@pytest.mark.parametrize("by", ["call", "watch"])
async def test_without_a_token_for_a_while_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, *, missing: bool, old: bool
) -> None:
    token = tmp_path / "token"
    async with own_cluster_of(doorkeeper, token, monkeypatch) as cluster:
        if old:
            monkeypatch.setattr(incluster_config, "datetime", AN_HOUR_LATER)
        if missing:
            token.unlink()
        else:
            token.write_text("")
        with pytest.raises(Unavailable):
            await ask(cluster, by)
        token.write_text("second")
        with suppress(Unavailable):
            await cluster.get(JOBS, "ns", "a")
        assert await cluster.get(JOBS, "ns", "a") == {"metadata": {"name": "a"}}


async def test_connections_are_opened_before_many_calls_at_once_and_only_where_they_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handshake each would be paid for at the slot."""
    peers: list[object] = []
    wanted = 5
    here = asyncio.Event()

    async def hold(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        if len(peers) >= wanted:
            here.set()
        await here.wait()
        return web.json_response({})

    async with cluster_of(hold, tmp_path / "config", monkeypatch) as cluster:
        await cluster.warm(5)
        assert len(set(peers)) == 5
        await cluster.warm(5)
        await cluster.warm(3)
        assert len(peers) == 5, "they are open still"
        wanted = 11
        here.clear()
        await cluster.warm(6)
        assert len(set(peers)) == 6
