"""Slots are claimed ahead of their time, and at what moment."""

from __future__ import annotations

from uuid import UUID

from cronwright.core.preparing import SHORTEST_LEAD, SPREAD, lead

LEADS = [lead(str(UUID(int=number))) for number in range(5000)]


def test_the_claims_of_a_full_hour_are_spread_evenly() -> None:
    assert min(LEADS) >= SHORTEST_LEAD
    assert max(LEADS) < SHORTEST_LEAD + SPREAD
    a_second = [sum(second <= each < second + 1 for each in LEADS) for second in range(10, 30)]
    assert min(a_second) > 0.7 * len(LEADS) / SPREAD
    assert max(a_second) < 1.3 * len(LEADS) / SPREAD


def test_no_claim_is_written_in_the_half_second_in_which_slots_are_served() -> None:
    into_its_second = [-each % 1 for each in LEADS]
    assert min(into_its_second) >= 0.5
