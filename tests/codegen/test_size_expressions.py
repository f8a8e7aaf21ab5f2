"""Size expressions: random ones against C's rules, as ranges and as values of kernels."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from cpu_kernels import reference, run
from sampling import swept

from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax.errors import RangeInferenceError
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.tree.canonical import canonical_text

_SIZES = {"N": 5, "M": 7, "X.0": 5, "X.1": 7}
_EXACT = {"int32": 32, "int64": 64}
_WRAPPING = {"int8": 8, "uint8": 8, "int16": 16, "uint32": 32, "uint64": 64}


class _LeavesTypeError(Exception):
    """A value that its exact type cannot hold."""


@dataclass(frozen=True)
class _Expr:
    text: str
    value: Callable[[], int]
    """Raises ``ZeroDivisionError``, and ``_LeavesTypeError`` beyond the widest exact type."""


class _Random:
    """Random size expressions of a type, with what C says they are."""

    def __init__(self, seed: int, bits: int = 64) -> None:
        self.random = random.Random(seed)
        self.bits = bits
        """What exact arithmetic may use: 64 in a range, the type's own in a value."""

    def integer(self, type_: str, depth: int) -> _Expr:
        choose = self.random.randrange
        if depth <= 0 or choose(8) == 0:
            return self._leaf(type_)
        if choose(4) == 0:
            condition, a, b = self.boolean(depth - 1), *self._two(type_, depth)
            return _Expr(
                f"({condition.text} ? {a.text} : {b.text})",
                lambda: a.value() if condition.value() else b.value(),
            )
        if choose(4) == 0:
            source = self.random.choice([*_EXACT, *_WRAPPING, "bool"])
            inner = self.boolean(depth - 1) if source == "bool" else self.integer(source, depth - 1)
            if source == type_:  # no cast: an exact value stays what it is
                return _Expr(f"{type_}({inner.text})", inner.value)
            return _Expr(f"{type_}({inner.text})", lambda: self._cast(inner.value(), type_))
        if choose(8) == 0:
            a = self.integer(type_, depth - 1)
            return _Expr(f"-({a.text})", lambda: self._made(-a.value(), type_))
        op, (a, b) = self.random.choice("+-*/%<>"), self._two(type_, depth)
        if op in "<>":
            smaller = op == "<"
            return _Expr(
                f"{'min' if smaller else 'max'}({a.text}, {b.text})",
                lambda: (min if smaller else max)(a.value(), b.value()),
            )
        return _Expr(
            f"({a.text} {op} {b.text})",
            lambda: self._made(_computed(op, a.value(), b.value()), type_),
        )

    def boolean(self, depth: int) -> _Expr:
        if depth > 0 and self.random.randrange(3) == 0:
            a, b = self.boolean(depth - 1), self.boolean(depth - 1)
            if self.random.randrange(3) == 0:
                return _Expr(f"!({a.text})", lambda: not a.value())
            if self.random.randrange(2):
                return _Expr(f"({a.text} && {b.text})", lambda: a.value() and b.value())
            return _Expr(f"({a.text} || {b.text})", lambda: a.value() or b.value())
        op = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        a, b = self._two(self.random.choice([*_EXACT, *_WRAPPING]), depth)
        compare = {
            "<": int.__lt__, "<=": int.__le__, ">": int.__gt__,
            ">=": int.__ge__, "==": int.__eq__, "!=": int.__ne__,
        }[op]  # fmt: skip
        return _Expr(f"({a.text} {op} {b.text})", lambda: compare(a.value(), b.value()))

    def _two(self, type_: str, depth: int) -> tuple[_Expr, _Expr]:
        return self.integer(type_, depth - 1), self.integer(type_, depth - 1)

    def _leaf(self, type_: str) -> _Expr:
        if type_ == "int32" and self.random.randrange(2):
            name = self.random.choice(list(_SIZES))
            return _Expr(name, lambda: _SIZES[name])
        value = self.random.choice([0, 1, 2, 3, 4, 7, 100, 1000, 2**31 - 1, 2**63 - 1])
        # A literal 0 that divides is refused before there are any sizes.
        return _Expr(f"{type_}({value or 'N - N'})", lambda: self._cast(value, type_))

    def _made(self, value: int, type_: str) -> int:
        if type_ in _EXACT:
            bits = max(self.bits, _EXACT[type_])
            if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                raise _LeavesTypeError
            return value
        return self._cast(value, type_)

    @staticmethod
    def _cast(value: int, type_: str) -> int:
        return int(np.array(int(value) % 2**64, np.uint64).astype(type_))


