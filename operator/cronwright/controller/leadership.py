"""Who acts on which schedules: each shard is a Lease, held by one replica at a time.

A schedule belongs to the shard that its UID hashes to. Every replica watches everything and keeps a warm cache; only a
shard's holder acts on its schedules. Holding is judged by a clock that never jumps and counted from the moment a
renewal was *sent*, less a margin, while the others count from the moment they *saw* it: so a holder stops before
anybody else may begin, whatever the wall clocks say. What a paused process may still do after that is fenced by the
ledgers' compare-and-set and the Jobs' names; leadership is there so that replicas do not get into each other's way.

The Leases come by the same watch as the claims do, so nobody polls: a standby sleeps until a Lease is due to expire,
and a released one is taken as soon as its event arrives. With more than one shard each replica also keeps a member
Lease, and shards are evened out one at a time: the fullest replica lets one go when another holds two fewer.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from cronwright.cluster.port import LEASES, AlreadyExists, Cluster, ClusterError, Conflict, Json, NotFound, Unavailable
from cronwright.core.model import MANAGED_BY

log = logging.getLogger(__name__)

T = TypeVar("T")

_SHARD, _MEMBER = "cronwright-shard-", "cronwright-member-"
_SOMEBODY = "?"
"""Who may have taken a shard that was free, or had been ours, before its Lease was deleted."""
_RETRY = 1.0
_RANK_DELAY = 0.5
_GOODBYE = 3.0
_LIVELY = 0.6
"""The share of a Lease's duration in which a member must have renewed for a shard to be kept free for it: two renewals
were due by then, and the shards of a replica that died expire later."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease holds, in seconds."""

    duration: float = 15.0
    """Without a renewal for this long, a shard may be taken over: the longest gap after a crash, plus a second."""
    renewal: float = 4.0
    """How often a holder renews: three times before it has to stop."""
    margin: float = 3.0
    """How long before the others may begin a holder that could not renew stops acting."""
    call: float = 4.0
    """The longest that one call to the API server may take: a slow answer must not cost the next renewal too."""

    @classmethod
    def lasting(cls, duration: float) -> Terms:
        """The same proportions for another duration."""
        return cls(duration, renewal=duration * 0.26, margin=duration * 0.2, call=duration * 0.26)


@dataclass(slots=True)
class _Seen:
    """A Lease as last seen, and when, by our own clock."""

    holder: str
    version: int
    uid: str
    acquired: str
    transitions: int
    duration: float
    changed: float
    gone: bool = False
    """Somebody deleted it. It binds for its whole duration from when we heard of that: its holder may have renewed it
    right before, unseen by us, and may not have heard of it."""


def shard_of(uid: str, shards: int) -> int:
    """Stable over restarts, replicas and Python versions."""
    return zlib.crc32(uid.encode()) % shards


