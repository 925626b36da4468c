"""The operator process: kopf, the controller and the probes on one loop, until SIGTERM.

The order of the end matters. kopf, told to stop, cancels every task that began after it did, and so ours; before that
it awaits our cleanup, which ends the work and hands the shards over while the connections are still there.
"""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass

import kopf

from cronwright.cluster.port import Cluster
from cronwright.controller import feeding
from cronwright.controller.leadership import Terms
from cronwright.controller.operator import Operator
from cronwright.controller.probes import serve_probes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    identity: str
    """Who holds a Lease. A container that is restarted keeps its pod's name, and so its shards."""
    namespace: str
    """Where the Leases of leadership live."""
    shards: int = 1
    """Into how many parts the schedules are divided over the replicas."""
    bind: str = "0.0.0.0"
    port: int = 8080
    lease_seconds: float = 15.0


KOPF_LISTS = 60.0
"""Seconds after which kopf, too, knows all objects and keeps what it keeps of them."""


def _spare_what_lasts() -> None:
    """Take what is known by now out of the garbage collector's sight: looking through ten thousand schedules takes it a
    tenth of a second, in which no slot can start, and in vain."""
    gc.collect()
    gc.freeze()


async def serve(cluster: Cluster, options: Options) -> None:
    operator = Operator(
        cluster,
        identity=options.identity,
        namespace=options.namespace,
        shards=options.shards,
        terms=Terms.lasting(options.lease_seconds),
    )
    probes = await serve_probes(operator, options.bind, options.port)
    await operator.sync()  # kopf would give up on kinds that are not installed yet
    _spare_what_lasts()
    asyncio.get_running_loop().call_later(KOPF_LISTS, _spare_what_lasts)
    stop = asyncio.Event()
    work = asyncio.create_task(operator.run(), name="operator")
    work.add_done_callback(lambda _: stop.set())

    async def finish() -> None:
        work.cancel()
        await asyncio.wait([work])
        await probes.cleanup()

    try:
        await kopf.operator(
            registry=feeding.registry(
                operator.observe_schedule, operator.observe_template, operator.audit_soon, finish
            ),
            settings=feeding.settings(),
            # Otherwise kopf asks the system for its user's name, and in a container there may be none.
            identity=options.identity,  # type: ignore[arg-type]
            standalone=True,
            clusterwide=True,
            stop_flag=stop,
        )
    finally:
        await finish()
    if not work.cancelled():
        work.result()  # the controller ended by itself: say why, and end with an error
