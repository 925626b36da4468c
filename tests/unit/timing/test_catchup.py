"""Catch-up as a table: what an outage leaves, under every policy, and what it costs to find out.

The schedule is hourly unless said; the last slot accounted for is 10:00, and somebody looks again at `now`.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from tests.unit.timing.asking import at, timetable

from cronwright.timing import CatchUp, Exclusion, Settlement, Timetable, When, compile_when, settle

HOURLY = "0 * * * *"


def day(text: str) -> int:
    return at(f"2027-01-01T{text}Z")


def told(settlement: Settlement) -> tuple[list[str], dict[str, int], int]:
    """Which slots run (the late one marked), how many are skipped by reason, and how many were missed."""
    runs = [f"{slot // 3600 % 24:02}:{slot // 60 % 60:02}" for slot in settlement.run]
    if settlement.late:
        runs[-1] += " late"
    return runs, {skip.reason: skip.count for skip in settlement.skipped}, settlement.missed


def after_outage(now: str, table: Timetable | None = None, **catch_up: Any) -> Settlement:
    table = timetable(HOURLY) if table is None else table
    return settle(table, watermark=day("10:00"), now=day(now), catch_up=CatchUp(**catch_up))


@pytest.mark.parametrize(
    ("now", "catch_up", "runs", "skips"),
    [
        # Nothing is due.
        ("10:59:59", {}, [], {}),
        # On time, and late up to the tolerance, which is inside: every policy runs it.
        ("11:00", {"policy": "Skip"}, ["11:00 late"], {}),
        ("11:01", {"policy": "Skip"}, ["11:00 late"], {}),
        ("11:01", {"policy": "RunOnce"}, ["11:00 late"], {}),
        ("11:01", {"policy": "RunAll"}, ["11:00 late"], {}),
        # A second later it has passed.
        ("11:01:01", {"policy": "Skip"}, [], {"CatchUpSkipped": 1}),
        ("11:01:01", {"policy": "RunOnce"}, ["11:00"], {}),
        ("11:01:01", {"policy": "RunAll"}, ["11:00"], {}),
        # The tolerance is the schedule's own.
        ("11:00", {"policy": "Skip", "tolerance": 0}, ["11:00 late"], {}),
        ("11:00:01", {"policy": "Skip", "tolerance": 0}, [], {"CatchUpSkipped": 1}),
        ("11:30", {"policy": "Skip", "tolerance": 1800}, ["11:00 late"], {}),
        # Only the latest slot can be late, however long the tolerance is.
        ("13:30", {"policy": "Skip", "tolerance": 86_400}, ["13:00 late"], {"CatchUpSkipped": 2}),
        # An outage of four slots.
        ("14:30", {"policy": "Skip"}, [], {"CatchUpSkipped": 4}),
        ("14:30", {"policy": "RunOnce"}, ["14:00"], {"CatchUpSkipped": 3}),
        ("14:30", {"policy": "RunAll"}, ["11:00", "12:00", "13:00", "14:00"], {}),
        # RunAll takes the newest ones where there are more than it may run, oldest first.
        ("14:30", {"policy": "RunAll", "max_runs": 2}, ["13:00", "14:00"], {"CatchUpCapped": 2}),
        ("14:30", {"policy": "RunAll", "max_runs": 4}, ["11:00", "12:00", "13:00", "14:00"], {}),
        # The end of the outage falls on a slot: it is on time. RunOnce has run its one, RunAll makes up for the rest.
        ("14:00", {"policy": "Skip"}, ["14:00 late"], {"CatchUpSkipped": 3}),
        ("14:00", {"policy": "RunOnce"}, ["14:00 late"], {"CatchUpSkipped": 3}),
        ("14:00", {"policy": "RunAll", "max_runs": 2}, ["12:00", "13:00", "14:00 late"], {"CatchUpCapped": 1}),
        # What is older than the window never runs; what is exactly as old does.
        ("14:30", {"policy": "RunAll", "window": 9000}, ["12:00", "13:00", "14:00"], {"TooLate": 1}),
        ("14:30", {"policy": "RunAll", "window": 8999}, ["13:00", "14:00"], {"TooLate": 2}),
        ("14:30", {"policy": "RunAll", "window": 9000, "max_runs": 1}, ["14:00"], {"TooLate": 1, "CatchUpCapped": 2}),
        ("14:30", {"policy": "RunOnce", "window": 1800}, ["14:00"], {"TooLate": 3}),
        ("14:30", {"policy": "RunOnce", "window": 1799}, [], {"TooLate": 4}),
        ("14:30", {"policy": "Skip", "window": 3600}, [], {"TooLate": 3, "CatchUpSkipped": 1}),
        # A late slot has not passed, so no window is asked about it.
        ("14:01", {"policy": "RunOnce", "window": 30}, ["14:00 late"], {"TooLate": 3}),
    ],
)
def test_what_becomes_of_the_slots_of_an_outage(
    now: str, catch_up: dict[str, Any], runs: list[str], skips: dict[str, int]
) -> None:
    assert told(after_outage(now, **catch_up)) == (runs, skips, sum(skips.values()))


def test_a_slot_is_late_by_whole_seconds_so_that_a_tolerance_of_none_is_not_never() -> None:
    table = timetable(HOURLY)
    for fraction, runs in ((0.003, ["11:00 late"]), (0.999, ["11:00 late"]), (1.0, [])):
        catch_up = CatchUp(policy="Skip", tolerance=0)
        settlement = settle(table, watermark=day("10:00"), now=day("11:00") + fraction, catch_up=catch_up)
        assert told(settlement)[0] == runs


def test_the_watermark_is_the_latest_slot_accounted_for_and_never_moves_back() -> None:
    assert after_outage("14:30").watermark == day("14:00")
    assert after_outage("10:30").watermark == day("10:00")
    assert after_outage("09:00").watermark == day("10:00")  # the clock jumped back


def test_settling_again_finds_nothing() -> None:
    table = timetable(HOURLY)
    first = after_outage("14:30", table, policy="RunAll")
    again = settle(table, watermark=first.watermark, now=day("14:59:59"), catch_up=CatchUp(policy="RunAll"))
    assert again == Settlement((), False, (), first.watermark)


def test_an_excluded_slot_is_neither_run_nor_missed() -> None:
    table = timetable(HOURLY, exclude=(Exclusion(cron="0 12,14 * * *"),))
    settlement = after_outage("14:30", table, policy="RunAll")
    assert told(settlement) == (["11:00", "13:00"], {"Excluded": 2}, 0)
    assert settlement.watermark == day("14:00")


def test_the_latest_slot_that_is_not_excluded_is_the_one_that_is_late() -> None:
    table = timetable("* * * * * */30", exclude=(Exclusion(cron="0 11 * * *"),))
    settlement = settle(table, watermark=day("10:59"), now=day("11:00:20"), catch_up=CatchUp(policy="Skip"))
    assert told(settlement) == (["10:59 late"], {"Excluded": 1}, 0)


def test_a_slot_outside_of_the_window_of_the_schedule_is_no_slot() -> None:
    table = timetable(HOURLY, starts_at=day("12:00"), expires_at=day("13:00"))
    assert told(after_outage("16:30", table, policy="RunAll")) == (["12:00", "13:00"], {}, 0)


class TestJitter:
    """The 11:00 slot is due 1,000 seconds later: a slot waits, is late, and grows old from then on."""

    DUE = 1000

    @pytest.mark.parametrize(
        ("since_due", "catch_up", "runs", "skips"),
        [
            (-1, {"policy": "RunAll"}, [], {}),
            (0, {"policy": "Skip"}, ["11:00 late"], {}),
            (60, {"policy": "Skip"}, ["11:00 late"], {}),
            (61, {"policy": "Skip"}, [], {"CatchUpSkipped": 1}),
            (300, {"policy": "RunOnce", "window": 300}, ["11:00"], {}),
            (301, {"policy": "RunOnce", "window": 300}, [], {"TooLate": 1}),
        ],
    )
    def test_age_counts_from_when_a_run_is_due(
        self, since_due: int, catch_up: dict[str, Any], runs: list[str], skips: dict[str, int]
    ) -> None:
        table = timetable(HOURLY, uid="674", jitter=3000)
        assert table.due(day("11:00")) == day("11:00") + self.DUE
        now = day("11:00") + self.DUE + since_due
        settlement = settle(table, watermark=day("10:00"), now=now, catch_up=CatchUp(**catch_up))
        assert told(settlement)[:2] == (runs, skips)

    def test_what_is_excluded_after_a_waiting_slot_waits_with_it(self) -> None:
        table = timetable(HOURLY, "30 11 * * *", jitter=1799, exclude=(Exclusion(cron="30 11 * * *"),), uid="x")
        assert table.due(day("11:00")) > day("11:00")
        waiting = settle(table, watermark=day("10:00"), now=day("11:00"), catch_up=CatchUp())
        assert waiting == Settlement((), False, (), day("10:00"))
        later = settle(table, watermark=day("10:00"), now=day("11:59"), catch_up=CatchUp())
        assert told(later) == (["11:00"], {"Excluded": 1}, 0)


YEAR = 365 * 86_400
OUTAGES = [
    pytest.param(("* * * * *",), {}, 10 * YEAR, 10 * YEAR // 60, id="every minute, ten years"),
    pytest.param(("* * * * * *",), {}, 86_400, 86_400, id="every second, a day"),
    pytest.param(("* * * * *",), {"time_zone": "Europe/Berlin"}, 10 * YEAR, 10 * YEAR // 60, id="in Berlin"),
    pytest.param(("*/2 * * * *", "1-59/2 * * * *"), {}, 10 * YEAR, 10 * YEAR // 60, id="two expressions"),
]


@pytest.mark.parametrize(("crons", "fields", "outage", "slots"), OUTAGES)
def test_a_long_outage_is_counted_exactly(
    crons: tuple[str, ...], fields: dict[str, Any], outage: int, slots: int
) -> None:
    table = timetable(*crons, **fields)
    settlement = settle(table, watermark=day("10:00"), now=day("10:00") + outage, catch_up=CatchUp())
    assert (len(settlement.run), settlement.missed) == (1, slots - 1)


@pytest.mark.parametrize(("crons", "fields", "outage", "slots"), OUTAGES)
def test_a_long_outage_is_settled_in_less_than_50_ms(
    crons: tuple[str, ...], fields: dict[str, Any], outage: int, slots: int
) -> None:
    best = 1.0
    for _ in range(5):
        table = timetable(*crons, **fields)
        begin = time.process_time()
        settle(table, watermark=day("10:00"), now=day("10:00") + outage, catch_up=CatchUp())
        best = min(best, time.process_time() - begin)
    assert best < 0.050


class Counting:
    """Counts the questions that settling asks of the patterns of a timeline: its real cost, on any machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cronwright.timing import patterns

        self.asked: Counter[str] = Counter()
        for kind in (patterns.Simple, patterns.Every):
            for name in ("first", "final", "count"):
                monkeypatch.setattr(kind, name, self._counted(name, getattr(kind, name)))

    def _counted(self, name: str, original: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            self.asked[name] += 1
            return original(*arguments)

        return counted

    def settling(self, table: Timetable, outage: int, **catch_up: Any) -> int:
        self.asked.clear()
        settle(table, watermark=day("10:00"), now=day("10:00") + outage, catch_up=CatchUp(**catch_up))
        return self.asked.total()


@pytest.mark.parametrize("policy", ["Skip", "RunOnce", "RunAll"])
@pytest.mark.parametrize(
    "when", [When(crons=("* * * * *",)), When(crons=("* * * * * *",)), When(interval=1)], ids=["min", "sec", "interval"]
)
def test_the_cost_does_not_depend_on_the_length_of_the_outage(
    monkeypatch: pytest.MonkeyPatch, when: When, policy: str
) -> None:
    counting = Counting(monkeypatch)
    table = compile_when(when, uid="u", created=day("10:00"))
    questions = {counting.settling(table, outage, policy=policy) for outage in (600, 86_400, YEAR, 100 * YEAR)}
    assert len(questions) == 1
    assert questions.pop() < 30


def test_in_a_zone_with_summer_time_a_year_costs_its_clock_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)
    table = timetable("* * * * * *", time_zone="Europe/Berlin")
    one, ten = counting.settling(table, YEAR), counting.settling(table, 10 * YEAR)
    assert ten - one < 9 * 20
