"""How far a reference in float32 is from the same computed in float64.

Rounding of a value that cancelled, or that a saturating function made small, is larger than what
the depth of accumulation explains: ``tanh`` of a sum has the sum's absolute error. Wherever such
things happen in a def, the reference's own error shows them.

Where a function jumps, or has a pole, rounding decides about the result: ``floor`` of what is a
whole number but for rounding, the sign of a sum that cancels, its reciprocal. No result can be
called wrong there. Such elements are found by computing in float64 once more, with everything that
float32 rounds moved up by some roundings, and once moved down: they change more than others do.
Where more than one in a hundred does so much, this tells nothing, and these are as all others.

Integers that are rounded sums, such as samples of 16 bits, have no tolerance beside this, and these
moves reach most of them: all are such elements, but only a few times as many may differ as differ
between the reference and float64. A wrong kernel differs in more.

A def in float64 is computed in float32, too: its own rounding is that, less by as much as a number
of float64 is rounded less.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.rounding import UNKNOWN, Rounding
from tcl.codegen.reference.sample import WHOLE, compute
from tcl.common.errors import TclError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import rebuild

_Array = npt.NDArray[Any]
_Positions = npt.NDArray[np.int64]

_MOST = 0.99
"""The part of an output's elements whose error counts: where a comparison or a conversion to an
integer ends otherwise in float64, a few differ by more than rounding."""
_OWN = 1 / 16
"""The part of an output's integers that may differ between the reference and float64: if more do,
integers are judged as floats are."""
_AS_MANY, _FEW = 4, 16
"""Times the number of integers that differ there, and how many more, may differ in a kernel."""

_SPREAD = 2.0
"""Times what it changes by that an element may be off about which rounding decides."""
_MOVED = 8.0
"""Times its own error that a tensor is moved by when it is read."""
_ROUNDED = 2.0**-23
"""A rounding, relative: what is computed is moved by two and more, each operation of a statement by
another number, else differences of products would stay where they are."""

Moved: TypeAlias = Callable[[c.Expr], c.Expr]
"""From an expression in float64, which was one in float32, to what stands in its place."""


def in_float64(sized: SizedDef, moved: Moved = lambda node: node) -> SizedDef:
    """The def with float64 in place of float32 everywhere. Literals keep their values in
    float32. ``moved`` changes what was computed or read in float32."""
    return _in_type(sized, FLOAT32, FLOAT64, moved)


def _in_type(sized: SizedDef, old: ScalarType, new: ScalarType, moved: Moved) -> SizedDef:
    """The def with another type of floats. Literals have values of float32."""

    def changed_type(tensor: c.Tensor) -> c.Tensor:
        return replace(tensor, type=new) if tensor.type == old else tensor

    def change(node: c.Expr) -> c.Expr:
        if isinstance(node, c.Index | c.Size | c.Dimension) or node.type != old:
            return node
        if isinstance(node, c.Const):
            with np.errstate(over="ignore"):
                return replace(node, value=float(np.float32(node.value)), type=new)
        return moved(replace(node, type=new))

    def changed(statement: c.Statement) -> c.Statement:
        lets = tuple(replace(let, value=rebuild(let.value, change)) for let in statement.lets)
        return replace(statement, rhs=rebuild(statement.rhs, change), lets=lets)

    checked = sized.checked
    return replace(
        sized,
        checked=replace(
            checked,
            inputs=tuple(map(changed_type, checked.inputs)),
            outputs=tuple(map(changed_type, checked.outputs)),
            statements=tuple(map(changed, checked.statements)),
        ),
        statements=tuple(replace(s, statement=changed(s.statement)) for s in sized.statements),
    )


def _moving(errors: Mapping[str, float], sign: int) -> Moved:
    """Moves all that float32 rounds, in one direction. ``errors``: of tensors that are computed."""
    count = itertools.count()

    def moved_by(node: c.Expr) -> c.Expr:
        match node:
            case c.Read(tensor=name) if errors.get(name):
                by = c.Const(sign * _MOVED * errors[name], FLOAT64, node.span)
                return c.Binary("+", node, by, FLOAT64, node.span)
            case c.Call() | c.Binary(op="+" | "-" | "*" | "/" | "%"):
                by = c.Const(sign * _ROUNDED * (2 + next(count) % 5), FLOAT64, node.span)
                return c.Call("nudged", (node, by), FLOAT64, node.span)
            case _:
                return node

    return moved_by


def roundings(
    sized: SizedDef, inputs: Sequence[_Array], initial: Sequence[_Array]
) -> tuple[Rounding, ...]:
    """Of each output how far rounding may take it; ``UNKNOWN`` where nothing is known, as of all
    outputs of a def with neither float32 nor float64.

    ``initial``: outputs with the values that they have before. Of a def that is too large to be
    computed whole, a sample counts. Computes the reference four times: in the def's types, and in
    float64.
    """
    outputs = sized.checked.outputs
    own = [t.type == FLOAT32 for t in outputs]
    unknown = (UNKNOWN,) * len(own)
    types = {t.type for t in sized.checked.tensors.values()}
    if FLOAT32 not in types:
        return _of_float64(sized, inputs, initial) if FLOAT64 in types else unknown
    tensors = zip(inputs, sized.checked.inputs, strict=True)
    arrays = [a.astype(np.float64) if t.type == FLOAT32 else a for a, t in tensors]
    rounded = [a.copy() for a in initial]

    def wide(moved: Moved = lambda node: node) -> tuple[list[_Array], tuple[Any, ...]]:
        found = [a.astype(np.float64) if w else a.copy() for a, w in zip(initial, own, strict=True)]
        return found, compute(in_float64(sized, moved), arrays, found, whole=limit).positions

    limit = WHOLE
    try:
        if all(p is None for p in compute(sized, inputs, rounded).positions):
            limit = _ALL
        exact, positions = wide()
    except (TclError, IndexError, MemoryError):  # in float64 the data may lead elsewhere
        return unknown
    errors = [
        _error(r, e, p) if w else 0.0
        for r, e, p, w in zip(rounded, exact, positions, own, strict=True)
    ]
    named = {t.name: error for t, error in zip(outputs, errors, strict=True)}
    try:
        others = [wide(_moving(named, sign)) for sign in (1, -1)]
    except (TclError, IndexError, MemoryError):
        return tuple(map(Rounding, errors))
    found = []
    for k, error in enumerate(errors):
        known = [p[k] for p in (positions, *(where for _, where in others)) if p[k] is not None]
        places = reduce(np.intersect1d, known) if known else None
        spread = _spread(exact[k], [rounded[k], *(values[k] for values, _ in others)], places)
        differing = int(np.sum(_floats(rounded[k], places) != _floats(exact[k], places)))
        if outputs[k].type.is_float or differing > _OWN * spread.size:
            found.append(_decided(error, spread, places))
        else:
            found.append(_decided_integers(differing, spread, places))
    return tuple(found)


def _of_float64(
    sized: SizedDef, inputs: Sequence[_Array], initial: Sequence[_Array]
) -> tuple[Rounding, ...]:
    """As ``roundings``, of a def without float32. What float32 makes infinite, or no number, is no
    excuse for float64."""

    def short(arrays: Sequence[_Array]) -> list[_Array]:
        with np.errstate(over="ignore"):
            return [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]

    narrow = _in_type(sized, FLOAT64, FLOAT32, lambda node: node)
    found = []
    for r in roundings(narrow, short(inputs), short(initial)):
        known = np.isfinite(r.off)
        found.append(Rounding(r.error * _LESS, r.places[known], r.off[known] * _LESS))
    return tuple(found)


_LESS = 2.0**-29
"""A rounding of float64 in those of float32."""

_ALL = 1 << 62
"""Operations: more than any def takes that was computed whole before."""


def _spread(exact: _Array, others: Sequence[_Array], places: _Positions | None) -> _Array:
    """By how much each element changes at most; infinite where it is no number once."""
    right, most = _floats(exact, places), np.zeros(())
    with np.errstate(invalid="ignore"):
        for values in (_floats(each, places) for each in others):
            changes = np.where((values == right) | (np.isnan(values) & np.isnan(right)), 0.0, 1.0)
            changes[changes > 0] = np.abs(values - right)[changes > 0]
            most = np.maximum(most, np.where(np.isnan(changes), np.inf, changes))
    return np.broadcast_to(most, right.shape)


def _floats(values: _Array, places: _Positions | None) -> _Array:
    flat = values.reshape(-1)
    return np.asarray(flat if places is None else flat[places], np.float64)


def _decided(error: float, spread: _Array, places: _Positions | None) -> Rounding:
    """Which elements rounding decides about, by how much elements change."""
    if not spread.size:
        return Rounding(error)
    usual = np.quantile(spread, _MOST, method="higher")
    far = np.flatnonzero(spread > usual)
    return Rounding(error, far if places is None else places[far], _SPREAD * spread[far])


def _decided_integers(differing: int, spread: _Array, places: _Positions | None) -> Rounding:
    """Likewise of integers. ``differing``: how many do between the reference and float64."""
    far = np.flatnonzero(spread)
    most = max(int((1 - _MOST) * spread.size), _AS_MANY * differing + _FEW)
    return Rounding(0.0, far if places is None else places[far], _SPREAD * spread[far], most)


def _error(rounded: _Array, exact: _Array, positions: _Positions | None) -> float:
    with np.errstate(invalid="ignore"):
        errors = np.abs(_floats(rounded, positions) - _floats(exact, positions))
    errors = errors[np.isfinite(errors)]
    return float(np.quantile(errors, _MOST)) if errors.size else 0.0
