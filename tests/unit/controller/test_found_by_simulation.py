"""Mistakes that the simulator found, each as the smallest case that shows it (docs/simulation.md)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cronwright.cluster.port import SCHEDULES, Conflict, Json, NotFound, Resource
from cronwright.controller.acting import Actor
from cronwright.controller.engine import Engine
from cronwright.controller.metrics import Metrics
from cronwright.controller.store import LEDGER, Store
from cronwright.core import ledger as ledgers
from cronwright.core.decide import decide
from cronwright.core.model import Claim, Decision, Key, Ledger, Outcome, Start, Stop
from cronwright.core.observe import fingerprint
from cronwright.core.rebuilding import rebuild

NOW = 1_790_000_000
KEY = Key("default", "nightly")
SPEC: Json = {"templateRef": {"name": "t"}, "schedule": {"interval": "10s"}, "concurrencyPolicy": "Queue"}
OWNER = {"kind": "TaskSchedule", "name": "nightly", "uid": "u1", "controller": True}


def schedule(version: int = 5, uid: str = "u1", **status: Any) -> Json:
    meta = {"namespace": "default", "name": "nightly", "uid": uid, "generation": 1, "resourceVersion": str(version)}
    return {"metadata": {**meta, "creationTimestamp": "2026-09-21T14:00:00Z"}, "spec": SPEC, "status": status}


def job(slot: int, attempt: int = 1, version: int = 20, ended: str = "", **marks: str) -> Json:
    annotations = {"slot": str(slot), "attempt": str(attempt), "trigger": "Schedule", **marks}
    conditions = [{"type": ended, "status": "True", "lastTransitionTime": "2026-09-21T14:13:20Z"}] if ended else []
    return {
        "metadata": {
            "namespace": "default",
            "name": f"nightly-{slot}-{attempt}",
            "uid": f"job-{slot}-{attempt}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-09-21T14:13:10Z",
            "annotations": {f"cronwright.dev/{key}": value for key, value in annotations.items()},
            "ownerReferences": [OWNER],
        },
        "spec": {},
        "status": {"conditions": conditions},
    }


def lease(*claims: Claim, watermark: int = NOW, version: int = 10, **counts: Any) -> Json:
    ledger = Ledger(timing=fingerprint(SPEC), watermark=watermark, claims=claims, **counts)
    meta = {"namespace": "default", "name": "c", "uid": "l", "ownerReferences": [OWNER]}
    meta["resourceVersion"] = str(version)
    return {"metadata": {**meta, "annotations": {LEDGER: ledgers.encode(ledger)}}, "spec": {}}


def known(*jobs: Json, claims: tuple[Claim, ...] = (), spec: Json | None = None, **status: Any) -> Store:
    store = Store()
    ready = {"type": "Ready", "status": "True", "reason": "", "message": ""}
    template = {"namespace": "default", "name": "t", "uid": "t", "generation": 1, "resourceVersion": "1"}
    store.observe_template(
        {
            "metadata": template,
            "spec": {"shell": {"script": "true"}, **(spec or {})},
            "status": {"observedGeneration": 1, "conditions": [ready]},
        }
    )
    store.observe_schedule(schedule(**status))
    store.observe_lease(lease(*claims))
    for each in jobs:
        store.observe_job(each)
    return store


def decided(store: Store, *sought: str) -> Decision:
    """`sought`: Jobs that were asked for and are not there."""
    [recorded] = store.ledgers.values()
    recorded.sought |= set(sought)
    view = store.view(KEY, NOW + 5)
    assert view is not None
    return decide(view)


def claim(slot: int, attempt: int = 1, ending: str = "") -> Claim:
    return Claim(slot, attempt, "Schedule", slot, ending=ending)


RETRY = '{"maxAttempts":3,"initialDelay":"1s"}'
RECORD = {"slot": "2026-09-21T14:13:00Z", "trigger": "Schedule", "attempt": 1, "startedAt": "2026-09-21T14:13:00Z"}


def test_a_decision_never_wakes_for_what_is_past() -> None:
    """A finished Job that outlived its time to live, but is kept for its retry, made the controller turn in circles."""
    failed = job(NOW - 20, ended="Failed", retry='{"maxAttempts":3,"initialDelay":"1h"}', ttl="1")
    store = known(failed, claims=(claim(NOW - 20),))
    store.runs["u1"][failed["metadata"]["name"]].outcome = Outcome("Transient")
    wake = decided(store).wake
    assert wake is not None
    assert wake > NOW + 5


def test_a_pause_is_written_at_once() -> None:
    """It was only remembered, so every look found another moment of pausing, and a restart forgot it."""
    store = known(job(NOW - 20, ended="Failed"), claims=(claim(NOW - 20),))
    store.runs["u1"][f"nightly-{NOW - 20}-1"].outcome = Outcome("Permanent")
    paused = store.schedules[KEY]
    assert paused.spec is not None
    paused.spec = paused.spec.model_copy(update={"pause_after_failures": 1})
    decision = decided(store)
    assert decision.ledger.paused
    assert decision.write


def test_nothing_starts_while_an_earlier_attempt_that_may_be_retried_is_inspected() -> None:
    store = known(job(NOW - 20, ended="Failed", retry=RETRY), claims=(claim(NOW - 20), claim(NOW - 10)))
    decision = decided(store, f"nightly-{NOW - 10}-1")
    assert decision.inspect == (f"nightly-{NOW - 20}-1",)
    assert decision.starts == ()


def test_a_run_that_status_shows_and_no_job_is_known_of_is_looked_for_first() -> None:
    """The picture of the Jobs may be older than that of the schedules: its Job may well be running."""
    name = f"nightly-{NOW - 20}-1"
    store = known(claims=(claim(NOW - 20), claim(NOW - 10)), recentRuns=[{**RECORD, "name": name, "phase": "Running"}])
    decision = decided(store, f"nightly-{NOW - 10}-1")
    assert decision.inspect == (name,)
    assert decision.starts == ()
    assert [record["phase"] for record in decision.status["recentRuns"]] == ["Running"]


def test_a_successor_asks_for_the_job_of_a_claim_before_it_drops_it() -> None:
    """Its watch was behind: with Replace the claim was taken for one that never started, and its Job ran on."""
    store = known(claims=(claim(NOW - 20),))
    name = f"nightly-{NOW - 20}-1"
    asking = decided(store)
    assert (asking.inspect, asking.write, asking.starts) == ((name,), False, ())
    assert [start.name for start in decided(store, name).starts] == [name]
    store.observe_job(job(NOW - 20))
    assert decided(store).inspect == ()


def test_a_claim_that_was_being_ended_never_starts_again() -> None:
    decision = decided(known(claims=(claim(NOW - 20, ending="Replaced"),)))
    assert decision.starts == ()
    assert decision.inspect == (f"nightly-{NOW - 20}-1",)


def test_a_ledger_made_anew_takes_nothing_before_the_last_edit_for_due() -> None:
    store = known(observedGeneration=1)
    record = store.schedules[KEY]
    record.edited = NOW - 3
    assert rebuild(record, {}).watermark == NOW - 3


class Recorder:
    """A cluster that takes patches and nothing else."""

    def __init__(self) -> None:
        self.patches: list[Json] = []

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        self.patches.append(patch)
        return schedule(version=99)


async def test_a_status_patch_takes_away_what_a_map_no_longer_says() -> None:
    """A merge patch kept the message of the skip before, so the status never came out as it was meant."""
    cluster = Recorder()
    port: Any = cluster
    actor = Actor(port, Store(), lambda: NOW, "me")
    old = {"lastSkip": {"slot": "a", "reason": "Forbidden", "message": "why"}}
    await actor.write_status(SCHEDULES, KEY, "u1", old, {"lastSkip": {"slot": "b", "reason": "Excluded"}})
    assert cluster.patches[0]["status"]["lastSkip"] == {"slot": "b", "reason": "Excluded", "message": None}


async def test_answered_requests_are_removed_from_the_very_schedule_that_made_them() -> None:
    """One that was made anew under the same name, its annotations with it, never got an answer."""
    cluster = Recorder()
    port: Any = cluster
    store = known()
    await Actor(port, store, lambda: NOW, "me").remove_requests(store.schedules[KEY], ("id",))
    assert cluster.patches[0]["metadata"]["uid"] == "u1"


async def test_a_status_is_written_only_to_the_very_schedule_it_tells_of() -> None:
    """One that was made anew under the same name got the counts of its predecessor."""
    cluster = Recorder()
    port: Any = cluster
    await Actor(port, Store(), lambda: NOW, "me").write_status(SCHEDULES, KEY, "u1", {}, {"runs": 1})
    assert cluster.patches[0]["metadata"] == {"uid": "u1"}


def test_a_job_that_no_watch_ever_told_of_is_found_missing() -> None:
    """Known from the answer to its creation alone, and deleted before the watch was back, it stayed active for ever."""
    store = known(job(NOW), claims=(claim(NOW),))
    assert store.reconcile_jobs(set(), 19) == set(), "the listing is older than the Job"
    assert store.reconcile_jobs(set(), 21) == {KEY}
    assert store.runs["u1"][f"nightly-{NOW}-1"].gone


def test_the_end_of_a_claimed_job_counts_even_if_its_beginning_was_not_seen() -> None:
    store = known(claims=(claim(NOW),))
    store.observe_job(job(NOW, version=21), deleted=True)
    store.observe_job(job(NOW, version=20))
    assert store.runs["u1"][f"nightly-{NOW}-1"].gone


def test_an_old_event_does_not_bring_a_deleted_schedule_back() -> None:
    store = known()
    store.observe_schedule(schedule(version=30), deleted=True)
    assert store.observe_schedule(schedule(version=29)) == set()
    assert KEY not in store.schedules
    assert store.observe_schedule(schedule(version=31, uid="u2")) == {KEY}


def test_the_end_of_its_predecessor_does_not_take_a_schedule_away() -> None:
    """The auditor told it of every schedule that was made anew between two audits."""
    store = known()
    store.observe_schedule(schedule(version=31, uid="u2"))
    store.observe_schedule(schedule(version=32, uid="u1"), deleted=True)
    assert store.schedules[KEY].uid == "u2"


class Slow:
    """A cluster that takes its time to tell of a Job: whoever asked leads no more when the answer is there."""

    def __init__(self, before: Json) -> None:
        self.before = before
        self.told = False

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "30"}}

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        self.told = True
        return self.before

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        pytest.fail(f"{body['metadata']['name']} was created by a replica that does not lead")


async def test_a_replica_that_sleeps_over_the_attempt_before_does_not_start_the_next_one() -> None:
    """Its successor had run the retry by then and removed it, as history: 0 wants it."""
    failed = job(NOW - 20, ended="Failed", retry=RETRY)
    cluster = Slow({**failed, "spec": {"template": {"metadata": {}, "spec": {}}}})
    port: Any = cluster
    engine = Engine(port, lambda: NOW + 5, lambda: 0.0, "me", Metrics(), lambda _uid: not cluster.told)
    engine.store = engine._actor._store = known(failed, claims=(claim(NOW - 20),))
    engine.store.runs["u1"][failed["metadata"]["name"]].outcome = Outcome("Transient")
    view = engine.store.view(KEY, NOW + 5)
    assert view is not None
    assert [start.claim.attempt for start in decide(view).starts] == [2]
    await engine._act(view, decide(view))
    assert cluster.told


class Silent:
    """A cluster that takes a Job and is long in saying so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        self.asked.set()
        await self.answered.wait()
        made = {"uid": "new", "resourceVersion": "31", "creationTimestamp": "2026-09-21T14:13:25Z"}
        return {**body, "metadata": {**body["metadata"], **made}}


