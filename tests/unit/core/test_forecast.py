"""Forecasts: the operator's decisions on a virtual clock, with every slot accounted for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronwright.api import TaskTemplateSpec
from cronwright.core.forecast import Assumptions, Forecast, forecast
from cronwright.core.model import Key, Schedule, Template
from cronwright.core.observe import schedule_from
from cronwright.timing import format_instant, parse_instant

BEGIN = "2027-01-01T00:30:00Z"
HOUR, DAY = 3600, 86_400


def day(text: str) -> int:
    return parse_instant(f"2027-01-01T{text}Z" if text.count(":") == 2 else f"2027-01-01T{text}:00Z")


def schedule(created: str = BEGIN, **spec: Any) -> Schedule:
    whole = {"templateRef": {"name": "t"}, "schedule": {"cron": "0 * * * *"}, **spec}
    meta = {"namespace": "ns", "name": "s", "uid": "u", "generation": 1, "resourceVersion": "1"}
    record = schedule_from({"metadata": {**meta, "creationTimestamp": created}, "spec": whole})
    assert record.problem is None
    return record


def template(**spec: Any) -> Template:
    model = TaskTemplateSpec.model_validate({"shell": {"script": "true"}, **spec})
    return Template(Key("ns", "t"), "t", 1, 1, deleting=False, spec=model, problem=None, checked=True, status={})


def foresee(record: Schedule, until: str, ready: Template | None = None, **assumed: Any) -> Forecast:
    outages = tuple((day(begin), day(end)) for begin, end in assumed.pop("outages", ()))
    assumptions = Assumptions(begin=parse_instant(BEGIN), end=day(until), outages=outages, **assumed)
    return forecast(record, ready or template(), assumptions)


def told(found: Forecast) -> list[str]:
    return [f"{_clock(s.slot)} {s.decision} {s.reason} {_clock(s.at)}" for s in found.slots]


def _clock(instant: int) -> str:
    return format_instant(instant)[11:16]


def test_slots_run_as_they_become_due() -> None:
    found = foresee(schedule(), "03:00")
    assert told(found) == ["01:00 Run Schedule 01:00", "02:00 Run Schedule 02:00", "03:00 Run Schedule 03:00"]
    assert found.status["succeeded"] == 3


@pytest.mark.parametrize(
    ("catch_up", "slots"),
    [
        ({"policy": "Skip"}, ["01:00 Skip CatchUpSkipped 03:30", "02:00 Skip CatchUpSkipped 03:30"]),
        ({"policy": "RunOnce"}, ["01:00 Skip CatchUpSkipped 03:30", "02:00 Skip CatchUpSkipped 03:30"]),
        ({"policy": "RunAll"}, ["01:00 Run CatchUp 03:30", "02:00 Run CatchUp 03:40", "03:00 Run CatchUp 03:50"]),
        (
            {"policy": "RunAll", "maxRuns": 1},
            ["01:00 Skip CatchUpCapped 03:30", "02:00 Skip CatchUpCapped 03:30", "03:00 Run CatchUp 03:30"],
        ),
        (
            {"policy": "Skip", "window": "90m"},
            ["01:00 Skip TooLate 03:30", "02:00 Skip CatchUpSkipped 03:30", "03:00 Skip CatchUpSkipped 03:30"],
        ),
        (
            {"policy": "RunAll", "maxRuns": 1, "window": "90m"},
            ["01:00 Skip TooLate 03:30", "02:00 Skip CatchUpCapped 03:30", "03:00 Run CatchUp 03:30"],
        ),
    ],
)
def test_an_outage_is_caught_up_with(catch_up: dict[str, Any], slots: list[str]) -> None:
    found = foresee(schedule(catchUp=catch_up), "04:00", outages=[("00:45", "03:30")], run_time=600)
    third = {"Skip": "03:00 Skip CatchUpSkipped 03:30", "RunOnce": "03:00 Run CatchUp 03:30"}
    slots = slots if len(slots) == 3 else [*slots, third[catch_up["policy"]]]
    assert told(found) == [*slots, "04:00 Run Schedule 04:00"]


def test_an_outage_that_lasts_beyond_the_range_is_decided_on_when_it_ends() -> None:
    found = foresee(schedule(), "02:00", outages=[("00:45", "05:00")])
    assert told(found) == ["01:00 Skip CatchUpSkipped 05:00", "02:00 Run CatchUp 05:00"]


@pytest.mark.parametrize(
    ("policy", "slots"),
    [
        ("Forbid", ["01:00 Run Schedule 01:00", "02:00 Skip Forbidden 02:00", "03:00 Run Schedule 03:00"]),
        ("Allow", ["01:00 Run Schedule 01:00", "02:00 Run Schedule 02:00", "03:00 Run Schedule 03:00"]),
        ("Queue", ["01:00 Run Schedule 01:00", "02:00 Run Schedule 02:30", "03:00 Run Schedule 04:00"]),
        ("Replace", ["01:00 Run Schedule 01:00", "02:00 Run Schedule 02:00", "03:00 Run Schedule 03:00"]),
    ],
)
def test_runs_overlap_by_their_policy(policy: str, slots: list[str]) -> None:
    found = foresee(schedule(concurrencyPolicy=policy), "03:00", run_time=5400)
    assert told(found) == slots
    cancelled = [attempt.category for slot in found.slots for attempt in slot.attempts if attempt.category]
    assert cancelled == (["Cancelled", "Cancelled"] if policy == "Replace" else [])


def test_a_queue_that_is_full_skips() -> None:
    found = foresee(schedule(concurrencyPolicy="Queue", queueLimit=1), "04:00", run_time=9000)
    assert told(found) == [
        "01:00 Run Schedule 01:00",
        "02:00 Run Schedule 03:30",
        "03:00 Skip QueueFull 03:00",
        "04:00 Run Schedule 06:00",
    ]


def test_attempts_that_fail_are_retried_and_a_slot_stays_one_entry() -> None:
    found = foresee(schedule(retry={"initialDelay": "5m"}), "01:00", run_time=60, failing=frozenset({1, 2}))
    (slot,) = found.slots
    assert [(a.number, _clock(a.started), a.category) for a in slot.attempts] == [
        (1, "01:00", "Transient"),
        (2, "01:06", "Transient"),
        (3, "01:17", None),
    ]
    assert found.status["succeeded"] == 1


def test_the_templates_retries_timeout_and_limit_count() -> None:
    strict = template(timeout="10m", retry={"maxAttempts": 2, "initialDelay": "1m"}, maxConcurrentRuns=1)
    found = foresee(schedule(concurrencyPolicy="Allow"), "01:00", strict, run_time=HOUR)
    assert [a.category for a in found.slots[0].attempts] == ["Timeout", "Timeout"]
    assert [_clock(a.finished) for a in found.slots[0].attempts] == ["01:10", "01:21"]


def test_a_single_time_before_the_schedule_existed_does_not_run() -> None:
    record = schedule(schedule={"at": "2027-01-01T00:29:59Z"})
    assert told(foresee(record, "02:00")) == ["00:29 Skip AtInPast 00:30"]


def test_a_single_time_in_the_very_second_of_the_creation_runs() -> None:
    record = schedule(schedule={"at": BEGIN})
    assert told(foresee(record, "02:00")) == ["00:30 Run Schedule 00:30"]


def test_a_slot_in_the_very_second_of_the_creation_is_past() -> None:
    record = schedule(schedule={"cron": "30 * * * *"})
    assert told(foresee(record, "02:00")) == ["01:30 Run Schedule 01:30"]


def test_an_older_schedule_goes_on_as_if_nothing_had_been_missed() -> None:
    record = schedule("2020-05-05T05:05:05Z", schedule={"interval": "1h"})
    assert told(foresee(record, "02:00")) == ["01:05 Run Schedule 01:05"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"suspend": True}, "Suspended"), ({"maxRuns": 1}, "MaxRunsReached"), ({"pauseAfterFailures": 1}, "Paused")],
)
def test_slots_that_pass_a_schedule_that_stands_still_say_why(spec: dict[str, Any], reason: str) -> None:
    found = foresee(schedule(**spec), "03:00", failing=frozenset({1}))
    first = "01:00 Skip Suspended 01:00" if reason == "Suspended" else "01:00 Run Schedule 01:00"
    assert told(found) == [first, f"02:00 Skip {reason} 02:00", f"03:00 Skip {reason} 03:00"]


def test_excluded_slots_are_told() -> None:
    record = schedule(schedule={"cron": "0 * * * *", "exclude": [{"cron": "0 2 * * *"}, {"cron": "0 4 * * *"}]})
    assert told(foresee(record, "04:00")) == [
        "01:00 Run Schedule 01:00",
        "02:00 Skip Excluded 02:00",
        "03:00 Run Schedule 03:00",
        "04:00 Skip Excluded 04:00",
    ]


def test_thousands_of_missed_slots_are_all_told() -> None:
    record = schedule(schedule={"cron": "* * * * * *"})
    found = foresee(record, "03:00", outages=[("01:00", "02:00")])
    skipped = [slot for slot in found.slots if slot.reason == "CatchUpSkipped"]
    assert len(skipped) == 3600
    assert len(found.slots) == 9000


specs = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from(
            [
                {"cron": "*/10 * * * *"},
                {"cron": "*/10 * * * *", "jitter": "9m"},
                {"crons": ["*/7 * * * *", "*/20 * * * *"], "exclude": [{"cron": "* 3 * * *"}]},
                {"interval": "13m", "exclude": [{"from": "2027-01-01T02:00:00Z", "to": "2027-01-01T03:00:00Z"}]},
                {"at": "2027-01-01T02:00:00Z"},
            ]
        ),
        "concurrencyPolicy": st.sampled_from(["Allow", "Forbid", "Replace", "Queue"]),
        "queueLimit": st.integers(1, 4),
        "catchUp": st.fixed_dictionaries(
            {
                "policy": st.sampled_from(["Skip", "RunOnce", "RunAll"]),
                "maxRuns": st.integers(1, 4),
                "tolerance": st.sampled_from(["0s", "1m", "1h"]),
            },
            optional={"window": st.sampled_from(["1m", "30m", "2h"])},
        ),
    },
    optional={
        "maxRuns": st.integers(1, 20),
        "retry": st.fixed_dictionaries({"initialDelay": st.sampled_from(["0s", "1m", "15m"])}),
        "timeout": st.just("20m"),
        "pauseAfterFailures": st.integers(1, 3),
        "expiresAt": st.just("2027-01-01T05:00:00Z"),
    },
)
moments = st.integers(day("00:30"), day("07:00"))
outages = st.lists(st.tuples(moments, st.integers(1, 3 * HOUR)).map(lambda o: (o[0], o[0] + o[1])), max_size=3)


@settings(max_examples=200, deadline=None)
@given(specs, outages, st.sampled_from([0, 1, 300, 1500, 4000]), st.frozensets(st.integers(1, 3)))
def test_every_slot_is_told_once_and_nobody_acts_in_an_outage(
    spec: dict[str, Any], down: list[tuple[int, int]], run_time: int, failing: frozenset[int]
) -> None:
    record = schedule(**spec)
    assert record.timetable is not None
    end = day("06:00")
    assumed = Assumptions(begin=day("00:30"), end=end, outages=tuple(down), run_time=run_time, failing=failing)
    found = forecast(record, template(), assumed)
    slots = [slot.slot for slot in found.slots]
    assert slots == [slot for slot, _ in record.timetable.every(day("00:30"), end)]
    runs = [slot for slot in found.slots if slot.decision == "Run"]
    assert all(slot.attempts for slot in runs)
    assert all(slot.at >= record.timetable.due(slot.slot) for slot in runs)
    moments = [slot.at for slot in runs] + [a.started for slot in runs for a in slot.attempts]
    assert not [at for at in moments for begin, until in down if begin <= at < until]
    if spec["concurrencyPolicy"] != "Allow":
        spans = sorted((slot.attempts[0].started, slot.attempts[-1].finished) for slot in runs)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    if "maxRuns" in spec:
        assert found.status["runs"] <= spec["maxRuns"]
