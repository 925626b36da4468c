"""What a replica concludes from the Leases that it sees, by its own clock."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.scripted import ScriptedCluster

from cronwright.cluster.port import Json, Resource
from cronwright.controller.leadership import Leadership

NAMESPACE, DURATION = "system", 15.0


def lease(version: int, holder: str) -> Json:
    meta = {"name": "cronwright-shard-0", "namespace": NAMESPACE, "uid": "u", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"holderIdentity": holder, "leaseDurationSeconds": int(DURATION)}}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def settled(_: int) -> None:
    """Nothing is under way."""


@pytest.fixture
def replica(clock: Clock) -> Leadership:
    return Leadership(
        ScriptedCluster([]),
        identity="me",
        namespace=NAMESPACE,
        shards=1,
        now=clock,
        monotonic=clock,
        acquired=lambda _: None,
        settled=settled,
    )


def test_a_lease_that_somebody_deleted_binds_until_it_would_have_expired(replica: Leadership, clock: Clock) -> None:
    """Its holder may not have heard of it, and acts on."""
    replica.observe(lease(1, "other"))
    clock.now += 5
    replica.observe(lease(2, "other"), deleted=True)
    assert replica._free_in(0) == DURATION - 5
    clock.now += DURATION - 5
    assert replica._free_in(0) == 0


def test_so_does_one_that_a_listing_does_not_show(replica: Leadership) -> None:
    replica.observe(lease(5, "other"))
    replica.reconcile(set(), 4)
    assert not replica._seen["cronwright-shard-0"].gone, "the listing is older than the Lease"
    replica.reconcile(set(), 6)
    assert replica._seen["cronwright-shard-0"].gone
    assert replica._free_in(0) == DURATION


def test_a_lease_of_our_own_that_somebody_deleted_is_taken_again_at_once(replica: Leadership) -> None:
    replica.observe(lease(1, "me"))
    replica.observe(lease(2, "me"), deleted=True)
    assert replica._free_in(0) == 0


def test_a_lease_that_was_made_anew_counts_and_not_its_predecessor(replica: Leadership, clock: Clock) -> None:
    replica.observe(lease(1, "other"))
    replica.observe(lease(2, "other"), deleted=True)
    replica.observe(lease(3, ""))
    assert replica._free_in(0) == 0


class Taking(ScriptedCluster):
    """Takes every write of a Lease, and remembers the holders."""

    def __init__(self) -> None:
        super().__init__([])
        self.holders: list[str] = []

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        self.holders.append(body["spec"]["holderIdentity"])
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "9"}}


async def test_a_shard_is_given_away_only_when_nothing_is_under_way_for_it(clock: Clock) -> None:
    """A creation that landed after its successor had begun was a Job that nobody had claimed."""
    cluster, answered = Taking(), asyncio.Event()

    async def settled(shard: int) -> None:
        assert not leaving.holds(shard)
        await answered.wait()

    leaving = Leadership(
        cluster,
        identity="me",
        namespace=NAMESPACE,
        shards=1,
        now=clock,
        monotonic=clock,
        acquired=lambda _: None,
        settled=settled,
    )
    leaving.observe(lease(1, "me"))
    release = asyncio.create_task(leaving._leave())
    await asyncio.sleep(0.01)
    assert cluster.holders == []
    answered.set()
    await release
    assert cluster.holders == [""]
