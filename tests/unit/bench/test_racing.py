"""Slots are chosen so that everything is there in time, and every slot is accounted for by exactly one Job."""

from __future__ import annotations

import pytest
from hack.bench.lab.comparing import rotated, run_of
from hack.bench.lab.contestants import contestants
from hack.bench.lab.errors import BenchError
from hack.bench.lab.manifests import Fire, cron_at
from hack.bench.lab.observing import Sighting
from hack.bench.lab.racing import Course, fires_of, judge, slots

MIDNIGHT = 1_800_000_000 // 86_400 * 86_400


def test_slots_of_cronjobs_are_whole_minutes_and_the_warm_up_comes_a_minute_earlier() -> None:
    assert slots(60, MIDNIGHT + 10.0, count=500, lead=15) == (MIDNIGHT + 60, MIDNIGHT + 120)


def test_a_minute_that_is_about_to_begin_is_left_out() -> None:
    assert slots(60, MIDNIGHT + 58.0, count=500, lead=15) == (MIDNIGHT + 120, MIDNIGHT + 180)


def test_more_objects_get_more_time() -> None:
    warm, few = slots(1, MIDNIGHT, count=100, lead=15)
    _, many = slots(1, MIDNIGHT, count=5000, lead=15)
    assert warm < few < many


def test_a_course_has_so_many_slots_at_each_moment() -> None:
    fires = fires_of(Course(rate=2, moments=3), first=MIDNIGHT, step=60)
    assert [fire.slot - MIDNIGHT for fire in fires] == [0, 0, 60, 60, 120, 120]
    assert len({fire.name for fire in fires}) == 6


def test_an_expression_is_due_at_its_slot() -> None:
    assert cron_at(MIDNIGHT + 3723, seconds=True) == "2 1 * * * 3"
    assert cron_at(MIDNIGHT + 3720, seconds=False) == "2 1 * * *"


def test_a_cronjob_cannot_be_due_within_a_minute() -> None:
    with pytest.raises(ValueError, match="whole minute"):
        cron_at(MIDNIGHT + 1, seconds=False)


def test_lateness_is_from_each_jobs_own_slot() -> None:
    fires = [Fire("a", 100), Fire("b", 160)]
    seen = [Sighting("warm-1", "warm", 90), Sighting("a-1", "a", 100.5), Sighting("b-1", "b", 161)]
    turn = judge(seen, fires)
    assert turn.lateness == [0.5, 1.0]
    assert turn.figures.per_second == pytest.approx(2 / 61)


def test_a_bare_job_is_known_by_its_own_name() -> None:
    assert judge([Sighting("a", "bench", 101)], [Fire("a", 100)]).lateness == [1.0]


def test_a_slot_without_a_job_is_no_result() -> None:
    with pytest.raises(BenchError, match="1 of 2 slots have no Job"):
        judge([Sighting("a-1", "a", 101)], [Fire("a", 100), Fire("b", 100)])


def test_a_slot_with_two_jobs_is_no_result() -> None:
    with pytest.raises(BenchError, match="two Jobs"):
        judge([Sighting("a-1", "a", 101), Sighting("a-2", "a", 102)], [Fire("a", 100)])


def test_each_repeat_begins_with_another_contestant() -> None:
    assert [rotated("abc", by) for by in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]


def test_a_run_is_known_by_its_size_and_who_took_part_in_whichever_order() -> None:
    everybody = contestants(pods=False, concurrency=32)
    some = {who: everybody[who] for who in ("raw", "cronwright")}
    assert run_of("500", some) == "500: cronwright, raw" != run_of("500", everybody)
