"""Subscripts of narrow and unsigned data: nothing outside of a tensor is read or written, whatever
the data, and kernels and the reference compute the same place."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bounds_oracle import place_of_read

import tcl
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import whole_array
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer

Array = npt.NDArray[Any]
_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_POINTS = 24


def _expression(rng: random.Random, depth: int, type_: str) -> str:
    def inner() -> str:
        return _expression(rng, depth - 1, type_)

    how = rng.randint(0, 11) if depth else rng.randint(0, 3)
    if how <= 3:
        return rng.choice(("A(n)", "B(n)", str(rng.choice((1, 2, 3, 100, 127))), "A(n)"))
    if how <= 6:
        return f"({inner()} {rng.choice('+-*')} {inner()})"
    if how == 7:
        return f"({inner()} / {rng.choice((2, 3, 16, 100))})"
    if how == 8:
        return f"({inner()} % {type_}(H))"
    if how == 9:
        return f"{rng.choice(('min', 'max'))}({inner()}, {inner()})"
    if how == 10:
        return f"({inner()} > {inner()} ? {inner()} : {inner()})"
    return f"-({inner()})"


def _values(rng: random.Random, type_: str) -> Array:
    low, high = (int(x) for x in (np.iinfo(type_).min, np.iinfo(type_).max))
    return np.array(
        [rng.choice((low, high, 1, 2, 3, rng.randint(low, high))) for _ in range(_POINTS)], type_
    )


def _fenced(extent: int) -> Array:
    """0, 1, 2 ..., with NaN around it."""
    whole = np.full(1 << 18, np.nan)
    table = whole[len(whole) // 2 :][:extent]
    table[:] = np.arange(extent)
    return table


@pytest.mark.parametrize("seed", range(60))
def test_places_are_those_of_the_reference_and_inside(seed: int) -> None:
    rng = random.Random(seed)
    type_, other = rng.choice(_TYPES), rng.choice(_TYPES)
    if (type_[0] == "u") != (other[0] == "u"):
        other = type_
    extent = rng.choice((1, 100, 128, 256, 40_000))
    place = f"(A(n) {rng.choice('+-*')} {_expression(rng, 3, type_)})"
    if rng.random() < 0.5:
        place = f"(({place}) % {type_}(H))"
    text = f"def f({type_}(N) A, {other}(N) B, double(H) T) -> (O) {{ O(n) = "
    text += rng.choice(
        (
            f"T({place}) where n in 0:{_POINTS} }}",
            f"T(k) where k = {place}, n in 0:{_POINTS} }}",
            f"{place} < {type_}(H) && {place} >= 0 ? T({place}) : 0 where n in 0:{_POINTS} }}",
        )
    )
    arrays = [_values(rng, type_), _values(rng, other), _fenced(extent)]
    sized = infer(check(text)["f"], {"A": (_POINTS,), "B": (_POINTS,), "T": (extent,)})
    values = {"A": arrays[0].tolist(), "B": arrays[1].tolist()}
    places = [place_of_read(sized, "T", values, n) for n in range(_POINTS)]
    outputs = np.empty(_POINTS)

    def by_reference() -> Array:
        compile_reference(sized, jit=False)(arrays, [outputs])
        return outputs

    def by_numpy() -> Array:
        whole_array(sized)(arrays, [outputs])
        return outputs

    kernel = tcl.define(text)

    def by_kernel() -> Array:
        return np.asarray(kernel.f(*arrays))

    for run in (by_kernel, by_reference, by_numpy):
        if any(p is not None and not 0 <= p < extent for p in places):
            with pytest.raises(IndexError):
                run()
        else:
            np.testing.assert_array_equal(run(), [0 if p is None else p for p in places], text)


@pytest.mark.parametrize("type_", ["uint32", "uint64"])
def test_hashes_are_those_of_numpy(type_: str) -> None:
    text = f"def f({type_}(N) Key, double(H) T) -> (O, int32(H) Count) {{\n"
    text += f"O(n) = T(Key(n) * 2654435761 % {type_}(H))\n"
    text += f"Count(Key(n) * 2654435761 % {type_}(H)) +=! 1 where n in 0:N }}"
    keys = np.random.default_rng(0).integers(0, np.iinfo(type_).max, 1000, type_, endpoint=True)
    places = keys * np.array(2654435761, type_) % np.array(101, type_)
    found = tcl.define(text).f(keys, _fenced(101))
    np.testing.assert_array_equal(found.O, places)
    np.testing.assert_array_equal(found.Count, np.bincount(places.astype(int), minlength=101))


def test_a_guard_of_a_sum_that_may_wrap_still_guards() -> None:
    """An int32 plus an index: the only place inside is that of the value, so no check is made."""
    text = """def f(int32(N) At, float(H) X) -> (O) {
        O(n, a) = at >= 0 && at < H ? X(at) : 0 where a in 0:2, at = At(n) + a
    }"""
    assert not _checks(text)
    narrow = text.replace("int32", "uint8").replace("+ a", "+ At(n)")
    assert _checks(narrow)  # 255 + 1 is 0 as a value, and 256 as a subscript


def _checks(text: str) -> bool:
    sized = infer(check(text)["f"], {"At": (4,), "X": (9,)})
    return bool(sized.statements[0].checks)
