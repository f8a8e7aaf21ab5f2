"""How the search went: its curves, its candidates, and what the knobs have to do with it."""

from __future__ import annotations

import base64
import math
import re
import time
from collections.abc import Iterable
from statistics import median

from tcl.codegen.options.knobs import Value
from tcl.codegen.options.nest_options import OPTIONS
from tcl.common.number_format import duration, plural
from tcl.html.charts import HALF, ChartDot, ChartLine, Ticks, bar, legend, times_chart
from tcl.html.markup import Markup, table, table_row, tag
from tcl.progress.state import FIRST, Candidate, SearchState, Try
from tcl.report.data import Page
from tcl.report.outcome import sentence
from tcl.tuner.cache.merge import Results
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.t4_format import to_t4
from tcl.tuner.model.knob_importance import Influence

LISTED = 2000
"""Rows of the table; the file has all."""


def place_of(number: int) -> str:
    """The name of a candidate's row, to which its points lead."""
    return f"c{number}"


def candidates_section(page: Page) -> Markup | None:
    tries, log = page.log.tries, page.log
    if not tries:
        return None
    raced = {c.options: c for c in log.raced}
    rows = [
        _candidate_row(page, k, t, raced.get(t.candidate.options)) for k, t in enumerate(tries, 1)
    ]
    left = len(rows) - LISTED
    headings = ("", "generation", "verdict", FIRST, "finals", "options")
    return tag(
        "section",
        tag("h2", "The candidates"),
        tag(
            "p",
            "Click a point in a chart to see its row here. The options are valid for --options. ",
            tag(
                "a",
                "All of them as a T4 file",
                href=f"data:application/json;base64,{_file(page)}",
                download=f"{page.entry}.t4.json",
            ),
            ", the format of the auto-tuning community; tcl cache import reads it.",
        ),
        tag("div", table(headings, rows[:LISTED], (0, 1, 3, 4)), class_="long", tabindex="0"),
        tag("p", f"{plural(left, 'more candidate')} in the file.", class_="soft")
        if left > 0
        else None,
    )


def _candidate_row(page: Page, number: int, each: Try, raced: Candidate | None) -> Markup:
    candidate = each.candidate
    best = page.log.decision.winner
    won = best is not None and candidate.options == best.options
    finals = "" if raced is None or raced.time is None else duration(raced.time)
    return table_row(
        str(number),
        str(candidate.generation),
        candidate.outcome.verdict.value,
        "-" if each.best_time is None else duration(each.best_time),
        finals,
        tag("code", candidate.options.to_json()),
        numbers=(1, 3, 4),
        class_="winner" if won else None,
        id=place_of(number),
    )


def _file(page: Page) -> str:
    now = time.time()
    records = []
    for candidate in (*(t.candidate for t in page.log.tries), *page.log.raced):
        kept = candidate.outcome.conditions
        when = now if kept is None or candidate.outcome.heat is not None else kept.at
        options = candidate.options.to_json()
        records.append(
            Record.from_outcome(options, candidate.outcome, when, page.run, candidate.generation)
        )
    text = to_t4([Results(page.key, page.entry, tuple(records))])
    return base64.b64encode(text.encode()).decode("ascii")


KNOBS = {name: words for option in OPTIONS.values() for name, words in option.knobs.items()}
"""By the last part of a knob's name, without the number of an operand."""


def point_kind(knob: str) -> str:
    """The entry that a knob has: ``stage`` for ``s0.stage1``."""
    return re.sub(r"\d+$", "", knob.rpartition(".")[2])


_LISTED = 15
"""Knobs whose importance is listed."""
_SHOWN = 4
"""Knobs whose values are shown with their times."""


_LEGEND = {
    "best": "best first reading so far",
    "dot": "a candidate",
    "winner": "first reading of the winner",
    "fail": "one that failed",
}
"""What is drawn."""


