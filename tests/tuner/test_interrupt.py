"""Ctrl+C once and twice, SIGTERM, ``kill -9``: on tuners in processes of their own."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tuner_fakes import KEY, FakeBackend, started, until_it_hangs

from tcl.common.errors import CompileError
from tcl.common.interrupts import deferred
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.run.stop_requests import COMMAND, FINISH, KILL, Interrupts, searches_count
from tcl.tuner.run.workplace import awaited_reference
from tcl.workers.pool import WorkerDiedError


def test_signals_are_counted_and_handlers_restored() -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    with searches_count(*COMMAND), Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert (interrupts.level, interrupts.reason) == (FINISH, "SIGTERM")
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.level == KILL
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_came_before_the_search_counts() -> None:
    came: list[int] = []
    with searches_count(*COMMAND, before=came):
        came += [signal.SIGTERM]
        with Interrupts() as interrupts:
            assert (interrupts.level, interrupts.reason) == (FINISH, "SIGTERM")
        came += [signal.SIGINT]
        with Interrupts() as interrupts:
            assert interrupts.level == KILL


def test_a_library_takes_no_signal_but_pythons_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    own: list[int] = []
    before = [signal.signal(n, lambda number, frame: own.append(number)) for n in numbers]
    try:
        with Interrupts() as interrupts:
            for number in numbers:
                signal.raise_signal(number)
            assert (interrupts.level, own) == (0, list(numbers))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            assert interrupts.level == FINISH
        with searches_count(), Interrupts(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


_SCRIPT = """
import sys
from tuner_fakes import *
os.environ[BEGAN] = sys.argv[2] + ".began"
def report(event):
    print(type(event).__name__, getattr(event, "level", ""), flush=True)
kind, path = sys.argv[1:]
tuner = Tuner(
    FakeBackend(delay=0.15), FakeSpace(*dict.fromkeys(("right", kind)), micros=range(50, 650)),
    config=TunerConfig(seed=5, generations=1000, threads=1, run_timeout=1000.0),
    cache=TuningCache(path), key=KEY, timing=QUICK,
)
start = [FakeOptions(10), FakeOptions(200), FakeOptions(300)]
result = tuner.tune(start + [FakeOptions(1, kind)] * (kind != "right"), report)
print("RESULT", result.interrupted, result.options.micros, len(result.history), flush=True)
"""


class RunningTuner:
    """A tuner in a process of its own that has measured three candidates, and is at work."""

    def __init__(self, tmp_path: Path, kind: str) -> None:
        self.path = tmp_path / "t.db"
        self.process = started(_SCRIPT, kind, str(self.path))
        self.until("CandidateDone", 3)
        if kind == "hang":
            until_it_hangs(Path(f"{self.path}.began"))  # the fourth

    def until(self, line: str, count: int = 1) -> None:
        """Read output up to the ``count``-th such line."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        while count:
            read = self.process.stdout.readline()
            assert read, self.process.stderr.read()
            count -= read.startswith(line)

    def finish(self, patience: float) -> tuple[list[str], str]:
        """The RESULT line in words, and what was written to standard error."""
        try:
            output, errors = self.process.communicate(timeout=patience)
        finally:
            self.process.kill()
        lines = [x for x in output.splitlines() if x.startswith("RESULT")]
        assert lines, errors
        return lines[0].split(), errors


def test_first_signal_finishes_what_is_in_flight(tmp_path: Path) -> None:
    tuner = RunningTuner(tmp_path, "right")
    os.killpg(tuner.process.pid, signal.SIGINT)  # as a terminal does: the whole group
    (_, interrupted, micros, count), errors = tuner.finish(600)
    assert tuner.process.returncode == 0
    assert errors == ""
    assert interrupted == "True"
    assert micros == "10"
    records = TuningCache(tuner.path).history(KEY)
    assert len(records) == int(count) >= 3
    assert all(r.verdict is Verdict.CORRECT for r in records)


def test_second_signal_kills_what_is_in_flight(tmp_path: Path) -> None:
    tuner = RunningTuner(tmp_path, "hang")
    tuner.process.send_signal(signal.SIGINT)
    tuner.until("Interrupted 1")
    time.sleep(0.5)
    assert tuner.process.poll() is None  # it waits for the candidate that hangs
    tuner.process.send_signal(signal.SIGINT)
    (_, interrupted, micros, count), errors = tuner.finish(600)
    assert tuner.process.returncode == 0
    assert errors == ""
    assert interrupted == "True"
    assert micros == "10"
    assert len(TuningCache(tuner.path).history(KEY)) == int(count) >= 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_killed_tuner_loses_nothing(tmp_path: Path, number: int) -> None:
    tuner = RunningTuner(tmp_path, "right")
    tuner.process.send_signal(number)
    tuner.process.wait()
    assert len(TuningCache(tuner.path).history(KEY)) >= 3


def test_signal_during_the_reference_returns_at_once(tmp_path: Path) -> None:
    began = tmp_path / "began"
    script = (
        "from tuner_fakes import *\n"
        f"os.environ[BEGAN] = {str(began)!r}\n"
        "result = Tuner(FakeBackend(0.0, 'hang'), FakeSpace()).tune()\n"
        "print('RESULT', result.interrupted, result.best)"
    )
    process = started(script)
    until_it_hangs(began)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert output.split() == ["RESULT", "True", "None"], errors


@pytest.mark.parametrize("over", [True, False])
def test_a_reference_whose_process_ends_with_the_search_is_no_error(over: bool) -> None:
    """A signal to all processes of a job ends it."""
    ended: Future[Any] = Future()
    ended.set_exception(WorkerDiedError("killed by SIGTERM"))
    executor: Any = SimpleNamespace(submit=lambda *_: ended)
    with nullcontext() if over else pytest.raises(CompileError, match="killed by SIGTERM"):
        assert awaited_reference(executor, FakeBackend(), lambda: over) is None


def test_script_without_main_guard_can_tune(tmp_path: Path) -> None:
    script = tmp_path / "user_script.py"
    script.write_text(
        "from tuner_fakes import *\n"
        "print('once')\n"
        "print(fake_tuner(generations=1).tune().options is not None)\n"
    )
    process = started(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    output, errors = process.communicate(timeout=600)
    assert output.split() == ["once", "True"], errors


def test_a_closed_terminal_ends_the_search_unless_that_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    try:
        with searches_count(*COMMAND), Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert (interrupts.level, interrupts.reason) == (FINISH, "SIGHUP")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under it
        with searches_count(*COMMAND), Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.level == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_set_back_though_one_of_them_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes while they are set back is for the first that was."""
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGUSR1)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    set_ = signal.signal
    came: list[int] = []

    def noted(number: int, handler: Any) -> Any:
        found = set_(number, handler)
        if handler is signal.default_int_handler and not came:
            came.append(number)
            signal.raise_signal(number)
        return found

    try:
        with monkeypatch.context() as patched:
            patched.setattr(signal, "signal", noted)
            with pytest.raises(KeyboardInterrupt), deferred():
                pass
        for number in (signal.SIGINT, signal.SIGUSR1):
            assert signal.getsignal(number) is signal.default_int_handler
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGUSR1), before, strict=True):
            signal.signal(number, handler)
