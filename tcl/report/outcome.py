"""What came out of the search: the time, how it compares, and what failed."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from tcl.bench.roofline import describe_ceilings, quantity
from tcl.common.number_format import duration, ratio_text
from tcl.html.charts import bar
from tcl.html.markup import Child, Markup, join, table, table_row, tag
from tcl.progress.state import BESIDE, Candidate, name_of, verdict, winner_name
from tcl.report.data import Page
from tcl.tuner.measure.placement import shown
from tcl.tuner.measure.verdict import Verdict

_CLEARLY = 0.97
_EXAMPLES = 12
"""Reasons that are listed; the others are counted."""


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def summary_section(page: Page) -> Markup:
    """The main figures, and what was tuned."""
    log, decision = page.log, page.log.decision
    best, start = decision.winner, decision.start
    tiles: list[tuple[str, Child, Child]] = []
    if best is not None and best.time is not None:
        rate = page.yardstick.rate(best.time) if page.yardstick else ""
        tiles.append(("the winner, time per call", duration(best.time), rate))
        if start is not None and start.time is not None and decision.speedup is not None:
            from_ = (
                "which is the winner" if decision.kept else f"which takes {duration(start.time)}"
            )
            over = f"speed-up over {name_of(start.options)}"
            tiles.append((over, ratio_text(decision.speedup), from_))
        share = page.yardstick.share(best.time) if page.yardstick else None
        if share is not None:
            limit = (
                "memory" if page.yardstick and page.yardstick.limited_by_memory else "arithmetic"
            )
            tiles.append(("share of the roofline", f"{share:.0%}", f"limited by {limit}"))
    else:
        why = "no candidate worked" if log.tries else "it ended before a candidate was timed"
        tiles.append(("result", "none", why))
    correct = sum(t.best_time is not None for t in log.tries)
    tiles.append(("evaluated", str(len(log.tries)), f"{correct} correct, {log.compiled} compiled"))
    facts = [*page.facts, *_work_facts(page)]
    return tag(
        "section",
        tag("p", tag("strong", sentence(verdict(decision)))),
        tag(
            "dl",
            [
                tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
                for name, value, note in tiles
            ],
            class_="tiles",
        ),
        [tag("p", note) for note in log.notes],
        table(("", ""), [table_row(name, value) for name, value in facts]) if facts else None,
    )


def _work_facts(page: Page) -> list[tuple[str, str]]:
    if page.yardstick is None:
        return []
    cost, ceilings = page.yardstick.cost, page.yardstick.ceilings
    work = (
        f"{quantity(cost.operations, cost.operation_unit)}, {quantity(cost.read, 'B')} read, "
        f"{quantity(cost.written, 'B')} written: the minimum for every schedule"
    )
    machine = describe_ceilings(ceilings) if ceilings else "was not measured"
    return [("one call", work), ("the machine", f"{machine} (measured)" if ceilings else machine)]


def times_section(page: Page) -> Markup | None:
    """Start and winner, as often as they were measured; and what they were compared with."""
    log, start, best = page.log, page.log.decision.start, page.log.decision.winner
    if best is None or best.time is None:
        return None
    rows = []
    if start is None:
        begun = (t.candidate for t in log.tries if t.candidate.generation == 0)
        rows += [_time_row(page, "the start", each) for each in islice(begun, 1)]
    elif not log.decision.kept:
        rows.append(_time_row(page, name_of(start.options), start))
    rows.append(_time_row(page, winner_name(log.decision), best))
    explained = (
        "These times decided. In the finals, the fastest candidates and the starting point "
        "were timed in turns, so all were measured under the same conditions."
        if log.decision.in_finals
        else (
            "There were no finals. These are first readings: each candidate was timed once "
            "during the search, and the speed of the machine may have changed since."
        )
    )
    # A search from elsewhere may never come near what was faster.
    faster = [name for name, ratio in page.beside.items() if ratio < _CLEARLY]
    beside = [table_row(name, ratio_text(r), numbers=(1,)) for name, r in page.beside.items()]
    return tag(
        "section",
        tag("h2", "Times"),
        tag("p", explained, class_="soft"),
        table(("", "median", "least to most", "samples", "speed-up", "rate"), rows, (1, 2, 3, 4)),
        _placements(best),
        None
        if not beside
        else join(
            [
                tag("p", sentence(BESIDE).rstrip(".") + ":", class_="soft"),
                table(("", "as long as the winner"), beside, (1,)),
                tag("p", f"Faster than the result of the search: {'; '.join(faster)}.")
                if faster
                else "",
            ]
        ),
    )


def _placements(best: Candidate) -> Markup | None:
    """The winner's time on each placement of the arrays."""
    places = best.outcome.placements
    if len(places) < 2:
        return None
    times = "; ".join(f"{shown(name)} {duration(seconds)}" for name, seconds in places.items())
    explained = (
        "Times are geometric means over the two placements of arrays. The winner's times on arrays"
    )
    return tag("p", f"{explained} {times}.", class_="soft")


def _time_row(page: Page, name: str, candidate: Candidate) -> Markup:
    times = candidate.outcome.times
    if candidate.time is None:
        ended = candidate.outcome.verdict.value
        return table_row(name, f"{ended}: {candidate.outcome.message}", "", "", "", "")
    faster = page.log.decision.speedup if candidate == page.log.decision.winner else 1.0
    return table_row(
        name,
        duration(candidate.time),
        f"{duration(min(times))} to {duration(max(times))}",
        str(len(times)),
        ratio_text(faster) if faster else "",
        page.yardstick.describe(candidate.time) if page.yardstick else "",
        numbers=(1, 2, 3, 4),
        class_="winner" if candidate == page.log.decision.winner else None,
    )


def failures_section(page: Page) -> Markup | None:
    """How candidates ended, and why."""
    tries = page.log.tries
    if not tries:
        return None
    counts = Counter(t.candidate.outcome.verdict for t in tries)
    rows = [
        table_row(
            each.value,
            str(counts[each]),
            [bar(counts[each] / len(tries)), f" {counts[each] / len(tries):.0%}"],
            numbers=(1,),
        )
        for each in Verdict
        if counts[each]
    ]
    reasons = Counter(
        (t.candidate.outcome.verdict.value, t.candidate.outcome.message)
        for t in tries
        if t.best_time is None
    )
    listed = [
        table_row(ended, str(count), message, numbers=(1,))
        for (ended, message), count in reasons.most_common(_EXAMPLES)
    ]
    more = sum(reasons.values()) - sum(c for _, c in reasons.most_common(_EXAMPLES))
    return tag(
        "section",
        tag("h2", "Verdicts"),
        table(("verdict", "candidates", ""), rows, (1,)),
        table(("failed", "candidates", "reason"), listed, (1,)) if listed else None,
        tag("p", f"{more} more candidates failed for other reasons.", class_="soft")
        if more
        else None,
    )
