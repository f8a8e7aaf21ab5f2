"""What the results of a tuning cache say together: tables for a terminal and as Markdown, and a
picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tcl.common.number_format import duration
from tcl.tuner.cache.analysis import (
    CacheAnalysis,
    KeyGroup,
    Margins,
    Mean,
    OptionDecision,
    Pool,
    Rate,
)

SHARES = (0.95, 0.99)
"""Of the winners' speed, that a smaller choice is to keep."""

FORMULA = (
    "Every mean over keys is shown twice, plain / by time. Plain: all keys have the same "
    "weight. By time: the weight of a key is the time of a call of its winner, sum(t x) / "
    "sum(t). The loss of a candidate is 1 - min(1, t of the winner / t of the candidate). The "
    "loss of a set of candidates is the loss of its best one."
)
BOUND = (
    "Candidates that a search did not measure count as lost, so losses are upper bounds: a "
    "search with fewer choices would examine the remaining ones more closely."
)


class ReportSection(NamedTuple):
    """A table with a title and what has to be known to read it."""

    title: str
    note: str
    headings: tuple[str, ...]
    """Those of numbers begin with ``>``."""
    rows: Sequence[tuple[str, ...]]


def sections(
    found: CacheAnalysis, *, values: bool = False, important: bool = False
) -> list[ReportSection]:
    """All that there is to show. ``values``: also a row for each value of a decision;
    ``important``: also which decisions mattered, which takes some seconds a group."""
    names = device_names(found.groups)
    every = {(g.entry, names[g.backend, g.device]): g for g in found.groups}
    knobs = {whose: group.decisions(important=important) for whose, group in every.items()}
    if len(every) > 1:
        every["all", "all"] = found.together
    devices = [(name, device) for (_, device), name in names.items()]
    made = [
        ReportSection("Devices", "", ("name", "device"), devices),
        *_of_groups(every),
        *_of_knobs(knobs, values=values, important=important),
    ]
    return [section for section in made if section.rows]


_WHOSE = ("def", "device")
_RATES = (">tried on", ">wins", ">win rate", ">lost")
_ENOUGH = tuple(f">for {100 * share:.0f} %" for share in SHARES)


def _of_groups(every: Mapping[tuple[str, str], KeyGroup]) -> list[ReportSection]:
    return [
        ReportSection(
            "Margins",
            "How much longer than the winner's a call of the second and of the untuned default "
            "takes, and the share of keys where the default won. Only times of the same kind "
            "are compared: from the finals, else first readings. A negative value means that a "
            "first reading was faster than the winner of the finals. Time: the sum of one call "
            "of each key's winner.",
            (
                *(*_WHOSE, ">keys", ">candidates", ">time"),
                *(">second: median", ">mean", ">default: median", ">mean", ">default wins"),
            ),
            [
                (
                    *(*who, str(len(g.keys)), str(len(g.options)), duration(g.seconds)),
                    *(*_margin(g.over_second), *_margin(g.over_default), _mean(g.default_wins)),
                )
                for who, g in every.items()
            ],
        ),
        ReportSection(
            "Presets",
            "A + after a preset means the preset with further options, from a search or a "
            "user. Lost: the loss if only candidates with this preset are available, over the "
            "keys where it was tried.",
            (*_WHOSE, "preset", *_RATES),
            [(*who, *_rate(rate)) for who, g in every.items() for rate in g.presets],
        ),
        ReportSection(
            "A smaller pool of candidates",
            "The number of options, besides the untuned default, that keep 95 and 99 % of the "
            "winners' speed over all keys, chosen greedily, plain / by time; and the loss with "
            "the default only. If none of a pool was measured for a key, the key has its "
            f"default (or its slowest candidate, if the default was not measured). {BOUND}",
            (*_WHOSE, ">keys", ">options", ">default alone loses", *_ENOUGH),
            [
                (
                    *(*who, str(len(g.keys)), str(len({*g.options}))),
                    *(_mean(Mean(*(1 - kept[0] for kept in g.pool))), *_enough(g.pool)),
                )
                for who, g in every.items()
            ],
        ),
    ]


