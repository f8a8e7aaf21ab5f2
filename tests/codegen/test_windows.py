"""Operands that are read through a window, copied before all loops: each element once."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from comparing import check_cpu, check_equal, check_interpreted, expected_of, outputs_of
from compiled_kernels import compile_cpu
from cpu_kernels import Array, accepted, fenced_copy, sized_of
from nests import NARROW, sized
from sampling import swept

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.grammar.syntax.types import SCALAR_TYPES

FORMS = {
    "convolution": (
        "I(n, c, h + r, w + s) * W(f, c, r, s)",
        ("n", "f", "h", "w"), ("N", "C", "H", "X"), ("F", "C", "R", "S"),
    ),
    "strided": (
        "I(n, 2 * h + r, c, 3 * w + s) * W(f, c, r, s) where h in 0:3, w in 0:4",
        ("n", "f", "h", "w"), ("N", "H", "C", "X"), ("F", "C", "R", "S"),
    ),
    "backwards": (
        "I(n, c, h - r + R, w) * W(f, c, r, 0) where h in 0:H - R, r in 0:R",
        ("n", "f", "h", "w"), ("N", "C", "H", "X"), ("F", "C", "R", "S"),
    ),
    "one row": ("I(x + s) * W(f, s)", ("f", "x"), ("X",), ("F", "S")),
}  # fmt: skip
"""A product, its result's dimensions, and both factors' shapes."""
TYPES = ("float16", "bfloat16", "float32", "float64", "int8")
SIZES = {"N": 2, "C": 2, "H": 9, "X": 14, "F": 3, "R": 3, "S": 3}


def work(form: str, type_: str, rng: random.Random) -> tuple[str, list[Array]]:
    """A def and its inputs."""
    value, results, *axes = FORMS[form]
    named = f"{type_}({', '.join(axes[0])}) I, {type_}({', '.join(axes[1])}) W"
    text = f"def f({named}) -> (O) {{ O({', '.join(results)}) +=! {value} }}"
    more = {"N": (0, 1), "C": (0, 1, 3), "F": (0, 1, 3), "X": (0, 1, 6)}
    sizes = SIZES | {k: SIZES[k] + rng.choice(several) for k, several in more.items()}
    draw = np.random.default_rng(rng.randrange(1 << 30))
    shapes = [tuple(sizes[k] for k in own) for own in axes]
    numbers = numpy_dtype(SCALAR_TYPES[type_])
    if type_ == "int8":
        return text, [draw.integers(-9, 10, s).astype(numbers) for s in shapes]
    return text, [draw.standard_normal(s).astype(numbers) for s in shapes]


@pytest.mark.parametrize("count", swept([1], [5]))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("type_", TYPES)
def test_any_options(form: str, type_: str, count: int) -> None:
    rng = random.Random(f"windows {form} {type_}")
    for _ in range(count):
        text, inputs = work(form, type_, rng)
        each = sized_of(text, *inputs)
        device = replace(host_cpu(), threads=rng.choice([1, 2]))
        rank = len(lower(each).nests[0].dims)
        own = NestOptions(
            chunk=(rng.choice([0, 1, 2, 3]),),
            tile=tuple(rng.choice([0, 0, 2, 5]) for _ in range(rank)),
            order=tuple(rng.sample(range(rank), rank)),
            inner_order=tuple(rng.sample(range(rank), rank)),
            vectorize=(rng.randrange(rank), rng.choice([1, 4, 8])),
            register=tuple(rng.choice([0, 0, 2]) for _ in range(rank)),
            stage=(0, rng.choice([-1, 0])),
        )
        options = MappingOptions("naive", nests=(own,))
        if not accepted(each, options, device):
            options = options.with_nest(0, replace(own, register=()))
        check_cpu(each, inputs, options, device)
        if form == "one row":  # interpreting takes long
            check_interpreted(each, inputs, schedule(each, options, device), f"{options}")


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_nothing_beside_the_operand_is_touched(type_: str) -> None:
    text = (
        f"def f({type_}(C, X) I, {type_}(F, C, S) W) -> (O) {{"
        "O(f, x) +=! I(c, x + s) * W(f, c, s) }"
    )
    numbers = numpy_dtype(SCALAR_TYPES[type_])
    draw = np.random.default_rng(0)
    for c, x, f, s in [(1, 1, 1, 1), (3, 19, 4, 3), (2, 33, 16, 5)]:
        shapes = ((c, x), (f, c, s))
        inputs: list[Array] = [draw.standard_normal(s).astype(numbers) for s in shapes]
        each = sized_of(text, *inputs)
        expected = expected_of(each, inputs)
        for lanes in (0, 1):
            options = MappingOptions("naive").vectorize(8, lanes).stage(0, 0)
            kernel = compile_cpu(each, options)
            for after in (True, False):
                outputs = outputs_of(each)
                beside = [fenced_copy(a.view(np.uint16), after).view(numbers) for a in inputs]
                kernel(beside, outputs)
                check_equal(each, outputs, expected, f"{(c, x, f, s)} {lanes} {after}")


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_every_number_is_converted_exactly(type_: str) -> None:
    """All of them: NaN, infinities and subnormal numbers among them."""
    numbers = numpy_dtype(SCALAR_TYPES[type_])
    every = np.arange(1 << 16, dtype=np.uint16).view(numbers)
    text = (
        f"def f({type_}(X) I) -> (float(X) O) {{"
        "O(x) +=! float(I(x + s)) where x in 0:X, s in 0:1 }"
    )
    each = sized_of(text, every)
    outputs = outputs_of(each)
    options = MappingOptions("naive").vectorize(8, 0).stage(0)
    kernel = compile_cpu(each, options)
    kernel([every], outputs)
    assert np.array_equal(outputs[0], every.astype(np.float32), equal_nan=True)


def test_a_panel_is_as_large_as_what_is_read() -> None:
    text = """float(N, C, H, W) I, float(F, C, R, S) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    each = sized(text, (2, 3, 11, 21), (4, 3, 3, 3))
    built = schedule(each, MappingOptions("naive").vectorize(8, 3).stage(0), NARROW)
    (panel,) = (t for t in built.tensors if t.name == "s0.panel0")
    assert panel.layout.extents == (2, 3, 11, 21)
