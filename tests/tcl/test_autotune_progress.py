"""What ``autotune`` shows while it searches, and where."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from fake_search import search
from rich.console import Console

import tcl
from tcl import tuning
from tcl.tuner.run.events import Event

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A = np.ones((4, 4), np.float32)


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that never ran, of which ``autotune`` is told."""

    class Found:
        options = None

    def tune(self: object, *given: Any, report: Any, **settings: Any) -> Found:
        for event in search(1, 4):
            if report is not None:
                report(event)
        return Found()

    monkeypatch.setattr(tuning.Tuner, "tune", tune)


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")


def test_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    tcl.autotune(MM, "mm", A, A)
    assert capsys.readouterr() == ("", "")


def test_lines_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Event[Any]] = []
    tcl.autotune(MM, "mm", A, A, progress=True, report=seen.append)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tuning mm on [4, 4], [4, 4]\n")
    assert "as fast as the untuned default, timed in turns in the finals\n" in err
    assert len(seen) > 4


def test_a_panel_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch)
    assert Console(stderr=True).is_terminal
    tcl.autotune(MM, "mm", A, A)
    out, err = capsys.readouterr()
    assert out == ""
    assert "evaluated" in err and "winner" in err


@pytest.mark.parametrize("settings", [{"progress": False}, {"report": lambda event: None}])
def test_nothing_on_a_terminal_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    on_terminal(monkeypatch)
    tcl.autotune(MM, "mm", A, A, **settings)
    assert capsys.readouterr() == ("", "")


def test_lines_in_a_notebook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "_in_notebook", lambda: True)
    tcl.autotune(MM, "mm", A, A)
    assert "generation 1/1: best so far" in capsys.readouterr().err


def test_it_is_on_or_off() -> None:
    with pytest.raises(tcl.ArgumentError, match="progress has to be True or False"):
        tcl.autotune(MM, "mm", A, A, progress="yes")  # type: ignore[arg-type]
