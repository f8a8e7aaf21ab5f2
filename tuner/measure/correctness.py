"""Is a kernel's result right? Compared with the reference, on poisoned outputs.

Outputs are filled with NaN, or a pattern for other types, before the kernel runs, so that
elements it does not write are found; the memory before and behind them is filled too, so that
stray writes are. Floats may differ from the reference by rounding alone, which grows with the
depth of accumulation: with about its square root, as sums are reordered.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.grammar import checked as c
from tcl.grammar.sized import SizedDef
from tcl.grammar.traverse import evaluated, reads, walk
from tcl.grammar.types import ScalarType

Array: TypeAlias = npt.NDArray[Any]

_MARGIN = 256
"""Bytes of poison on either side of an output."""
_POISON = 0xA7
_SLACK = 8.0
"""Roundings that a result of depth 1 may differ by: contraction, and built-ins of a few ulp."""
_EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next number. (NumPy's ``finfo`` does not know bfloat16.)"""


class Guarded:
    """Memory with the layout and alignment of an array, and poison on either side.

    ``array`` is the array in it, of the shape, strides and type of ``like``.
    """

    def __init__(self, like: Array) -> None:
        reach = [(n - 1) * s for n, s in zip(like.shape, like.strides, strict=True) if n > 1]
        below = -sum(r for r in reach if r < 0)
        size = below + sum(r for r in reach if r > 0) + like.itemsize
        self.raw = np.empty(size + 2 * _MARGIN + 64, dtype=np.uint8)
        """All bytes, margins included."""
        shift = (like.ctypes.data - below - self.raw.ctypes.data - _MARGIN) % 64
        self.start: int = _MARGIN + shift
        """Where the array's own bytes begin among them."""
        self._stop = self.start + size
        self.array: Array = np.ndarray(
            like.shape, like.dtype, self.raw.data, self.start + below, like.strides
        )

    def poison(self) -> None:
        """Fill everything: floats with NaN, the rest and the margins with a pattern."""
        self.raw.fill(_POISON)
        if self.array.dtype.name in _EPSILON:
            self.array.fill(math.nan)

    def hold(self, values: Array) -> None:
        """Poison the margins, and give the array these values."""
        self.raw.fill(_POISON)
        np.copyto(self.array, values)

    def values(self) -> Array:
        """What the array holds."""
        return self.array

    def checksum(self) -> int:
        """Of every byte, margins included."""
        return zlib.crc32(self.raw.data)

    def intact(self) -> bool:
        """Whether the margins are still as ``poison`` left them."""
        before, behind = self.raw[: self.start], self.raw[self._stop :]
        return bool((before == _POISON).all() and (behind == _POISON).all())


def accumulation_depths(sized: SizedDef) -> dict[str, int]:
    """Tensor → how many roundings its elements may have gone through, one after the other.

    Inputs have 0. A statement adds its number of reduction points, at least 1, to the deepest
    tensor that it reads. A rounding to a coarser type on the way (float32 arithmetic that ends in
    a float64) counts as the many of the tensor's own type that are as large.
    """
    depths = dict.fromkeys(sized.shapes, 0)
    types = {name: tensor.type for name, tensor in sized.checked.tensors.items()}
    coarsest: dict[str, float] = {}
    for sized_statement in sized.statements:
        statement = sized_statement.statement
        points = math.prod(sized_statement.extent(i) for i in statement.reduction)
        read = {r.tensor for r in reads(statement)}
        if statement.op != "=" and not statement.initialise:
            read.add(statement.target)
        deepest = max((depths[name] for name in read), default=0)
        target = statement.target
        depths[target] = max(depths[target], deepest + max(1, points))
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


def _epsilon(type_: ScalarType) -> float:
    return _EPSILON.get(type_.name, 0.0) if type_.is_float else 0.0


def tolerance(dtype: str, depth: int) -> float:
    """Relative difference from the reference that rounding explains; 0 for other than floats."""
    return _EPSILON.get(dtype, 0.0) * _SLACK * math.sqrt(max(1, depth))


def mismatch(name: str, actual: Array, expected: Array, depth: int) -> str | None:
    """A sentence about the first element that is wrong; None when all are right.

    Floats are right within ``tolerance`` of the element, or of the root mean square of all
    elements, for those that are small because larger terms cancelled. NaN matches NaN, an
    infinity itself. All other types have to be equal.
    """
    relative = tolerance(expected.dtype.name, depth)
    if relative:
        wide = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        wrong = ~_close(*wide, relative)
    else:
        # As bytes, because the poison is no value of a bool.
        is_bool = expected.dtype == np.bool_
        ours, right = (
            np.ascontiguousarray(a).view(np.uint8) if is_bool else a for a in (actual, expected)
        )
        wrong = ours != right
    wrong = np.asarray(wrong).reshape(expected.shape)
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    place = f" at ({', '.join(map(str, where))})" if where else ""
    return (
        f"output {name} differs from the reference{place}: {actual[where]} instead of "
        f"{expected[where]} ({int(wrong.sum())} of {wrong.size} elements differ)"
    )


def _close(
    actual: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], relative: float
) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(expected)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.abs(expected, where=finite, out=np.zeros_like(expected)).max(initial=0))
        # Scaled, so that the squares of large numbers do not overflow.
        scaled = np.where(finite, expected, 0.0) / (largest or 1.0)
        scale = largest * math.sqrt(float(np.square(scaled).mean())) if expected.size else 0.0
        near = np.abs(actual - expected) <= relative * np.maximum(np.abs(expected), scale)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.asarray(np.where(finite, near | same, same), dtype=np.bool_)
