"""What every pass is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tcl.codegen.loopir import ir


class Pass(Protocol):
    """A frozen dataclass whose fields are the pass's options."""

    def __call__(self, program: ir.Program) -> ir.Program:
        """The transformed program; ``OptionsError`` if the options do not fit it."""
        ...


def map_nest(program: ir.Program, name: str, change: Callable[[ir.Nest], ir.Nest]) -> ir.Program:
    """``program`` with the nest of this name changed; ``IRError`` if there is none."""
    if all(n.name != name for n in program.nests):
        raise ir.IRError(f"program {program.name} has no nest {name}")
    nests = tuple(change(n) if n.name == name else n for n in program.nests)
    return replace(program, nests=nests)
