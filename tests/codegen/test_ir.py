"""The loop IR: names, folds, legality, printing, and that every stage means the same."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from comparing import sized_of as sized_program
from cpu_kernels import random_options
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted_stages import check_stages, stages
from loopir_interpreter import interpret
from nests import sized as sized_of
from strategies import random_program

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show, show_affine
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu.register import Register
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.vectorize import Vectorize
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.syntax.types import FLOAT32, INT32

DEVICE = CpuProfile("generic", "", "x86_64-unknown-linux-gnu", 256, 4, 32768, 1 << 20, 8 << 20)
MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


def matmul() -> ir.Program:
    return lower(sized_of(MATMUL, A=(5, 7), B=(7, 9)))


LOOPS = matmul().nests[0].loops
ZERO = ir.Const(0.0, FLOAT32)

# Names and index expressions.

affines = st.builds(
    lambda terms, c: sum((ir.Affine.variable(n).scaled(k) for n, k in terms), ir.Affine((), c)),
    st.lists(st.tuples(st.sampled_from("ijk"), st.integers(-5, 5)), max_size=4),
    st.integers(-9, 9),
)


def _dim(name: str, first: int, extent: int) -> ir.Dim:
    return ir.Dim(name, first, extent, False)


@given(affines, affines, st.integers(-4, 4))
def test_affine_arithmetic(a: ir.Affine, b: ir.Affine, factor: int) -> None:
    dims = {d.name: d for d in (_dim("i", 0, 2), _dim("j", -2, 3), _dim("k", 3, 4))}

    def values(x: ir.Affine) -> list[int]:
        every = product(*(range(d.first, d.first + d.extent) for d in dims.values()))
        return [
            x.constant + sum(x.coefficient(n) * p for n, p in zip(dims, point, strict=True))
            for point in every
        ]

    assert values(a + b) == [x + y for x, y in zip(values(a), values(b), strict=True)]
    assert values(a.scaled(factor)) == [factor * x for x in values(a)]
    assert a.interval(dims) == (min(values(a)), max(values(a)))
    assert all(c for _, c in (a + b).terms)


def test_affine_text() -> None:
    i, j = ir.Affine.variable("i"), ir.Affine.variable("j")
    assert show_affine(i.scaled(2) + j.scaled(-1) + ir.Affine((), 3)) == "2*i - j + 3"
    assert show_affine(ir.Affine((), -3)) == "-3"
    assert show_affine(i.scaled(-1) + ir.Affine((), -1)) == "-i - 1"


def test_layouts() -> None:
    layout = ir.contiguous(FLOAT32, (3, 4, 5), (0, 2, 0))
    assert layout.strides == (80, 20, 4)
    i, j = ir.Affine.variable("i"), ir.Affine.variable("j")
    at = ir.TensorRef("A", (j, i + j.scaled(-4), ir.Affine((), 3)))  # j moves nothing
    assert layout.place(at) == ir.Affine((("i", 20),), -28)


# Legality. Each of these is a mistake that a pass could make.


def changed(**fields: Any) -> ir.Program:
    program = matmul()
    return replace(program, nests=(replace(program.nests[0], **fields),))


def built(
    body: ir.Statement, *chunks: tuple[ir.Fold, ...], loops: tuple[ir.Loop, ...] | None = None
) -> ir.Built:
    program = matmul()
    space = replace(program.nests[0].space, loops=loops or LOOPS)
    return ir.Built(program.name, program.tensors, (ir.Kernel(chunks, body, (space,), ()),))


def value_of(value: ir.Value) -> ir.Program:
    return changed(point=replace(matmul().nests[0].point, value=value))


def _loops(*changes: tuple[int, ir.Loop]) -> tuple[ir.Loop, ...]:
    loops = list(LOOPS)
    for position, loop in changes:
        loops[position] = loop
    return tuple(loops)


def _load(tensor: str, *names: str) -> ir.Load:
    return ir.Load(ir.TensorRef(tensor, tuple(map(ir.Affine.variable, names))), FLOAT32, True)


def loop(name: str, step: int, count: int, kind: ir.Kind = ir.Kind.SERIAL) -> ir.Loop:
    dim, _, level = name.partition("-")
    return ir.Loop(ir.Fold(f"s0.{dim}", level or "point", step, count), kind)


NARROW = ir.Computed(ir.Const(1, INT32), True)
UNROLLED, M_CHUNKS = loop("m", 1, 5, ir.Kind.UNROLL), loop("m", 1, 5, ir.Kind.PARALLEL)
N_CHUNKS, K_CHUNKS = loop("n", 1, 9, ir.Kind.PARALLEL), loop("k", 1, 7, ir.Kind.PARALLEL)
K_LANES = loop("k", 1, 7, ir.Kind.VECTOR)
PANEL = ir.Panel("P", "A", "s0.fill0", 0, 128, ())
ADD, FIRST = ir.Accumulate("a", "+", ZERO), ir.Accumulate("a", "=", ZERO)
CORNER = ir.TensorRef("C", (ir.Affine(), ir.Affine()))
BAD: dict[str, ir.Program | ir.Built] = {
    "has no dimension s0.z": value_of(_load("A", "s0.z", "s0.k")),
    "has no dimension s1.m": value_of(_load("A", "s1.m", "s0.k")),
    "A has 2 dimensions": value_of(_load("A", "s0.k")),
    "no tensor Z": value_of(_load("Z", "s0.k")),
    "not int64": value_of(ir.Load(ir.TensorRef("A", (ir.Affine(), NARROW)), FLOAT32, False)),
    "before it has a value": value_of(ir.Variable("x", FLOAT32)),
    "does not cover": changed(loops=_loops((0, loop("m", 1, 4)))),
    "do not reach single points": changed(loops=_loops((0, loop("m", 5, 1)))),
    "do not reach": changed(loops=LOOPS[1:]),
    "lacks that dimension": changed(loops=(*LOOPS, loop("q", 1, 4))),
    "lanes that are reduced share the accumulator a": built(
        ir.Block((ir.Declare("a", FLOAT32), ir.For(K_LANES, ADD))), loops=_loops((2, K_LANES))
    ),
    "lanes that are reduced write the same element": built(
        ir.For(K_LANES, ir.Store(CORNER, ZERO)), loops=_loops((2, K_LANES))
    ),
    "a serial loop over s0.m lies in": changed(
        loops=(*_loops((0, loop("m-a", 2, 3, ir.Kind.UNROLL))), loop("m-b", 1, 2)),
    ),
    "declared over a loop that has no registers": built(ir.Declare("a", FLOAT32, (LOOPS[0].fold,))),
    "accumulator a is used outside of its loops": built(
        ir.Block((ir.Declare("a", FLOAT32, (UNROLLED.fold,)), FIRST)), loops=_loops((0, UNROLLED))
    ),
    "accumulator a is not declared": built(FIRST),
    "first iteration of a loop from outside": built(
        ir.First((LOOPS[2].fold,), ir.Block(()), ir.Block(()))
    ),
    "cannot be vector: reasons": changed(
        loops=_loops((1, loop("n", 1, 9, ir.Kind.VECTOR))), sequential="reasons"
    ),
    "split or reordered": changed(loops=LOOPS[::-1], sequential="reasons"),
    "used outside of its loops": built(
        ir.Store(ir.TensorRef("C", (ir.Affine.variable("s0.m"), ir.Affine.variable("s0.n"))), ZERO)
    ),
    "writes the input A": built(ir.Store(ir.TensorRef("A", (ir.Affine(), ir.Affine())), ZERO)),
    "looped over twice": built(ir.For(LOOPS[0], ir.For(LOOPS[0], ir.Block(())))),
    "a loop over chunks lies in another loop": changed(loops=_loops((1, N_CHUNKS))),
    "is a reduction, and shared": changed(loops=(K_CHUNKS, *LOOPS[:2])),
    "cannot be parallel: reasons": changed(loops=_loops((0, M_CHUNKS)), sequential="reasons"),
    "over chunks s0.m.point lies in a kernel": built(
        ir.For(LOOPS[1], ir.For(M_CHUNKS, ir.Block(())))
    ),
    "are not alike": built(ir.Block(()), (M_CHUNKS.fold, N_CHUNKS.fold)),
    "a reduction is shared": built(FIRST, (K_CHUNKS.fold,)),
    "P is no panel": built(ir.Fill("P", ir.Block(()))),
    "one buffer cannot be filled ahead": built(
        ir.Pipeline(LOOPS[2], (), ir.Block(()), 1, ir.Ahead.DIRECT, False)
    ),
    "filled by s0.fill0, which it lacks": replace(
        built(ir.Block(())), kernels=(replace(built(ir.Block(())).kernels[0], panels=(PANEL,)),)
    ),
    "no nest before it": changed(joined=True),
    "negative extent": changed(
        dims=(ir.Dim("s0.m", 0, -1, False), *matmul().nests[0].dims[1:]),
    ),
    "share a name": replace(matmul(), nests=matmul().nests * 2),
}


@pytest.mark.parametrize("words", BAD)
def test_mistakes_of_passes_are_found(words: str) -> None:
    with pytest.raises(ir.IRError, match=words):
        verify(BAD[words])


def test_a_good_program_is_let_through() -> None:
    verify(matmul())
    verify(built(ir.Block(())))


def test_dimensions_are_found_by_name() -> None:
    with pytest.raises(ir.IRError, match=r"no dimension s0\.z"):
        matmul().nests[0].folds("s0.z")
    with pytest.raises(ir.IRError, match="no nest s7"):
        Tile("s7", (1,))(matmul())


def test_a_nest_that_reads_what_it_writes_stays_in_order() -> None:
    nest = replace(matmul().nests[0], sequential="it reads its own neighbours")
    program = replace(matmul(), nests=(nest,))
    for each in (Tile("s0", (2, 2, 2)), Vectorize("s0", -1, 4), Register("s0", (2, 2), DEVICE)):
        with pytest.raises(OptionsError, match="its own neighbours"):
            each(program)


def test_points_of_the_same_bounds_are_written_out_side_by_side() -> None:
    text = """float(C, H, N) I, float(C, 3, O) F) -> (R) {
        R(o, h, n) +=! (y >= 0 && y < H) ? I(c, y, n) * F(c, k, o) : 0
            where h in 0:H, k in 0:3, y = h + k - 1 }"""
    program = lower(sized_of(text, (8, 30, 32), (8, 3, 12)))

    def order(lane: int) -> list[str]:
        done = Register("s0", (4, 3), DEVICE)(Vectorize("s0", lane, 8)(program))
        return [x.fold.dim for x in done.nests[0].loops if x.kind is ir.Kind.UNROLL]

    assert order(2) == ["s0.h", "s0.o"]
    assert order(1) == ["s0.o", "s0.h"]  # lanes of which some lie outside


# Printing.


def test_text_of_a_schedule() -> None:
    options = MappingOptions().tile(4, 8, 3).order(2, 0, 1).vectorize(4)
    text = show(schedule(sized_of(MATMUL, A=(5, 7), B=(7, 9)), options, DEVICE))
    assert (
        text
        == """\
