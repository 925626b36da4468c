"""Several replicas on one cluster: one acts on each schedule, and another takes over when it goes."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import SYSTEM
from tests.integration.operating import OperatorProcess
from tests.integration.support import Cluster, eventually
from tests.integration.workspace import HELLO, Workspace, schedule, slot

LEASE = 5


class Replicas:
    """Replicas of one installation, started and ended one by one."""

    def __init__(self, rights: Path, logs: Path, shards: int) -> None:
        self._rights = rights
        self._logs = logs
        self._shards = shards
        self.running: dict[str, OperatorProcess] = {}

    def start(self, *names: str) -> None:
        for name in names:
            process = OperatorProcess(
                self._rights, self._logs / f"{name}.log", namespace=SYSTEM, identity=name,
                shards=self._shards, lease_seconds=LEASE,
            )  # fmt: skip
            process.start()
            self.running[name] = process

    def end(self, name: str, how: signal.Signals) -> None:
        self.running.pop(name).stop(how)

    def held(self) -> dict[str, int]:
        """How many shards each replica says that it holds."""
        return {name: int(process.metric("cronwright_shard_held")) for name, process in self.running.items()}

    def leader(self) -> str:
        def check() -> str | None:
            leaders = [name for name, count in self.held().items() if count]
            return leaders[0] if len(leaders) == 1 else None

        return eventually(check) or ""


@pytest.fixture
def replicas(
    api: Cluster, operator: OperatorProcess, rights: Path, request: pytest.FixtureRequest
) -> Iterator[Replicas]:
    """Replicas in the place of the operator that the tests share."""
    operator.stop()
    started = Replicas(rights, api.dir / "logs", shards=request.param)
    yield started
    for name in list(started.running):
        started.end(name, signal.SIGTERM)
    api.kubectl("delete", "lease", "--all", namespace=SYSTEM)
    operator.start()


def holder(work: Workspace) -> str:
    lease = json.loads(
        work.cluster.kubectl("get", "lease", "cronwright-shard-0", "-o", "json", namespace=SYSTEM).stdout
    )
    return str(lease["spec"].get("holderIdentity", ""))


def other_holder(work: Workspace, before: str) -> float:
    """Wait until another replica holds the shard; how long that took."""
    began = time.monotonic()
    eventually(lambda: holder(work) not in ("", before))
    return time.monotonic() - began


@pytest.mark.parametrize("replicas", [1], indirect=True)
def test_one_replica_leads_and_another_takes_over_at_once_or_when_the_lease_has_expired(
    work: Workspace, replicas: Replicas
) -> None:
    replicas.start("a", "b", "c")
    work.apply(
        HELLO, schedule("tick", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nhistory: {successful: 100}")
    )
    work.until("tick", lambda s: s.get("runs", 0) >= 2)
    first = replicas.leader()
    replicas.end(first, signal.SIGTERM)
    assert other_holder(work, first) < LEASE, "released, not expired"
    second = replicas.leader()
    runs = work.until("tick", lambda s: s.get("runs", 0) >= 3)["runs"]
    replicas.end(second, signal.SIGKILL)
    other_holder(work, second)
    status = work.until("tick", lambda s: s.get("runs", 0) >= runs + 3)
    assert status["missed"] == 0 or status["skips"].keys() <= {"CatchUpSkipped"}
    slots = [slot(job) for job in work.jobs("tick")]
    assert len(slots) == len(set(slots))
    transitions = json.loads(
        work.cluster.kubectl("get", "lease", "cronwright-shard-0", "-o", "json", namespace=SYSTEM).stdout
    )["spec"]["leaseTransitions"]
    assert transitions >= 2


@pytest.mark.parametrize("replicas", [6], indirect=True)
def test_shards_spread_evenly_as_replicas_come_and_go(work: Workspace, replicas: Replicas) -> None:
    replicas.start("a")
    eventually(lambda: replicas.held() == {"a": 6})
    replicas.start("b", "c")
    eventually(lambda: sorted(replicas.held().values()) == [2, 2, 2])
    names = [f"s{number}" for number in range(12)]
    work.apply(HELLO, *(schedule(name, "schedule: {interval: 1s}\nmaxRuns: 1") for name in names))
    for name in names:
        work.until(name, lambda s: s["phase"] == "Completed")
    started = {name: process.metric("cronwright_runs_started_total") for name, process in replicas.running.items()}
    assert [len(work.jobs(name)) for name in names] == [1] * 12
    assert len([count for count in started.values() if count]) >= 2, f"the work is shared: {started}"
    replicas.end("b", signal.SIGKILL)
    eventually(lambda: sorted(replicas.held().values()) == [3, 3])


@pytest.mark.parametrize("replicas", [1], indirect=True)
def test_a_replica_that_slept_past_its_lease_does_not_act_on_what_it_held(work: Workspace, replicas: Replicas) -> None:
    replicas.start("a", "b")
    work.apply(
        HELLO, schedule("tick", "schedule: {interval: 1s}\nconcurrencyPolicy: Allow\nhistory: {successful: 100}")
    )
    work.until("tick", lambda s: s.get("runs", 0) >= 1)
    first = replicas.leader()
    replicas.running[first].send(signal.SIGSTOP)
    try:
        other_holder(work, first)
        runs = work.status("tick")["runs"]
        work.until("tick", lambda s: s.get("runs", 0) >= runs + 2)
    finally:
        replicas.running[first].send(signal.SIGCONT)
    runs = work.status("tick")["runs"]
    status = work.until("tick", lambda s: s.get("runs", 0) >= runs + 2)
    assert replicas.held()[first] == 0
    slots = [slot(job) for job in work.jobs("tick")]
    assert len(slots) == len(set(slots)) <= status["runs"] + 1
