"""What came out of the search: the time, how it compares, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tcl.bench.roofline import describe_ceilings, quantity
from tcl.report.charts import bar, unit_of
from tcl.report.data import Page
from tcl.report.log import Candidate
from tcl.report.markup import Child, Markup, join, tag
from tcl.tuner.verdict import Verdict

_CLEARLY = 0.97
_EXAMPLES = 12
"""Reasons that are listed; the others are counted."""


def time_text(seconds: float) -> str:
    """A time in the unit that suits it: ``45.3 µs``."""
    unit, scale = unit_of(seconds)
    return f"{seconds / scale:,.4g} {unit}"


def _range_text(times: Sequence[float]) -> str:
    unit, scale = unit_of(max(times))
    return f"{min(times) / scale:,.4g} to {max(times) / scale:,.4g} {unit}"


def table(headings: Sequence[str], rows: Iterable[Markup], numbers: Sequence[int] = ()) -> Markup:
    """A table that scrolls by itself where the page is narrow."""
    cells = (
        tag("th", heading, class_="number" if k in numbers else None)
        for k, heading in enumerate(headings)
    )
    head = tag("thead", tag("tr", cells)) if any(headings) else None
    return tag("div", tag("table", head, tag("tbody", rows)), class_="scroll")


def row(*cells: Child, numbers: Sequence[int] = (), class_: str | None = None) -> Markup:
    """A row of a table, whose first cell is its heading."""
    first, *rest = cells
    return tag(
        "tr",
        tag("th", first),
        (
            tag("td", cell, class_="number" if k in numbers else "text")
            for k, cell in enumerate(rest, 1)
        ),
        class_=class_,
    )


def summary_section(page: Page) -> Markup:
    """The main figures, and what was tuned."""
    log, best, start = page.log, page.log.best, page.log.start
    tiles: list[tuple[str, Child, Child]] = []
    if best is not None and best.time is not None:
        tiles.append(("time a call", time_text(best.time), _rate(page, best.time)))
        if start is not None and start.time is not None:
            how = "timed in turns" if log.fair else "each timed when it came up"
            from_ = f"from {time_text(start.time)}; {how}"
            tiles.append(("speed-up over the start", f"{start.time / best.time:.2f} ×", from_))
        share = page.yardstick.share(best.time) if page.yardstick else None
        if share is not None:
            limit = (
                "memory" if page.yardstick and page.yardstick.limited_by_memory else "arithmetic"
            )
            tiles.append(("share of the roofline", f"{share:.0%}", f"limited by {limit}"))
    else:
        tiles.append(("result", "none", "no candidate worked"))
    correct = sum(t.time is not None for t in log.tries)
    tiles.append(("evaluated", str(len(log.tries)), f"{correct} correct, {log.compiled} compiled"))
    facts = [*page.facts, *_work(page)]
    return tag(
        "section",
        tag(
            "dl",
            [
                tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
                for name, value, note in tiles
            ],
            class_="tiles",
        ),
        [tag("p", note) for note in log.notes],
        table(("", ""), [row(name, value) for name, value in facts]) if facts else None,
    )


def _rate(page: Page, seconds: float) -> str:
    return page.yardstick.rate(seconds) if page.yardstick else ""


def _work(page: Page) -> list[tuple[str, str]]:
    if page.yardstick is None:
        return []
    cost, ceilings = page.yardstick.cost, page.yardstick.ceilings
    work = (
        f"{quantity(cost.operations, 'FLOP')}, {quantity(cost.read, 'B')} read, "
        f"{quantity(cost.written, 'B')} written: what no schedule can avoid"
    )
    machine = describe_ceilings(ceilings) if ceilings else "was not measured"
    return [("one call", work), ("the machine", f"{machine} (measured)" if ceilings else machine)]


def times_section(page: Page) -> Markup | None:
    """Start and winner, as often as they were measured; and what they were compared with."""
    log, start, best = page.log, page.log.start, page.log.best
    if best is None or best.time is None:
        return None
    rows = []
    for name, candidate in (("start", start), ("winner", best)):
        if candidate is not None and not (name == "start" and candidate == best):
            rows.append(_time_row(page, name, candidate, start))
    explained = (
        "Start and winner were timed in turns at the end, so that both saw the same machine."
        if log.fair
        else "Each was timed when it came up in the search; the machine may have changed since."
    )
    if start is not None and start.options == best.options:
        explained = "Nothing was clearly faster than what the search began with, so that stays."
    compared = [
        row(name, time_text(seconds), f"{seconds / best.time:.2f} ×", numbers=(1, 2))
        for name, seconds in page.compared.items()
    ]
    return tag(
        "section",
        tag("h2", "Times"),
        tag("p", explained, class_="soft"),
        table(("", "median", "least to most", "samples", "speed-up", "rate"), rows, (1, 2, 3, 4)),
        None
        if not compared
        else join(
            [
                tag("p", "Measured once more after the search, in turns:", class_="soft"),
                _faster(page.compared, best.time),
                table(("", "time a call", "to the winner's"), compared, (1, 2)),
            ]
        ),
    )


def _faster(compared: Mapping[str, float], best: float) -> Markup | None:
    """What was faster than the winner, which a search from elsewhere may never come near."""
    names = [name for name, seconds in compared.items() if seconds < _CLEARLY * best]
    names = [name for name in names if not name.startswith("after")]
    if not names:
        return None
    listed = "; ".join(name.removeprefix("before: ") for name in names)
    return tag("p", tag("strong", f"Faster than what the search found: {listed}."))


def _time_row(page: Page, name: str, candidate: Candidate, start: Candidate | None) -> Markup:
    times = candidate.outcome.times
    if candidate.time is None:
        verdict = candidate.outcome.verdict.value
        return row(name, f"{verdict}: {candidate.outcome.message}", "", "", "", "")
    first = start.time if start is not None else None
    return row(
        name,
        time_text(candidate.time),
        _range_text(times),
        str(len(times)),
        f"{first / candidate.time:.2f} ×" if first else "",
        page.yardstick.describe(candidate.time) if page.yardstick else "",
        numbers=(1, 2, 3, 4),
        class_="winner" if name == "winner" else None,
    )


def failures_section(page: Page) -> Markup | None:
    """How candidates ended, and why."""
    tries = page.log.tries
    if not tries:
        return None
    counts = Counter(t.candidate.outcome.verdict for t in tries)
    rows = [
        row(
            verdict.value,
            str(counts[verdict]),
            [bar(counts[verdict] / len(tries)), f" {counts[verdict] / len(tries):.0%}"],
            numbers=(1,),
        )
        for verdict in Verdict
        if counts[verdict]
    ]
    reasons = Counter(
        (t.candidate.outcome.verdict.value, t.candidate.outcome.message)
        for t in tries
        if t.time is None
    )
    listed = [
        row(verdict, str(count), message, numbers=(1,))
        for (verdict, message), count in reasons.most_common(_EXAMPLES)
    ]
    more = sum(reasons.values()) - sum(c for _, c in reasons.most_common(_EXAMPLES))
    return tag(
        "section",
        tag("h2", "Verdicts"),
        table(("verdict", "candidates", ""), rows, (1,)),
        table(("failed", "candidates", "reason"), listed, (1,)) if listed else None,
        tag("p", f"{more} more failed for other reasons.", class_="soft") if more else None,
    )
