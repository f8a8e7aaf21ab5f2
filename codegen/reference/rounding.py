"""How far rounding may take the results of a def, by running its reference with other roundings.

Rounding of a value that cancelled, or that a saturating function made small, is larger than what
the depth of accumulation explains: ``tanh`` of a sum has the sum's absolute error. Wherever such
things happen in a def, the reference's own error shows them: the difference of the reference in
float32 from the same computed in float64. A def in float64 is computed in float32, too: its own
rounding is that, less by as much as a number of float64 is rounded less.

Where a function jumps, or has a pole, rounding decides about the result: ``floor`` of what is a
whole number but for rounding, the sign of a sum that cancels, its reciprocal. No result can be
called wrong there. Such elements are found by Monte Carlo arithmetic (Parker, "Monte Carlo
arithmetic", UCLA CSD-970002, 1997): the def is computed in float64 again and again, with everything
that is rounded moved by a random part of itself, up in one run and down in the next, and what is
read of an output by that output's error. Elements that rounding decides about change more than
others do. Where more than one in twenty does so much, this tells nothing of those that change
least, as where few elements are so large that their error is none of the others': then runs without
the outputs' errors find elements, too.

Integers that are rounded sums, such as samples of 16 bits, have no tolerance beside this, and these
moves reach most of them: all are such elements, but only a few times as many may differ as differ
between the reference and float64. A wrong kernel differs in more.

One random move tells little of how far an element may be off: two roundings that cancel in a run
may add up in a kernel. Of elements with two equal roundings, the worst case, one in 25 is further
off in a kernel than twice what one pair of runs changes it by, one in 400 than two pairs, and one
in 20 million than six.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.rounding import ERRORS, UNKNOWN, Rounding
from tcl.codegen.reference.sample import SAMPLED, WHOLE, all_operations, compute
from tcl.codegen.reference.whole_array import NoFormulationError, whole_array
from tcl.common.errors import TclError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.source import Span
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import rebuild, rename

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
_OTHERS = 0.95
"""The part about which rounding does not decide, at least."""
_SPREAD = 2.0
"""Times what it changes by that an element may be off about which rounding decides."""
_FAR = ERRORS / _SPREAD
"""Times an output's error that an element changes by which may be off by more than all may."""
_MOVED = 2.0
"""Times its own error that a tensor is moved by when it is read, times what ``nudged`` draws: 4 in
the mean."""
_ROUNDED = {FLOAT32: 2.0**-23, FLOAT64: 2.0**-52}
"""A rounding, relative: what is computed is moved by two to six of them."""
_PAIRS = 6
"""Of runs, up and down, that move everything by other numbers ..."""
_FEWEST = 2
"""... and where a run takes long."""
_AFFORDED = 6_000_000_000
"""Operations of all pairs together, what moves included: two seconds, if ``_FEWEST`` do not take
more."""
_BY_ARRAYS = 100_000_000
"""Operations of all runs, for each statement, that NumPy does on whole arrays before Numba has
compiled the statement and done them ..."""
_IN_MEMORY = 1 << 22
"""... if no statement but sums of products has more points than these: some arrays of 32 MB."""
Moved: TypeAlias = Callable[[c.Expr, ScalarType], c.Expr]
"""From an expression in float64, and the type that it had before, to what stands in its place."""


def in_float64(sized: SizedDef, moved: Moved = lambda node, _: node) -> SizedDef:
    """The def with float64 in place of float32 everywhere. Literals keep their values in
    float32. ``moved`` changes what was computed or read as a float of either type."""
    return _in_type(sized, FLOAT32, FLOAT64, moved)


def _in_type(
    sized: SizedDef, old: ScalarType, new: ScalarType, moved: Moved = lambda node, _: node
) -> SizedDef:
    """The def with another type of floats. Literals of the old one have values of float32."""

    def changed_type(tensor: c.Tensor) -> c.Tensor:
        return replace(tensor, type=new) if tensor.type == old else tensor

    def change(node: c.Expr) -> c.Expr:
        if isinstance(node, c.Index | c.Size | c.Dimension) or node.type not in (old, new):
            return node
        if isinstance(node, c.Const):
            if node.type != old:
                return node
            with np.errstate(over="ignore"):
                return replace(node, value=float(np.float32(node.value)), type=new)
        return moved(replace(node, type=new), node.type)

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


