"""What was measured is from a committed result, wherever it is told."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from places import ROOT

from tcl.cli import main

if not (ROOT / "README.md").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

from benchmarks import figures, growth


def test_every_figure_is_current() -> None:
    """``python -m benchmarks.figures`` writes them."""
    texts = {page: page.read_text("utf-8") for page in figures.pages()}
    stale = [page.name for page, text in texts.items() if figures.current(text) != text]
    assert stale == []
    assert sum(len(figures.MARKED.findall(text)) for text in texts.values()) >= 6


def test_marks_within_a_text_do_not_begin_a_line() -> None:
    """A comment at the beginning of a line ends the paragraph."""
    for page in figures.pages():
        for found in re.finditer(r"^ *<!-- \w.*-->.", page.read_text("utf-8"), re.MULTILINE):
            raise AssertionError(f"{page}: {found[0]}")


def test_a_figure_is_written_between_its_marks() -> None:
    mark = "<!-- suite 2026-11-24-cpu-suite aligned -->"
    assert figures.current(f"a {mark}9.99<!-- end of suite --> b") == (
        f"a {mark}1.33<!-- end of suite --> b"
    )
    with pytest.raises(OSError, match="no-such"):
        figures.current("<!-- suite no-such -->1<!-- end of suite -->")


def test_every_other_measured_number_has_its_source() -> None:
    found = {(page, heading): number for page, heading, number in figures.unsourced()}
    missing = {place: n for place, n in found.items() if place not in figures.ELSEWHERE}
    assert missing == {}, "name the result in this section, or mark the figure"
    assert {*figures.ELSEWHERE} == {*found}, "one of these needs no exception any more"


@pytest.mark.parametrize("text", ["takes 1.3 times as long", "in .5 ms", "20 GB/s", "3 µs"])
def test_what_looks_measured(text: str) -> None:
    assert figures.MEASURED.search(text)


def test_the_command_shows_no_marks() -> None:
    for page in ("faq", "performance"):
        printed = CliRunner().invoke(main, ["docs", page]).output
        assert not re.search(r"<!--", printed)


def test_what_was_measured_on_a_gpu_is_told_as_a_whole() -> None:
    """Also of a run with other rows or peers, or where one of these failed."""
    data = figures._result(figures.GPU_RESULT)
    table = figures.gpu()
    for row in data["results"]:
        assert f"\n| {row['name']} |" in table
        if row["summary"]["ratio"]:
            assert figures.gpu("ratio", row["name"]) in table
    for bar in data["bars"]:
        if bar["value"]:
            assert f"{bar['name']}: {figures.gpu('bar', bar['name'])} {bar['unit']}" in table
    assert figures.gpu("right").endswith(f" of {len(data['results'])}")


def test_exponents() -> None:
    counts = (1, 10, 20, 40, 80)
    for power in (0.0, 1.0, 2.0):
        series = growth.Series("a", "b", counts, tuple(float(n) ** power for n in counts))
        assert series.exponent() == pytest.approx(power)
        assert 1.2 < series.n_log_n() < 1.4


def test_nothing_grows_much_faster_than_n_log_n() -> None:
    """In the committed result; a pass of LLVM is known to, for long rows of loops."""
    worse = {
        (one.subject, one.part)
        for one in growth.load()
        if one.exponent() > one.n_log_n() + 0.1 and max(one.seconds) > 1e-2
    }
    assert not worse
    looked_up = {one.part: one for one in growth.load() if one.subject == "cache"}["look-up"]
    assert max(looked_up.n) == 10**6
    assert max(looked_up.seconds) < 1e-3
