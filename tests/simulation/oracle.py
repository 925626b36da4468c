"""Which slots there are, by looking at every single second: slow, obvious, and sharing nothing with `timing`.

Only for what `plan.py` draws: UTC, and cron fields of stars, steps and numbers.
"""

from __future__ import annotations

from datetime import datetime

from cronwright.cluster.port import Json


def slots(spec: Json, created: int, after: int, until: int) -> list[tuple[int, bool]]:
    """All slots in (after, until], each with whether an exclusion covers it."""
    when = spec["schedule"]
    begin = max(after + 1, _instant(spec["startsAt"]) if "startsAt" in spec else after + 1)
    end = min(until, _instant(spec["expiresAt"]) if "expiresAt" in spec else until)
    excludes = when.get("exclude", [])
    return [
        (second, any(_excluded(entry, second) for entry in excludes))
        for second in range(begin, end + 1)
        if _is_slot(when, created, second)
    ]


def _is_slot(when: Json, created: int, second: int) -> bool:
    if "at" in when:
        return second == _instant(when["at"])
    if "interval" in when:
        length = int(when["interval"].removesuffix("s"))
        if "anchor" in when:
            since = second - _instant(when["anchor"])
            return since >= 0 and since % length == 0
        return second > created and (second - created) % length == 0
    crons = [when["cron"]] if "cron" in when else when["crons"]
    return any(_matches(cron, second) for cron in crons)


def _excluded(entry: Json, second: int) -> bool:
    if "cron" in entry:
        return _matches(entry["cron"], second - second % 60)  # without seconds: the whole minute
    return _instant(entry["from"]) <= second < _instant(entry["to"])


def _matches(cron: str, second: int) -> bool:
    minute, hour, day, month, weekday, *seconds = cron.split()
    assert (hour, day, month, weekday) == ("*", "*", "*", "*"), "plan.py draws no others"
    return _field(minute, second // 60 % 60) and _field(seconds[0] if seconds else "0", second % 60)


def _field(text: str, value: int) -> bool:
    if text == "*":
        return True
    if text.startswith("*/"):
        return value % int(text[2:]) == 0
    return value == int(text)


def _instant(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
