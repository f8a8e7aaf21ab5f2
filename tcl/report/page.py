"""The page: sections, and the document around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tcl.common.files import write_whole
from tcl.html.markup import Markup, join, tag
from tcl.report.data import Page
from tcl.report.outcome import failures_section, summary_section, times_section
from tcl.report.search import candidates_section, importance_section, knobs_section, search_section
from tcl.report.style import STYLE

_SECTIONS: tuple[Callable[[Page], Markup | None], ...] = (
    summary_section,
    times_section,
    search_section,
    failures_section,
    importance_section,
    knobs_section,
    candidates_section,
)
_LONGEST = 1_000_000
"""Characters of a text that the page holds; what is longer is cut, and the page says so."""


def write_page(page: Page, path: Path) -> None:
    """Write the page as a whole. ``OSError`` if that cannot be done."""
    write_whole(path, render(page))


def render(page: Page) -> str:
    """The page as HTML. It loads nothing, and runs no script."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"tcl tune: {page.title}"),
        tag("style", Markup(STYLE)),
    )
    log = page.log
    subtitle = f"Tuned by tcl: {len(log.tries)} candidates in {log.seconds:.0f} s"
    subtitle += f"; ended early by {log.ended_by}" if log.ended_by else ""
    body = tag(
        "body",
        tag("header", tag("h1", page.title), tag("p", subtitle, class_="soft")),
        tag("main", [section(page) for section in _SECTIONS], _sources(page)),
        tag("footer", f"Made by tcl {page.version} on {page.date}."),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sources(page: Page) -> Markup:
    return tag(
        "section",
        tag("h2", "The def, and what became of it"),
        tag("pre", tag("code", page.definition)),
        join(_folded(title, text) for title, text in page.sources),
        None if page.sources else tag("p", "No candidate worked: there is none.", class_="none"),
    )


def _folded(title: str, text: str) -> Markup:
    cut = ""
    if len(text) > _LONGEST:
        cut = f"; cut after {_LONGEST:,} characters, tcl show prints all of it"
        text = text[:_LONGEST]
    lines = f"{text.count(chr(10)) + 1:,} lines{cut}"
    return tag(
        "details",
        tag("summary", f"{title} of the winner ", tag("span", lines, class_="soft")),
        tag("pre", tag("code", text)),
    )