def search_section(page: Page) -> Markup | None:
    """Best so far, and the population."""
    log = page.log
    if not log.tries:
        return None
    drawn = {"fail" if each.best_time is None else _kind(log, each) for each in log.tries}
    drawn = {"best", *drawn} if drawn != {"fail"} else set()  # without a time there is no chart
    counts, seconds = [float(k) for k, _ in enumerate(log.tries, 1)], [t.seconds for t in log.tries]
    what = "Time per call of each candidate"
    by_evaluation = _best_so_far(log, f"{what}, in order", "evaluations", counts, 2.0)
    since = "seconds since the search began"
    by_time = _best_so_far(log, f"{what}, when it was measured", since, seconds, 1e-3)
    return tag(
        "section",
        tag("h2", "The search"),
        tag(
            "p",
            "All times here are first readings: each candidate was timed once, alone. First "
            "readings select the candidates of the finals, and the finals decide.",
            class_="soft",
        ),
        legend(*((k, words) for k, words in _LEGEND.items() if k in drawn)) if drawn else None,
        _figure("Best first reading so far, by evaluations", by_evaluation),
        _figure("Best first reading so far, by time", by_time),
        _figure(
            "Population by generation: each candidate, the best and the median. Generation 0 "
            "has the starting options; members that stay are not measured again.",
            _by_generation(log),
        ),
    )


def _figure(caption: str, chart: Markup) -> Markup:
    return tag("figure", tag("figcaption", caption), chart)


def _title(number: int, each: Try) -> str:
    """What is said of a point: how it ended, and its options."""
    candidate = each.candidate
    what = (
        candidate.outcome.verdict.value
        if each.best_time is None
        else f"{FIRST} {duration(each.best_time)}"
    )
    options = candidate.options.to_json()
    return f"evaluation {number}, generation {candidate.generation}: {what}\n{options}"


def _kind(log: SearchState, each: Try) -> str:
    best = log.decision.winner
    return "winner" if best is not None and each.candidate.options == best.options else "dot"


def _best_so_far(
    log: SearchState, name: str, label: str, places: list[float], least: float
) -> Markup:
    """The tries at these places, of which the axis shows so many at least, and the best so far."""
    dots = [
        ChartDot(place, each.best_time, _title(number, each), _kind(log, each), place_of(number))
        for number, (place, each) in enumerate(zip(places, log.tries, strict=True), 1)
    ]
    points: list[tuple[float, float]] = []
    for place, each in zip(places, log.tries, strict=True):
        if each.best_time is not None and (not points or each.best_time < points[-1][1]):
            points.append((place, each.best_time))
    if points:  # the last value holds to the end
        points.append((places[-1], points[-1][1]))
    ticks = Ticks(label, max(places[-1], least), 0.0)
    return times_chart(name, ticks, dots, [ChartLine(points, "best", steps=True)])


def _by_generation(log: SearchState) -> Markup:
    generations: dict[int, list[tuple[int, Try]]] = {}
    for number, each in enumerate(log.tries, 1):
        generations.setdefault(each.candidate.generation, []).append((number, each))
    dots, bests, medians = [], [], []
    for generation, tries in sorted(generations.items()):
        for k, (number, each) in enumerate(tries):
            # Beside each other in the order in which they came, so that equal times are all seen.
            place = generation + 0.5 * ((k + 0.5) / len(tries) - 0.5)
            title, kind = _title(number, each), _kind(log, each)
            dots.append(ChartDot(place, each.best_time, title, kind, place_of(number)))
        if times := [each.best_time for _, each in tries if each.best_time is not None]:
            bests.append((float(generation), min(times)))
            medians.append((float(generation), median(times)))
    last = max(generations)
    # Few generations have their numbers below; many, the axis's own.
    named = [str(g) for g in range(last + 1)] if last <= 20 else ()
    ticks = Ticks("generation", last + 0.5, -0.5, named)
    chart = times_chart(
        "Times of each generation",
        ticks,
        dots,
        [ChartLine(medians, "median"), ChartLine(bests, "best")],
    )
    return tag("div", chart, legend(("best", "its best"), ("median", "its median")))


