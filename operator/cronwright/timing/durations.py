"""Durations as people write them in a manifest (`90s`, `1h30m`, `1d12h`), and back.

Days are 86,400 seconds: a duration is elapsed time, and never knows a calendar. Units stand once each and
from the largest to the smallest, so that every duration has one reading (`1m` is a minute, never a month).
"""

from __future__ import annotations

import re

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_DURATION = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit, _ in _UNITS))


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as `1h30m`; ValueError says how to write one."""
    found = _DURATION.fullmatch(text) if text else None
    if found is None:
        raise ValueError(f'"{text}" is not a duration; write for example "90s", "5m", "1h30m" or "1d"')
    return sum(int(number or 0) * size for number, (_, size) in zip(found.groups(), _UNITS, strict=True))


def format_duration(seconds: int) -> str:
    """Return the shortest way to write a duration: 5400 is `1h30m`."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    parts = []
    for unit, size in _UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
