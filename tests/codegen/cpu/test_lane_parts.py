"""Quotients, remainders and bounds of indices along lanes: loads of neighbours, moved to their
lanes."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import Array, fenced_copy, sized_of
from random_defs import DEVICES, check_random_defs

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu
from tcl.grammar.syntax.types import SCALAR_TYPES

"""Without masks for elements of one and two bytes, too, if this machine runs such code."""
TYPES = ("float32", "float32", "float64", "int8", "uint8", "float16", "int32", "int64")
SIZES = (1, 2, 3, 6, 8, 16, 17, 24, 32, 40, 48, 67, 96, 100, 130)


def place(rng: random.Random, index: str, extent: int) -> tuple[str, int]:
    """A subscript that an index of that extent decides, and the extent of its axis."""
    by, more = (
        rng.choice([1, 2, 2, 2, 3, 3, 4, 5, 7, 8, 16, 32, 64]),
        rng.choice([0, 0, 0, 1, 2, 4]),
    )
    found = rng.choice(
        [
            f"{index} / {by}",
            f"{index} % {by}",
            f"({index} + {more}) / {by}",
            f"({index} + {more}) % {by}",
            f"{index} / {by} + {index} % {by}",
            f"({index} / {by}) / 2",
            f"({index} % {by}) / 2",
            f"2 * ({index} / {by})",
            f"{by} * ({index} / {by}) + ({index} + 1) % {by}",
            f"{by - 1} - {index} % {by}",
            f"(3 * {index} + {more}) / {by}",
            f"(2 * {index} + {more}) % {by}",
            f"({index} / {by} + {index}) / 2",
            f"({extent - 1} - {index}) / {by}",
            f"({extent + more} - {index}) % {by}",
            f"max({index} - {more}, 0)",
            f"min({index} + {more}, {extent - 1})",
            f"min(max({index} - {by}, {more}), {max(extent - 2, more)})",
            f"max({extent - 1 - more} - {index}, 0)",
            f"min({index} / {by}, {more})",
            f"{index} + {by - 1} - 2 * ({index} % {by})",
            f"({index} % {by} < {more} ? {index} + {by} : {index} - {index} % {by})",
            f"({index} % 2 == 0 ? {index} + 1 : {index} - 1)",
            f"({index} < {extent // 2} ? {index} + {more} : {index} / {by})",
        ]
    )
    python = re.sub(r"\((.*) \? (.*) : (.*)\)", r"(\2 if \1 else \3)", found).replace("/", "//")
    values = [eval(python, {index: at}) for at in range(extent)]
    assert min(values) >= 0
    return found, max(values) + 1


def work(rng: random.Random) -> tuple[str, list[Array]]:
    """A def and its inputs."""
    extents = {"i": rng.choice(SIZES), "j": rng.choice(SIZES), "k": rng.choice([1, 3, 16, 40])}
    reduced, type_ = rng.random() < 0.4, rng.choice(TYPES)
    names, named = "jjjik" if reduced else "jjji", list[str]()
    reads, shapes = [], []
    for m in range(rng.choice([1, 1, 2, 3])):
        subscripts, shape, guard = [], [], ""
        for _ in range(rng.choice([1, 2, 2])):
            index = rng.choice(names)
            found, extent = index, extents[index]
            if rng.random() < 0.65:
                found, extent = place(rng, index, extents[index])
            if rng.random() < 0.3:
                variable = f"q{len(named)}"
                off = rng.choice([0, 0, 1, 2])
                if off:
                    extent = max(1, extent - 1)
                    guard += f" && {variable} >= 0 && {variable} < {extent}"
                named.append(f"{variable} = {found} - {off}")
                found = variable
            subscripts.append(found)
            shape.append(extent)
        read = f"X{m}({', '.join(subscripts)})"
        reads.append(f"({guard[4:]} ? {read} : 1)" if guard else read)
        shapes.append(tuple(shape))
    value = rng.choice([" + ", " - "]).join(reads)
    if rng.random() < 0.2:
        value += f" + (j % {rng.choice([2, 3, 4])})"
    if rng.random() < 0.2:
        value = f"(j / {rng.choice([1, 2, 3])}) % 2 == 0 ? {value} : {reads[0]}"
    op = rng.choice(["+=!", "+=!", "max=!"]) if reduced else "="
    ranges = [f"{x} in 0:{extents[x]}" for x in ("ijk" if reduced else "ij")]
    inputs = ", ".join(f"{type_}({', '.join(map(str, s))}) X{m}" for m, s in enumerate(shapes))
    text = f"def f({inputs}) -> (O) {{ O(i, j) {op} {value} where {', '.join(ranges + named)} }}"
    draw = np.random.default_rng(rng.randrange(1 << 30))
    numbers, low = numpy_dtype(SCALAR_TYPES[type_]), 0 if type_ == "uint8" else -9
    return text, [draw.integers(low, 10, shape).astype(numbers) for shape in shapes]


@pytest.mark.parametrize("seed", range(4))
def test_random_quotients_and_remainders(seed: int) -> None:
    check_random_defs(work, f"quotients {seed}", 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_more_random_quotients_and_remainders(seed: int) -> None:
    check_random_defs(work, f"more quotients {seed}", 25)


def test_a_lane_that_adds_nothing_may_not_exist() -> None:
    """Where the first lane alone exists, the last one's value is below 0."""
    read = "(q >= 0 && q < 3) ? X(q) : 1"
    where = "i in 0:40, j in 0:67, q = (67 - j) % 3 - 2"
    inputs = [np.arange(3, dtype=np.uint8)]
    sized = sized_of(f"def f(uint8(3) X) -> (O) {{ O(i, j) = {read} where {where} }}", *inputs)
    for device in DEVICES:
        options = MappingOptions("naive", nests=(NestOptions(tile=(3, 1), vectorize=(1, 16)),))
        check_cpu(sized, [fenced_copy(a, after=True) for a in inputs], options, device)


