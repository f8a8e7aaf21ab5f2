"""What is counted of scheduled kernels: against the emulator's trace of their source, against rules
written in another way, and against numbers that are known without either."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cuda_options import random_gpu_options, space_options
from sampling import swept

from tcl.arrays.random_inputs import input_shape
from tcl.bench.rows import select
from tcl.codegen.choose.gpu.predicted import of_part
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.prediction import (
    LAUNCH,
    in_turn,
    needed_in_flight,
    predict,
    roofline,
    scheduled,
    share,
)
from tcl.codegen.counters.requests import (
    Access,
    Memory,
    Traffic,
    by_kind,
    sectors,
    traffic_of,
)
from tcl.codegen.counters.walk import record_of
from tcl.codegen.cuda.emit.emit import emit_program
from tcl.codegen.cuda.emulator import compile_modules, why_not
from tcl.codegen.devices.banks import matrix_wavefronts, wavefronts
from tcl.codegen.devices.gpu import A100, H200, T4, GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.gpu import plan, schedule
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

emulated = pytest.mark.skipif(bool(why_not()), reason=why_not() or "")


def product(a: str, b: str, type_: str = "float") -> str:
    left, right = ("m,k" if a == "N" else "k,m"), ("k,n" if b == "N" else "n,k")
    shapes = left.upper(), right.upper()
    return (
        f"def f({type_}({shapes[0]}) A, {type_}({shapes[1]}) B) -> (C) "
        f"{{ C(m,n) +=! A({left})*B({right}) }}"
    )


EVEN, RAGGED = dict(M=128, N=96, K=64), dict(M=66, N=51, K=35)
IMAGES = dict(N=2, C=4, H=14, W=14, F=8, KH=3, KW=3)
CONVOLUTION = """def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+kh,w+kw)*K(f,c,kh,kw) }"""
PADDED = """def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
    O(n,f,h,w) +=! (h+kh>=1 && h+kh-1<H && w+kw>=1 && w+kw-1<W ? I(n,c,h+kh-1,w+kw-1) : 0)
        * K(f,c,kh,kw) where n in 0:N, h in 0:H, w in 0:W }"""
SOFTMAX = """def f(float(N,D) I) -> (O, m, s) {
    m(n) max=! I(n,d)
    s(n) +=! exp(I(n,d)-m(n))
    O(n,d) = exp(I(n,d)-m(n))/s(n) }"""
TRANSPOSE = "def f(float(N,D) I) -> (O) { O(d,n) = I(n,d) }"
COLUMN_SUM = "def f(float(N,D) I) -> (O) { O(d) +=! I(n,d) }"
GATHER = "def f(float(N,D) I, int32(K) X) -> (O) { O(k,d) = I(X(k),d) }"
CASES: dict[str, tuple[str, Mapping[str, int]]] = {
    **{a + b: (product(a, b), EVEN) for a, b in itertools.product("NT", repeat=2)},
    **{f"{a + b} ragged": (product(a, b), RAGGED) for a, b in itertools.product("NT", repeat=2)},
    "float16": (product("N", "N", "half"), dict(M=128, N=128, K=64)),
    "float16 NT": (product("N", "T", "half"), dict(M=64, N=128, K=64)),
    "float16 in a pipeline": (product("N", "N", "half"), dict(M=64, N=128, K=192)),
    "convolution": (CONVOLUTION, IMAGES),
    "padded convolution": (PADDED, IMAGES),
    "softmax": (SOFTMAX, dict(N=9, D=256)),
    "softmax of odd rows": (SOFTMAX, dict(N=9, D=131)),
    "transpose": (TRANSPOSE, dict(N=96, D=72)),
    "column sum": (COLUMN_SUM, dict(N=131, D=70)),
}


def sized_of(text: str, sizes: Mapping[str, int]) -> SizedDef:
    checked = check(text)["f"]
    return infer(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})


def arrays_of(tensors: Iterable[ir.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(0)
    outer = (t for t in tensors if t.role is not ir.Role.SCRATCH)
    return {
        t.name: (8 * generator.random(t.layout.extents)).astype(numpy_dtype(t.layout.type))
        for t in outer
    }


def differences(
    cases: Sequence[tuple[str, SizedDef, MappingOptions, GpuProfile]],
) -> tuple[list[str], int]:
    """Where counts and a trace differ, and how many kernels have been compared."""
    programs = [schedule(sized, options, profile) for _, sized, options, profile in cases]
    modules = [emit_program(p, case[3]) for p, case in zip(programs, cases, strict=True)]
    found, count = [], 0
    runs = zip(cases, programs, compile_modules(modules, traced=True), strict=True)
    for (name, _, options, profile), program, runs_it in runs:
        seen = runs_it.run(arrays_of(runs_it.module.tensors))
        for kernel, asked in zip(program.kernels, seen, strict=True):
            counted = by_kind(record_of(program, kernel, profile.idle_sums).accesses)
            count += 1
            for kind, own in counted.items():
                other = asked[kind.value]
                assert own.exact
                if (own.requests, own.units, own.bytes) != (
                    other.requests,
                    other.units,
                    other.bytes,
                ):
                    found.append(f"{name}: {kind.value}: {own}, traced {other}, with {options}")
    return found, count


# Against the emulator's trace.


@emulated
def test_as_traced() -> None:
    """By default, and without asynchronous copies."""
    cases = [(name, sized_of(*case), DEFAULT, H200) for name, case in CASES.items()]
    cases += [(n, s, o, T4) for n, s, o, _ in cases if n in ("NT ragged", "padded convolution")]
    whole = sized_of(product("N", "N", "half"), dict(M=128, N=128, K=192))
    together = NestOptions(
        chunk=(64, 128),
        threads=(32, 4),
        register=(2, 16, 64),
        tile=(0, 0, 64),
        vectorize=(1, 2),
        stage=(2, 2),
        buffers=3,
        mma=(0, 1, 2),
    )
    cases += [("exchanged", whole, WHOLE, H200)]
    cases += [("warpgroups", whole, WHOLE.with_nest(0, together), H200)]
    found, count = differences(cases)
    assert not found
    assert count >= len(cases)


FEW = ("NN ragged", "float16", "padded convolution", "softmax of odd rows", "column sum")


@emulated
@pytest.mark.parametrize("seed", swept([1], range(100, 160)))
def test_as_traced_with_any_options(seed: int) -> None:
    rng, drawn = random.Random(seed), []
    for name in FEW if seed == 1 else CASES:
        text, sizes = CASES[name]
        sized = sized_of(text, {k: max(3, n // 2) for k, n in sizes.items()})
        drawn.append((name, sized, random_gpu_options(rng, sized, H200), H200))
        searched = space_options(rng, sized, H200)
        if searched is not None:
            drawn.append((name, sized, searched, H200))
    found, count = differences(drawn)
    assert not found
    assert count >= len(FEW)


@emulated
def test_what_data_decides_is_said_to_be_about() -> None:
    program = schedule(sized_of(GATHER, dict(N=96, D=160, K=50)), DEFAULT, H200)
    (emulator,) = compile_modules([emit_program(program, H200)], traced=True)
    (seen,) = emulator.run(arrays_of(emulator.module.tensors))
    (kernel,) = program.kernels
    counted = by_kind(record_of(program, kernel, H200.idle_sums).accesses)
    reads, traced = counted[Memory.GLOBAL_READ], seen["global reads"]
    assert not reads.exact
    assert (reads.requests, reads.bytes) == (traced.requests, traced.bytes)


@emulated
def test_nothing_is_traced_where_nobody_asks() -> None:
    program = schedule(sized_of(TRANSPOSE, dict(N=8, D=8)), DEFAULT, H200)
    (emulator,) = compile_modules([emit_program(program, H200)])
    assert emulator.run(arrays_of(emulator.module.tensors)) == ({},)


# The rules.


def lanes(values: Iterable[int]) -> tuple[Any, Any]:
    offsets = np.array([list(values)], np.int64)
    return offsets, np.ones(offsets.shape, bool)


@pytest.mark.parametrize(
    ("offsets", "size", "expected"),
    [
        ([4 * k for k in range(32)], 4, 1),
        ([128 * k for k in range(32)], 4, 32),
        ([8 * k for k in range(32)], 4, 2),
        ([0] * 32, 4, 1),
        ([2 * k for k in range(32)], 2, 1),
        ([8 * k for k in range(32)], 8, 2),
        ([8 * (k // 2) for k in range(32)], 8, 1),
        ([16 * k for k in range(32)], 16, 4),
        ([16 * (k // 2) for k in range(32)], 16, 2),
        ([16 * (k // 4 * 2 + k % 2) for k in range(32)], 16, 2),
        ([16 * (k // 8) for k in range(32)], 16, 2),
        ([512 * k for k in range(32)], 16, 32),
        ([64 * (k % 16) for k in range(32)], 16, 16),
    ],
)
def test_wavefronts(offsets: list[int], size: int, expected: int) -> None:
    assert wavefronts(*lanes(offsets), size).tolist() == [expected]
    moved = [x + 128 * 5 + 16 for x in offsets]
    assert wavefronts(*lanes(moved), size).tolist() == [expected], "banks turn round"


def test_wavefronts_of_some_threads() -> None:
    offsets, active = lanes([128 * k for k in range(32)])
    active[:, 5:] = False
    assert wavefronts(offsets, active, 4).tolist() == [5]
    assert sectors(offsets, active, 4).tolist() == [5]


@pytest.mark.parametrize(
    ("offsets", "size", "expected"),
    [
        ([4 * k for k in range(32)], 4, 4),
        ([4 * k + 4 for k in range(32)], 4, 5),
        ([16 * k for k in range(32)], 16, 16),
        ([4096 * k for k in range(32)], 4, 32),
        ([0] * 32, 8, 1),
        ([-4 * k for k in range(32)], 4, 5),
    ],
)
def test_sectors(offsets: list[int], size: int, expected: int) -> None:
    assert sectors(*lanes(offsets), size).tolist() == [expected]


def test_rows_of_matrices() -> None:
    assert matrix_wavefronts(*lanes(16 * k for k in range(32)), 4).tolist() == [4]
    assert matrix_wavefronts(*lanes(128 * k for k in range(32)), 4).tolist() == [32]
    assert matrix_wavefronts(*lanes(128 * k for k in range(32)), 2).tolist() == [16]


@pytest.mark.parametrize("seed", range(40))
def test_classes_are_all_iterations(seed: int) -> None:
    """Each iteration gone through on its own gives the same sums."""
    rng = random.Random(seed)
    loops = {name: rng.choice((1, 2, 3, 5, 16)) for name in "abc"}
    threads = rng.choice((1, 32, 48, 96))
    number = np.arange(threads)

    def linear(most: int) -> Linear:
        factors = {name: rng.randint(-most, most) for name in loops if rng.random() < 0.8}
        own = number % 7 * rng.randint(0, 4) + number // 7 if rng.random() < 0.8 else None
        return Linear(rng.randint(-20, 20), factors, own)

    tests = tuple(Condition(linear(4), rng.randint(-5, 40)) for _ in range(rng.randint(0, 3)))
    place = Place(number % 5 != rng.randint(0, 6), loops, tests)
    offset = linear(9).scaled(4)

    def at(value: Linear, turn: Mapping[str, int]) -> Any:
        moved = sum(factor * turn[name] for name, factor in value.factors.items())
        return value.constant + moved + (0 * number if value.threads is None else value.threads)

    expected = warps = 0
    for turns in itertools.product(*map(range, loops.values())):
        turn = dict(zip(loops, turns, strict=True))
        active = place.active.copy()
        for test in tests:
            active &= at(test.value, turn) < test.bound
        for first in range(0, threads, 32):
            part = slice(first, first + 32)
            touched = {int(x) // 32 for x in at(offset, turn)[part][active[part]]}
            expected += len(touched)
            warps += bool(touched)
    counted = sum(
        int((counts * sectors(offsets, active, 4)).sum())
        for counts, offsets, active in place.classes(offset, 32)
    )
    assert (counted, place.warps()) == (expected, warps)


@pytest.mark.parametrize("kind", [Memory.GLOBAL_READ, Memory.SHARED_READ, Memory.MATRIX_READ])
@pytest.mark.parametrize("size", [1, 8, 16])
def test_what_no_thread_asks_for_is_nothing(kind: Memory, size: int) -> None:
    place = Place(np.ones(64, bool), {"a": 3}, (Condition(Linear(0, {"a": 1}), 0),))
    access = Access(kind, "A", size, place, Linear(0, {"a": 4}, size * np.arange(64)), place)
    assert traffic_of(access) == Traffic()


# Numbers that are known.


WHOLE = MappingOptions("mlp", NestOptions(split=()))
"""One kernel: no reduction is split."""


def counts_of(text: str, **sizes: int) -> KernelCounts:
    (found,) = count_program(schedule(sized_of(text, sizes), WHOLE, H200), H200)
    return found


@pytest.mark.parametrize("kind", ["NN", "NT", "TN", "TT"])
def test_products_multiply_and_add_once(kind: str) -> None:
    found = counts_of(product(*kind), M=1024, N=1024, K=512)
    assert found.instructions["fma"] == 1024 * 1024 * 512 / 32
    assert found.dram_read == 4 * 2 * 1024 * 512
    assert found.dram_written == 4 * 1024 * 1024


@pytest.mark.parametrize("kind", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("size", [1024, 2048])
def test_large_products_wait_for_no_panels(kind: str, size: int) -> None:
    """By default threads hold so much that shared memory has little more than half as much to do as
    arithmetic, and lanes are numbered so that reads of 16 bytes take two wavefronts."""
    sized = sized_of(product(*kind), dict(M=size, N=size, K=size))
    found, *_ = count_program(schedule(sized, DEFAULT, H200), H200)
    pipes = predict(found).pipes
    assert pipes["shared memory"] <= 0.55 * pipes["float32"]
    assert 1.9 < found.traffic[Memory.SHARED_READ].each < 2.05  # sums are handed over by four
    assert found.occupancy.blocks >= 2
    assert found.waves > 0.9


@pytest.mark.parametrize(("channels", "extent"), [(4, 56), (8, 28), (16, 14), (32, 7)])
def test_windows_ask_less_of_shared_memory_than_of_arithmetic(channels: int, extent: int) -> None:
    text = """def f(float(N,G,C,H,W) I, float(G,F,C,KH,KW) K) -> (O) {
        O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * K(g,f,c,kh,kw) }"""
    sizes = dict(N=32, G=32, C=channels, H=extent, W=extent, F=channels, KH=3, KW=3)
    pipes = predict(counts_of(text, **sizes)).pipes
    assert pipes["shared memory"] <= pipes["issue"]


@pytest.mark.parametrize(("extent", "again"), [(56, 1.05), (30, 1.2)])
def test_windows_write_their_sectors_once(extent: int, again: float) -> None:
    """Where rows of results are no whole vectors of four, threads store fewer at once: a warp that
    stores halves of vectors writes each sector twice. A sector may lie in two rows."""
    found = counts_of(CONVOLUTION, N=32, C=16, H=extent, W=extent, F=16, KH=3, KW=3)
    written = found.traffic[Memory.GLOBAL_WRITE]
    rows = 32 * 16 * (extent - 2)
    assert written.bytes == rows * (extent - 2) * 4
    assert written.units <= again * rows * (1 + (extent - 2) * 4 / 32)


def test_what_begins_together_writes_together() -> None:
    alone = in_turn(8.0, 4.0, blocks=6, resident=1)
    assert alone == 12  # no block works while another one writes
    assert in_turn(8.0, 4.0, blocks=2, resident=2) == alone
    assert 8 < in_turn(8.0, 4.0, blocks=16, resident=2) < in_turn(8.0, 4.0, blocks=4, resident=2)
    assert in_turn(8.0, 4.0, blocks=4, resident=2) < alone
    assert in_turn(4.0, 8.0, blocks=8, resident=2) == in_turn(8.0, 4.0, blocks=8, resident=2)


def test_warps_meet_less_often_in_larger_tiles() -> None:
    """One block a multiprocessor: nobody else works after a barrier."""
    sized = sized_of(product("N", "N", "half"), dict(M=4096, N=4096, K=4096))
    own = NestOptions(
        chunk=(128, 256),
        threads=(16, 16),
        register=(8, 8, 16),
        vectorize=(1, 2),
        stage=(2, 2),
        buffers=4,
        mma=(0, 1, 2),
        split=(),
    )
    apart = []
    for tile in (32, 64):
        options = WHOLE.with_nest(0, replace(own, tile=(0, 0, tile)))
        (found,) = count_program(schedule(sized, options, H200), H200)
        apart.append(predict(found).apart)
    assert apart[0] > apart[1]
    (chosen,) = plan(sized, WHOLE, H200).options.values()
    assert chosen.tile == (0, 0, 64)


def test_work_begins_when_panels_are_there() -> None:
    """Of a block that fills its panels first, and fills none ahead."""
    found = counts_of(CONVOLUTION, N=32, C=1, H=56, W=56, F=16, KH=3, KW=3)
    own, *rest = (x for x in found.loads if x.fills)
    assert own.fills == 1 and not rest  # both panels are waited for at once
    pipes = dict(predict(found).pipes)
    waited = pipes.pop("latency")
    del pipes["memory"]
    assert waited > max(pipes.values())
    early = tuple(replace(x, fills=0.0, waited=0.0) for x in found.loads)
    assert predict(replace(found, loads=early)).pipes["latency"] < waited / 2


def test_blocks_wait_for_the_first_tile() -> None:
    """Of those that are filled ahead; the parts of a split reduction wait for theirs."""
    found = counts_of(CONVOLUTION, N=32, C=16, H=56, W=56, F=16, KH=3, KW=3)
    (share,) = (x.fills for x in found.loads if x.fills)
    assert share == 1 / 4
    pipes = dict(predict(found).pipes)
    waited = pipes.pop("latency")
    memory = pipes.pop("memory")
    assert share * memory / 2 < waited - max(pipes.values()) < memory
    assert of_part(found.loads[0], 2).fills == 2 * share
    assert of_part(found.loads[0], 8).fills == 1


def test_both_operands_of_a_window_are_filled_ahead() -> None:
    """Factors that threads read where they are would be waited for in the loop."""
    found = counts_of(CONVOLUTION, N=32, C=16, H=56, W=56, F=16, KH=3, KW=3)
    assert not any(x.waited for x in found.loads)
    assert found.traffic[Memory.GLOBAL_READ].requests == 0


def test_warps_that_schedulers_do_not_share_evenly_take_longer() -> None:
    assert scheduled(6) == 0.75  # two schedulers have two each, the others one
    assert scheduled(8) == scheduled(16) == 1.0
    assert scheduled(2) == scheduled(4) / 2


def test_few_results_of_long_sums_are_shared_by_warps() -> None:
    """All multiprocessors have work in one launch, and threads hold many results."""
    sized = sized_of(product("N", "T"), dict(M=128, N=1024, K=1024))
    (found,) = count_program(schedule(sized, DEFAULT, H200), H200)
    assert found.tail > 0.95 and found.last is None
    assert predict(found).pipes["shared memory"] <= 5e-6


def test_a_few_parts_are_added_up_in_the_launch_that_makes_them() -> None:
    """What the last blocks do is counted apart, and takes less than a kernel of its own."""
    sized = sized_of(product("N", "N"), dict(M=16, N=2048, K=4096))
    (found,) = count_program(schedule(sized, DEFAULT, H200), H200)
    last = found.last
    assert last is not None and found.blocks % last.blocks == 0
    parts = found.blocks // last.blocks
    read, written = (last.traffic[kind] for kind in (Memory.GLOBAL_READ, Memory.GLOBAL_WRITE))
    assert read.bytes == parts * written.bytes == parts * 4 * 16 * 2048
    assert last.dram_read == 0  # parts are in the second cache
    assert 0 < predict(found).last < predict(last).seconds


def test_a_condition_leaves_products_fused() -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) {"
    found = counts_of(text + "C(m, n) +=! (k <= m) ? A(m, k) * B(k, n) : 0 }", M=64, N=64, K=64)
    assert found.instructions["fma"] == 64**3 / 32


TWO_SETS = WHOLE.with_nest(
    0,
    NestOptions(  # two of its blocks are promised half of these registers
        chunk=(128, 256),
        threads=(16, 16),
        register=(8, 8, 16),
        tile=(0, 0, 32),
        vectorize=(1, 2),
        stage=(2, 2),
        buffers=4,
        mma=(0, 1, 2),
        split=(),
    ),
)


def test_tensor_cores() -> None:
    """On sm_90, one warp alone begins an HMMA in 6 cycles; warpgroups do its work in 4."""
    sized = sized_of(product("N", "N", "half"), dict(M=4096, N=4096, K=4096))
    for options, kind, slower in ((WHOLE, "wgmma", 1.0), (TWO_SETS, "mma", 1.5)):
        (found,) = count_program(schedule(sized, options, H200), H200)
        assert found.instructions[kind] == 4096**3 / (16 * 8 * 16)
        assert "fma" not in found.instructions
        peak = slower * 2 * 4096**3 / H200.tensor_flops
        assert predict(found).pipes["tensor cores"] == pytest.approx(peak / found.tail)


def test_what_warpgroups_read_of_panels() -> None:
    """64 rows and 256 columns of 16 points, 128 bytes a wavefront: 80 for 128 cycles."""
    found = counts_of(product("N", "N", "half"), M=4096, N=4096, K=4096)
    ratio = found.instructions["panel"] / found.instructions["wgmma"]
    assert ratio == (64 + 256) * 16 * 2 / 128 / 128


def test_two_sets_of_fragments_are_in_registers() -> None:
    """As many as ptxas 13.0 has, about: 234."""
    for form in "NT":
        sized = sized_of(product("N", form, "half"), dict(M=4096, N=4096, K=4096))
        (found,) = count_program(schedule(sized, TWO_SETS, H200), H200)
        assert found.registers == pytest.approx(233, abs=3)


def test_what_is_in_registers_is_not_read_again() -> None:
    """Windows overlap: compilers read a row once for all taps that are written out."""
    sizes = dict(N=32, C=16, H=58, W=58, F=16, KH=3, KW=3)
    own = NestOptions(
        chunk=(1, 16, 6, 56),
        threads=(1, 4, 3, 14),
        register=(1, 4, 2, 1, 4, 3, 3),
        vectorize=(3, 4),
        stage=(1, -1),
        split=(),
    )
    program = schedule(sized_of(CONVOLUTION, sizes), WHOLE.with_nest(0, own), H200)
    found, *_ = count_program(program, H200)
    source = by_kind(record_of(program, program.kernels[0], H200.idle_sums).accesses)
    # Of two rows of results and three of a window, four rows are different.
    read, written = (t[Memory.SHARED_READ].requests for t in (found.traffic, source))
    assert read == written * 4 // 6


def test_results_that_registers_do_not_hold_are_read_with_each_product() -> None:
    """Compilers spill about a third of 256 results, and none of 128."""
    seconds, locals_ = [], []
    for held in (8, 16):
        own = NestOptions(
            chunk=(8 * held, 128),
            threads=(8, 8),
            register=(held, 4, 2),
            vectorize=(1, 4),
            tile=(0, 0, 16),
            stage=(2, 2),
        )
        sized = sized_of(product("N", "N"), dict(M=1024, N=1024, K=512))
        (found,) = count_program(schedule(sized, WHOLE.with_nest(0, own), H200), H200)
        locals_.append(found.instructions.get("local", 0) / found.instructions["fma"])
        seconds.append(predict(found).seconds)
    assert locals_[0] < 0.02 and 0.3 < locals_[1] < 0.8
    assert seconds[1] > 1.5 * seconds[0]


def test_large_rows_are_read_again() -> None:
    """Rows of all blocks at once are more than the second cache keeps."""
    text = """def f(float(N,D) I) -> (m, O) {
        m(n) +=! I(n,d)
        O(n,d) = I(n,d) - m(n) }"""
    small = counts_of(text, N=2048, D=1024)
    large = counts_of(text, N=1024, D=131072)
    assert small.dram_read == 4 * 2048 * 1024
    assert large.dram_read > 1.9 * 4 * 1024 * 131072


def test_bytes_in_flight() -> None:
    """A row sum has a vector a thread on its way; with one block of a few threads that is not
    enough."""
    found = counts_of("def f(float(N,D) I) -> (O) { O(n) +=! I(n,d) }", N=4096, D=4096)
    assert found.in_flight >= needed_in_flight(H200)
    rate = 0.9 * H200.memory_bytes_per_second
    assert predict(found).pipes["memory"] == pytest.approx(4 * 4096 * 4097 / rate, rel=0.01)
    few = counts_of("def f(float(N,D) I) -> (O) { O(n) +=! I(n,d) }", N=2, D=4096)
    assert few.in_flight * 2 < needed_in_flight(H200) * 132


def test_the_share_of_the_roofline() -> None:
    sized = sized_of("def f(float(N) I) -> (O) { O(n) = 2*I(n) }", dict(N=1 << 26))
    cost = cost_of(lower(sized))
    least = roofline(cost, H200)
    assert least == pytest.approx(2 * 4 * (1 << 26) / (0.9 * 4.8e12))
    predictions = [predict(c) for c in count_program(schedule(sized, DEFAULT, H200), H200)]
    assert share(cost, predictions, H200) == pytest.approx(least / (least + LAUNCH), rel=0.01)
    assert {p.binding for p in predictions} == {"memory"}


@pytest.mark.parametrize("profile", [T4, A100, H200], ids=lambda p: p.name)
def test_clocks_are_those_of_the_data_sheets(profile: GpuProfile) -> None:
    boost = {"T4": 1.59e9, "A100": 1.41e9, "H200": 1.98e9}[profile.name]
    assert profile.clock == pytest.approx(boost, rel=0.01)


def test_small_products_of_a_batch() -> None:
    """Rows of 26 floats follow each other: their sectors are not counted twice. Several blocks have
    so many small tiles on their way that memory is busy."""
    text = "def f(float(B, N, M) X, float(B, M, K) Y) -> (Z) {"
    text += " Z(b, n, k) +=! X(b, n, m) * Y(b, m, k) }"
    sized = sized_of(text, dict(B=500, N=26, M=72, K=26))
    (found,) = count_program(schedule(sized, DEFAULT, H200), H200)
    assert found.dram_read == 4 * 500 * 2 * 26 * 72
    assert found.in_flight >= 40 << 10


@pytest.mark.parametrize(
    ("row", "kernel", "executed"),
    [
        ("stencil 2048x2048", 0, 97),
        ("attention scores B8 S256 D64", 0, 1308),
        ("attention scores B8 S256 D64", 1, 162),
        ("group norm N4 C512 12x12", 0, 212),
    ],
)
def test_instructions_are_those_of_machine_code(row: str, kernel: int, executed: int) -> None:
    """Of a warp, within 5 %. ``executed``: by ``python -m benchmarks.counters --sass``, of what
    NVRTC 13.5 makes for sm_90."""
    (found,) = select(row)
    shapes = {t.name: input_shape(t, found.values) for t in found.checked.inputs}
    own = count_program(schedule(infer(found.checked, shapes), DEFAULT, H200), H200)[kernel]
    warps = own.blocks * -(-own.threads // 32)
    assert sum(own.instructions.values()) / warps == pytest.approx(executed, rel=0.05)
