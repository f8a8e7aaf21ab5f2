"""From a sized definition to something that runs."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.common.dtypes import storage_dtype
from tcl.codegen.common.sites import Site
from tcl.codegen.reference.expressions import CheckedSite
from tcl.codegen.reference.runtime import jit_options, namespace
from tcl.codegen.reference.statements import emit_statement
from tcl.common.errors import ArgumentError, CompileError
from tcl.common.headroom import need_room_for_numba
from tcl.common.interrupts import deferred
from tcl.grammar.ranges.sized import SizedDef, SizedStatement

_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class ReferenceKernel:
    """A definition for one set of sizes, ready to run."""

    sized: SizedDef
    source: str
    """The generated Python, one function per statement."""
    _steps: tuple[_Step, ...] = field(repr=False)

    def explained(self) -> str:
        """The source after comment lines: how it runs, and where its names come from."""
        checked = self.sized.checked
        names = ", ".join([f'"{checked.name}"', *(t.name for t in checked.inputs)])
        known = namespace(False)
        used = sorted({word for word in re.findall(r"\w+", self.source) if word in known})
        lines = [
            f"# A function for each statement; tcl.reference(text, {names}) runs them.",
            "# error gets the number of a subscript that is outside of its tensor, and its value.",
            f"# {', '.join(used)}: in namespace(jit=False) of tcl.codegen.reference.runtime",
        ]
        return "\n".join([*lines[: 2 + bool(used)], "", self.source])

    def __call__(self, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> None:
        """Run all statements in order, writing ``outputs`` in place.

        Arrays come in the def's order with the shapes of ``sized.shapes`` (scalars as arrays of
        rank 0), any strides, in native byte order; 16-bit floats also as uint16 bits. No output
        may overlap another array. Raises ArgumentError if an array does not fit, and IndexError
        if a data-dependent subscript leaves its tensor; statements before that one, and points
        before that one, have then been written. A statement is one call of native code: Ctrl+C is
        heard when it ends.
        """
        arrays = bound(self.sized, inputs, outputs)
        error = np.zeros(2, np.int64)
        with np.errstate(all="ignore"):
            for step in self._steps:
                step.run(*(arrays[name] for name in step.tensors), error)
                if error[0]:
                    site, value = step.sites[error[0] - 1], int(error[1])
                    first = self.sized.origins[site.tensor][site.axis]
                    extent = self.sized.shapes[site.tensor][site.axis]
                    found = Site(site.tensor, site.axis, first, extent, site.unsigned)
                    raise found.error(value, self.sized)


@dataclass(frozen=True, slots=True)
class _Step:
    """One statement: its function, the arrays it takes, its checks."""

    run: Callable[..., None]
    tensors: tuple[str, ...]
    sites: tuple[CheckedSite, ...]


_POINT, _CALL = 2.5e-7, 5e-7
"""Seconds that the interpreter takes for a point, and for each call in it: conversions of integers
are calls, too, and take most of the time of subscripts."""
_COMPILED, _STARTED = 0.2, 1.0
"""Seconds in which Numba compiles a statement, and those in which it starts before the first."""


def compile_reference(
    sized: SizedDef, *, unchecked: bool = False, jit: bool | None = None, runs: int = 1
) -> ReferenceKernel:
    """Compile ``sized`` to plain loops.

    ``unchecked`` leaves out the run-time checks of data-dependent subscripts: out-of-range ones
    are then undefined behaviour. ``jit``: whether Numba compiles the text, or the Python
    interpreter runs it as it is, with the same results; None: for each statement, which of them
    is done first with so many ``runs``.
    Raises CompileError if Numba cannot compile the text.
    """
    functions = [
        emit_statement(sized, s, f"statement_{k}", readable=True, unchecked=unchecked)
        for k, s in enumerate(sized.statements)
    ]
    pairs = zip(sized.statements, functions, strict=True)
    seconds = [runs * _interpreted(s, function.text) for s, function in pairs]
    if jit is None:
        slow = [each for each in seconds if each > _COMPILED]
        started = _STARTED if not _compile.cache_info().currsize else 0.0
        jit = None if sum(slow) > started + _COMPILED * len(slow) else False
    steps: list[_Step] = []
    for statement, function, taken in zip(sized.statements, functions, seconds, strict=True):
        if taken > _COMPILED if jit is None else jit:
            # Statements that differ in names alone are compiled once.
            same = emit_statement(sized, statement, "run", readable=False, unchecked=unchecked)
            run = compiled(same.text, stored_types(sized, same.tensors))
        else:
            run = _define(function.text, function.name, dict(namespace(False)))
        steps.append(_Step(run, function.tensors, function.sites))
    shown = "\n\n".join(function.text for function in functions)
    return ReferenceKernel(sized, shown, tuple(steps))


def _interpreted(statement: SizedStatement, text: str) -> float:
    """Seconds that the interpreter takes for a statement."""
    each = text.rpartition("range(")[2].partition("terms += 1")[0]  # of the innermost loop
    calls = len(re.findall(r"\w\(", each))
    return math.prod(map(statement.extent, statement.ranges)) * (_POINT + _CALL * calls)


def _define(text: str, name: str, names: dict[str, Any]) -> Callable[..., None]:
    exec(compile(text, f"<{name}>", "exec"), names)
    function: Callable[..., None] = names[name]
    return function


Argument: TypeAlias = tuple[str, int, bool]
"""Element dtype, rank, whether it is read only."""


def stored_types(sized: SizedDef, names: Sequence[str]) -> tuple[Argument, ...]:
    tensors = (sized.checked.tensors[name] for name in names)
    return tuple((storage_dtype(t.type).name, t.rank, t.is_input) for t in tensors)


def compiled(
    text: str, arguments: tuple[Argument, ...], *, jit: bool = True
) -> Callable[..., None]:
    """The function ``run`` of ``text``, which takes such arrays and then ``error``. Unless ``jit``
    the interpreter runs it. Raises ``CompileError`` if Numba cannot compile it."""
    if not jit:
        return _define(text, "run", dict(namespace(False)))
    with deferred():  # Numba stands on llvmlite, see tcl.codegen.cpu.object_code.compile
        return _compile(text, arguments)


@lru_cache(maxsize=512)
def _compile(text: str, arguments: tuple[Argument, ...]) -> Callable[..., None]:
    if "numba" not in sys.modules:
        need_room_for_numba()
    import numba
    from numba.core.errors import NumbaError

    signature = [
        numba.types.Array(
            numba.from_dtype(np.dtype(dtype)), rank, "A", readonly=readonly, aligned=False
        )
        for dtype, rank, readonly in arguments
    ]
    signature.append(numba.types.Array(numba.int64, 1, "C"))
    function = _define(text, "run", dict(namespace(True)))
    try:
        result: Callable[..., None] = numba.njit(tuple(signature), **jit_options())(function)
    except NumbaError as problem:
        raise CompileError(
            f"Numba could not compile the reference of this definition: {problem}"
        ) from problem
    return result


def bound(
    sized: SizedDef, inputs: Sequence[_Array], outputs: Sequence[_Array]
) -> dict[str, _Array]:
    """Arrays by tensor name, seen as their storage type. Raises ``ArgumentError`` for one that does
    not fit."""
    checked = sized.checked
    found = {}
    roles = (("input", checked.inputs, inputs), ("output", checked.outputs, outputs))
    for role, tensors, arrays in roles:
        if len(arrays) != len(tensors):
            raise ArgumentError(
                f"{checked.name} has {len(tensors)} {role}s; {len(arrays)} arrays were given"
            )
        for tensor, array in zip(tensors, arrays, strict=True):
            dtype, storage = array.dtype, storage_dtype(tensor.type)
            wrong = ""
            if array.shape != (shape := sized.shapes[tensor.name]):
                wrong = f"has to have shape {shape}; an array of shape {array.shape} was given"
            elif not dtype.isnative or (dtype.name != tensor.type.name and dtype != storage):
                wrong = f"has to be an array of {tensor.type.name}; one of {dtype} was given"
            elif role == "output" and not array.flags.writeable:
                wrong = "is read only; pass an array that can be written"
            if wrong:
                raise ArgumentError(f"{role} {tensor.name} {wrong}")
            found[tensor.name] = array if dtype == storage else array.view(storage)
    return found
