"""Requests: what an annotation may say, what comes of it, and that it comes of it once."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.unit.core.views import MINUTE, T, at, before, ledger, run, schedule, template, view

from cronwright.core.decide import decide
from cronwright.core.model import Decision, Handled, Problem, Schedule
from cronwright.core.requests import AT_ONCE, MOST_PARAMETERS, MOST_RUNS, Request, parse

EXAMPLE = 'write for example {"kind": "RunNow", "parameters": {"region": "eu"}}.'
MALFORMED = {
    "no object": ("[]", f"it is not a JSON object; {EXAMPLE}"),
    "a kind that is not known": (
        '{"kind": "Run"}',
        "kind: 'Run' is not known; write one of RunNow, Backfill, Cancel, Resume.",
    ),
    "a kind that is no text": (
        '{"kind": ["RunNow"]}',
        "kind: ['RunNow'] is not known; write one of RunNow, Backfill, Cancel, Resume.",
    ),
    "a field that RunNow has not": (
        '{"from": "2027-01-01T00:00:00Z"}',
        "from: RunNow has no such field; it takes parameters, concurrencyPolicy.",
    ),
    "a field that Resume has not": (
        '{"kind": "Resume", "run": "x"}',
        "run: Resume has no such field; it takes no field.",
    ),
    "parameters that are a list": (
        '{"parameters": ["eu"]}',
        'parameters: write an object of strings, such as {"region": "eu"}.',
    ),
    "a parameter that is a number": (
        '{"parameters": {"days": 7}}',
        'parameters: write an object of strings, such as {"region": "eu"}.',
    ),
    "a policy that is not known": (
        '{"concurrencyPolicy": "Always"}',
        "concurrencyPolicy: 'Always' is not one of Allow, Forbid, Replace, Queue.",
    ),
    "a policy that is no text": (
        '{"concurrencyPolicy": 0}',
        "concurrencyPolicy: 0 is not one of Allow, Forbid, Replace, Queue.",
    ),
    "a run that is no name": ('{"kind": "Cancel", "run": 1}', "run: write the name of a run's Job."),
    "a backfill without an end": (
        '{"kind": "Backfill", "from": "2027-01-01T00:00:00Z"}',
        "to: a Backfill needs from and to; write times such as 2026-12-24T18:00:00Z.",
    ),
    "a backfill of a day without a time": (
        '{"kind": "Backfill", "from": "2027-01-01", "to": "2027-01-02T00:00:00Z"}',
        'from and to: "2027-01-01" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z".',
    ),
    "a backfill that ends before it begins": (
        '{"kind": "Backfill", "from": "2027-01-02T00:00:00Z", "to": "2027-01-01T00:00:00Z"}',
        "to: write a time that is not before from.",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_request_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    assert parse(text) == Problem("Malformed", sentence)
    decision = asked(text)
    assert decision.ledger.requests == (Handled("id", "Unknown", False, sentence, T + 1),)
    assert (decision.answered, decision.write, decision.starts) == (("id",), True, ())


@pytest.mark.parametrize("text", ["now", "", "{'kind': 'RunNow'}", '{"kind": "RunNow"'])
def test_what_is_not_json_is_refused_with_the_place_and_an_example(text: str) -> None:
    problem = parse(text)
    assert isinstance(problem, Problem)
    assert re.fullmatch(rf"it is not JSON \(.*line 1 column \d+.*\); {re.escape(EXAMPLE)}", problem.message)


PARSED = {
    "{}": Request(kind="RunNow"),
    '{"kind": "RunNow", "parameters": {"a": "b"}}': Request(kind="RunNow", parameters={"a": "b"}),
    '{"concurrencyPolicy": "Allow"}': Request(kind="RunNow", policy="Allow"),
    '{"kind": "Cancel"}': Request(kind="Cancel"),
    '{"kind": "Cancel", "run": "s-1-1"}': Request(kind="Cancel", run="s-1-1"),
    '{"kind": "Resume"}': Request(kind="Resume"),
    '{"kind": "Backfill", "from": "1970-01-01T00:00:01Z", "to": "1970-01-01T01:00:02+01:00"}': Request(
        kind="Backfill", begin=1, end=2
    ),
}


@pytest.mark.parametrize(("text", "request_"), PARSED.items(), ids=PARSED)
def test_what_a_request_says(text: str, request_: Request) -> None:
    assert parse(text) == request_


def asked(*texts: str | dict[str, Any], letters: str = "", **spec: Any) -> Decision:
    """What is decided a second after the slot about a suspended schedule of which this is asked."""
    named = {
        "id" if not n else f"id{n}": text if isinstance(text, str) else json.dumps(text) for n, text in enumerate(texts)
    }
    of = schedule(requests=named, **{"suspend": True, **spec})
    claims, runs = before(letters)
    using = template(parameters=[{"name": "region", "enum": ["eu", "us"]}, {"name": "note"}])
    return decide(view(of, known=ledger(of, *claims, watermark=T), runs=runs, using=using, now=1))


def said(decision: Decision) -> tuple[bool, str]:
    [handled] = decision.ledger.requests
    return handled.accepted, handled.message


# Run now


def test_run_now_starts_a_run_also_of_a_suspended_schedule() -> None:
    decision = asked({"parameters": {"region": "us"}})
    [start] = decision.starts
    assert (start.claim.slot, start.claim.trigger, start.claim.token) == (T + 1, "Manual", "id")
    assert start.claim.parameters == {"region": "us"}
    assert said(decision) == (True, "1 run claimed.")
    assert (decision.ledger.runs, decision.ledger.spent) == (1, 0), "it does not spend maxRuns"
    assert decision.status["requests"][0]["state"] == "Accepted"


def test_run_now_runs_when_the_budget_is_spent() -> None:
    assert len(asked({}, letters="S", maxRuns=1, suspend=False).starts) == 1


def test_two_requests_in_the_same_second_are_two_runs() -> None:
    decision = asked({}, {}, concurrencyPolicy="Allow")
    assert len({start.name for start in decision.starts}) == 2


RUN_NOW = {
    "Forbid refuses": ("Forbid", "", "A", (False, f"The run of {at(-MINUTE)} is not over."), 0),
    "Forbid, nothing active": ("Forbid", "", "S", (True, "1 run claimed."), 1),
    "Allow runs beside": ("Allow", "", "A", (True, "1 run claimed."), 1),
    "Forbid, a slot that the suspension holds back": ("Forbid", "", "W", (True, "1 run claimed."), 1),
    "Queue waits": ("Queue", "", "A", (True, "1 run claimed."), 0),
    "the request overrides Forbid": ("Forbid", "Allow", "A", (True, "1 run claimed."), 1),
    "the request overrides Allow": ("Allow", "Forbid", "A", (False, f"The run of {at(-MINUTE)} is not over."), 0),
    "the request waits though others may not": ("Forbid", "Queue", "A", (True, "1 run claimed."), 0),
}


@pytest.mark.parametrize(("policy", "own", "letters", "answer", "starts"), RUN_NOW.values(), ids=RUN_NOW)
def test_run_now_obeys_the_overlap_policy_unless_it_says_otherwise(
    policy: str, own: str, letters: str, answer: tuple[bool, str], starts: int
) -> None:
    decision = asked({"concurrencyPolicy": own} if own else {}, letters=letters, concurrencyPolicy=policy)
    assert said(decision) == answer
    assert len(decision.starts) == starts


def test_run_now_replaces() -> None:
    decision = asked({"concurrencyPolicy": "Replace"}, letters="A")
    assert [(stop.how, stop.why) for stop in decision.stops] == [("Delete", "Replaced")]
    assert [claim.ending for claim in decision.ledger.claims] == ["Replaced", ""]


PARAMETERS = {
    "one that the template has not": (
        {"zone": "1"},
        "parameters.zone: the template has no such parameter; it has region, note.",
    ),
    "a value that is not allowed": ({"region": "mars"}, "parameters.region: 'mars' is not one of eu, us."),
    "too much of it": (
        {"note": "x" * MOST_PARAMETERS},
        f"parameters: the requests that wait for their runs have more than {MOST_PARAMETERS} characters of them; "
        "write shorter ones, or ask again later.",
    ),
}


@pytest.mark.parametrize(("given", "sentence"), PARAMETERS.values(), ids=PARAMETERS)
def test_parameters_of_a_request_are_refused(given: dict[str, str], sentence: str) -> None:
    decision = asked({"parameters": given})
    assert said(decision) == (False, sentence)
    assert (decision.starts, decision.ledger.claims) == ((), ())


def test_the_parameters_of_a_backfill_count_for_each_of_its_runs() -> None:
    """All of them stand in the ledger, and an annotation has its limit."""
    hours = {"kind": "Backfill", "from": at(-59 * MINUTE), "to": at(0), "parameters": {"note": "x" * 2000}}
    assert said(asked(hours))[0] is False


def test_a_schedule_that_cannot_run_refuses_and_says_why() -> None:
    of = schedule(requests={"id": "{}"})
    decision = decide(view(of, gone=True))
    assert said(decision) == (
        False,
        "spec.templateRef.name: there is no TaskTemplate t in namespace ns; create it, or correct the name.",
    )


def test_a_request_waits_for_a_template_that_is_being_checked() -> None:
    of = schedule(requests={"id": "{}"})
    decision = decide(view(of, using=template(checked=False)))
    assert (decision.ledger.requests, decision.answered) == ((), ())


# Backfill


def backfill(begin: int, end: int, **more: Any) -> dict[str, Any]:
    return {"kind": "Backfill", "from": at(begin * MINUTE), "to": at(end * MINUTE), **more}


def test_a_backfill_runs_every_slot_from_and_to_included() -> None:
    decision = asked(backfill(-5, -3), concurrencyPolicy="Allow")
    assert [start.claim.slot for start in decision.starts] == [T - n * MINUTE for n in (5, 4, 3)]
    assert {start.claim.trigger for start in decision.starts} == {"Backfill"}
    assert said(decision) == (True, "3 runs claimed.")


def test_a_backfill_runs_one_after_the_other_unless_allowed() -> None:
    decision = asked(backfill(-5, -3))
    assert [start.claim.slot for start in decision.starts] == [T - 5 * MINUTE]
    assert len(decision.ledger.claims) == 3


BACKFILLS = {
    "no slot": (
        backfill(-5, -5) | {"from": at(-299), "to": at(-298)},
        f"The schedule has no slot from {at(-299)} to {at(-298)}; write a from and to in the past that have one "
        "between them.",
    ),
    "in the future": (
        backfill(5, 6),
        f"The schedule has no slot from {at(300)} to {at(1)}; write a from and to in the past that have one "
        "between them.",
    ),
    "one too many": (
        backfill(-MOST_RUNS, 0),
        f"from and to span {MOST_RUNS + 1} slots; write a stretch of at most {MOST_RUNS} at a time.",
    ),
    "a typing error": (
        {"kind": "Backfill", "from": "0001-01-01T00:00:00Z", "to": at(0)},
        "from and to span 1441 slots; write a stretch of at most 100 at a time.",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), BACKFILLS.values(), ids=BACKFILLS)
def test_a_backfill_has_bounds(text: dict[str, Any], sentence: str) -> None:
    assert said(asked(text)) == (False, sentence)


def test_a_backfill_of_a_single_slot() -> None:
    assert said(asked(backfill(-5, -5))) == (True, "1 run claimed.")


def test_a_backfill_of_as_many_as_may_be() -> None:
    assert said(asked(backfill(1 - MOST_RUNS, 0))) == (True, f"{MOST_RUNS} runs claimed.")


def test_a_backfill_goes_no_further_than_now() -> None:
    assert said(asked(backfill(-1, 10)))[1] == "2 runs claimed."


def test_a_backfill_behind_a_run_is_queued_as_far_as_there_are_places() -> None:
    decision = asked(backfill(-9, -5), letters="A", concurrencyPolicy="Queue", queueLimit=2)
    assert said(decision) == (True, "2 runs claimed, 3 not: 2 runs are waiting already (spec.queueLimit).")


def test_a_backfill_does_not_touch_the_slots_to_come() -> None:
    decision = asked(backfill(-5, -3), suspend=False)
    assert (decision.ledger.watermark, decision.ledger.last_slot) == (T, None)


# Cancel and resume


CANCELS: dict[str, tuple[str, str, tuple[bool, str]]] = {
    "the only one": ("A", "", (True, f"Cancelled: s-{T - 60}-1.")),
    "all of them": ("AW", "", (True, f"Cancelled: s-{T - 120}-1, s-{T - 60}-1.")),
    "one by its name": ("AW", f"s-{T - 120}-1", (True, f"Cancelled: s-{T - 120}-1.")),
    "a retry to come": ("R", "", (True, f"Cancelled: s-{T - 60}-1.")),
    "nothing active": ("S", "", (False, "No run of this schedule is active or waiting.")),
    "no such run": ("A", "s-1-1", (False, "No run s-1-1 of this schedule is active or waiting.")),
}


@pytest.mark.parametrize(("letters", "name", "answer"), CANCELS.values(), ids=CANCELS)
def test_cancel(letters: str, name: str, answer: tuple[bool, str]) -> None:
    text = {"kind": "Cancel", **({"run": name} if name else {})}
    decision = asked(text, letters=letters, concurrencyPolicy="Queue")
    assert said(decision) == answer


def test_what_is_cancelled_does_not_run_and_is_not_tried_again() -> None:
    assert asked({"kind": "Cancel"}, letters="W", suspend=False).ledger.cancelled == 1
    assert [stop.how for stop in asked({"kind": "Cancel"}, letters="A").stops] == ["End"]
    given_up = asked({"kind": "Cancel"}, letters="D")
    assert (given_up.starts, given_up.ledger.claims, given_up.ledger.failed) == ((), (), 1)


def test_resume_ends_a_pause_and_nothing_before_it_is_missed() -> None:
    of = schedule(requests={"id": '{"kind": "Resume"}'})
    known = ledger(of, paused=1, paused_at=T - 600, consecutive_failures=3, watermark=T - 600)
    decision = decide(view(of, known=known, now=1))
    assert said(decision) == (True, "The schedule runs again.")
    assert (decision.ledger.paused, decision.ledger.consecutive_failures, decision.ledger.missed) == (0, 0, 0)
    assert (decision.ledger.watermark, decision.status["phase"]) == (T + 1, "Active")


def test_resume_of_what_is_not_paused_is_refused() -> None:
    assert said(asked({"kind": "Resume"})) == (False, "The schedule has not paused itself.")


# Exactly once


@pytest.mark.parametrize(
    "text",
    [{}, backfill(-3, -2), {"kind": "Cancel"}, {"kind": "Resume"}, {"kind": "Nonsense"}],
    ids=["run now", "backfill", "cancel", "resume", "malformed"],
)
def test_a_request_that_the_ledger_knows_is_only_removed(text: dict[str, Any]) -> None:
    of = schedule(requests={"id": json.dumps(text)}, suspend=True)
    once = decide(view(of)).ledger
    jobs = [run(claim) for claim in once.claims]
    again = decide(view(of, known=once, runs=jobs))
    assert again.ledger.requests == once.requests
    assert again.ledger.claims == once.claims
    assert again.answered == ("id",)


def test_many_requests_are_taken_up_in_turns_and_none_is_forgotten() -> None:
    named = {f"id{n:03}": "{}" for n in range(AT_ONCE + 5)}
    of: Schedule = schedule(requests=named, concurrencyPolicy="Allow", suspend=True)
    first = decide(view(of))
    assert len(first.starts) == AT_ONCE
    of.requests = {name: "{}" for name in named if name not in first.answered}
    second = decide(view(of, known=first.ledger, runs=[run(start.claim) for start in first.starts]))
    assert len(second.starts) == 5