async def test_a_creation_that_was_sent_is_seen_through_when_its_replica_is_told_to_stop() -> None:
    """It was given up and the shard handed over: the Job landed when its slot had been skipped already."""
    cluster = Silent()
    port: Any = cluster
    engine = Engine(port, lambda: NOW + 5, lambda: 0.0, "me", Metrics(), lambda _uid: True)
    engine.store = engine._actor._store = known()
    view = replace(engine.store.view(KEY, NOW + 5) or pytest.fail("no view"), own=True)
    start = Start(f"nightly-{NOW}-1", claim(NOW))
    work = asyncio.create_task(engine._act(view, replace(decide(view), write=False, starts=(start,))))
    await cluster.asked.wait()
    work.cancel()
    settled = asyncio.create_task(engine.settle(lambda uid: uid == "u1"))
    await asyncio.wait([work])
    assert not settled.done()
    cluster.answered.set()
    await settled
    assert engine.store.runs["u1"].keys() == {start.name}
    await engine.settle(lambda _: True)


class NoJob:
    """A cluster without any Job."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        raise NotFound(name)


async def test_a_prepared_slot_of_a_predecessor_is_run_only_when_its_job_was_asked_for() -> None:
    """The Lease came by one watch and the Job, later, by another: the successor took the slot for one that had not run,
    skipped it, and went on to exceed maxRuns (seed 1058)."""
    store = known()
    store.observe_lease(lease(watermark=NOW - 10, version=11, prepared=NOW))
    view = store.view(KEY, NOW + 5)
    assert view is not None
    doubtful = decide(view)
    assert (doubtful.starts, doubtful.inspect) == ((), (f"nightly-{NOW}-1",))
    port: Any = NoJob()
    await Actor(port, store, lambda: NOW + 5, "me").inspect(view.schedule, doubtful.ledger, doubtful.inspect[0])
    assert [start.name for start in decided(store).starts] == [f"nightly-{NOW}-1"]
    store.observe_lease(lease(watermark=NOW - 10, version=12, prepared=NOW))
    assert decided(store).starts == (), "somebody else has written since, and may have started it"


class Writable:
    """A cluster that takes every ledger."""

    def __init__(self, version: int) -> None:
        self.version = version

    async def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        self.version += 5
        return {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}


async def test_a_claim_remembers_since_when_its_job_may_have_come_and_gone() -> None:
    """A prepared slot's Job was created and deleted by a person before the slot stood among the claims: a successor
    asked what had come and gone since the claim, which was too late, and ran the slot again (seed 6858)."""
    port: Any = Writable(10)
    store = known()
    store.observe_lease(lease(watermark=NOW - 10, version=11, prepared=NOW))
    schedule = store.schedules[KEY]
    actor = Actor(port, store, lambda: NOW + 5, "me")

    async def written(*claims: Claim) -> list[int]:
        assert await actor.record(schedule, Ledger(timing=schedule.timing, watermark=NOW, claims=claims))
        successor = Store()
        successor.observe_lease(lease(*(store.ledgers["u1"].ledger or pytest.fail("no ledger")).claims, version=99))
        return successor.doubts()

    first = claim(NOW)
    assert await written(first) == [11], "where it was prepared"
    [first] = (store.ledgers["u1"].ledger or pytest.fail("no ledger")).claims
    assert await written(first, claim(NOW + 10)) == [11, 15], "the first write counts"
    assert await written(replace(first, attempt=2, since=0)) == [20], "another attempt has another Job"


class Contested:
    """A cluster on which somebody else writes all the time: each patch is a Conflict."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return job(NOW)

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Json, *, sub: str = "") -> Json:
        raise Conflict("the object has been modified")


