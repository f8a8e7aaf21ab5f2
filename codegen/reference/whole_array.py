"""A def as whole-array NumPy: einsum for contractions, broadcasting for the rest.

What somebody without a kernel compiler would write. ``tcl tune`` measures against it, tests use it
as a third opinion, as it shares no code with the reference or the other backends, and ``rounding``
moves everything in it where that is done before Numba has compiled the reference of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.ranges.linear import Analysis, Linear
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.syntax.types import INT64, UINT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.size_expressions import OPERATIONS
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import is_exact, walk

Array: TypeAlias = npt.NDArray[Any]

MAX_POINTS = 1 << 26
"""Largest iteration space that is spread out in memory, unless less is said."""


class NoFormulationError(Exception):
    """NumPy has no function for a built-in, or the intermediate arrays would be too large."""


def whole_array(
    sized: SizedDef, most: int = MAX_POINTS
) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """The def as a function ``(inputs, outputs)`` that writes into the outputs.

    It raises ``NoFormulationError`` when called, before writing anything, if there is none, and
    ``IndexError`` for a data-dependent subscript out of range. ``most``: points that it spreads
    out in memory.
    """
    tensors = sized.checked.inputs + sized.checked.outputs
    runs = [_Statement(sized, s, most) for s in sized.statements]

    def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        given = zip(tensors, (*inputs, *outputs), strict=True)
        # 16-bit floats may come as their bits.
        arrays = {t.name: array.view(numpy_dtype(t.type)) for t, array in given}
        for statement in runs:
            statement.run(arrays)

    return run


@dataclass(slots=True)
class _Statement:
    """One statement over its whole iteration space: one axis per index, in order."""

    sized: SizedDef
    own: SizedStatement
    most: int
    axes: dict[str, int] = field(init=False)
    analysis: Analysis = field(init=False)
    arrays: Mapping[str, Array] = field(init=False)
    lets: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        statement = self.own.statement
        self.axes = {name: axis for axis, name in enumerate(statement.all_indices)}
        ranges = {n: (first, stop - 1) for n, (first, stop) in self.own.ranges.items()}
        lets = {let.name: let.value for let in statement.lets}
        self.analysis = Analysis(self.sized.sizes, self.sized.shapes, lets, dict(ranges))

    def run(self, arrays: Mapping[str, Array]) -> None:
        statement = self.own.statement
        self.arrays, self.lets = arrays, {}
        if statement.place is not None:
            self._scatter(statement.place)
            return
        # The box of the target that is written; the ellipsis keeps rank 0 an array.
        ranges = (self.own.ranges[i] for i in statement.indices)
        origin = self.sized.origins[statement.target]
        spans = zip(ranges, origin, strict=True)
        box: list[Any] = [slice(low - first, stop - first) for (low, stop), first in spans]
        target: Array = arrays[statement.target][(*box, ...)]
        type_ = self.sized.checked.tensors[statement.target].type
        if 0 in target.shape:
            return
        shape = tuple(self.own.extent(i) for i in statement.all_indices)
        result = self._contraction()
        if result is None:
            if math.prod(shape) > self.most:
                raise NoFormulationError(f"{math.prod(shape)} points are too many for NumPy")
            with np.errstate(all="ignore"):
                self._bind()
                values = np.broadcast_to(self._value(statement.rhs, None), shape)
                result = self._reduce(values, type_, target)
        target[...] = result

    def _reduce(self, values: Array, type_: ScalarType, target: Array) -> Array:
        statement = self.own.statement
        if statement.op == "=":
            return values
        ufunc = _UFUNCS[statement.op]
        dtype = _compute(type_)
        axes = tuple(range(len(statement.indices), values.ndim))
        identity = _identity(statement.op, type_)
        if 0 in values.shape:
            result = np.full(target.shape, identity, dtype)
        else:
            values = _as(values, dtype)
            result = ufunc.reduce(values, axis=axes, dtype=dtype) if axes else values
        start = np.asarray(identity if statement.initialise else target, dtype)
        combined: Array = ufunc(result, start, dtype=dtype)
        return combined

    def _scatter(self, place: c.Read) -> None:
        """Point after point, by NumPy's ``ufunc.at``; sums and products of floats in float64."""
        statement = self.own.statement
        shape = tuple(self.own.extent(i) for i in statement.all_indices)
        if math.prod(shape) > self.most:
            raise NoFormulationError(f"{math.prod(shape)} points are too many for NumPy")
        array, type_ = self.arrays[place.tensor], place.type
        origin = self.sized.origins[place.tensor]
        box = tuple(
            slice(None) if i is None else slice(*(x - first for x in self.own.ranges[i]))
            for i, first in zip(statement.axes, origin, strict=True)
        )
        wide = type_.is_float and statement.op in ("+", "*")
        held = _as(array, np.dtype(np.float64) if wide else _compute(type_)).copy()
        if statement.initialise:
            held[box] = _identity(statement.op, type_)
        with np.errstate(all="ignore"):
            self._bind()
            condition, value = term(statement)
            there = None if condition is None else self._value(condition, None)
            values = np.broadcast_to(self._value(value, there), shape)
            points = self._position(place, there)
            every = [np.broadcast_to(p, shape) for p in points]
            if there is not None:
                chosen = np.broadcast_to(there, shape)
                every, values = [p[chosen] for p in every], values[chosen]
            if values.size:
                _UFUNCS[statement.op].at(held, tuple(every), _as(values, held.dtype))
            array[box] = held[box]

    # --- contractions ---

    def _contraction(self) -> Array | None:
        """A sum of products of plain reads, by einsum; None for anything else."""
        statement = self.own.statement
        if statement.op != "+" or not statement.initialise or statement.lets:
            return None
        if not statement.rhs.type.is_float or not statement.reduction:
            return None
        factors = _factors(statement.rhs)
        operands: list[Any] = []
        scale = 1.0
        used: set[str] = set()
        dtype = _compute(statement.rhs.type)
        for factor in factors:
            if isinstance(factor, c.Const):
                scale *= factor.value
                continue
            if not isinstance(factor, c.Read) or factor.type != statement.rhs.type:
                return None
            forms = self._affine(factor)
            if forms is None:
                return None
            names = sorted({n for f in forms for n in f.indices}, key=self.axes.__getitem__)
            view = self._view(factor, forms, names).astype(dtype, copy=False)
            operands += [view, [self.axes[n] for n in names]]
            used.update(names)
        if not operands or used != set(statement.all_indices):
            return None
        kept = [self.axes[n] for n in statement.indices]
        result: Array = np.einsum(*operands, kept, optimize="greedy")
        return result if scale == 1.0 else result * dtype.type(scale)

    # --- reads ---

    def _affine(self, read: c.Read) -> list[Linear] | None:
        """The subscripts as affine forms, if the read is in bounds everywhere."""
        forms = [self.analysis.exact(s) for s in read.subscripts]
        origin, shape = self.sized.origins[read.tensor], self.sized.shapes[read.tensor]
        for form, first, extent in zip(forms, origin, shape, strict=True):
            low, high = self.analysis.bounds(form)
            if not form.is_affine or low < first or high >= first + extent:
                return None
        return forms

    def _view(self, read: c.Read, forms: Sequence[Linear], names: Sequence[str]) -> Array:
        """A strided view of the tensor with one axis per index in ``names``."""
        array = self.arrays[read.tensor]
        start = []
        strides = dict.fromkeys(names, 0)
        for form, stride, origin in zip(
            forms, array.strides, self.sized.origins[read.tensor], strict=True
        ):
            first = form.constant - origin
            for name, k in form.terms.items():
                assert isinstance(name, str)
                first += k * self.own.ranges[name][0]
                strides[name] += k * stride
            start.append(first)
        shape = tuple(self.own.extent(n) for n in names)
        if 0 in shape:
            return np.empty(shape, array.dtype)
        base = array[tuple(slice(s, s + 1) for s in start)] if start else array
        return np.lib.stride_tricks.as_strided(
            base, shape, tuple(strides[n] for n in names), writeable=False
        )

    def _read(self, read: c.Read, mask: Array | None) -> Array:
        forms = self._affine(read)
        if forms is not None:
            return _as(self._view(read, forms, list(self.axes)), _compute(read.type))
        array = self.arrays[read.tensor]
        position = self._position(read, mask)
        if 0 in array.shape:
            return np.zeros((1,) * len(self.axes), _compute(read.type))
        found: Array = array[tuple(position)]
        return _as(found, _compute(read.type))

    def _position(self, read: c.Read, mask: Array | None) -> list[Array]:
        """Where an element lies in its array, at every point."""
        array = self.arrays[read.tensor]
        position = []
        bounds = zip(self.sized.origins[read.tensor], array.shape, strict=True)
        for subscript, (first, extent) in zip(read.subscripts, bounds, strict=True):
            value = self._subscript(subscript, mask) - first
            bad = (value < 0) | (value >= extent)
            if mask is not None:
                bad = bad & mask
            if bad.any():
                raise IndexError(f"subscript of {read.tensor} out of range")
            position.append(np.clip(value, 0, max(0, extent - 1)))
        return position

    def _subscript(self, expr: c.Expr, mask: Array | None) -> Array:
        """A subscript, which is computed in 64 bits."""
        form = self.analysis.exact(expr)
        if not form.is_affine or any(isinstance(node, c.Read) for node in walk(expr)):
            value = self._value(self._wide(expr), mask)
            large = value > INT64.limits[1] if expr.type == UINT64 else False
            return np.where(large, INT64.limits[1], value.astype(np.int64))
        total = np.full((1,) * len(self.axes), form.constant, np.int64)
        for name, k in form.terms.items():
            assert isinstance(name, str)
            total = total + k * self._grid(name)
        return total

    def _wide(self, expr: c.Expr) -> c.Expr:
        """A subscript with the types in which it is computed."""
        match expr:
            case _ if not is_exact(expr):
                return expr if expr.type == UINT64 else c.Cast(expr, INT64, expr.span)
            case c.LetRef(name=name):
                if self._differs(self.analysis.lets[name]):
                    return replace(expr, name=f"{name}.exact", type=INT64)
                return c.Cast(expr, INT64, expr.span)
            case c.Const():
                return replace(expr, type=INT64)
            case c.Cast(operand=operand):
                return self._wide(operand)
            case c.Unary(operand=operand):
                return replace(expr, operand=self._wide(operand), type=INT64)
            case c.Binary(left=left, right=right):
                return replace(expr, left=self._wide(left), right=self._wide(right), type=INT64)
            case c.Select(then=then, otherwise=other):
                return replace(expr, then=self._wide(then), otherwise=self._wide(other), type=INT64)
            case _:
                return c.Cast(expr, INT64, expr.span)

    def _bind(self) -> None:
        """The values of the statement's names, and what these are in subscripts where that may be
        something else."""
        for let in self.own.statement.lets:
            self.lets[let.name] = self._value(let.value, None)
            if self._differs(let.value):
                self.lets[f"{let.name}.exact"] = self._value(self._wide(let.value), None)

    def _differs(self, expr: c.Expr) -> bool:
        """Whether a subscript may be something else than the value of an integer."""
        analysis = self.analysis
        return expr.type.is_integral and analysis.exact(expr) is not analysis.linear(expr)

    def _grid(self, name: str) -> Array:
        first, stop = self.own.ranges[name]
        shape = [1] * len(self.axes)
        shape[self.axes[name]] = stop - first
        return np.arange(first, stop, dtype=np.int64).reshape(shape)

    # --- values ---

    def _value(self, expr: c.Expr, mask: Array | None) -> Array:
        """The value at every point, in the type it is computed in; ``mask``: where it counts."""
        dtype = _compute(expr.type)
        match expr:
            case c.Const(value=value):
                return np.full((1,) * len(self.axes), value, dtype)
            case c.Index(name=name):
                return self._grid(name).astype(dtype)
            case c.Size(name=name):
                return np.full((1,) * len(self.axes), self.sized.sizes[name]).astype(dtype)
            case c.Dimension(tensor=tensor, axis=axis):
                extent = self.sized.shapes[tensor][axis]
                return np.full((1,) * len(self.axes), extent).astype(dtype)
            case c.LetRef(name=name):
                return self.lets[name]
            case c.Read():
                return self._read(expr, mask)
            case c.Unary(op=op, operand=operand):
                inner = self._value(operand, mask)
                return np.logical_not(inner) if op == "!" else _as(np.negative(inner), dtype)
            case c.Binary():
                return self._binary(expr, mask)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                chosen = self._value(condition, mask)
                yes = self._value(then, chosen if mask is None else mask & chosen)
                no = self._value(otherwise, ~chosen if mask is None else mask & ~chosen)
                return np.where(chosen, yes, no)
            case c.Call(name=name, arguments=arguments):
                if name not in _FUNCTIONS:
                    raise NoFormulationError(f"NumPy has no {name}")
                return _as(_FUNCTIONS[name](*(self._value(a, mask) for a in arguments)), dtype)
            case c.Cast(operand=operand, type=type_):
                return _cast(self._value(operand, mask), type_)
            case _:
                assert_never(expr)

    def _binary(self, expr: c.Binary, mask: Array | None) -> Array:
        left = self._value(expr.left, mask)
        if expr.op in ("&&", "||"):
            inner = left if expr.op == "&&" else ~left
            right = self._value(expr.right, inner if mask is None else mask & inner)
            return left & right if expr.op == "&&" else left | right
        right = self._value(expr.right, mask)
        if expr.op in "/%" and not expr.type.is_float:
            return _integer_division(expr.op, left, right)
        operation = np.fmod if expr.op == "%" else _OPERATIONS[expr.op]
        return _as(operation(left, right), _compute(expr.type))


