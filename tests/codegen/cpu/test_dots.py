"""Dot products: sums of products of small integers are exact whichever instruction adds them up."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from comparing import check_cpu
from compiled_kernels import compile_cpu
from cpu_kernels import (
    fenced,
    fenced_copy,
    poisoned,
    random_options,
    reference,
    run,
    same_bits,
    sized_of,
)
from emulated_cpu import host_with
from nests import sized
from sampling import swept

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.named import device_named
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu.dot import depths
from tcl.codegen.schedule.cpu import plan, schedule
from tcl.common.errors import OptionsError

Array = np.ndarray[Any, np.dtype[Any]]
X86_64 = pytest.mark.skipif(
    host_cpu().architecture != "x86_64",
    reason="runs instructions of x86-64, or functions in their place",
)
FORMS = {
    "product": "K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n)) }",
    "transposed": "N, K) B) -> (C) { C(m, n) +=! int32(A(k, m)) * int32(B(n, k)) }",
    "unsigned": "K, N) B) -> (uint32(M, N) C) { C(m, n) +=! uint32(A(m, k)) * uint32(B(k, n)) }",
    "batched": "P, K, N) B) -> (C) { C(p, m, n) +=! int32(A(p, m, k)) * int32(B(p, k, n)) }",
    "convolution": "O, C, R, R) B) -> (D) {"
    "D(o, h, w) +=! int32(A(c, h + y, w + x)) * B(o, c, y, x) }",
    "shifted": "K, N) B) -> (C) { C(m, n) +=! (int32(A(m, k)) - 7) * (int32(B(k, n)) - A(m, 0)) }",
    "epilogue": "K, N) B) -> (C, D) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n))\n"
    "D(m, n) = int8(min(C(m, n), 90)) + B(0, n) }",
    "one operand": "K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(A(n, k) - B(0, 0)) }",
}
"""Sums of products, as they go on after the first operand."""
FIRST = {
    "transposed": "K, M",
    "batched": "P, M, K",
    "convolution": "C, H, W",
}
TYPES = ("int8", "uint8", "int16", "uint16", "bool")


def def_of(form: str, a: str, b: str) -> str:
    first = FIRST.get(form, "M, K")
    return f"def f({a}({first}) A, {b}({FORMS[form]}"


def inputs(form: str, a: str, b: str, rng: random.Random) -> list[Array]:
    """Arrays of the shapes that a form takes, of all that their types hold."""
    m, n, k, p = (rng.choice([1, 2, 3, 5, 8, 11, 17, 33]) for _ in range(4))
    shapes = {
        "transposed": ((k, m), (n, k)),
        "batched": ((p, m, k), (p, k, n)),
        "convolution": ((k, m + 2, n + 2), (p, k, 3, 3)),
        "one operand": ((max(m, n), k), (k, n)),
    }.get(form, ((m, k), (k, n)))
    draw = np.random.default_rng(rng.randrange(1 << 30))
    return [_drawn(draw, type_, shape) for type_, shape in zip((a, b), shapes, strict=True)]


def _drawn(draw: np.random.Generator, type_: str, shape: tuple[int, ...]) -> Array:
    if type_ == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(type_)
    ends = np.array([limits.min, limits.max], type_)
    any_ = draw.integers(limits.min, limits.max + 1, shape).astype(type_)
    return np.where(draw.random(shape) < 0.3, ends[draw.integers(0, 2, shape)], any_)


def check_exact(seed: int, device: CpuProfile) -> bool:
    """Compares a random sum of products, with random options, with the reference. Returns whether
    it has dot products."""
    rng = random.Random(seed)
    form, (a, b) = rng.choice(list(FORMS)), rng.choices(TYPES, (5, 3, 2, 1, 1), k=2)
    arrays = inputs(form, a, b, rng)
    text = def_of(form, a, b)
    sized = sized_of(text, *arrays)
    options = random_options(rng, sized, device)
    (*found,), (*expected,) = poisoned(sized), reference(text, *arrays)
    compile_cpu(sized, options, device=device)(arrays, found)
    alike = all(same_bits(x, y) for x, y in zip(found, expected, strict=True))
    assert alike, f"{text} {options.to_json()}"
    *_, (_, program) = plan(sized, options, device).applied()
    return any(n.dot_product is not None for n in program.nests)


HOST = host_cpu()
MACHINES = {
    "host": HOST,
    "pairs of 128 bits": replace(HOST, features="+sse2", vector_bits=128),
    "AVX-VNNI": host_with("+avxvnni"),
    "AVX512-VNNI": host_with("+avx512vnni", 512),
    "AVX-VNNI-INT8": host_with("+avxvnni,+avxvnniint8"),
    "AVX10.2": host_with("+avx512vnni,+avx10.2", 512),
}
ON_MACHINES = pytest.mark.parametrize("machine", MACHINES)


@X86_64
@ON_MACHINES
@pytest.mark.parametrize("first", swept([0], range(1000, 1400, 15)))
def test_any_types_forms_and_options_give_exact_sums(machine: str, first: int) -> None:
    some = [check_exact(seed, MACHINES[machine]) for seed in range(first, first + 15)]
    assert first or sum(some) >= 3


# Guard pages, threads, and shapes at which loops end early.

ASKED = {
    "in place": MappingOptions().vectorize(8, 1).register(2, 2, 2),
    "copied": MappingOptions().tile(0, 16, 8).vectorize(8, 1).register(2, 2, 2).stage(0, 0),
}


@X86_64
@ON_MACHINES
@pytest.mark.parametrize("asked", ASKED)
def test_nothing_beside_an_operand_is_touched(asked: str, machine: str) -> None:
    text, device = def_of("product", "int8", "int8"), MACHINES[machine]
    for m, n, k in [(1, 1, 1), (2, 17, 3), (5, 9, 7), (4, 16, 8), (3, 31, 13)]:
        draw = np.random.default_rng(m)
        a, b = _drawn(draw, "int8", (m, k)), _drawn(draw, "int8", (k, n))
        sized = sized_of(text, a, b)
        depth = depths(lower(sized).nests[0], device)[0]
        kernel = compile_cpu(sized, ASKED[asked].dot(0, 0, depth), device=device)
        for after in (True, False):
            c = fenced((m, n), np.int32, after)
            kernel([fenced_copy(a, after), fenced_copy(b, after)], [c])
            assert (c == a.astype(np.int32) @ b.astype(np.int32)).all()


@X86_64
@ON_MACHINES
def test_threads_share_what_is_copied(machine: str) -> None:
    draw = np.random.default_rng(8)
    a, b = _drawn(draw, "int8", (75, 41)), _drawn(draw, "uint8", (41, 70))
    device = replace(MACHINES[machine], threads=8)
    options = MappingOptions("mlp").chunk(16, 32)
    (found,) = run(def_of("product", "int8", "uint8"), a, b, options=options, device=device)
    assert (found == a.astype(np.int32) @ b.astype(np.int32)).all()


@X86_64
def test_sums_wrap_around() -> None:
    a, b = np.full((3, 70_000), -32768, np.int16), np.full((70_000, 8), -32768, np.int16)
    options = MappingOptions().vectorize(8, 1).dot(0, 0, 2)
    (found,) = run(def_of("product", "int16", "int16"), a, b, options=options)
    assert (found == (70_000 << 30) % 2**32 - (2**32 if (70_000 << 30) % 2**32 >> 31 else 0)).all()


# bfloat16.

BFLOAT16 = {
    "bfloat16": "bfloat16(M, K) A, bfloat16(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
    "float32": "bfloat16(M, K) A, bfloat16(K, N) B) -> (C) {"
    "C(m, n) +=! float(A(m, k)) * float(B(k, n)) }",
}


@X86_64
@pytest.mark.parametrize("sums", BFLOAT16)
@pytest.mark.parametrize("preset", ["naive", "mlp"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 5), (13, 33, 29)])
def test_products_of_bfloat16(shape: tuple[int, int, int], preset: str, sums: str) -> None:
    m, n, k = shape
    draw = np.random.default_rng(m)
    a, b = (draw.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
    sized = sized_of(f"def f({BFLOAT16[sums]}", a, b)
    device = host_with("+avx512bf16", 512)
    options = MappingOptions(preset).vectorize(16, 1).dot(0, 0, 2)
    check_cpu(sized, [a, b], options, device)


@X86_64
@pytest.mark.parametrize("depth", [2, 4])
def test_factors_that_were_made_narrower_stay_so(depth: int) -> None:
    """An integer made of a bfloat16 number does not hold all that another type would."""
    text = "def f(bfloat16(M, K) A, int8(K, N) B) -> (C) {"
    text += "C(m, n) +=! int32(int8(A(m, k))) * B(k, n) }"
    draw = np.random.default_rng(depth)
    a = draw.integers(-400, 400, (5, 9)).astype(ml_dtypes.bfloat16)
    b = _drawn(draw, "int8", (9, 11))
    device = host_with("+avxvnni") if depth == 4 else HOST
    options = MappingOptions().vectorize(8, 1).dot(0, 0, depth)
    (found,), (expected,) = run(text, a, b, options=options, device=device), reference(text, a, b)
    assert same_bits(found, expected)


# What is added up to be taken off again, where an instruction takes no two signed factors.


def test_the_excess_is_summed_up_once_for_all_rows() -> None:
    """Outside of the loop over rows: it is the same for all of them."""
    options = MappingOptions().tile(0, 32).order(1, 2, 0).inner_order(1, 0, 2)
    options = options.vectorize(16, 1).register(4, 2, 2).stage(0, 1).dot(0, 0, 4)
    built = schedule(of_types("int8", "int8"), options, MACHINES["AVX512-VNNI"])
    lines = show(built).splitlines()
    (summed,) = (k for k, line in enumerate(lines) if "excess +=" in line)
    added = next(k for k, line in enumerate(lines) if "accumulator +=" in line)
    rows = [k for k, line in enumerate(lines) if ".m.point x" in line and k < added]
    assert summed < rows[-1] < added


@pytest.mark.parametrize("columns", [1, 2])
def test_a_loop_of_one_iteration_does_not_begin_the_excess_anew(columns: int) -> None:
    """Inside of the loop over rows, where it is the only one over columns."""
    program = of_types("int8", "int8")
    width = -(-program.shapes["B"][1] // (16 * columns))
    options = MappingOptions().vectorize(16, 1).register(4, width, 2).stage(-1, 0).dot(0, 0, 4)
    lines = show(schedule(program, options, MACHINES["AVX512-VNNI"])).splitlines()
    (summed,) = (k for k, line in enumerate(lines) if "excess +=" in line)
    (rows,) = (k for k, line in enumerate(lines) if ".m.point x" in line)
    assert (summed < rows) == (columns == 1)


@pytest.mark.parametrize(("lane", "staged"), [(0, "A"), (1, "B")])
def test_options_name_operands_by_their_place(lane: int, staged: str) -> None:
    """Also where the second factor is the one that is moved."""
    options = MappingOptions().vectorize(16, lane).dot(0, 0, 4)
    options = options.stage(0, -1) if staged == "A" else options.stage(-1, 0)
    built = schedule(of_types("int8", "int8"), options, MACHINES["AVX512-VNNI"])
    (filled,) = re.findall(r"panel\d\(.*\) = (\w+)\(", show(built))
    assert filled == staged


@pytest.mark.parametrize("type_", ["int8", "uint8"])
def test_the_factor_that_is_moved_is_read_as_words(type_: str) -> None:
    """128 more or less is another highest bit: nothing is put together byte by byte."""
    options = MappingOptions().vectorize(16, 1).register(2, 1).dot(0, 0, 4).stage(-1, 0)
    device = MACHINES["AVX512-VNNI"]
    text = emit_program(schedule(of_types(type_, type_), options, device), device).text
    assert re.search(rf"xor i32 %\w+, {0x80808080}", text)
    assert "shl i32 %" not in text


# What is chosen, and what is refused.

SIZES = ((96, 96), (96, 96))
INSTRUCTIONS = [
    ("x86-64", "int8", "int8", "pmaddwd"),
    ("haswell", "int8", "uint8", "vpmaddwd"),
    ("skylake-sp", "int16", "int16", "vpmaddwd"),
    ("cascade lake", "int8", "int8", "vpdpbusd"),
    ("cascade lake", "int8", "uint8", "vpdpbusd"),
    ("zen 4", "int16", "int8", "vpdpwssd"),
    ("zen 4", "bfloat16", "bfloat16", "vdpbf16ps"),
    ("graviton2", "int8", "int8", "sdot"),
    ("graviton2", "uint8", "uint8", "udot"),
    ("graviton3", "int8", "uint8", "usdot"),
    ("graviton3", "bfloat16", "bfloat16", "bfdot"),
]
DOTS = r"\b(v?pmaddwd|vpdp\w+|vdpbf16ps|[su]+dot|bfdot)\b"


def of_types(a: str, b: str) -> Any:
    convert = "" if a == "bfloat16" else "int32"
    product = f"{convert}(A(m, k)) * {convert}(B(k, n))"
    return sized(f"{a}(M, K) A, {b}(K, N) B) -> (C) {{ C(m, n) +=! {product} }}", *SIZES)


@pytest.mark.parametrize(("name", "a", "b", "instruction"), INSTRUCTIONS)
def test_the_best_instruction_is_all_that_multiplies(
    name: str, a: str, b: str, instruction: str
) -> None:
    device = device_named(name)
    assert isinstance(device, CpuProfile)
    built = schedule(of_types(a, b), MappingOptions("mlp"), device)
    text = assembly(emit_program(built, device).text, device)
    found = Counter(re.findall(DOTS, text))
    assert set(found) == {instruction} and found[instruction] > 8
    assert not re.search(r"\bv?(pmull|mulps|fmadd\w+|fmla|mla|smlal)\b", text)


@pytest.mark.parametrize("name", ["aarch64", "haswell"])
def test_where_there_is_no_instruction_none_is_chosen(name: str) -> None:
    device = device_named(name)
    assert isinstance(device, CpuProfile)
    product = of_types("bfloat16", "bfloat16")
    (chosen,) = plan(product, MappingOptions("mlp"), device).options.values()
    assert chosen.dot == ()
    asked = MappingOptions().nest(0).vectorize(4, 1).nest(0).dot(0, 0, 2)
    with pytest.raises(OptionsError) as refused:
        schedule(product, asked, device)
    assert str(refused.value) == (
        f"dot: nest s0: {device.name} has no instruction that sums products of bfloat16 and "
        "bfloat16 in float32"
    )


def test_products_in_float16_are_no_products_of_bfloat16() -> None:
    """Which is larger than all that float16 holds, or smaller, has to be rounded first."""
    device = device_named("zen 4")
    assert isinstance(device, CpuProfile)
    product = sized(
        "bfloat16(M, K) A, bfloat16(K, N) B) -> (C) { C(m, n) +=! half(A(m, k)) * half(B(k, n)) }",
        *SIZES,
    )
    (chosen,) = plan(product, MappingOptions("mlp"), device).options.values()
    assert chosen.dot == ()


HASWELL = device_named("haswell")
REFUSED = [
    ("int32", (0, 0, 2), 4, "has no instruction that sums products of int32 and int32 in int32"),
    ("int8", (0, 0, 4), 4, "haswell adds 2 such products at once, not 4"),
    ("int8", (0, 2), 4, "s0.n is not a reduction: its points are not summed"),
    ("int8", (0, 2, 2), 4, "an instruction adds points of one dimension, not of s0.n and s0.k"),
    ("int8", (0, 0, 2), 1, "its sums have no lanes: vectorize a dimension of its results"),
    ("int8", (0, 0, 2, 2), 4, "it has 3 dimensions, but 4 sizes were given"),
]


@pytest.mark.parametrize(("type_", "dot", "lanes", "reason"), REFUSED)
def test_what_cannot_be_is_refused(
    type_: str, dot: tuple[int, ...], lanes: int, reason: str
) -> None:
    options = MappingOptions().with_nest(0, NestOptions(vectorize=(1, lanes), dot=dot))
    assert isinstance(HASWELL, CpuProfile)
    with pytest.raises(OptionsError) as refused:
        schedule(of_types(type_, type_), options, HASWELL)
    assert str(refused.value).startswith("dot: nest s0: ") and reason in str(refused.value)