def _values_apart(sized: SizedDef, initial: Sequence[_Array]) -> tuple[SizedDef, list[_Array]]:
    """The def with one more output for each value that a tensor has before a statement writes all
    of its elements anew, and what all outputs are before the def: a sum and its logarithm are not
    off by as much, though they have the same name."""
    tensors, shapes, origins = dict(sized.checked.tensors), dict(sized.shapes), dict(sized.origins)
    statements = list(sized.statements)
    begun = {t.name: a for t, a in zip(sized.checked.outputs, initial, strict=True)}
    uninitialised = set(sized.checked.uninitialised)
    same_sizes = {name: name for name in sized.sizes}
    for k, each in enumerate(sized.statements):
        old = each.statement.target
        if not _writes_anew(sized, k):
            continue
        new = "_" * max(map(len, tensors)) + old  # longer than all others
        tensors[new] = replace(tensors[old], name=new)
        begun[new], shapes[new], origins[new] = begun[old], shapes[old], origins[old]
        if old in uninitialised:
            uninitialised ^= {old, new}
        names = {name: new if name == old else name for name in tensors}
        statements[: k + 1] = [
            replace(s, statement=rename(s.statement, names, same_sizes))
            for s in statements[: k + 1]
        ]
        written = replace(statements[k].statement, target=old)
        statements[k] = replace(statements[k], statement=written)
    if len(begun) == len(initial):
        return sized, [*initial]
    checked = replace(
        sized.checked,
        outputs=tuple(tensors[name] for name in begun),
        statements=tuple(s.statement for s in statements),
        uninitialised=frozenset(uninitialised),
    )
    apart = replace(
        sized, checked=checked, shapes=shapes, origins=origins, statements=tuple(statements)
    )
    return apart, [*begun.values()]


def _writes_anew(sized: SizedDef, position: int) -> bool:
    """Whether a statement writes all elements of a tensor that has been written before."""
    each, earlier = sized.statements[position], sized.statements[:position]
    statement = each.statement
    if statement.place is not None or not (statement.op == "=" or statement.initialise):
        return False
    written = any(s.statement.target == statement.target for s in earlier)
    extents = tuple(map(each.extent, statement.indices))
    return written and extents == sized.shapes[statement.target]


def _movable(sized: SizedDef) -> SizedDef:
    """The def in float64, with inputs more: a seed, which says how all that is rounded is moved
    (``numbers.nudged``), and for each output by how much it is moved when it is read."""
    count = itertools.count()
    # Names that are longer than all others.
    longer = "_" * max(map(len, sized.checked.tensors))
    seed = longer + "_seed"
    offs = {t.name: f"{longer}_{t.name}" for t in sized.checked.outputs}

    def read(name: str, span: Span) -> c.Expr:
        return c.Read(name, (), FLOAT64, span)

    def moved_by(node: c.Expr, type_: ScalarType) -> c.Expr:
        span = node.span
        by: c.Expr = c.Const(0.0, FLOAT64, span)
        off = by
        match node:
            case c.Read(tensor=name) if name in offs:
                off = read(offs[name], span)
            case c.Call() | c.Binary(op="+" | "-" | "*" | "/" | "%"):
                by = c.Const(_ROUNDED[type_], FLOAT64, span)
            case _:
                return node
        # What stands elsewhere in the def is moved by another number.
        place = c.Const(1.0 + math.sqrt(next(count)), FLOAT64, span)
        own = c.Binary("*", read(seed, span), place, FLOAT64, span)
        return c.Call("nudged", (node, by, off, own), FLOAT64, span)

    wide = in_float64(sized, moved_by)
    span = sized.checked.outputs[0].span
    more = tuple(c.Tensor(name, FLOAT64, 0, (), True, span) for name in (seed, *offs.values()))
    scalars = {t.name: () for t in more}
    return replace(
        wide,
        checked=replace(wide.checked, inputs=(*wide.checked.inputs, *more)),
        shapes={**wide.shapes, **scalars},
        origins={**wide.origins, **scalars},
    )