def importance_section(page: Page) -> Markup | None:
    """Which knobs made a difference, and how."""
    found = page.importance
    if not page.log.tries:
        return None
    heading = tag("h2", "Which knobs mattered")
    if found.why_not:
        return tag("section", heading, tag("p", sentence(found.why_not), class_="none"))
    listed = [i for i in found.influences if i.share > found.chance][:_LISTED]
    top = max((i.share for i in listed), default=1.0) or 1.0
    rows = [
        table_row(
            i.knob.name,
            [bar(i.share / top, min(1.0, found.chance / top)), f" {i.share:.0%}"],
            f"{i.values} of {i.knob.cardinality}",
            numbers=(2,),
        )
        for i in listed
    ]
    rest = sum(1 for i in found.influences if i.knob.cardinality > 1) - len(listed)
    return tag(
        "section",
        heading,
        tag(
            "p",
            "A random forest predicts the measured times. The importance of a knob is the loss "
            "of its predictions if the values of this knob are shuffled, as a share of the "
            "variance of the (logarithms of the) times: permutation importance (Breiman 2001). "
            f"The trees were trained on {found.samples} configurations. For configurations that "
            f"a tree was not trained on, they predict {found.explained:.0%} of the differences. "
            "The mark shows the value that a knob without influence reaches by chance. These "
            "numbers hold only for the part of the space that the search measured.",
            class_="soft",
        ),
        table(("knob", "importance", "values tried"), rows, (2,))
        if rows
        else tag("p", "No knob has an influence above chance.", class_="none"),
        tag("p", f"{rest} more knobs have no influence above chance.", class_="soft")
        if rest
        else None,
        tag("div", [_values_chart(page, i) for i in listed[:_SHOWN]], class_="pair"),
    )


def _values_chart(page: Page, influence: Influence) -> Markup:
    """Times by the value of one knob."""
    position = page.space.knobs.index(influence.knob)
    measured: list[tuple[Value, Try]] = [
        (t.candidate.config[position], t)
        for t in page.log.tries
        if t.candidate.config is not None and t.best_time is not None
    ]
    seen = {value for value, _ in measured}
    values = [v for v in influence.knob.choices if v in seen]
    dots, bests = [], []
    for place, value in enumerate(values):
        own = [t for v, t in measured if v == value]
        for k, each in enumerate(own):
            spread = 0.5 * ((k + 0.5) / len(own) - 0.5)
            title = f"{influence.knob.name} = {value}: {FIRST} {duration(each.best_time or 0.0)}"
            dots.append(ChartDot(place + spread, each.best_time, title, _kind(page.log, each)))
        bests.append((float(place), min(t.best_time or 0.0 for t in own)))
    ticks = Ticks(influence.knob.name, len(values) - 0.5, -0.5, [str(v) for v in values])
    lines = [ChartLine(bests, "best")] if influence.knob.ordered else []
    return _figure(influence.knob.name, times_chart("Times by value", ticks, dots, lines, HALF))


def knobs_section(page: Page) -> Markup | None:
    """All knobs, as they were and as they are; and the options that they stand for."""
    start, best = page.log.decision.start, page.log.decision.winner
    if best is None:
        return None
    size = page.space.cardinality  # which may have thousands of digits
    configurations = f"{size:,}" if size < 10**7 else f"about 10^{math.log10(size):.0f}"
    absent = ("not in the space",) * len(page.space.knobs)
    before = (start.config if start is not None else None) or absent
    knobs = [
        (knob.name, str(old), str(new), str(knob.cardinality))
        for knob, old, new in zip(page.space.knobs, before, best.config or absent, strict=True)
        if knob.cardinality > 1
    ]
    changed = [row for row in knobs if row[1] != row[2]]
    same = [row for row in knobs if row[1] == row[2]]
    return tag(
        "section",
        tag("h2", "What changed"),
        tag(
            "p",
            f"{len(changed)} of {len(knobs)} knobs differ between the start and the winner. "
            f"The space has {configurations} configurations, constraints not "
            "counted; s0, s1, ... are the statements of the def.",
            class_="soft",
        ),
        _glossary(page),
        _knobs(changed) if changed else None,
        tag("details", tag("summary", f"{len(same)} knobs that did not"), _knobs(same))
        if same
        else None,
        None if start is None else _options("start", start.options.to_json()),
        _options("winner", best.options.to_json()),
    )


def _glossary(page: Page) -> Markup:
    """What the knobs of this space decide."""
    kinds = dict.fromkeys(point_kind(k.name) for k in page.space.knobs)
    rows = [table_row(kind, KNOBS[kind]) for kind in kinds if kind in KNOBS]
    about = "s0.m.tile is the tile of dimension m in the first statement"
    summary = tag("summary", "What the knobs mean ", tag("span", about, class_="soft"))
    return tag("details", summary, table(("", ""), rows))


def _knobs(knobs: Iterable[tuple[str, ...]]) -> Markup:
    headings = ("knob", "start", "winner", "choices")
    return table(headings, (table_row(*cells, numbers=(3,)) for cells in knobs), (3,))


def _options(name: str, text: str) -> Markup:
    summary = tag("summary", f"Options of the {name} ", tag("span", "for --options", class_="soft"))
    return tag("details", summary, tag("pre", tag("code", text)))