def _of_knobs(
    knobs: Mapping[tuple[str, str], Sequence[OptionDecision]], *, values: bool, important: bool
) -> list[ReportSection]:
    each = [(who, knob) for who, own in knobs.items() for knob in own]
    made = [
        ReportSection(
            "Knobs",
            "The loss if a knob is fixed at the value that wins most often, over the keys "
            "where that value was tried; and the number of its values, chosen greedily, that "
            f"keep 95 and 99 %. If a value is open, the preset chooses it. {BOUND}"
            + (
                " Importance: the loss of a random forest without the knob; see the report of "
                "a search."
            )
            * important,
            (
                *(*_WHOSE, "knob", ">values", "wins most", ">tried on", ">wins", ">fixed loses"),
                *(*_ENOUGH, *([">importance"] * important)),
            ),
            [(*who, *_decision(knob, important=important)) for who, knob in each],
        ),
    ]
    if values:
        rows = [(*who, knob.name, *_rate(rate)) for who, knob in each for rate in knob.rates]
        note = "The same as for presets, for each value of each knob."
        made.append(ReportSection("Values", note, (*_WHOSE, "knob", "value", *_RATES), rows))
    return made


def device_names(groups: Iterable[KeyGroup]) -> dict[tuple[str, str], str]:
    """A short name for each device, by backend and identity."""
    names: dict[tuple[str, str], str] = {}
    for group in groups:
        count = sum(backend == group.backend for backend, _ in names)
        names.setdefault((group.backend, group.device), f"{group.backend} {count + 1}")
    return names


def _rate(rate: Rate) -> tuple[str, ...]:
    counts = (str(rate.value), str(rate.tried), str(rate.wins))
    return *counts, _mean(rate.rate), _mean(rate.lost)


def _enough(pool: Pool) -> tuple[str, ...]:
    pairs = (pool.enough(share) for share in SHARES)
    return tuple(" / ".join("-" if n is None else str(n) for n in pair) for pair in pairs)


def _decision(knob: OptionDecision, *, important: bool) -> tuple[str, ...]:
    value, tried, _, rate, lost = knob.rates[0]
    share = "-" if knob.importance is None else _percent(knob.importance)
    return (
        *(knob.name, str(len(knob.rates)), str(value), str(tried), _mean(rate), _mean(lost)),
        *(*_enough(knob.pool), *([share] * important)),
    )


def _margin(margins: Margins | None) -> tuple[str, str]:
    return ("-", "-") if margins is None else (_percent(margins.median), _mean(margins.mean))


def _mean(mean: Mean) -> str:
    """Plain / by time, in percent."""
    return f"{_percent(mean.plain).removesuffix(' %')} / {_percent(mean.by_time)}"


def _percent(share: float) -> str:
    """A share in percent, such as 12.5 %, and nothing below 0 that is only rounded to 0."""
    return f"{round(100 * share, 1) + 0.0:,.1f} %"


def markdown(shown: Iterable[ReportSection], title: str, facts: Iterable[str]) -> str:
    lines = [f"# {_escaped(title)}", "", *(f"- {_escaped(fact)}" for fact in facts), "", FORMULA]
    for section in shown:
        lines += ["", f"## {section.title}", ""]
        if section.note:
            lines += [section.note, ""]
        heading, *rows = (
            "| " + " | ".join(map(_escaped, row)) + " |"
            for row in ([h.removeprefix(">") for h in section.headings], *section.rows)
        )
        rule = ("---:" if name.startswith(">") else "---" for name in section.headings)
        lines += [heading, f"|{'|'.join(rule)}|", *rows]
    return "\n".join((*lines, ""))


def _escaped(text: str) -> str:
    """A text of a file that others may have made, which is not to be read as Markdown or HTML."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    for sign in "\\`*_[]<>|":
        plain = plain.replace(sign, f"\\{sign}")
    return plain


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
    axes.set_xlabel("loss in % of the winners' speed, by time")
    axes.set_title("Knobs fixed at the value that wins most", fontsize=9)