_UFUNCS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}


def _identity(op: str, type_: ScalarType) -> float | int:
    if op in "+*":
        return 0 if op == "+" else 1
    low, high = (-math.inf, math.inf) if type_.is_float else type_.limits
    return high if op == "min" else low


def _factors(expr: c.Expr) -> list[c.Expr]:
    if isinstance(expr, c.Binary) and expr.op == "*":
        return [*_factors(expr.left), *_factors(expr.right)]
    return [expr]


def _compute(type_: ScalarType) -> np.dtype[Any]:
    return numpy_dtype(type_.compute)


def _as(value: Array, dtype: np.dtype[Any]) -> Array:
    return value.astype(dtype, copy=False)


def _integer_division(op: str, a: Array, b: Array) -> Array:
    """C's: towards zero, with 0 for a division by zero; the smallest by -1 wraps."""
    quotient = np.floor_divide(a, b)
    remainder = (a - quotient * b).astype(a.dtype)
    if a.dtype.kind == "i":
        up = (remainder != 0) & ((a < 0) != (b < 0))
        quotient = (quotient + up).astype(a.dtype)
        remainder = (a - quotient * b).astype(a.dtype)
    result = quotient if op == "/" else remainder
    return np.where(b == 0, np.zeros((), a.dtype), result)


