"""What the results of a tuning cache say together, as a picture."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tcl.report.cache_analysis import SHARES, device_names
from tcl.tuner.cache.analysis import CacheAnalysis, KeyGroup

_COLOURS = ("#1f6fb2", "#c2571a", "#3a8a3a", "#7a4fa3", "#8a6d3b", "#444444")
_KNOBS = 12
"""That are shown, those that lose most."""
_GROUPS = len(_COLOURS)
"""Defs and devices that are shown in colours of their own."""


def draw(found: CacheAnalysis, title: str, path: Path) -> None:
    """Write a picture (PNG, SVG or PDF, by the suffix): how much a growing pool of options keeps,
    the winners' margins, and what fixing a knob loses, if it does. ``ImportError`` without
    matplotlib."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    groups = sorted(found.groups, key=lambda g: -g.seconds)[:_GROUPS]
    names = device_names(found.groups)
    labels = [f"{g.entry}, {names[g.backend, g.device]}" for g in groups]
    fixed = _fixed_knobs(groups, labels)
    panels = 3 if fixed else 2
    figure, axes = pyplot.subplots(1, panels, figsize=(5 * panels, 5))
    _pools(axes[0], groups, labels)
    _margins(axes[1], groups, labels)
    if fixed:
        _fixed(axes[2], fixed)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=130)
    finally:
        pyplot.close(figure)


def _pools(axes: Any, groups: list[KeyGroup], labels: list[str]) -> None:
    for group, label, colour in zip(groups, labels, _COLOURS, strict=False):
        for style, kept in (("-", group.pool.by_time), (":", group.pool.plain)):
            values = [100 * share for share in kept]
            shown = label if style == "-" else None
            axes.plot(range(len(values)), values, style, color=colour, label=shown, marker=".")
    for share in SHARES:
        axes.axhline(100 * share, color="black", linewidth=0.6)
    axes.set_xlabel("options besides the untuned default")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("% of the winners' speed (dotted: all keys count the same)")
    axes.set_title("A smaller pool of candidates", fontsize=9)
    axes.legend(fontsize=7)


def _margins(axes: Any, groups: list[KeyGroup], labels: list[str]) -> None:
    for place, group in enumerate(groups):
        for offset, margins, colour in (
            (-0.18, group.over_second, _COLOURS[0]),
            (0.18, group.over_default, _COLOURS[1]),
        ):
            if margins is not None:
                row = place + offset
                axes.plot([100 * margins.least, 100 * margins.most], [row, row], color=colour)
                axes.plot(100 * margins.median, row, "o", color=colour)
                axes.plot(100 * margins.mean.by_time, row, "|", color=colour, markersize=12)
    axes.plot([], [], color=_COLOURS[0], label="the second")
    axes.plot([], [], color=_COLOURS[1], label="the untuned default")
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("% longer than the winner: range, median (dot), mean by time (bar)", fontsize=8)
    axes.set_title("Margins", fontsize=9)
    axes.legend(fontsize=7)


def _fixed_knobs(groups: list[KeyGroup], labels: list[str]) -> list[tuple[float, str, str]]:
    """Of the knobs that lose something where they are fixed: how much, their words, the colour.
    None does where one key is all there is: its winner has the value that wins most."""
    every = [
        (fixed.lost.by_time, f"{decision.name} = {fixed.value}  ({label})", colour)
        for group, label, colour in zip(groups, labels, _COLOURS, strict=False)
        for decision in group.decisions(important=False)
        if (fixed := decision.rates[0]).lost.by_time > 0
    ]
    return sorted(every, key=lambda each: -each[0])[:_KNOBS]


def _fixed(axes: Any, shown: list[tuple[float, str, str]]) -> None:
    for place, (lost, _, colour) in enumerate(shown):
        axes.barh(place, 100 * lost, color=colour, height=0.7)
    axes.set_yticks(range(len(shown)), [words for _, words, _ in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("% of the winners' speed that is lost, by time")
    axes.set_title("Knobs fixed at the value that wins most", fontsize=9)
