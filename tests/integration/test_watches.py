"""The operator's watches through restarts of the API server and of etcd, and through tokens that are replaced."""

import signal
import time
from pathlib import Path

import pytest
from kubernetes.aio.config import kube_config
from tests.integration.chart import install_rbac, kubeconfig
from tests.integration.conftest import SYSTEM
from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import HELLO, ONE_RUN, Workspace, schedule, slot

from cronwright.cluster.adapter import KubernetesCluster
from cronwright.cluster.port import NotFound
from cronwright.controller.acting import Actor
from cronwright.controller.store import Store

TICK = """
schedule: {interval: 1s}
concurrencyPolicy: Allow
catchUp: {policy: RunAll, maxRuns: 100}
history: {successful: 100}
"""


def schedules_known(operator: OperatorProcess, work: Workspace) -> bool:
    """Whether the operator knows as many schedules as there are, in all namespaces."""
    names = work.cluster.kubectl("get", "ts", "-A", "-o", "name").stdout.split()
    return operator.metric("cronwright_schedules") == len(names)


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "restarted"])
@pytest.mark.parametrize("part", ["apiserver", "etcd"])
def test_every_slot_runs_once_while_a_part_of_the_control_plane_goes_and_comes_back(
    work: Workspace, part: str, kill: bool
) -> None:
    work.apply(HELLO, schedule("tick", TICK))
    before = work.until("tick", lambda s: s.get("runs", 0) >= 2)
    work.cluster.restart(part, kill=kill)
    after = work.until("tick", lambda s: s.get("succeeded", 0) >= before["runs"] + 3)
    work.patch("ts", "tick", {"spec": {"suspend": True}})
    work.until("tick", lambda s: s["phase"] == "Suspended" and not s.get("activeRuns"))
    slots = [slot(job) for job in work.jobs("tick")]
    assert slots == list(range(slots[0], slots[0] + len(slots))), "each second once"
    assert after["skipped"] == 0


def test_a_schedule_that_is_deleted_while_no_watch_is_open_is_noticed(
    work: Workspace, operator: OperatorProcess
) -> None:
    work.apply(HELLO, schedule("gone", TICK), schedule("stays", ONE_RUN.replace("1s", "1h")))
    work.until("gone", lambda s: s.get("runs", 0) >= 1)
    operator.send(signal.SIGSTOP)
    try:
        work.cluster.restart("apiserver", kill=True)
        eventually(lambda: work.cluster.kubectl("delete", "ts", "gone", check=False, namespace=work.namespace).stdout)
        # This one remembers no event from before its start: every watch has to be begun anew.
        work.cluster.restart("apiserver", kill=True)
    finally:
        operator.send(signal.SIGCONT)
    eventually(lambda: schedules_known(operator, work))
    eventually(lambda: not work.jobs("gone"))


def test_a_token_that_was_replaced_on_disk_is_read_anew(
    work: Workspace, operator: OperatorProcess, rights: Path
) -> None:
    """As when a ServiceAccount is made anew: the old token is worth nothing from then on."""
    work.apply(HELLO, schedule("before", ONE_RUN))
    work.until("before", lambda s: s["phase"] == "Completed")
    work.cluster.kubectl("delete", "serviceaccount", SYSTEM, namespace=SYSTEM)
    kubeconfig(work.cluster, install_rbac(work.cluster, SYSTEM), rights)
    work.cluster.restart("apiserver")  # so that the watches, which are asked for their token once, are asked too
    work.apply(schedule("after", ONE_RUN))
    work.until("after", lambda s: s.get("recentRuns"))
    assert operator.running


async def test_a_deleted_ledger_is_not_brought_back_by_who_remembers_an_older_one(
    work: Workspace, operator: OperatorProcess, rights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server makes a Lease that it is told to replace and does not have, unless the write names its UID."""
    work.apply(HELLO, schedule("late", "schedule: {interval: 1h}"))
    work.until("late", lambda s: s.get("nextRunTime"))
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(rights))
    operator.stop()
    try:
        [claim] = work.all("leases")
        store = Store()
        store.observe_schedule(work.get("ts", "late"))
        store.observe_lease(claim)
        [known] = store.schedules.values()
        remembered = store.ledgers[known.uid].ledger
        assert remembered is not None
        work.kubectl("delete", "lease", claim["metadata"]["name"])
        async with await KubernetesCluster.connect() as cluster:
            with pytest.raises(NotFound):
                await Actor(cluster, store, time.time, "asleep").record(known, remembered)
        assert work.all("leases") == []
    finally:
        operator.start()
