"""README's first command, its pictures, and the programs that draw them."""

from __future__ import annotations

import html
import json
import logging
import re
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from known_machine import known_machine
from places import ROOT

from tcl.arrays.annotations import parse_sizes
from tcl.bench.report import Report
from tcl.bench.summary import geometric_mean
from tcl.cli import main
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.selection.best_options import DEFAULT
from tcl.tuner.cache.tuning_cache import default_path

if not (ROOT / "README.md").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

from benchmarks import panel, picture

README = (ROOT / "README.md").read_text("utf-8")
PICTURES = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)


def words(path: Path) -> str:
    """The text of a picture, which has to be well-formed and to hold nothing from elsewhere."""
    text = path.read_text("utf-8")
    ElementTree.fromstring(text)
    assert not re.search(r"url\(\"?http|href=\"http", text)
    return html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\xa0", " ")


def test_readme_shows_the_panel_and_the_benchmark() -> None:
    assert {ROOT / p for p in PICTURES} >= {panel.PICTURE, picture.PICTURE}
    for path in PICTURES:
        words(ROOT / path)


def test_the_first_command_tunes_what_numpy_has_no_function_for() -> None:
    found = panel.COMMAND.search(README)
    assert found is not None
    _, file, _, entry, _, sizes, *_ = found[1].split()
    definition = check((ROOT / file).read_text("utf-8"))[entry]
    assert len(definition.statements) >= 2
    parse_sizes(sizes, definition)


@pytest.mark.usefixtures("own_cache", "searches_in_threads")
def test_the_program_behind_it_runs_what_it_tunes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both as they stand, but that the command tunes for less long, beside nobody, and never finds
    that the default is the best."""
    monkeypatch.chdir(ROOT)
    known_machine(tmp_path)
    monkeypatch.setattr("tcl.cli.tuned.TuneSession._beside", lambda self, decision: {})
    found = panel.COMMAND.search(README)
    assert found is not None
    program = README[found.end() :].partition("```python\n")[2].partition("```")[0]
    command = re.sub(
        "--time-limit [0-9]+", "--generations 1 --population 2 --seed 1 -j 1", found[1]
    )
    done = CliRunner().invoke(main, [*command.split(), "--fix", "s0.lanes=4"])
    assert done.exit_code == 0, done.output
    (options,) = re.findall("^options: (.*)$", done.output, re.MULTILINE)
    assert MappingOptions.from_json(options) != DEFAULT
    with caplog.at_level(logging.DEBUG, "tcl.executors"), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(program, {})
    (said,) = (r.getMessage() for r in caplog.records if r.name == "tcl.executors")
    assert said.startswith("convolution on [(32, 16, 56, 56), ")
    assert said.endswith(f"options {options} (from {default_path()})")


def test_the_panel_is_of_the_first_command() -> None:
    said = words(panel.PICTURE)
    found = panel.COMMAND.search(README)
    assert found is not None
    assert f"tcl {found[1]}" in said and r"\x1b" not in said
    for part in ("as fast as NumPy", "as fast as torch", "saved in"):
        assert part in said


def test_the_benchmark_is_of_the_committed_result() -> None:
    report = Report.from_json(json.loads(picture.RESULT.read_text("utf-8")))
    said = words(picture.PICTURE)
    threads = max(report.ceilings)
    for row in picture.suite(report, threads):
        assert row.name in said
        assert set(picture.ratios(row)) == set(picture.COLOURS) & set(row.entries)
    mean = geometric_mean(row.ratio() for row in picture.suite(report, threads))
    assert f"{mean:.2f} times as long" in said
    assert report.date[:10] in said


def test_the_table_is_of_the_committed_result() -> None:
    report = Report.from_json(json.loads(picture.TABLE_RESULT.read_text("utf-8")))
    (table,) = picture.IN_README.findall(README)
    assert table == picture.readme_table(report) and table.count("\n|") >= 6


def test_ratios_are_of_the_best_known_options() -> None:
    report = Report.from_json(json.loads(picture.RESULT.read_text("utf-8")))
    for row in report.results:
        assert min(picture.ratios(row).values()) == pytest.approx(row.ratio())


def test_the_screen_is_what_is_left_in_the_end() -> None:
    again = "\r\x1b[2K\x1b[1A\x1b[2K"  # a live display of two lines begins anew
    stream = (
        f"before\r\n\x1b[?25lone\r\ntwo{again}\x1b[1mthree\x1b[0m\r\nfour\r\n\x1b[?25hafter\r\n"
    )
    assert panel.screen(stream) == ["before", "\x1b[1mthree\x1b[0m", "four", "after"]
    said = panel.drawn(panel.screen(stream), "it")
    assert "three" in said
    assert "font-face" not in said


def test_a_command_is_run_on_a_terminal(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); sys.exit(3)"
    assert panel.on_terminal([sys.executable, "-c", code], str(tmp_path)) == (
        3,
        f"True {panel.WIDTH}\r\n",
    )


def test_drawing_the_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = Report.from_json(json.loads(picture.RESULT.read_text("utf-8")))
    picture.draw(report, 2, tmp_path / "one.svg")
    assert words(tmp_path / "one.svg").split() == words(picture.PICTURE).split()