def roundings(
    sized: SizedDef,
    inputs: Sequence[_Array],
    initial: Sequence[_Array],
    rounded: Sequence[_Array] | None = None,
    *,
    briefly: bool = False,
) -> tuple[Rounding, ...]:
    """Of each output how far rounding may take it; ``UNKNOWN`` where nothing is known, as of all
    outputs of a def with neither float32 nor float64.

    ``initial``: outputs with the values that they have before; ``rounded``: what the reference
    computes, all elements of it, if that is known. Of a def that is too large to be
    computed whole, a sample counts. ``briefly``: only by how much nearly all elements are off,
    which is most of what kernels need, and which NumPy mostly knows before Numba has compiled
    anything. The rest computes the reference up to fourteen times, or 26 if elements
    of very different sizes are found by runs of their own, and a def with float64 twice more.
    """
    types = {t.type for t in sized.checked.tensors.values()} & {FLOAT32, FLOAT64}
    count = len(sized.checked.outputs)
    unknown = (UNKNOWN,) * count
    if not types:
        return unknown
    if not briefly:
        sized, initial = _values_apart(sized, initial)
    outputs = sized.checked.outputs
    if len(outputs) > count:
        rounded = None
    try:
        runs = _Runs(sized, inputs, initial, rounded, briefly=briefly)
        errors = runs.errors()
        if FLOAT64 in types:
            narrow = _in_type(sized, FLOAT64, FLOAT32)
            begun = _narrowed(inputs), _narrowed(initial)
            short = _Runs(narrow, *begun, briefly=briefly).errors()
            errors = [
                max(error, _LESS * of_float32) if t.type == FLOAT64 else error
                for t, error, of_float32 in zip(outputs, errors, short, strict=True)
            ]
    except (TclError, IndexError, MemoryError):  # in float64 the data may lead elsewhere
        return unknown
    if briefly:
        return tuple(map(Rounding, errors))
    try:
        return runs.roundings(errors)[:count]
    except (TclError, IndexError, MemoryError):
        return tuple(map(Rounding, errors[:count]))


