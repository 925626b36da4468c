"""A ledger made anew from what is left: memory, status and Jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.views import MINUTE, RETRY, T, at, claim, failed, ledger, run, schedule, succeeded, view

from cronwright.core.decide import decide
from cronwright.core.model import Claim, Handled, Json, Ledger, Run, Schedule, Skip
from cronwright.core.rebuilding import merge, rebuild


def test_a_new_schedule_begins_at_its_creation() -> None:
    of = rebuild(schedule(created=-7), {})
    assert (of.watermark, of.claims, of.runs) == (T - 7, (), 0)


@pytest.mark.parametrize(
    ("status", "runs", "watermark"),
    [
        ({"lastScheduleTime": at(-60)}, [], T - 60),
        ({"lastSkip": {"slot": at(-120), "reason": "Forbidden"}}, [], T - 120),
        ({"lastScheduleTime": at(-180), "lastSkip": {"slot": at(-60), "reason": "Forbidden"}}, [], T - 60),
        ({"lastScheduleTime": at(-180)}, [succeeded(claim(-60))], T - 60),
        ({"lastScheduleTime": at(-180)}, [succeeded(claim(-60, trigger="Manual", token="id"))], T - 180),
    ],
    ids=[
        "a run in status",
        "a skip in status",
        "a skip after a run",
        "a Job that status had not noted",
        "not a request",
    ],
)
def test_a_deleted_lease_repeats_no_slot(status: Json, runs: list[Run], watermark: int) -> None:
    jobs = {job.name: job for job in runs}
    assert rebuild(schedule(status=status), jobs).watermark == watermark


def test_a_rebuilt_ledger_knows_what_status_and_jobs_tell() -> None:
    """All that is decided from the two, again decided from what is rebuilt of it, comes out the same."""
    of = schedule(concurrencyPolicy="Allow", pauseAfterFailures=9, requests={"id": '{"kind": "Resume"}'})
    active = claim(-MINUTE)
    known = ledger(
        of,
        active,
        succeeded=3,
        failed=2,
        cancelled=1,
        consecutive_failures=2,
        missed=4,
        skips={"Forbidden": 5},
        last_skip=Skip(T - 120, "Forbidden", "m"),
        last_slot=T - 60,
        last_success=T - 200,
        last_failure=T - 100,
        runs=7,
        spent=7,
    )
    told = decide(view(of, known=known, runs=[run(active)], now=-1)).status
    rebuilt = rebuild(
        schedule(status=told, concurrencyPolicy="Allow", pauseAfterFailures=9), {run(active).name: run(active)}
    )
    assert (
        decide(view(schedule(status=told, concurrencyPolicy="Allow"), known=rebuilt, runs=[run(active)], now=-1)).status
        == told
    )


def test_requests_that_were_dealt_with_are_remembered_in_their_order() -> None:
    handled = tuple(Handled(f"id{n}", "RunNow", False, "No.", T + n) for n in range(3))
    told = decide(view(known=ledger(schedule(), requests=handled))).status
    assert rebuild(schedule(status=told), {}).requests == handled


def test_a_pause_survives_the_lease() -> None:
    of = schedule(pauseAfterFailures=1)
    known = ledger(of, paused=1, paused_at=T - 5, consecutive_failures=1)
    told = decide(view(of, known=known)).status
    again = decide(view(schedule(pauseAfterFailures=1, status=told), recorded=False))
    assert (again.status["phase"], again.ledger.paused_at) == ("Paused", T - 5)


def test_a_ledger_that_nobody_can_read_stops_the_schedule_and_says_what_to_do() -> None:
    decision = decide(view(unreadable=True, recorded=False))
    assert (decision.write, decision.starts) == (False, ())
    ready = decision.status["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("False", "LedgerUnreadable")
    assert "delete it to go on from this status" in ready["message"]


def test_a_lost_ledger_is_what_is_remembered_and_what_status_tells_besides() -> None:
    older, later = Claim(10, 1, "Schedule", 10), Claim(20, 1, "Schedule", 20)
    remembered = Ledger(timing="t", watermark=10, claims=(older,), runs=3, spent=3, skips={"a": 1})
    told = Ledger(timing="t", watermark=20, claims=(later,), runs=5, spent=2, skips={"b": 2})
    merged = merge(remembered, told)
    assert (merged.watermark, merged.runs, merged.spent) == (20, 5, 3)
    assert merged.claims == (older, later)
    assert merged.skips == {"a": 1, "b": 2}
    assert merge(remembered, remembered) == remembered


# What status names


def named(known: Ledger, runs: list[Run], **spec: Any) -> Schedule:
    """The schedule whose status tells of this ledger and these Jobs."""
    of = schedule(**spec)
    return schedule(status=decide(view(of, known=known, runs=runs, now=-1)).status, **spec)


def test_runs_that_wait_are_not_lost_with_the_lease() -> None:
    asked = claim(-30, trigger="Manual", token="id", parameters={"region": "eu"}, policy="Queue")
    known = ledger(schedule(), claim(-3 * MINUTE), claim(-2 * MINUTE), claim(-MINUTE), asked, last_slot=T - MINUTE)
    active = run(claim(-3 * MINUTE))
    rebuilt = rebuild(named(known, [active], concurrencyPolicy="Queue"), {active.name: active})
    assert sorted(rebuilt.claims, key=lambda c: c.slot) == sorted(known.claims, key=lambda c: c.slot)
    assert (rebuilt.watermark, rebuilt.runs) == (known.watermark, known.runs)


def test_a_waiting_run_that_has_a_job_by_now_waits_no_more() -> None:
    waiting = claim(-MINUTE)
    of = named(ledger(schedule(), claim(-2 * MINUTE), waiting, last_slot=T - MINUTE), [run(claim(-2 * MINUTE))])
    done = [succeeded(claim(-2 * MINUTE)), succeeded(waiting)]
    assert not [c for c in rebuild(of, {r.name: r for r in done}).claims if c == waiting]


def test_long_parameters_do_not_fill_the_status() -> None:
    many = [claim(n, trigger="Backfill", token="id", parameters={"p": "x" * 4000}) for n in range(-90, -30)]
    told = decide(view(known=ledger(schedule(), *many), now=-1)).status
    assert told["queued"] >= 59
    assert 0 < len(told["waiting"]) <= 4


def test_a_retry_that_is_pending_is_not_lost_with_the_lease() -> None:
    for first in (claim(-MINUTE), claim(-30, trigger="Manual", token="id")):
        known = ledger(schedule(), first, last_slot=T - MINUTE)
        job = failed(first, retry=RETRY)
        [again] = rebuild(named(known, [job]), {job.name: job}).claims
        assert (again.slot, again.attempt, again.token) == (first.slot, 1, first.token)
        following = run(replace(first, attempt=2))
        [again] = rebuild(named(known, [job]), {r.name: r for r in (job, following)}).claims
        assert again.attempt == 2


@pytest.mark.parametrize(("policy", "endings"), [("Replace", ["Replaced", ""]), ("Allow", ["", ""])])
def test_a_failed_run_is_not_tried_again_beside_a_later_one(policy: str, endings: list[str]) -> None:
    """With status wiped and the ledger deleted both were, at once."""
    jobs = [failed(claim(-2 * MINUTE), retry=RETRY), failed(claim(-MINUTE), retry=RETRY)]
    rebuilt = rebuild(schedule(concurrencyPolicy=policy), {r.name: r for r in jobs})
    assert [c.ending for c in rebuilt.claims] == endings
    later = decide(view(schedule(concurrencyPolicy=policy), known=rebuilt, runs=jobs, now=10 * MINUTE))
    again = T - 2 * MINUTE in [start.claim.slot for start in later.starts]
    assert again == (policy == "Allow")


def test_a_request_that_only_its_job_tells_of_is_not_carried_out_again() -> None:
    """Its claim was deleted before any status told of it, and the annotation was still there."""
    asked = claim(-30, trigger="Manual", token="now")
    for job in (run(asked), succeeded(asked)):
        of = schedule(requests={"now": "{}"}, status={"runs": 3})
        rebuilt = rebuild(of, {job.name: job})
        assert [(handled.id, handled.kind, handled.runs) for handled in rebuilt.requests] == [("now", "RunNow", 1)]
        assert (rebuilt.runs, rebuilt.spent, [c.token for c in rebuilt.claims]) == (4, 3, ["now"])
        assert not [start for start in decide(view(of, known=rebuilt, runs=[job], now=-20)).starts if start.claim.token]


# Slots of which nobody knows any more


def test_a_slot_that_nobody_knows_of_before_one_that_has_run_is_skipped_with_a_reason() -> None:
    jobs = [succeeded(claim(-3 * MINUTE)), run(claim(-MINUTE))]
    status = {"lastScheduleTime": at(-5 * MINUTE), "runs": 7, "skips": {"Forbidden": 1}}
    rebuilt = rebuild(schedule(status=status), {r.name: r for r in jobs})
    assert rebuilt.skips == {"Forbidden": 1, "LedgerLost": 2}
    assert (rebuilt.runs, rebuilt.last_slot, rebuilt.watermark) == (9, T - MINUTE, T - MINUTE)
    assert [c.slot for c in rebuilt.claims] == [T - 3 * MINUTE, T - MINUTE], "how they end is still to be counted"


def test_what_is_remembered_is_not_counted_as_lost() -> None:
    jobs = {r.name: r for r in [run(claim(-MINUTE))]}
    remembered = ledger(schedule(), watermark=T - 2 * MINUTE, skips={"Forbidden": 3}, runs=8, spent=8)
    status = {"lastScheduleTime": at(-5 * MINUTE), "runs": 7, "skips": {"Forbidden": 1}}
    rebuilt = rebuild(schedule(status=status), jobs, remembered)
    assert (rebuilt.skips, rebuilt.runs) == ({"Forbidden": 3}, 9)


# Memory and status


def test_an_old_status_does_not_bring_back_what_memory_knows_the_end_of() -> None:
    over, open_, news = claim(-3 * MINUTE), claim(-2 * MINUTE), claim(-MINUTE)
    asked = claim(-100, trigger="Manual", token="done")
    remembered = ledger(
        schedule(), open_, watermark=T - 2 * MINUTE, requests=(Handled("done", "RunNow", True, "", T - 100),)
    )
    told = ledger(schedule(), over, asked, replace(open_, attempt=2), news)
    assert merge(remembered, told).claims == (replace(open_, attempt=2), news)


def test_a_prepared_slot_that_status_accounts_for_is_prepared_no_more() -> None:
    remembered = ledger(schedule(), watermark=T - 2 * MINUTE, prepared=T - MINUTE)
    merged = merge(remembered, ledger(schedule(), claim(-MINUTE), watermark=T - MINUTE))
    assert (merged.prepared, merged.claims) == (None, (claim(-MINUTE),)), "or it would be counted again"
    assert merge(remembered, ledger(schedule(), watermark=T - 2 * MINUTE)).prepared == T - MINUTE


def test_requests_that_either_knows_of_are_not_carried_out_again() -> None:
    one, two = Handled("one", "RunNow", True, "", T, 1), Handled("two", "RunNow", True, "", T + 1)
    merged = merge(ledger(schedule(), requests=(one,)), ledger(schedule(), requests=(replace(one, succeeded=1), two)))
    assert merged.requests == (replace(one, succeeded=1), two)


@pytest.mark.parametrize(
    ("status", "spent"), [({"runs": 7, "spent": 4}, 4), ({"runs": 7}, 7), ({"runs": 2, "spent": 0}, 0)]
)
def test_what_people_asked_for_does_not_spend_max_runs_when_the_ledger_was_lost(status: Json, spent: int) -> None:
    """A schedule ended early, its slots untold: requests were counted too."""
    assert rebuild(schedule(status=status), {}).spent == spent


@pytest.mark.parametrize(("runs", "spent", "told"), [(7, 4, 4), (7, 7, None), (2, 0, 0)])
def test_status_tells_what_is_spent_where_that_is_not_all_runs(runs: int, spent: int, told: int | None) -> None:
    of = schedule()
    assert decide(view(of, known=ledger(of, runs=runs, spent=spent, watermark=T))).status.get("spent") == told
