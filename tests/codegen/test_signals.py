"""Ctrl+C at any moment: what runs is whole or ``KeyboardInterrupt``, never something else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tuner_fakes import HERE

from tcl.codegen.cpu.abi import ALONE, ENTRY
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.interrupts import deferred

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="POSIX signals")


def outcome(kind: str, seed: int, count: int) -> dict[str, Any]:
    """What came of so many interrupted programs, in a process of its own."""
    command = [sys.executable, str(HERE / "interrupting.py"), kind, str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(kind, seed, counts)
    assert counts["right"] + counts["interrupted"] + len(counts["wrong"]) == count
    return counts


@pytest.mark.parametrize(("kind", "count"), [("warm", 200), ("cold", 20), ("kernels", 20)])
def test_interrupted_at_random(kind: str, count: int) -> None:
    assert outcome(kind, 1, count)["wrong"] == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("warm", 3000), ("cold", 2000), ("kernels", 500)])
def test_interrupted_at_random_often(kind: str, count: int) -> None:
    counts = outcome(kind, 2, count)
    assert counts["wrong"] == []
    assert min(counts["right"], counts["interrupted"]) > count / 20


def test_signals_wait_until_the_end() -> None:
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)
    came: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: came.append(number))
    within = signal.getsignal(signal.SIGALRM)
    try:
        with pytest.raises(KeyboardInterrupt):
            _signalled_twice(came)
        assert came == [signal.SIGALRM]
        assert signal.getsignal(signal.SIGALRM) is within
    finally:
        signal.signal(signal.SIGALRM, before[0])
    assert signal.getsignal(signal.SIGINT) is before[1]


def _signalled_twice(came: list[int]) -> None:
    with deferred():
        with deferred():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGALRM)
        assert came == []
    raise AssertionError("after what was to be whole")


def _signalled_and_failed() -> None:
    with deferred():
        signal.raise_signal(signal.SIGINT)
        raise ValueError


def test_an_error_and_a_signal() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        _signalled_and_failed()
    assert isinstance(caught.value.__context__, ValueError)


def test_other_threads_have_no_signals_to_wait_for() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def work() -> None:
        with deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_llvmlite_is_not_interrupted_while_it_frees(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it frees would be freed once more when the object goes."""
    from llvmlite.binding import ffi

    host_cpu()
    begun = ended = 0
    close: Callable[..., None] = ffi.OutputString.close

    def interrupted(self: Any) -> None:
        nonlocal begun, ended
        begun += 1
        signal.raise_signal(signal.SIGINT)
        close(self)
        ended += 1

    monkeypatch.setattr(ffi.OutputString, "close", interrupted)
    text = f"define i32 @{ENTRY}(ptr %x) {{ ret i32 0 }}\ndefine void @{ALONE}() {{ ret void }}"
    with pytest.raises(KeyboardInterrupt):
        compile_object(text, host_cpu())
    assert begun == ended > 0
