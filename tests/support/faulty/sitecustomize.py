"""Python imports this when it starts, if this folder is on ``PYTHONPATH``: in ``tcl tune``, and in
the worker processes that it starts. It times candidates briefly, holds finals of one brief session,
and has what stands beside a winner timed in one round, as nothing is decided by any of them. It can
make kernels of the CPU backend misbehave.

``TCL_TEST_FAULTS`` names a folder, if any do. The n-th options that are compiled, counted from 0
over all processes, behave as the file ``plan.json`` there says. ``TCL_TEST_REFERENCE``: seconds
that the reference takes longer, by which a search judges how long to wait for a kernel.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.abc
import importlib.machinery
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_MARK = b"faulty kernel: "


class _Patcher(importlib.abc.MetaPathFinder):
    """Patches modules when they are imported: importing them now would cost every process."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _PATCHES:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert found is not None
        assert found.loader is not None
        execute = found.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _PATCHES[name](module)

        found.loader.exec_module = exec_module  # type: ignore[method-assign]
        return found


def _patch(module: Any) -> None:
    backend = module.CpuBackend
    compile_, reference = backend.compile, backend.reference

    def compile(self: Any, options: Any) -> bytes:
        kind = _kind(options.to_json())
        _FAULTS_OF_THE_COMPILER.get(kind, lambda: None)()
        code: bytes = compile_(self, options)
        return _MARK + kind.encode() + b"\0" + code if kind in _FAULTS else code

    def reference_(self: Any, inputs: Any, outputs: Any) -> Any:
        (Path(os.environ["TCL_TEST_FAULTS"]) / "began reference").touch()
        time.sleep(float(os.environ.get("TCL_TEST_REFERENCE", "0")))
        return reference(self, inputs, outputs)

    backend.compile, backend.reference = compile, reference_


def _patch_runner(module: Any) -> None:
    load = module.CpuRunner.load

    def load_(self: Any, code: bytes) -> Any:
        if not code.startswith(_MARK):
            return load(self, code)
        kind, _, code = code.removeprefix(_MARK).partition(b"\0")
        return _noting(kind.decode(), _FAULTS[kind.decode()](load(self, code)))

    module.CpuRunner.load = load_


def _in_one_round(module: Any) -> None:
    module.interleaved.__defaults__ = module.compare_in_turns.__defaults__ = (1,)


def _briefly(module: Any) -> None:
    settings = module.MeasureSettings
    given = dict(zip(settings.__dataclass_fields__, settings.__init__.__defaults__, strict=True))
    settings.__init__.__defaults__ = (*{**given, "samples": 3, "budget": 0.01}.values(),)
    module.measure.__kwdefaults__["settings"] = settings()


def _one_session(module: Any) -> None:
    module.USUAL = module.RaceRules(least=1, most=1, rounds=5, budget=0.05)


def _patiently(module: Any) -> None:
    """No kernel that ends is taken for one that does not, however busy the machine is."""
    module.LEAST_PATIENCE = 60.0


_PATCHES: dict[str, Callable[[Any], None]] = {
    "tcl.bench.turns": _in_one_round,
    "tcl.tuner.measure.timing": _briefly,
    "tcl.tuner.measure.paired": _one_session,
    "tcl.tuner.measure.evaluate": _patiently,
}
if "TCL_TEST_FAULTS" in os.environ:
    _PATCHES["tcl.backends.program_backend"] = _patch
    _PATCHES["tcl.backends.sent"] = _patch_runner


def _kind(options: str) -> str:
    """How these options are to behave. They are numbered in the order of their arrival."""
    folder = Path(os.environ["TCL_TEST_FAULTS"])
    plan: dict[str, str] = json.loads((folder / "plan.json").read_text())
    name = folder / hashlib.sha256(options.encode()).hexdigest()
    if not name.exists():
        for number in itertools.count():
            try:
                (folder / f"taken-{number}").mkdir()
            except FileExistsError:
                continue
            name.write_text(str(number))
            break
    return plan.get(name.read_text(), "")


# What compilers do.


def _eat() -> None:
    """More than anybody may have, and no more than that, until somebody looks."""
    import numpy as np

    held = np.ones(1_500_000_000, np.uint8)
    time.sleep(1000)
    del held


_FAULTS_OF_THE_COMPILER: dict[str, Callable[[], object]] = {
    "compiler crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "compiler eats memory": _eat,
}


# What kernels do.

_Call = Callable[[Any, Any], object]


def _noting(kind: str, kernel: _Call) -> _Call:
    """Leaves a file when it begins, so that a test need not guess when."""

    def call(inputs: Any, outputs: Any) -> None:
        (Path(os.environ["TCL_TEST_FAULTS"]) / f"began {kind}").touch()
        # As machine code that does not look for what would end it.
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        kernel(inputs, outputs)

    return call


def _raises(kernel: _Call) -> _Call:
    def call(inputs: Any, outputs: Any) -> None:
        raise RuntimeError("the kernel\nraised")

    return call


def _segfaults(kernel: _Call) -> _Call:
    return lambda inputs, outputs: ctypes.string_at(0)


def _exits(kernel: _Call) -> _Call:
    return lambda inputs, outputs: os._exit(3)


def _hangs(kernel: _Call) -> _Call:
    # For ever, and without giving other threads of its process a chance.
    return lambda inputs, outputs: ctypes.PyDLL(None).pause()


def _waits(kernel: _Call, mark: str = "go on") -> _Call:
    def call(inputs: Any, outputs: Any) -> None:
        while not (Path(os.environ["TCL_TEST_FAULTS"]) / mark).exists():
            time.sleep(0.01)
        kernel(inputs, outputs)

    return call


def _waits_again(kernel: _Call) -> _Call:
    return _waits(kernel, "go on again")


def _eats_memory(kernel: _Call) -> _Call:
    return lambda inputs, outputs: _eat()


def _is_wrong(kernel: _Call) -> _Call:
    """One element, and faster than any honest kernel."""
    return _fast(kernel, wrong_from=0)


def _is_wrong_later(kernel: _Call) -> _Call:
    return _fast(kernel, wrong_from=1)


def _fast(kernel: _Call, wrong_from: int) -> _Call:
    calls = itertools.count()

    def call(inputs: Any, outputs: Any) -> None:
        number = next(calls)
        if number == 0:
            kernel(inputs, outputs)
        if number >= wrong_from:
            outputs[0].flat[1] += 1.0

    return call


_FAULTS: dict[str, Callable[[_Call], _Call]] = {
    "raises": _raises,
    "segfaults": _segfaults,
    "exits": _exits,
    "hangs": _hangs,
    "waits": _waits,
    "waits again": _waits_again,
    "eats memory": _eats_memory,
    "is wrong": _is_wrong,
    "is wrong later": _is_wrong_later,
}

sys.meta_path.insert(0, _Patcher())