async def test_a_run_that_could_not_be_ended_is_not_taken_for_gone() -> None:
    """Its successor would have started beside it."""
    port: Any = Contested()
    store = known(job(NOW), claims=(claim(NOW),))
    name = f"nightly-{NOW}-1"
    with pytest.raises(Conflict):
        await Actor(port, store, lambda: NOW, "me").stop(store.schedules[KEY], Stop(name, "End", "Cancelled"))
    assert not store.runs["u1"][name].gone


async def test_a_status_that_could_not_be_written_is_written_again() -> None:
    """It was taken for that of an object that is gone, and a template's verdict was never told."""
    port: Any = Contested()
    with pytest.raises(Conflict):
        await Actor(port, Store(), lambda: NOW, "me").write_status(SCHEDULES, KEY, "u1", {}, {"runs": 1})


async def test_a_status_that_cannot_be_written_does_not_delay_a_slot() -> None:
    """The look was repeated after up to a minute, and the slot waited for it."""
    port: Any = Contested()
    engine = Engine(port, lambda: float(NOW), lambda: 0.0, "me", Metrics(), lambda _uid: True)
    engine.store = engine._actor._store = known()
    store = engine.store
    store.observe_lease(lease(watermark=NOW, version=11, prepared=NOW + 10))
    store.ledgers["u1"].own = True
    engine._delays[KEY] = 60.0
    await engine._work(KEY)
    assert engine.queue._wakes[KEY] == NOW + 10


