"""The report: one JSON file with everything in it, and a page for a person."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hack.chaos import faults
from hack.chaos.audit import Entry
from hack.chaos.counting import Creation, Tally, reasons
from hack.chaos.takeovers import Gap

Json = dict[str, Any]

_AROUND = 40.0  # seconds of the audit log before and after what went wrong
_CASES = 10


@dataclass(frozen=True)
class Outcome:
    """All that is known in the end."""

    options: Json
    tallies: Mapping[str, Tally]
    created: Sequence[Creation]
    entries: Sequence[Entry]
    unlogged: int
    """Jobs that only the recorder saw: the API server was killed before it had logged them."""
    faults: Counter[str]
    deleted: Counter[str]
    gaps: Sequence[Gap]
    lease: float
    unsettled: Sequence[str]
    deaths: Mapping[str, Sequence[str]]

    @property
    def doubles(self) -> int:
        return sum(len(t.doubles) for t in self.tallies.values())

    @property
    def holes(self) -> int:
        return sum(double.hole for t in self.tallies.values() for double in t.doubles)

    @property
    def lost(self) -> int:
        return sum(t.lost for t in self.tallies.values())

    @property
    def lost_by_holes(self) -> int:
        return sum(t.lost_by_hole for t in self.tallies.values())

    @property
    def passed(self) -> bool:
        wrong = sum(t.twice_accounted + len(t.undue) for t in self.tallies.values())
        unexplained = self.doubles - self.holes + self.lost - self.lost_by_holes
        return not (unexplained or wrong or self.unsettled or self.deaths)


def as_json(outcome: Outcome) -> Json:
    tallies = outcome.tallies.values()
    return {
        "options": outcome.options,
        "passed": outcome.passed,
        "slots": {
            "due": sum(len(t.due) for t in tallies),
            "run": sum(len(t.run & t.due) for t in tallies),
            "skipped": sum(sum(t.skips.values()) for t in tallies),
            "skips": dict(reasons(outcome.tallies)),
            "doubled": outcome.doubles,
            "doubledByTheKnownHole": outcome.holes,
            "lost": outcome.lost,
            "lostByTheKnownHole": outcome.lost_by_holes,
            "runAndSkipped": sum(t.twice_accounted for t in tallies),
            "undue": sum(len(t.undue) for t in tallies),
        },
        "jobs": {
            "created": len(outcome.created),
            "unlogged": outcome.unlogged,
            "byReplica": dict(Counter(c.actor for c in outcome.created)),
        },
        "faults": dict(outcome.faults),
        "deleted": dict(outcome.deleted),
        "takeovers": {
            kind: {
                "count": len(of_kind := [g for g in outcome.gaps if g.kind == kind]),
                "longest": _longest(of_kind),
                "undisturbed": len(alone := [g for g in of_kind if g.undisturbed]),
                "longestUndisturbed": _longest(alone),
                "longestIdle": round(max((g.idle for g in alone if g.idle is not None), default=0.0), 2),
                "limit": limit,
            }
            for kind, limit in limits(outcome.lease).items()
        },
        "unsettled": list(outcome.unsettled),
        "deaths": {name: list(words) for name, words in outcome.deaths.items()},
        "cases": cases(outcome),
        "gaps": [gap.as_json() for gap in outcome.gaps],
    }


def limits(lease: float) -> dict[str, float]:
    """How long a shard may be without a holder, when nothing else is wrong."""
    return {faults.KILL: lease + 2, faults.TERMINATE: 2.0, faults.PAUSE: lease + 2}


def _longest(gaps: Sequence[Gap]) -> float | None:
    return round(max(gap.seconds for gap in gaps), 2) if gaps else None


def cases(outcome: Outcome) -> list[Json]:
    """What went wrong, each with what the audit log has to say around it."""
    found: list[Json] = []
    for name, account in outcome.tallies.items():
        for double in account.doubles:
            moments = [c.at for c in double.creations]
            found.append(
                {
                    "schedule": name,
                    "what": "doubled",
                    "knownHole": double.hole,
                    "creations": [asdict(c) for c in double.creations],
                    "log": _log(outcome.entries, name, min(moments) - _AROUND, max(moments) + _AROUND),
                }
            )
        if account.lost or account.twice_accounted or account.undue:
            missing = sorted(account.due - account.run) or sorted(account.undue) or [0]
            found.append(
                {
                    "schedule": name,
                    "what": "lost" if account.lost else "run and skipped" if account.twice_accounted else "undue",
                    "missing": missing,
                    "skips": account.skips,
                    "knownHole": account.lost_by_hole == account.lost,
                    "log": _log(outcome.entries, name, missing[0] - _AROUND, missing[-1] + _AROUND),
                }
            )
    return found[:_CASES]


def _log(entries: Sequence[Entry], schedule: str, since: float, until: float) -> list[str]:
    return [e.said() for e in entries if since <= e.at <= until and _is_about(e, schedule)]


def _is_about(entry: Entry, schedule: str) -> bool:
    return entry.name == schedule or entry.name.startswith(f"{schedule}-")


def as_text(outcome: Outcome) -> str:
    told = as_json(outcome)
    slots, jobs = told["slots"], told["jobs"]
    rows = [
        ("slots due", slots["due"], ""),
        ("run", slots["run"], f"{jobs['created']} Jobs; by replica: {_said(jobs['byReplica'])}"),
        ("skipped", slots["skipped"], _said(slots["skips"])),
        ("doubled", slots["doubled"], f"of them by the known hole: {slots['doubledByTheKnownHole']}"),
        ("lost", slots["lost"], f"of them by the known hole: {slots['lostByTheKnownHole']}"),
        ("run and skipped", slots["runAndSkipped"], ""),
        ("never due", slots["undue"], ""),
        ("schedules not settled", len(told["unsettled"]), ", ".join(told["unsettled"][:5])),
        ("replicas that died", sum(map(len, told["deaths"].values())), "by themselves"),
        ("faults", sum(told["faults"].values()), _said(told["faults"])),
        ("deleted by a person", sum(told["deleted"].values()), _said(told["deleted"])),
    ]
    lines = [f"{name:24} {count:>7}  {note}".rstrip() for name, count, note in rows]
    for kind, gap in told["takeovers"].items():
        lines.append(f"take-over after {kind}: {_takeover(gap)}")
    for case in told["cases"]:
        lines.append(f"{case['what'].upper()}: {case['schedule']}, as the audit log has it:")
        lines += [f"    {line}" for line in case["log"][:60]]
    return "\n".join(lines)


def _takeover(gap: Json) -> str:
    if not gap["count"]:
        return "none seen"
    alone = "none undisturbed"
    if gap["undisturbed"]:
        verdict = "within" if gap["longestUndisturbed"] <= gap["limit"] else "OVER"
        alone = (
            f"{gap['undisturbed']} undisturbed, the longest {gap['longestUndisturbed']} s "
            f"({verdict} {gap['limit']} s), and at work at most {gap['longestIdle']} s later"
        )
    return f"{gap['count']} shards, the longest {gap['longest']} s; {alone}"


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
