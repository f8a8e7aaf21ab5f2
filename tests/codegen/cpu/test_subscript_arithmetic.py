"""Subscripts of narrow and unsigned data: nothing outside of a tensor is read or written, whatever
the data, and kernels and the reference compute the same place."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from bounds_oracle import place_of_read
from steps import steps

import tcl
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import whole_array
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax.errors import RangeInferenceError

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


@pytest.mark.parametrize(
    ("place", "type_", "values", "extent"),
    [
        ("max(A(n) + A(n), 255)", "uint8", [3, 255], 256),  # as values no more than 255,
        ("(A(n) + A(n)) / 256", "uint8", [3, 255], 1),  # and 0
        ("max(A(n) * A(n), 127)", "int8", [100], 128),
        ("(0 - 127 - int8(2)) / 3 % H", "int8", [1], 128),
        ("-(uint8(n)) % N", "uint8", [1, 2, 3], 3),
        ("(A(n) - A(n) + 65536) * 65536 / 65536 % 65536 - 1", "int32", [5], 65536),
    ],
)
def test_places_outside_are_told(place: str, type_: str, values: list[int], extent: int) -> None:
    text = f"def f({type_}(N) A, double(H) T) -> (O) {{ O(n) = T({place}) where n in 0:N }}"
    arrays = [np.array(values, type_), _fenced(extent)]
    with pytest.raises(IndexError):
        tcl.define(text).f(*arrays)
    with pytest.raises(IndexError):
        tcl.reference(text, "f", *arrays)


def test_a_guard_by_a_value_that_wraps_is_not_believed() -> None:
    text = """def f(int32(N) A, double(H) T) -> (O) {
        O(n, i) = v >= 0 && v < H ? T(v) : 0
            where v = (A(n) - A(n) + 65536) * i, n in 0:N, i in 65535:65538 }"""
    with pytest.raises(IndexError, match="4294967296"):  # which is 0 in int32
        tcl.define(text).f(np.array([1], np.int32), _fenced(70_000))


def test_sums_of_int64_wrap() -> None:
    text = """def f(int64(N) A) -> (int64(N, 3) O) {
        O(n, i) = k > 0 ? k : 0 where k = A(n) * A(n) - 256, i in 0:3 }"""
    found = tcl.define(text).f(np.array([2**62 - 1]))
    assert (np.asarray(found) == 2**63 - 255).all()


def test_many_names_take_no_longer_than_their_number() -> None:
    """Each is twice the one before, which was followed to both of its sides."""
    names = ", ".join(f"k{i} = k{i - 1} + k{i - 1}" for i in range(1, 400))
    text = f"def f(uint8(N) A, double(H) T) -> (O) {{ O(n) = T(k399) where k0 = A(n), {names} }}"
    checked = check(text)["f"]
    assert steps(lambda: infer(checked, {"A": (3,), "T": (9,)})) < 3_000_000


def test_what_is_guarded_is_not_refused_for_a_constant_subscript() -> None:
    text = """def f(uint8(N) A, double(H) T) -> (O) {
        O(n) = A(n) < 3 ? T(k) : -1 where k = (A(n) + 4) - A(n) }"""
    assert np.asarray(tcl.define(text).f(np.array([9], np.uint8), _fenced(3))) == -1


def test_indices_beyond_int64_are_refused() -> None:
    text = "def f(double(H) T) -> (O) { O(i) = T(i * 4611686018427387904 % H) where i in 0:5 }"
    with pytest.raises(RangeInferenceError, match="int64 cannot hold"):
        infer(check(text)["f"], {"T": (7,)})


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
