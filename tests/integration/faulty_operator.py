"""The operator on a port that dies at a chosen write: `faulty_operator.py "before create jobs 2"`.

SIGKILL right before or right after (the API server has done it, nobody here has heard) the Nth write of a verb on a
resource. `claims` are the claim Leases alone. `"after any write 1"` counts every write that matters to a run: those of
claims, Jobs and schedules.
"""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from cronwright.cli.main import app
from cronwright.cluster import adapter
from cronwright.cluster.adapter import KubernetesCluster
from cronwright.cluster.port import LEASES, Json, Resource


class FaultyCluster(KubernetesCluster):
    fault: tuple[str, str, str, int]

    async def _write(self, verb: str, resource: Resource, name: str, write: Callable[[], Awaitable[Any]]) -> Any:
        moment, wanted_verb, wanted_plural, left = self.fault
        plural = "claims" if "-claim-" in name and resource == LEASES else resource.plural
        any_write = wanted_verb == "any" and plural in ("claims", "jobs", "taskschedules")
        hit = any_write or (verb, plural) == (wanted_verb, wanted_plural)
        if hit:
            left -= 1
            self.fault = (moment, wanted_verb, wanted_plural, left)
        if hit and left == 0 and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = await write()
        if hit and left == 0 and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    async def create(self, resource: Resource, namespace: str, body: Json | bytes, *, dry_run: bool = False) -> Json:
        async def write() -> Json:
            return await super(FaultyCluster, self).create(resource, namespace, body, dry_run=dry_run)

        result: Json = await (
            write()
            if dry_run
            else self._write(
                "create", resource, "" if isinstance(body, bytes) else body["metadata"].get("name", ""), write
            )
        )
        return result

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        async def write() -> Json:
            return await super(FaultyCluster, self).replace(resource, namespace, name, body)

        result: Json = await self._write("replace", resource, name, write)
        return result

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        async def write() -> Json:
            return await super(FaultyCluster, self).patch(resource, namespace, name, patch, sub=sub)

        result: Json = await self._write("patch", resource, name, write)
        return result

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, foreground: bool = False
    ) -> None:
        async def write() -> None:
            await super(FaultyCluster, self).delete(resource, namespace, name, uid=uid, foreground=foreground)

        await self._write("delete", resource, name, write)


if __name__ == "__main__":
    moment, verb, plural, number = sys.argv[1].split()
    FaultyCluster.fault = (moment, verb, plural, int(number))
    adapter.KubernetesCluster = FaultyCluster  # type: ignore[misc]
    app(["operator"])
