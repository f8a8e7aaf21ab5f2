"""The page: sections, and the document around them. Its style is light or dark by the reader's
setting, and plain on paper."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from tcl import __version__
from tcl.common.files import write_whole
from tcl.html.markup import Markup, join, tag
from tcl.report.data import Page
from tcl.report.outcome import failures_section, summary_section, times_section
from tcl.report.search import candidates_section, importance_section, knobs_section, search_section

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1b1f24; --soft: #5b6470; --rule: #dfe3e8; --panel: #f5f7f9;
  --dot: #6a9fd0; --best: #0b62a8; --median: #c07a12; --failed: #c2362b; --good: #1a7f37;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --ink: #e4e8ec; --soft: #9aa4af; --rule: #333a42; --panel: #1d2127;
    --dot: #4d7ea8; --best: #7cc0f8; --median: #e5a84b; --failed: #f0796f; --good: #57c46f;
  }
}
@media print {
  :root {
    --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb; --panel: #fff;
    --dot: #6a9fd0; --best: #0b62a8; --median: #a86400; --failed: #b00; --good: #060;
  }
  figure, tr, .tiles, .legend { break-inside: avoid; }
  h2, .legend { break-after: avoid; }
  details:not([open]) { display: none; }
  body { max-width: none; padding: 0; font-size: 10pt; }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .5rem; border-top: 1px solid var(--rule);
     padding-top: 1.1rem; }
p { margin: .4rem 0; max-width: 46rem; }
.soft, caption, figcaption { color: var(--soft); }
.none { color: var(--soft); font-style: italic; }
pre, code { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
            monospace; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; margin: .6rem 0;
      padding: .7rem .9rem; overflow: auto; max-height: 36rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1.1rem 0; padding: 0; }
.tiles div { flex: 1 1 10rem; background: var(--panel); border: 1px solid var(--rule);
             border-radius: 6px; padding: .6rem .9rem; }
.tiles dt { color: var(--soft); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.45rem; font-weight: 600; }
.tiles dd small { display: block; font-size: .85rem; font-weight: 400; color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .22rem 1.1rem .22rem 0;
         border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 500; }
tbody th { font-weight: 500; white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.text { overflow-wrap: anywhere; min-width: 9rem; }
tr.winner { font-weight: 600; }
figure { margin: .6rem 0 1.2rem; }
svg.chart { width: 100%; height: auto; display: block; overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; }
svg a:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
svg a:hover circle, svg a:focus-visible circle { stroke: var(--ink); stroke-width: 2; }
.long { max-height: 32rem; overflow: auto; border: 1px solid var(--rule); border-radius: 6px; }
.long table { margin: 0; } .long .scroll { overflow: visible; }
.long th, .long td { padding: .22rem .6rem; } .long thead th { position: sticky; top: 0;
  background: var(--paper); }
.long td.text { min-width: 0; overflow-wrap: normal; }
.long td code { white-space: nowrap; font-size: 12px; }
tr:target { background: var(--panel); outline: 2px solid var(--best); outline-offset: -2px; }
a { color: var(--best); }
.grid { stroke: var(--rule); } .base { stroke: var(--soft); }
.dot, i.dot { fill: var(--dot); fill-opacity: .6; background: var(--dot); }
circle.winner { fill: var(--good); stroke: var(--paper); } i.winner { background: var(--good); }
.line { pointer-events: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line.best { stroke: var(--best); } i.best { background: var(--best); }
.line.median { stroke: var(--median); stroke-dasharray: 5 4; }
i.median { background: var(--median); }
.failed path { fill: none; stroke: var(--failed); stroke-width: 1.6; }
i.fail { background: var(--failed); }
.legend span { margin-right: 1.3rem; color: var(--soft); font-size: .88rem; white-space: nowrap; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px;
            margin-right: .4rem; vertical-align: -.08rem; }
.bar { display: inline-block; vertical-align: -.15rem; } .bar .fill { fill: var(--best); }
.bar .mark { stroke: var(--median); stroke-width: 2; }
.pair { display: grid; gap: 0 1.5rem;
        grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
@media (max-width: 40rem) {
  body { padding: 1rem .8rem 3rem; }
  svg.wide text { font-size: 21px; } svg.wide text.turned { font-size: 16px; }
  tbody th, td.number { white-space: normal; }
  svg.wide circle { r: 5px; } svg.wide circle.winner { r: 9px; }
  .line { stroke-width: 3; } .failed path { stroke-width: 2.5; }
  th, td { padding-right: .7rem; }
  .bar { width: 6rem; }
}
details { margin: .5rem 0; }
summary { cursor: pointer; font-weight: 500; }
summary .soft { font-weight: 400; }
footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; }
"""


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
    log, now = page.log, datetime.datetime.now().astimezone()
    subtitle = f"Tuned by tcl: {len(log.tries)} candidates in {log.seconds:.0f} s"
    subtitle += "".join(f"; ended early by {reason}" for reason in log.interruptions[-1:])
    body = tag(
        "body",
        tag("header", tag("h1", page.title), tag("p", subtitle, class_="soft")),
        tag("main", [section(page) for section in _SECTIONS], _sources(page)),
        tag("footer", f"Made by tcl {__version__} on {now.isoformat(' ', 'seconds')}."),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sources(page: Page) -> Markup:
    return tag(
        "section",
        tag("h2", "The def and its kernel"),
        tag("pre", tag("code", page.definition)),
        join(_folded(title, text) for title, text in page.sources),
        None
        if page.sources
        else tag("p", "No candidate worked, so there is no kernel.", class_="none"),
    )


def _folded(title: str, text: str) -> Markup:
    cut = ""
    if len(text) > _LONGEST:
        cut = f"; cut after {_LONGEST:,} characters; tcl show prints all of it"
        text = text[:_LONGEST]
    lines = f"{text.count(chr(10)) + 1:,} lines{cut}"
    return tag(
        "details",
        tag("summary", f"{title} of the winner ", tag("span", lines, class_="soft")),
        tag("pre", tag("code", text)),
    )
