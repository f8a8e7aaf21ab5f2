"""Instructions as functions: what the manual says of them, on every machine."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from emulated_cpu import host_with
from emulated_cpu.instructions import emulating

from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.load import LoadedCode
from tcl.common.errors import CompileError

Array = np.ndarray[Any, np.dtype[Any]]
ALL = "+amx-tile,+amx-int8,+amx-bf16,+avx512vnni,+avx512bf16,+avxvnniint8"
EMULATING = host_with(ALL)
PRODUCTS = ("tdpbf16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud")

TILES = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.PRODUCT(i8 immarg, i8 immarg, i8 immarg)
define void @product(ptr %configuration, ptr %a, ptr %b, ptr %c) {
entry:
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  call void @llvm.x86.tileloadd64(i8 0, ptr %c, i64 64)
  call void @llvm.x86.tileloadd64(i8 4, ptr %a, i64 80)
  call void @llvm.x86.tileloadd64(i8 7, ptr %b, i64 64)
  call void @llvm.x86.PRODUCT(i8 0, i8 4, i8 7)
  call void @llvm.x86.tilestored64(i8 0, ptr %c, i64 64)
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilerelease()
  ret void
}
"""


def function(text: str, name: str, count: int) -> tuple[LoadedCode, Any]:
    loaded = LoadedCode(compile_object(text, EMULATING), (name,))
    type_ = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)
    return loaded, type_(loaded.address(name))


def bfloat16_bits(values: Array) -> Array:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def as_floats(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("shape", [(16, 16, 16), (5, 16, 9), (16, 3, 1), (1, 1, 16)])
@pytest.mark.parametrize("product", PRODUCTS)
def test_products_of_tiles(product: str, shape: tuple[int, int, int]) -> None:
    """Rows, columns and depth (in words) by the configuration; all else keeps its value."""
    rows, columns, depth = shape
    rng = np.random.default_rng(1)
    configuration = np.zeros(64, np.uint8)
    configuration[0] = 1
    for tile, height, words in ((0, rows, columns), (4, rows, depth), (7, depth, columns)):
        configuration[48 + tile], configuration[16 + 2 * tile] = height, 4 * words
    if product == "tdpbf16ps":
        a, b = (bfloat16_bits(rng.normal(size=n)) for n in ((16, 40), (16, 16, 2)))
        c = rng.normal(size=(16, 16)).astype(np.float32)
        left, right = as_floats(a), as_floats(b)
    else:
        a, b = (
            rng.integers(0, 256, n).astype(np.uint8).view(np.int8 if kind == "s" else np.uint8)
            for n, kind in (((16, 80), product[4]), ((16, 16, 4), product[5]))
        )
        c = rng.integers(-99, 99, (16, 16)).astype(np.int32)
        left, right = a.astype(np.int64), b.astype(np.int64)
    part = right.shape[2]
    left = left[:rows, : depth * part].reshape(rows, depth, part)
    expected = c.astype(np.float64)
    expected[:rows, :columns] += np.einsum("mkp,knp->mn", left, right[:depth, :columns])
    keep, call = function(TILES.replace("PRODUCT", product), "product", 4)
    call(configuration.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data)
    assert keep
    exact = product != "tdpbf16ps"
    np.testing.assert_allclose(c, expected, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-4)


def test_subnormal_numbers_are_zeros_to_a_product_of_tiles() -> None:
    a, b = np.full((16, 40), 1, np.uint16), bfloat16_bits(np.ones((16, 16, 2)))
    c = np.zeros((16, 16), np.float32)
    configuration = np.zeros(64, np.uint8)
    configuration[0], configuration[16:32:2], configuration[48:56] = 1, 64, 16
    keep, call = function(TILES.replace("PRODUCT", "tdpbf16ps"), "product", 4)
    call(configuration.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data)
    assert keep
    assert not c.any()


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", ["vpdpbusd", "vpdpbssd", "vpdpbuud", "vpdpwssd"])
def test_dot_products_of_integers(name: str, lanes: int) -> None:
    bits, parts = (8, 4) if name[4] == "b" else (16, 2)
    group = "avx512" if name in ("vpdpbusd", "vpdpwssd") else "avx2"
    intrinsic = f"llvm.x86.{group}.{name}.{32 * lanes}"
    sums, type_ = f"<{lanes} x i32>", f"<{lanes * parts} x i{bits}>"
    rng = np.random.default_rng(2)
    c = rng.integers(-99, 99, lanes).astype(np.int32)
    a, b = (
        rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), (lanes, parts))
        .astype(f"i{bits // 8}")
        .view(f"{'i' if kind == 's' else 'u'}{bits // 8}")
        for kind in name[5:7]
    )
    expected = c + (a.astype(np.int64) * b).sum(1)
    keep, call = function(dot_product(intrinsic, sums, type_), "dot", 3)
    call(c.ctypes.data, a.ctypes.data, b.ctypes.data)
    assert keep
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_dot_products_of_bfloat16(lanes: int) -> None:
    rng = np.random.default_rng(3)
    c = rng.normal(size=lanes).astype(np.float32)
    a, b = (bfloat16_bits(rng.normal(size=(lanes, 2))) for _ in range(2))
    expected = c + (as_floats(a) * as_floats(b)).sum(1)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    text = dot_product(name, f"<{lanes} x float>", f"<{2 * lanes} x bfloat>")
    keep, call = function(text, "dot", 3)
    call(c.ctypes.data, a.ctypes.data, b.ctypes.data)
    assert keep
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


def dot_product(name: str, sums: str, type_: str) -> str:
    return f"""
declare {sums} @{name}({sums}, {type_}, {type_})
define void @dot(ptr %c, ptr %a, ptr %b) {{
entry:
  %x = load {type_}, ptr %a, align 1
  %y = load {type_}, ptr %b, align 1
  %old = load {sums}, ptr %c, align 1
  %new = call {sums} @{name}({sums} %old, {type_} %x, {type_} %y)
  store {sums} %new, ptr %c, align 1
  ret void
}}
"""


def test_what_cannot_be_emulated_is_refused() -> None:
    with pytest.raises(CompileError, match="avx512fp16 cannot be emulated: amx-tile, "):
        emulating("", "+amx-tile,+avx512fp16")


def test_other_instructions_stay_instructions() -> None:
    text = "declare void @llvm.x86.sse.sfence()\n"
    assert emulating(text, ALL) == text
