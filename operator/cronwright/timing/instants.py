"""Instants: unix seconds inside, RFC 3339 outside.

Everything in timing is an `int` of unix seconds, so that no naive datetime, no local clock and no float
rounding can slip in between. This module is the only way in and out. Seconds are whole: a fraction is cut
off, since Kubernetes writes none and no slot has one.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_LOCAL = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_instant(text: str) -> int:
    """Return the unix seconds of an RFC 3339 time; a fraction of a second is cut off."""
    found = _RFC3339.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        zone = found[3].upper().replace("Z", "+00:00")
        return (datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}") - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        raise ValueError(f'"{text}" is not an RFC 3339 time; write for example "2027-03-14T07:00:00Z"') from None


def format_instant(t: float) -> str:
    """Return an instant as RFC 3339 in UTC, whole seconds: `2027-03-14T07:00:00Z`."""
    moment = _EPOCH + timedelta(seconds=math.floor(t))
    return moment.replace(tzinfo=None).isoformat() + "Z"


def parse_local_date(text: str) -> int | None:
    """Return the local second (as if UTC) at which a date such as `2026-12-25` begins, if it is one."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return (date.fromisoformat(text) - _EPOCH.date()).days * 86_400
    except ValueError:
        return None


def parse_local_time(text: str) -> int | None:
    """Return the local second (as if UTC) of a wall-clock time such as `2026-12-24T18:00`, if it is one."""
    if not _LOCAL.fullmatch(text):
        return None
    try:
        return (datetime.fromisoformat(f"{text.upper()}+00:00") - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        return None
