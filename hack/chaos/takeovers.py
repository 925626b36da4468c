"""How long a shard is without a holder after its holder was killed, paused or asked to go, as the Leases show it.

A gap counts as undisturbed when nothing else was wrong meanwhile: the API server and etcd were up, nobody deleted a
shard's Lease, and another replica stood by, synced, all the while. Only those say something of the operator alone.
"""

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from hack.chaos import faults
from hack.chaos.audit import Entry

Json = dict[str, Any]

SHARD = "cronwright-shard-"


@dataclass(frozen=True)
class Sighting:
    """A shard's Lease, when it was seen and when it was written."""

    seen: float
    written: float
    shard: str
    holder: str


@dataclass(frozen=True)
class Trouble:
    """A fault as it happened, by the wall clock."""

    kind: str
    target: str
    began: float
    ended: float


@dataclass(frozen=True)
class Standby:
    """A replica that was synced and awake, from when to when."""

    replica: str
    since: float
    until: float


@dataclass(frozen=True)
class Gap:
    kind: str
    replica: str
    shard: str
    seconds: float
    to: str
    undisturbed: bool
    taken: float
    """When the new holder wrote itself down, by the wall clock."""
    left: float
    """When it was the holder no more: a shard that is evened out at once may see no work in between."""
    idle: float | None = None
    """Seconds from then until it first wrote something for a schedule of this shard, if it did while it held it."""

    def as_json(self) -> Json:
        return {key: value for key, value in asdict(self).items() if key != "left"}


class Leases:
    """What the recorder has seen of the shards' Leases."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sightings: list[Sighting] = []

    def see(self, lease: Json, now: float) -> None:
        name, spec = lease["metadata"]["name"], lease.get("spec") or {}
        if not name.startswith(SHARD) or not spec.get("renewTime"):
            return
        written = datetime.fromisoformat(spec["renewTime"]).timestamp()
        with self._lock:
            self.sightings.append(
                Sighting(now, written, name.removeprefix(SHARD), str(spec.get("holderIdentity") or ""))
            )


def gaps(
    sightings: Sequence[Sighting], troubles: Sequence[Trouble], standbys: Sequence[Standby], lease: float
) -> list[Gap]:
    found: list[Gap] = []
    for trouble in troubles:
        if trouble.kind in faults.OF_REPLICAS:
            found += _after(trouble, sightings, troubles, standbys, lease)
    return found


def _after(
    trouble: Trouble,
    sightings: Sequence[Sighting],
    troubles: Sequence[Trouble],
    standbys: Sequence[Standby],
    lease: float,
) -> Iterable[Gap]:
    for shard in sorted({s.shard for s in sightings}):
        of_shard = sorted((s for s in sightings if s.shard == shard), key=lambda s: s.written)
        before = [s for s in of_shard if s.written <= trouble.began]
        if not before or before[-1].holder != trouble.target or before[-1].written + lease < trouble.began:
            continue
        later = [s for s in of_shard if s.written > trouble.began]
        taken = next(
            (s for s in later if s.holder and (s.holder != trouble.target or s.written >= trouble.ended)), None
        )
        if taken is None:
            continue
        undisturbed = _stood_by(trouble, taken, standbys) and not _was_disturbed(trouble, taken, troubles)
        seconds = taken.seen - trouble.began
        left = next((s.written for s in later if s.written > taken.written and s.holder != taken.holder), math.inf)
        yield Gap(trouble.kind, trouble.target, shard, seconds, taken.holder, undisturbed, taken.written, left)


def with_first_acts(found: Iterable[Gap], entries: Sequence[Entry], shards: Mapping[str, str]) -> list[Gap]:
    """Each with how long its new holder took to act; `shards` are those of the schedules, by name."""
    acts = [(entry.at, entry.actor, shards.get(entry.schedule)) for entry in entries if entry.done]

    def idle(gap: Gap) -> float | None:
        mine = (at for at, actor, shard in acts if (actor, shard) == (gap.to, gap.shard))
        moments = (at for at in mine if gap.taken <= at < gap.left)
        first = min(moments, default=None)
        return None if first is None else first - gap.taken

    return [replace(gap, idle=idle(gap)) for gap in found]


def _stood_by(trouble: Trouble, taken: Sighting, standbys: Iterable[Standby]) -> bool:
    return any(s.replica != trouble.target and s.since < trouble.began and s.until > taken.seen for s in standbys)


def _was_disturbed(trouble: Trouble, taken: Sighting, troubles: Iterable[Trouble]) -> bool:
    """Whether a fault that stands in a take-over's way lay in the gap, or ended so shortly before that its
    consequences did."""
    recovery = 10.0
    return any(
        other.began < taken.seen and other.ended + recovery > trouble.began
        for other in troubles
        if other.kind in faults.OF_PARTS or other.kind == faults.SHARDS
    )
