"""How far a reference in float32 is from the same computed in float64.

Rounding of a value that cancelled, or that a saturating function made small, is larger than what
the depth of accumulation explains: ``tanh`` of a sum has the sum's absolute error. Wherever such
things happen in a def, the reference's own error shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tcl.codegen.reference.sample import compute
from tcl.grammar import checked as c
from tcl.grammar.errors import TclError
from tcl.grammar.sized import SizedDef
from tcl.grammar.traverse import rebuild
from tcl.grammar.types import FLOAT32, FLOAT64

_Array = npt.NDArray[Any]

_MOST = 0.99
"""The part of an output's elements whose error counts: where a comparison or a conversion to an
integer ends otherwise in float64, a few differ by more than rounding."""


def in_float64(sized: SizedDef) -> SizedDef:
    """The def with float64 in place of float32 everywhere. Literals keep their values in
    float32."""

    def wide(tensor: c.Tensor) -> c.Tensor:
        return replace(tensor, type=FLOAT64) if tensor.type == FLOAT32 else tensor

    def change(node: c.Expr) -> c.Expr:
        if isinstance(node, c.Index | c.Size | c.Dimension) or node.type != FLOAT32:
            return node
        if isinstance(node, c.Const):
            with np.errstate(over="ignore"):
                return replace(node, value=float(np.float32(node.value)), type=FLOAT64)
        return replace(node, type=FLOAT64)

    def changed(statement: c.Statement) -> c.Statement:
        lets = tuple(replace(let, value=rebuild(let.value, change)) for let in statement.lets)
        return replace(statement, rhs=rebuild(statement.rhs, change), lets=lets)

    checked = sized.checked
    return replace(
        sized,
        checked=replace(
            checked,
            inputs=tuple(map(wide, checked.inputs)),
            outputs=tuple(map(wide, checked.outputs)),
            statements=tuple(map(changed, checked.statements)),
        ),
        statements=tuple(replace(s, statement=changed(s.statement)) for s in sized.statements),
    )


def roundings(
    sized: SizedDef, inputs: Sequence[_Array], initial: Sequence[_Array]
) -> tuple[float, ...]:
    """Of each output the absolute error of nearly all elements that the reference computes; 0 for
    outputs of other types than float32, and where nothing is known.

    ``initial``: outputs with the values that they have before. Of a def that is too large to be
    computed whole, a sample counts. Computes the reference twice, in the def's types and in
    float64.
    """
    own = [t.type == FLOAT32 for t in sized.checked.outputs]
    unknown = (0.0,) * len(own)
    if not any(own):
        return unknown
    rounded = [a.copy() for a in initial]
    exact = [a.astype(np.float64) if w else a.copy() for a, w in zip(initial, own, strict=True)]
    tensors = zip(inputs, sized.checked.inputs, strict=True)
    try:
        arrays = [a.astype(np.float64) if t.type == FLOAT32 else a for a, t in tensors]
        compute(sized, inputs, rounded)
        positions = compute(in_float64(sized), arrays, exact).positions
    except (TclError, IndexError, MemoryError):  # in float64 the data may lead elsewhere
        return unknown
    return tuple(
        _error(r, e, p) if w else 0.0
        for r, e, p, w in zip(rounded, exact, positions, own, strict=True)
    )


def _error(rounded: _Array, exact: _Array, positions: npt.NDArray[np.int64] | None) -> float:
    ours, right = rounded.reshape(-1), exact.reshape(-1)
    if positions is not None:
        ours, right = ours[positions], right[positions]
    with np.errstate(invalid="ignore"):
        errors = np.abs(ours - right)
    errors = errors[np.isfinite(errors)]
    return float(np.quantile(errors, _MOST)) if errors.size else 0.0
