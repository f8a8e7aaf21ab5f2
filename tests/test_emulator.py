"""CUDA kernels on the CPU: correct ones run clean in all orders, faults are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import emulator_kernels as k
import numpy as np
import pytest

from tcl.codegen.cuda.emulator import ORDERS, EmulationError, compile_modules, why_not
from tcl.codegen.cuda.module import Module

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

Arrays = dict[str, Any]
RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape, dtype=np.float32)


def outputs(module: Module, **inputs: Any) -> Arrays:
    """The inputs, and poisoned outputs."""
    arrays = dict(inputs)
    for tensor in module.tensors:
        if tensor.role is k.OUTPUT and tensor.name not in arrays:
            dtype = np.dtype(tensor.layout.type.name)
            count = int(np.prod(tensor.layout.extents)) * dtype.itemsize
            poison = np.full(count, 0xFF, np.uint8).view(dtype)
            arrays[tensor.name] = poison.reshape(tensor.layout.extents)
    return arrays


def matmul_case() -> tuple[Module, Arrays, Arrays]:
    a, b = floats(k.M, k.K), floats(k.K, k.N)
    module = k.matmul()
    return module, outputs(module, A=a, B=b), {"C": a @ b}


def reduction_case() -> tuple[Module, Arrays, Arrays]:
    x = floats(k.ROWS, k.COLUMNS)
    module = k.reduction()
    arrays = outputs(module, X=x, total=np.zeros(1, np.float32))
    return module, arrays, {"Y": x.sum(1), "total": x.sum(keepdims=True)[0]}


def pipeline_case() -> tuple[Module, Arrays, Arrays]:
    x = floats(k.STEPS, 256)
    kept = np.delete(x, 5, axis=0).sum(0)
    module = k.pipeline()
    summed = sum(np.roll(kept, -1)[i * 64 : i * 64 + 64] for i in range(4))
    return module, outputs(module, X=x), {"Y": summed}


def half_case() -> tuple[Module, Arrays, Arrays]:
    a, b = floats(16, 16).astype(np.float16), floats(16, 8).astype(np.float16)
    module = k.mma_half()
    first = np.tile([0.0, 1.0], (16, 4)) + np.repeat([0.0, 2.0], 8)[:, None]
    return module, outputs(module, A=a, B=b), {"C": a.astype(float) @ b.astype(float) + first}


def tf32_case() -> tuple[Module, Arrays, Arrays]:
    a, b = floats(16, 8), floats(8, 8)
    module = k.mma_tf32()

    def cut(x: Any) -> Any:
        return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)

    return module, outputs(module, A=a, B=b), {"C": cut(a) @ cut(b)}


CASES: dict[str, Callable[[], tuple[Module, Arrays, Arrays]]] = {
    "matmul": matmul_case,
    "reduction": reduction_case,
    "pipeline": pipeline_case,
    "half": half_case,
    "tf32": tf32_case,
}


@pytest.mark.parametrize("checked", [True, False])
def test_correct_kernels_run_clean_in_every_order(checked: bool) -> None:
    cases = {name: make() for name, make in CASES.items()}
    compiled = compile_modules([module for module, _, _ in cases.values()], checked=checked)
    for (_, arrays, expected), emulated in zip(cases.values(), compiled, strict=True):
        for order in ORDERS:
            given = {name: array.copy() for name, array in arrays.items()}
            emulated.run(given, order)
            for name, value in expected.items():
                np.testing.assert_allclose(given[name], value, rtol=1e-5, atol=1e-5)


def caught(module: Module, **inputs: Any) -> str:
    """What the emulator says about a faulty module, in whatever order it runs."""
    (emulated,) = compile_modules([module])
    said = ""
    for order in ORDERS:
        with pytest.raises(EmulationError) as error:
            emulated.run(outputs(module, **inputs), order)
        said = str(error.value)
    return said


def changed(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


BARRIER = "    __syncthreads();\n  }"
MATMUL_FAULTS = {
    "a barrier removed": (BARRIER, "  }", r"race: .* shared memory"),
    "the first barrier removed": ("__syncthreads();\n  for", "for", r"race: .* shared memory"),
    "a single buffer": ("next = 256 - now", "next = now", "race: "),
    "a row's guard removed": ("row < rows && ", "", "out of bounds: .* of A"),
    "the result's guard removed": (f"row < {k.M} && ", "", "out of bounds: .* of C"),
    "an index off by one": ("16 + i], B", "16 + i + 1], B", "race|out of bounds"),
    "past the end of shared memory": ("shared + 2048", "shared + 2304", "out of bounds.*shared"),
    "a divergent barrier": (
        BARRIER,
        "    if (row < 20) __syncthreads();\n  }",
        "divergent barrier",
    ),
    "barriers at two places": (
        BARRIER,
        "    if (row < 20) __syncthreads();\n    else __syncthreads( );\n  }",
        "divergent barrier",
    ),
    "an input written": (
        "float sum = 0.0f;",
        "float sum = 0; ((float*)A)[0] = 1;",
        "input written",
    ),
}


@pytest.mark.parametrize("fault", MATMUL_FAULTS)
def test_faults_of_a_tiled_product_are_caught(fault: str) -> None:
    old, new, message = MATMUL_FAULTS[fault]
    module = k.matmul(changed(k.MATMUL, old, new))
    said = caught(module, A=floats(k.M, k.K), B=floats(k.K, k.N))
    assert re.search(message, said), said
    assert "line " in said
