"""Index arithmetic that is accepted for given sizes gives what Python's integers give."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from itertools import product
from typing import TypeAlias

import numpy as np
import pytest
from sampling import swept

import tcl
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.intervals import operation
from tcl.grammar.syntax.errors import RangeInferenceError
from tcl.grammar.syntax.types import INT8, INT32, INT64, UINT8, UINT16, ScalarType
from tcl.grammar.tree.size_expressions import OPERATIONS, wrapped

_SIZES = {"C": 100_000, "T": 60_000}


def _text(body: str) -> str:
    return f"def f(float(C, T) X, int32(T) B) -> (O) {{ {body} }}"


def _infer(body: str, **sizes: int) -> None:
    rows, columns = {**_SIZES, **sizes}.values()
    infer(check(_text(body))["f"], {"X": (rows, columns), "B": (columns,)})


_LEAVES = (  # the smallest part that leaves, and its values at 100000 x 60000
    ("O(i, j) = i * j where i in 0:C, j in 0:T", "i * j", (0, 99_999 * 59_999)),
    ("O(i, j) = i * (j / 2) where i in 0:C, j in 0:T", "i * (j / 2)", (0, 99_999 * 29_999)),
    ("O(i, j) = i * (j / 2 - 1) where i in 0:C, j in 0:T", "i * (j / 2 - 1)",
     (-99_999, 99_999 * 29_998)),
    ("O(i, j) = i * max(j, 1) - 1 where i in 0:C, j in 0:T", "i * max(j, 1)", (0, 99_999 * 59_999)),
    ("O(i, j) = min(i * j, 9) where i in 0:C, j in 0:T", "i * j", (0, 99_999 * 59_999)),
    ("O(i, j) = (i - j / 2) * 60000 where i in 0:C, j in 0:T", "(i - j / 2) * 60000",
     (-29_999 * 60_000, 99_999 * 60_000)),
    ("O(i, j) = (i % 70000) * j where i in 0:C, j in 0:T", "(i % 70000) * j", (0, 69_999 * 59_999)),
    ("O(i, j) = i / j * 60000 where i in 0:C, j in 0:T", "i / j * 60000", (0, 99_999 * 60_000)),
    ("O(i, j) = (i % (j + 1)) * 60000 where i in 0:C, j in 0:T", "(i % (j + 1)) * 60000",
     (0, 59_999 * 60_000)),
    ("O = (C + T / 2) * 60000", "(C + T / 2) * 60000", (130_000 * 60_000,) * 2),
    ("O(c) = X(c, 0) / (C * (T / 2 - 1))", "C * (T / 2 - 1)", (100_000 * 29_999,) * 2),
    ("O(i, j) = (B(j) > 0 ? i : j) * i where i in 0:C", "(B(j) > 0 ? i : j) * i", (0, 99_999**2)),
    ("O(i) = (i < 40000 ? 0 : i) * 40000 where i in 0:C", "(i < 40000 ? 0 : i) * 40000",
     (0, 99_999 * 40_000)),
    ("O(i) = p * i where i in 0:C, p = i / 2", "p * i", (0, 49_999 * 99_999)),
    ("O(i) = q - 1 where i in 0:C, p = i + 1, q = p * p", "p * p", (1, 100_000**2)),
    ("O(i) = uint16(i) * 70000 where i in 0:C", "uint16(i) * 70000", (0, 65_535 * 70_000)),
    ("O(i) = (i > 5) * 3 * (i * 30000) where i in 0:C", "i * 30000", (0, 99_999 * 30_000)),
    ("O(i) = i + 2147483647 where i in 0:T / 30000", "i + 2147483647", (2**31 - 1, 2**31)),
    ("O(i) = 0.5 * (i * i) where i in 0:C", "i * i", (0, 99_999**2)),
    ("O(i) = int64(i * i) where i in 0:C", "i * i", (0, 99_999**2)),
    ("O(i) = B(i * i > 9 ? 0 : 1) where i in 0:C", "i * i", (0, 99_999**2)),
    ("O(i) = B(int32(uint64(i * i) % 7)) where i in 0:C", "i * i", (0, 99_999**2)),
    ("O(i) = int64(i) * i * i * i where i in 0:C", "int64(i) * i * i * i", (0, 99_999**4)),
)  # fmt: skip


@pytest.mark.parametrize(("body", "part", "values"), _LEAVES, ids=[c[0] for c in _LEAVES])
def test_what_leaves_its_type_is_refused(body: str, part: str, values: tuple[int, int]) -> None:
    assert check(_text(body))["f"].warnings == ()  # whether it leaves depends on the sizes
    with pytest.raises(RangeInferenceError) as error:
        _infer(body)
    text, span = _text(body), error.value.span
    assert text[span.start : span.end] == part
    low, high = values
    said = f"the value {low}" if low == high else f"values from {low} to {high}"
    assert f"takes {said} for these sizes" in error.value.message
    _infer(body, C=2, T=2)


@pytest.mark.parametrize(
    "body",
    [
        "O(i, j) = i * (j / 4) where i in 0:C, j in 0:T",
        "O(i, j) = min(i, 9) * j where i in 0:C, j in 0:T",
        "O(i, j) = i * (j % 100) where i in 0:C, j in 0:T",
        "O(i, j) = i * (100 / (j + 1)) where i in 0:C, j in 0:T",
        "O(i, j) = (j > 9 ? 1 : -1) * (i * 20000) where i in 0:C, j in 0:T",
        "O(i) = (i < 20000 ? i : 0) * 100000 where i in 0:C",
        "O(i) = (i > 5) * 2147483647 where i in 0:C",
        "O(i, j) = int64(i) * (j / 2 - 1) where i in 0:C, j in 0:T",
        "O(i, j) = float(i) * (j / 2) where i in 0:C, j in 0:T",
        "O(i) = i + 2147383648 where i in 0:C",
        "O(i) = X(i * i, 0) where i in 0:T / 1000",
        "O(i) = B(max(i * i, 0) / (C * C)) where i in 0:C",  # exact
        "O(i) = uint32(i) * uint32(i) where i in 0:C",  # wraps, as integers do
        "O(i) = B(i) * i where i in 0:T",
    ],
)
def test_what_stays_in_its_type_is_accepted(body: str) -> None:
    assert check(_text(body))["f"].warnings == ()
    _infer(body)


def test_a_float_of_a_product_of_sizes_needs_no_cast_where_it_fits() -> None:
    """A guess is made where data are in it, and none where the sizes of the call decide."""
    text = _text("O(c, t) = X(c, t) / (2 * C * (T / 2 - 1))")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tcl.define(text).f(np.ones((5, 8), np.float32), np.zeros(8, np.int32))
    assert np.all(found == np.float32(1 / 30))
    view = np.broadcast_to(np.float32(1), (100_000, 60_000))
    with pytest.raises(RangeInferenceError, match="takes the value 5999800000 for these sizes"):
        tcl.define(text).f(view, np.zeros(60_000, np.int32))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "min", "max"])
def test_bounds_of_operations(op: str) -> None:
    """They contain all results, and no others at their ends, except for remainders."""
    ends = (-7, -3, -1, 0, 1, 2, 6)
    intervals = [(a, b) for a in ends for b in ends if a <= b]
    for one, other in product(intervals, intervals):
        values = [range(low, high + 1) for low, high in (one, other)]
        found = [OPERATIONS[op](x, y) for x, y in product(*values)]
        low, high = operation(op, one, other)
        assert low <= min(found) and max(found) <= high
        assert op == "%" or (low, high) == (min(found), max(found))


class _LeavesError(Exception):
    """A value that is none of its type."""


Part: TypeAlias = tuple[str, Callable[[int, int], int]]
"""An expression of indices ``i`` and ``j``, and its value in Python's integers."""


