"""What the results of a tuning cache say together, as tables: for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcl.common.number_format import duration
from tcl.tuner.cache.analysis import Analysis, Decision, Group, Margins, Mean, Pool, Rate

SHARES = (0.95, 0.99)
"""Of the winners' speed, that a smaller choice is to keep."""

FORMULA = (
    "Every mean over keys is given twice, plain / by time: all keys count the same, or each is "
    "weighted with the seconds that a call of its winner takes, sum(t x) / sum(t). A candidate "
    "loses 1 - min(1, t of the winner / t of the candidate); a set of them what its best one loses."
)
BOUND = (
    "What a search did not measure counts as lost, so that losses are upper bounds: a search with "
    "less choice looks more closely at what is left."
)


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title and what has to be known to read it."""

    title: str
    note: str
    headings: tuple[str, ...]
    """Those of numbers begin with ``>``."""
    rows: tuple[tuple[str, ...], ...]


def sections(found: Analysis, *, values: bool) -> list[Section]:
    """All that there is to show. ``values``: also a row for each value of a decision."""
    names = device_names(found.groups)
    every = (*found.groups, *((found.together,) if len(found.groups) > 1 else ()))
    made = [
        Section(
            "Devices",
            "",
            ("name", "device"),
            tuple((name, device) for (_, device), name in names.items()),
        ),
        _margins(every, names),
        _presets(every, names),
        _pools(every, names),
        _decisions(found.groups, names),
    ]
    if values:
        made.append(_values(found.groups, names))
    return [section for section in made if section.rows]


def device_names(groups: Iterable[Group]) -> dict[tuple[str, str], str]:
    """A short name for each device, by backend and identity."""
    names: dict[tuple[str, str], str] = {}
    for group in groups:
        count = sum(backend == group.backend for backend, _ in names)
        names.setdefault((group.backend, group.device), f"{group.backend} {count + 1}")
    return names


def _whose(group: Group, names: dict[tuple[str, str], str]) -> tuple[str, str]:
    if not group.entry:
        return "all", "all"
    return group.entry, names[group.backend, group.device]


def _margins(groups: Sequence[Group], names: dict[tuple[str, str], str]) -> Section:
    rows = tuple(
        (
            *_whose(group, names),
            *(str(group.keys), str(group.candidates), duration(group.seconds)),
            *_margin(group.over_second),
            *_margin(group.over_default),
            _mean(group.default_wins),
        )
        for group in groups
    )
    return Section(
        "Margins",
        "How much longer than the winner's a call takes of the second, and of the untuned default; "
        "and the share of keys in which the default itself won. Times are compared that were taken "
        "alike: in turns in the finals, else as first readings; negative where such a one was "
        "faster than what won the finals. Time: a call of each key's winner, added up.",
        (
            *("def", "device", ">keys", ">candidates", ">time"),
            *(">second: median", ">mean", ">default: median", ">mean", ">default wins"),
        ),
        rows,
    )


def _presets(groups: Sequence[Group], names: dict[tuple[str, str], str]) -> Section:
    rows = tuple(
        (*_whose(group, names), *_rate(rate)) for group in groups for rate in group.presets
    )
    return Section(
        "Presets",
        "A preset with a + is not alone: options of a search, or a user's, that stand on it. Lost: "
        "what is lost where candidates with it are all there is, over the keys where it was tried.",
        ("def", "device", "preset", *_RATES),
        rows,
    )


_RATES = (">tried on", ">wins", ">win rate", ">lost")


def _rate(rate: Rate) -> tuple[str, ...]:
    counts = (str(rate.value), str(rate.tried), str(rate.wins))
    return *counts, _mean(rate.rate), _mean(rate.lost)


def _pools(groups: Sequence[Group], names: dict[tuple[str, str], str]) -> Section:
    rows = tuple(
        (
            *_whose(group, names),
            *(str(group.keys), str(group.different)),
            _mean(Mean(1 - group.options.start.plain, 1 - group.options.start.by_time)),
            *_enough(group.options),
        )
        for group in groups
    )
    return Section(
        "A smaller pool of candidates",
        "How many options, besides the untuned default, keep 95 and 99 % of the winners' speed "
        "over all keys, chosen greedily, plain / by time; and what is lost with the default alone. "
        "Where none of a pool was measured, a key has its default (its slowest candidate, if that "
        f"was not measured). {BOUND}",
        (
            *("def", "device", ">keys", ">options", ">default alone loses"),
            *_ENOUGH,
        ),
        rows,
    )


_ENOUGH = tuple(f">for {100 * share:.0f} %" for share in SHARES)


def _enough(pool: Pool) -> tuple[str, ...]:
    pairs = (pool.enough(share) for share in SHARES)
    return tuple(" / ".join("-" if n is None else str(n) for n in pair) for pair in pairs)


def _decisions(groups: Sequence[Group], names: dict[tuple[str, str], str]) -> Section:
    asked = any(d.importance is not None for group in groups for d in group.decisions)
    rows = tuple(
        (*_whose(group, names), *_decision(decision, asked))
        for group in groups
        for decision in group.decisions
    )
    return Section(
        "Knobs",
        "What is lost if a knob is fixed at the value that wins most, over the keys where that was "
        "tried; and how many of its values, chosen greedily, keep 95 and 99 %. A value that is "
        f"open is left to the preset. {BOUND}"
        + " Importance: what a random forest loses without the knob, see the search's report."
        * asked,
        (
            *("def", "device", "knob", ">values", "wins most", ">tried on", ">wins"),
            *(">fixed loses", *_ENOUGH, *((">importance",) if asked else ())),
        ),
        rows,
    )


def _decision(decision: Decision, asked: bool) -> tuple[str, ...]:
    most = decision.fixed
    share = "-" if decision.importance is None else _percent(decision.importance)
    return (
        *(decision.name, str(len(decision.rates)), str(most.value), str(most.tried)),
        *(_mean(most.rate), _mean(most.lost)),
        *_enough(decision.values),
        *((share,) if asked else ()),
    )


def _values(groups: Sequence[Group], names: dict[tuple[str, str], str]) -> Section:
    rows = tuple(
        (*_whose(group, names), decision.name, *_rate(rate))
        for group in groups
        for decision in group.decisions
        for rate in decision.rates
    )
    note = "As for presets, of each value of each knob."
    return Section("Values", note, ("def", "device", "knob", "value", *_RATES), rows)


def _margin(margins: Margins | None) -> tuple[str, str]:
    return ("-", "-") if margins is None else (_percent(margins.median), _mean(margins.mean))


def _mean(mean: Mean) -> str:
    """Plain / by time, in percent."""
    return f"{_percent(mean.plain).removesuffix(' %')} / {_percent(mean.by_time)}"


def _percent(share: float) -> str:
    """A share in percent, such as 12.5 %, and nothing below 0 that is only rounded to 0."""
    return f"{round(100 * share, 1) + 0.0:,.1f} %"


def markdown(found: Analysis, title: str, facts: Sequence[str]) -> str:
    """A page."""
    lines = [f"# {_escaped(title)}", "", *(f"- {_escaped(fact)}" for fact in facts), "", FORMULA]
    for section in sections(found, values=True):
        lines += ["", f"## {section.title}", ""]
        if section.note:
            lines += [section.note, ""]
        lines += _table(section)
    return "\n".join((*lines, ""))


def _table(section: Section) -> list[str]:
    right = [heading.startswith(">") for heading in section.headings]
    rows = [tuple(h.removeprefix(">") for h in section.headings), *section.rows]
    lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    rule = "|" + "|".join("---:" if each else "---" for each in right) + "|"
    return [lines[0], rule, *lines[1:]]


def _escaped(text: str) -> str:
    """A text of a file that others may have made, which is not to be read as Markdown or HTML."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    for sign in "\\`*_[]<>|":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
