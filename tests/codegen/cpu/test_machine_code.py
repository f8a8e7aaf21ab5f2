"""What becomes of loops and of ragged ends in a machine's own instructions."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from nests import NARROW, WIDE, sized

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.grammar.ranges.sized import SizedDef

AVX2 = replace(NARROW, name="x86-64-v3", features="+avx2,+fma")
AVX512 = replace(WIDE, name="x86-64-v4", features="+avx2,+fma,+avx512f,+avx512vl")
GROUPED = (
    "float(G, C, H, W) I, float(G, F, C, 3, 3) W1) -> (O) "
    "{ O(g, f, h, w) +=! I(g, c, h + kh, w + kw) * W1(g, f, c, kh, kw) }"
)


def assembled(each: SizedDef, options: MappingOptions, device: CpuProfile) -> str:
    return assembly(emit_program(schedule(each, options, device), device).text, device)


def test_a_short_loop_of_a_reduction_stays_one() -> None:
    """Three turns written out would share what they read, for which there are no registers."""
    each = sized(GROUPED, (2, 8, 28, 28), (2, 8, 8, 3, 3))
    options = MappingOptions().vectorize(8, 1).register(0, 1, 2, 7).stage(-1, 0)
    code = assembled(each, options, AVX2).splitlines()
    products = [k for k, line in enumerate(code) if "vfmadd" in line]
    assert len(products) == 14 + 10, "whole register tiles, and those at the end of a row"
    spilled = [line for line in code[products[0] : products[13]] if "(%rsp)" in line]
    assert not spilled


def test_vectors_of_a_row_that_data_decides_share_its_subscript() -> None:
    each = sized("float(E, D) T, int32(L) I) -> (O) { O(d) +=! T(I(l), d) }", (100, 64), (50,))
    code = assembled(each, MappingOptions().vectorize(8, 0).register(4), AVX2)
    assert len(re.findall(r"vaddps.*\(", code)) == 4
    assert code.count("movslq") == 1


@pytest.mark.parametrize("device", [AVX2, AVX512], ids=lambda d: d.name)
def test_a_part_of_a_vector_is_written(device: CpuProfile) -> None:
    """By a masked store, where that is one plain instruction; in two pieces elsewhere."""
    for options in (MappingOptions().vectorize(8), MappingOptions().vectorize(8, 0).register(1, 6)):
        each = sized("float(M, N) A) -> (O) { O(m, n) = A(m, n) }", (16, 6))
        text = emit_program(schedule(each, options, device), device).text
        masked = "llvm.masked.store" in text
        assert masked == (device is AVX512)
        assert bool(re.search("store <4 x float>", text)) == (not masked)
        assert bool(re.search("store <2 x float>", text)) == (not masked)


@pytest.mark.parametrize("device", [AVX2, AVX512], ids=lambda d: d.name)
def test_floats_become_integers_and_integers_are_divided_as_vectors(device: CpuProfile) -> None:
    """LLVM takes both apart into lanes where it is left to choose."""
    for text in (
        "float(N) A) -> (int32(N) O) { O(n) = int32(A(n)) }",
        "float(N) A) -> (uint8(N) O) { O(n) = uint8(A(n)) }",
        "double(N) A) -> (int16(N) O) { O(n) = int16(A(n)) }",
        "float(N) A) -> (O) { O(n) = sinpi(A(n)) }",
    ):
        code = assembled(sized(text, (64,)), MappingOptions().vectorize(8), device)
        assert not re.search(r"vcvttss2si|vcvttsd2si", code), text
    for type_, op in itertools.product(("int64", "uint64"), "/%"):
        text = f"{type_}(N) A, {type_}(N) B) -> (O) {{ O(n) = A(n) {op} B(n) }}"
        each = sized(text, (64,), (64,))
        text = emit_program(schedule(each, MappingOptions().vectorize(8), device), device).text
        assert "fdiv <8 x double>" in text, "and the machine's own, of long numbers, besides"
    for type_, op in itertools.product(("int8", "int16", "int32", "uint8", "uint32"), "/%"):
        text = f"{type_}(N) A, {type_}(N) B) -> (O) {{ O(n) = A(n) {op} B(n) }}"
        code = assembled(sized(text, (64,), (64,)), MappingOptions().vectorize(8), device)
        assert not re.search(r"\bi?div[bwl]\b", code), text
    for type_, op in itertools.product(("int16", "int32", "uint32"), "/%"):
        text = f"{type_}(M, N) A, {type_}(M) B) -> (O) {{ O(m, n) = A(m, n) {op} B(m) }}"
        code = assembled(sized(text, (9, 64), (9,)), MappingOptions().vectorize(8, 1), device)
        assert not re.search(r"\bi?div[bwl]\b|vdivp[sd]\b", code), text


@pytest.mark.parametrize("device", [AVX2, AVX512], ids=lambda d: d.name)
def test_remainders_of_floats_are_vectors_but_for_rare_ones(device: CpuProfile) -> None:
    each = sized("float(N) A, float(N) B) -> (O) { O(n) = A(n) % B(n) }", (64,), (64,))
    options = MappingOptions().vectorize(8)
    lines = emit_program(schedule(each, options, device), device).text.splitlines()
    (call,) = (k for k, line in enumerate(lines) if "frem <8 x float>" in line)
    assert lines[call - 1].startswith("rare")


@pytest.mark.parametrize(
    "call", ["erfinv", "normcdfinv", "erfcx", "sinpi", "cyl_bessel_i1", "tan", "y1"]
)
def test_expansions_of_built_ins_call_nothing_lane_by_lane(call: str) -> None:
    each = sized(f"double(N) A) -> (O) {{ O(n) = {call}(A(n)) }}", (64,))
    text = emit_program(schedule(each, MappingOptions().vectorize(8), AVX512), AVX512).text
    library = set(re.findall(r"declare double @(\w+)\(double\)", text))
    assert library <= {"sin", "cos", "tan"}, "but for large arguments"


@pytest.mark.parametrize("name", ["Cascade Lake", "Haswell"])
def test_a_half_alone_waits_for_nothing(name: str) -> None:
    """``vpinsrw`` would wait for the sum before, which was in its register."""
    device = find(name)
    assert device is not None
    each = sized(
        "half(N) X, int32(N) I, float(G) Z) -> (float(G) S) { S(I(n)) +=! float(X(n)) }",
        (1000,),
        (1000,),
        (50,),
    )
    code = assembled(each, MappingOptions(), replace(device, threads=1))
    assert "vcvtph2ps" in code
    assert "vpinsrw" not in code


def test_a_condition_of_all_lanes_is_a_vector_where_masks_are() -> None:
    """On AVX2: from a bit, LLVM makes a vector of it by way of a register of integers."""
    text = "float(M, N) X, float(M) T) -> (O) { O(m) min=! X(m, n) == T(m) && T(m) > 0 ? n : N }"
    options = MappingOptions().vectorize(8, 1)
    for device in (AVX2, AVX512):
        code = assembled(sized(text, (64, 40), (64,)), options, device)
        assert ("vucomiss" in code) == (device is AVX512)
