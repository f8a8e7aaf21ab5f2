"""Compiled kernels as objects: what they show, check, share and free."""

from __future__ import annotations

import gc
import mmap
import sys
from dataclasses import replace

import numpy as np
import pytest
from at_once import at_once
from compiled_kernels import CpuKernel, compile_cpu
from cpu_kernels import LANES, MATMUL, NAIVE, run, sized_of

from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.load import LoadedCode
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import CompileError
from tcl.grammar.syntax.types import FLOAT16, FLOAT32, FLOAT64


def test_names_do_not_reach_the_code() -> None:
    text = "def kernel(float(M) tcl_fail) -> (define) { define(ret) = tcl_fail(ret) + 1 }"
    a = np.ones(5, np.float32)
    np.testing.assert_array_equal(run(text, a)[0], a + 1)
    long = "x" * 10_000
    text = f"def {long}(float(M) {long}2) -> ({long}3) {{ {long}3({long}i) = {long}2({long}i) }}"
    sized = sized_of(text, a)
    assert "xxxx" not in compile_cpu(sized, NAIVE).llvm


def test_the_kernel_shows_its_code() -> None:
    kernel = compile_cpu(sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 16))), LANES)
    assert "define i32 @tcl_kernel" in kernel.llvm and "<8 x float>" in kernel.llvm
    assert "tcl_kernel" in kernel.asm
    assert kernel.object_code[:4] == b"\x7fELF" or sys.platform != "linux"


def test_threads_may_share_a_kernel() -> None:
    rng = np.random.default_rng(5)
    b = rng.integers(-9, 9, (64, 64)).astype(np.float32)
    kernel = compile_cpu(sized_of(MATMUL, b, b), MappingOptions("mlp"))
    wrong: list[int] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).integers(-9, 9, (64, 64)).astype(np.float32)
        out = np.empty_like(a)
        for _ in range(50):
            kernel([a, b], [out])
            if not np.array_equal(out, a @ b):
                wrong.append(seed)

    at_once(work, range(4))
    assert not wrong


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_loading_many_kernels_keeps_nothing() -> None:
    code = compile_cpu(sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 6))), LANES).object_code

    def load(times: int) -> None:
        for _ in range(times):
            LoadedCode(code)
        gc.collect()

    load(200)
    before = _resident()
    load(2000)
    assert _resident() - before < 8 << 20


def test_llvm_text_that_is_wrong_is_an_error_of_ours() -> None:
    with pytest.raises(CompileError, match="LLVM rejected the"):
        compile_object("define nonsense", host_cpu())


@pytest.mark.usefixtures("compiled_anew")
def test_compiling_is_a_pure_function() -> None:
    sized = sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 6)))
    kernels: list[CpuKernel] = [compile_cpu(sized, LANES) for _ in range(2)]
    assert kernels[0].llvm == kernels[1].llvm
    assert kernels[0].object_code == kernels[1].object_code


def test_this_machine_as_data() -> None:
    device = host_cpu()
    assert device is host_cpu() and hash(device) == hash(host_cpu())
    assert device.vector_bits in (128, 256, 512) and device.cores >= 1
    assert 0 < device.l1_bytes <= device.l2_bytes
    assert device.lanes(FLOAT32) == device.vector_bits // 32 == device.lanes(FLOAT16)
    assert device.lanes(FLOAT64) * 2 == device.lanes(FLOAT32)


def test_other_features_are_honoured() -> None:
    """Code for a machine with nothing but SSE2 uses no wider registers."""
    if not host_cpu().triple.startswith("x86_64"):
        pytest.skip("x86 only")
    plain = replace(host_cpu(), name="x86-64", features="", vector_bits=128)
    kernel = compile_cpu(sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 16))), LANES, device=plain)
    assert "xmm" in kernel.asm and "ymm" not in kernel.asm and "zmm" not in kernel.asm
    out = np.empty((4, 16), np.float32)
    kernel([np.ones((4, 5), np.float32), np.ones((5, 16), np.float32)], [out])
    assert (out == 5).all()
