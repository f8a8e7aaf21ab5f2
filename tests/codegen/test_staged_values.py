"""Copies hold what the inner loops make of an operand alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparing import check_cpu, check_interpreted
from cpu_kernels import sized_of
from sampling import sampled

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show_value
from tcl.codegen.loopir.walk import operands, statements, walk
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu.stage import made_of
from tcl.codegen.schedule.cpu import schedule
from tcl.grammar.ranges.sized import SizedDef

A, B = "A(m, k)", "B(k, n)"
STAGED = MappingOptions("naive").tile(4, 8, 5).vectorize(8, 1).register(2, 1).stage(3, 2)
TURNED = MappingOptions("naive").vectorize(8, 0).register(1, 2).stage(0, 0)


def product(a: str, b: str, type_: str) -> SizedDef:
    text = f"def f({type_}(M, K) A, {type_}(K, N) B) -> (float(M, N) C) {{ C(m, n) +=! {a} * {b} }}"
    return sized_of(text, np.zeros((9, 11)), np.zeros((11, 19)))


CASES = [
    (f"fmax(0.0, {A})", B, "float", ("fmax(0.0, A)", "B")),
    (f"exp({A} * 2.0 - 1.0)", f"-{B}", "float", ("exp(((A * 2.0) - 1.0))", "-B")),
    (f"({A} > 0.0 ? {A} : 0.5)", B, "float", ("((A > 0.0) ? A : 0.5)", "B")),
    (f"({A} > 0.0 ? {A} : {B})", B, "float", ("A", "B")),
    (f"({A} + k)", B, "float", ("A", "B")),
    (f"fmax(0.0, {A}) * {B}", A, "float", ("A", "B")),
    (f"fmax(0.0, {A}) * {B}", f"fmax(0.0, {A})", "float", ("fmax(0.0, A)", "B")),
    (f"exp({A}) * {B}", f"(1.0 - exp({A}))", "float", ("exp(A)", "B")),
    (f"fmax(0.0, {A})", f"fmax(0.0, {A})", "float", None),
    (f"fmin(2.0, 1.0 / ({A} * 0.0)) * {B}", f"fmin(2.0, 1.0 / ({A} * -0.0))", "float", ("A", "B")),
    (f"float({A})", B, "int8", ("A", "B")),  # a copy of floats would be larger
    (f"float({A} / {A})", B, "int32", ("A", "float32(B)")),  # by 0, where nobody reads it
    (f"fmax(0.0, {A})", B, "half", ("fmax(0.0, A)", "B")),
]


@pytest.mark.parametrize(("a", "b", "type_", "copied"), CASES)
def test_what_is_copied(a: str, b: str, type_: str, copied: tuple[str, ...] | None) -> None:
    point = lower(product(a, b, type_)).nests[0].point
    found = [show_value(made_of(point, load)) for load in operands(point)]
    plain = [t.replace("(s0.m, s0.k)", "").replace("(s0.k, s0.n)", "") for t in found]
    if copied is None:
        assert made_of(point, operands(point)[0]) == point.value
    else:
        assert tuple(plain) == copied


EVERY = [STAGED, TURNED, STAGED.stage(0, 0)]


@pytest.mark.parametrize(("case", "options"), sampled(itertools.product(CASES, EVERY), 2), ids=str)
def test_what_is_computed_is_the_same(
    case: tuple[str, str, str, object], options: MappingOptions
) -> None:
    """Whether computed with each copy or with each product, at every stage."""
    a, b, type_, _ = case
    sized = product(a, b, type_)
    count = len(operands(lower(sized).nests[0].point))
    levels = options.default.stage
    assert levels is not None
    options = options.stage(*levels[:count])
    rng = np.random.default_rng(1)
    inputs = [
        rng.integers(1, 5, shape).astype(numpy_dtype(t.type))
        for t, shape in zip(sized.checked.inputs, ((9, 11), (11, 19)), strict=True)
    ]
    check_cpu(sized, inputs, options)
    check_interpreted(sized, inputs, schedule(sized, options, host_cpu()), f"{options}")


def test_inner_loops_read_what_was_copied() -> None:
    sized = product(f"fmax(0.0, {A})", f"fmax(0.0, {B})", "float")
    program = schedule(sized, STAGED, host_cpu())
    inside = (s for k in program.kernels for s in statements(k.body))
    made = [s for s in inside if isinstance(s, ir.Store | ir.Accumulate)]
    calls = [isinstance(v, ir.Call) for s in made for v in walk(s.value)]
    assert sum(calls) == 2
    for s in made:
        if any(isinstance(v, ir.Call) for v in walk(s.value)):
            assert isinstance(s, ir.Store) and s.ref.tensor.startswith("s0.panel")
