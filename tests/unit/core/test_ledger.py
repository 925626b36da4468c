"""The ledger as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.views import T, claim, ledger, schedule

from cronwright.core.ledger import REQUESTS_REMEMBERED, decode, encode
from cronwright.core.model import Claim, Handled, Ledger, Skip

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
    since=counts,
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
    assert [c.since for c in decode(text).claims] == [c.since for c in of.claims]
    assert "\n" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"v": 2}',
        '{"v": 1}',
        '{"v":1,"timing":"","watermark":0,"claims":[{}]}',
        '{"v":1,"timing":"","watermark":"0"}',
        '{"v":1,"timing":"","watermark":0,"prepared":[]}',
        '{"v":1,"timing":"","watermark":0,"skips":{"Forbidden":"1"}}',
        '{"v":1,"timing":"","watermark":0,"last_skip":["","",""]}',
        '{"v":1,"timing":"","watermark":0,"requests":[["a","RunNow",true,"","now"]]}',
        '{"v":1,"timing":"","watermark":0,"claims":[{"slot":[],"attempt":1,"trigger":"Schedule","claimed":0}]}',
        '{"v":1,"timing":"","watermark":0,"claims":[{"slot":0,"attempt":1,"trigger":"Schedule","claimed":0,"since":"x"}]}',
    ],
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
