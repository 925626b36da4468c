"""The count must find what it is there to find: doubled slots, lost ones, and the two holes that are known."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

from hack.chaos.audit import LEDGER, Entry
from hack.chaos.counting import Creation, Tally, creations, tally
from hack.chaos.faults import BY_PEOPLE, KILL, OF_PARTS, OF_REPLICAS, TERMINATE, draw_faults
from hack.chaos.fleet import plan, quiet

REPLICAS = ["r1", "r2"]


def entry(at: float, actor: str, verb: str, resource: str, name: str, **request: Any) -> Entry:
    return Entry(at, actor, verb, resource, name, 200, f"uid-{at:g}", request)


def job_created(at: float, slot: int, actor: str = "r1") -> Entry:
    meta = {
        "name": f"s-{slot}-1",
        "ownerReferences": [{"name": "s"}],
        "annotations": {"cronwright.dev/slot": str(slot), "cronwright.dev/attempt": "1"},
    }
    return entry(at, actor, "create", "jobs", f"s-{slot}-1", metadata=meta)


def status_told(at: float, *jobs: str) -> Entry:
    status = {"recentRuns": [{"name": name} for name in jobs]}
    return entry(at, "r1", "patch", "taskschedules/status", "s", status=status)


def ledger_written(at: float, verb: str = "update", **ledger: Any) -> Entry:
    meta = {"annotations": {LEDGER: json.dumps(ledger)}}
    return entry(at, "r1", verb, "leases", "s-claim-1", metadata=meta)


def counted(due: list[int], entries: list[Entry], skips: dict[str, int] | None = None) -> Tally:
    return tally({"s": due}, creations(entries, {}), {"s": skips or {}}, entries, REPLICAS)["s"]


def test_a_slot_that_ran_once_or_was_skipped_is_accounted_for() -> None:
    account = counted([10, 20], [job_created(10.1, 10)], {"Forbidden": 1})
    assert (account.lost, account.twice_accounted, account.doubles, account.undue) == (0, 0, [], set())


def test_a_slot_without_a_job_or_a_reason_is_lost() -> None:
    assert counted([10, 20], [job_created(10.1, 10)]).lost == 1


def test_a_slot_that_ran_and_was_skipped_too_is_noticed() -> None:
    account = counted([10], [job_created(10.1, 10)], {"Forbidden": 1})
    assert account.twice_accounted == 1


def test_a_job_for_a_slot_that_never_was_is_noticed() -> None:
    assert counted([10], [job_created(10.1, 10), job_created(11.1, 11)]).undue == {11}


def test_two_jobs_for_a_slot_are_a_double_though_the_first_was_gone_by_then() -> None:
    gone = entry(11, "r1", "delete", "jobs", "s-10-1")
    [double] = counted([10], [job_created(10.1, 10), gone, job_created(12, 10, "r2")]).doubles
    assert [c.actor for c in double.creations] == ["r1", "r2"]
    assert not double.hole


def test_a_job_that_only_the_recorder_saw_is_counted() -> None:
    unlogged = Creation(10.0, "s", 10, 1, "s-10-1", "uid-unlogged")
    both = creations([job_created(12, 10)], {unlogged.uid: unlogged})
    assert len(tally({"s": [10]}, both, {}, [], REPLICAS)["s"].doubles) == 1


def test_a_job_that_a_person_deleted_before_status_told_of_it_is_the_known_hole() -> None:
    gone = entry(11, "admin", "delete", "jobs", "s-10-1")
    late = status_told(11.5, "s-10-1")
    [double] = counted([10], [job_created(10.1, 10), gone, late, job_created(12, 10, "r2")]).doubles
    assert double.hole


def test_a_job_that_a_person_deleted_after_status_told_of_it_is_no_hole() -> None:
    gone = entry(11, "admin", "delete", "jobs", "s-10-1")
    [double] = counted(
        [10], [job_created(10.1, 10), status_told(10.5, "s-10-1"), gone, job_created(12, 10, "r2")]
    ).doubles
    assert not double.hole


def test_a_job_that_a_person_deleted_long_after_its_creation_is_no_hole_though_no_status_told_of_it() -> None:
    renewed = entry(20, "r2", "update", "leases", "cronwright-shard-0")
    gone = entry(40, "admin", "delete", "jobs", "s-10-1")
    [double] = counted([10], [job_created(10.1, 10), renewed, gone, job_created(50, 10, "r2")]).doubles
    assert not double.hole


def test_unless_no_replica_was_left_that_could_have_told_of_it() -> None:
    renewed = entry(12, "r2", "update", "leases", "cronwright-shard-0")
    gone = entry(40, "admin", "delete", "jobs", "s-10-1")
    [double] = counted([10], [job_created(10.1, 10), renewed, gone, job_created(50, 10, "r2")]).doubles
    assert double.hole


def test_what_a_deleted_ledger_had_accounted_for_may_be_lost() -> None:
    before, gone = (
        ledger_written(9, runs=1, skips={"Forbidden": 1}, watermark=2),
        entry(10, "admin", "delete", "leases", "s-claim-1"),
    )
    account = counted([1, 2, 3], [job_created(1.1, 1), before, gone, ledger_written(11, "create", runs=1, watermark=3)])
    assert (account.lost, account.lost_by_hole) == (2, 2)


def test_a_deleted_ledger_that_was_written_again_from_memory_explains_nothing() -> None:
    before, gone = ledger_written(9, runs=1, watermark=1), entry(10, "admin", "delete", "leases", "s-claim-1")
    account = counted([1, 2], [job_created(1.1, 1), before, gone, ledger_written(11, "create", runs=1, watermark=1)])
    assert (account.lost, account.lost_by_hole) == (1, 0)


def test_slots_lie_where_the_schedule_says_and_none_at_its_ends() -> None:
    begin, end = quiet(1_795_000_000.5), quiet(1_795_000_100)
    for planned in plan(200, begin, end, random.Random(3)):
        due = planned.due(begin, end + 1)
        assert begin not in due
        assert end not in due
        if planned.anchor is not None:
            assert {b - a for a, b in pairwise(due)} == {planned.step}
        else:
            assert {slot % 60 for slot in due} <= set(range(0, 60, planned.step))


def test_a_minute_has_faults_of_replicas_parts_and_people_and_the_seed_repeats_them() -> None:
    for seed in range(50):
        faults = draw_faults(["r1", "r2"], 60, 5, random.Random(seed))
        assert faults == draw_faults(["r1", "r2"], 60, 5, random.Random(seed))
        kinds = {fault.kind for fault in faults}
        assert all(kinds.intersection(group) for group in (OF_REPLICAS, OF_PARTS, BY_PEOPLE))
        assert max(fault.at + fault.lasting for fault in faults) <= 60


def test_a_long_attack_begins_with_take_overs_that_nothing_disturbs() -> None:
    faults = draw_faults(["r1", "r2", "r3"], 180, 5, random.Random(1))
    prelude = [fault for fault in faults if fault.at < 50]
    assert [fault.kind for fault in prelude] == [KILL, TERMINATE, KILL, TERMINATE]
    assert all(a.at + a.lasting < b.at for a, b in pairwise(prelude)), "one is back before the next one goes"
    assert {fault.kind for fault in faults[len(prelude) :]} >= {*OF_PARTS, *BY_PEOPLE}
