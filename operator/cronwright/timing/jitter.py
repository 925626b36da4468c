"""Jitter: how long after its slot a run is due.

A hash of the schedule's uid and the slot, and not a random number, so that every replica, every restart and
every simulation comes to the same instant. The slot keeps its nominal identity; only the moment of starting
moves.
"""

from __future__ import annotations

from hashlib import blake2b


def jitter(uid: str, slot: int, most: int) -> int:
    """Return seconds in [0, most], the same for the same uid and slot."""
    if most <= 0:
        return 0
    digest = blake2b(f"{uid}/{slot}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (most + 1)
