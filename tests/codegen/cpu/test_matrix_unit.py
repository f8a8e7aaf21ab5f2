"""Products in a CPU's matrix unit, emulated where there is none, against the reference."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import pytest
from comparing import check_cpu, check_equal, expected_of, outputs_of
from compiled_kernels import compile_cpu
from cpu_kernels import fenced, fenced_copy, sized_of
from interpreted_stages import stages
from loopir_interpreter import interpret
from matrix_unit import (
    EMULATING,
    SAPPHIRE_RAPIDS,
    random_array,
    random_options,
    random_work,
    text_of,
)
from nests import WIDE
from sampling import swept

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, statements
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan, schedule
from tcl.common.errors import OptionsError

MATMUL = text_of("plain", ("int8", "int8"))
TWO_BY_TWO = NestOptions(
    tile=(32, 0, 64),
    order=(2, 0, 1),
    inner_order=(1, 0, 2),
    vectorize=(1, 16),
    register=(2, 2),
    dot=(0, 0, 4),
    mma=(0, 1, 2),
    stage=(2, 1),
)


@pytest.mark.parametrize("seed", swept(range(5), range(1000, 1250)))
def test_random_defs_and_options(seed: int) -> None:
    """Several options for one def."""
    rng = random.Random(f"matrix unit {seed}")
    text, inputs, mma = random_work(rng)
    sized = sized_of(text, *inputs)
    expected = expected_of(sized, inputs)
    for _ in range(3 if seed < 1000 else 8):
        device = replace(EMULATING, threads=rng.choice([1, 1, 3]))
        options = random_options(rng, sized, mma, device)
        kernel = check_cpu(sized, inputs, options, device, expected)
        assert "llvm.x86.tdp" in kernel.llvm, options


@pytest.mark.parametrize("types", [("int8", "uint8"), ("bfloat16", "bfloat16")])
def test_nothing_is_touched_beyond_the_arrays(types: tuple[str, str]) -> None:
    rng = np.random.default_rng(2)
    text = text_of("plain", types)
    inputs = []
    for type_, shape in zip(types, ((37, 71), (71, 35)), strict=True):
        stored = np.uint16 if type_ == "bfloat16" else type_
        inputs.append(rng.integers(0, 100, shape).astype(stored))
    sized = sized_of(text, *inputs)
    own = replace(TWO_BY_TWO, dot=(0, 0, 2 if "bfloat16" in types else 4))
    expected = expected_of(sized, inputs)
    kernel = compile_cpu(sized, MappingOptions(nests=(own,)), device=EMULATING)
    for after in (True, False):
        output = fenced((37, 35), np.float32 if "bfloat16" in types else np.int32, after)
        kernel([fenced_copy(a, after) for a in inputs], [output])
        check_equal(sized, [output], expected, f"fenced {after}")


def work(rows: int = 200) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((rows, 300), (300, 90)))
    return [a, b], a.astype(np.int32) @ b.astype(np.int32)


def test_eight_threads_and_a_fork_in_the_middle() -> None:
    """Every thread has registers of its own; a child goes on with none."""
    inputs, expected = work()
    sized = sized_of(MATMUL, *inputs)
    options = MappingOptions(nests=(replace(TWO_BY_TWO, chunk=(16, 32)),))
    kernel = compile_cpu(sized, options, device=replace(EMULATING, threads=8))
    for k in range(6):
        (got,) = outputs = outputs_of(sized)
        child = os.fork() if k == 3 else None
        kernel(inputs, outputs)
        same = bool(np.array_equal(got, expected))
        if child == 0:
            os._exit(0 if same else 1)
        assert same
        if child is not None:
            assert os.waitpid(child, 0)[1] == 0


def test_sums_are_resumed_and_go_on_from_what_is_stored() -> None:
    inputs, expected = work()
    text = MATMUL.replace("+=!", "+=")
    sized = sized_of(text, *inputs)
    kernel = compile_cpu(sized, MappingOptions(nests=(TWO_BY_TWO,)), device=EMULATING)
    (got,) = outputs = outputs_of(sized)
    kernel(inputs, outputs)
    np.testing.assert_array_equal(got, expected + 1)


@pytest.mark.parametrize(("rows", "columns"), [(3, 17), (16, 32)])
@pytest.mark.parametrize("adds", [False, True])
def test_a_schedule_means_the_same_point_by_point(rows: int, columns: int, adds: bool) -> None:
    """What the matrix unit does is said by the loops."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((rows, 66), (66, columns)))
    sized = sized_of(MATMUL.replace("+=!", "+=") if adds else MATMUL, a, b)
    own = replace(TWO_BY_TWO, tile=(0, 0, 64), stage=(1, 1))
    found = dict(stages(sized, MappingOptions(nests=(own,)), EMULATING))
    for name in ("mma", "build"):
        c = np.full((rows, columns), 7, np.int32)
        interpret(found[name], {"A": a, "B": b, "C": c})
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b + 7 * adds, err_msg=name)


