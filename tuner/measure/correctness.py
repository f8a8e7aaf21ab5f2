"""Is a kernel's result right? Floats may differ from the reference by rounding alone, which grows
with the depth of accumulation: with about its square root, as sums are reordered. Of long sums,
which are made of parts (``tcl.codegen.common.sums``), it does not grow with their length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.rounding import ERRORS, UNKNOWN, Rounding
from tcl.codegen.common.sums import AT_ONCE, PRODUCTS, TERMS
from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import FLOAT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import children, evaluated, reads, walk

Array: TypeAlias = npt.NDArray[Any]

_SLACK = 8.0
"""Roundings that a result of depth 1 may differ by: contraction, and built-ins of a few ulp."""
_MOST = 0.25
"""The part of the root mean square that the reference's own error allows at most: of a result that
is little but rounding, as the sine of a large sum, else anything would be right, zeros as well."""
EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next number. (NumPy's ``finfo`` does not know bfloat16.)"""


def accumulation_depths(sized: SizedDef) -> dict[str, int]:
    """Tensor → how many roundings its elements may have gone through, one after the other.

    Inputs have 0. A statement adds its number of reduction points, at least 1 and of a sum at most
    those of a part, to the deepest tensor that it reads. Of float64 all points of a sum count, as
    its terms may cancel, and all operations of a formula, one after the other: nothing else tells
    how far off they may be (``roundings``). A rounding to a
    coarser type on the way (float32 arithmetic that ends in a float64) counts as the many of the
    tensor's own type that are as large.
    """
    depths = dict.fromkeys(sized.shapes, 0)
    types = {name: tensor.type for name, tensor in sized.checked.tensors.items()}
    coarsest: dict[str, float] = {}
    for sized_statement in sized.statements:
        statement = sized_statement.statement
        points = math.prod(sized_statement.extent(i) for i in statement.reduction)
        read = {r.tensor for r in reads(statement)}
        if statement.op == "+" and types[statement.target] != FLOAT64:
            points = min(points, _terms_at_once(statement, [types[name] for name in read]))
        if statement.op != "=" and not statement.initialise:
            read.add(statement.target)
        deepest = max((depths[name] for name in read), default=0)
        target = statement.target
        operations = _chain(statement) if types[target] == FLOAT64 else 1
        depths[target] = max(depths[target], deepest + max(1, points) + max(0, operations - 1))
        found = [coarsest.get(name, 0.0) for name in (*read, target)]
        arithmetic = (
            _epsilon(node.type.compute)
            for expr in evaluated(statement)
            for node in walk(expr)
            if not isinstance(node, c.Const | c.Read | c.LetRef | c.Select)
        )
        coarsest[target] = max(_epsilon(types[target]), *arithmetic, *found)
    for name, epsilon in coarsest.items():
        own = _epsilon(types[name])
        if own:  # errors of independent roundings grow with the square root of their number
            depths[name] *= round(epsilon / own) ** 2
    return depths


def _chain(statement: c.Statement) -> int:
    """Operations on floats that a value of a statement goes through, one after the other."""
    lets: dict[str, int] = {}

    def longest(expr: c.Expr) -> int:
        found: dict[int, int] = {}
        for node in reversed(list(walk(expr))):  # operands first
            counts = isinstance(node, c.Unary | c.Binary | c.Call) and node.type.is_float
            below = (
                0
                if isinstance(node, c.Read)
                else max((found[id(child)] for child in children(node)), default=0)
            )
            found[id(node)] = lets[node.name] if isinstance(node, c.LetRef) else counts + below
        return found[id(expr)]

    for let in statement.lets:
        lets[let.name] = longest(let.value)
    return longest(statement.rhs)


def _terms_at_once(statement: c.Statement, read: Iterable[ScalarType]) -> int:
    """The terms of a part of a sum, at most."""
    nodes = (node for expr in evaluated(statement) for node in walk(expr))
    if not any(isinstance(node, c.Binary) and node.op == "*" for node in nodes):
        return TERMS
    narrow = any(t.is_float and t.bits == 16 for t in read)
    return PRODUCTS * (AT_ONCE if narrow else 1)


def _epsilon(type_: ScalarType) -> float:
    return EPSILON.get(type_.name, 0.0) if type_.is_float else 0.0


def tolerance(dtype: str, depth: int) -> float:
    """Relative difference from the reference that rounding explains; 0 for other than floats."""
    return EPSILON.get(dtype, 0.0) * _SLACK * math.sqrt(max(1, depth))


def mismatch(
    name: str, actual: Array, expected: Array, depth: int, rounding: Rounding = UNKNOWN
) -> str | None:
    """A sentence about the first element that is wrong; None when all are right: see
    ``Expected.mismatch``."""
    return Expected.from_array(name, expected, depth).mismatch(actual, rounding)