def _fitted(value: int, type_: ScalarType) -> int:
    if wrapped(value, type_) != value:
        raise _LeavesError
    return value


def _part(rng: random.Random, depth: int, type_: ScalarType = INT32) -> Part:
    """A random expression of this type; its value raises ``_LeavesError`` if it has none in it."""
    how = rng.randint(0, 13) if depth else rng.randint(0, 3)
    if how <= 3:
        number = rng.choice((1, 2, 3, 7, 100, 30_000, 60_000, 100_000, 2**31 - 1))
        sizes = {name: lambda i, j, value=value: value for name, value in _SIZES.items()}
        leaves: dict[str, Callable[[int, int], int]] = {
            "i": lambda i, j: i,
            "j": lambda i, j: j,
            **sizes,
            f"int32({number})": lambda i, j: number,
        }
        text = rng.choice(list(leaves))
        return (text, leaves[text]) if type_ == INT32 else (f"{type_}({text})", leaves[text])
    a, f = _part(rng, depth - 1, type_)
    if how == 4:
        return f"(-{a})", lambda i, j: _fitted(-f(i, j), type_)
    if how == 5:
        to = rng.choice((UINT8, INT8, UINT16))
        return f"{type_}({to}({a}))", lambda i, j: wrapped(f(i, j), to)
    if how == 6 and type_ == INT32:
        b, g = _part(rng, depth - 1, INT64)
        return f"int32({b})", lambda i, j: wrapped(g(i, j), INT32)
    b, g = _part(rng, depth - 1, type_)
    if how == 7:
        compare = rng.choice(("<", ">=", "==", "!="))
        x, h = _part(rng, depth - 1)
        y, k = _part(rng, depth - 1)

        def selected(i: int, j: int) -> int:
            both = f(i, j), g(i, j)
            return both[0] if OPERATIONS[compare](h(i, j), k(i, j)) else both[1]

        return f"({x} {compare} {y} ? {a} : {b})", selected
    op = rng.choice("+-***/%") if how < 12 else rng.choice(("min", "max"))
    text = f"({a} {op} {b})" if how < 12 else f"{op}({a}, {b})"
    return text, lambda i, j: _fitted(OPERATIONS[op](f(i, j), g(i, j)), type_)


