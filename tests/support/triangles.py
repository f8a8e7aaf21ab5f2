"""Random reductions over ``j <= i`` and its like, with what they give by NumPy."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.syntax.types import SCALAR_TYPES

Array = np.ndarray[Any, np.dtype[Any]]

COMPARISONS = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
TYPES = ("float", "double", "float16", "bfloat16", "int32", "int8", "uint8", "int64")
_UFUNC = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True, slots=True)
class Triangle:
    """A def, its inputs, and what it gives."""

    text: str
    inputs: tuple[Array, ...]
    expected: Array
    """In float64, or int64."""
    runs: bool
    """Whether its results run: terms do not depend on the index of the result that guards them."""
    type: str

    def check(self, made: Array, what: object = "") -> None:
        """Compares results as exactly as the type has them."""
        if made.dtype.kind in "iu":
            bits = 8 * made.itemsize
            assert np.array_equal(made, self.expected.astype(made.dtype)), (self.text, what, bits)
            return
        eps = {"float16": 2e-2, "bfloat16": 1e-1, "float": 1e-5, "double": 1e-12}[self.type]
        np.testing.assert_allclose(
            made.astype(np.float64),
            self.expected,
            rtol=eps,
            atol=eps,
            err_msg=f"{self.text} {what}",
        )


def neutral(op: str, type_: str) -> str:
    """What changes nothing, as a text has it."""
    if op in "+*":
        return "0" if op == "+" else "1"
    limits = SCALAR_TYPES[{"float": "float32", "double": "float64"}.get(type_, type_)]
    if limits.is_float:
        return "log(0.0)" if op == "max" else "-log(0.0)"
    low, high = limits.limits
    if op == "min":
        return f"{type_}({high})"
    return f"{type_}({low + 1} - 1)" if low else f"{type_}(0)"


def random_triangle(rng: random.Random, *, runs: bool | None = None, most: int = 40) -> Triangle:
    """Any comparison, offset, range, type and reduction, along any dimension, with others beside
    it. ``runs``: as of ``Triangle``; None for either."""
    op, type_ = rng.choice(["+", "+", "*", "max", "min"]), rng.choice(TYPES)
    most = min(most, 40) if op == "*" else most  # powers of two, not infinities
    runs = rng.random() < 0.7 if runs is None else runs
    sizes = {"N": rng.choice([0, 1, 2, 5, 16, 17, most]), "B": rng.choice([1, 2, 3]), "D": 0}
    sizes |= {"D": rng.choice([1, 4, 19]), "K": rng.choice([1, 3]), "M": rng.choice([1, 4, 21])}
    sizes["M"] = rng.choice([sizes["N"], sizes["M"]])
    before, after = rng.choice([[], ["b"]]), rng.choice([[], ["d"]])
    inner = ["k"] if rng.random() < 0.2 else []
    offset = rng.choice([0, 0, 0, -1, 1, -3, 3])
    compare = rng.choice(list(COMPARISONS))
    first = rng.choice([0, 0, 0, 2])
    own = ["i", *before, *after] if rng.random() < 0.3 else [*before, "i", *after]
    axes = {"b": "B", "d": "D", "j": "N", "k": "K", "i": "M"}
    read = rng.sample([*before, "j", *after, *inner], len([*before, "j", *after, *inner]))
    more = ["j"] if runs else ["i", "j"]
    guards = rng.random() < 0.2 and op == "+"
    side = f"i + {offset}" if offset >= 0 else f"i - {-offset}"
    condition = f"j {compare} {side}" if rng.random() < 0.6 else f"{side} {_TURNED[compare]} j"
    if guards:
        condition = rng.choice([f"{condition} && G(j)", f"G(j) && {condition}"])
    factor = op == "+" or not runs
    term = f"X({', '.join(read)})" + (f" * W({', '.join(more)})" if factor else "")
    ranges = f"i in {first}:{sizes['M'] + first}"
    given = [f"{type_}({', '.join(axes[a] for a in read)}) X"]
    given += [f"{type_}({', '.join(axes[a] for a in more)}) W"] * factor
    given += ["bool(N) G"] * guards
    if not runs and first:
        ranges, first = f"i in 0:{sizes['M']}", 0
    text = (
        f"def f({', '.join(given)}) -> (O) {{ O({', '.join(own)}) {op}=! "
        f"({condition}) ? {term} : {neutral(op, type_)} where {ranges} }}"
    )
    draw = np.random.default_rng(rng.randrange(1 << 30))
    numbers = numpy_dtype(SCALAR_TYPES[{"float": "float32", "double": "float64"}.get(type_, type_)])

    def values(names: list[str]) -> Array:
        shape = tuple(sizes[axes[a]] for a in names)
        if op == "*":
            return draw.choice([1, 1, 3] if type_ == "uint8" else [1, -1, 1, 2], shape).astype(
                numbers
            )
        return draw.integers(0 if type_ == "uint8" else -4, 5, shape).astype(numbers)

    x, w = values(read), values(more)
    kept = draw.random(sizes["N"]) < 0.6 if guards else np.ones(sizes["N"], bool)
    inputs = (x, *([w] if factor else []), *([kept] if guards else []))
    i = np.arange(sizes["M"]).reshape(-1, 1, 1) + first
    holds = COMPARISONS[compare](np.arange(sizes["N"]), i + offset) & kept
    extents = {a: sizes[axes[a]] for a in axes}
    factors = [(x, read), *([(w, more)] if factor else [])]
    return Triangle(text, inputs, _reduced(op, factors, holds, own, extents), runs, type_)


def _reduced(
    op: str,
    factors: list[tuple[Array, list[str]]],
    holds: Array,
    own: list[str],
    extents: dict[str, int],
) -> Array:
    """The reduction of a product of arrays, whose axes have names, over all that is not named in
    ``own``, at the points that hold."""
    numbers = factors[0][0].dtype
    wide = np.dtype(np.int64 if numbers.kind in "iu" else np.float64)
    order = ["b", "d", "i", "k", "j"]
    terms: Any = np.ones(1, wide)
    for array, names in factors:
        places = sorted(range(len(names)), key=lambda k: order.index(names[k]))
        spread = array.astype(wide).transpose(places)
        terms = terms * spread.reshape([extents[a] if a in names else 1 for a in order])
    shape = np.broadcast_shapes(terms.shape, holds.shape)
    low, high = (-np.inf, np.inf)
    if wide.kind == "i":
        low, high = int(np.iinfo(numbers).min), int(np.iinfo(numbers).max)
    reduced = _UFUNC[op].reduce(
        np.broadcast_to(terms, shape),
        axis=(3, 4),
        where=np.broadcast_to(holds, shape),
        initial={"+": 0, "*": 1, "max": low, "min": high}[op],
    )
    mine = [a for a in order if a in own]
    kept: Array = reduced.reshape(
        [n for n, a in zip(reduced.shape, order[:3], strict=True) if a in own]
    )
    return kept.transpose([mine.index(a) for a in own])
