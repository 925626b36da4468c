"""Which faults happen when: a list drawn from the seed before anything starts.

The kinds are dealt like a deck of cards, shuffled anew when it is used up: every kind comes up, also in a short attack,
and faults overlap as they fall. A replica has one fault at a time, and so has the control plane; a card that cannot
be played yet waits for its turn. An attack of two minutes or more begins with a prelude: replicas are killed and sent
away one after the other while all else is well, to see how long a take-over takes.
"""

import random
from dataclasses import dataclass

KILL, PAUSE, TERMINATE = "SIGKILL a replica", "SIGSTOP a replica past its lease", "SIGTERM a replica"
API_RESTART, API_KILL = "restart the API server", "SIGKILL the API server"
ETCD_RESTART, ETCD_KILL = "restart etcd", "SIGKILL etcd"
JOBS, CLAIMS, SHARDS = "delete Jobs", "delete claim Leases", "delete shard Leases"

OF_REPLICAS = (KILL, PAUSE, TERMINATE)
OF_PARTS = {API_RESTART: "apiserver", API_KILL: "apiserver", ETCD_RESTART: "etcd", ETCD_KILL: "etcd"}
BY_PEOPLE = (JOBS, CLAIMS, SHARDS)
_DECK = (KILL, KILL, PAUSE, PAUSE, TERMINATE, *OF_PARTS, JOBS, JOBS, JOBS, CLAIMS, CLAIMS, SHARDS)

_RECOVERY = 15.0
"""Seconds that the control plane is left alone after a fault: an API server that is never there runs nothing, and
so nothing twice."""


_LONG_ENOUGH = 120.0
"""Seconds of an attack that has room for the prelude."""
_READY = 7.0
"""Seconds that a replica may take until it is synced again, and has its share of the shards."""


@dataclass(frozen=True)
class Fault:
    at: float
    """Seconds after the attack began."""
    kind: str
    target: str
    """A replica, a part of the control plane, or `people`."""
    lasting: float
    """How long the replica is away or asleep, or the part is down."""
    draw: int
    """Decides what a person picks among what is there by then."""


def draw_faults(replicas: list[str], seconds: float, lease: float, rng: random.Random) -> list[Fault]:
    faults: list[Fault] = _prelude(replicas, lease) if seconds >= _LONG_ENOUGH and len(replicas) > 1 else []
    deck: list[str] = []
    busy_until: dict[str, float] = {}
    now = faults[-1].at + _READY if faults else 2.0
    while True:
        deck = deck or rng.sample(_DECK, len(_DECK))
        targets = [(index, _target(kind, replicas, rng)) for index, kind in enumerate(deck)]
        free = [(index, t) for index, t in targets if busy_until.get(_place(deck[index], t), 0.0) <= now]
        if not free:
            now += 1.0
            continue
        index, target = free[0]
        kind = deck.pop(index)
        lasting = _lasting(kind, lease, rng)
        if now + lasting > seconds:
            return faults
        faults.append(Fault(round(now, 2), kind, target, round(lasting, 2), rng.randrange(2**31)))
        rest = _RECOVERY if kind in OF_PARTS else 1.0
        busy_until[_place(kind, target)] = now + lasting + rest
        now += rng.uniform(0.3, 3.0)


def _prelude(replicas: list[str], lease: float) -> list[Fault]:
    """Each fault once the replica that the one before it hit is back."""
    faults: list[Fault] = []
    now = 6.0
    for number, kind in enumerate((KILL, TERMINATE, KILL, TERMINATE)):
        lasting = lease + 3.0 if kind == KILL else 3.0
        faults.append(Fault(now, kind, replicas[number % len(replicas)], lasting, 0))
        now += lasting + _READY
    return faults


def _target(kind: str, replicas: list[str], rng: random.Random) -> str:
    if kind in OF_REPLICAS:
        return rng.choice(replicas)
    return OF_PARTS.get(kind, "people")


def _place(kind: str, target: str) -> str:
    return "control plane" if kind in OF_PARTS else target


def _lasting(kind: str, lease: float, rng: random.Random) -> float:
    if kind == KILL:
        # A container is restarted at once and keeps its name; a node that died is noticed later.
        return rng.uniform(0.2, 1.0) if rng.random() < 0.3 else lease + rng.uniform(3.0, 6.0)
    if kind == PAUSE:
        return lease * rng.uniform(1.2, 2.5)
    if kind == TERMINATE:
        return rng.uniform(3.0, 6.0)
    if kind in (API_KILL, ETCD_KILL):
        return rng.uniform(0.5, 6.0)
    return 0.0
