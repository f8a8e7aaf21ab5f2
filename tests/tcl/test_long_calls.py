"""Ctrl+C during a call that takes minutes: it ends soon, wherever it is."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.executors.call_kernels import size
from tcl.executors.executor import Executor

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="POSIX signals")

_SCRIPT = """
import signal, sys, threading, time
import numpy as np, tcl
options, threads, flat, alike, elsewhere = (eval(each) for each in sys.argv[1:])
FLAT = "def f(float(N, M) A) -> (S, R) { S(n) +=! A(n, m) * sin(float(q)) where q in 0:2000000000 }"
DEEP = '''def f(float(N, M) A) -> (S, R) {
    S(n) +=! exp(A(n, m) * A(q, m)) where q in 0:N
    R(n) +=! S(q) * A(n, m) where q in 0:N
}'''
SMALL = "def g(float(M, N) A) -> (B) { B(m) +=! A(m, n) }"
text = FLAT.replace(", R)", ")") if flat else DEEP
A = np.ones((1, 1) if flat else (40_000, 100), np.float32)
outputs = tuple(np.full(len(A), np.nan, np.float32) for _ in range(1 if flat else 2))
run = tcl.compile(text, "f", options, A, threads=threads)
if alike:  # as after a call that went well, of which it is known that it is long
    from tcl.executors.host_repeat import HostRepeat
    launcher = run.kernel(tuple(a.strides for a in (A, *outputs)))
    launcher.long = True
    places = tuple(range(len(outputs)))
    run._latest = HostRepeat(
        launcher, run._given((A,)), (outputs, outputs), run.sized, (places, run.results(places))
    )
small, G = tcl.define(SMALL, threads=threads).g, np.ones((512, 4096), np.float32)
assert (small(G) == 4096).all()
# Where Ctrl+C is ignored, as in a script's background jobs, another signal may be heard.
signal.signal(signal.SIGINT, signal.SIG_IGN if alike else signal.default_int_handler)
signal.signal(signal.SIGALRM, signal.default_int_handler)
def heard_by_another_thread():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGALRM)
for _ in range(2):
    try:
        if elsewhere:
            threading.Thread(target=heard_by_another_thread).start()
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        run(A, outputs=outputs)
    except KeyboardInterrupt:
        print("interrupted", all(np.isnan(o).any() for o in outputs))
    assert (small(G) == 4096).all()
"""


def interrupted(*arguments: object) -> None:
    """Much of the outputs is then as it was, and later calls work. It would take minutes."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *map(repr, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.splitlines() == ["interrupted True"] * 2, done.stderr


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize(
    ("options", "threads", "flat"),
    [("naive", 1, False), (None, 1, False), (None, 2, False), ("naive", 2, True)],
)
def test_a_long_call_can_be_interrupted(
    options: str | None, threads: int, flat: bool, alike: bool
) -> None:
    interrupted(options, threads, flat, alike, False)


@pytest.mark.parametrize("alike", [False, True])
def test_a_signal_that_another_thread_hears_interrupts_too(alike: bool) -> None:
    """As when a process that was stopped goes on."""
    interrupted(None, 2, False, alike, True)


def test_short_calls_need_no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    start = _thread.start_new_thread

    def noted(*arguments: Any) -> int:
        started.append(arguments)
        return start(*arguments)

    monkeypatch.setattr(_thread, "start_new_thread", noted)
    text = "def f(float(M) A) -> (B) { B(m) = A(m) + 1 }"
    A, C = np.ones(5, np.float32), np.ones((9, 2), np.float32)[:5, 0]
    f = tcl.define(text).f
    for _ in range(10):
        np.testing.assert_array_equal(f(A), A + 1)
    assert len(started) <= 1  # the first, of which nothing is known
    for _ in range(10):
        np.testing.assert_array_equal(f(C), A + 1)
    assert len(started) <= 2


def test_other_threads_run_their_calls_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals never interrupt them."""
    text = "def f(float(M) A) -> (B) { B(m) = A(m) + 1 }"
    A = np.ones(5, np.float32)
    definition = tcl.define(text).definition("f")
    executor = Executor(size(definition, (A,)), tcl.MappingOptions("naive"))
    found: list[Any] = []
    begin = threading.Event()

    def work() -> None:
        begin.wait()
        found.append(executor(A))

    thread = threading.Thread(target=work)
    thread.start()
    monkeypatch.setattr(_thread, "start_new_thread", None)
    begin.set()
    thread.join()
    np.testing.assert_array_equal(found, [A + 1])


def test_a_call_that_gets_no_thread_runs_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*arguments: Any) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", none)
    A = np.ones(5, np.float32)
    f = tcl.define("def f(float(M) A) -> (B) { B(m) = A(m) + 1 }", "naive").f
    np.testing.assert_array_equal(f(A), A + 1)


def test_an_interruption_just_after_the_end_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lock that says that the kernel has ended is then ours, and nobody gives it back."""
    text = "def f(float(M) A) -> (B) { B(m) = A(m) + 1 }"
    A = np.ones(5, np.float32)
    definition = tcl.define(text).definition("f")
    launcher = Executor(size(definition, (A,)), tcl.MappingOptions("naive")).kernel(((4,), (4,)))
    allocate = _thread.allocate_lock

    class Lock:
        def __init__(self) -> None:
            self.own, self.taken = allocate(), 0
            self.release = self.own.release

        def acquire(self, *waits: object) -> bool:
            self.taken += 1
            assert self.own.acquire(timeout=600), "it waits for ever"
            if self.taken == 2:
                raise KeyboardInterrupt
            return True

    monkeypatch.setattr(_thread, "allocate_lock", Lock)
    with pytest.raises(KeyboardInterrupt):
        launcher((A, np.empty_like(A)))
