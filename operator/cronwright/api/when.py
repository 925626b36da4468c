"""The `schedule` block of a TaskSchedule: when its slots are. `cronwright.timing` computes them."""

from __future__ import annotations

import re
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, PlainSerializer, WithJsonSchema

from cronwright.api.common import (
    ApiModel,
    Duration,
    PositiveDuration,
    Rule,
    Time,
    exactly_one_of,
    format_time,
)

_CRON = r"^\s*(@[A-Za-z]+|\S+(\s+\S+){4,5})\s*$"
_CRON_MESSAGE = "write five fields (minute, hour, day of month, month, day of week), such as 30 6 * * 1-5, or @daily"
_ZONE = r"^[A-Za-z][A-Za-z0-9_+/-]*$"


def _is_cron(value: str | None) -> bool:
    return value is None or bool(re.fullmatch(_CRON, value))


def _cron_rule() -> Rule:
    return Rule(
        message=_CRON_MESSAGE,
        cel=f"!has(self.cron) || self.cron.matches(r'{_CRON}')",
        holds=lambda model: _is_cron(model.cron),
        field="cron",
    )


class OnGap(StrEnum):
    """A wall-clock time that the clocks jump over in spring."""

    RUN_AFTER = "RunAfter"
    SKIP = "Skip"


class OnOverlap(StrEnum):
    """A wall-clock time that comes twice in autumn."""

    ONCE = "Once"
    TWICE = "Twice"


Cron = Annotated[str, Field(min_length=1, max_length=256)]

# A day (in the schedule's zone) or a moment: holidays are written as days, maintenance windows as moments.
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
_DAY_OR_TIME = f"^{_DAY}(T{_CLOCK})?$"


def _format_day_or_time(value: date) -> str:
    return format_time(value) if isinstance(value, datetime) else value.isoformat()


Day = date
DayOrTime = Annotated[
    Time | Day,
    PlainSerializer(_format_day_or_time, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 40,
            "x-kubernetes-validations": [
                {
                    "rule": f"self.matches('{_DAY_OR_TIME}')",
                    "message": "write a day such as 2026-12-24, or a time such as 2026-12-24T18:00:00Z",
                }
            ],
        }
    ),
]


def _same_form(exclude: Exclude) -> bool:
    return exclude.from_ is None or exclude.to is None or type(exclude.from_) is type(exclude.to)


def _in_order(exclude: Exclude) -> bool:
    start, end = exclude.from_, exclude.to
    if isinstance(start, datetime) and isinstance(end, datetime):
        return start < end
    return start is None or end is None or not _same_form(exclude) or start <= end


# A day ends with its last second, so a stretch may begin and end on the same one; a time is over at once.
_CEL_IN_ORDER = " || ".join(
    (
        f"!has(self.from) || !self.from.matches('{_DAY_OR_TIME}')",
        f"!has(self.to) || !self.to.matches('{_DAY_OR_TIME}')",
        "self.from.contains('T') != self.to.contains('T')",
        "(self.from.contains('T') ? timestamp(self.from) < timestamp(self.to)"
        " : timestamp(self.from + 'T00:00:00Z') <= timestamp(self.to + 'T00:00:00Z'))",
    )
)


class Exclude(ApiModel):
    """Slots that are left out: those of one day, of a stretch of time, or those a cron expression matches."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            message="write exactly one of date, from with to, or cron",
            cel="[has(self.date), has(self.from) || has(self.to), has(self.cron)].exists_one(given, given)",
            holds=lambda e: sum((e.date is not None, bool(e.from_ or e.to), e.cron is not None)) == 1,
        ),
        Rule(
            message="write both from and to",
            cel="has(self.from) == has(self.to)",
            holds=lambda e: (e.from_ is None) == (e.to is None),
        ),
        Rule(
            message="write from and to alike: both as days, or both as times",
            cel="!has(self.from) || !has(self.to) || self.from.contains('T') == self.to.contains('T')",
            holds=_same_form,
        ),
        Rule(
            message="write a to that comes after from",
            cel=_CEL_IN_ORDER,
            holds=_in_order,
            field="to",
        ),
        _cron_rule(),
    )

    date: Day | None = None
    """A day in the schedule's time zone, e.g. 2026-12-25."""

    from_: DayOrTime | None = Field(default=None, alias="from")
    """
    Where the stretch begins: a day in the schedule's time zone, e.g. 2026-12-24, or a time, e.g.
    2026-12-24T18:00:00Z.
    """

    to: DayOrTime | None = None
    """Where the stretch ends: a day, which is left out too, or a time, which is not. Written as from is."""

    cron: Cron | None = None
    """Slots that this expression matches too are left out, e.g. "* 0-5 * * *" for the nights."""


class Schedule(ApiModel):
    """
    When to run: exactly one of at, interval, cron or crons, and the time zone and exceptions that go with it.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one_of("at", "interval", "cron", "crons", message="write exactly one of at, interval, cron or crons"),
        Rule(
            message="anchor goes with interval only: remove it",
            cel="!has(self.anchor) || has(self.interval)",
            holds=lambda schedule: schedule.anchor is None or schedule.interval is not None,
            field="anchor",
        ),
        _cron_rule(),
        Rule(
            message=_CRON_MESSAGE,
            cel=f"!has(self.crons) || self.crons.all(cron, cron.matches(r'{_CRON}'))",
            holds=lambda schedule: all(map(_is_cron, schedule.crons)),
            field="crons",
        ),
        Rule(
            message="write the name of a time zone, such as Europe/Berlin or UTC",
            cel=f"!has(self.timeZone) || self.timeZone.matches('{_ZONE}')",
            holds=lambda schedule: bool(re.fullmatch(_ZONE, schedule.time_zone)),
            field="timeZone",
        ),
    )

    at: Time | None = None
    """Run once, at this time, e.g. 2030-12-24T18:00:00Z."""

    interval: PositiveDuration | None = None
    """Run again and again, this long apart, e.g. 30s, 5m, 1h30m or 1d."""

    cron: Cron | None = None
    """
    Run when this cron expression says so, e.g. "30 6 * * 1-5". Five fields: minute, hour, day of month,
    month, day of week; a sixth one is seconds; @hourly, @daily, @weekly, @monthly and @yearly work too; H is
    a number that stays the same for a schedule and spreads the load. When both days are restricted, either
    one is enough.
    """

    crons: tuple[Cron, ...] = Field(
        default=(), min_length=1, max_length=20, json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Run when any of these cron expressions says so; a time that several of them name is one slot."""

    time_zone: str = Field(default="UTC", min_length=1, max_length=64)
    """
    The time zone that cron expressions and excluded days are read in, by its IANA name, e.g. Europe/Berlin.
    """

    anchor: Time | None = None
    """
    Where an interval's slots are counted from: anchor, anchor + interval, and so on, e.g.
    2026-01-01T00:00:00Z. The schedule's creation unless said.
    """

    jitter: Duration | None = None
    """
    Start each run up to this much after its slot, e.g. 30s, so that many schedules do not start at one
    moment. The same slot always gets the same delay.
    """

    exclude: tuple[Exclude, ...] = Field(
        default=(), max_length=100, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Slots that are left out, e.g. [{date: 2026-12-25}, {from: 2026-07-01, to: 2026-07-14}]."""

    on_gap: OnGap = OnGap.RUN_AFTER
    """
    A cron time that the clocks jump over in spring: RunAfter runs it once, right after the gap; Skip leaves
    it out.
    """

    on_overlap: OnOverlap = OnOverlap.ONCE
    """A cron time that comes twice when the clocks go back: run it Once, the first time, or Twice."""
