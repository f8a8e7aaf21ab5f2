"""The programs of ``examples/``: each is right, silent but for its findings, and would notice."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import of_brief_searches
from places import EXAMPLES

from tcl.bench.turns import compare_in_turns
from tcl.codegen.cpu.run.chunked import ChunkedCall
from tcl.executors.executor import Executor
from tcl.torch.operator import Operator

PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
FASTER = re.compile(r"^(\S.*?) +[\d.,]+ (?:[mµu]?s|ns) +[\d.,]+ [×x]$", re.MULTILINE)

ALONE = ("tuned_convolution", "tuned_with_dask", "picture_stencil")
"""Those that run in a process of their own, as a user runs them."""

each = pytest.mark.parametrize("name", PROGRAMS)


def run(name: str, folder: Path, *arguments: str) -> str:
    """What it prints, run as a user would run it; nothing may go wrong or be said besides."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        cwd=folder,
        env=of_brief_searches(TCL_CACHE_DIR=str(folder / "cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    # A machine that is busy with something else is no mistake of the example.
    said = re.sub(r".*: the device (is|seems) busy: .*\n.*\n", "", done.stderr)
    assert (done.returncode, said) == (0, ""), done.stdout + done.stderr
    return done.stdout


def compares_itself(said: str) -> bool:
    contenders = FASTER.findall(said)
    others = any(c.startswith(("NumPy", "torch")) for c in contenders[1:])
    return contenders[0].startswith("tcl") and others


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ALONE])
def test_it_is_right_and_compares_itself(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--small"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A machine that is busy with something else is no mistake of the example.
        warnings.filterwarnings("ignore", ".*the device (is|seems) busy")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capfd.readouterr()
    assert said.err == ""
    assert compares_itself(said.out)


def test_what_is_tuned_is_used_by_the_next_process(tmp_path: Path) -> None:
    said = run("tuned_convolution", tmp_path, "--small")
    assert compares_itself(said)
    tuned, used = (re.search(rf"^{s}: (.*)$", said, re.M) for s in ("tuned", "a .* uses"))
    assert tuned and used and tuned[1] == used[1]


def test_a_cluster_tunes(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    said = run("tuned_with_dask", tmp_path, "--small")
    assert compares_itself(said) and said.startswith("2 workers on 1 machine\n")


@each
def test_it_notices_a_wrong_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Executor._first

    def wrong(self: Executor, *arguments: Any) -> Any:
        results = right(self, *arguments)
        for array in results if isinstance(results, tuple) else (results,):
            np.add(array, 1, out=array)
        return results

    right_operator = Operator.__call__

    def wrong_operator(self: Operator, *inputs: Any) -> Any:
        return right_operator(self, *inputs) + 1

    run_all = ChunkedCall.__call__

    def half(self: ChunkedCall, total: int, chunk: int, words: Any) -> None:
        run_all(self, total // 2, chunk, words)

    monkeypatch.setattr(Executor, "_first", wrong)
    monkeypatch.setattr(Operator, "__call__", wrong_operator)
    monkeypatch.setattr(ChunkedCall, "__call__", half)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    later = ["--later"] if name == "tuned_convolution" else []  # the process that looks at results
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--small", *later])
    with pytest.raises((AssertionError, IndexError)):  # a place that there is not, for argmin
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def test_the_picture_is_smoother_afterwards(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    assert compares_itself(run("picture_stencil", tmp_path, "--small", "--folder", "saved"))
    before, after = (
        np.asarray(image.open(tmp_path / "saved" / f"{name}.png"), np.float64)
        for name in ("before", "after")
    )
    assert before.shape == after.shape == (40, 60)
    assert np.abs(np.diff(after)).sum() < 0.75 * np.abs(np.diff(before)).sum()


@each
def test_it_says_what_one_learns_and_is_listed(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text("utf-8")
    explanation = text.split('"""')[1]
    assert f"python examples/{name}.py" in explanation
    assert len(explanation.split()) > 30
    assert len(text.splitlines()) <= 120
    assert f"| `{name}.py` |" in (EXAMPLES / "README.md").read_text("utf-8")


def test_there_are_eight() -> None:
    assert len(PROGRAMS) >= 8


def test_contenders_take_turns(capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []
    found = compare_in_turns({n: lambda n=n: order.append(n) for n in ("one", "other")}, rounds=3)  # type: ignore[misc]
    turns = [n for n, before in zip(order, ["", *order], strict=False) if n != before]
    assert turns == ["one", "other"] * 3
    assert list(found) == FASTER.findall(capsys.readouterr().out) == ["one", "other"]
    assert min(found.values()) > 0
