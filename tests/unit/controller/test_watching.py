"""Watches through what API servers and networks do to them: places lost, events twice, events out of order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence, Set
from typing import Any

import pytest
from tests.unit.controller.scripted import ScriptedCluster, Step

from cronwright.cluster.port import JOBS, SCHEDULES, Expired, Json, Listing, Resource, Unavailable
from cronwright.controller import operator as operator_module
from cronwright.controller import watching
from cronwright.controller.operator import Operator
from cronwright.controller.store import LEDGER, Store
from cronwright.controller.watching import Watch
from cronwright.core import ledger as ledgers
from cronwright.core.model import Claim, Key, Ledger

OWNER = "owner-uid"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "FIRST_DELAY", 0.0)


def job(name: str, version: int, *, uid: str = "", finished: bool = False) -> Json:
    conditions = [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"}]
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"kind": "TaskSchedule", "name": "s", "uid": OWNER, "controller": True}],
            "annotations": {
                "cronwright.dev/slot": "1767225600",
                "cronwright.dev/attempt": "1",
                "cronwright.dev/trigger": "Schedule",
            },
        },
        "status": {"conditions": conditions if finished else []},
    }


def nothing(*_: Any, **__: Any) -> None:
    """An observer, or a reconciler, that does not care."""


async def watched(cluster: ScriptedCluster) -> list[tuple[str, bool]]:
    """What an observer hears, as (name, deleted), until the script is over."""
    heard: list[tuple[str, bool]] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        heard.append((obj["metadata"]["name"], deleted))

    await follow(Watch(cluster, JOBS, "", observe, nothing), cluster)
    return heard


async def follow(watch: Watch, cluster: ScriptedCluster) -> None:
    await watch.sync()
    following = asyncio.create_task(watch.follow())
    try:
        async with asyncio.timeout(30):
            await cluster.finished.wait()
    finally:
        following.cancel()
        await asyncio.wait([following])


async def test_a_broken_watch_goes_on_from_its_last_event_without_listing() -> None:
    cluster = ScriptedCluster(
        [Listing([job("a", 1)], "5")],
        [[("ADDED", job("b", 7)), Unavailable("gone away")], [("DELETED", job("a", 9))]],
    )
    assert await watched(cluster) == [("a", False), ("b", False), ("a", True)]
    assert cluster.asked_from == ["5", "7", "9"]


async def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    bookmark = {"metadata": {"resourceVersion": "30"}}
    cluster = ScriptedCluster([Listing([], "5")], [[("BOOKMARK", bookmark), Unavailable("gone away")]])
    assert await watched(cluster) == []
    assert cluster.asked_from == ["5", "30"]


async def relisted(*listings: Listing) -> Store:
    """A store that was fed from these, one after the other, as its watch lost its place."""
    store = Store()
    cluster = ScriptedCluster(listings, [[Expired("too old")] for _ in listings[1:]])

    def observe(obj: Json, *, deleted: bool = False) -> None:
        store.observe_job(obj, deleted=deleted)

    await follow(Watch(cluster, JOBS, "", observe, store.reconcile_jobs), cluster)
    assert cluster.asked_from == [listing.version for listing in listings]
    return store


async def test_an_expired_watch_lists_again_and_what_vanished_meanwhile_is_gone() -> None:
    store = await relisted(
        Listing([job("kept", 1), job("vanished", 2)], "5"), Listing([job("kept", 1), job("new", 8)], "9")
    )
    gone = {name: run.gone for name, run in store.runs[OWNER].items()}
    assert gone == {"kept": False, "vanished": True, "new": False}


async def test_what_was_made_anew_under_its_name_is_not_taken_for_gone() -> None:
    store = await relisted(Listing([job("a", 1, uid="old")], "5"), Listing([job("a", 8, uid="new")], "9"))
    assert not store.runs[OWNER]["a"].gone


EVENTS: Sequence[Step] = [
    ("ADDED", job("a", 10)),
    ("MODIFIED", job("a", 11)),
    ("MODIFIED", job("a", 12, finished=True)),
]


@pytest.mark.parametrize(
    "order", [[0, 1, 2], [0, 0, 1, 1, 2, 2], [2, 1, 0], [1, 2, 0, 1], [0, 2, 1]], ids=lambda order: str(order)
)
async def test_events_that_come_twice_or_out_of_order_leave_the_latest(order: list[int]) -> None:
    store = Store()
    cluster = ScriptedCluster([Listing([], "5")], [[EVENTS[index] for index in order]])

    def observe(obj: Json, *, deleted: bool = False) -> None:
        store.observe_job(obj, deleted=deleted)

    await follow(Watch(cluster, JOBS, "", observe, nothing), cluster)
    run = store.runs[OWNER]["a"]
    assert (run.version, run.phase, run.gone) == (12, "Succeeded", False)


async def test_an_event_after_a_deletion_does_not_bring_a_job_back() -> None:
    store = Store()
    for obj, deleted in ((job("a", 10), False), (job("a", 12), True), (job("a", 11), False), (job("a", 13), False)):
        store.observe_job(obj, deleted=deleted)
    assert store.runs[OWNER]["a"].gone


def schedule(uid: str, version: int) -> Json:
    meta: dict[str, Any] = {"namespace": "ns", "name": "s", "uid": uid, "generation": 1}
    meta |= {"resourceVersion": str(version), "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"templateRef": {"name": "t"}, "schedule": {"interval": "1h"}}
    return {"metadata": meta, "spec": spec}


class _Listed(ScriptedCluster):
    """A cluster with these schedules and no templates."""

    async def pages(self, resource: Resource, **_: Any) -> AsyncIterator[Listing]:
        if resource != SCHEDULES:
            yield Listing([], "1")
            return
        async for page in super().pages(resource):
            yield page


async def test_the_auditor_finds_a_schedule_that_was_deleted_unseen() -> None:
    operator = Operator(_Listed([Listing([schedule("u", 3)], "4"), Listing([], "9")]), identity="test")
    await operator.audit()
    assert Key("ns", "s") in operator.engine.store.schedules
    await operator.audit()
    assert operator.engine.store.schedules == {}


async def test_the_auditor_keeps_a_schedule_that_was_made_anew_under_its_name() -> None:
    listings = [Listing([schedule("old", 3)], "4"), Listing([schedule("new", 8)], "9")]
    operator = Operator(_Listed(listings), identity="test")
    await operator.audit()
    await operator.audit()
    assert [known.uid for known in operator.engine.store.schedules.values()] == ["new"]


async def test_a_watch_that_lost_its_place_calls_for_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "AUDIT_DELAY", 0.0)
    operator = Operator(_Listed([]), identity="test")
    audited = asyncio.Event()

    async def audit() -> None:
        audited.set()

    monkeypatch.setattr(operator, "audit", audit)
    auditing = asyncio.create_task(operator._audit_for_ever())
    expired = ScriptedCluster([Listing([], "5"), Listing([], "9")], [[Expired("too old")]])
    await follow(Watch(expired, JOBS, "", nothing, nothing, operator.audit_soon), expired)
    async with asyncio.timeout(30):
        await audited.wait()
    auditing.cancel()
    await asyncio.wait([auditing])


async def test_an_audit_that_failed_is_repeated_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "AUDIT_DELAY", 0.0)
    operator = Operator(_Listed([]), identity="test")
    answers: list[Exception | None] = [Unavailable("no answer"), None]
    done = asyncio.Event()

    async def audit() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        done.set()

    monkeypatch.setattr(operator, "audit", audit)
    operator.audit_soon()
    auditing = asyncio.create_task(operator._audit_for_ever())
    async with asyncio.timeout(30):
        await done.wait()
    auditing.cancel()
    await asyncio.wait([auditing])


# What came and went before a listing


def mark(version: int) -> Json:
    return {"kind": "Job", "metadata": {"resourceVersion": str(version)}}


async def recalled(cluster: ScriptedCluster, *doubts: int) -> list[tuple[str, bool]]:
    heard: list[tuple[str, bool]] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        heard.append((obj["metadata"]["name"], deleted))

    watch = Watch(cluster, JOBS, "", observe, nothing, doubts=lambda: doubts)
    await watch.sync()
    await watch.recall()
    return heard


async def test_deletions_since_the_oldest_claim_are_heard_of() -> None:
    past: list[Step] = [("ADDED", job("a", 5)), ("DELETED", job("a", 6)), ("BOOKMARK", mark(9))]
    cluster = ScriptedCluster([Listing([job("b", 7)], "9")], [past])
    assert await recalled(cluster, 4) == [("b", False), ("a", True)]
    assert cluster.asked_from == ["4"]


@pytest.mark.parametrize("doubts", [(), (9,), (12, 14)])
async def test_without_a_doubt_the_past_is_not_asked_for(doubts: tuple[int, ...]) -> None:
    cluster = ScriptedCluster([Listing([], "9")])
    assert await recalled(cluster, *doubts) == []
    assert cluster.asked_from == []


async def test_a_past_that_the_api_server_has_forgotten_is_done_without() -> None:
    cluster = ScriptedCluster([Listing([job("b", 7)], "9")], [[Expired("too old")]])
    assert await recalled(cluster, 4) == [("b", False)]


async def test_a_past_that_ends_before_its_bookmark_is_asked_for_again() -> None:
    """An API server that stops closes its watches without a word; what it had not told yet was taken for nothing."""
    cluster = ScriptedCluster([Listing([job("b", 7)], "9")], [[("DELETED", job("a", 5))]])
    with pytest.raises(Unavailable):
        await recalled(cluster, 4)


async def test_one_old_doubt_does_not_hide_what_the_api_server_still_remembers() -> None:
    past: list[Step] = [("DELETED", job("a", 6)), ("BOOKMARK", mark(9))]
    cluster = ScriptedCluster([Listing([], "9")], [[Expired("too old")], [Expired("too old")], past])
    assert await recalled(cluster, 1, 2, 3, 4, 5, 12) == [("a", True)]
    assert cluster.asked_from == ["1", "4", "5"]


async def test_a_past_that_could_not_be_read_is_asked_for_again() -> None:
    cluster = ScriptedCluster(
        [Listing([], "3"), Listing([], "9"), Listing([], "11")],
        [[Expired("too old")], [Unavailable("gone")], [("DELETED", job("a", 6)), ("BOOKMARK", mark(11))]],
    )
    heard: list[str] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        heard.append(obj["metadata"]["name"])

    watch = Watch(cluster, JOBS, "", observe, nothing, doubts=lambda: [4])
    await follow(watch, cluster)
    assert (heard, cluster.asked_from) == (["a"], ["3", "4", "4", "11"])


def test_a_claim_without_a_job_is_in_doubt() -> None:
    store = Store()

    def claimed(version: int, ledger: Ledger) -> None:
        meta = {
            "name": f"claim-{version}",
            "namespace": "ns",
            "uid": f"lease-{version}",
            "resourceVersion": str(version),
            "ownerReferences": [{"kind": "TaskSchedule", "name": "s", "uid": f"s-{version}", "controller": True}],
            "annotations": {LEDGER: ledgers.encode(ledger)},
        }
        store.observe_lease({"metadata": meta, "spec": {}})

    slot = 1767225600
    claimed(3, Ledger(timing="", watermark=0))
    assert store.doubts() == []
    claimed(8, Ledger(timing="", watermark=0, prepared=slot))
    assert store.doubts() == [8]
    claimed(7, Ledger(timing="", watermark=0, claims=(Claim(slot, 1, "Schedule", 0),)))
    claimed(9, Ledger(timing="", watermark=0, claims=(Claim(slot, 1, "Schedule", 0, since=5),)))
    assert store.doubts() == [5, 7, 8]
    shown = job("j", 9)
    shown["metadata"]["ownerReferences"][0]["uid"] = "s-7"
    store.observe_job(shown)
    assert store.doubts() == [5, 8]


# One object that cannot be observed


def refuse_a(obj: Json) -> None:
    if obj["metadata"]["name"] == "a":
        raise ValueError("unreadable")


def surprises(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(":")[0] for record in caplog.records if record.levelname == "ERROR"]


async def test_a_job_that_cannot_be_observed_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster(
        [Listing([job("a", 1), job("b", 2)], "5")],
        [[("MODIFIED", job("a", 6)), ("MODIFIED", job("b", 7)), ("DELETED", job("a", 8)), ("DELETED", job("b", 9))]],
    )
    heard: list[tuple[str, bool]] = []
    listed: list[Set[str]] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        refuse_a(obj)
        heard.append((obj["metadata"]["name"], deleted))

    await follow(Watch(cluster, JOBS, "", observe, lambda uids, _: listed.append(set(uids))), cluster)
    assert heard == [("b", False), ("b", False), ("b", True)]
    assert listed == [{"uid-a", "uid-b"}]
    assert cluster.asked_from == ["5", "9"]
    assert surprises(caplog) == ["Job ns/a"] * 3


async def test_a_job_that_came_and_went_and_cannot_be_observed_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    past: list[Step] = [("DELETED", job("a", 5)), ("DELETED", job("b", 6)), ("BOOKMARK", mark(9))]
    heard: list[str] = []

    def observe(obj: Json, *, deleted: bool = False) -> None:
        refuse_a(obj)
        heard.append(obj["metadata"]["name"])

    watch = Watch(ScriptedCluster([Listing([], "9")], [past]), JOBS, "", observe, nothing, doubts=lambda: [4])
    await watch.sync()
    await watch.recall()
    assert heard == ["b"]
    assert surprises(caplog) == ["Job ns/a"]


async def test_a_schedule_that_cannot_be_observed_hides_no_other_from_an_audit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, good = schedule("u-bad", 2), schedule("u", 3)
    bad["metadata"] |= {"name": "bad", "creationTimestamp": "0000-01-01T00:00:00Z"}  # Go has a year 0
    operator = Operator(_Listed([Listing([bad, good], "4"), Listing([bad], "9")]), identity="test")
    await operator.audit()
    assert list(operator.engine.store.schedules) == [Key("ns", "s")]
    await operator.audit()
    assert operator.engine.store.schedules == {}
    assert surprises(caplog) == ["TaskSchedule ns/bad"] * 2
