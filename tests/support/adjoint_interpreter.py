"""A def in NumPy, point by point, with the adjoint of each statement: the oracle of gradients.

It shares nothing with the derivation of backward defs. A value is kept with its partial derivatives
by the elements that were read for it; the adjoints of statements, from the last to the first, add
these up by ``np.add.at``. Sides of ``? :`` are computed at the points that take them and nowhere
else; what is equal to a ``min`` or ``max`` shares its gradient evenly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.terms import term


class OutsideError(Exception):
    """A read outside its tensor: the def itself raises ``IndexError``."""


def _half(x: Any, y: Any, smaller: bool) -> Any:
    return torch.minimum(x, y) if smaller else torch.maximum(x, y)


def _number_of(x: Any, y: Any, smaller: bool) -> Any:
    """``fmin fmax``: of a NaN and a number the number, and its gradient."""
    both = ~(x.isnan() | y.isnan())
    safe = torch.where(both, x, 0), torch.where(both, y, 0)
    return torch.where(both, _half(*safe, smaller), torch.where(x.isnan(), y, x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: getattr(torch, n) for n in (
        "acos acosh asin asinh atan atanh atan2 ceil cos cosh erf erfc erfinv exp exp2 expm1 floor "
        "hypot log log10 log1p log2 pow rsqrt sin sinh sqrt tan tanh trunc fmod copysign"
    ).split()},
    "fabs": torch.abs,
    "fmin": lambda x, y: _number_of(x, y, True),
    "fmax": lambda x, y: _number_of(x, y, False),
    "fdivide": torch.div,
    "fma": lambda x, y, z: x * y + z,
    "fdim": lambda x, y: torch.maximum(x - y, torch.zeros_like(x)),
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    "norm3d": lambda x, y, z: (x * x + y * y + z * z).sqrt(),
    "sinpi": lambda x: torch.sin(torch.pi * x),
    "cospi": lambda x: torch.cos(torch.pi * x),
    "erfcx": torch.special.erfcx,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
}  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": torch.add,
    "-": torch.sub,
    "*": torch.mul,
    "/": lambda x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc"),
    "%": torch.fmod,
    "min": lambda x, y: _half(x, y, True),
    "max": lambda x, y: _half(x, y, False),
    "<": torch.lt,
    "<=": torch.le,
    ">": torch.gt,
    ">=": torch.ge,
    "==": torch.eq,
    "!=": torch.ne,
}


@dataclass(frozen=True, slots=True)
class Partial:
    """Derivatives of a value, at some points, by one element each."""

    tensor: str
    points: Any
    elements: Any
    """Places in the tensor, as if it had one dimension."""
    factors: Any


@dataclass(frozen=True, slots=True)
class Adjoint:
    """What a statement does to the elements of its target, and to its points."""

    target: str
    written: Any
    """The element of each point."""
    by_value: Any
    """The derivative of that element by the value of the point."""
    by_old: Any
    """The derivative of each element by what it was before."""
    partials: list[Partial]


class Interpreted:
    """A run of a def: its tensors, and its gradients."""

    def __init__(self, sized: SizedDef, inputs: Mapping[str, Any]) -> None:
        self.sized = sized
        self.tensors = {name: np.asarray(value) for name, value in inputs.items()}
        self.whole = all(_whole(value) for value in self.tensors.values())
        """Whether all numbers were small whole ones: then any order of operations is exact."""
        self.adjoints: list[Adjoint] = []
        for statement in sized.statements:
            adjoint = _Statement(sized, statement, self.tensors).run()
            self.adjoints.append(adjoint)
            factors = [p.factors for p in adjoint.partials]
            numbers = (self.tensors[adjoint.target], adjoint.by_value, adjoint.by_old, *factors)
            self.whole = self.whole and all(map(_whole, numbers))

    def gradients(self, seeds: Mapping[str, Any]) -> dict[str, Any]:
        """By each tensor: of the sum of the products of outputs and ``seeds``."""
        found = {n: np.zeros(t.size) for n, t in self.tensors.items()}
        for name, seed in seeds.items():
            found[name] += np.ravel(seed)
        for adjoint in reversed(self.adjoints):
            by_point = found[adjoint.target][adjoint.written] * adjoint.by_value
            found[adjoint.target] = np.where(
                adjoint.by_old == 0, 0, found[adjoint.target] * adjoint.by_old
            )
            for partial in adjoint.partials:
                shares = by_point[partial.points] * partial.factors
                np.add.at(found[partial.tensor], partial.elements, shares)
            self.whole = self.whole and _whole(by_point)
        self.whole = self.whole and all(map(_whole, found.values()))
        return {n: g.reshape(self.tensors[n].shape) for n, g in found.items()}


def _whole(values: Any) -> bool:
    numbers = np.asarray(values, dtype=np.float64)
    return bool(((numbers == np.round(numbers)) & (np.abs(numbers) < 2**24)).all())


class _Statement:
    def __init__(self, sized: SizedDef, of: SizedStatement, tensors: dict[str, Any]) -> None:
        self.sized, self.tensors = sized, tensors
        self.statement = statement = of.statement
        self.lets = {let.name: let.value for let in statement.lets}
        self.ranges = {i: range(*of.ranges[i]) for i in statement.all_indices}
        points = np.array(list(itertools.product(*self.ranges.values())), dtype=np.int64)
        points = points.reshape(math.prod(map(len, self.ranges.values())), len(self.ranges))
        self.where = {i: points[:, k] for k, i in enumerate(statement.all_indices)}
        self.count = len(points)

    def run(self) -> Adjoint:
        """Write the target."""
        statement, target = self.statement, self.statement.target
        type_ = self.sized.checked.tensors[target].type
        shape = self.sized.shapes[target]
        points, rhs = np.arange(self.count), statement.rhs
        if statement.place is None:
            written = self.elements(target, [self.where[i] for i in statement.indices], self.count)
        else:
            condition, rhs = term(statement)
            if condition is not None:
                points = points[self.value(condition, points)[0]]
            subscripts = [self.value(s, points)[0] for s in statement.place.subscripts]
            written = self.elements(target, subscripts, len(points))
        axes = zip(statement.axes, self.sized.origins[target], shape, strict=True)
        box = [self.ranges[i] if i else range(o, o + n) for i, o, n in axes]
        grid = np.meshgrid(*box, indexing="ij")
        own = self.elements(target, [np.ravel(g) for g in grid], math.prod(map(len, box)))
        values, partials = self.value(rhs, points)
        # Sums of floats are exact enough to be compared with any order of them.
        values = values.astype(np.float64) if type_.is_float else values
        old = self.tensors.get(target, np.zeros(shape, type_.name)).ravel().astype(values.dtype)
        new, by_old = old.copy(), np.ones(old.size)
        if statement.initialise or statement.op == "=":
            new[own], by_old[own] = _identity(statement.op, values.dtype), 0
        start = new.copy()
        at = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
        if statement.op == "=":
            new[written] = values
        else:
            at[statement.op].at(new, written, values)
        by_value = np.ones(len(points))
        if statement.op == "*":
            zeros, others = (start == 0).astype(int), np.where(start == 0, 1, start)
            np.add.at(zeros, written, values == 0)
            np.multiply.at(others, written, np.where(values == 0, 1, values))
            by_value = _product_of_others(values, zeros[written], others[written])
            by_old = np.where(by_old == 0, 0, _product_of_others(start, zeros, others))
        elif statement.op in ("min", "max"):
            equal = values == new[written]
            shared = np.where(by_old == 0, 0, start == new)
            np.add.at(shared, written, equal)
            by_value = equal / np.maximum(shared, 1)[written]
            by_old = np.where(by_old == 0, 0, (start == new) / np.maximum(shared, 1))
        self.tensors[target] = new.reshape(shape).astype(type_.name)
        at_point = np.zeros(self.count, dtype=np.int64)
        at_point[points] = np.arange(len(points))
        partials = [
            Partial(p.tensor, at_point[p.points], p.elements, p.factors)
            for p in (partials if type_.is_float else [])
        ]
        return Adjoint(target, written, by_value, by_old, partials)

    def elements(self, tensor: str, subscripts: list[Any], count: int) -> Any:
        """Places in the tensor, as if it had one dimension."""
        flat = np.zeros(count, dtype=np.int64)
        of = zip(subscripts, self.sized.shapes[tensor], self.sized.origins[tensor], strict=True)
        for subscript, extent, origin in of:
            place = np.asarray(subscript, dtype=np.int64) - origin
            if not ((place >= 0) & (place < extent)).all():
                raise OutsideError(tensor)
            flat = flat * extent + place
        return flat

    def scaled(self, partials: list[Partial], points: Any, factor: Any) -> list[Partial]:
        by_point = np.zeros(self.count)
        by_point[points] = factor
        return [
            Partial(p.tensor, p.points, p.elements, p.factors * by_point[p.points])
            for p in partials
        ]

    def value(self, expr: c.Expr, points: Any) -> tuple[Any, list[Partial]]:
        """The expression at these points."""

        def of(inner: c.Expr) -> Any:
            return self.value(inner, points)

        dtype = np.dtype(expr.type.name)
        match expr:
            case c.Const(value=value):
                return np.full(len(points), value, dtype), []
            case c.Index(name=name):
                return self.where[name][points], []
            case c.Size(name=name):
                return np.full(len(points), self.sized.sizes[name]), []
            case c.Dimension(tensor=tensor, axis=axis):
                return np.full(len(points), self.sized.shapes[tensor][axis]), []
            case c.LetRef(name=name):
                return self.value(self.lets[name], points)
            case c.Read(tensor=tensor, subscripts=subscripts):
                places = self.elements(tensor, [of(s)[0] for s in subscripts], len(points))
                read = self.tensors[tensor].ravel()[places]
                return read, [Partial(tensor, points, places, np.ones(len(points)))]
            case c.Unary(op=op, operand=operand):
                value, partials = of(operand)
                return ~value if op == "!" else -value, self.scaled(partials, points, -1)
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                found = of(left)[0].copy()
                go = found if op == "&&" else ~found
                found[go] = self.value(right, points[go])[0]
                return found, []
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = of(condition)[0]
                found, partials = np.zeros(len(points), dtype), []
                for side, mask in ((then, holds), (otherwise, ~holds)):
                    found[mask], more = self.value(side, points[mask])
                    partials += more
                return found, partials
            case c.Cast(operand=operand, type=type_):
                value, partials = of(operand)
                smooth = type_.is_float and operand.type.is_float
                return value.astype(dtype), partials if smooth else []
            case c.Binary(left=left, right=right):
                arguments, operation = [of(left), of(right)], OPERATIONS[expr.op]
            case c.Call(name=name, arguments=given):
                arguments, operation = [of(a) for a in given], FUNCTIONS[name]
        if not expr.type.is_float:
            return operation(*(torch.tensor(v) for v, _ in arguments)).numpy(), []
        leaves = [torch.tensor(v, requires_grad=True) for v, _ in arguments]
        value = operation(*leaves)
        slopes = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
        found = [
            self.scaled(partials, points, slope.numpy())
            for (_, partials), slope in zip(arguments, slopes, strict=True)
            if slope is not None
        ]
        return value.detach().numpy(), list(itertools.chain(*found))


def _identity(op: str, dtype: Any) -> Any:
    if op in ("=", "+", "*"):
        return 1 if op == "*" else 0
    lowest, highest = (
        (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    )
    return highest if op == "min" else lowest


def _product_of_others(values: Any, zeros: Any, others: Any) -> Any:
    """Of a product with so many factors 0, and that product of the other ones: its derivative."""
    with_none = others / np.where(values == 0, 1, values)
    return np.where(zeros == 0, with_none, np.where((zeros == 1) & (values == 0), others, 0))
