"""What comes out: lines while it runs, tables at the end, and the same for `build/bench.json`."""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hack.bench.lab import results
from hack.bench.lab.figures import Spread
from hack.bench.lab.results import RESULTS, Json, Target
from hack.cluster import parts
from rich.console import Console
from rich.table import Table

_WIDTH = 190


class Report:
    """Of one part."""

    def __init__(self, part: str, arguments: Sequence[str], repeats: int) -> None:
        self.console = _console()
        self.part = part
        self._repeats = repeats
        self._command = shlex.join(["python", "hack/bench", part, *arguments])
        self._said = ""

    def say(self, line: str) -> None:
        """A sign of life: once for each new line, without the counts that change in it where nobody watches."""
        if self.console.is_terminal:
            self.console.file.write(f"\r\x1b[2K  {line[: self.console.width - 3]}")
            self.console.file.flush()
            return
        wording = "".join(letter for letter in line if not letter.isdigit())
        if wording != self._said:
            self._said = wording
            self.console.print(f"  {line}", markup=False, highlight=False)

    def table(self, title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
        if self.console.is_terminal:
            self.console.file.write("\r\x1b[2K")
        self.console.print(_table(title, columns, rows))

    def save(self, runs: Mapping[str, Json], targets: Sequence[Target], plot: Path | None) -> None:
        """Tell which targets were met, and keep everything beside what other runs have measured."""
        taken = {
            "command": self._command,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "repeats": self._repeats,
            "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
            "kubernetes": parts.kubernetes_version(),
        }
        everything = results.merged(results.kept(), self.part, runs, targets, taken)
        results.keep(everything)
        if targets:
            self.console.print(targets_table({target.what: everything["targets"][target.what] for target in targets}))
        drawn = f", plot: {plot}" if plot else "; no plot: matplotlib is missing, `make bench` installs it"
        self.console.print(f"Figures: {RESULTS}{drawn}", markup=False, highlight=False)


def targets_table(targets: Mapping[str, Json]) -> Table:
    return _table("Targets", ("", "measured", "target", "", "repeats", "taken"), target_rows(targets))


def target_rows(targets: Mapping[str, Json]) -> list[tuple[str, ...]]:
    """One for each target that is kept, those of a part together."""
    return [
        (
            what,
            shown(Spread(**found["measured"])),
            f"{'≤' if found['at_most'] else '≥'} {found['limit']:g}",
            "met" if found["met"] else "MISSED",
            str(found["repeats"]),
            found["at"],
        )
        for what, found in sorted(targets.items(), key=lambda item: str(item[1]["part"]))
    ]


def tell_targets() -> bool:
    """Print all that were ever measured, in whichever run; False when there are none."""
    targets = results.kept().get("targets", {})
    if targets:
        _console().print(targets_table(targets))
    return bool(targets)


def _console() -> Console:
    out = Console()
    return out if out.is_terminal else Console(width=_WIDTH, soft_wrap=True)


def _table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def shown(spread: Spread, digits: int = 3) -> str:
    """`1.25 (1.2-1.31)`: the median, and what it lay between unless it was taken once."""
    median, low, high = (_rounded(value, digits) for value in (spread.median, spread.low, spread.high))
    return median if low == high else f"{median} ({low}-{high})"


def _rounded(value: float, digits: int) -> str:
    """So many significant digits, and never an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{float(f'{value:.{digits}g}'):f}".rstrip("0").rstrip(".")
