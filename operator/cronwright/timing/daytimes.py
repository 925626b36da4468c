"""Which times of a day: sets of seconds from 0 to 86,399, as bits of integers.

Python's integers are bit sets of any length, and the next, the previous and the number of set bits are
single operations on them. A cron expression's times are the same seconds of certain minutes, which takes
1,440 + 60 bits (`MinuteTimes`); 10,000 expressions spread by `H` stay small. Where expressions with
different seconds are united or one excludes part of another, the result is spelled out in 86,400 bits
(`SecondTimes`).

Both kinds share one interface: `first(at)`, `final(at)`, `count(begin, end)`, `total`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, reduce

DAY = 86_400
_MINUTES = 1_440
_EVERY_SECOND = (1 << 60) - 1


def bits(numbers: Iterable[int]) -> int:
    """Return the integer in which exactly these bits are set."""
    return sum(1 << number for number in set(numbers))


def lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def repeated(mask: int, width: int, positions: int) -> int:
    """Return `mask` set down, `width` bits wide, at every place whose bit is set in `positions`."""
    spread = 0
    while positions:
        place = lowest_bit(positions)
        spread |= mask << (width * place)
        positions &= positions - 1
    return spread


class MinuteTimes:
    """The same seconds of each of some minutes of the day."""

    __slots__ = ("__dict__", "minutes", "seconds", "total")

    def __init__(self, minutes: int, seconds: int = 1) -> None:
        self.minutes = minutes
        self.seconds = seconds
        self.total = minutes.bit_count() * seconds.bit_count()

    @cached_property
    def mask(self) -> int:
        """All of it as one bit for each second of the day."""
        hour = (1 << 60) - 1
        hours = ((repeated(self.seconds, 60, (self.minutes >> (60 * h)) & hour) << (3_600 * h)) for h in range(24))
        return reduce(int.__or__, hours, 0)

    def first(self, at: int) -> int | None:
        """Return the first time that is not before `at`."""
        minute, second = divmod(at, 60)
        later = self.minutes >> minute
        if not later or not self.seconds:
            return None
        if later & 1:
            seconds = self.seconds >> second
            if seconds:
                return at + lowest_bit(seconds)
            later &= -2
            if not later:
                return None
        return 60 * (minute + lowest_bit(later)) + lowest_bit(self.seconds)

    def final(self, at: int) -> int | None:
        """Return the last time that is not after `at`."""
        minute, second = divmod(at, 60)
        if not self.seconds:
            return None
        if self.minutes >> minute & 1:
            seconds = self.seconds & ((2 << second) - 1)
            if seconds:
                return 60 * minute + seconds.bit_length() - 1
        earlier = self.minutes & ((1 << minute) - 1)
        if not earlier:
            return None
        return 60 * (earlier.bit_length() - 1) + self.seconds.bit_length() - 1

    def count(self, begin: int, end: int) -> int:
        """Return how many times there are from `begin` to before `end`."""
        return self._before(end) - self._before(begin)

    def _before(self, at: int) -> int:
        minute, second = divmod(at, 60)
        whole = (self.minutes & ((1 << minute) - 1)).bit_count() * self.seconds.bit_count()
        if self.minutes >> minute & 1:
            whole += (self.seconds & ((1 << second) - 1)).bit_count()
        return whole


class SecondTimes:
    """Any set of seconds of the day."""

    __slots__ = ("mask", "total")

    def __init__(self, mask: int) -> None:
        self.mask = mask
        self.total = mask.bit_count()

    def first(self, at: int) -> int | None:
        later = self.mask >> at
        return at + lowest_bit(later) if later else None

    def final(self, at: int) -> int | None:
        earlier = self.mask & ((2 << at) - 1)
        return earlier.bit_length() - 1 if earlier else None

    def count(self, begin: int, end: int) -> int:
        return (self.mask >> begin & ((1 << (end - begin)) - 1)).bit_count() if end > begin else 0


DayTimes = MinuteTimes | SecondTimes


def unite(parts: list[MinuteTimes]) -> DayTimes:
    """Return the times that are in any of `parts`."""
    if len({part.seconds for part in parts}) <= 1:
        seconds = parts[0].seconds if parts else 1
        return MinuteTimes(reduce(int.__or__, (part.minutes for part in parts), 0), seconds)
    return SecondTimes(reduce(int.__or__, (part.mask for part in parts), 0))


def divide(times: DayTimes, by: DayTimes) -> tuple[DayTimes, DayTimes]:
    """Return the times outside `by` and the times inside it."""
    if isinstance(times, MinuteTimes) and isinstance(by, MinuteTimes) and not times.seconds & ~by.seconds:
        inside = times.minutes & by.minutes
        return MinuteTimes(times.minutes ^ inside, times.seconds), MinuteTimes(inside, times.seconds)
    common = times.mask & by.mask
    return SecondTimes(times.mask ^ common), SecondTimes(common)


def whole_minutes(times: MinuteTimes) -> MinuteTimes:
    """Return the same minutes, all of each."""
    return MinuteTimes(times.minutes, _EVERY_SECOND)
