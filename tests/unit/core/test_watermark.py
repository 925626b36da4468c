"""Nothing acts on the past: edits, resumes, raised budgets and returning templates move the watermark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cronwright.api import TaskTemplateSpec
from cronwright.core.decide import decide
from cronwright.core.model import Decision, Key, Ledger, Outcome, Run, Schedule, Template, View
from cronwright.core.names import job_name
from cronwright.core.observe import schedule_from
from cronwright.timing import format_instant, parse_instant

TEMPLATE = Template(
    key=Key("ns", "t"),
    uid="t",
    version=1,
    generation=1,
    deleting=False,
    spec=TaskTemplateSpec.model_validate({"shell": {"script": "true"}}),
    problem=None,
    checked=True,
    status={},
)


def day(text: str) -> int:
    return parse_instant(f"2027-01-01T{text}Z")


def schedule(edited: str = "00:00:00", generation: int = 1, **spec: Any) -> Schedule:
    whole = {"templateRef": {"name": "t"}, "schedule": {"cron": "0 * * * *"}, **spec}
    write = {"manager": "kubectl", "time": format_instant(day(edited)), "fieldsV1": {"f:spec": {}}}
    return schedule_from(
        {
            "metadata": {
                "namespace": "ns",
                "name": "s",
                "uid": "u",
                "creationTimestamp": format_instant(day("00:00:00")),
                "generation": generation,
                "resourceVersion": str(generation),
                "managedFields": [write],
            },
            "spec": whole,
        }
    )


def look(
    record: Schedule,
    now: str,
    ledger: Ledger | None = None,
    template: Template | None = TEMPLATE,
    runs: Mapping[str, Run] | None = None,
) -> Decision:
    sure = frozenset(job_name(record.key.name, claim) for claim in ledger.claims) if ledger is not None else frozenset()
    return decide(View(record, template, ledger, ledger is not None, runs or {}, day(now), sought=sure))


def started(decision: Decision) -> list[str]:
    return [format_instant(start.claim.slot)[11:16] for start in decision.starts]


def test_what_an_edited_schedule_would_have_run_before_is_not_missed() -> None:
    known = look(schedule(), "00:30:00").ledger
    edited = schedule("05:30:00", 2, schedule={"cron": "15 * * * *"})
    decision = look(edited, "05:40:00", known)
    assert (started(decision), decision.ledger.missed, decision.ledger.skips) == ([], 0, {})
    assert decision.ledger.watermark == day("05:30:00")
    assert started(look(edited, "06:15:00", decision.ledger)) == ["06:15"]


def test_a_slot_between_the_edit_and_the_look_is_run() -> None:
    known = look(schedule(), "00:30:00").ledger
    assert started(look(schedule("05:30:00", 2, schedule={"cron": "45 * * * *"}), "05:45:20", known)) == ["05:45"]


def test_slots_that_pass_while_suspended_are_not_missed() -> None:
    suspended = look(schedule(suspend=True), "04:30:00")
    assert (started(suspended), suspended.ledger.skips) == ([], {})
    resumed = look(schedule("05:30:00", 2), "05:31:00", suspended.ledger)
    assert (started(resumed), resumed.ledger.missed, resumed.ledger.skips) == ([], 0, {})


def test_a_budget_that_is_raised_does_not_buy_back_the_past() -> None:
    spent = replace(look(schedule(maxRuns=1), "00:30:00").ledger, spent=1, watermark=day("01:00:00"))
    assert started(look(schedule(maxRuns=1), "02:00:00", spent)) == []
    raised = look(schedule("05:30:00", 2, maxRuns=2), "05:31:00", spent)
    assert (started(raised), raised.ledger.missed) == ([], 0)
    assert started(look(schedule("05:30:00", 2, maxRuns=2), "06:00:00", raised.ledger)) == ["06:00"]


def test_slots_without_a_template_are_skipped_as_they_pass_and_not_made_up_for_when_it_returns() -> None:
    without = look(schedule(), "01:00:00", look(schedule(), "00:30:00").ledger, template=None)
    assert without.ledger.skips == {"TemplateNotFound": 1}
    returned = look(schedule(), "01:30:00", without.ledger)
    assert (started(returned), returned.ledger.missed) == ([], 0)


def test_a_single_time_in_the_second_of_an_edit_is_run_and_one_before_it_is_not() -> None:
    known = look(schedule(), "00:30:00").ledger
    edited = schedule("05:30:00", 2, schedule={"at": "2027-01-01T05:30:00Z"})
    assert started(look(edited, "05:30:01", known)) == ["05:30"]
    edited = schedule("05:30:00", 2, schedule={"at": "2027-01-01T05:29:59Z"})
    decision = look(edited, "05:30:01", known)
    assert started(decision) == []
    assert (decision.status["phase"], decision.status["conditions"][0]["reason"]) == ("Completed", "AtInPast")


def test_a_single_time_is_not_repeated_by_an_edit_in_its_second() -> None:
    once = {"at": "2027-01-01T05:30:00Z"}
    ran = look(schedule(schedule=once), "05:30:00").ledger
    assert started(look(schedule("05:30:00", 2, schedule={**once, "timeZone": "Europe/Berlin"}), "05:30:00", ran)) == [
        "05:30"  # the claim of before, whose Job was never seen
    ]
    assert ran.runs == look(schedule("05:30:00", 2, schedule=once), "05:30:00", ran).ledger.runs == 1


def test_a_single_time_that_was_skipped_was_not_in_the_past() -> None:
    record = schedule(schedule={"at": "2027-01-01T05:30:00Z"}, catchUp={"policy": "Skip"})
    decision = look(record, "06:00:00", look(record, "00:30:00").ledger)
    assert decision.ledger.skips == {"CatchUpSkipped": 1}
    assert (decision.status["phase"], decision.status["conditions"][0]["reason"]) == ("Completed", "Completed")


def test_a_clock_that_jumps_back_repeats_nothing() -> None:
    ran = replace(look(schedule(), "03:00:00", look(schedule(), "00:30:00").ledger).ledger, claims=())
    back = look(schedule(), "01:30:00", ran)
    assert (started(back), back.ledger) == ([], ran)


def test_a_pause_is_recorded_at_once() -> None:
    record = schedule(pauseAfterFailures=1)
    claimed = look(record, "01:00:00", look(record, "00:30:00").ledger)
    (start,) = claimed.starts
    failed = Run(
        name=start.name,
        uid="job",
        version=1,
        slot=day("01:00:00"),
        attempt=1,
        trigger="Schedule",
        token="",
        phase="Failed",
        created=day("01:00:00"),
        finished=day("01:01:00"),
        outcome=Outcome("Permanent"),
    )
    paused = look(record, "01:01:00", claimed.ledger, runs={start.name: failed})
    assert paused.write
    assert paused.ledger.paused_at == day("01:01:00")
    later = look(record, "09:00:00", paused.ledger, runs={start.name: failed})
    assert not later.write
    assert later.status["paused"]["since"] == "2027-01-01T01:01:00Z"
