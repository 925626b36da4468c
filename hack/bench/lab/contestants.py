"""Who is measured: the operator, the CronJob controller as shipped and tuned, and bare POSTs.

Each gets the same fires (names and slots), turns them into its own kind of object, and is alone on the API server while
its turn lasts. The controller-manager runs for all of them (its Job controller looks at everybody's Jobs): with tuned
flags, except where the shipped ones are what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hack.bench.lab import manifests, operating, posting
from hack.bench.lab.cluster import SHIPPED, TUNED, Lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.manifests import Fire

_POLL = 1.0


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def step(self) -> int:
        """Its slots are whole multiples of so many seconds."""

    def begin(self, lab: Lab) -> None:
        """Start what will do the work."""

    def schedule(self, lab: Lab, fires: Sequence[Fire]) -> None:
        """Create the objects that are due at these slots."""

    def settle(self, lab: Lab, deadline: float) -> None:
        """Wait until it knows all of them and has nothing left to do before the first slot."""

    def at_once(self) -> int | None:
        """How many slots it may work on at once by now, if it tells."""

    def end(self, lab: Lab) -> None:
        """Stop what `begin` started."""


@dataclass
class Cronwright:
    pods: bool
    name: str = "cronwright"
    step: int = 1
    _operator: operating.Operator | None = field(default=None, init=False)

    def begin(self, lab: Lab) -> None:
        lab.tune(TUNED)
        lab.task(pods=self.pods)
        self._operator = operating.start(lab)

    def schedule(self, lab: Lab, fires: Sequence[Fire]) -> None:
        for namespace in sorted({fire.namespace for fire in fires}):
            if namespace != manifests.NAMESPACE:
                lab.open_namespace(namespace, pods=self.pods)
            schedules = (
                manifests.task_schedule(fire.name, manifests.cron_at(fire.slot, seconds=True), namespace=namespace)
                for fire in fires
                if fire.namespace == namespace
            )
            lab.api.create(manifests.within(namespace, manifests.SCHEDULES), schedules)

    def settle(self, lab: Lab, deadline: float) -> None:
        while True:
            assert self._operator is not None
            self._operator.check()
            schedules = lab.api.list(manifests.ALL_SCHEDULES)
            unknown = [found for found in schedules if "nextRunTime" not in found.get("status", {})]
            if not unknown:
                return
            if time.time() > deadline:
                raise BenchError(
                    f"{len(unknown)} of {len(schedules)} schedules are not known to the operator in time for their"
                    " slot. Give it more time with --lead."
                )
            time.sleep(_POLL)

    def at_once(self) -> int | None:
        assert self._operator is not None
        return self._operator.concurrency()

    def end(self, lab: Lab) -> None:  # noqa: ARG002 - the operator knows its cluster
        if self._operator is not None:
            self._operator.stop()


@dataclass
class CronJobs:
    pods: bool
    name: str
    flags: list[str]
    step: int = 60

    def begin(self, lab: Lab) -> None:
        lab.tune(self.flags)

    def schedule(self, lab: Lab, fires: Sequence[Fire]) -> None:
        crons = ((fire.name, manifests.cron_at(fire.slot, seconds=False)) for fire in fires)
        lab.api.create(manifests.CRONJOBS, (manifests.cron_job(name, cron, pods=self.pods) for name, cron in crons))

    def settle(self, lab: Lab, deadline: float) -> None:
        """It writes nothing before a slot: there is nothing to wait for."""

    def at_once(self) -> int | None:
        """It does not tell; its flags do."""
        return None

    def end(self, lab: Lab) -> None:
        """Its objects go with the clean-up; then back to flags that do not hold that up."""
        lab.api.remove(manifests.CRONJOBS)
        lab.tune(TUNED)


@dataclass
class Raw:
    pods: bool
    concurrency: int
    name: str = "raw POSTs"
    step: int = 1
    _fires: list[Fire] = field(default_factory=list, init=False)

    def begin(self, lab: Lab) -> None:
        lab.tune(TUNED)
        lab.task(pods=self.pods)
        self._fires = []

    def schedule(self, lab: Lab, fires: Sequence[Fire]) -> None:  # noqa: ARG002 - it starts once, with all of them
        self._fires += fires

    def settle(self, lab: Lab, deadline: float) -> None:  # noqa: ARG002 - it is ready in a second
        template = lab.api.get(f"{manifests.TEMPLATES}/{manifests.TEMPLATE}")
        jobs = [(fire, manifests.raw_job(fire, template)) for fire in self._fires]
        posting.start(lab, jobs, self.concurrency)

    def at_once(self) -> int | None:
        return self.concurrency

    def end(self, lab: Lab) -> None:
        posting.stop(lab)


def contestants(*, pods: bool, concurrency: int) -> dict[str, Contestant]:
    """By the word for each on the command line."""
    return {
        "cronwright": Cronwright(pods),
        "raw": Raw(pods, concurrency),
        "tuned": CronJobs(pods, "CronJob tuned", TUNED),
        "shipped": CronJobs(pods, "CronJob as shipped", SHIPPED),
    }
