"""A ledger that somebody deleted: nobody writes it again from a memory that is older than its last words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.scripted import ScriptedCluster

from cronwright.cluster.port import Conflict, Json, NotFound, Resource
from cronwright.controller.acting import LAST_WORDS, Actor
from cronwright.controller.store import LEDGER, Store
from cronwright.core import ledger as ledgers
from cronwright.core.model import Claim, Key, Ledger
from cronwright.core.names import job_name

UID = "schedule-uid"
SEEN = Ledger(timing="t", watermark=100, runs=1)
LATER = Ledger(timing="t", watermark=200, runs=2)


def lease(ledger: Ledger, version: int) -> Json:
    meta = {
        "name": "s-claim",
        "namespace": "ns",
        "uid": "lease-uid",
        "resourceVersion": str(version),
        "ownerReferences": [{"kind": "TaskSchedule", "name": "s", "uid": UID, "controller": True}],
        "annotations": {LEDGER: ledgers.encode(ledger)},
    }
    return {"metadata": meta, "spec": {"holderIdentity": "other", "leaseTransitions": 1}}


class NoLease(ScriptedCluster):
    """A cluster in which the Lease is not there, and can be made."""

    def __init__(self) -> None:
        super().__init__([])
        self.created: list[Json] = []

    async def replace(self, _: Resource, __: str, ___: str, body: Json) -> Any:
        if "uid" not in body["metadata"]:
            return await self.create(_, __, body)  # as a real API server does with a Lease that is not there
        raise Conflict("precondition failed: UID")

    async def get(self, *_: Any, **__: Any) -> Any:
        raise NotFound("no such Lease")

    async def create(self, _: Resource, __: str, body: Json | bytes, *, dry_run: bool = False) -> Any:
        assert isinstance(body, dict)
        self.created.append(body)
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "9", "uid": "new"}}


@pytest.fixture
def store() -> Store:
    store = Store()
    meta = {"namespace": "ns", "name": "s", "uid": UID, "generation": 1, "resourceVersion": "1"}
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"templateRef": {"name": "t"}, "schedule": {"interval": "1h"}}
    store.observe_schedule({"metadata": meta, "spec": spec})
    store.observe_lease(lease(SEEN, 5))
    return store


def test_the_event_of_a_deletion_tells_the_last_words(store: Store) -> None:
    assert store.observe_lease(lease(LATER, 8), deleted=True) == {Key("ns", "s")}
    assert store.ledgers[UID].lost
    assert store.ledgers[UID].ledger == LATER


def test_what_a_relist_finds_missing_does_not_outdo_what_is_known(store: Store) -> None:
    store.observe_lease(lease(LATER, 7))
    assert store.reconcile_leases(set(), 6) == set(), "the listing is older than the Lease"
    assert not store.ledgers[UID].lost
    assert store.reconcile_leases(set(), 8) == {Key("ns", "s")}
    assert store.ledgers[UID].lost
    assert store.ledgers[UID].ledger == LATER


async def test_a_missing_lease_is_not_written_again_before_its_deletion_was_told(store: Store) -> None:
    cluster, now = NoLease(), [1000.0]
    actor = Actor(cluster, store, lambda: now[0], "test")
    schedule = store.schedules[Key("ns", "s")]
    with pytest.raises(NotFound):
        await actor.record(schedule, SEEN)
    now[0] += 10 * LAST_WORDS  # the wall clock jumps, and no time has passed
    with pytest.raises(NotFound):
        await actor.record(schedule, SEEN)
    store.observe_lease(lease(LATER, 8), deleted=True)
    assert await actor.record(schedule, LATER)
    assert len(cluster.created) == 1


async def test_a_missing_lease_whose_deletion_nobody_tells_is_written_again_in_the_end(store: Store) -> None:
    cluster = NoLease()
    actor = Actor(cluster, store, lambda: 1000.0, "test")
    schedule = store.schedules[Key("ns", "s")]
    with pytest.raises(NotFound):
        await actor.record(schedule, SEEN)
    [known] = store.ledgers.values()
    assert known.missing_since is not None
    known.missing_since -= LAST_WORDS + 1
    assert not await actor.record(schedule, SEEN)
    assert await actor.record(schedule, SEEN)
    assert len(cluster.created) == 1


async def test_a_prepared_slot_that_nobody_started_is_not_taken_for_one_whose_job_was_deleted(store: Store) -> None:
    """Its status told that it waited: it was counted as cancelled, and never ran."""
    prepared = Claim(200, 1, "Schedule", 200)
    store.observe_lease(lease(replace(SEEN, prepared=prepared.slot), 8), deleted=True)
    schedule, name = store.schedules[Key("ns", "s")], job_name("s", prepared)
    actor = Actor(NoLease(), store, lambda: 1000.0, "test")
    await actor.inspect(schedule, replace(LATER, claims=(prepared,)), name)
    assert store.ledgers[UID].sought == {name}
    assert name not in store.runs[UID]
