"""The original's switches: what is shown of compiling and tuning, and where.

Each is a function of the package, ``tc.dump_cuda(True)``, and may as well be assigned,
``tc.dump_cuda = True``. What they show goes to the logger ``tcl.tensor_comprehensions``; how a
search goes is logged to ``tcl.tuning``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tcl.common.errors import ArgumentError
from tcl.common.log import logger
from tcl.common.shown import shown

__all__ = [
    "cuda_compiler",
    "debug_halide",
    "debug_lang",
    "debug_tc_mapper",
    "debug_tuner",
    "dump_cuda",
    "dump_ptx",
    "llvm_flags",
    "logtostderr",
    "nvcc_flags",
]

LOG = logger("tensor_comprehensions")


class _Stderr(logging.Handler):
    """Writes to what standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


class _Unseen(_Stderr):
    """Likewise, where neither a switch nor the program's own logging shows it."""

    def emit(self, record: logging.LogRecord) -> None:
        above = [h for name in ("", "tcl") for h in logging.getLogger(name).handlers]
        if LOG.name not in _shown and all(isinstance(h, logging.NullHandler) for h in above):
            super().emit(record)


@dataclass(slots=True)
class _State:
    silent: bool = False
    on: set[str] = field(default_factory=set)
    """Names of switches."""
    noted: set[str] = field(default_factory=set)
    """What ``note_once`` told about."""


state = _State()
_handler = _Stderr()
_shown: dict[str, int] = {}
"""Loggers that write to standard error as long as a switch says so, with their levels before."""
LOG.addHandler(_Unseen(logging.WARNING))

STAGES = {
    "debug_lang": "ranges",
    "debug_halide": "ir",
    "debug_tc_mapper": "plan",
    "dump_cuda": "source",
    "dump_ptx": "asm",
}
"""Switch → the stage, as of ``tcl show``, that it shows of every kernel that is compiled."""


def true_or_false(name: str, value: object) -> bool:
    """The value of a switch; ``ArgumentError`` for what is neither true nor false."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise ArgumentError(f"{name} has to be True or False, not {shown(value)}")


def text(name: str, value: object) -> str:
    """The value of a setting that is a text; ``ArgumentError`` for anything else."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} has to be a string, not {shown(value)}")
    return value


def note_once(name: str, why: str) -> None:
    """Tell, once in a process, that something of this name is accepted and changes nothing."""
    if name not in state.noted:
        state.noted.add(name)
        LOG.warning("%s changes nothing here: %s", name, why)


def _switch(name: str, about: str) -> Callable[[bool], None]:
    def switch(value: bool) -> None:
        (state.on.add if true_or_false(name, value) else state.on.discard)(name)
        _refresh()

    switch.__name__, switch.__doc__ = name, about
    return switch


debug_lang = _switch("debug_lang", "Show the ranges and shapes of every def that is compiled.")
debug_halide = _switch(
    "debug_halide", "Show every compiled def as loops, before any option is applied."
)
debug_tc_mapper = _switch("debug_tc_mapper", "Show the value of each option.")
dump_cuda = _switch("dump_cuda", "Show the source of every kernel (CUDA C++ or LLVM IR).")
dump_ptx = _switch("dump_ptx", "Show the assembly of every kernel (PTX, or the CPU's).")
debug_tuner = _switch("debug_tuner", "Show the progress of searches, line by line.")
logtostderr = _switch(
    "logtostderr", "Write the log messages of tcl to standard error, from level INFO on."
)


def _flags(name: str, known: tuple[str, ...] = ()) -> Callable[[str], None]:
    def setter(value: str) -> None:
        if text(name, value) not in (known or (value,)):
            raise ArgumentError(f"{name} has to be nvrtc, nvcc or llvm, not {shown(value)}")
        why = (
            "kernels for a CPU are compiled by LLVM and those for a GPU by NVRTC, with flags fixed"
        )
        note_once(name, why)

    setter.__name__, setter.__doc__ = name, "Accepted, and ignored with a note."
    return setter


cuda_compiler = _flags("cuda_compiler", ("nvrtc", "nvcc", "llvm"))
llvm_flags, nvcc_flags = _flags("llvm_flags"), _flags("nvcc_flags")

SWITCHES: dict[str, Callable[[Any], None]] = {name: globals()[name] for name in __all__}


def _refresh() -> None:
    """Show on standard error what is switched on: what somebody asks for is to be seen."""
    wanted = {"tcl.tuning"} if "debug_tuner" in state.on else set()
    wanted |= {LOG.name} if state.on & STAGES.keys() else set()
    if "logtostderr" in state.on:
        wanted = {"tcl"}  # that of all packages
    for name in _shown.keys() - wanted:
        logging.getLogger(name).removeHandler(_handler)
        logging.getLogger(name).setLevel(_shown.pop(name))
    for name in wanted - _shown.keys():
        _shown[name] = logging.getLogger(name).level
        logging.getLogger(name).addHandler(_handler)
        logging.getLogger(name).setLevel(logging.INFO)


@contextmanager
def logged_from(level: int | None) -> Iterator[None]:
    """Write what is logged to standard error from this level on, meanwhile."""
    if level is None or state.on & {"logtostderr", "debug_tuner"}:
        yield
        return
    log, handler = logging.getLogger("tcl"), _Stderr(level)
    before = log.level
    log.addHandler(handler)
    log.setLevel(min(level, log.getEffectiveLevel()))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class SwitchedModule(ModuleType):
    """A module in which assigning to a switch is the same as calling it."""

    @property
    def SILENT(self) -> bool:
        """Whether neither compiling nor tuning is told about."""
        return state.silent

    @SILENT.setter
    def SILENT(self, value: bool) -> None:
        state.silent = true_or_false("SILENT", value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SWITCHES and not callable(value):
            SWITCHES[name](value)
        else:
            super().__setattr__(name, value)
