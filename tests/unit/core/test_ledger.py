"""The ledger as text, and what is known when it is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.views import MINUTE, T, at, claim, ledger, run, schedule, succeeded, view

from cronwright.core.decide import decide
from cronwright.core.ledger import REQUESTS_REMEMBERED, decode, encode, merge, rebuild
from cronwright.core.model import Claim, Handled, Json, Ledger, Run, Skip

instants = st.integers(0, 2**33)
counts = st.integers(0, 2**40)
words = st.text(max_size=20)
claims = st.builds(
    Claim,
    slot=instants,
    attempt=st.integers(1, 20),
    trigger=st.sampled_from(["Schedule", "CatchUp", "Manual", "Backfill"]),
    claimed=instants,
    token=words,
    parameters=st.none() | st.dictionaries(words, words, min_size=1, max_size=3),
    ending=st.sampled_from(["", "Replaced", "Cancelled"]),
    policy=st.sampled_from(["", "Allow", "Queue"]),
)
ledgers = st.builds(
    Ledger,
    timing=words,
    watermark=instants,
    claims=st.lists(claims, max_size=4).map(tuple),
    runs=counts,
    spent=counts,
    succeeded=counts,
    failed=counts,
    cancelled=counts,
    consecutive_failures=counts,
    missed=counts,
    skips=st.dictionaries(words, st.integers(1, 2**40), max_size=3),
    last_skip=st.none() | st.builds(Skip, instants, words, words),
    last_slot=st.none() | st.integers(1, 2**33),
    last_success=st.none() | st.integers(1, 2**33),
    last_failure=st.none() | st.integers(1, 2**33),
    paused=st.integers(0, 100),
    paused_at=st.none() | st.integers(1, 2**33),
    requests=st.lists(st.builds(Handled, words, words, st.booleans(), words, instants), max_size=3).map(tuple),
)


@given(ledgers)
def test_a_ledger_is_read_as_it_was_written(of: Ledger) -> None:
    assert decode(encode(of)) == of


@given(ledgers)
def test_equal_ledgers_are_the_same_text_on_one_line(of: Ledger) -> None:
    text = encode(of)
    assert encode(decode(text)) == text
    assert "\n" not in text


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"v": 2}', '{"v": 1}', '{"v":1,"timing":"","watermark":0,"claims":[{}]}']
)
def test_what_was_not_written_here_is_not_read(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode(text)


def test_only_the_latest_requests_are_remembered_and_their_messages_are_short() -> None:
    many = tuple(Handled(f"id{n}", "RunNow", True, "x" * 1000, n) for n in range(80))
    kept = decode(encode(Ledger(timing="", watermark=0, requests=many))).requests
    assert [handled.id for handled in kept] == [f"id{n}" for n in range(80 - REQUESTS_REMEMBERED, 80)]
    assert {len(handled.message) for handled in kept} == {256}


def test_an_ordinary_ledger_is_small() -> None:
    of = ledger(schedule(), claim(0), runs=10**6, spent=10**6, succeeded=10**6, last_slot=T, last_success=T)
    assert len(encode(of)) < 300


# Without its Lease


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
