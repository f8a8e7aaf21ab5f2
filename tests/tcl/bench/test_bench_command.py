"""``tcl bench cpu``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Ended

from tcl.bench.ceilings import Ceilings
from tcl.bench.report import Report
from tcl.bench.run import BenchSettings
from tcl.bench.summary import Entry, Result
from tcl.bench.task import DEFAULT, TUNED
from tcl.cli import main
from tcl.tuner.cache.tuning_cache import TuningCache


def result(name: str, placement: str = "aligned", threads: int = 1, error: str = "") -> Result:
    entries = {
        DEFAULT: Entry("default", threads, () if error else (2e-3,), error=error),
        TUNED: Entry("tuned", threads, (1e-3 if placement == "aligned" else 1.5e-3,)),
        "NumPy": Entry("matmul", threads, (3e-3,)),
        "torch": Entry("mm", threads, (), error="RuntimeError: not today"),
    }
    facts = {"compile_seconds": [0.3, 0.1, 0.2]}
    return Result(
        name, "sums", "f", "d", {"N": 1}, threads, 100, 10, 10, entries, facts, placement=placement
    )


def report(*results: Result) -> Report:
    ceilings = {n: (Ceilings(1e10, 1e10, 1e11, {"int8": 4e11}),) for n in (1, 2)}
    settings = {"cold": False, "rounds": 3, "runs": 1, "threads": [1, 2]}
    absent, left_out = {"Halide": "halide is not installed"}, {"x int8": "too little memory"}
    return Report("2020-01-01", {"cpu": "x"}, {}, settings, ceilings, results, absent, left_out)


WHOLE = report(*(result("a", p, n) for n in (1, 2) for p in ("aligned", "numpy")))


def bench(*arguments: str | Path) -> Ended:
    return CliRunner().invoke(main, ["bench", "cpu", *map(str, arguments)])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[BenchSettings]:
    """What runs are asked for, of which each finds ``WHOLE``."""
    asked: list[BenchSettings] = []

    def run(rows: object, settings: BenchSettings, say: object, **more: Any) -> Report:
        asked.append(settings)
        return WHOLE

    monkeypatch.setattr("tcl.cli.bench.run", run)
    return asked


def test_command_lists_and_refuses() -> None:
    listed = bench("--list", "--rows", "conv*")
    assert listed.exit_code == 0
    assert listed.stdout.split("\n")[0].split()[:2] == ["conv", "3x3"]
    for wrong in (
        ("--rows", "nothing"),
        ("--threads", "none"),
        ("--peers", "abacus"),
        ("--placement", "anywhere"),
        ("--runs", "0"),
        ("--resume",),
    ):
        assert bench(*wrong).exit_code == 2
    named = bench("--rows", "softmax,nothing")
    assert "no row matches 'nothing'" in named.stderr


def test_options_reach_the_run(measured: list[BenchSettings]) -> None:
    chosen = ("--threads", "1,2", "--placement", "both", "--runs", "3", "--cold", "--rounds", "4")
    assert bench(*chosen).exit_code == 0
    expected = BenchSettings((1, 2), ("aligned", "numpy"), 3, cold=True, rounds=4)
    assert measured == [expected]
    bench("--quick", "--placement", "numpy")
    assert measured[1] == BenchSettings.quick(placements=("numpy",))


def test_the_table_has_every_placement_and_number_of_threads(measured: list[BenchSettings]) -> None:
    said = bench("--rows", "softmax").stdout
    headings, cells = (
        next(line.split() for line in said.splitlines() if line.startswith(f"{first} "))
        for first in ("work", "a")
    )
    assert " ".join(headings).startswith("work NumPy torch tcl thr ratio ratio +16 default")
    assert "def/tuned +16" in " ".join(headings)
    assert cells[:4] == ["a", "3.00", "ms", "failed"]
    ratios = cells[cells.index("1", 6) :][1:8]
    assert ratios == ["3.00", "2.00", "1.50", "1.50", "2.00", "1.33", "1.50"]
    means = next(line for line in said.splitlines() if line.startswith("all "))
    assert len(means.split()) == 1 + 2 * 7
    assert "400 GOP/s int8" in said
    assert "1 thread: best peer / tuned, suite, numpy arrays: 2.00, at least 1.40: met" in said
    assert "2 threads: numpy / aligned arrays, every row: 1.50, at most 1.15: missed (a" in said
    assert "without Halide: halide is not installed" in said
    assert "without x int8: too little memory" in said
    assert "a, 1 thread, numpy arrays, torch: RuntimeError: not today" in said


def test_wrong_results_of_ours_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(result("a", error="output C differs"))
    monkeypatch.setattr("tcl.cli.bench.run", lambda *given, **more: found)
    done = bench()
    assert done.exit_code == 1
    assert "some results of tcl are missing or wrong" in done.stderr
    nothing = report()
    monkeypatch.setattr("tcl.cli.bench.run", lambda *given, **more: nothing)
    done = bench()
    assert done.exit_code == 1
    assert done.stderr.endswith("nothing was measured: too little memory\n")


def test_an_interrupted_run_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    early = report(result("a"))

    def run(rows: object, settings: object, say: object, **more: Any) -> Report:
        assert more["before"] is None or more["before"].results == early.results
        more["finished"](early)
        raise KeyboardInterrupt

    monkeypatch.setattr("tcl.cli.bench.run", run)
    for more in ((), ("--resume",)):
        done = bench("--rows", "softmax,layernorm", "--threads", "1,2", "--out", tmp_path, *more)
        assert done.exit_code == 130
        assert "interrupted after 1 of 4 measurements" in done.stderr
        assert "3.00 ms" in done.stdout
        kept = Report.from_json(json.loads((tmp_path / "bench.json").read_text()))
        assert kept.results == early.results
    monkeypatch.setattr("tcl.cli.bench.run", interrupted)
    assert bench().exit_code == 130


def interrupted(*given: object, **more: object) -> Report:
    raise KeyboardInterrupt


def test_a_folder_that_cannot_be_written(measured: list[BenchSettings], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        done = bench("--out", folder)
        assert done.exit_code == 1
        assert f"the folder {folder} cannot be used" in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr
    assert measured == []
    (tmp_path / "bench.json").write_text("{")
    done = bench("--out", tmp_path, "--resume")
    assert done.exit_code == 1
    assert "is not JSON; remove it" in done.stderr
    (tmp_path / "bench.json").write_text("[]")
    done = bench("--out", tmp_path, "--resume")
    assert done.exit_code == 1
    said = done.stderr.replace("\n", " ")
    assert "bench.json: this is not a report of schema 2: None; remove it" in said


def test_command_measures(tmp_path: Path) -> None:
    """The command as users have it, in a process of its own."""
    out = tmp_path / "out"
    TuningCache(tmp_path / "empty.db").check_writable()
    arguments = (
        "--rows", "MLP3", "--peers", "numpy", "--quick", "--rounds", "1", "--cache",
        tmp_path / "empty.db", "--out", out,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tcl", "bench", "cpu", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warm cache" in done.stdout
    found = Report.from_json(json.loads((out / "bench.json").read_text()))
    assert [r.name for r in found.results] == ["MLP3"]
    assert set(found.results[0].entries) == {DEFAULT, "NumPy"}
    assert "numpy" in found.versions