def moves(program: ir.Built) -> list[str]:
    """Where fragments of sums go, and where they come from."""
    found = (s for k in program.kernels for s in statements(k.body) if isinstance(s, ir.Matrix))
    places = ((s.action.value, s.at.tensor if s.at else "vectors") for s in found)
    return [f"{action} {place}" for action, place in places if action != "clear"]


@pytest.mark.parametrize(
    ("rows", "epilogue", "chunk", "expected"),
    [
        (64, False, 32, ["take C", "give C"]),
        (60, False, 32, ["take s0.sums", "give vectors", "give s0.sums"]),
        (64, True, 0, ["take s0.sums", "give vectors", "give s0.sums"]),
    ],
)
def test_sums_stay_fragments_until_they_are_results(
    rows: int, epilogue: bool, chunk: int, expected: list[str]
) -> None:
    """Also where threads have sums of their own, and what comes after runs on the last ones."""
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((rows, 140), (140, 64)))
    sized = sized_of(text_of("plain", ("int8", "int8"), epilogue), a, b)
    own = replace(TWO_BY_TWO, tile=(0, 0, 64), order=(), stage=(1, 1))
    if chunk:
        own = replace(own, chunk=(chunk, chunk), stage=(2, 2))
    options = MappingOptions("mlp", nests=(own,))
    device = replace(EMULATING, threads=3)
    program = schedule(sized, options, device)
    assert moves(program) == expected
    assert len(program.kernels) == 1
    check_cpu(sized, [a, b], options, device)


def test_the_last_points_of_a_tile_are_not_those_of_the_reduction() -> None:
    """Where fragments of the last but one tile would reach the end of the reduction, if the tile
    did not end before them."""
    rng = random.Random(11)
    inputs = [random_array(rng, (3, 192), "int8"), random_array(rng, (192, 20), "int8")]
    sized = sized_of(MATMUL, *inputs)
    own = replace(TWO_BY_TWO, tile=(0, 0, 92), order=(), inner_order=(1, 2, 0), stage=(1, 1))
    options = MappingOptions(nests=(own,))
    check_cpu(sized, inputs, options, EMULATING)
    c = np.full((3, 20), 7, np.int32)
    a, b = inputs
    interpret(schedule(sized, options, EMULATING), {"A": a, "B": b, "C": c})
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b)


def test_chunks_of_less_than_a_fragment_have_sums_of_their_own() -> None:
    rng = random.Random(10)
    inputs = [random_array(rng, (16, 128), "int8"), random_array(rng, (128, 64), "int8")]
    sized = sized_of(MATMUL, *inputs)
    own = replace(TWO_BY_TWO, register=(1, 1), chunk=(8, 0), tile=(0, 0, 64), stage=(1, 1))
    options = MappingOptions(nests=(own,))
    program = schedule(sized, options, EMULATING)
    assert [t.private for t in program.tensors if t.name == "s0.sums"] == [True]
    kernel = check_cpu(sized, inputs, options, replace(EMULATING, threads=3))
    expected = expected_of(sized, inputs)
    for _ in range(20):
        outputs = outputs_of(sized)
        kernel(inputs, outputs)
        check_equal(sized, outputs, expected, "once more")


