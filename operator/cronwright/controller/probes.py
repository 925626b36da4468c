"""What the kubelet and a monitoring system ask: `/healthz`, `/readyz`, `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from cronwright.controller.metrics import CONTENT_TYPE
from cronwright.controller.operator import Operator

LAG_INTERVAL = 0.1
"""Seconds between two looks at how late the event loop is."""


async def serve_probes(operator: Operator, bind: str, port: int) -> web.AppRunner:
    """Healthy: the loop turns. Ready: the first picture is complete, and which shards of it are ours."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if not operator.synced:
            return web.Response(text="syncing\n", status=503)
        held = ", ".join(map(str, operator.leadership.held)) or "none"
        return web.Response(text=f"synced; shards held: {held} (of {operator.leadership.shards})\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=operator.measure(), headers={"Content-Type": CONTENT_TYPE})

    async def note_lag() -> None:
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + LAG_INTERVAL
            await asyncio.sleep(LAG_INTERVAL)
            operator.note_lag(loop.time() - wanted)

    async def lag(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(note_lag(), name="lag")
        yield
        task.cancel()

    app = web.Application()
    app.cleanup_ctx.append(lag)
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, bind, port).start()
    return runner
