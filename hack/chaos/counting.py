"""The count: what was due, what ran, what was skipped and why, and whether it adds up. Data in, data out.

Jobs come from the audit log and from the recorder, and are told apart by their UID: two UIDs for the same slot and
attempt of a schedule are a slot that ran twice, even if neither Job ever existed beside the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hack.chaos.audit import Entry, Json

CLAIM = "-claim-"
MOMENT = 5.0
"""Seconds within which a status ought to tell of a new Job. One that was deleted later than that, with a replica at
work by then, and is made again is no accident of a moment: status was behind."""


@dataclass(frozen=True, order=True)
class Creation:
    """A Job that came to be."""

    at: float
    schedule: str
    slot: int
    attempt: int
    name: str
    uid: str
    actor: str = "unknown"


@dataclass(frozen=True)
class Double:
    """A slot with more than one Job."""

    creations: tuple[Creation, ...]
    hole: bool
    """Explained by what docs/adr/0004-ledger.md says is not survived: a person deleted the first Job in its first
    moments, before any status had told of it."""


@dataclass
class Tally:
    """One schedule's accounts."""

    due: set[int]
    run: set[int]
    skips: dict[str, int]
    doubles: list[Double] = field(default_factory=list)
    forgotten: int = 0
    """How many slots a ledger had accounted for when a person deleted it and nobody who knew it was left to write it
    again. docs/adr/0004-ledger.md says what is lost then."""

    @property
    def lost(self) -> int:
        """Slots that neither ran nor were skipped for a reason."""
        return max(0, len(self.due - self.run) - sum(self.skips.values()))

    @property
    def lost_by_hole(self) -> int:
        """Those of them that a deleted ledger explains."""
        return min(self.lost, self.forgotten)

    @property
    def twice_accounted(self) -> int:
        """Slots that ran although they were skipped too."""
        return max(0, sum(self.skips.values()) - len(self.due - self.run))

    @property
    def undue(self) -> set[int]:
        """Slots that ran and never were the schedule's."""
        return self.run - self.due


def creations(entries: Iterable[Entry], seen: Mapping[str, Creation]) -> list[Creation]:
    """All Jobs ever created: those the audit log knows, and those that only the recorder saw."""
    found = dict(seen)
    for entry in entries:
        if (entry.verb, entry.resource) != ("create", "jobs") or not entry.done:
            continue
        meta = entry.request["metadata"]
        notes = meta.get("annotations") or {}
        if "cronwright.dev/slot" in notes:
            found[entry.uid] = Creation(
                at=entry.at,
                schedule=meta["ownerReferences"][0]["name"],
                slot=int(notes["cronwright.dev/slot"]),
                attempt=int(notes["cronwright.dev/attempt"]),
                name=meta["name"],
                uid=entry.uid,
                actor=entry.actor,
            )
    return sorted(found.values())


def tally(
    due: Mapping[str, Sequence[int]],
    created: Iterable[Creation],
    skips: Mapping[str, Mapping[str, int]],
    entries: Sequence[Entry],
    replicas: Iterable[str],
) -> dict[str, Tally]:
    """The accounts of every schedule, by name."""
    by_run: defaultdict[tuple[str, int, int], list[Creation]] = defaultdict(list)
    tallies = {name: Tally(set(slots), set(), dict(skips.get(name) or {})) for name, slots in due.items()}
    for creation in created:
        by_run[creation.schedule, creation.slot, creation.attempt].append(creation)
        tallies[creation.schedule].run.add(creation.slot)
    actors = set(replicas)
    for name, forgotten in _forgotten(entries, actors, due).items():
        tallies[name].forgotten = forgotten
    for (schedule, _, _), same in by_run.items():
        if len(same) > 1:
            tallies[schedule].doubles.append(Double(tuple(same), _is_hole(same, entries, actors)))
    return tallies


def _is_hole(same: Sequence[Creation], entries: Sequence[Entry], replicas: set[str]) -> bool:
    """Whether each Job but the last was deleted by a person in its first moments, or while no replica said a word any
    more, and before any status had told of it."""
    for creation, following in pairwise(same):
        between = [e for e in entries if creation.at <= e.at <= following.at and e.done]
        deleted = [
            e.at
            for e in between
            if (e.verb, e.resource, e.name) == ("delete", "jobs", creation.name) and e.actor not in replicas
        ]
        told = [e.at for e in between if _tells_of(e, creation.name)]
        if not deleted or (told and min(told) < min(deleted)):
            return False
        if any(e.actor in replicas and creation.at + MOMENT < e.at < min(deleted) for e in between):
            return False
    return True


def _tells_of(entry: Entry, job: str) -> bool:
    records = (entry.request.get("status") or {}).get("recentRuns") or ()
    return entry.resource == "taskschedules/status" and any(record["name"] == job for record in records)


def _forgotten(entries: Iterable[Entry], replicas: set[str], due: Mapping[str, Sequence[int]]) -> Counter[str]:
    """By schedule: how many slots were accounted for in ledgers that a person deleted, and not when they came back."""
    known: dict[str, Json] = {}
    deleted: dict[str, Json] = {}
    forgotten: Counter[str] = Counter()
    for entry in entries:
        if entry.resource != "leases" or CLAIM not in entry.name or not entry.done:
            continue
        if entry.verb == "delete" and entry.actor not in replicas:
            deleted[entry.name] = known.pop(entry.name, {})
        elif (ledger := entry.ledger) is not None:
            schedule = entry.name.rpartition(CLAIM)[0]
            if before := deleted.pop(entry.name, None):
                since = [t for t in due[schedule] if before["watermark"] < t <= ledger["watermark"]]
                forgotten[schedule] += max(0, _accounted(before) + len(since) - _accounted(ledger))
            known[entry.name] = ledger
    return forgotten


def _accounted(ledger: Json) -> int:
    return int(ledger.get("runs", 0) + sum(ledger.get("skips", {}).values()))


def reasons(tallies: Mapping[str, Tally]) -> Counter[str]:
    """How many slots were skipped for each reason."""
    total: Counter[str] = Counter()
    for account in tallies.values():
        total.update(account.skips)
    return total
