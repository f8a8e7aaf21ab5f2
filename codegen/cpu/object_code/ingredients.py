"""What makes object code.

Code that is kept between processes is found by what made it (``Ingredients``), which is known
without scheduling or emitting anything, so that a process that finds it needs no compiler.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import llvmlite

from tcl import codegen, grammar
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.devices.cpu import CpuProfile
from tcl.common.dataclass import dataclass
from tcl.common.interrupts import system_errors_passed_over


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Everything that object code depends on."""

    definition: str
    """Canonical text of the def."""
    shapes: tuple[tuple[int | str, ...], ...]
    """Of inputs, then outputs. Of sizes that vary, as text; what they may be stands behind them."""
    strides: tuple[tuple[int, ...], ...]
    """In bytes, likewise."""
    unchecked: bool
    options: str
    """As JSON."""
    device: CpuProfile
    versions: tuple[str, ...]
    """Of the code that compiles, see ``versions``."""

    @property
    def digest(self) -> str:
        """SHA-256 of all ingredients, in hex."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def versions() -> tuple[str, ...]:
    """What compiles: the version of generated code, the state of the source files that make it,
    so that an edit is never hidden by what was kept before it, and llvmlite's version."""
    folders = (*codegen.__path__, *grammar.__path__)
    return (CODEGEN_VERSION, state_of(folders), str(llvmlite.__version__))


def state_of(folders: Iterable[str]) -> str:
    """A hash of all sources in some folders, however deep: of their names, sizes and times."""
    return hashlib.sha256(repr(sorted(_sources(folders))).encode()).hexdigest()


def _sources(folders: Iterable[str], inside: str = "") -> Iterator[tuple[str, int, int]]:
    for folder in folders:
        path = f"{inside}/{os.path.basename(folder)}"
        with system_errors_passed_over(), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    yield f"{path}/{entry.name}", status.st_size, status.st_mtime_ns
                elif entry.is_dir():
                    yield from _sources([entry.path], path)
