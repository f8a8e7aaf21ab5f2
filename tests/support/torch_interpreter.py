"""A def in torch, point by point, so that autograd differentiates it: the oracle of gradients.

It shares nothing with the derivation of backward defs. Sides of ``? :`` are computed at the points
that take them and nowhere else, ``min`` and ``max`` over indices are torch's ``amin`` and ``amax``,
which share the gradient of ties evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.tree import checked as c

DTYPES = {
    "bool": torch.bool,
    **{f"int{b}": getattr(torch, f"int{b}") for b in (8, 16, 32, 64)},
    "uint8": torch.uint8,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


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


def run(sized: SizedDef, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All tensors by name; ``inputs``: torch tensors."""
    tensors = dict(inputs)
    for statement in sized.statements:
        _Statement(sized, statement, tensors).run()
    return tensors


def _points(ranges: list[range]) -> Any:
    """All points, a row each."""
    found = list(itertools.product(*ranges))
    return torch.tensor(found, dtype=torch.int64).reshape(len(found), len(ranges))


class _Statement:
    def __init__(self, sized: SizedDef, of: SizedStatement, tensors: dict[str, Any]) -> None:
        self.sized, self.of, self.tensors = sized, of, tensors
        self.statement = of.statement
        self.lets = {let.name: let.value for let in of.statement.lets}

    def run(self) -> None:
        if self.statement.place is not None:
            self.scatter(self.statement.place)
            return
        statement, of = self.statement, self.of
        ranges = [range(*of.ranges[i]) for i in statement.all_indices]
        points = _points(ranges)
        where = {i: points[:, k] for k, i in enumerate(statement.all_indices)}
        values = self.value(statement.rhs, where, len(points))
        results = 1
        for index in statement.indices:
            results *= of.extent(index)
        values = values.expand(len(points)) if values.dim() == 0 else values
        values = values.reshape(results, len(points) // results if results else 1)
        target = statement.target
        box = self.sized.shapes[target], self.sized.origins[target]
        if target not in self.tensors:
            dtype = DTYPES[self.sized.checked.tensors[target].type.name]
            self.tensors[target] = torch.zeros(box[0], dtype=dtype)
        old = self.tensors[target]
        own = [range(*of.ranges[i]) for i in statement.indices]
        places = _points(own) - torch.tensor(box[1], dtype=torch.int64)
        at = tuple(places[:, k] for k in range(len(own)))
        if statement.op != "=" and not statement.initialise:
            there = old[at] if own else old.reshape(1)
            values = torch.cat([there.reshape(results, 1), values], 1)
        done = self.reduced(values).to(old.dtype)
        self.tensors[target] = old.index_put(at, done) if own else done.reshape(())

    def scatter(self, place: c.Read) -> None:
        """Reduce points into elements that data choose; those that add nothing choose none."""
        statement, target = self.statement, self.statement.target
        points = _points([range(*self.of.ranges[i]) for i in statement.all_indices])
        rhs = statement.rhs
        if isinstance(rhs, c.Select) and isinstance(rhs.otherwise, c.Const):
            where = {i: points[:, k] for k, i in enumerate(statement.all_indices)}
            points, rhs = points[self.value(rhs.condition, where, len(points))], rhs.then
        where = {i: points[:, k] for k, i in enumerate(statement.all_indices)}
        values = self.value(rhs, where, len(points))
        dtype = DTYPES[self.sized.checked.tensors[target].type.name]
        if statement.initialise:
            neutral = {"+": 0, "*": 1, "min": float("inf"), "max": -float("inf")}[statement.op]
            old = torch.full(self.sized.shapes[target], neutral, dtype=dtype)
        else:
            old = self.tensors[target]
        flat = torch.zeros(len(points), dtype=torch.int64)
        triples = zip(
            place.subscripts, self.sized.shapes[target], self.sized.origins[target], strict=True
        )
        for subscript, extent, origin in triples:
            at = self.value(subscript, where, len(points)).long() - origin
            if not bool(((at >= 0) & (at < extent)).all()):
                raise OutsideError(target)
            flat = flat * extent + at
        how = {"+": "sum", "*": "prod", "min": "amin", "max": "amax"}[statement.op]
        found = old.flatten().scatter_reduce(0, flat, values.to(dtype), how)
        self.tensors[target] = found.reshape(old.shape)

    def reduced(self, values: Any) -> Any:
        op = self.statement.op
        if op == "=" or values.shape[0] == 0:
            return values[:, 0]
        if values.shape[1] == 0 and op in ("min", "max"):
            return torch.full((values.shape[0],), float("inf" if op == "min" else "-inf"))
        if op == "+":
            return values.sum(1)
        if op == "*":
            return values.prod(1)
        return values.amin(1) if op == "min" else values.amax(1)

    def value(self, expr: c.Expr, where: Mapping[str, Any], count: int) -> Any:
        """The expression at ``count`` points."""

        def of(inner: c.Expr) -> Any:
            return self.value(inner, where, count)

        dtype = DTYPES[expr.type.name]
        match expr:
            case c.Const(value=value):
                return torch.full((count,), value, dtype=dtype)
            case c.Index(name=name):
                return where[name]
            case c.Size() | c.Dimension():
                return torch.full((count,), self.extent(expr))
            case c.LetRef(name=name):
                return of(self.lets[name])
            case c.Read(tensor=tensor, subscripts=subscripts):
                return self.read(tensor, [of(s).long() for s in subscripts], count)
            case c.Unary(op=op, operand=operand):
                return ~of(operand) if op == "!" else -of(operand)
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                first = of(left)
                go = first if op == "&&" else ~first
                found = torch.full((count,), op == "||", dtype=torch.bool)
                some = self.value(right, {i: v[go] for i, v in where.items()}, int(go.sum()))
                return found.index_put((go,), some)
            case c.Binary(op=op, left=left, right=right):
                return self.operation(op, of(left), of(right))
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = of(condition)
                found = torch.zeros(count, dtype=dtype)
                for side, mask in ((then, holds), (otherwise, ~holds)):
                    some = self.value(side, {i: v[mask] for i, v in where.items()}, int(mask.sum()))
                    found = found.index_put((mask,), some.to(dtype))
                return found
            case c.Call(name=name, arguments=arguments):
                return FUNCTIONS[name](*map(of, arguments))
            case c.Cast(operand=operand, type=type_):
                return of(operand).to(DTYPES[type_.name])
        raise AssertionError

    def extent(self, expr: c.Size | c.Dimension) -> int:
        if isinstance(expr, c.Size):
            return self.sized.sizes[expr.name]
        return self.sized.shapes[expr.tensor][expr.axis]

    def read(self, tensor: str, subscripts: list[Any], count: int) -> Any:
        origin, shape = self.sized.origins[tensor], self.sized.shapes[tensor]
        at = tuple(s - o for s, o in zip(subscripts, origin, strict=True))
        for place, extent in zip(at, shape, strict=True):
            if not bool(((place >= 0) & (place < extent)).all()):
                raise OutsideError(tensor)
        return self.tensors[tensor][at] if at else self.tensors[tensor].expand(count)

    def operation(self, op: str, a: Any, b: Any) -> Any:
        whole = not a.is_floating_point()
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return torch.div(a, b, rounding_mode="trunc") if whole else a / b
            case "%":
                return torch.fmod(a, b)
            case "min" | "max":
                return _half(a, b, op == "min")
            case "<":
                return a < b
            case "<=":
                return a <= b
            case ">":
                return a > b
            case ">=":
                return a >= b
            case "==":
                return a == b
        return a != b
