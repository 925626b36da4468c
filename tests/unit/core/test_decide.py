"""The one decision, as tables: what becomes of a slot under each policy, whatever else is going on.

A row names the runs before the slot by letters (tests/unit/core/views.py), and expects, as `minute/attempt`, what is
started, what is taken away, what stays claimed, and why slots are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.unit.core.views import (
    MINUTE,
    RETRY,
    T,
    at,
    before,
    claim,
    failed,
    ledger,
    run,
    schedule,
    succeeded,
    template,
    view,
)

from cronwright.api.retrying import Retry
from cronwright.core.decide import RECLAIM, decide, report
from cronwright.core.model import Claim, Decision, Outcome, Start, Stop
from cronwright.core.names import job_name
from cronwright.core.progress import remembered, retry_of


def minute(of: Claim) -> str:
    return f"{(of.slot - T) // MINUTE}/{of.attempt}"


def wakes(decision: Decision, now: int, by: int) -> bool:
    """It asks to be looked at again, and in time for what is to come."""
    return decision.wake is not None and T + now < decision.wake <= T + by


def started(decision: Decision) -> list[str]:
    return [minute(start.claim) for start in decision.starts]


@dataclass(frozen=True, kw_only=True)
class Row:
    policy: str
    runs: str = ""
    late: int = 0
    """Seconds from the slot to this look."""
    spec: dict[str, Any] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    """Claims after the decision, those that start now included."""
    ends: list[str] = field(default_factory=list)
    """Minutes of the runs that are taken away."""
    skips: dict[str, int] = field(default_factory=dict)


NEW = ["0/1"]
OVERLAP = {
    # Nothing before it.
    "Allow: the slot starts": Row(policy="Allow", starts=NEW, stays=NEW),
    "Forbid: the slot starts": Row(policy="Forbid", starts=NEW, stays=NEW),
    "Replace: the slot starts": Row(policy="Replace", starts=NEW, stays=NEW),
    "Queue: the slot starts": Row(policy="Queue", starts=NEW, stays=NEW),
    # An active run.
    "Allow: beside an active run": Row(policy="Allow", runs="A", starts=NEW, stays=["-1/1", "0/1"]),
    "Forbid: an active run": Row(policy="Forbid", runs="A", stays=["-1/1"], skips={"Forbidden": 1}),
    "Replace: an active run is taken away first": Row(policy="Replace", runs="A", stays=["-1/1", "0/1"], ends=["-1"]),
    "Queue: behind an active run": Row(policy="Queue", runs="A", stays=["-1/1", "0/1"]),
    # Pods that are Pending count as active.
    "Allow: beside a pending run": Row(policy="Allow", runs="P", starts=NEW, stays=["-1/1", "0/1"]),
    "Forbid: a pending run": Row(policy="Forbid", runs="P", stays=["-1/1"], skips={"Forbidden": 1}),
    "Replace: a pending run": Row(policy="Replace", runs="P", stays=["-1/1", "0/1"], ends=["-1"]),
    "Queue: behind a pending run": Row(policy="Queue", runs="P", stays=["-1/1", "0/1"]),
    # A run that is leaving: told already, not gone yet.
    "Forbid: a leaving run": Row(policy="Forbid", runs="L", stays=["-1/1"], skips={"Forbidden": 1}),
    "Replace: a leaving run is waited for, not told again": Row(policy="Replace", runs="L", stays=["-1/1", "0/1"]),
    "Queue: a leaving run is waited for": Row(policy="Queue", runs="L", stays=["-1/1", "0/1"]),
    # A run that is over does not matter.
    "Allow: after a success": Row(policy="Allow", runs="S", starts=NEW, stays=NEW),
    "Forbid: after a success": Row(policy="Forbid", runs="S", starts=NEW, stays=NEW),
    "Forbid: after a failure": Row(policy="Forbid", runs="F", starts=NEW, stays=NEW),
    "Forbid: after a Job that somebody deleted": Row(policy="Forbid", runs="X", starts=NEW, stays=NEW),
    "Replace: after a success": Row(policy="Replace", runs="S", starts=NEW, stays=NEW),
    "Queue: after a failure": Row(policy="Queue", runs="F", starts=NEW, stays=NEW),
    # A run that will be tried again is not over.
    "Allow: beside a retry": Row(policy="Allow", runs="R", starts=NEW, stays=["-1/1", "0/1"]),
    "Forbid: a retry to come": Row(policy="Forbid", runs="R", stays=["-1/1"], skips={"Forbidden": 1}),
    "Replace: a retry to come is given up": Row(policy="Replace", runs="R", starts=NEW, stays=NEW),
    "Queue: behind a retry to come": Row(policy="Queue", runs="R", stays=["-1/1", "0/1"]),
    "Allow: a retry that is due starts too": Row(
        policy="Allow", runs="D", starts=["-1/2", "0/1"], stays=["-1/2", "0/1"]
    ),
    "Forbid: a retry that is due": Row(
        policy="Forbid", runs="D", starts=["-1/2"], stays=["-1/2"], skips={"Forbidden": 1}
    ),
    "Replace: a retry that is due is given up": Row(policy="Replace", runs="D", starts=NEW, stays=NEW),
    "Queue: a retry that is due goes first": Row(policy="Queue", runs="D", starts=["-1/2"], stays=["-1/2", "0/1"]),
    # Nobody knows yet whether an attempt will be tried again: the slot waits for that to be known.
    "Allow: a failure yet to be looked at": Row(policy="Allow", runs="I", stays=["-1/1"]),
    "Forbid: a failure yet to be looked at": Row(policy="Forbid", runs="I", stays=["-1/1"]),
    "Replace: a failure yet to be looked at": Row(policy="Replace", runs="I", stays=["-1/1"]),
    "Queue: a failure yet to be looked at": Row(policy="Queue", runs="I", stays=["-1/1"]),
    "Queue: nothing starts past a failure yet to be looked at": Row(policy="Queue", runs="IW", stays=["-2/1", "-1/1"]),
    # The queue.
    "Queue: in the order of the slots": Row(policy="Queue", runs="SWW", starts=["-2/1"], stays=["-2/1", "-1/1", "0/1"]),
    "Queue: full": Row(
        policy="Queue", runs="AWW", spec={"queueLimit": 2}, stays=["-3/1", "-2/1", "-1/1"], skips={"QueueFull": 1}
    ),
    "Queue: a place left": Row(policy="Queue", runs="AW", spec={"queueLimit": 2}, stays=["-2/1", "-1/1", "0/1"]),
    "Queue: room is made by the run that ended": Row(
        policy="Queue", runs="SW", spec={"queueLimit": 1}, starts=["-1/1"], stays=["-1/1"], skips={"QueueFull": 1}
    ),
    "Replace: what waits gives way, what leaves is waited for": Row(
        policy="Replace", runs="LW", stays=["-2/1", "0/1"], skips={"Replaced": 1}
    ),
    # Late, and too late. The default tolerance is a minute, and it is inclusive.
    "Forbid: late": Row(policy="Forbid", late=59, starts=NEW, stays=NEW),
    "Forbid: late, with an active run": Row(policy="Forbid", runs="A", late=59, stays=["-1/1"], skips={"Forbidden": 1}),
    "Queue: late, behind an active run": Row(policy="Queue", runs="A", late=59, stays=["-1/1", "0/1"]),
    "Replace: late": Row(policy="Replace", runs="A", late=59, stays=["-1/1", "0/1"], ends=["-1"]),
    "Skip runs what is exactly as late as is tolerated": Row(
        policy="Forbid", late=30, spec={"catchUp": {"policy": "Skip", "tolerance": "30s"}}, starts=NEW, stays=NEW
    ),
    "Skip leaves out what is later than that": Row(
        policy="Forbid",
        late=31,
        spec={"catchUp": {"policy": "Skip", "tolerance": "30s"}},
        skips={"CatchUpSkipped": 1},
    ),
    "a slot exactly at the deadline runs": Row(
        policy="Forbid", late=40, spec={"catchUp": {"tolerance": "0s", "window": "40s"}}, starts=NEW, stays=NEW
    ),
    "a slot past the deadline is too late": Row(
        policy="Forbid", late=41, spec={"catchUp": {"tolerance": "0s", "window": "40s"}}, skips={"TooLate": 1}
    ),
    # An outage, with RunAll: inside a batch the runs follow each other.
    "Allow: a batch starts at once": Row(
        policy="Allow",
        late=120,
        spec={"catchUp": {"policy": "RunAll"}},
        starts=["0/1", "1/1", "2/1"],
        stays=["0/1", "1/1", "2/1"],
    ),
    "Forbid: a batch runs one after the other": Row(
        policy="Forbid", late=120, spec={"catchUp": {"policy": "RunAll"}}, starts=NEW, stays=["0/1", "1/1", "2/1"]
    ),
    "Forbid: a batch behind an active run is skipped": Row(
        policy="Forbid",
        runs="A",
        late=120,
        spec={"catchUp": {"policy": "RunAll"}},
        stays=["-1/1"],
        skips={"Forbidden": 3},
    ),
    "Replace: of a batch the latest runs": Row(
        policy="Replace",
        late=120,
        spec={"catchUp": {"policy": "RunAll"}},
        starts=["2/1"],
        stays=["2/1"],
        skips={"Replaced": 2},
    ),
    "Queue: a batch runs in the order of its slots": Row(
        policy="Queue", late=120, spec={"catchUp": {"policy": "RunAll"}}, starts=NEW, stays=["0/1", "1/1", "2/1"]
    ),
    "Queue: of a batch behind an active run as many as fit": Row(
        policy="Queue",
        runs="A",
        late=120,
        spec={"catchUp": {"policy": "RunAll"}, "queueLimit": 2},
        stays=["-1/1", "0/1", "1/1"],
        skips={"QueueFull": 1},
    ),
    # The budget counts claims.
    "maxRuns: the last one": Row(policy="Allow", runs="A", spec={"maxRuns": 2}, starts=NEW, stays=["-1/1", "0/1"]),
    "maxRuns: used up by runs that are not over": Row(
        policy="Allow", runs="AA", spec={"maxRuns": 2}, stays=["-2/1", "-1/1"]
    ),
    "maxRuns: a batch does not overshoot": Row(
        policy="Allow",
        runs="A",
        late=120,
        spec={"maxRuns": 2, "catchUp": {"policy": "RunAll"}},
        starts=NEW,
        stays=["-1/1", "0/1"],
        skips={"MaxRunsReached": 2},
    ),
    # Suspended: nothing new; what waits stays, what is in flight is not touched, and is tried again.
    "suspended: the slot passes": Row(policy="Allow", runs="A", spec={"suspend": True}, stays=["-1/1"]),
    "suspended: what waits goes on waiting": Row(policy="Queue", runs="SW", spec={"suspend": True}, stays=["-1/1"]),
    "suspended: a run in flight is tried again": Row(
        policy="Forbid", runs="D", spec={"suspend": True}, starts=["-1/2"], stays=["-1/2"]
    ),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in OVERLAP.items()])
def test_what_becomes_of_a_slot(row: Row) -> None:
    of = schedule(concurrencyPolicy=row.policy, **row.spec)
    claims, runs = before(row.runs)
    decision = decide(view(of, known=ledger(of, *claims), runs=runs, now=row.late))
    assert started(decision) == row.starts
    assert [minute(c) for c in decision.ledger.claims] == row.stays
    assert [str((int(s.name.split("-")[1]) - T) // MINUTE) for s in decision.stops if s.how == "Delete"] == row.ends
    assert decision.ledger.skips == row.skips
    assert sum(decision.ledger.skips.values()) == decision.status["skipped"]
    assert not decision.starts or decision.write, "claimed before created"


@pytest.mark.parametrize(("policy", "limit"), [("Queue", None), ("Allow", 1)], ids=["a run", "a place"])
def test_a_prepared_slot_that_has_to_wait_is_written(policy: str, limit: int | None) -> None:
    of = schedule(concurrencyPolicy=policy)
    claims, runs = before("A")
    known = ledger(of, *claims, prepared=T)
    using = template(maxConcurrentRuns=limit) if limit else template()
    decision = decide(replace(view(of, known=known, runs=runs, using=using), own=True))
    assert (decision.starts, decision.write) == ((), True)
    assert [minute(c) for c in decision.ledger.claims] == ["-1/1", "0/1"]
    assert wakes(decision, 0, MINUTE)


def test_an_edit_withdraws_a_prepared_slot_but_not_one_whose_job_was_asked_for() -> None:
    """No answer came and no watch told, but the Job may be there: it is a run in flight."""
    known = ledger(schedule(), prepared=T)
    edited = schedule(edited=1, generation=2, schedule={"interval": "1h", "anchor": at(-86400)})
    seen = replace(view(edited, known=known, now=2), own=True)
    withdrawn = decide(seen)
    assert (withdrawn.starts, withdrawn.ledger.claims, withdrawn.ledger.prepared) == ((), (), None)
    kept = decide(replace(seen, asked=frozenset({job_name("s", claim(0))})))
    assert [minute(c) for c in kept.ledger.claims] == ["0/1"]
    assert kept.write
    assert started(kept) == ["0/1"]


def test_a_prepared_slot_whose_job_was_asked_for_is_written_even_if_it_cannot_start() -> None:
    of = schedule()
    seen = replace(view(of, known=ledger(of, prepared=T), gone=True, now=2), own=True)
    decision = decide(replace(seen, asked=frozenset({job_name("s", claim(0))})))
    assert (decision.write, [minute(c) for c in decision.ledger.claims]) == (True, ["0/1"])


PREPARED = {
    "ours: it starts, without another write": ({"own": True}, ["0/1"], (), False),
    "another's, and due: its Job is asked for": ({}, [], ("s-{T}-1",), False),
    "another's, and its Job is not there: a slot like any other": (
        {"sought": {job_name("s", claim(0))}},
        ["0/1"],
        (),
        True,
    ),
    "another's, and not due yet": ({"now": T - 1}, [], (), False),
}


@pytest.mark.parametrize(("given", "starts", "inspects", "writes"), PREPARED.values(), ids=PREPARED)
def test_whoever_prepared_a_slot_may_have_started_it(
    given: dict[str, Any], starts: list[str], inspects: tuple[str, ...], writes: bool
) -> None:
    """The Lease has reached us, but perhaps neither the Job nor the status that its writer wrote later."""
    of = schedule()
    decision = decide(replace(view(of, known=ledger(of, prepared=T), now=1), **given))
    assert (started(decision), decision.write) == (starts, writes)
    assert decision.inspect == tuple(name.format(T=T) for name in inspects)


def test_nothing_is_started_beside_a_slot_that_another_prepared_before_its_job_was_asked_for() -> None:
    """By the clock of whoever prepared it, it may have been due: their clock was ahead, and our watch behind."""
    of = schedule(requests={"now": "{}"})
    seen = view(of, known=ledger(of, prepared=T), now=-8)
    doubting = decide(seen)
    assert (doubting.starts, doubting.write, doubting.inspect) == ((), False, (job_name("s", claim(0)),))
    for sure in (replace(seen, sought=frozenset({job_name("s", claim(0))})), replace(seen, own=True)):
        assert [start.claim.trigger for start in decide(sure).starts] == ["Manual"]


def test_a_report_tells_of_what_was_done_and_of_no_slot_that_is_not_claimed_yet() -> None:
    """A status told of a slot as waiting, its writer died before starting it, and the ledger was deleted."""
    of, ended = schedule(), claim(-MINUTE)
    known = ledger(of, ended, prepared=T, runs=7)
    seen = replace(view(of, known=known, runs=[succeeded(ended)], now=1), own=True)
    assert decide(seen).status["runs"] == 8
    told = report(seen)
    assert (told.write, told.starts, told.status["runs"], told.status["succeeded"]) == (False, (), 7, 1)
    assert "waiting" not in told.status
    assert told.status["nextRunTime"] == at(0)
    assert report(replace(seen, recorded=False)).status == of.status


def test_replace_ends_a_claim_whose_job_may_be_there_and_drops_one_that_never_started() -> None:
    of = schedule(concurrencyPolicy="Replace")
    claims, runs = before("W")
    seen = view(of, known=ledger(of, *claims), runs=runs)
    dropped = decide(seen)
    assert ([minute(c) for c in dropped.ledger.claims], started(dropped)) == (["0/1"], ["0/1"])
    name = job_name("s", claims[0])
    ended = decide(replace(seen, asked=frozenset({name})))
    assert [(minute(c), c.ending) for c in ended.ledger.claims] == [("-1/1", "Replaced"), ("0/1", "")]
    assert (started(ended), ended.inspect) == ([], (name,))


def test_a_slot_that_forbid_skipped_is_done_when_the_old_run_ends() -> None:
    of = schedule()
    claims, runs = before("A")
    skipped = decide(view(of, known=ledger(of, *claims), runs=runs)).ledger
    later = decide(view(of, known=skipped, runs=[succeeded(claims[0], after=20)], now=20))
    assert later.starts == ()
    assert wakes(later, 20, MINUTE)


def test_replace_starts_only_when_the_old_job_is_gone() -> None:
    of = schedule(concurrencyPolicy="Replace")
    claims, runs = before("A")
    told = decide(view(of, known=ledger(of, *claims), runs=runs))
    assert told.stops == (Stop(runs[0].name, "Delete", "Replaced"),)
    going = decide(view(of, known=told.ledger, runs=[run(claims[0], deleting=True)], now=5))
    assert (going.starts, going.status["queued"], going.status["activeRuns"]) == ((), 1, 1)
    gone = decide(view(of, known=told.ledger, runs=[run(claims[0], gone=True)], now=9))
    assert started(gone) == NEW
    assert (gone.ledger.cancelled, gone.ledger.failed) == (1, 0)


def test_what_was_replaced_before_it_could_start_is_no_run() -> None:
    of = schedule(concurrencyPolicy="Replace")
    claims, runs = before("LW")
    known = decide(view(of, known=ledger(of, *claims), runs=runs)).ledger
    told = (known.runs, known.spent, known.skips, known.cancelled)
    assert told == (2, 3, {"Replaced": 1}, 0), "what it took of maxRuns is not given back"


def test_a_retry_that_was_claimed_and_is_replaced_was_a_run() -> None:
    of = schedule(concurrencyPolicy="Replace")
    known = decide(view(of, known=ledger(of, claim(-MINUTE, 2)), runs=[failed(claim(-MINUTE))])).ledger
    assert (known.runs, known.spent, known.skips, known.cancelled) == (2, 2, {}, 1)


CAPACITY = {
    "no limit": (None, 5, "", NEW),
    "a place is free": (2, 1, "", NEW),
    "other schedules have taken all": (2, 2, "", []),
    "its own runs count": (1, 0, "A", []),
    "its own runs that are over do not": (1, 0, "S", NEW),
    "a retry takes the only place": (1, 0, "D", ["-1/2"]),
    "a retry waits for a place": (1, 1, "D", []),
    "a retry to come takes none": (1, 0, "R", NEW),
}


@pytest.mark.parametrize(("limit", "elsewhere", "letters", "expected"), CAPACITY.values(), ids=CAPACITY)
def test_a_template_limits_the_runs_of_all_its_schedules(
    limit: int | None, elsewhere: int, letters: str, expected: list[str]
) -> None:
    of = schedule(concurrencyPolicy="Allow")
    claims, runs = before(letters)
    using = template(maxConcurrentRuns=limit) if limit else template()
    decision = decide(view(of, known=ledger(of, *claims), runs=runs, using=using, elsewhere=elsewhere))
    assert started(decision) == expected


def test_a_slot_without_a_place_is_claimed_and_waits() -> None:
    decision = decide(view(using=template(maxConcurrentRuns=1), elsewhere=1))
    assert (decision.starts, decision.status["queued"]) == ((), 1)
    assert [minute(c) for c in decision.ledger.claims] == NEW


@pytest.mark.parametrize("letters", ["D", "SW"], ids=["a due retry", "a slot"])
def test_what_waits_for_a_place_is_woken_by_the_place_and_not_by_the_clock(letters: str) -> None:
    of = schedule(concurrencyPolicy="Allow", suspend=letters == "D")
    claims, runs = before(letters)
    decision = decide(
        view(of, known=ledger(of, *claims), runs=runs, using=template(maxConcurrentRuns=1), elsewhere=1, now=1)
    )
    assert decision.starts == ()
    assert decision.wake is None or decision.wake > T + 1, "or it would be looked at again and again"


def test_slots_that_wait_for_a_place_are_limited_under_allow_too() -> None:
    of = schedule(concurrencyPolicy="Allow", queueLimit=2)
    claims, runs = before("WW")
    decision = decide(view(of, known=ledger(of, *claims), runs=runs, using=template(maxConcurrentRuns=1), elsewhere=1))
    assert (len(decision.ledger.claims), decision.ledger.skips) == (2, {"QueueFull": 1})


def test_a_schedule_has_at_most_a_thousand_open_runs() -> None:
    """The ledger is an annotation, and those are limited in size."""
    of = schedule(concurrencyPolicy="Allow")
    claims = tuple(claim(-MINUTE * n) for n in range(1000, 0, -1))
    decision = decide(view(of, known=ledger(of, *claims), runs=[run(c) for c in claims]))
    assert (len(decision.ledger.claims), decision.ledger.skips) == (1000, {"TooManyRuns": 1})


# Retries


def test_a_retry_is_claimed_before_it_starts_and_repeats_the_job_before() -> None:
    of = schedule()
    claims, runs = before("D")
    decision = decide(view(of, known=ledger(of, *claims), runs=runs))
    following = replace(claims[0], attempt=2, claimed=T)
    assert decision.starts == (Start(f"s-{T - MINUTE}-2", following, again=f"s-{T - MINUTE}-1"),)
    assert decision.ledger.claims == (following,)
    assert decision.write
    assert decision.ledger.runs == 1, "a retry is no run of its own"


def test_a_retry_that_was_claimed_and_not_created_still_repeats_the_job_before() -> None:
    of = schedule(suspend=True)
    first, second = claim(-MINUTE), claim(-MINUTE, 2)
    decision = decide(view(of, known=ledger(of, second, watermark=T), runs=[failed(first)], gone=True))
    assert decision.starts == (Start(f"s-{T - MINUTE}-2", second, again=f"s-{T - MINUTE}-1"),)


def test_a_pending_retry_is_shown_with_its_time_and_woken_for() -> None:
    of = schedule(suspend=True)
    claims, runs = before("R")
    decision = decide(view(of, known=ledger(of, *claims), runs=runs))
    [waiting] = decision.status["retrying"]
    assert waiting == {
        "name": f"s-{T - MINUTE}-2",
        "slot": at(-MINUTE),
        "trigger": "Schedule",
        "attempt": 2,
        "at": at(85),
        "category": "Transient",
    }
    assert decision.wake == T + 85


def test_a_pending_retry_whose_job_is_gone_is_remembered_by_status() -> None:
    claims, runs = before("R")
    of = schedule(suspend=True)
    told = decide(view(of, known=ledger(of, *claims), runs=runs)).status
    of = schedule(suspend=True, status=told)
    [claimed], [record] = claims, told["recentRuns"]
    assert decide(view(of, known=ledger(of, *claims))).inspect == (record["name"],), "it is asked for first"
    assert retry_of(told, of.key.name, claimed) == told["retrying"][0]
    gone = [remembered(claimed, record["name"], record, RETRY)]
    assert decide(view(of, known=ledger(of, *claims), runs=gone)).status["retrying"] == told["retrying"]
    assert started(decide(view(of, known=ledger(of, *claims), runs=gone, now=85))) == ["-1/2"]


ATTEMPTS = {
    "the last attempt": ("Transient", 3, None),
    "an attempt to go": ("Transient", 2, 2 * 90),
    "a category that is not retried": ("Permanent", 1, None),
    "a timeout": ("Timeout", 1, 90),
    "cancelled": ("Cancelled", 1, None),
}


@pytest.mark.parametrize(("category", "attempt", "delay"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_which_attempts_are_followed_by_another(category: Any, attempt: int, delay: int | None) -> None:
    of, tried = schedule(suspend=True), claim(-MINUTE, attempt, claimed=T - 5)
    policy = Retry.model_validate({"initialDelay": "90s", "backoff": "Linear"})
    ended = failed(tried, outcome=Outcome(category), retry=policy)
    decision = decide(view(of, known=ledger(of, tried), runs=[ended], now=1))
    assert [entry["at"] for entry in decision.status.get("retrying", [])] == ([at(delay)] if delay else [])
    assert (decision.ledger.failed, decision.ledger.cancelled) == (
        (0, 0) if delay else (0, 1) if category == "Cancelled" else (1, 0)
    )


def test_deleting_a_failed_job_gives_its_retry_up() -> None:
    of = schedule(suspend=True)
    tried = claim(-MINUTE, claimed=T - 10)
    decision = decide(view(of, known=ledger(of, tried), runs=[failed(tried, retry=RETRY, gone=True)]))
    assert (decision.ledger.claims, decision.ledger.failed, decision.write) == ((), 1, True)


def test_without_a_retry_policy_a_failure_is_final() -> None:
    of = schedule(suspend=True)
    claims, runs = before("F")
    decision = decide(view(of, known=ledger(of, *claims), runs=runs))
    assert (decision.ledger.failed, decision.ledger.consecutive_failures) == (1, 1)


# Evidence


def test_an_end_with_its_job_standing_costs_no_ledger_write() -> None:
    of = schedule(suspend=True)
    claims, runs = before("S")
    decision = decide(view(of, known=ledger(of, *claims, watermark=T), runs=runs))
    assert (decision.write, decision.ledger.succeeded, decision.ledger.claims) == (False, 1, ())


def test_an_end_without_a_job_is_written_at_once() -> None:
    of = schedule(suspend=True)
    claims, runs = before("X")
    decision = decide(view(of, known=ledger(of, *claims, watermark=T), runs=runs))
    assert (decision.write, decision.ledger.cancelled, decision.forget) == (True, 1, (runs[0].name,))


def test_a_job_that_was_deleted_before_status_was_written_is_not_run_again() -> None:
    of = schedule(suspend=True)
    claims, runs = before("X")
    settled = decide(view(of, known=ledger(of, *claims, watermark=T), runs=runs)).ledger
    assert decide(view(of, known=settled)).starts == ()


def test_a_claim_without_a_job_is_started_by_whoever_comes_next() -> None:
    of = schedule(suspend=True)
    mine = claim(0)
    asleep = decide(view(of, known=ledger(of, mine, watermark=T), now=1))
    assert asleep.starts == (), "suspended"
    of = schedule()
    assert started(decide(view(of, known=ledger(of, mine, watermark=T), now=1))) == NEW


LAPSES = {
    "in time": ({"policy": "Skip"}, "Forbid", RECLAIM, NEW, {}),
    "Skip: the tolerance has passed": ({"policy": "Skip"}, "Forbid", 61, [], {"CatchUpSkipped": 1}),
    "Skip: a queue may take its time": ({"policy": "Skip"}, "Queue", 61, NEW, {}),
    "the window has passed": ({"window": "50s"}, "Forbid", 51, [], {"TooLate": 1}),
    "exactly at the end of the window": ({"window": "50s"}, "Forbid", 50, NEW, {}),
    "claimed just now, by somebody who may be at it": ({"window": "5s"}, "Forbid", RECLAIM, NEW, {}),
    "claimed by somebody who is gone": ({"window": "5s"}, "Forbid", RECLAIM + 1, [], {"TooLate": 1}),
    "RunOnce without a window": ({}, "Forbid", 59, NEW, {}),
}


@pytest.mark.parametrize(("catch_up", "policy", "now", "starts", "skips"), LAPSES.values(), ids=LAPSES)
def test_an_abandoned_claim_runs_if_catch_up_still_allows_it(
    catch_up: dict[str, str], policy: str, now: int, starts: list[str], skips: dict[str, int]
) -> None:
    of = schedule(catchUp=catch_up, concurrencyPolicy=policy, schedule={"interval": "1h", "anchor": at(0)}, maxRuns=1)
    decision = decide(view(of, known=ledger(of, claim(0), watermark=T), now=now))
    assert (started(decision), decision.ledger.skips) == (starts, skips)
    assert decision.ledger.runs == len(starts), "a slot that did not run is no run"


def test_a_job_that_nobody_claimed_is_taken_away() -> None:
    of = schedule(suspend=True)
    stray = run(claim(-MINUTE))
    decision = decide(view(of, runs=[stray]))
    assert decision.stops == (Stop(stray.name, "Delete", "Stray"),)
    assert decision.write, "only a write proves that nobody claimed it meanwhile"


def test_nothing_happens_to_a_schedule_that_is_being_deleted() -> None:
    of = schedule(deleting=True)
    decision = decide(view(of))
    assert (decision.write, decision.starts, decision.status, decision.wake) == (False, (), {}, None)


# Taking runs away


ENDINGS = {
    "a pod is ready": (run(claim(0)), 3600, None),
    "no pod yet, no limit: looked at first": (run(claim(0), ready=False), 10, "EndIfHopeless"),
    "no pod yet, not long": (run(claim(0), ready=False, pending_timeout=20), 9, None),
    "no pod yet, looked at already": (run(claim(0), ready=False, examined=T + 10), 39, None),
    "no pod yet, looked at long ago": (run(claim(0), ready=False, examined=T + 10), 40, "EndIfHopeless"),
    "pendingTimeout, inclusive": (run(claim(0), ready=False, pending_timeout=20, examined=T + 10), 20, "EndIfPending"),
    "suspended by a queueing system": (run(claim(0), ready=False, suspended=True, pending_timeout=20), 3600, None),
    "resumed by it: counted from its start": (
        run(claim(0), ready=False, started=T + 1000, pending_timeout=20, examined=T + 1000),
        1019,
        None,
    ),
    "ended already": (run(claim(0), ready=False, reason="PendingTimeout", pending_timeout=20), 3600, None),
    "leaving": (run(claim(0), ready=False, deleting=True, pending_timeout=20), 3600, None),
}


@pytest.mark.parametrize(("job", "now", "how"), ENDINGS.values(), ids=ENDINGS)
def test_a_run_without_pods_is_ended_in_time(job: Any, now: int, how: str | None) -> None:
    of = schedule(suspend=True)
    decision = decide(view(of, known=ledger(of, claim(0), watermark=T), runs=[job], now=now))
    assert [stop.how for stop in decision.stops] == ([how] if how else [])
    assert how is not None or decision.wake is None or decision.wake > T + now


def test_a_suspended_job_counts_as_active_and_shows_as_pending() -> None:
    of = schedule()
    claims, _ = before("A")
    queued = run(claims[0], suspended=True, ready=False, started=None, phase="Pending")
    decision = decide(view(of, known=ledger(of, *claims), runs=[queued]))
    assert (decision.starts, decision.ledger.skips) == ((), {"Forbidden": 1})
    assert decision.status["activeRuns"] == 1
    assert decision.status["recentRuns"][0]["phase"] == "Pending"


CANCELLED = {
    "running: ended where it stands": (run(claim(0)), ["End"]),
    "told already": (run(claim(0), reason="Cancelled"), []),
    "suspended: there is nothing to end": (run(claim(0), suspended=True), ["Delete"]),
}


@pytest.mark.parametrize(("job", "expected"), CANCELLED.values(), ids=CANCELLED)
def test_a_cancelled_run_is_kept_as_evidence_where_that_can_be(job: Any, expected: list[str]) -> None:
    of = schedule(suspend=True)
    decision = decide(view(of, known=ledger(of, claim(0, ending="Cancelled"), watermark=T), runs=[job]))
    assert [stop.how for stop in decision.stops] == expected


def test_a_successor_learns_why_a_job_is_leaving() -> None:
    """The reason is known to whoever asked for the deletion; after a crash it is asked for again, to be told right."""
    of = schedule(suspend=True)
    leaving = run(claim(0), deleting=True)
    known = ledger(of, claim(0, ending="Replaced"), watermark=T)
    assert decide(view(of, known=known, runs=[leaving])).stops == (Stop(leaving.name, "Delete", "Replaced"),)
    told = replace(leaving, reason="Replaced")
    assert decide(view(of, known=known, runs=[told])).stops == ()


# Lifecycle


def test_a_schedule_pauses_itself_after_failures_and_goes_on_with_a_new_generation() -> None:
    of = schedule(pauseAfterFailures=2)
    claims, runs = before("FF")
    paused = decide(view(of, known=ledger(of, *claims), runs=runs))
    assert (paused.status["phase"], paused.starts, paused.ledger.consecutive_failures) == ("Paused", (), 2)
    assert paused.write
    assert "nextRunTime" not in paused.status
    edited = schedule(pauseAfterFailures=2, generation=2, edited=600)
    resumed = decide(view(edited, known=paused.ledger, runs=runs, now=601))
    assert (resumed.status["phase"], resumed.ledger.consecutive_failures, resumed.ledger.missed) == ("Active", 0, 0)
    assert resumed.starts == (), "the slots that passed meanwhile are not missed"
    assert wakes(resumed, 601, 660)


def test_what_a_pause_holds_back_neither_blocks_a_run_by_hand_nor_runs_beside_it() -> None:
    of = schedule(concurrencyPolicy="Queue", requests={"id": "{}"})
    claims, _ = before("W")
    paused = decide(view(of, known=ledger(of, *claims, paused=1, paused_at=T - 5)))
    assert [start.claim.trigger for start in paused.starts] == ["Manual"]
    manual = run(paused.starts[0].claim)
    resumed = replace(paused.ledger, paused=0, paused_at=None)
    assert decide(view(of, known=resumed, runs=[manual], now=1)).starts == ()
    ended = replace(manual, phase="Succeeded", finished=T + 2)
    assert started(decide(view(of, known=resumed, runs=[ended], now=3))) == ["-1/1"]


def test_a_cancelled_run_is_no_failure_in_a_row() -> None:
    of = schedule(pauseAfterFailures=1)
    claims, runs = before("X")
    assert decide(view(of, known=ledger(of, *claims), runs=runs)).ledger.paused == 0


def test_a_template_that_is_gone_loses_nothing() -> None:
    of = schedule(concurrencyPolicy="Queue")
    claims, runs = before("SW")
    known = ledger(of, *claims)
    gone = decide(view(of, known=known, runs=runs, gone=True))
    assert (gone.status["phase"], gone.starts) == ("Invalid", ())
    assert gone.ledger.last_skip is not None
    assert (gone.ledger.last_skip.reason, gone.ledger.missed) == ("TemplateNotFound", 0)
    back = decide(view(of, known=gone.ledger, runs=runs, now=30))
    assert started(back) == ["-1/1"], "what was claimed runs now"
    assert wakes(back, 30, MINUTE)


def test_a_slot_waits_for_its_template_to_be_checked() -> None:
    of = schedule()
    waiting = decide(view(of, using=template(checked=False)))
    assert (waiting.starts, waiting.ledger.watermark, waiting.ledger.skips) == ((), T - MINUTE, {})
    assert started(decide(view(of, known=waiting.ledger, now=2))) == NEW


def test_a_run_in_flight_is_tried_again_without_its_template() -> None:
    of = schedule()
    claims, runs = before("D")
    decision = decide(view(of, known=ledger(of, *claims), runs=runs, gone=True))
    assert started(decision) == ["-1/2"]


OWNERS = {
    "Keep": ("Keep", (), False, None),
    "Delete: it is to own": ("Delete", (), False, "uid-t"),
    "Delete: it owns already": ("Delete", ("uid-t",), False, None),
    "Delete: an earlier one of its name owned": ("Delete", ("uid-old",), False, "uid-t"),
    "Keep again: it no longer owns": ("Keep", ("uid-t",), False, ""),
    "Delete: not while it is being deleted": ("Delete", (), True, None),
}


@pytest.mark.parametrize(("on_delete", "owners", "deleting", "expected"), OWNERS.values(), ids=OWNERS)
def test_who_owns_a_schedule(on_delete: str, owners: tuple[str, ...], deleting: bool, expected: str | None) -> None:
    of = schedule(templateRef={"name": "t", "onDelete": on_delete}, owners=owners)
    assert decide(view(of, using=template(deleting=deleting))).owner == expected


WAKES = {
    "the next slot": (schedule(), "", 60),
    "suspended: nothing": (schedule(suspend=True), "", None),
    "expiry before the next slot": (schedule(expiresAt=at(30)), "", 30),
    "a retry before the next slot": (schedule(concurrencyPolicy="Allow"), "R", 60),
    "a pod to look at": (schedule(concurrencyPolicy="Allow", suspend=True), "P", 0),
}


@pytest.mark.parametrize(("of", "letters", "wake"), WAKES.values(), ids=WAKES)
def test_when_to_look_again(of: Any, letters: str, wake: int | None) -> None:
    claims, runs = before(letters)
    now = -1 if letters == "P" else 0
    decision = decide(view(of, known=ledger(of, *claims), runs=runs, now=now))
    assert decision.wake is None if wake is None else wakes(decision, now, wake)


def test_a_job_past_its_time_to_live_that_a_retry_needs_is_no_reason_to_look_again() -> None:
    of = schedule(suspend=True)
    tried = claim(-MINUTE, claimed=T - 10)
    kept = failed(tried, retry=RETRY, ttl=1)
    decision = decide(view(of, known=ledger(of, tried), runs=[kept], now=1))
    assert decision.stops == ()
    assert decision.wake == T - 5 + 90
