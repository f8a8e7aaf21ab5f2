"""What is left of classes when a process forks, is interrupted, or ends in a compilation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.codegen.cpu.run import varying as of_classes
from tcl.grammar.sizes import polynomials, varying

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
PROGRAM = """
import os, signal, sys
import numpy as np
import tcl
from tcl.codegen.common import store
from tcl.codegen.cpu.run import varying as of_classes

made = []
compiled = of_classes._compiled

def kill(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def counted(*arguments):
    if sys.argv[2] == "compiling":
        kill()
    made.append(arguments)
    return compiled(*arguments)

of_classes._compiled = counted
if sys.argv[2] == "keeping":
    store.os.rename = kill
t = tcl.define(sys.argv[1], varying=("M",), threads=1)
for m in (17, 40, 32, 33, 64):
    a, b = np.full((m, 6), 2, "f"), np.ones((6, 7), "f")
    assert (t.mm(a, b) == 12).all()
print(len(made))
"""

posix = pytest.mark.skipif(os.name != "posix", reason="processes fork and are killed as in POSIX")
pytestmark = pytest.mark.usefixtures("own_cache")


def process(end: str = "") -> subprocess.CompletedProcess[str]:
    """Another process, with the same cache folder, that uses two classes."""
    command = [sys.executable, "-c", PROGRAM, MM, end]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def right(t: Any, m: int) -> bool:
    """Whether a call at a size gives what it has to."""
    a, b = np.full((m, 6), 2, np.float32), np.ones((6, 7), np.float32)
    return bool((t.mm(a, b) == 12).all())


@posix
def test_a_second_process_compiles_nothing() -> None:
    first, second = process(), process()
    assert (first.stdout, second.stdout) == ("2\n", "0\n"), first.stderr + second.stderr


@posix
@pytest.mark.parametrize("end", ["compiling", "keeping"])
def test_a_process_that_is_killed_leaves_others_alone(end: str) -> None:
    killed, other = process(end), process()
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert other.stdout == "2\n", other.stderr


def test_ctrl_c_while_a_class_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    compiled = of_classes._compiled

    def interrupted(*arguments: Any) -> Any:
        code = compiled(*arguments)
        signal.raise_signal(signal.SIGINT)
        return code

    with monkeypatch.context() as patch:
        patch.setattr(of_classes, "_compiled", interrupted)
        with pytest.raises(KeyboardInterrupt):
            right(t, 17)
    assert all(right(t, m) for m in (17, 18, 32, 17))


@pytest.mark.parametrize("step", [1, 8, 20])
def test_ctrl_c_amid_the_arithmetic_of_sizes(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Before anything is compiled; what was remembered until then is right.
    for function in (
        polynomials.plus,
        polynomials.multiplied,
        polynomials.remembered,
        varying.over,
    ):
        function.cache_clear()
    t = tcl.define(MM, varying=("M", "K", "N"), threads=1)
    limits, asked = polynomials._limits, []

    def interrupted(*arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) == step:
            signal.raise_signal(signal.SIGINT)
        return limits(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(polynomials, "_limits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            right(t, 17)
        assert len(asked) == step
    assert all(right(t, m) for m in (17, 18, 32, 17))


@posix
def test_a_fork_between_calls() -> None:
    t = tcl.define(MM, varying=("M",), threads=2)
    assert right(t, 17)
    assert right(t, 40)
    child = os.fork()
    if child == 0:
        code = 1
        try:  # a known class at known and new sizes, and a new class
            code = 0 if all(right(t, m) for m in (17, 21, 40, 300, 32)) else 2
        finally:
            os._exit(code)
    assert all(right(t, m) for m in (21, 17, 301, 48))
    assert os.waitpid(child, 0)[1] == 0
