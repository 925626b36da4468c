"""How much is asked of the API server at once: more while it answers quickly, less when it says that it is too much.

A fixed rate would be too low for a strong API server and too high for a weak one. The number of schedules worked on at
once grows by one for each round of quick answers, and is halved by a 429, a 5xx or silence, as TCP does it. Answers
that are neither quick nor slow come from an API server that has enough to do: more at once would only slow it down.
"""

from __future__ import annotations

from collections.abc import Callable

from cronwright.cluster.port import ClusterError, Unavailable

FEWEST, FIRST, MOST = 4, 32, 96
QUICK, SLOW = 0.05, 2.0
"""Seconds up to which an answer is a sign that more is possible, and after which it is one of too much at once."""


class Pace:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._limit = float(FIRST)
        self._lowered = float("-inf")

    @property
    def limit(self) -> int:
        return int(self._limit)

    def answered(self, seconds: float) -> None:
        if seconds > SLOW:
            self.refused()
        elif seconds <= QUICK:
            self._limit = min(MOST, self._limit + 1 / self._limit)

    def refused(self) -> None:
        """Halve, once for all that was under way at the time."""
        now = self._monotonic()
        if now - self._lowered >= 1.0:
            self._limit = max(FEWEST, self._limit / 2)
            self._lowered = now


def delay_after(error: ClusterError, delay: float) -> float:
    """Seconds to wait before the next call: this delay, or what the API server asks for if that is longer."""
    asked = error.retry_after if isinstance(error, Unavailable) else None
    return max(delay, asked or 0.0)
