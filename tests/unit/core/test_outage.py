"""The cost of a decision does not depend on how long nobody decided, and its counts are exact."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cronwright.api import TaskTemplateSpec
from cronwright.core.decide import decide
from cronwright.core.model import Key, Template, View
from cronwright.core.observe import schedule_from
from cronwright.core.rebuilding import rebuild
from cronwright.timing import parse_instant

CREATED = "2017-01-01T00:00:00Z"
TEN_YEARS = parse_instant("2027-01-01T00:00:00Z") - parse_instant(CREATED)
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


def view(outage: int, **when: Any) -> View:
    meta = {"namespace": "ns", "name": "s", "uid": "u", "generation": 1, "resourceVersion": "1"}
    spec = {"templateRef": {"name": "t"}, "schedule": when}
    schedule = schedule_from({"metadata": {**meta, "creationTimestamp": CREATED}, "spec": spec})
    now = parse_instant(CREATED) + outage
    return View(schedule, TEMPLATE, rebuild(schedule, {}), recorded=True, runs={}, now=now)


OUTAGES = [
    pytest.param(TEN_YEARS, {"cron": "* * * * *"}, TEN_YEARS // 60, id="every minute, ten years"),
    pytest.param(TEN_YEARS, {"cron": "* * * * *", "timeZone": "Europe/Berlin"}, TEN_YEARS // 60, id="in Berlin"),
    pytest.param(86_400, {"cron": "* * * * * *"}, 86_400, id="every second, a day"),
    pytest.param(TEN_YEARS, {"interval": "1s"}, TEN_YEARS, id="an interval of a second, ten years"),
]


@pytest.mark.parametrize(("outage", "when", "slots"), OUTAGES)
def test_a_decision_after_a_long_outage_is_exact_and_takes_less_than_50_ms(
    outage: int, when: dict[str, str], slots: int
) -> None:
    best = 1.0
    for _ in range(5):
        seen = view(outage, **when)
        begin = time.process_time()
        decision = decide(seen)
        best = min(best, time.process_time() - begin)
        assert [start.claim.slot for start in decision.starts] == [seen.now]
        assert decision.ledger.missed == slots - 1
        assert decision.ledger.skips == {"CatchUpSkipped": slots - 1}
    assert best < 0.050