program f
  input A: float32(5, 7) strides (28, 4)
  input B: float32(7, 9) strides (36, 4)
  output C: float32(5, 9) strides (36, 4)
kernel 0
  dim s0.m in 0:5
  dim s0.n in 0:9
  reduction s0.k in 0:7
  for s0.k.tile x 3 step 3
    for s0.m.tile x 2 step 4
      for s0.n.tile x 2 step 8
        for s0.m.point x 4
          for s0.n.point x 2 step 4
            float32 accumulator[s0.n.lane]
            first of s0.k.tile
              for s0.n.lane x 4 vector
                accumulator = 0.0
            later
              for s0.n.lane x 4 vector
                accumulator = C(s0.m, s0.n)
            for s0.k.point x 3
              for s0.n.lane x 4 vector
                accumulator += (A(s0.m, s0.k) * B(s0.k, s0.n))
            for s0.n.lane x 4 vector
              C(s0.m, s0.n) = accumulator
"""
    )


def test_naive_is_the_obvious_loop_nest() -> None:
    text = show(schedule(sized_of(MATMUL, A=(5, 7), B=(7, 9)), MappingOptions("naive"), DEVICE))
    assert (
        text.split("reduction s0.k in 0:7\n")[1]
        == """\
  for s0.m.point x 5
    for s0.n.point x 9
      float32 accumulator
      accumulator = 0.0
      for s0.k.point x 7
        accumulator += (A(s0.m, s0.k) * B(s0.k, s0.n))
      C(s0.m, s0.n) = accumulator
