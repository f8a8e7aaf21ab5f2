"""The candidates as a table, to which the charts' points lead, and as a T4 file to be saved."""

from __future__ import annotations

import base64
import time

from tcl.common.number_format import duration, plural
from tcl.html.markup import Markup, tag
from tcl.html.tables import table, table_row
from tcl.progress.words import FIRST
from tcl.report.data import Page
from tcl.report.log import Candidate, Try
from tcl.tuner.cache.merge import Results
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.t4_format import to_t4

LISTED = 2000
"""Rows of the table; the file has all."""


def place_of(number: int) -> str:
    """The name of a candidate's row, to which its points lead."""
    return f"c{number}"


def candidates_section(page: Page) -> Markup | None:
    """All candidates, with their options."""
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
            "A point of the charts leads to its row here. Options are as --options takes them. ",
            tag(
                "a",
                "All of them as a T4 file",
                href=f"data:application/json;base64,{_file(page)}",
                download=f"{page.entry}.t4.json",
            ),
            ", the auto-tuning community's format, which tcl cache import reads, too.",
        ),
        tag("div", table(headings, rows[:LISTED], (0, 1, 3, 4)), class_="long", tabindex="0"),
        tag("p", f"{plural(left, 'more candidate')} in the file.", class_="soft")
        if left > 0
        else None,
    )


def _candidate_row(page: Page, number: int, each: Try, raced: Candidate | None) -> Markup:
    candidate = each.candidate
    best = page.log.best
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