class Leadership:
    def __init__(
        self,
        cluster: Cluster,
        *,
        identity: str,
        namespace: str,
        shards: int,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        acquired: Callable[[int], None],
        settled: Callable[[int], Awaitable[None]],
        terms: Terms | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`acquired` is called when a shard has become ours. `settled` waits until nothing is under way for one that
        was: before that it is not given to anybody else."""
        self.shards = shards
        self._cluster = cluster
        self._identity = identity
        self._namespace = namespace
        self._now = now
        self._monotonic = monotonic
        self._acquired = acquired
        self._settled = settled
        self._terms = terms or Terms()
        self._jitter = jitter
        self._seen: dict[str, _Seen] = {}
        self._until: dict[int, float] = {}
        self._offered: set[int] = set()
        """Shards that we let go for the sake of another replica, and that nobody has taken yet."""
        self._patient_until = float("-inf")
        """When the next one may be offered, after one that nobody wanted."""
        self._began = monotonic()
        self._changed = asyncio.Event()

    def holds(self, shard: int) -> bool:
        return self._monotonic() < self._until.get(shard, float("-inf"))

    def leads(self, uid: str) -> bool:
        """Whether this replica may act on the object with this UID now."""
        return self.holds(shard_of(uid, self.shards))

    @property
    def held(self) -> list[int]:
        return [shard for shard in range(self.shards) if self.holds(shard)]

    def observe(self, lease: Json, *, deleted: bool = False) -> None:
        """Take note of a Lease of ours, from a watch or from an answer."""
        meta, spec = lease["metadata"], lease.get("spec") or {}
        name, version = meta["name"], int(meta["resourceVersion"])
        if meta["namespace"] != self._namespace or not (_number(name) is not None or name.startswith(_MEMBER)):
            return
        known = self._seen.get(name)
        if known is not None and version <= known.version:
            return
        if deleted:
            self._lose(name, spec.get("holderIdentity") or "")
        else:
            self._seen[name] = _Seen(
                holder=spec.get("holderIdentity") or "",
                version=version,
                uid=meta["uid"],
                acquired=spec.get("acquireTime") or "",
                transitions=spec.get("leaseTransitions") or 0,
                duration=float(spec.get("leaseDurationSeconds") or self._terms.duration),
                changed=self._monotonic(),
            )
            self._note_holder(name, self._seen[name].holder)
        self._changed.set()

    def reconcile(self, uids: Set[str], version: int) -> None:
        """Leases that a complete listing of this version does not show are gone."""
        for name, seen in list(self._seen.items()):
            if seen.uid not in uids and seen.version <= version and not seen.gone:
                self._lose(name)
                self._changed.set()

    def _lose(self, name: str, last: str | None = None) -> None:
        """There is no such Lease any more. `last`: its last holder, if that was told."""
        shard = _number(name)
        held = shard is not None and self.holds(shard)
        self._note_holder(name, "")
        if name.startswith(_MEMBER):
            self._seen.pop(name, None)
        elif (seen := self._seen.get(name)) is not None:
            if not seen.gone:
                seen.gone, seen.changed = True, self._monotonic()
                seen.holder = _SOMEBODY if not held and seen.holder in ("", self._identity) else seen.holder
            seen.holder = seen.holder if last is None else last

    def _note_holder(self, name: str, holder: str) -> None:
        """A shard that somebody else holds, or nobody, is not ours, whoever made it so: a person, perhaps."""
        shard = _number(name)
        if shard is None or holder == self._identity:
            return
        self._until.pop(shard, None)
        if holder:
            self._offered.discard(shard)

    async def run(self) -> None:
        """Campaign for every shard until cancelled, then let go of what is held."""
        try:
            async with asyncio.TaskGroup() as group:
                for shard in range(self.shards):
                    group.create_task(self._campaign(shard), name=f"shard-{shard}")
                if self.shards > 1:
                    group.create_task(self._be_a_member(), name="member")
        finally:
            await asyncio.shield(self._leave())

    async def _campaign(self, shard: int) -> None:
        while True:
            try:
                if not self.holds(shard):
                    await self._seek(shard)
                elif self._too_many(shard):
                    self._offered.add(shard)
                    await self._release(shard)
                else:
                    await self._renew(shard)
            except ClusterError as error:
                log.warning("shard %d: the API server: %s", shard, error)
                await asyncio.sleep(_RETRY * (0.5 + self._jitter()))

    # One shard

    async def _seek(self, shard: int) -> None:
        """Wait until the shard is free, and take it."""
        while (wait := self._free_in(shard)) > 0:
            await self._change(wait)
        name = shard_name(shard)
        await self._refresh(name)
        if self._expires_in(shard) <= 0:
            await self._write(shard)

    async def _renew(self, shard: int) -> None:
        if await self._write(shard) and self.holds(shard):
            await self._change(self._terms.renewal * (0.9 + 0.2 * self._jitter()), shard)

    async def _write(self, shard: int) -> bool:
        """Take or renew by compare-and-set. A conflict is somebody else's success, an edit, or a write of our own whose
        answer got lost: look again, and do not wait with it."""
        name, sent = shard_name(shard), self._monotonic()
        known = self._seen.get(name)
        try:
            written = await self._put(name, known, self._identity)
        except (Conflict, AlreadyExists, NotFound):
            await self._refresh(name)
            return False
        self.observe(written)
        # Asked only now: a renewal that was answered late is a shard taken anew, since its work has been put down.
        was_held = self.holds(shard)
        self._until[shard] = sent + self._terms.duration - self._terms.margin
        if not was_held and self.holds(shard):
            log.info("shard %d is ours", shard)
            if shard in self._offered:  # it was meant for a replica that is gone: do not offer it the others as well
                self._offered.discard(shard)
                self._patient_until = self._monotonic() + self._terms.duration
            self._acquired(shard)
        return True

    async def _release(self, shard: int) -> None:
        """Stop acting first, wait for what is under way, then say so."""
        self._until.pop(shard, None)
        await self._settled(shard)
        try:
            await self._let_go(shard)
        except (Conflict, NotFound, AlreadyExists):  # a renewal that was cancelled has landed all the same, or an edit
            await self._refresh(shard_name(shard))
            await self._let_go(shard)

    async def _let_go(self, shard: int) -> None:
        known = self._seen.get(shard_name(shard))
        if known is not None and known.holder == self._identity and not known.gone:
            self.observe(await self._put(shard_name(shard), known, ""))
            log.info("shard %d is free for others", shard)

    def _expires_in(self, shard: int) -> float:
        """Seconds until the shard may be taken, as far as is known here."""
        seen = self._seen.get(shard_name(shard))
        if seen is None or seen.holder in ("", self._identity):
            return 0.0
        return seen.changed + seen.duration - self._monotonic()

    def _free_in(self, shard: int) -> float:
        """The same, later for a replica that has more already: no stampede, and no need to even out afterwards."""
        seen = self._seen.get(shard_name(shard))
        if seen is not None and seen.holder == self._identity:
            return 0.0
        free = self._began if seen is None else seen.changed + (seen.duration if seen.holder else 0.0)
        counts = self._counts()
        mine = (counts[self._identity], self._identity)
        rank = sum((count, name) < mine for name, count in counts.items())
        return free + rank * _RANK_DELAY - self._monotonic()

    # All shards

    def _counts(self) -> Counter[str]:
        """How many shards each live replica holds, this one included."""
        counts: Counter[str] = Counter({self._identity: 0})
        for name, seen in self._seen.items():
            member = name.startswith(_MEMBER)
            if not member and (_number(name) or 0) >= self.shards:
                continue  # of a time when there were more
            lasting = seen.duration * (_LIVELY if member else 1)
            if seen.holder and seen.changed + lasting > self._monotonic():
                counts[seen.holder] += not member
        return counts

    def _too_many(self, shard: int) -> bool:
        """Whether this is the shard that has to go now for the sake of a replica with two fewer."""
        counts = self._counts()
        if self.shards == 1 or shard != max(self.held, default=-1) or sum(counts.values()) < self.shards:
            return False
        if self._monotonic() < self._patient_until:
            return False
        fullest = max(counts, key=lambda name: (counts[name], name))
        return fullest == self._identity and counts[fullest] >= min(counts.values()) + 2

    async def _be_a_member(self) -> None:
        name = member_name(self._identity)
        while True:
            try:
                if await self._join(name):
                    await self._bury_the_dead()
                    await asyncio.sleep(self._terms.renewal * (0.9 + 0.2 * self._jitter()))
            except ClusterError as error:
                log.warning("member Lease: the API server: %s", error)
                await asyncio.sleep(_RETRY * (0.5 + self._jitter()))

    async def _join(self, name: str) -> bool:
        try:
            self.observe(await self._put(name, self._seen.get(name), self._identity))
        except (Conflict, AlreadyExists, NotFound):
            await self._refresh(name)
            return False
        return True

    async def _bury_the_dead(self) -> None:
        """Remove the member Leases of replicas that crashed long ago; the holder of shard 0 does it."""
        if not self.holds(0):
            return
        long_ago = self._monotonic() - 20 * self._terms.duration
        for name in [n for n, s in self._seen.items() if n.startswith(_MEMBER) and s.changed < long_ago]:
            await self._bury(name)

    async def _bury(self, name: str) -> None:
        try:
            lease = await self._call(self._cluster.get(LEASES, self._namespace, name))
            await self._call(self._cluster.delete(LEASES, self._namespace, name, uid=lease["metadata"]["uid"]))
        except (NotFound, Conflict):
            pass
        self._seen.pop(name, None)

    async def _leave(self) -> None:
        """A rollout hands over in the time of one write. Failing that, the Leases expire."""
        mine = [shard for shard in range(self.shards) if self._is_mine(shard)]
        self._until.clear()
        goodbyes = [self._release(shard) for shard in mine]
        if self.shards > 1:
            goodbyes.append(self._bury(member_name(self._identity)))
        try:
            async with asyncio.timeout(_GOODBYE):
                said: list[object] = [*await asyncio.gather(*goodbyes, return_exceptions=True)]
        except TimeoutError as error:
            said = [error]
        for failure in filter(None, said):
            log.warning("leaving without a goodbye: %r", failure)

    def _is_mine(self, shard: int) -> bool:
        seen = self._seen.get(shard_name(shard))
        return seen is not None and seen.holder == self._identity

    # Calls

    async def _refresh(self, name: str) -> None:
        """See a Lease as it is now."""
        try:
            lease = await self._call(self._cluster.get(LEASES, self._namespace, name))
        except NotFound:
            self._lose(name)
            return
        self.observe(lease)
        if (seen := self._seen.get(name)) is not None and seen.uid == lease["metadata"]["uid"]:
            seen.gone = False  # a late answer may have told of its predecessor's end

    async def _change(self, seconds: float, shard: int | None = None) -> None:
        """Sleep that long, or until a Lease changes in a way that matters to the sleeper."""
        deadline = self._monotonic() + seconds
        while (left := deadline - self._monotonic()) > 0:
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                return
            if shard is None or not self.holds(shard) or self._too_many(shard):
                return

    async def _put(self, name: str, known: _Seen | None, holder: str) -> Json:
        now = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changed_hands = known is not None and holder not in ("", known.holder)
        since = known.acquired if known is not None and known.acquired and not changed_hands else now
        body: Json = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": {"app.kubernetes.io/managed-by": MANAGED_BY},
            },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": math.ceil(self._terms.duration),
                "renewTime": now,
                "acquireTime": since,
                "leaseTransitions": (known.transitions if known else 0) + changed_hands,
            },
        }
        if known is None or known.gone:
            return await self._call(self._cluster.create(LEASES, self._namespace, body))
        # Without the UID, replacing a Lease that was deleted would make it anew, whatever version is named.
        body["metadata"] |= {"resourceVersion": str(known.version), "uid": known.uid}
        return await self._call(self._cluster.replace(LEASES, self._namespace, name, body))

    async def _call(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._terms.call):
                return await call
        except TimeoutError:
            raise Unavailable(f"no answer within {self._terms.call:g} s") from None


def shard_name(shard: int) -> str:
    return f"{_SHARD}{shard}"


def member_name(identity: str) -> str:
    return f"{_MEMBER}{identity}".lower().replace("_", "-")[:253]


def _number(name: str) -> int | None:
    """The shard that a Lease is about; None for a member's, and for what only looks like ours."""
    number = name.removeprefix(_SHARD)
    return int(number) if number != name and number.isdecimal() else None