"""
    )


def test_text_of_lanes_of_a_reduction() -> None:
    options = MappingOptions().tile(0, 0, 32).vectorize(4, 2).register(2, 0, 3)
    text = show(schedule(sized_of(MATMUL, A=(5, 70), B=(70, 9)), options, DEVICE))
    assert (
        text.split("reduction s0.k in 0:70\n")[1]
        == """\
  for s0.k.tile x 3 step 32
    for s0.m.point x 3 step 2
      for s0.n.point x 9
        float32 accumulator[s0.k.register, s0.m.register, s0.k.lane] = 0.0
        for s0.k.point x 3 step 12
          for s0.k.register x 3 step 4 unroll
            for s0.m.register x 2 unroll
              for s0.k.lane x 4 vector
                accumulator += (A(s0.m, s0.k) * B(s0.k, s0.n))
        first of s0.k.tile
          for s0.m.register x 2 unroll
            C(s0.m, s0.n) = + of accumulator over s0.k.register, s0.k.lane
        later
          for s0.m.register x 2 unroll
            C(s0.m, s0.n) = (C(s0.m, s0.n) + + of accumulator over s0.k.register, s0.k.lane)
"""
    )


def test_16_bit_partial_sums_wait_in_float32() -> None:
    text = "def f(half(M, N) A) -> (O) { O(m) +=! A(m, n) }"
    sized = sized_of(text, A=(4, 9))
    inside = show(schedule(sized, MappingOptions().tile(0, 3), DEVICE))
    assert "scratch s0.partial: float32(4)" in inside
    assert "scratch" not in show(schedule(sized, MappingOptions().tile(2, 0), DEVICE))


# Meaning.


@pytest.mark.parametrize("seed", range(25))
def test_every_stage_means_the_same(seed: int) -> None:
    """The reference, the lowered program, and every step of random schedules."""
    program = random_program(seed, max_statements=3)
    sized = sized_program(program)
    points = sum(int(np.prod([s.extent(i) for i in s.ranges])) for s in sized.statements)
    if points > 4000:
        pytest.skip("too many points to interpret")
    options = random_options(random.Random(seed), sized, DEVICE)
    check_stages(program, sized, seed, stages(sized, options, DEVICE), options)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 12), st.sampled_from([1, 2, 4, 8]), st.integers(-5, 5))
def test_folds_visit_every_point_once(extent: int, tile: int, width: int, first: int) -> None:
    """Whatever tile and lanes leave over at the end."""
    text = f"def f(int32(N) A) -> (O) {{ O(i) = A(i - {first}) + 1 where i in {first}:{first}+N }}"
    text = text.replace("- -", "+ ")
    sized = sized_of(text, A=(extent,))
    program = schedule(sized, MappingOptions().tile(tile).vectorize(width), DEVICE)
    out = np.zeros(extent, np.int32)
    interpret(program, {"A": np.arange(extent, dtype=np.int32), "O": out})
    np.testing.assert_array_equal(out, np.arange(extent) + 1)
    visits = np.zeros(extent, np.int32)
    total = sized_of("def f(int32(N) A) -> (P) { P(i) += A(i) }", A=(extent,))
    interpret(
        schedule(total, MappingOptions().tile(tile).vectorize(width), DEVICE),
        {"A": np.ones(extent, np.int32), "P": visits},
    )
    np.testing.assert_array_equal(visits, 1)


@pytest.mark.parametrize("tile", [0, 2, 3])
def test_interpreting_finds_reads_outside(tile: int) -> None:
    text = "def f(float(N) L, int32(B) I) -> (O) { O(b) = L(I(b)) }"
    sized = sized_of(text, L=(4,), I=(3,))
    program = schedule(sized, MappingOptions().tile(tile), DEVICE)
    arrays = {"L": np.ones(4, np.float32), "I": np.array([0, 4, 1], np.int32)}
    with pytest.raises(IndexError, match="index 4 of L, dimension 0"):
        interpret(program, {**arrays, "O": np.zeros(3, np.float32)})
