"""What comes out: lines while it runs, tables at the end, and the same in `build/bench.json` for whoever compares."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.bench.lab.figures import Spread
from hack.cluster import parts
from hack.cluster.folder import CHECKOUT
from rich.console import Console
from rich.table import Table

RESULTS = CHECKOUT / "build" / "bench.json"
_WIDTH = 140


@dataclass(frozen=True)
class Target:
    """A figure that was promised, and the one that was measured."""

    what: str
    value: float
    limit: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit


class Report:
    """Of one part."""

    def __init__(self, part: str, arguments: Sequence[str]) -> None:
        out = Console()
        self.console = out if out.is_terminal else Console(width=_WIDTH, soft_wrap=True)
        self.part = part
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
        table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)

    def targets(self, targets: Sequence[Target]) -> None:
        if targets:
            rows = [
                (t.what, f"{t.value:.3g}", f"{'≤' if t.at_most else '≥'} {t.limit:g}", "met" if t.met else "MISSED")
                for t in targets
            ]
            self.table("Targets", ("", "measured", "target", ""), rows)

    def save(self, result: dict[str, Any], targets: Sequence[Target], plot: Path | None) -> None:
        """Into the JSON, beside the results of other parts."""
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept[self.part] = {
            "command": self._command,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
            "kubernetes": parts.kubernetes_version(),
            "targets": [{**dataclasses.asdict(target), "met": target.met} for target in targets],
            **result,
        }
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(kept, indent=2, default=_plain) + "\n")
        drawn = f", plot: {plot}" if plot else "; no plot: matplotlib is missing, `make bench` installs it"
        self.console.print(f"Figures: {RESULTS}{drawn}", markup=False, highlight=False)


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


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{value!r} does not belong into the results")