_BLOCK = 1 << 15
"""Elements that are compared at a time: few enough that what is computed of them stays in a
cache."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an output has to be, as a whole or at some of its elements.

    Floats are right within ``tolerance`` of the element, or of the root mean square of all
    elements, for those that are small because larger terms cancelled; or within a multiple of the
    reference's own error, where that is known, which is well below the root mean square. NaN
    matches NaN, an infinity itself. All other types have to be equal. Of whatever type,
    elements that the reference's rounding decides about may be off by more, if not too many are.
    """

    name: str
    """Of the output, for messages."""
    shape: tuple[int, ...]
    values: Array
    """Of all elements in row-major order, or of those at ``positions``."""
    positions: npt.NDArray[np.int64] | None
    """Positions in row-major order; None: all."""
    relative: float
    """Difference that rounding explains; 0 for other types than floats."""
    scale: float
    """Root mean square of the values."""
    than: str
    """What they are, for messages."""

    @classmethod
    def from_array(
        cls,
        name: str,
        whole: Array,
        depth: int,
        positions: npt.NDArray[np.int64] | None = None,
        than: str = "the reference",
    ) -> Expected:
        """The elements at ``positions`` of an array."""
        values = whole.reshape(-1)
        values = values.copy() if positions is None else values[positions]
        relative = tolerance(whole.dtype.name, depth)
        scale = _scale(values) if relative else 0.0
        return cls(name, whole.shape, values, positions, relative, scale, than)

    def mismatch(self, actual: Array, rounding: Rounding = UNKNOWN) -> str | None:
        """A sentence about the first element of ``actual``, an array of the output's shape, that
        is wrong; None when all are right. ``rounding``: of the reference."""
        flat = actual.reshape(-1)
        if self.positions is not None:
            flat = flat[self.positions]
        right = self.values
        if right.dtype == np.bool_:  # the poison is no value of a bool
            flat, right = flat.view(np.uint8), right.view(np.uint8)
        least = min(ERRORS * rounding.error, _MOST * self.scale)
        first, wrong, excused, explained = -1, 0, -1, 0
        for begin in range(0, right.size, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            good = self._good(flat[block], right[block], least)
            if rounding.places.size and not good.all():
                off = begin + np.flatnonzero(~good)
                far = np.abs(flat[off].astype(np.float64) - right[off].astype(np.float64))
                places = off if self.positions is None else self.positions[off]
                good[off - begin] = found = rounding.explains(places, far)
                if found.any() and not explained:
                    excused = int(off[np.argmax(found)])
                explained += int(np.count_nonzero(found))
            if not good.all():
                first = first if wrong else begin + int(np.argmin(good))
                wrong += good.size - int(np.count_nonzero(good))
        if explained > rounding.most:
            first, wrong = first if wrong else excused, wrong + explained
        if not wrong:
            return None
        place = first if self.positions is None else int(self.positions[first])
        where = tuple(int(i) for i in np.unravel_index(place, self.shape))
        at = f" at ({', '.join(map(str, where))})" if where else ""
        return (
            f"output {self.name} differs from {self.than}{at}: {actual[where]} instead of "
            f"{self.values[first]} ({wrong} of {right.size} elements differ"
            f"{self._explained(first, least)})"
        )

    def _explained(self, element: int, least: float) -> str:
        """How far rounding takes an element, for messages; empty if it does not."""
        if not self.relative:
            return ""
        allowed = float(self._allowed(np.asarray(self.values[element], np.float64), least))
        return f"; rounding explains {allowed:.2g} there" if math.isfinite(allowed) else ""

    def _allowed(self, expected: Array, least: float) -> Array:
        """How far each element may be off."""
        with np.errstate(over="ignore", invalid="ignore"):
            allowed = np.maximum(np.abs(expected), self.scale)
            return np.maximum(allowed * self.relative, least)

    def _good(self, actual: Array, expected: Array, least: float) -> npt.NDArray[np.bool_]:
        """Of each element of a block, whether it is right. ``least``: a difference of floats that
        is."""
        if not self.relative:
            return np.asarray(actual == expected)
        ours, right = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        allowed = self._allowed(right, least)
        with np.errstate(over="ignore", invalid="ignore"):
            near: npt.NDArray[np.bool_] = np.abs(ours - right) <= allowed
        finite = np.isfinite(right)
        if near.all() and finite.all():
            return near
        same = (ours == right) | (np.isnan(ours) & np.isnan(right))
        return np.asarray(np.where(finite, near | same, same), np.bool_)


def _scale(values: Array) -> float:
    """The root mean square of those that are finite, 0 for others."""
    squares, largest = 0.0, 0.0
    for begin in range(0, values.size, _BLOCK):
        block = np.asarray(values[begin : begin + _BLOCK], np.float64)
        block = np.where(np.isfinite(block), np.abs(block), 0.0)
        most = float(block.max(initial=0.0))
        if most > largest:  # squares are those of values over the largest: none overflows
            squares *= (largest / most) ** 2
            largest = most
        if largest:
            squares += float(np.square(block / largest).sum())
    return largest * math.sqrt(squares / values.size) if values.size else 0.0