def _computed(op: str, a: int, b: int) -> int:
    if op in "/%":
        whole = math.trunc(Fraction(a, b))
        return whole if op == "/" else a - b * whole
    return {"+": a + b, "-": a - b, "*": a * b}[op]


def _range_of(text: str) -> tuple[int, int]:
    sized = infer(check(text)["f"], {"X": (_SIZES["N"], _SIZES["M"])})
    return sized.statements[0].ranges["i"]


@pytest.mark.parametrize("seeds", swept([range(400)], [range(400, 10_000)]), ids=str)
def test_a_range_is_what_c_says(seeds: range) -> None:
    outcomes = {"value": 0, "divides by": 0, "64 bits": 0}
    for seed in seeds:
        maker = _Random(seed)
        expr = maker.integer(maker.random.choice(list(_EXACT)), 3)
        clauses = f"i in {expr.text}:{expr.text} + 3"
        if seed % 3 == 0:
            clauses = f"h = {expr.text}, i in h:h + 3"
        text = f"def f(float(N, M) X) -> (O) {{ O(i) = 1 where {clauses} }}"
        try:
            value = expr.value()
            outcome = "value" if value + 3 < 2**63 else "64 bits"
        except ZeroDivisionError:
            outcome = "divides by"
        except _LeavesTypeError:
            outcome = "64 bits"
        outcomes[outcome] += 1
        if seed % 5 == 0:
            tree = parse(text)
            assert parse(to_text(tree)) == tree
        if outcome == "value":
            assert _range_of(text) == (value, value + 3), text
        else:
            with pytest.raises(RangeInferenceError, match=outcome):
                _range_of(text)
    assert min(outcomes.values()) > 5


def test_kernels_have_those_ranges_and_values() -> None:
    """Each as the end of a range, within reason, and as a value: once to loop, once to compute."""
    expected: list[tuple[int, int]] = []
    outputs: list[str] = []
    body = ""
    for seed in range(10_000, 11_000):
        maker = _Random(seed, bits=32)
        expr = maker.integer("int32", 3)
        try:
            value = expr.value()
        except (ZeroDivisionError, _LeavesTypeError):
            continue
        k = len(expected)
        expected.append((value, max(0, min(value, 9))))
        outputs += [f"V{k}", f"R{k}"]
        body += f"    V{k} = {expr.text}\n"
        body += f"    R{k}(i) = i where i in 0:max(0, min(h, 9)), h = {expr.text}\n"
        if len(expected) == 24:
            break
    text = f"def f(float(N, M) X) -> ({', '.join(outputs)}) {{\n{body}}}"
    x = np.zeros((_SIZES["N"], _SIZES["M"]), np.float32)
    for how in (reference, run):
        found = how(text, x)
        for (value, extent), v, r in zip(expected, found[::2], found[1::2], strict=True):
            assert v == value
            assert r.tolist() == list(range(extent))


def test_what_a_bound_name_is_called_is_no_part_of_a_defs_identity() -> None:
    texts = (
        "def f(float(N, M) X) -> (O) { O(i) = X(i, 0) where h = N / 2, i in 0:h }",
        "def g(float(A, B) Y) -> (P) { P(j) = Y(j, 0) where j in 0:part, part = A / 2 }",
        "def f(float(N, M) X) -> (O) { O(i) = X(i, 0) where h = M / 2, i in 0:h }",
    )
    one, other, different = (canonical_text(*check(text).values()) for text in texts)
    assert one == other != different