def _domain(rng: random.Random) -> tuple[range, range]:
    starts = [rng.choice((0, 1, rng.randint(0, size), size - 4)) for size in _SIZES.values()]
    one, other = (range(start, start + rng.randint(1, 4)) for start in starts)
    return one, other


@pytest.mark.parametrize("seeds", swept([range(40)], [range(40, 1000)]), ids=str)
def test_random_index_arithmetic_gives_what_integers_give(seeds: range) -> None:
    accepted = 0
    for seed in seeds:
        rng = random.Random(seed)
        rows, columns = _domain(rng)
        clause = f"i in {rows.start}:{rows.stop}, j in {columns.start}:{columns.stop}"
        parts: list[Part] = []
        for _ in range(25):
            text, value = _part(rng, 3)
            try:
                _infer(f"O(i, j) = {text} + 0 * (i + j) where {clause}")
            except RangeInferenceError:
                continue
            parts.append((text, value))
        accepted += len(parts)
        for text, value in parts:
            try:
                expected = [[value(i, j) for j in columns] for i in rows]
            except _LeavesError:
                pytest.fail(f"seed {seed}: {text} where {clause} was accepted")
        if seed % 10 or not parts:
            continue
        names = [f"O{n}" for n in range(len(parts))]
        body = " ".join(
            f"{name}(i, j) = {text} + 0 * (i + j) where {clause}"
            for name, (text, _) in zip(names, parts, strict=True)
        )
        header = f"def f(float(C, T) X) -> ({', '.join(names)})"
        view = np.broadcast_to(np.float32(0), tuple(_SIZES.values()))
        found = tcl.define(f"{header} {{ {body} }}").f(view)
        for (text, value), array in zip(parts, found if len(parts) > 1 else [found], strict=True):
            expected = [[value(i, j) for j in columns] for i in rows]
            assert np.asarray(array).tolist() == expected, text
    assert accepted > 10 * len(seeds)
