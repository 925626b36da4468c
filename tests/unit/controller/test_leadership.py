"""What a replica concludes from the Leases that it sees, by its own clock."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.scripted import ScriptedCluster

from cronwright.cluster.port import Conflict, Json, Resource
from cronwright.controller.leadership import Leadership, Terms

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
    return on(ScriptedCluster([]), clock)


def test_a_lease_that_somebody_deleted_binds_as_long_as_one_that_was_just_renewed(
    replica: Leadership, clock: Clock
) -> None:
    """Its holder may not have heard of it, and acts on; and it may have renewed it since we last heard of that."""
    replica.observe(lease(1, "other"))
    clock.now += 5
    replica.observe(lease(2, "other"), deleted=True)
    assert replica._free_in(0) == DURATION
    clock.now += 5
    replica.reconcile(set(), 9)
    assert replica._free_in(0) == DURATION - 5, "that is no news"
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


@pytest.mark.parametrize("holder", ["me", ""])
def test_a_lease_that_is_missing_may_have_been_somebody_elses_by_then(replica: Leadership, holder: str) -> None:
    """It was ours once, or free: whoever took it unseen, while we slept, may not have heard that it is gone."""
    replica.observe(lease(1, holder))
    replica.reconcile(set(), 2)
    assert replica._free_in(0) == DURATION
    replica.observe(lease(3, holder), deleted=True)
    assert replica._free_in(0) == 0, "nobody had: its last words say so"


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
        version = str(int(body["metadata"]["resourceVersion"]) + 1)
        return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}


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


def test_a_shard_that_somebody_gave_to_another_is_ours_no_more(replica: Leadership, clock: Clock) -> None:
    """Both acted for minutes: whoever held it renewed over whatever it had seen last."""
    replica.observe(lease(1, "me"))
    replica._until[0] = clock.now + 10
    replica.observe(lease(2, "me"))
    assert replica.holds(0), "an echo of a renewal"
    replica.observe(lease(3, ""))
    assert not replica.holds(0)


def test_a_lease_that_only_looks_like_ours_is_none_of_our_business(replica: Leadership) -> None:
    """Deleting it ended every replica."""
    stranger = lease(1, "somebody")
    stranger["metadata"]["name"] = "cronwright-shard-old"
    replica.observe(stranger)
    replica.observe(stranger | {"metadata": stranger["metadata"] | {"resourceVersion": "2"}}, deleted=True)
    assert replica._seen == {}


class Contested(ScriptedCluster):
    """A Lease on which the next write fails, because one whose answer got lost had landed."""

    def __init__(self, landed: Json) -> None:
        super().__init__([])
        self.landed = landed
        self.writes: list[str] = []

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return self.landed

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        self.writes.append(body["spec"]["holderIdentity"])
        if body["metadata"]["resourceVersion"] != self.landed["metadata"]["resourceVersion"]:
            raise Conflict("modified")
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "9"}}


def on(cluster: ScriptedCluster, clock: Clock, shards: int = 1) -> Leadership:
    return Leadership(
        cluster,
        identity="me",
        namespace=NAMESPACE,
        shards=shards,
        now=clock,
        monotonic=clock,
        acquired=lambda _: None,
        settled=settled,
    )


async def test_a_renewal_that_was_refused_is_repeated_at_once(clock: Clock) -> None:
    """It waited for the next one's turn, and by then the shard had been lost."""
    renewing = on(cluster := Contested(lease(2, "me")), clock)
    renewing.observe(lease(1, "me"))
    renewing._until[0] = clock.now + 2
    await renewing._renew(0)
    assert cluster.writes == ["me"]
    clock.now += 0.1
    renewal = asyncio.create_task(renewing._renew(0))
    await asyncio.sleep(0.01)
    renewal.cancel()
    assert cluster.writes == ["me", "me"]
    assert renewing._until[0] > clock.now + 10


async def test_leaving_survives_a_renewal_that_landed_unheard(clock: Clock) -> None:
    """One Conflict, and no shard was released."""
    leaving = on(cluster := Contested(lease(2, "me")), clock)
    leaving.observe(lease(1, "me"))
    await leaving._leave()
    assert cluster.writes == ["", ""]
    assert leaving._seen["cronwright-shard-0"].holder == ""


async def test_a_shard_that_nobody_wanted_is_the_last_to_be_offered_for_a_while(clock: Clock) -> None:
    """A replica that had died seemed to want them: each was let go and taken again, over and over."""
    full = on(Taking(), clock, shards=2)
    for shard in (0, 1):
        mine = lease(1, "me")
        mine["metadata"] |= {"name": f"cronwright-shard-{shard}", "uid": f"u{shard}"}
        full.observe(mine)
        full._until[shard] = clock.now + 10
    dead = lease(1, "dead")
    dead["metadata"]["name"] = "cronwright-member-dead"
    full.observe(dead)
    assert full._too_many(1)
    full._offered.add(1)
    await full._release(1)
    assert not full.holds(1)
    await full._write(1)
    assert full.holds(1)
    assert not full._too_many(1)
    clock.now += DURATION
    full._until = dict.fromkeys((0, 1), clock.now + 10)
    for seen in full._seen.values():
        seen.changed = clock.now
    assert full._too_many(1)


def test_no_shard_is_kept_free_for_a_member_that_does_not_renew(replica: Leadership, clock: Clock) -> None:
    silent = lease(1, "silent")
    silent["metadata"]["name"] = "cronwright-member-silent"
    replica.observe(silent)
    assert "silent" in replica._counts()
    clock.now += DURATION * 0.7
    assert "silent" not in replica._counts()


async def test_a_lease_is_published_for_at_least_as_long_as_it_is_acted_on(clock: Clock) -> None:
    class Noting(Taking):
        async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
            assert body["spec"]["leaseDurationSeconds"] == 3
            return await super().replace(resource, namespace, name, body)

    short = on(Noting(), clock)
    short._terms = Terms.lasting(2.9)
    short.observe(lease(1, ""))
    assert await short._write(0)
