"""An independent watch: when does each Job appear, by this machine's clock.

A process of its own, so that neither a contestant nor the benchmark itself delays it, and so that it costs the same
beside each of them. While it watches, it only notes the moment and keeps the line; what the lines say is read when the
watching is over. (A Job's creationTimestamp would not do: it has whole seconds.)
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson
import uvloop
from hack.bench.lab.api import Api
from hack.bench.lab.cluster import Lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.manifests import ALL_JOBS
from hack.bench.lab.operating import tail
from hack.cluster import processes
from hack.cluster.folder import CHECKOUT

NAME = "observer"
_ADDED = b'{"type":"ADDED"'
_PATIENCE = 60.0
_POLL = 0.1
_REOPENINGS = 1000


@dataclass(frozen=True)
class Sighting:
    """A Job that appeared: its name, its owner's, and when the watch told of it (unix seconds)."""

    job: str
    owner: str
    at: float


@dataclass(frozen=True)
class Observer:
    lab: Lab

    @property
    def _seen(self) -> Path:
        return self.lab.folder.data / "observer.json"

    @property
    def _count(self) -> Path:
        return self.lab.folder.data / "observer.count"

    def start(self) -> None:
        """Returns when the watch is open: what is created from now on is seen."""
        folder = self.lab.folder
        for leftover in (self._seen, self._count, folder.log(NAME)):
            leftover.unlink(missing_ok=True)
        place = [self.lab.server, str(folder.certs), str(self._seen), str(self._count)]
        command = ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", __name__, *place]
        process = processes.start(folder.pids, NAME, command, folder.log(NAME))
        deadline = time.monotonic() + _PATIENCE
        while not self._count.exists():
            if not process.alive() or time.monotonic() > deadline:
                raise BenchError(f"The watch could not be opened. {tail(folder.log(NAME))}")
            time.sleep(_POLL)

    def count(self) -> int:
        """How many Jobs it has seen so far."""
        if processes.find(self.lab.folder.pids, NAME) is None:
            raise BenchError(f"The watch ended too early. {tail(self.lab.folder.log(NAME))}")
        return int(self._count.read_text() or 0)

    def stop(self) -> list[Sighting]:
        processes.stop(self.lab.folder.pids, NAME)
        if not self._seen.exists():
            raise BenchError(f"The watch ended without a word. {tail(self.lab.folder.log(NAME))}")
        return [Sighting(**entry) for entry in orjson.loads(self._seen.read_bytes())]


async def _watch(api: Api, count: Path) -> list[tuple[float, bytes]]:
    lines: list[tuple[float, bytes]] = []
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with api.session() as session:
        async with session.get(ALL_JOBS, params={"limit": "1"}) as listing:
            version = (await listing.json())["metadata"]["resourceVersion"]
        opened = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(_follow(session, version, lines, opened))
            await opened.wait()
            telling = group.create_task(_tell(lines, count))
            await stop.wait()
            following.cancel()
            telling.cancel()
    return lines


async def _follow(
    session: aiohttp.ClientSession, version: str, lines: list[tuple[float, bytes]], opened: asyncio.Event
) -> None:
    """Read on where the last watch ended: an API server under load drops a watcher that does not keep up."""
    forever = aiohttp.ClientTimeout(total=None, sock_read=None)
    for _ in range(_REOPENINGS):
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "86400"}
        async with session.get(ALL_JOBS, params=query, timeout=forever) as response:
            response.raise_for_status()
            opened.set()
            last = await _read(response, lines)
        if last:
            version = orjson.loads(last)["object"]["metadata"]["resourceVersion"]
        print(f"the API server ended the watch; reading on from {version}", flush=True)
    raise ConnectionError(f"the API server ended {_REOPENINGS} watches")


async def _read(response: aiohttp.ClientResponse, lines: list[tuple[float, bytes]]) -> bytes:
    """Until the end of the stream; its last line."""
    rest = last = b""
    async for chunk in response.content.iter_any():
        now = time.time()
        *whole, rest = (rest + chunk).split(b"\n")
        lines += [(now, line) for line in whole if line.startswith(_ADDED)]
        last = whole[-1] if whole else last
    return last


async def _tell(lines: list[tuple[float, bytes]], count: Path) -> None:
    unfinished = count.with_suffix(".tmp")
    told = -1
    while True:
        if len(lines) != told:
            told = len(lines)
            unfinished.write_text(str(told))
            unfinished.rename(count)
        await asyncio.sleep(_POLL)


def _sighting(at: float, line: bytes) -> dict[str, object]:
    meta = orjson.loads(line)["object"]["metadata"]
    owners = meta.get("ownerReferences") or [{"name": ""}]
    return {"job": meta["name"], "owner": owners[0]["name"], "at": at}


if __name__ == "__main__":
    server, certs, seen, count = sys.argv[1:]
    lines = uvloop.run(_watch(Api(server, Path(certs)), Path(count)))
    Path(seen).write_bytes(orjson.dumps([_sighting(at, line) for at, line in lines]))