def _cast(value: Array, type_: ScalarType) -> Array:
    if type_.is_bool:
        return np.not_equal(value, 0)
    if type_.is_float:
        return value.astype(numpy_dtype(type_)).astype(_compute(type_))
    dtype = numpy_dtype(type_)
    if value.dtype.kind != "f":
        return value.astype(dtype)
    low, high = type_.limits
    wide = np.trunc(value.astype(np.float64))
    inside = (wide > float(low)) & (wide < float(high))  # False for NaN
    result = np.where(inside, wide, 0).astype(dtype)
    result = np.where(wide <= float(low), np.asarray(low, dtype), result)
    return np.where(wide >= float(high), np.asarray(high, dtype), result)


def _expit(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    result: Array = np.where(x < 0, e, x.dtype.type(1)) / (1 + e)
    return result


_OPERATIONS: dict[str, Callable[..., Array]] = {**OPERATIONS, "/": np.divide, **_UFUNCS}


def nudged(x: Array, by: Array, off: Array, seed: Array) -> Array:
    """``numbers.nudged`` of arrays; ``seed`` is one number."""
    if not seed.any():
        return x
    bits = np.asarray(x, order="C").view(np.int64)
    digits = bits & np.int64(~(0x7FF << 52)) | np.int64(0x3FF << 52)
    drawn = digits.view(np.float64) * np.abs(seed)
    drawn -= np.floor(drawn) + 0.5
    times = np.copysign(1.0, seed) * (np.copysign(2.0, drawn) + 8.0 * drawn)
    held = x.astype(np.float32) == x
    moved: Array = x + (np.where(held, 0.0, x * by) + off) * times
    return moved


_SAME = """acos acosh asin asinh atan atanh atan2 cbrt ceil copysign cos cosh exp exp2 expm1 fabs
floor fmax fmin fmod hypot log log10 log1p log2 nextafter pow sin sinh sqrt tan tanh trunc"""
_NUMPY_NAMES = {
    **{f"a{f}": f"arc{f}" for f in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "atan2": "arctan2",
    "pow": "power",
}
_FUNCTIONS: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, _NUMPY_NAMES.get(name, name)) for name in _SAME.split()},
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "expit": _expit,
    "fdim": lambda x, y: np.where(x <= y, x.dtype.type(0), x - y),
    "fdivide": np.divide,
    "fma": lambda x, y, z: x * y + z,
    "nudged": nudged,
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "rnorm3d": lambda x, y, z: 1 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1 / np.sqrt(x * x + y * y + z * z + w * w),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
