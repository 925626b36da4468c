"""The dialect of cron that is accepted: what a field may say, and why anything else is refused.

croniter expands expressions into sets (`cron.py`), but it takes more than one should schedule production
work by, and some of that has a surprising meaning: `59/15` is `*/15`, `5-5` is the whole field, `R` differs
between replicas, a day 0 is day 1 if there are six fields. So every element is read here first, and refused
in words that name its field, or written out in the plain form that croniter cannot misread: numbers, no
names, Sunday as 0, no range of one value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from croniter import croniter
from croniter.croniter import HashExpander

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_NUMBER = re.compile(r"[0-9]{1,9}")
_HASH = re.compile(r"h(?:\(([0-9]{1,4})-([0-9]{1,4})\))?(?:/([0-9]{1,4}))?")


class CronError(ValueError):
    """An expression that is refused: `str()` says which part of it, why, and what to write instead."""

    def __init__(self, problem: str, reason: str = "InvalidCron") -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an expression: its name, its lowest and highest value, and names for values."""

    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)


MINUTE, HOUR = Field("minute", 0, 59), Field("hour", 0, 23)
MONTH_DAY, MONTH = Field("day-of-month", 1, 31), Field("month", 1, 12, _MONTHS)
WEEKDAY, SECOND = Field("day-of-week", 0, 6, _WEEKDAYS), Field("second", 0, 59)
FIELDS = (MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY, SECOND)


def split(text: str) -> list[str]:
    """Return the five or six fields of an expression, in lower case and with its alias resolved."""
    lower = text.strip().lower()
    if lower.startswith("@"):
        lower = _alias(text, lower)
    if lower.startswith(("tz=", "cron_tz=")):
        raise CronError(f'a time zone inside the expression "{text}" is not taken; write it in timeZone')
    fields = lower.split()
    if len(fields) == 7:
        raise CronError(f'"{text}" has a seventh field (year), which is not taken; use startsAt and expiresAt')
    if len(fields) not in (5, 6):
        raise CronError(
            f'"{text}" has {len(fields)} field{"" if len(fields) == 1 else "s"}; write five '
            "(minute hour day-of-month month day-of-week) and, if needed, seconds as the sixth"
        )
    return fields


def _alias(text: str, lower: str) -> str:
    if lower in ALIASES:
        return ALIASES[lower]
    if lower.startswith("@every"):
        raise CronError(f'"{text}" is not taken; write it as interval, for example interval: 5m')
    if lower == "@reboot":
        raise CronError(f'"{text}" is not taken, since a cluster does not reboot; write at or a cron time')
    raise CronError(f'"{text}" is not known; write one of {", ".join(ALIASES)}')


def resolve(text: str, uid: str) -> str:
    """Return the expression in plain form: checked, and each `H` replaced by a value hashed from the uid."""
    fields = split(text)
    return " ".join(_Reader(text, spec).field(raw, uid) for spec, raw in zip(FIELDS, fields, strict=False))


def spreads(text: str) -> bool:
    """Whether an expression uses `H`, so that its slots depend on the schedule's uid."""
    return any(part.startswith("h") for part in text.lower().split())


