"""The adapter against an HTTP server that misbehaves as real ones do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.config import kube_config

from cronwright.cluster.adapter import KubernetesCluster
from cronwright.cluster.port import JOBS, Expired, Json, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def cluster_of(handler: Handler, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(host, port)] = runner.addresses
    write_kubeconfig(kubeconfig, f"http://{host}:{port}", "first")
    # The client reads $KUBECONFIG when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    try:
        async with await KubernetesCluster.connect() as cluster:
            yield cluster
    finally:
        await runner.cleanup()


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


@pytest.mark.parametrize("by", ["call", "watch"])
async def test_a_token_that_is_no_longer_taken_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    async def doorkeeper(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bearer second":
            return web.json_response({"message": "who are you"}, status=401)
        return web.json_response({"metadata": {"name": "a"}})

    config = tmp_path / "config"
    async with cluster_of(doorkeeper, config, monkeypatch) as cluster:
        server = json.loads(config.read_text())["clusters"][0]["cluster"]["server"]
        write_kubeconfig(config, server, "second")
        with pytest.raises(Unavailable, match="who are you"):
            await (cluster.get(JOBS, "ns", "a") if by == "call" else watched(cluster))
        assert await cluster.get(JOBS, "ns", "a") == {"metadata": {"name": "a"}}
