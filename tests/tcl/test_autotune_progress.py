"""What ``autotune`` shows while it searches, and where."""

from __future__ import annotations

import logging
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_search import search
from rich.text import Text

import tcl
from tcl.codegen.devices.cpu import host_cpu
from tcl.progress.console import Console
from tcl.progress.panel import Cell
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import default_path
from tcl.tuner.run.events import Event
from tcl.tuner.run.tuner import Tuner

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A = np.ones((4, 4), np.float32)


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that never ran, of which ``autotune`` is told."""
    found = SimpleNamespace(options=tcl.MappingOptions("naive"), unsaved=0)

    def tune(self: object, start: Any, report: Any, saved: Any) -> SimpleNamespace:
        for event in search(1, 4):
            if report is not None:
                report(event)
        return found

    monkeypatch.setattr(Tuner, "tune", tune)


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


@pytest.mark.parametrize("own", [True, False])
def test_what_uses_the_result_is_said_last(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TCL_NUM_THREADS", "2")
    path = default_path() if own else tmp_path / "mine.db"
    named = {} if own else {"cache_filename": path}
    settings: dict[str, Any] = {"store_to_cache": True, "threads": 1, "progress": True, **named}
    tcl.autotune(MM, "mm", A, A, **settings)
    factory = "" if own else f", tcl.make_load_from_cache_options_factory({str(path)!r})"
    device = device_identity(host_cpu())
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"saved in {path}; tcl.define(source{factory}, threads=1) uses it for float32[4,4] "
        f"float32[4,4] (row-major), 1 thread, on {device}"
    )
    tcl.autotune(MM, "mm", A, A, progress=True)  # which keeps nothing
    assert "saved" not in capsys.readouterr().err


def test_a_tuner_shows_what_autotune_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tuner = tcl.Tuner(MM)
    tuner.tune("mm", (A, A))
    assert capsys.readouterr() == ("", "")
    tuner.tune("mm", (A, A), progress=True)
    assert capsys.readouterr().err.startswith("tuning mm on [4, 4], [4, 4]\n")
    on_terminal(monkeypatch)
    tuner.tune("mm", (A, A))
    assert "evaluated" in capsys.readouterr().err
    tuner.tune("mm", (A, A), progress=False)
    assert capsys.readouterr() == ("", "")


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


class Output:
    """One output of a notebook, as IPython shows it."""

    def __init__(self) -> None:
        self.pictures: list[str] = []

    def update(self, picture: str) -> None:
        self.pictures.append(picture)


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Output:
    """A notebook's kernel runs this, with IPython and without its widgets."""
    shown = Output()

    def display(picture: str, *, display_id: bool) -> Output:
        assert display_id and not shown.pictures
        shown.update(picture)
        return shown

    monkeypatch.setattr("tcl.progress.shown._in_notebook", lambda: True)
    module = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=module))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def test_a_panel_in_a_notebook(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    tcl.autotune(MM, "mm", A, A)
    first, last = output.pictures[0], output.pictures[-1]
    assert "tuning mm on [4, 4], [4, 4]" in first and "winner" not in first
    assert "winner" in last
    for picture in output.pictures:
        drawn = ElementTree.fromstring(picture)
        assert "\x1b" not in picture and drawn.tag == "pre"
        style = drawn.get("style", "")
        assert (
            re.search("font-family:[^;]* monospace;", style) and "white-space: pre-wrap;" in style
        )
        assert not re.search("[│─╭╮]", picture)  # the frame is the browser's
    assert "as fast as the untuned default, timed in turns in the finals" in " ".join(last.split())
    assert capsys.readouterr() == ("", "")


def test_none_in_a_notebook_that_wants_none(
    output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    tcl.autotune(MM, "mm", A, A, progress=False)
    assert output.pictures == [] and capsys.readouterr() == ("", "")


def test_a_cell_is_not_drawn_more_often_than_eyes_follow(output: Output) -> None:
    now = [0.0]
    cell = Cell(lambda: Text("<b>"), 20, lambda: now[0])
    cell.start()
    for now[0] in (0.1, 0.2, 0.3, 0.4, 0.6):
        cell.refresh()
    assert len(output.pictures) == 3
    cell.stop()
    assert "&lt;b&gt;" in output.pictures[-1] and len(output.pictures) == 4


@pytest.mark.parametrize("settings", [{}, {"progress": False}, {"report": lambda event: None}])
def test_the_lines_are_logged_for_who_listens(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    with caplog.at_level(logging.INFO, "tcl.tuning"):
        tcl.autotune(MM, "mm", A, A, **settings)
    assert {(r.name, r.levelname) for r in caplog.records} == {("tcl.tuning", "INFO")}
    assert caplog.messages[0] == "tuning mm on [4, 4], [4, 4]"
    assert caplog.messages[2].startswith("generation 1/1: best so far")
    assert caplog.messages[-1].endswith("timed in turns in the finals")
    assert capsys.readouterr() == ("", "")


def test_it_is_on_or_off() -> None:
    with pytest.raises(tcl.ArgumentError, match="progress has to be True or False"):
        tcl.autotune(MM, "mm", A, A, progress="yes")  # type: ignore[arg-type]
