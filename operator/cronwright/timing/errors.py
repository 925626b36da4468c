"""What a person wrote and timing cannot take.

One exception for all of timing, because callers do one thing with it: put its reason into a condition and
its sentence before the person. So it carries the path of the field in the resource, and the sentence
already names it.
"""

from __future__ import annotations


class TimingError(ValueError):
    """A schedule that cannot be compiled; `str()` names the field, the bad value and the fix."""

    def __init__(self, reason: str, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.reason = reason
        self.field = field
        self.problem = problem
