"""The reference at some elements of results that are too large to be computed whole.

Every element of the outputs has its own reduction, so that some can be computed without the
others: those of a sample, and before them what they depend on. A sample takes every value of every
output index once, if that can be afforded, and with that the edges of tiles of whatever size; the
corners and faces of the result; points next to the edges of tiles in all dimensions at once; and
random ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tcl.codegen.reference.compiled import bound, compile_reference, compiled, stored_types
from tcl.codegen.reference.statements import emit_marks, emit_statement
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.tree.checked import Call, Const, Dimension, Index, LetRef, Read, Size
from tcl.grammar.tree.traverse import evaluated, reads, walk

Points = npt.NDArray[np.int64]
_Array = npt.NDArray[Any]
_Marks = dict[str, npt.NDArray[np.bool_]]

WHOLE = 1_000_000_000
"""Operations up to which all elements are computed: a second or two."""
SAMPLED = 300_000_000
"""Operations of a sample at most."""
BRIEF = 1_000_000
"""Operations that the interpreter does in about a tenth of a second."""
_CALL = 10
"""Operations that a built-in function counts as."""
_FACE = 16
"""Points on each face, and on each pair of ..."""
_TILE = 16
"""The vectors of all machines have lengths that this is a multiple of, or a divisor."""
_MOST = 200_000
"""Points of one output."""
_FEWER = (None, 64, 16, 8, 4, 2)
"""Values that an output's index takes in a sample, from the one to be tried first: points that
share values of indices share what they depend on."""


@dataclass(frozen=True, slots=True)
class ComputedElements:
    positions: tuple[Points | None, ...]
    """Of each output the elements, as positions in row-major order, ascending; None: all."""
    share: float
    """Of the operations that all elements would take."""

    @property
    def whole(self) -> bool:
        return all(p is None for p in self.positions)


def compute(
    sized: SizedDef,
    inputs: Sequence[_Array],
    outputs: Sequence[_Array],
    *,
    whole: int = WHOLE,
    sampled: int = SAMPLED,
    jit: bool = True,
    runs: int = 1,
) -> ComputedElements:
    """Write all elements of ``outputs``, or those of a sample where all would take more than
    ``whole`` operations. Of other elements nothing is known then.

    Arrays and errors are as for ``ReferenceKernel``. A def that ``why_not_sampled`` has a reason
    for is computed whole, however long that takes, and so is one of which two points a dimension
    depend on more than ``sampled`` operations. Unless ``jit`` the interpreter computes samples.
    ``runs``: how often the def is computed, with other inputs.
    """
    if all_operations(sized) > whole:
        computed = _sample(sized, inputs, outputs, sampled, jit)
        if computed is not None:
            return computed
    compile_reference(sized, runs=runs)(inputs, outputs)
    return ComputedElements((None,) * len(outputs), 1.0)


def compute_briefly(
    sized: SizedDef, inputs: Sequence[_Array], outputs: Sequence[_Array]
) -> ComputedElements | None:
    """``compute`` of so few elements that the interpreter has done it before Numba is loaded; None,
    and nothing written, for a def of which no so small a sample can be computed."""
    if all_operations(sized) > BRIEF:
        return _sample(sized, inputs, outputs, BRIEF, jit=False)
    compile_reference(sized, jit=False)(inputs, outputs)
    return ComputedElements((None,) * len(outputs), 1.0)


def all_operations(sized: SizedDef) -> int:
    return sum(_of_element(s) * _points(s, s.statement.indices) for s in sized.statements)


def _sample(
    sized: SizedDef,
    inputs: Sequence[_Array],
    outputs: Sequence[_Array],
    operations: int,
    jit: bool,
) -> ComputedElements | None:
    """Compute a sample in so many operations; None if that cannot be done."""
    if why_not_sampled(sized) is not None:
        return None
    plans = (_planned(sized, w, operations, jit) for w in _samples(sized, operations))
    plan = next((p for p in plans if p is not None), None)
    if plan is None:
        return None
    points, positions, taken = plan
    arrays = bound(sized, inputs, outputs)
    error = np.zeros(2, np.int64)
    for statement, of_statement in zip(sized.statements, points, strict=True):
        function = emit_statement(
            sized, statement, "run", readable=False, unchecked=True, sampled=True
        )
        types = stored_types(sized, function.tensors)
        run = compiled(function.text, (*types, _POINTS), jit=jit)
        with np.errstate(all="ignore"):
            run(*(arrays[name] for name in function.tensors), of_statement, error)
    kept = tuple(positions[t.name] for t in sized.checked.outputs)
    return ComputedElements(kept, taken / all_operations(sized))


def why_not_sampled(sized: SizedDef) -> str | None:
    """Why elements of a def cannot be computed without all others; None if they can. (What a
    statement reads of its own target is, by the rules of the language, the element that it is
    about to write.)"""
    computed = {t.name for t in sized.checked.outputs}
    for each in sized.statements:
        if each.statement.place is not None:
            return f"the data say which elements of {each.statement.target} are written"
        for read in reads(each.statement):
            if any(each.needs_check(read, axis) for axis in range(len(read.subscripts))):
                return f"the data say which elements of {read.tensor} are read"
            if read.tensor in computed - {each.statement.target} and any(
                isinstance(n, Read | LetRef) for s in read.subscripts for n in walk(s)
            ):
                return f"the data say which elements of {read.tensor} are needed"
    return None


def _operations(sized_statement: SizedStatement) -> int:
    """Of one point, roughly."""
    leaves = (Const, Index, Size, Dimension, LetRef)
    nodes = [n for e in evaluated(sized_statement.statement) for n in walk(e)]
    calls = sum(isinstance(n, Call) for n in nodes)
    return 1 + sum(not isinstance(n, leaves) for n in nodes) + (_CALL - 1) * calls


def _of_element(sized_statement: SizedStatement) -> int:
    reduction = sized_statement.statement.reduction
    return _operations(sized_statement) * _points(sized_statement, reduction)


def _points(sized_statement: SizedStatement, indices: Sequence[str]) -> int:
    return math.prod(max(0, sized_statement.extent(index)) for index in indices)


def _samples(sized: SizedDef, operations: int) -> Iterator[Mapping[str, Points]]:
    """Elements of all outputs, from as many as these operations may do for to a few."""
    dearest = max(map(_of_element, sized.statements))
    count = operations // max(1, dearest) // len(sized.checked.outputs)
    count = max(_FACE, min(count, _MOST))
    shapes = {t.name: sized.shapes[t.name] for t in sized.checked.outputs}
    for values in _FEWER:
        yield {name: pick(shape, count, values) for name, shape in shapes.items()}


def pick(shape: tuple[int, ...], count: int, values: int | None = None) -> Points:
    """About ``count`` elements of an array, a row of indices each; those that matter most come
    first. ``values``: how many each index takes at most."""
    if not shape or (math.prod(shape) <= count and values is None):
        return np.argwhere(np.ones(shape, np.bool_)).astype(np.int64)
    if not math.prod(shape):
        return np.zeros((0, len(shape)), np.int64)
    rng = np.random.default_rng(len(shape))
    axes = [_values(n, values, rng) for n in shape]
    edges = [np.unique([0, n - 1]) for n in shape]

    def pick(size: int, of: Sequence[Points]) -> Points:
        return np.stack([rng.choice(each, size) for each in of], axis=1)

    ends = list(itertools.islice(itertools.product(*edges), count))
    found = [np.array(ends, np.int64).reshape(len(ends), len(shape))]
    for axis in range(len(shape)):
        for end in edges[axis]:
            face = pick(_FACE, axes)
            face[:, axis] = end
            found.append(face)
    # Every value of every index, each with whatever values of the others.
    longest = max(map(len, axes))
    found.append(
        np.stack(
            [np.resize(rng.permutation(each), longest)[rng.permutation(longest)] for each in axes],
            axis=1,
        )
    )
    if values is None:
        beside = [a[(a % _TILE == 0) | (a % _TILE == _TILE - 1) | (a == a[-1])] for a in axes]
        found.append(pick(count // 8, beside))
    left = count - sum(map(len, found))
    if left > 0:
        found.append(pick(left, axes))
    return np.concatenate(found)[:count]


def _values(extent: int, count: int | None, rng: np.random.Generator) -> Points:
    """Values of an index: all, or so many, with the first and the last."""
    if count is None or count >= extent:
        return np.arange(extent)
    within = rng.choice(np.arange(1, extent - 1), count - 2, replace=False)
    return np.sort(np.concatenate([[0, extent - 1], within])).astype(np.int64)


def _planned(
    sized: SizedDef, wanted: Mapping[str, Points], most: int, jit: bool
) -> tuple[list[Points], dict[str, Points], int] | None:
    """For these elements: which points of each statement are computed, which elements of each
    output are right in the end, and the operations; None if these are more than ``most``."""
    needed: _Marks = {name: np.zeros(sized.shapes[name], np.bool_) for name in wanted}
    for name, points in wanted.items():
        needed[name][tuple(points.T)] = True
    positions: dict[str, Points] = {}
    found: list[Points] = []
    operations = 0
    for statement in reversed(sized.statements):
        target = statement.statement.target
        # What statements before this one need is not what is there in the end.
        positions.setdefault(target, np.flatnonzero(needed[target]))
        points = _within(statement, needed[target], sized.origins[target])
        operations += len(points) * _of_element(statement)
        if operations > most:
            return None
        _mark(sized, statement, points, needed, jit)
        found.append(points)
    return found[::-1], positions, operations


_POINTS = ("int64", 2, False)


def _within(
    sized_statement: SizedStatement, needed: npt.NDArray[np.bool_], origin: Sequence[int]
) -> Points:
    """The points of a statement that write these elements."""
    points = np.argwhere(needed).astype(np.int64) + np.array(origin, np.int64)
    for axis, index in enumerate(sized_statement.statement.indices):
        first, stop = sized_statement.ranges[index]
        points = points[(points[:, axis] >= first) & (points[:, axis] < stop)]
    return np.ascontiguousarray(points)


def _mark(
    sized: SizedDef, sized_statement: SizedStatement, points: Points, needed: _Marks, jit: bool
) -> None:
    statement = sized_statement.statement
    read = {r.tensor for r in reads(statement)} & needed.keys() - {statement.target}
    if not read or not len(points):
        return
    function = emit_marks(sized, sized_statement, sorted(read))
    types = tuple(("bool", len(sized.shapes[name]), False) for name in function.tensors)
    run = compiled(function.text, (*types, _POINTS), jit=jit)
    run(*(needed[name] for name in function.tensors), points, np.zeros(2, np.int64))
