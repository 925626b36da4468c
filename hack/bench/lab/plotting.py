"""The plots. matplotlib is needed for nothing else, so it is a dependency of benchmarks only, and they run without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hack.bench.lab.figures import Spread
from hack.cluster.folder import CHECKOUT


def _pyplot() -> ModuleType | None:
    try:
        import_module("matplotlib").use("Agg")
    except ImportError:
        return None
    return import_module("matplotlib.pyplot")


def _path(part: str) -> Path:
    return CHECKOUT / "build" / f"bench-{part}.png"


def lateness(part: str, panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], unit: str) -> Path | None:
    """For each panel and contestant the share of Jobs that were there after so long, and thin that of each repeat."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(1, len(panels), figsize=(6 * len(panels), 4.5), squeeze=False)
    for axis, (title, contestants) in zip(axes[0], panels.items(), strict=True):
        for name, repeats in contestants.items():
            [pooled] = axis.step(*_shares([late for repeat in repeats for late in repeat]), label=name, where="post")
            for repeat in repeats if len(repeats) > 1 else ():
                axis.step(*_shares(repeat), color=pooled.get_color(), where="post", linewidth=0.5, alpha=0.6)
        axis.set(title=title, xscale="log", xlabel=f"{unit} after the slot", ylabel="share of Jobs")
        axis.grid(True, which="both", alpha=0.3)
        axis.legend()
    return _saved(pyplot, figure, part)


def _shares(values: Sequence[float]) -> tuple[list[float], list[float]]:
    ordered = sorted(max(value, 0.001) for value in values)
    return ordered, [(rank + 1) / len(ordered) for rank in range(len(ordered))]


def curves(part: str, panels: Mapping[str, Mapping[float, Spread]], xlabel: str) -> Path | None:
    """For each panel one curve over sizes, with bars from the lowest to the highest."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4 * len(panels), 4), squeeze=False)
    for axis, (title, points) in zip(axes[0], panels.items(), strict=True):
        medians = [spread.median for spread in points.values()]
        below = [spread.median - spread.low for spread in points.values()]
        above = [spread.high - spread.median for spread in points.values()]
        axis.errorbar(list(points), medians, yerr=[below, above], marker="o", capsize=4)
        axis.set(title=title, xlabel=xlabel, ylim=(0, None))
        axis.grid(True, alpha=0.3)
    return _saved(pyplot, figure, part)


def stacks(part: str, stacks: Mapping[str, Mapping[str, float]], ylabel: str) -> Path | None:
    """For each contestant one bar, made of kinds."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axis = pyplot.subplots(figsize=(9, 5))
    foot = dict.fromkeys(stacks, 0.0)
    for kind in sorted({kind for kinds in stacks.values() for kind in kinds}):
        heights = [kinds.get(kind, 0.0) for kinds in stacks.values()]
        axis.bar(list(stacks), heights, bottom=list(foot.values()), label=kind, width=0.5)
        foot = {name: foot[name] + height for name, height in zip(stacks, heights, strict=True)}
    axis.set(ylabel=ylabel)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return _saved(pyplot, figure, part)


def _saved(pyplot: ModuleType, figure: Any, part: str) -> Path:
    path = _path(part)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
