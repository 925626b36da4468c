"""The API server as a benchmark needs it: many objects made, listed, counted and removed, by a client of our own.

None of it is measured. It speaks as admin, so the audit log tells it from the contestants.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import orjson
from hack.bench.lab.errors import BenchError

Json = dict[str, Any]
T = TypeVar("T")

_CONCURRENCY = 32
_PAGE = 500
_PIECE = 2000
_TIMEOUT = aiohttp.ClientTimeout(total=120)


def credentials(certs: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certs / "ca.crt"))
    context.load_cert_chain(certs / "admin.crt", certs / "admin.key")
    return context


@dataclass(frozen=True)
class Api:
    server: str
    certs: Path

    def session(self, limit: int = _CONCURRENCY) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=credentials(self.certs), limit=limit)
        return aiohttp.ClientSession(self.server, connector=connector, timeout=_TIMEOUT)

    def create(self, path: str, bodies: Iterable[Json]) -> None:
        """Create all of them; what is there already stays as it is."""
        waiting = iter(bodies)

        async def work(session: aiohttp.ClientSession) -> None:
            for body in waiting:  # shared by all workers: each takes the next
                await self._create(session, path, body)

        async def everything(session: aiohttp.ClientSession) -> None:
            await asyncio.gather(*(work(session) for _ in range(_CONCURRENCY)))

        self._run(everything)

    @staticmethod
    async def _create(session: aiohttp.ClientSession, path: str, body: Json) -> None:
        async with session.post(path, data=orjson.dumps(body), headers={"Content-Type": "application/json"}) as answer:
            text = await answer.text()
            if answer.status not in (201, 409):
                raise BenchError(f"POST {path} was answered with {answer.status}: {text[:300]}")

    def get(self, path: str) -> Json:
        async def ask(session: aiohttp.ClientSession) -> Json:
            return await _ask(session, path, {})

        return self._run(ask)

    def list(self, path: str, selector: str = "") -> list[Json]:
        async def ask(session: aiohttp.ClientSession) -> list[Json]:
            items: list[Json] = []
            query = {"limit": str(_PAGE), "labelSelector": selector}
            while True:
                page = await _ask(session, path, query)
                items += page.get("items") or []
                if not page["metadata"].get("continue"):
                    return items
                query["continue"] = page["metadata"]["continue"]

        return self._run(ask)

    def count(self, path: str) -> int:
        async def ask(session: aiohttp.ClientSession) -> int:
            page = await _ask(session, path, {"limit": "1"})
            return len(page.get("items") or []) + int(page["metadata"].get("remainingItemCount") or 0)

        return self._run(ask)

    def remove(self, path: str, selector: str = "", patience: float = 600.0) -> None:
        """Delete the whole collection and wait until it is gone."""

        async def ask(session: aiohttp.ClientSession) -> None:
            # In pieces: the API server gives a request a minute, and deletes one object after the other in it.
            query = {"propagationPolicy": "Background", "labelSelector": selector, "limit": str(_PIECE)}
            async with session.delete(path, params=query) as answer:
                text = await answer.text()
                if answer.status not in (200, 202):
                    raise BenchError(f"DELETE {path} was answered with {answer.status}: {text[:300]}")

        deadline = time.monotonic() + patience
        while True:
            left = len(self.list(path, selector)) if selector else self.count(path)
            if not left:
                return
            if time.monotonic() > deadline:
                raise BenchError(f"{left} objects of {path} are still there {patience:.0f} s after their deletion")
            self._run(ask)
            time.sleep(0.1)

    def _run(self, work: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
        async def main() -> T:
            async with self.session() as session:
                return await work(session)

        try:
            return asyncio.run(main())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BenchError(f"The API server at {self.server} does not answer: {error!r}") from error


async def _ask(session: aiohttp.ClientSession, path: str, query: dict[str, str]) -> Json:
    async with session.get(path, params=query) as answer:
        data = await answer.read()
        if answer.status != 200:
            raise BenchError(f"GET {path} was answered with {answer.status}: {data[:300].decode(errors='replace')}")
        found: Json = orjson.loads(data)
        return found