async def test_what_was_rendered_ahead_is_not_sent_when_its_template_was_edited() -> None:
    """Its event had come, but the look that it calls for had not been served yet."""
    port: Any = Writable(10)
    now = [float(NOW)]
    engine = Engine(port, lambda: now[0], lambda: 0.0, "me", Metrics(), lambda _uid: True)
    store = engine.store = engine._actor._store = known()
    store.observe_lease(lease(watermark=NOW, version=11, prepared=NOW + 10))
    store.ledgers["u1"].own = True
    engine._foresee(KEY)
    ahead = engine._ahead[KEY]
    now[0] += 10
    assert engine._may_fire(KEY, ahead)
    store.observe_template(
        {
            "metadata": {"namespace": "default", "name": "t", "uid": "t", "generation": 2, "resourceVersion": "12"},
            "spec": {"shell": {"script": "false"}},
        }
    )
    assert not engine._may_fire(KEY, ahead)
    store.templates.clear()
    assert not engine._may_fire(KEY, ahead)


async def test_what_was_rendered_ahead_is_not_sent_by_a_replica_that_lost_its_shard_meanwhile() -> None:
    """It has it again by now, but somebody else may have acted in between."""
    port: Any = Writable(10)
    now = [float(NOW)]
    engine = Engine(port, lambda: now[0], lambda: 0.0, "me", Metrics(), lambda _uid: True)
    store = engine.store = engine._actor._store = known()
    store.observe_lease(lease(watermark=NOW, version=11, prepared=NOW + 10))
    store.ledgers["u1"].own = True
    engine._foresee(KEY)
    now[0] += 10
    assert store.disown(lambda uid: uid == "u2") == set()
    assert engine._may_fire(KEY, engine._ahead[KEY])
    assert store.disown(lambda uid: uid == "u1") == {KEY}
    assert not engine._may_fire(KEY, engine._ahead[KEY])
