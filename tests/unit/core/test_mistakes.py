"""Mistakes that users of other schedulers report, each with the tests that would catch it here.

| mistake | test |
|---|---|
| a Job deleted before status was written is run again | unit/core/test_decide.py::test_a_job_that_was_deleted_before_status_was_written_is_not_run_again |
| irregular schedules lose missed runs to a gap estimate | unit/core/test_mistakes.py::test_an_irregular_schedule_loses_no_missed_run |
| a run exactly at the deadline is dropped | unit/core/test_mistakes.py::test_a_run_exactly_at_the_deadline_is_not_dropped |
| an edited schedule fires retroactively | unit/core/test_mistakes.py::test_an_edited_schedule_does_not_fire_retroactively |
| a resumed schedule fires at once | unit/core/test_mistakes.py::test_a_resumed_schedule_does_not_fire_at_once |
| minute-granular names of children collide | unit/core/test_mistakes.py::test_names_of_runs_a_second_apart_differ |
| a schedule recreated under the same name adopts old children | integration/test_runs.py::test_a_schedule_made_anew_under_the_same_name_adopts_nothing |
| Replace creates before the old run is gone | unit/core/test_decide.py::test_replace_starts_only_when_the_old_job_is_gone |
| the same, with real pods | integration/test_overlap.py::test_replace_starts_the_new_run_when_the_old_ones_pods_are_gone |
| a pod stuck Pending blocks Forbid for ever | integration/test_overlap.py::test_a_run_that_never_comes_to_run_is_ended_and_does_not_block_for_ever |
| max-runs overshoots when several finish at once | unit/core/test_mistakes.py::test_max_runs_does_not_overshoot_when_several_finish_at_once |
| the same, with real Jobs | integration/test_lifecycle.py::test_max_runs_counts_claims_and_never_overshoots |
| a run skipped by Forbid starts late when the old one ends | unit/core/test_decide.py::test_a_slot_that_forbid_skipped_is_done_when_the_old_run_ends |
| a Job suspended by a queueing system is taken for running or failed | unit/core/test_decide.py::test_a_suspended_job_counts_as_active_and_shows_as_pending |
| the same, with a real Job | integration/test_overlap.py::test_a_job_that_a_queueing_system_suspends_is_active_and_pending |
"""  # noqa: E501

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.core.views import MINUTE, T, at, before, ledger, schedule, succeeded, view

from cronwright.core.decide import decide
from cronwright.core.model import Claim
from cronwright.core.names import job_name

TESTS = Path(__file__).parents[2]
NAMED = re.findall(r"\| (\S+)::(\S+) \|", __doc__ or "")


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_every_mistake_has_its_test(file: str, test: str) -> None:
    assert f"\ndef {test}(" in (TESTS / file).read_text()


def test_an_irregular_schedule_loses_no_missed_run() -> None:
    """Away from Friday noon to Monday noon: three slots on each of the two days, and none in between."""
    away_from = int(datetime(2027, 1, 8, 9, 0, tzinfo=UTC).timestamp())
    back_at = int(datetime(2027, 1, 11, 13, 0, tzinfo=UTC).timestamp())
    of = schedule(
        schedule={"cron": "30 10,11,12 * * 1-5"},
        catchUp={"policy": "RunAll", "maxRuns": 100},
        concurrencyPolicy="Allow",
        created=away_from - T,
    )
    decision = decide(view(of, known=ledger(of, watermark=away_from), now=back_at - T))
    assert [datetime.fromtimestamp(start.claim.slot, UTC).strftime("%a %H:%M") for start in decision.starts] == [
        "Fri 10:30",
        "Fri 11:30",
        "Fri 12:30",
        "Mon 10:30",
        "Mon 11:30",
        "Mon 12:30",
    ]


@pytest.mark.parametrize(("late", "runs"), [(300, 1), (301, 0)])
def test_a_run_exactly_at_the_deadline_is_not_dropped(late: int, runs: int) -> None:
    of = schedule(schedule={"at": at(0)}, catchUp={"window": "5m", "tolerance": "0s"})
    assert len(decide(view(of, known=ledger(of), now=late)).starts) == runs


def test_an_edited_schedule_does_not_fire_retroactively() -> None:
    known = ledger(schedule(), watermark=T - 3600)
    edited = schedule(schedule={"cron": "* * * * *"}, generation=2, edited=-30)
    decision = decide(view(edited, known=known, now=-10))
    assert (decision.starts, decision.ledger.missed, decision.wake) == ((), 0, T)


def test_a_resumed_schedule_does_not_fire_at_once() -> None:
    known = ledger(schedule(suspend=True), watermark=T - 3600)
    decision = decide(view(schedule(generation=2, edited=-30), known=known, now=-10))
    assert (decision.starts, decision.ledger.missed, decision.wake) == ((), 0, T)


def test_names_of_runs_a_second_apart_differ() -> None:
    names = {job_name("x" * 200, Claim(T + second, 1, "Schedule", T)) for second in range(120)}
    assert len(names) == 120
    assert all(len(name) <= 63 for name in names)


def test_max_runs_does_not_overshoot_when_several_finish_at_once() -> None:
    of = schedule(maxRuns=3, concurrencyPolicy="Allow", catchUp={"policy": "RunAll"})
    claims, _ = before("AA")
    done = [succeeded(claim) for claim in claims]
    decision = decide(view(of, known=ledger(of, *claims), runs=done, now=5 * MINUTE))
    assert len(decision.starts) == 1
    assert (decision.ledger.spent, decision.ledger.skips) == (3, {"MaxRunsReached": 5})