def test_results_of_sixteen_bits_are_rounded_once() -> None:
    text = "def f(bfloat16(M, K) A, bfloat16(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    rng = random.Random(8)
    inputs = [random_array(rng, shape, "bfloat16") for shape in ((40, 200), (200, 48))]
    sized = sized_of(text, *inputs)
    own = replace(TWO_BY_TWO, dot=(0, 0, 2))
    options = MappingOptions("mlp", nests=(own,))
    assert "give vectors" in moves(schedule(sized, options, EMULATING))
    check_cpu(sized, inputs, options, EMULATING)


def test_sums_of_more_products_than_one_takes_are_made_of_parts() -> None:
    rng = random.Random(9)
    inputs = [random_array(rng, shape, "bfloat16") for shape in ((16, 8300), (8300, 16))]
    sized = sized_of(text_of("plain", ("bfloat16", "bfloat16")), *inputs)
    own = replace(TWO_BY_TWO, dot=(0, 0, 2), register=(1, 1), tile=(0, 0, 2048), stage=(1, 1))
    options = MappingOptions("mlp", nests=(own,))
    assert moves(schedule(sized, options, EMULATING)) == ["give vectors"]
    check_cpu(sized, inputs, options, EMULATING)


def test_epilogues_run_on_what_the_matrix_unit_gives_back() -> None:
    inputs, expected = work()
    text = text_of("plain", ("int8", "int8"), epilogue=True)
    sized = sized_of(text, *inputs)
    own = replace(TWO_BY_TWO, tile=(32, 0, 0), stage=(1, 0))
    options = MappingOptions("mlp", nests=(own,))
    built = schedule(sized, options, EMULATING)
    assert len(built.kernels) == 1  # the epilogue is no pass of its own
    (got,) = outputs = outputs_of(sized)
    compile_cpu(sized, options, device=EMULATING)(inputs, outputs)
    np.testing.assert_array_equal(got, expected * 2 + 1)


@pytest.mark.parametrize(("type_", "depth"), [("int8", 4), ("bfloat16", 2)])
def test_the_inner_loop_is_four_loads_and_four_products(type_: str, depth: int) -> None:
    """As compiled for a machine that has the unit."""
    text = text_of("plain", (type_, type_))
    sized = sized_of(text, np.zeros((256, 2048), np.int8), np.zeros((2048, 256), np.int8))
    own = replace(TWO_BY_TWO, dot=(0, 0, depth), tile=(), order=(), stage=(0, 0))
    options = MappingOptions(nests=(own,))
    source = emit_program(schedule(sized, options, SAPPHIRE_RAPIDS), SAPPHIRE_RAPIDS)
    text = assembly(source.text, SAPPHIRE_RAPIDS)
    loops = re.split(r"(?m)^\.L\w+:", text)
    (inner,) = (x for x in loops if re.search(r"\btdp", x))
    assert len(re.findall(r"\btileloadd\b", inner)) == 4
    assert len(re.findall(r"\btdpb\w+\b", inner)) == 4
    assert re.search(r"\bj\w+\s+\.L", inner)  # nothing comes after the products but going on
    # Nothing is spilled, and every configuration has its release.
    assert len(re.findall(r"\btilestored\b", text)) == 4
    assert len(re.findall(r"\btilezero\b", text)) == 4
    assert len(re.findall(r"\bldtilecfg\b", text)) == len(re.findall(r"\btilerelease\b", text)) == 1


def test_rows_of_a_fragment_are_neighbours_in_its_panel() -> None:
    """In panels of rows 2 KB long, those of two fragments would fall into two sets of the first
    cache."""
    sized = sized_of(MATMUL, np.zeros((256, 2048), np.int8), np.zeros((2048, 256), np.int8))
    program = schedule(sized, MappingOptions("mlp"), SAPPHIRE_RAPIDS)
    (fill,) = [s for s in statements(program.kernels[0].body) if is_fill_of(s, "s0.panel0")]
    (place,) = fill.ref.subscripts
    assert isinstance(place, ir.Affine)
    assert place.coefficient("s0.m.mma") == 64


