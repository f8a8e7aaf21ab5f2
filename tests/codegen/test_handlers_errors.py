"""What a signal's handler raises is raised, wherever the system's refusals are passed over."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.codegen.common import store
from tcl.codegen.cpu.object_code import ingredients
from tcl.common.interrupts import system_errors_passed_over
from tcl.tuner.cache.file import open_file

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="POSIX signals")

ADD = "def add(float(M) A) -> (B) { B(m) = A(m) + 1 }"


class LateError(TimeoutError):
    """What an alarm's handler raises: an ``OSError`` that has no number."""


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    def late(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.signal(signal.SIGALRM, before)


def right(t: Any) -> bool:
    return bool((t.add(np.full(17, 2, np.float32)) == 3).all())


def alarmed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during whose first call an alarm goes off."""
    left = [1]

    def called(*arguments: Any, **options: Any) -> Any:
        if left and left.pop():
            signal.raise_signal(signal.SIGALRM)
        return function(*arguments, **options)

    return called


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (store, "private"),  # what is kept is looked for
        (store, "_write"),
        (os, "rename"),
        (os, "access"),  # whether anything can be kept
        (os, "scandir"),  # what compiles
    ],
)
def test_an_alarm_is_heard_while_kernels_are_kept(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = tcl.define(ADD, varying=("M",), threads=1)
    # So that the folder is there, and the sources are looked at anew.
    right(tcl.define(ADD.replace("1", "2"), threads=1))
    ingredients.versions.cache_clear()
    monkeypatch.setattr(module, name, alarmed(getattr(module, name)))
    with pytest.raises(LateError):
        right(t)
    folder = store.default_folder()
    assert folder is not None and not [*folder.glob("*.part"), *folder.glob(".*.part")]
    assert right(t)


def test_an_alarm_is_heard_while_a_tuning_cache_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "open", alarmed(os.open))
    with pytest.raises(LateError):
        open_file(tmp_path / "tuning.db", 1.0)
    open_file(tmp_path / "tuning.db", 1.0).close()


def test_what_the_system_refuses_is_passed_over() -> None:
    with system_errors_passed_over():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(LateError), system_errors_passed_over():
        raise LateError


AMID_IMPORTS = """
import signal, sys
import numpy as np, tcl

a, rung = np.ones(8, np.float32), []


class Ring:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not rung:
            rung.append(name)
            signal.raise_signal(signal.SIGALRM)


def handler(*_):
    text = "def g(float(N) A) -> (C) { C(n) = A(n) + 2 }"
    assert (tcl.define(text, threads=1).g(a) == 3).all()
    rung.append("handled")


signal.signal(signal.SIGALRM, handler)
sys.meta_path.insert(0, Ring())
text = "def f(float(N) A) -> (C) { C(n) = A(n) + 1 }"
assert (tcl.define(text, threads=1).f(a) == 2).all()
assert rung == [sys.argv[1], "handled"]
"""


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    "module", ["llvmlite.binding", "tcl.codegen.cpu.emit.emit", "tcl.codegen.schedule.cpu"]
)
def test_a_first_call_in_a_handler_amid_the_imports_of_one(module: str) -> None:
    subprocess.run([sys.executable, "-c", AMID_IMPORTS, module], check=True)