def emitted(text: str, device: CpuProfile, *inputs: Array, lanes: int = 16) -> str:
    """LLVM IR of a def with its vectors along the last result."""
    sized = sized_of(text, *inputs)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, lanes)),))
    return emit_program(cpu.schedule(sized, options, replace(device, threads=1)), device).text


@pytest.mark.parametrize("name", ["Zen 4", "Haswell", "Neoverse N1"])
def test_lanes_side_by_side_are_one_load(name: str) -> None:
    device = find(name)
    assert device is not None
    text = "def f(float(H, W) X) -> (O) {{ O(y, x) = X(y / 2, {}) where y in 0:2 * H, x in 0:64 }}"
    inputs = np.zeros((30, 40), np.float32)
    doubled = emitted(text.format("x / 2"), device, inputs)
    assert "load <8 x float>" in doubled
    assert "<i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3" in doubled
    repeated = emitted(text.format("(x + 4) % 8"), device, inputs)
    assert "<i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2" in repeated
    assert "load float," in emitted(text.format("x / 32"), device, inputs)
    assert "load <16 x float>" in emitted(text.format("x % 32"), device, inputs)
    for found in (doubled, repeated):
        assert "insertelement <16 x float>" not in found
        assert "gather" not in found


def test_lanes_that_begin_anywhere_are_moved_by_their_remainders() -> None:
    device = find("Zen 4")
    assert device is not None
    read = "X(y, x / 3) where y in 0:H, x in 0:100"
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = {read} }}"
    found = emitted(text, device, np.zeros((30, 40), np.float32))
    assert "@llvm.x86.avx512.permvar" in found
    assert "@llvm.masked.load.v8f32" in found
    assert "gather" not in found


@pytest.mark.parametrize(("name", "lanes"), [("Cascade Lake", 16), ("Haswell", 8)])
@pytest.mark.parametrize("column", ["max(x - 2, 0)", "min(x + 1, W - 1)", "min(max(x - 1, 0), 50)"])
def test_lanes_up_to_a_bound_are_moved_by_their_distance_from_it(
    name: str, lanes: int, column: str
) -> None:
    """As at the edges of images, of rows too short for loops of their own inside."""
    device = find(name)
    assert device is not None
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = X(y, {column}) where y in 0:H, x in 0:W }}"
    found = emitted(text, device, np.zeros((30, 67), np.float32), lanes=lanes)
    assert "permvar" in found or "permd" in found
    assert "@llvm.masked.load" in found
    assert f"insertelement <{lanes} x float>" not in found


def test_a_bound_of_quotients_may_have_a_name() -> None:
    device = find("Cascade Lake")
    assert device is not None
    read = "X(y, x1) where y in 0:H, x in 0:2 * W, x1 = min((x + 1) / 2, W - 1)"
    found = emitted(
        f"def f(float(H, W) X) -> (O) {{ O(y, x) = {read} }}",
        device,
        np.zeros((30, 67), np.float32),
    )
    assert "@llvm.masked.load" in found
    assert "insertelement <16 x float>" not in found


def test_lanes_of_two_planes_are_two_loads() -> None:
    """Where a product of a remainder cannot leave its tensor, nothing is checked."""
    device = find("Zen 4")
    assert device is not None
    read = "X(2 * (y % 2) + x % 2, x / 2) where y in 0:30, x in 0:64"
    text = f"def f(float(4, W) X) -> (O) {{ O(y, x) = {read} }}"
    found = emitted(text, device, np.zeros((4, 32), np.float32))
    assert "load <8 x float>" in found
    assert "@tcl_fail" not in found
    assert "insertelement <16 x float>" not in found


@pytest.mark.parametrize("pair", ["x % 2 == 0 ? x + 1 : x - 1", "x + 1 - 2 * (x % 2)"])
def test_pairs_that_change_places_are_one_load(pair: str) -> None:
    """As in rotary embeddings. Computed at all points, no place is outside of the tensor."""
    device = find("Cascade Lake")
    assert device is not None
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = X(y, {pair}) where y in 0:H, x in 0:W }}"
    found = emitted(text, device, np.zeros((30, 64), np.float32))
    assert "load <16 x float>" in found
    assert "<i32 1, i32 0, i32 3, i32 2, i32 5" in found
    assert "@tcl_fail" not in found
    assert "insertelement <16 x float>" not in found


def test_a_place_outside_is_checked() -> None:
    device = find("Cascade Lake")
    assert device is not None
    read = "X(y, x % 2 == 0 ? x + 1 : x - 1) where y in 0:H, x in 0:W"
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = {read} }}"
    assert "@tcl_fail" in emitted(text, device, np.zeros((30, 67), np.float32))
