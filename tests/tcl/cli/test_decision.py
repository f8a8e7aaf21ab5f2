"""What a search decided: one measurement, told by every display with the same numbers and words."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import tuner_fakes
from fake_search import CHECKED, INPUTS, MM, Event, Race, search, take
from tuner_fakes import KEY, FakeOptions, fake_tuner

from tcl.backends.targets import CpuTarget
from tcl.cli import tuned
from tcl.cli.progress_json import JsonProgress
from tcl.common.number_format import duration, ratio_text
from tcl.progress.console import Console
from tcl.progress.panel import Progress
from tcl.progress.state import BESIDE, FIRST, SearchState
from tcl.report.data import collect
from tcl.report.page import render
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.run import events
from tcl.tuner.run.checkpoint import SavedSearch

TIME = re.compile(r"\d[\d.,]* (?:ns|µs|ms)\b")
RATIO = re.compile(r"\d[\d.,]* ×")

CASES: Mapping[str, tuple[dict[str, Any], str]] = {
    "a challenger wins": (
        {"race": Race.WON},
        "the winner is 18.12 × as fast as the untuned default, timed in turns in the finals",
    ),
    "a tie": (
        {"race": Race.TIE},
        "the untuned default wins: nothing was clearly faster, timed in turns in the finals",
    ),
    "the default wins": (
        {"race": Race.LOST},
        "the untuned default wins: nothing was clearly faster, timed in turns in the finals",
    ),
    "interrupted": (
        {"race": Race.NONE},
        "the winner is 18.12 × as fast as the untuned default, by first readings without finals",
    ),
    "the start fails": (
        {"start": None},
        "the winner is the fastest that works, timed in turns in the finals",
    ),
    "resumed": (
        {"resumed": True, "start": 1e-5},
        "the untuned default wins: nothing was clearly faster, timed in turns in the finals",
    ),
    "resumed and interrupted": (
        {"resumed": True, "race": Race.NONE, "generations": 1},
        "the winner is 6.50 × as fast as the untuned default, timed in turns in the finals",
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[list[Event], str]:
    """The events of a search, and what it decided."""
    settings, verdict = CASES[request.param]
    return list(search(**settings)), verdict


def decision_of(found: Iterable[Event]) -> Any:
    *_, last = found
    assert isinstance(last, events.Finished)
    return last.decision


def figures(found: Iterable[Event]) -> tuple[set[str], set[str]]:
    """The times and ratios that may be shown without a label."""
    decision = decision_of(found)
    both = [c for c in (decision.winner, decision.start) if c is not None]
    measured = [(c.time, *c.outcome.times, *c.outcome.placements.values()) for c in both]
    times = {duration(t) for each in measured for t in each if t is not None}
    ratios = {ratio_text(1.0)}
    if decision.speedup is not None:
        ratios.add(ratio_text(decision.speedup))
    return times, ratios


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def written(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def check(lines: Iterable[str], found: list[Event]) -> None:
    """Every number in them is one of the decision's, or carries the label."""
    times, ratios = figures(found)
    for line in lines:
        if FIRST not in line:
            assert set(TIME.findall(line)) <= times, line
            assert set(RATIO.findall(line)) <= ratios, line


def test_panel(case: tuple[list[Event], str]) -> None:
    found, verdict = case
    to = console(terminal=True)
    progress = take(Progress("mm", console=to), iter(found))
    to.print(progress.panel())
    lines = written(to).splitlines()
    check(lines, found)
    assert verdict in lines
    (winner,) = (line for line in lines if "winner  " in line)
    assert (FIRST in winner) == (not decision_of(found).in_finals)


def test_lines(case: tuple[list[Event], str]) -> None:
    found, verdict = case
    to = console(terminal=False)
    with Progress("mm", console=to) as progress:
        take(progress, iter(found))
    lines = written(to).splitlines()
    finals = [line for line in lines if line.startswith("finals: ")]
    before = lines.index(finals[0]) if finals else len(lines) - 1
    assert all(FIRST in line or not TIME.search(line) for line in lines[:before])
    check(lines[before:], found)
    assert lines[-1] == verdict


