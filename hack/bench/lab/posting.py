"""The contestant without a controller: Jobs that are ready as bytes, POSTed when they are due. It is the measure of
what the API server takes from one Python process.

A process of its own, like the operator, with the operator's own credentials, so that the API server's priorities are
the same for both.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import aiohttp
import orjson
import uvloop
from hack.bench.lab.cluster import Lab
from hack.bench.lab.manifests import JOBS, Fire, Json
from hack.cluster import processes
from hack.cluster.folder import CHECKOUT

NAME = "raw"
_GREETING = 2.0
_TIMEOUT = aiohttp.ClientTimeout(total=60)


def start(lab: Lab, jobs: Iterable[tuple[Fire, Json]], concurrency: int) -> None:
    """Post each Job at its slot, at most `concurrency` at once."""
    folder = lab.folder
    file = folder.data / "raw.jsonl"
    ordered = sorted(jobs, key=lambda due: due[0].slot)
    file.write_bytes(b"".join(orjson.dumps([fire.slot, body]) + b"\n" for fire, body in ordered))
    folder.log(NAME).unlink(missing_ok=True)
    place = [lab.server, str(folder.certs / "ca.crt"), str(lab.operator_token), str(file), str(concurrency)]
    command = ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", __name__, *place]
    processes.start(folder.pids, NAME, command, folder.log(NAME))


def stop(lab: Lab) -> None:
    processes.stop(lab.folder.pids, NAME)


async def _post_all(server: str, authority: str, token: str, jobs: list[tuple[int, bytes]], concurrency: int) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "User-Agent": "bench-raw"}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=authority), limit=concurrency)
    async with aiohttp.ClientSession(server, connector=connector, headers=headers, timeout=_TIMEOUT) as session:
        for slot, group in groupby(jobs, key=lambda job: job[0]):
            due = iter([body for _, body in group])
            if slot - time.time() > _GREETING:
                # Connections are open before they are needed, as those of a process that has run for a while.
                await asyncio.sleep(slot - _GREETING - time.time())
                await asyncio.gather(*(_greet(session) for _ in range(concurrency)))
            await asyncio.sleep(max(0.0, slot - time.time()))
            await asyncio.gather(*(_post(session, due) for _ in range(concurrency)))


async def _greet(session: aiohttp.ClientSession) -> None:
    async with session.get("/version") as answer:
        await answer.read()


async def _post(session: aiohttp.ClientSession, due: Iterable[bytes]) -> None:
    for body in due:  # shared by all workers: each takes the next
        async with session.post(JOBS, data=body) as answer:
            text = await answer.read()
            if answer.status != 201:
                print(f"{answer.status}: {text[:300]!r}", flush=True)


if __name__ == "__main__":
    server, authority, token, file, concurrency = sys.argv[1:]
    lines = [orjson.loads(line) for line in Path(file).read_bytes().splitlines()]
    bodies = [(slot, orjson.dumps(body)) for slot, body in lines]
    uvloop.run(_post_all(server, authority, Path(token).read_text(), bodies, int(concurrency)))