class _Reader:
    """Reads one field; knows the whole expression for its messages."""

    __slots__ = ("_spec", "_text")

    def __init__(self, text: str, spec: Field) -> None:
        self._text = text
        self._spec = spec

    def field(self, raw: str, uid: str) -> str:
        if raw == "?":
            if self._spec not in (MONTH_DAY, WEEKDAY):
                raise self._bad(raw, "is for day fields only", 'write "*"')
            return "*"
        if raw.startswith("h"):
            raw = self._hashed(raw, uid)
        elements = raw.split(",")
        if "*" in elements and len(elements) > 1:
            raise self._bad(raw, "lists a star beside other values", 'write "*" alone, or the values without it')
        plain = [self._element(element) for element in elements]
        special = [element for element in plain if "#" in element or element.startswith("l")]
        if self._spec is WEEKDAY and special and len(special) < len(plain):
            raise self._bad(raw, 'mixes weekdays with "#" or "L"', "write two expressions under crons")
        return ",".join(plain)

    def _element(self, raw: str) -> str:
        if re.fullmatch(r"r(\(.*\))?(/.*)?", raw):
            raise self._bad(raw, "is random, which differs on every replica", 'write "H", spread by the uid')
        if raw.startswith("h"):
            raise self._bad(raw, 'is "H" in a list', 'write "H" alone in its field, or two expressions under crons')
        if self._spec is MONTH_DAY:
            if raw == "l":
                return "l"
            if "w" in raw:
                raise self._bad(raw, 'uses "W", which is not taken', 'write a day, "L", or a weekday such as MON#1')
        if self._spec is WEEKDAY and ("l" in raw or "#" in raw):
            return self._nth_weekday(raw)
        body, slash, step_text = raw.partition("/")
        step = self._step(raw, step_text) if slash else 1
        if body == "*":
            return f"*/{step}" if step > 1 else "*"
        low_text, dash, high_text = body.partition("-")
        low = self._value(raw, low_text)
        if dash:
            return self._range(raw, low, self._value(raw, high_text), step)
        if not slash:
            return str(low % 7 if self._spec is WEEKDAY else low)
        if low >= self._spec.high:
            raise self._bad(raw, "steps on from the last value", f'write "{low}" or "*/{step}"')
        return self._range(raw, low, self._spec.high, step)

    def _range(self, raw: str, low: int, high: int, step: int) -> str:
        if low > high:
            raise self._bad(raw, "is a range that wraps", f'write "{self._unwrapped(low, high)}"')
        if self._spec is WEEKDAY:
            return ",".join(str(value % 7) for value in range(low, high + 1, step))
        if high - low < step:
            return str(low)
        return f"{low}-{high}/{step}" if step > 1 else f"{low}-{high}"

    def _unwrapped(self, low: int, high: int) -> str:
        if self._spec is WEEKDAY and (low == 7 or high == 0):  # Sunday is 7 as well as 0
            return f"{low % 7}-{high or 7}"
        return f"{low}-{self._spec.high},{self._spec.low}-{high}"

    def _nth_weekday(self, raw: str) -> str:
        if "#" in raw:
            day, _, nth = raw.partition("#")
            if nth not in ("1", "2", "3", "4", "5"):
                raise self._bad(raw, "counts weekdays of a month", "write 1 to 5 after the #, for example MON#2")
            return f"{self._value(raw, day) % 7}#{nth}"
        day = raw[1:] if raw.startswith("l") else raw.removesuffix("l")
        if not day or "l" in day:
            raise self._bad(raw, "does not say which weekday is last", 'write for example "5L", the last Friday')
        return f"l{self._value(raw, day) % 7}"

    def _hashed(self, raw: str, uid: str) -> str:
        found = _HASH.fullmatch(raw)
        if found is None:
            raise self._bad(raw, "is not understood", 'write "H", "H/15", "H(0-29)" or "H(0-29)/10" alone')
        # Days end with 28, so that a monthly schedule runs in every month.
        low, high = self._spec.low, 28 if self._spec is MONTH_DAY else self._spec.high
        if found[1]:
            low, high = self._value(raw, found[1]), self._value(raw, found[2])
            if low >= high or high > self._spec.high:
                raise self._bad(raw, "is not a range", f'write for example "H({self._spec.low}-{self._spec.high})"')
        if found[3] and self._step(raw, found[3]) > high - low + 1:
            raise self._bad(raw, "steps further than its range", f"write a step of at most {high - low + 1}")
        bounded = f"h({low}-{high})" + (f"/{found[3]}" if found[3] else "")
        # The stubs want an instance where croniter itself passes its class.
        expander = HashExpander(croniter)  # type: ignore[arg-type]
        return str(expander.expand("", FIELDS.index(self._spec), bounded, hash_id=uid.encode()))

    def _step(self, raw: str, text: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) == 0:
            raise self._bad(raw, "has no step", 'write a number of at least 1 after "/"')
        return int(text)

    def _value(self, raw: str, text: str) -> int:
        spec = self._spec
        value = int(text) if _NUMBER.fullmatch(text) else spec.names.get(text)
        names = f" or {next(iter(spec.names)).upper()} to {list(spec.names)[-1].upper()}" if spec.names else ""
        if value is None:
            raise self._bad(raw, "is not understood", f"write {spec.low} to {spec.high}{names}")
        if not spec.low <= value <= spec.high and not (spec is WEEKDAY and value == 7):
            raise self._bad(raw, "is out of range", f"write {spec.low} to {spec.high}{names}")
        return value

    def _bad(self, raw: str, problem: str, fix: str) -> CronError:
        return CronError(f'{self._spec.name} "{raw.upper()}" in "{self._text}" {problem}; {fix}')
