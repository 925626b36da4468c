"""What was measured, kept in `build/bench.json` from one run to the next, for whoever compares.

`results` are by part, and in it by run: its size and, where contestants race, who took part. The same run made again
takes the place of the old one as a whole, because figures stand side by side only if they were taken side by side;
every other run stays. `targets` are by their wording: one that is measured again loses its old figure. Each says when
and by which command it was taken.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hack.bench.lab.figures import Spread
from hack.cluster.folder import CHECKOUT

Json = dict[str, Any]

RESULTS = CHECKOUT / "build" / "bench.json"


@dataclass(frozen=True)
class Target:
    """A figure that was promised, and what was measured, of which the median counts."""

    what: str
    measured: Spread
    limit: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        median = self.measured.median
        return median <= self.limit if self.at_most else median >= self.limit


def kept() -> Json:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(everything: Json) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(everything, indent=2, default=_plain) + "\n")


def merged(before: Json, part: str, runs: Mapping[str, Json], targets: Iterable[Target], taken: Json) -> Json:
    """`taken` is told with each of the runs and targets: when, and by which command."""
    results, known = before.get("results", {}), before.get("targets", {})
    new = {target.what: {"part": part, **dataclasses.asdict(target), "met": target.met, **taken} for target in targets}
    return {
        "results": {**results, part: {**results.get(part, {}), **{run: {**taken, **runs[run]} for run in runs}}},
        "targets": {**known, **new},
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{value!r} does not belong into the results")
