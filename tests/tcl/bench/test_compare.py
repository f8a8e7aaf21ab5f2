"""``tcl bench compare``: a regression is told from noise."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tcl.bench.ceilings import Ceilings
from tcl.bench.compare import Comparison, compare
from tcl.bench.report import Report
from tcl.bench.summary import Entry, Result
from tcl.bench.task import DEFAULT
from tcl.cli import main

ROWS = 20
BETWEEN, WITHIN = 0.02, 0.015
"""Standard deviations of logarithms, between runs and of samples."""


def report(
    rng: random.Random,
    slower: Mapping[int, float] | None = None,
    *,
    runs: int = 3,
    machine: float = 1.0,
    peers: tuple[str, ...] = ("NumPy", "torch", "JAX"),
) -> Report:
    """Rows that take 1, 2, 3 ... ms; some of ours so many times as long, and all on a machine."""
    results = []
    for run in range(1, runs + 1):
        for row in range(ROWS):
            entries = {}
            for name in (DEFAULT, *peers):
                seconds = 1e-3 * (row + 1) * machine * rng.lognormvariate(0, BETWEEN)
                if name == DEFAULT and slower:
                    seconds *= slower.get(row, 1.0)
                samples = [seconds * rng.lognormvariate(0, WITHIN) for _ in range(5)]
                samples[rng.randrange(5)] *= rng.choice((1, 1, 1, 1.5))  # something got between
                entries[name] = Entry("a form", 1, tuple(samples))
            results.append(
                Result(f"row {row}", "sums", "f", "f", {}, 1, 1, 1, 1, entries, {}, run=run)
            )
    versions = {"numpy": "2", "torch": "2", "jax": "1"}
    ceilings = {1: (Ceilings(1e9, 1e9, 1e9),)}
    return Report("2026", {"cpu": "one"}, versions, {"runs": runs}, ceilings, tuple(results))


def verdicts(found: Comparison) -> list[str]:
    """Row by row."""
    return [change.verdict for change in found.changes]


@pytest.mark.parametrize("peers", [("NumPy", "torch", "JAX"), ()])
def test_noise_is_told_from_slowdowns(peers: tuple[str, ...]) -> None:
    rng = random.Random(1)
    times, alarms, hits, wanted = 60, 0, 0, 0
    for _ in range(times):
        old = report(rng, peers=peers)
        same = compare(old, report(rng, peers=peers))
        alarms += bool({"slower", "faster"} & {*verdicts(same)})
        which = rng.sample(range(ROWS), 4)
        worse = report(rng, dict.fromkeys(which, 1.1), peers=peers)
        found = compare(old, worse).slower(0.03)
        hits += sum(change.place[0] in {f"row {k}" for k in which} for change in found)
        wanted += len(which)
    assert alarms <= 0.05 * times
    assert hits >= 0.95 * wanted


def test_a_slower_machine_is_no_regression() -> None:
    rng = random.Random(2)
    found = compare(report(rng), report(rng, machine=1.3))
    assert found.machine == pytest.approx(1.3, rel=0.02)
    assert "slower" not in verdicts(found)
    alone = compare(report(rng, peers=()), report(rng, machine=1.3, peers=()))
    assert alone.controls == 0
    assert set(verdicts(alone)) == {"slower"}


def test_a_peer_of_another_version_is_no_control() -> None:
    rng = random.Random(3)
    old, new = report(rng), report(rng)
    versions = {**new.versions, "torch": "3"}
    found = compare(old, replace(new, versions=versions, machine={"cpu": "two"}))
    assert found.controls == 2 * ROWS
    assert "torch has another version, so it cannot show what the machine did" in found.differences
    assert "machine cpu: one, then two" in found.differences


def test_one_run_tells_less_than_its_samples_do() -> None:
    old = report(random.Random(4), runs=1, peers=())
    assert set(verdicts(compare(old, old))) == {"unknown"}
    assert set(verdicts(compare(old, old, tolerance=0.2))) == {"same"}


def test_the_command(tmp_path: Path) -> None:
    rng = random.Random(5)
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    after = report(rng, {3: 1.5})
    old.write_text(report(rng).text())
    new.write_text(replace(after, results=after.results[1:ROWS]).text())
    command = ["bench", "compare", str(old), str(new)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    first = done.output.splitlines()[1]
    assert first.startswith("row 3, 1 thread, aligned arrays, default options ")
    assert first.split()[-1] == "slower"
    assert "1 row slower by more than 3 %" in done.output
    assert "only the old report has row 0, 1 thread, aligned arrays, default" in done.output
    assert CliRunner().invoke(main, [*command, "--tolerance", "90"]).exit_code == 0


def test_a_kernel_that_fails_is_no_improvement(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    first = report(random.Random(8), runs=1)
    entries = dict(first.results[0].entries)
    entries[DEFAULT] = Entry("", 1, (), error="it did not compile")
    rows = (replace(first.results[0], entries=entries), *first.results[1:])
    old.write_text(first.text())
    new.write_text(replace(first, results=rows).text())
    done = CliRunner().invoke(main, ["bench", "compare", str(old), str(new)])
    assert done.exit_code == 1
    assert f"1 kernel failed in {new}: row 0, 1 thread" in done.output
    assert CliRunner().invoke(main, ["bench", "compare", str(new), str(old)]).exit_code == 0


@pytest.mark.parametrize("sample", ["NaN", "Infinity", "0.0", "-1.0", '"a"', "null"])
def test_what_is_no_time_is_refused(tmp_path: Path, sample: str) -> None:
    path = tmp_path / "bench.json"
    data = json.loads(report(random.Random(9), runs=1).text())
    data["results"][0]["entries"][DEFAULT]["samples"][1] = "here"
    path.write_text(json.dumps(data).replace('"here"', sample))
    done = CliRunner().invoke(main, ["bench", "compare", str(path), str(path)])
    assert done.exit_code == 1
    assert "the report is damaged: row 0, tcl default: the sample" in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "this is not a report of schema"),
        (json.dumps({"schema": 2}), "the report is damaged: 'date' is missing"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_report_is_one_sentence(tmp_path: Path, text: str | None, said: str) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(report(random.Random(6), runs=1).text())
    if text is not None:
        bad.write_text(text)
    for pair in ((good, bad), (bad, good)):
        done = CliRunner().invoke(main, ["bench", "compare", *map(str, pair)])
        assert done.exit_code == 1
        assert str(bad) in done.output
        assert said in done.output
        assert done.output.count("\n") == 1


def test_reports_without_a_common_row_are_refused(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    one = report(random.Random(7), runs=1)
    old.write_text(one.text())
    others = tuple(replace(r, name=f"other {r.name}") for r in one.results)
    new.write_text(replace(one, results=others).text())
    done = CliRunner().invoke(main, ["bench", "compare", str(old), str(new)])
    assert (done.exit_code, "have no row in common" in done.output) == (1, True)
