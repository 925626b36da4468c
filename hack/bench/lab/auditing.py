"""API calls, counted where they arrive: the API server's audit log names the user, the verb and the object of each.

It covers all of a contestant's clients alike (the operator has two), and nothing that a contestant says of itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson
from hack.bench.lab.errors import BenchError
from hack.bench.lab.manifests import NAMESPACE

WRITES = ("create", "update", "patch", "delete", "deletecollection")
QUIET = 3.0
"""Seconds without a write after which nothing more is expected."""

_POLL = 0.5
_LONGEST_LINE = 1_000_000


@dataclass(frozen=True)
class Call:
    user: str
    verb: str
    resource: str
    """With its subresource: `jobs`, `jobs/status`."""
    namespace: str
    code: int
    dry: bool
    """A trial that changes nothing."""
    agent: str = ""
    """What the client calls itself: `kopf`, `cronwright`."""

    @property
    def kind(self) -> str:
        return f"{self.verb} {self.resource}" + (" (dry run)" if self.dry else "")

    @property
    def writes(self) -> bool:
        return self.verb in WRITES and not self.dry


@dataclass(frozen=True)
class Audit:
    log: Path

    def mark(self) -> int:
        """The place in the log that is now: behind the last whole line, as the next may be half written."""
        if not self.log.exists():
            return 0
        size = self.log.stat().st_size
        with self.log.open("rb") as log:
            tail = max(0, size - _LONGEST_LINE)
            log.seek(tail)
            return tail + log.read(size - tail).rfind(b"\n") + 1

    def between(self, start: int, end: int | None = None) -> list[Call]:
        """The calls that were answered between two marks, or since one."""
        end = self.mark() if end is None else end
        if start == end:
            return []
        with self.log.open("rb") as log:
            log.seek(start)
            return list(calls(log.read(end - start).splitlines()))

    def await_quiet(self, user: str, patience: float = 3600.0) -> int:
        """Wait until this user has written nothing into the benchmark's namespace for a while; the mark of then."""
        deadline = time.monotonic() + patience
        mark, since = self.mark(), time.monotonic()
        while time.monotonic() - since < QUIET:
            if time.monotonic() > deadline:
                raise BenchError(f"{user} still writes after {patience:.0f} s without anything being due.")
            time.sleep(_POLL)
            now = self.mark()
            if any(call.writes for call in of(self.between(mark, now), user)):
                since = time.monotonic()
            mark = now
        return mark


def calls(lines: Iterable[bytes]) -> Iterable[Call]:
    """One for each request: a watch when it is opened, any other when it has been answered."""
    for line in lines:
        event = orjson.loads(line)
        stage = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
        about = event.get("objectRef")
        if event["stage"] != stage or about is None:
            continue
        parts = (about.get("resource", ""), about.get("subresource", ""))
        yield Call(
            user=event["user"]["username"],
            verb=event["verb"],
            resource="/".join(part for part in parts if part),
            namespace=about.get("namespace", ""),
            code=int(event.get("responseStatus", {}).get("code", 0)),
            dry="dryRun=" in event["requestURI"],
            agent=event.get("userAgent", "").partition("/")[0],
        )


def of(found: Iterable[Call], user: str, *, background: bool = False) -> list[Call]:
    """A user's calls about the benchmark's objects; or all others, which are there whether anything runs or not."""
    return [call for call in found if call.user == user and (call.namespace != NAMESPACE) == background]


def by_kind(found: Iterable[Call]) -> Counter[str]:
    return Counter(call.kind for call in found)


def runs_in(found: Iterable[Call]) -> int:
    """Jobs that were created: a conflict is a call, but not a run."""
    return sum(call.kind == "create jobs" and call.code == 201 for call in found)
