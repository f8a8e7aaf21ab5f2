"""Random scatters, and what NumPy's ``ufunc.at`` makes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from strategies import numpy_type

from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType

Array = np.ndarray[Any, np.dtype[Any]]

OPERATORS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
INTEGERS = tuple(n for n, t in SCALAR_TYPES.items() if t.is_integral)
ORDERS = ("random", "sorted", "same", "reversed")


@dataclass(frozen=True, slots=True)
class Scattered:
    """A def with one scatter, its inputs, and its output."""

    text: str
    inputs: tuple[Array, ...]
    expected: Array
    error: Array
    """About how much of it may be rounding."""


def random_scatter(
    seed: int, type_name: str = "", op: str = "", points: int = 40, extents: int = 0
) -> Scattered:
    """A scatter with up to two indices on the left by themselves, and one or two places that are
    read; ``extents`` of these, unless random ones will do."""
    rng = random.Random(seed)
    type_ = SCALAR_TYPES[type_name or rng.choice(tuple(SCALAR_TYPES))]
    op = op or rng.choice(tuple(OPERATORS))
    return _Builder(rng, np.random.default_rng(seed), type_, op, points, extents).build()


class _Builder:
    """Makes the text of a scatter and what it means side by side."""

    def __init__(
        self,
        rng: random.Random,
        numbers: Any,
        type_: ScalarType,
        op: str,
        points: int,
        extents: int,
    ) -> None:
        self.rng, self.numbers, self.type, self.op, self.extents = rng, numbers, type_, op, extents
        letters = rng.sample("bd", rng.randint(0, 2))
        self.plain = {letter: rng.choice((1, 3, 8, 17)) for letter in letters}
        self.over = {"n": rng.choice((0, 1, 7, points))}
        if rng.random() < 0.3:
            self.over["m"] = rng.randint(1, 3)
        self.every = {**self.plain, **self.over}
        self.inputs: dict[str, tuple[str, Array]] = {}
        self.lets: list[str] = []
        self.result = type_.name
        if type_.is_bool and op in "+*":
            self.result = "int32"

    def build(self) -> Scattered:
        axes = [*self.plain, *(f"place{k}" for k in range(self.rng.randint(1, 2)))]
        self.rng.shuffle(axes)
        subscripts, at, shape = zip(*map(self._axis, axes), strict=True)
        named = zip(axes, shape, strict=True)
        dims = ", ".join(a.upper() if a in self.plain else str(n) for a, n in named)
        values = _values(self.type, self.numbers, list(self.every.values()))
        self.inputs["W"] = _declared(self.type.name, list(self.every)), values
        value, there = self._guarded(f"W({', '.join(self.every)})")
        before, mark, start = "", "!", None
        if self.rng.random() < 0.3:
            start = 1 if self.result == "bool" else 2
            names = [a if a in self.plain else f"a{k}" for k, a in enumerate(axes)]
            ranges = ", ".join(f"{i} in 0:{n}" for i, n in zip(names, shape, strict=True))
            before, mark = f"H({', '.join(names)}) = {self.result}({start}) where {ranges}\n", ""
        where = f" where {', '.join(self.lets)}" if self.lets else ""
        parameters = ", ".join(f"{kind} {name}" for name, (kind, _) in self.inputs.items())
        text = (
            f"def f({parameters}) -> ({self.result}({dims}) H) {{\n"
            f"{before}H({', '.join(subscripts)}) {self.op}={mark} {value}{where}\n}}"
        )
        arrays = tuple(array for _, array in self.inputs.values())
        begin = np.full(shape, _identity(self.op, self.result) if start is None else start)
        return Scattered(text, arrays, *_expected(begin, self.result, self.op, at, values, there))

    def _axis(self, name: str) -> tuple[str, Array, int]:
        """A subscript on the left, its value at every point, and the extent of its axis."""
        whole = tuple(self.every.values())
        if name in self.plain:
            along = _along(np.arange(self.plain[name]), [name], self.every)
            return name, np.broadcast_to(along, whole), self.plain[name]
        extent = self.extents or self.rng.choice((1, 2, 5, 30))
        own = [i for i in self.every if self.rng.random() < (0.7 if i in self.over else 0.3)]
        own = own or ["n"]
        kind = self.rng.choice(INTEGERS)
        found = _places(self.rng, self.numbers, [self.every[i] for i in own], min(extent, 127))
        self.inputs[name.upper()] = _declared(kind, own), found.astype(kind)
        spread = np.broadcast_to(_along(found, own, self.every), whole)
        text = f"{name.upper()}({', '.join(own)})"
        if name == "place1" and self.rng.random() < 0.25:  # the data of the other place will do
            there = _along(np.arange(self.over["n"]) // 3, ["n"], self.every)
            return "n / 3", np.broadcast_to(there, whole), self.over["n"] // 3 + 1
        form = self.rng.choice(("plain", "plain", "let", "scaled", "chain", "float chain"))
        if form == "scaled":
            return f"2 * {text} + 1", 2 * spread + 1, 2 * extent + 1
        if form == "let":
            self.lets.append(f"q{name} = {text}")
            text = f"q{name}"
        if form == "chain":
            self.lets += [f"q{name} = {text}", f"h{name} = q{name} / 2", f"r{name} = h{name} + 1"]
            return f"r{name}", spread // 2 + 1, extent // 2 + 2
        if form == "float chain":
            self.lets += [f"q{name} = float({text})", f"r{name} = 0.5 * q{name} + 0.25"]
            return f"int32(r{name})", spread // 2, extent // 2 + 1
        return text, spread, extent

    def _guarded(self, value: str) -> tuple[str, Array]:
        """The right side, perhaps under a condition, and where that holds."""
        whole = tuple(self.every.values())
        ignored = _ignored(self.op, self.type)
        if ignored is None or self.rng.random() < 0.6:
            return value, np.ones(whole, np.bool_)
        keep = self.numbers.random(self.over["n"]) < 0.6
        self.inputs["Keep"] = "bool(N)", keep
        there = np.broadcast_to(_along(keep, ["n"], self.every), whole)
        return f"Keep(n) ? {value} : {ignored}", there


def _places(rng: random.Random, numbers: Any, shape: list[int], extent: int) -> Array:
    found = numbers.integers(0, extent, shape)
    match rng.choice(ORDERS):
        case "sorted":
            found = np.sort(found, axis=0)
        case "reversed":
            found = np.sort(found, axis=0)[::-1].copy()
        case "same":
            found[...] = extent - 1
    return np.asarray(found)


def _values(type_: ScalarType, numbers: Any, shape: list[int]) -> Array:
    if type_.is_float:
        found = numbers.random(shape) + 0.5
    elif type_.is_bool:
        found = numbers.random(shape) < 0.5
    else:
        found = numbers.integers(1, 4, shape)
    return np.asarray(found, numpy_type(type_.name))


def _declared(type_name: str, indices: list[str]) -> str:
    return f"{type_name}({', '.join(i.upper() for i in indices)})" if indices else type_name


def _along(array: Array, own: list[str], every: dict[str, int]) -> Array:
    return array.reshape([every[i] if i in own else 1 for i in every])


def _ignored(op: str, type_: ScalarType) -> str | None:
    if op in "+*":
        return None if type_.is_bool else str(int(op == "*"))
    if type_.is_float:
        return f"{type_.name}({'' if op == 'max' else '-'}log(0.0))"
    if type_.is_bool:
        return "bool(1)" if op == "min" else "bool(0)"
    return str(type_.limits[op == "min"])


def _identity(op: str, result: str) -> float:
    type_ = SCALAR_TYPES[result]
    low, high = (-np.inf, np.inf) if type_.is_float else type_.limits
    return {"+": 0, "*": 1, "min": high, "max": low}[op]


_EPS = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-13}


def _expected(
    begin: Array, result: str, op: str, at: tuple[Array, ...], values: Array, there: Array
) -> tuple[Array, Array]:
    """The result, and about how much of it may be rounding."""
    held = begin.astype(np.float64 if SCALAR_TYPES[result].is_float else numpy_type(result))
    with np.errstate(all="ignore"):
        chosen = tuple(a[there] for a in at)
        OPERATORS[op].at(held, chosen, values[there].astype(held.dtype))
        size = np.abs(np.where(np.isfinite(held.astype(np.float64)), held, 0))
        return held.astype(numpy_type(result)), _EPS.get(result, 0.0) * size.astype(np.float64)