def is_fill_of(statement: ir.Statement, panel: str) -> TypeGuard[ir.Store]:
    return isinstance(statement, ir.Store) and statement.ref.tensor == panel


@pytest.mark.parametrize(
    ("shape", "read"), [((64, 256), "A"), ((60, 256), "s0.panel0"), ((64, 2048), "s0.panel0")]
)
def test_rows_are_read_in_place_where_the_first_cache_can_keep_them(
    shape: tuple[int, int], read: str
) -> None:
    """Rows of 2 KB would all lie in a few of its sets."""
    rng = random.Random(7)
    inputs = [random_array(rng, s, "int8") for s in (shape, (shape[1], 48))]
    sized = sized_of(MATMUL, *inputs)
    device = replace(EMULATING, l1_bytes=48 << 10, threads=1)
    program = schedule(sized, MappingOptions("mlp"), device)
    found = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.Accumulate)]
    assert read in {load.ref.tensor for s in found for load in loads(s.value)}
    check_cpu(sized, inputs, MappingOptions("mlp"), device)


def test_rows_of_columns_are_transposed_in_registers() -> None:
    """Words are not put together one by one."""
    text = text_of("right transposed", ("bfloat16", "bfloat16"))
    sized = sized_of(text, *[np.zeros((256, 256), np.int16)] * 2)
    source = emit_program(schedule(sized, MappingOptions("mlp"), SAPPHIRE_RAPIDS), SAPPHIRE_RAPIDS)
    code = assembly(source.text, SAPPHIRE_RAPIDS)
    assert len(re.findall(r"\bvp?unpck[lh](dq|ps)\b", code)) >= 32
    assert not re.search(r"\bvpinsr", code)