class _Runs:
    """The reference of a def in its own types, and in float64."""

    def __init__(
        self,
        sized: SizedDef,
        inputs: Sequence[_Array],
        initial: Sequence[_Array],
        rounded: Sequence[_Array] | None = None,
        *,
        briefly: bool = False,
    ) -> None:
        self._outputs = sized.checked.outputs
        self._initial = initial
        self._movable = _movable(sized)
        pairs = zip(inputs, sized.checked.inputs, strict=True)
        self._inputs = [a.astype(np.float64) if t.type == FLOAT32 else a for a, t in pairs]
        self._runs, self._limit, exact = 1, _ALL, None
        if briefly and self._on_arrays(sized):
            exact = _on_arrays(in_float64(sized), self._inputs, self._begun())
            if exact is not None and rounded is None:
                rounded = _on_arrays(sized, inputs, [a.copy() for a in initial])
        whole = True
        if rounded is None:
            rounded = [a.copy() for a in initial]
            whole = compute(sized, inputs, rounded).whole
        self._rounded = list(rounded)
        self._positions: tuple[_Positions | None, ...] = (None,) * len(initial)
        if exact is not None:
            self._exact = exact
            return
        self._limit = _ALL if whole else WHOLE
        operations = min(all_operations(self._movable), _ALL if whole else SAMPLED)
        self._pairs = max(_FEWEST, min(_PAIRS, _AFFORDED // max(1, 2 * operations)))
        self._runs += 2 * self._pairs
        self._by_arrays = whole and self._on_arrays(self._movable)
        if whole:
            self._exact, self._positions = self._moved(0.0, [0.0] * len(initial))
        else:  # a sample of fewer operations has other elements: those that were rounded
            self._exact, self._positions = self._computed(in_float64(sized), self._inputs)

    def _on_arrays(self, sized: SizedDef) -> bool:
        """Whether NumPy has done all runs on whole arrays before Numba has compiled the def."""
        operations = self._runs * all_operations(sized)
        return operations <= _BY_ARRAYS * len(sized.statements)

    def _moved(
        self, seed: float, offs: Sequence[float]
    ) -> tuple[list[_Array], tuple[_Positions | None, ...]]:
        """What is computed in float64, with everything moved unless ``seed`` is 0."""
        inputs = [*self._inputs, *(np.array(x) for x in (seed, *offs))]
        return self._computed(self._movable, inputs)

    def _computed(
        self, sized: SizedDef, inputs: Sequence[_Array]
    ) -> tuple[list[_Array], tuple[_Positions | None, ...]]:
        if self._by_arrays:
            found = _on_arrays(sized, inputs, self._begun())
            if found is not None:
                return found, (None,) * len(found)
            self._by_arrays = False
        found = self._begun()
        computed = compute(sized, inputs, found, whole=self._limit, runs=self._runs)
        return found, computed.positions

    def _begun(self) -> list[_Array]:
        """The outputs of a run in float64, with the values that they have before."""
        pairs = zip(self._initial, self._outputs, strict=True)
        return [a.astype(np.float64) if t.type == FLOAT32 else a.copy() for a, t in pairs]

    def errors(self) -> list[float]:
        """By how much nearly all elements of each output are off; 0 for other types than floats of
        32 and 64 bits."""
        of_each = zip(self._outputs, self._rounded, self._exact, self._positions, strict=True)
        return [_error(r, e, p) if t.type in (FLOAT32, FLOAT64) else 0.0 for t, r, e, p in of_each]

    def roundings(self, errors: Sequence[float]) -> tuple[Rounding, ...]:
        """Of each output, by how much its elements change if everything is moved that is rounded.
        ``errors``: of the outputs."""
        spreads, places = self._spreads([_MOVED * error for error in errors])
        own, most = spreads, 1 - _OTHERS
        far = (s > _FAR * error for error, s in zip(errors, spreads, strict=True))
        if any(each.size and np.mean(each) > most for each in far):
            own, _ = self._spreads([0.0] * len(errors))
        found = []
        for k, (spread, at) in enumerate(zip(spreads, places, strict=True)):
            differing = int(np.sum(_floats(self._rounded[k], at) != _floats(self._exact[k], at)))
            if self._outputs[k].type.is_float or differing > _OWN * spread.size:
                found.append(_decided(errors[k], spread, own[k], at))
            else:
                found.append(_decided_integers(differing, spread, at))
        return tuple(found)

    def _spreads(self, offs: Sequence[float]) -> tuple[list[_Array], list[_Positions | None]]:
        """By how much the elements of each output change in all runs, and which these are."""
        places, spreads = list(self._positions), list[_Array]()
        for seed in (s for k in range(self._pairs) for s in (_seed(k), -_seed(k))):
            moved, positions = self._moved(seed, offs)
            if not spreads:
                places = [_common(p, q) for p, q in zip(places, positions, strict=True)]
                spreads = self._changes(self._rounded, places)
            spreads = [*map(np.maximum, spreads, self._changes(moved, places))]
        return spreads, places

    def _changes(
        self, others: Sequence[_Array], places: Sequence[_Positions | None]
    ) -> list[_Array]:
        return [*map(_change, self._exact, others, places)]


def _on_arrays(
    sized: SizedDef, inputs: Sequence[_Array], outputs: list[_Array]
) -> list[_Array] | None:
    """The outputs as NumPy computes them on whole arrays; None if it cannot."""
    try:
        with np.errstate(all="ignore"):
            whole_array(sized, _IN_MEMORY)(inputs, outputs)
    except NoFormulationError:
        return None
    return outputs


def _common(one: _Positions | None, other: _Positions | None) -> _Positions | None:
    """What both have; None: all."""
    if one is None or other is None:
        return other if one is None else one
    return np.intersect1d(one, other)


def _seed(pair: int) -> float:
    """Of a pair of runs."""
    return 1e7 * math.sqrt(2.0 + pair)


def _narrowed(arrays: Sequence[_Array]) -> list[_Array]:
    with np.errstate(over="ignore"):
        return [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]


_LESS = 2.0**-29
"""A rounding of float64 in those of float32."""

_ALL = 1 << 62
"""Operations: more than any def takes that was computed whole before."""


def _change(exact: _Array, other: _Array, places: _Positions | None) -> _Array:
    """By how much each element changes; infinite where it is no number once."""
    right, values = _floats(exact, places), _floats(other, places)
    with np.errstate(invalid="ignore"):
        same = (values == right) | (np.isnan(values) & np.isnan(right))
        changes = np.where(same, 0.0, np.abs(values - right))
    return np.where(np.isnan(changes), np.inf, changes)


def _floats(values: _Array, places: _Positions | None) -> _Array:
    flat = values.reshape(-1)
    return np.asarray(flat if places is None else flat[places], np.float64)


def _decided(error: float, spread: _Array, own: _Array, places: _Positions | None) -> Rounding:
    """Which elements rounding decides about, by how much elements change, and how much without the
    outputs' errors: those that may be off by more than ``error`` allows all."""
    far = np.union1d(_far(error, spread), _far(error, own))
    off = _SPREAD * np.maximum(spread, own)[far]
    return Rounding(error, far if places is None else places[far], off)


def _far(error: float, spread: _Array) -> _Positions:
    """Those that change more than ``error`` allows all, one in twenty at most."""
    if not spread.size:
        return np.empty(0, np.int64)
    usual = np.quantile(spread, _OTHERS, method="higher")
    return np.flatnonzero(spread > max(usual, _FAR * error))


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