def test_closing_table(case: tuple[list[Event], str]) -> None:
    found, _ = case
    decision = decision_of(found)
    to = console(terminal=False)
    to.print(tuned._decision_table("mm", decision))
    text = written(to)
    times, ratios = figures(found)
    assert set(TIME.findall(text)) <= times
    assert set(RATIO.findall(text)) <= ratios
    assert duration(decision.winner.time) in text
    assert ("at 64 bytes" in text) == ("as NumPy's" in text) == decision.in_finals
    assert (FIRST in text) == (not decision.in_finals)
    assert ("the winner: the untuned default" in text) == decision.kept


def test_json(case: tuple[list[Event], str]) -> None:
    found, verdict = case
    stream = io.StringIO()
    take(JsonProgress({}, stream), iter(found))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["reading"] for line in lines if line["event"] == "candidate"} == {FIRST}
    last, decision = lines[-1], decision_of(found)
    assert last["event"] == "finished"
    assert last["verdict"] == verdict
    assert last["best"]["time"] == decision.winner.time
    assert last["best"]["reading"] == ("finals" if decision.in_finals else FIRST)
    if decision.start is not None:
        assert last["start"]["reading"] == last["best"]["reading"]
        assert last["speedup"] == last["start"]["time"] / last["best"]["time"]


class Blocks(HTMLParser):
    """The texts of a page's rows, paragraphs and captions; those of a drawing's points."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = [""]

    def handle_starttag(self, name: str, attributes: object) -> None:
        if name in ("tr", "p", "dt", "div", "figcaption", "title", "h2", "pre"):
            self.texts.append("")
        elif name in ("td", "dd", "small"):
            self.texts[-1] += " | "

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


def test_report(case: tuple[list[Event], str]) -> None:
    found, verdict = case
    log = take(SearchState(), iter(found))
    page = collect(MM, CHECKED, INPUTS, CpuTarget(1), log, title="mm", beside={"NumPy": 1.5})
    blocks = Blocks()
    blocks.feed(render(page))
    texts = [t for t in blocks.texts if not t.startswith(("NumPy", "define "))]
    rows = [t.split(" | ") for t in texts if re.match(r"\d+ \| \d+ \| ", t)]
    check((t for t in texts if not re.match(r"\d+ \| \d+ \| ", t)), found)
    assert len(rows) == len(log.tries)
    assert any(re.fullmatch(f"generation.*{FIRST}.*finals.*options", t) for t in texts)
    raced = {duration(c.time or 0.0) for c in log.raced}
    assert {cells[4] for cells in rows} - {""} == raced
    assert f"{verdict[:1].upper()}{verdict[1:]}." in texts
    decision = decision_of(found)
    assert any("first readings" in t for t in texts)  # of the curves, at least
    told = [t for t in texts if t.startswith("the winner") and TIME.search(t)]
    assert all(duration(decision.winner.time) in t for t in told) and told
    assert any(t.startswith("the winner: the untuned default") for t in texts) == decision.kept
    assert any(BESIDE[1:] in t for t in texts)


def test_what_is_kept_is_what_was_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache's first row has the time that the search ends with; so has a search that goes on
    and is stopped before it has finals of its own."""
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", tuner_fakes.as_recorded)
    monkeypatch.setattr("tcl.tuner.run.pipeline.race_candidates", tuner_fakes.race_recorded)
    cache = TuningCache(tmp_path / "cache.db")
    first = fake_tuner(cache=cache).tune([FakeOptions(400)])
    assert first.decision.in_finals and first.best is not None
    assert [c.time for c in first.history if c.options == first.options] != [first.time]
    kept = cache.best(KEY)
    assert kept is not None and kept.time == first.time
    again = fake_tuner(cache=cache, generations=3)
    found: list[events.Event[FakeOptions]] = []

    def report(event: events.Event[FakeOptions]) -> None:
        found.append(event)
        if isinstance(event, events.Raced):
            again.stop()

    result = again.tune((), report, SavedSearch.last(cache, KEY))
    assert result.interrupted
    assert result.decision == first.decision
    assert cache.best(KEY) == kept