@pytest.mark.parametrize("points", [33, 97, 140])
def test_words_beyond_the_end_are_zero_where_several_are_unrolled(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fresh memory full of NaN."""
    monkeypatch.setattr("tcl.codegen.cpu.run.launch.empty", lambda s, d: np.full(s, 0xFF, d))
    rng = random.Random(points)
    inputs = [random_array(rng, (20, points), "bfloat16") for _ in range(2)]
    sized = sized_of(text_of("right transposed", ("bfloat16", "bfloat16")), *inputs)
    own = replace(TWO_BY_TWO, register=(2, 1, 2), dot=(0, 0, 2), tile=(), order=(), stage=(0, 0))
    check_cpu(sized, inputs, MappingOptions(nests=(own,)), EMULATING)


@pytest.mark.parametrize("threads", [2, 6, 56])
def test_threads_get_whole_register_tiles(threads: int) -> None:
    sized = sized_of(MATMUL, *[np.zeros((4096, 4096), np.int8)] * 2)
    device = replace(SAPPHIRE_RAPIDS, threads=threads)
    chosen = plan(sized, MappingOptions("mlp"), device).options["s0"]
    assert chosen.mma
    assert chosen.chunk
    assert all(size % 32 == 0 for size in chosen.chunk)


@pytest.mark.parametrize(
    ("type_", "size", "block"),
    [("bfloat16", 512, 256), ("bfloat16", 1024, 256), ("int8", 512, 0), ("int8", 1024, 512)],
)
def test_a_reduction_is_cut_where_the_first_cache_then_keeps_factors(
    type_: str, size: int, block: int
) -> None:
    sized = sized_of(text_of("plain", (type_, type_)), *[np.zeros((size, size), np.int8)] * 2)
    chosen = plan(sized, MappingOptions("mlp"), SAPPHIRE_RAPIDS).options["s0"]
    assert chosen.mma
    assert (chosen.tile or (0, 0, 0))[2] == block


@pytest.mark.parametrize("case", ["plain", "right transposed", "columns first"])
def test_a_cut_reduction_gives_what_the_reference_gives(case: str) -> None:
    rng = random.Random(case)
    shapes = {"plain": ((37, 601), (601, 35)), "right transposed": ((37, 601), (35, 601))}
    given = shapes.get(case, shapes["plain"])
    inputs = [random_array(rng, shape, "bfloat16") for shape in given]
    sized = sized_of(text_of(case, ("bfloat16", "bfloat16"), epilogue=True), *inputs)
    device = replace(EMULATING, l1_bytes=48 << 10, threads=1)
    chosen = plan(sized, MappingOptions("mlp"), device).options["s0"]
    assert chosen.mma and chosen.tile and 0 < chosen.tile[2] < 601
    check_cpu(sized, inputs, MappingOptions("mlp"), device)


REFUSED: dict[str, dict[str, Any]] = {
    "wide has no matrix unit (AMX)": {},
    "columns must be lanes: vectorize 16 points of s0.n": {"vectorize": (1, 8)},
    "it multiplies dot products: s0.k needs the option dot": {"dot": ()},
    "rows and columns must be dimensions of the result, and the third dimension a reduction": {
        "mma": (0, 2, 1)
    },
    "a reduction needs three dimensions; a nest that is fused with it needs two": {"mma": (0, 1)},
    "it has 3 dimensions, so there is no dimension 5": {"mma": (0, 1, 5)},
    "operand 1, B, is not staged: the matrix unit reads panels or uncut rows": {"stage": (2,)},
    "operand 0, A, is not staged: the matrix unit reads panels or uncut rows": {
        "stage": (-1, 1),
        "tile": (40, 0, 64),
    },
    "3 x 2 fragments need 9 registers of the matrix unit; it has 8": {
        "register": (3, 2),
        "tile": (64, 0, 64),
    },
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_is_refused(reason: str) -> None:
    sized = sized_of(MATMUL, *[np.zeros((128, 128), np.int8)] * 2)
    device = WIDE if "wide" in reason else EMULATING
    own = replace(TWO_BY_TWO, **REFUSED[reason])
    if device is WIDE:
        own = replace(own, dot=())
    with pytest.raises(OptionsError) as error:
        schedule(sized, MappingOptions(nests=(own,)), device)
    assert str(error.value).endswith(f"nest s0: {reason}")


def test_a_product_of_bfloat16_that_is_summed_up_in_float() -> None:
    """As it is written if only the result says so."""
    text = "def f(bfloat16(M, K) A, bfloat16(K, N) B) -> (float(M, N) C)"
    text += "{ C(m, n) +=! A(m, k) * B(k, n) }"
    rng = random.Random(5)
    inputs = [random_array(rng, shape, "bfloat16") for shape in ((40, 90), (90, 50))]
    kernel = check_cpu(sized_of(text, *inputs), inputs, MappingOptions("mlp"), EMULATING)
    assert "llvm.x86.tdpbf16ps" in kernel.llvm


@pytest.mark.parametrize("type_", ["int8", "bfloat16"])
def test_large_products_are_given_to_it_and_small_ones_are_not(type_: str) -> None:
    text = text_of("plain", (type_, type_))
    for size, there in ((512, True), (8, False)):
        sized = sized_of(text, *(np.zeros((size, size), np.int8) for _ in range(2)))
        made = plan(sized, MappingOptions("mlp"), SAPPHIRE_RAPIDS)
        assert bool(made.options["s0"].mma) is there
        assert not plan(sized, MappingOptions("mlp"), WIDE).options["s0"].mma
        made.scheduled()


def test_what_is_chosen_gives_what_the_reference_gives() -> None:
    """All forms of products, as somebody meets them who chooses nothing."""
    rng = random.Random("chosen")
    for _ in range(3):
        text, inputs, _ = random_work(rng)
        check_cpu(sized_of(text, *inputs), inputs, MappingOptions("mlp"), EMULATING)
