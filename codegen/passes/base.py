"""What every pass is, and how it refuses an option.

An option of one nest stands in a module of its own: the pass; ``why_not_<done>``, which says in a
sentence why the nest cannot have it, or None if it can; and, where loops change, the nest that has
it. These two apply to a nest alone, and need no more loops than they say, so that whoever chooses
options can ask before anything is scheduled. The pass refuses with that sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tcl.codegen.loopir import ir
from tcl.common.errors import OptionsError


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


def refuse(option: str, nest: str, reason: str | None) -> None:
    """Raise ``OptionsError`` if there is a reason why a nest cannot have an option."""
    sentence = refusal(option, nest, reason)
    if sentence is not None:
        raise OptionsError(sentence)


def refusal(option: str, nest: str, reason: str | None) -> str | None:
    """The sentence with which an option is refused; None without a reason."""
    return None if reason is None else f"{option}: nest {nest}: {reason}"


def too_many(nest: ir.Nest, sizes: tuple[int, ...]) -> str | None:
    """Why there cannot be so many sizes, or None if each has a dimension."""
    if len(sizes) <= len(nest.dims):
        return None
    return f"it has {len(nest.dims)} dimensions, {len(sizes)} sizes were given"


def why_not_along(nest: ir.Nest, mma: tuple[int, ...]) -> str | None:
    """Why nothing multiplies matrices along these dimensions (as of the option ``mma``, not empty),
    be it a tensor core or a matrix unit, or None if something may."""
    if max(mma) >= len(nest.dims):
        return f"it has {len(nest.dims)} dimensions, there is no dimension {max(mma)}"
    if nest.sequential:
        return nest.sequential
    if [nest.dims[k].reduction for k in mma] != [False, False, True][: len(mma)]:
        return "rows and columns are results, and the third dimension is a reduction"
    if nest.reduces != (len(mma) == 3):
        return "a reduction needs three dimensions, and what goes along with one two"
    return None
