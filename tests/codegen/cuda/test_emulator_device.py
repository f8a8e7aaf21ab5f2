"""What CUDA C++ offers, in the emulator: warps, atomics, matrices, sizes."""

from __future__ import annotations

from typing import Any

import emulator_kernels as k
import numpy as np
import pytest

from tcl.codegen.cuda.emulator import ORDERS, EmulationError, compile_modules, why_not
from tcl.codegen.loopir import ir

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

LANES = np.arange(32)
RNG = np.random.default_rng(7)


def run_all(
    bodies: dict[str, str], tensors: tuple[ir.Tensor, ...], *, shared: int = 0, **arrays: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """What each body, run by 32 threads, leaves in ``Y``, the same in every order."""
    parameters = ", ".join(f"{C_TYPES[t.layout.type.name]}* {t.name}" for t in tensors)
    modules = [
        k.module(
            f'extern "C" __global__ void kernel({parameters}) {{ {k.SHARED if shared else ""}\n'
            f"const int t = threadIdx.x; (void)t;\n{body}\n}}",
            tensors,
            shared=shared,
        )
        for body in bodies.values()
    ]
    results: dict[str, np.ndarray[Any, Any]] = {}
    for name, emulated in zip(bodies, compile_modules(modules), strict=True):
        for order in ORDERS:
            given = {n: a.copy() for n, a in arrays.items()}
            emulated.run(given, order)
            assert order == "forward" or (given["Y"] == results[name]).all(), (name, order)
            results[name] = given["Y"]
    return results


C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "uint16": "unsigned short",
    "float16": "unsigned short",
}


def test_exchanges_within_a_warp() -> None:
    bodies = {
        "xor": "Y[t] = __shfl_xor_sync(0xffffffffu, t, 5);",
        "wide": "Y[t] = __shfl_xor_sync(0xffffffffu, t * 0x100000001ll, 1) >> 32;",
        "double": "Y[t] = __shfl_xor_sync(0xffffffffu, t + 0.5, 2) * 2;",
        "halves": "if (t < 16) { for (int i = 0; i < 3; ++i) Y[t] = __shfl_xor_sync(0xffffu, t, 1);"
        "} else Y[t] = __shfl_xor_sync(0xffff0000u, t, 2);",
    }
    got = run_all(bodies, (k.tensor("Y", k.OUTPUT, (32,), "int32"),), Y=np.zeros(32, np.int32))
    expected = {
        "xor": LANES ^ 5,
        "wide": LANES ^ 1,
        "double": 2 * (LANES ^ 2) + 1,
        "halves": np.where(LANES < 16, LANES ^ 1, LANES ^ 2),
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("type_", ["int32", "uint32", "uint64", "float32", "float64"])
def test_atomic_operations(type_: str) -> None:
    bodies = {
        "add": "atomicAdd(Y, t);",
        "compare": "atomicCAS(Y, 40, 7 + 0 * t); ",
    }
    start = np.full(1, 40, type_)
    got = run_all(bodies, (k.tensor("Y", k.OUTPUT, (1,), type_),), Y=start)
    wanted = {"add": 40 + 496, "compare": 7}
    assert {name: value[0] for name, value in got.items()} == wanted


def test_sixteen_bit_floats_round_to_even() -> None:
    patterns = np.arange(65536, dtype=np.uint16)
    values = patterns.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        near = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, np.inf)])
        between = (values[:-1].astype(float) + values[1:]) / 2
        near = np.concatenate([near, between.astype(np.float32)])
    near = near[np.isfinite(near)]
    near = near[: len(near) // 32 * 32]
    source = """
extern "C" __global__ void kernel(const float* X, unsigned short* Y, unsigned short* Z) {
  const int i = 32 * blockIdx.x + threadIdx.x;
  Y[i] = float_to_half(X[i]);
  Z[i] = float_to_bfloat(X[i]);
}
"""
    tensors = (
        k.tensor("X", k.INPUT, near.shape),
        k.tensor("Y", k.OUTPUT, near.shape, "float16"),
        k.tensor("Z", k.OUTPUT, near.shape, "uint16"),
    )
    module = k.module(source, tensors, blocks=len(near) // 32)
    y, z = np.zeros(near.shape, np.float16), np.zeros(near.shape, np.uint16)
    compile_modules([module], checked=False)[0].run({"X": near, "Y": y, "Z": z})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, near.astype(np.float16))
    bits = near.view(np.uint32).astype(np.uint64)
    np.testing.assert_array_equal(z, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def test_matrices_from_shared_memory() -> None:
    """Each lane's elements, as the PTX ISA draws them."""
    fill = """
unsigned short* rows = reinterpret_cast<unsigned short*>(shared);
for (int i = t; i < 256; i += 32) rows[i] = i;
__syncthreads();
"""
    store = """
for (int m = 0; m < {n}; ++m) {{
  Y[8 * t + 2 * m] = d[m];
  Y[8 * t + 2 * m + 1] = d[m] >> 16;
}}"""
    bodies = {
        (count, end): f"{fill}unsigned d[{count}];\n"
        f"load_matrix_x{count}{end}(d, rows + 8 * (t % {8 * count}));\n" + store.format(n=count)
        for count in (2, 4)
        for end in ("", "_trans")
    }
    tensors = (k.tensor("Y", k.OUTPUT, (32, 8), "uint16"),)
    named = {f"{count}{end}": body for (count, end), body in bodies.items()}
    got = run_all(named, tensors, shared=512, Y=np.zeros((32, 8), np.uint16))
    for count, end in bodies:
        expected = np.zeros((32, 8), int)
        for lane in range(32):
            for m in range(count):
                for i in range(2):
                    row, column = lane // 4, 2 * (lane % 4) + i
                    if end:
                        row, column = column, row
                    expected[lane, 2 * m + i] = 64 * m + 8 * row + column
        np.testing.assert_array_equal(got[f"{count}{end}"], expected, err_msg=f"{count}{end}")


def test_the_largest_blocks() -> None:
    """1024 threads with 256 registers' worth of array each, and 227 KiB of shared memory."""
    source = """
extern "C" __global__ void __launch_bounds__(1024) kernel(const float* X, float* Y) {
  extern __shared__ __align__(128) unsigned char shared[];
  float* kept = reinterpret_cast<float*>(shared);
  float sums[256];
  for (int i = 0; i < 256; ++i) sums[i] = X[(threadIdx.x + i) % 1024];
  for (int i = threadIdx.x; i < 58112; i += 1024) kept[i] = sums[i % 256];
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < 56; ++i) sum += kept[i * 1024 + (threadIdx.x + 1) % 1024] + sums[i];
  Y[1024 * blockIdx.x + threadIdx.x] = sum;
}
"""
    tensors = (k.tensor("X", k.INPUT, (1024,)), k.tensor("Y", k.OUTPUT, (2, 1024)))
    module = k.module(source, tensors, blocks=2, threads=1024, shared=227 << 10)
    x = RNG.integers(0, 10, 1024).astype(np.float32)
    arrays = {"X": x, "Y": np.zeros((2, 1024), np.float32)}
    compile_modules([module])[0].run(arrays, "random")
    at = np.arange(1024)
    other = (at + 1) % 1024
    expected = sum(
        x[(other + (other + 1024 * i) % 256) % 1024] + x[(at + i) % 1024] for i in range(56)
    )
    np.testing.assert_array_equal(arrays["Y"], np.tile(expected, (2, 1)))


@pytest.mark.parametrize(
    "body",
    [
        "Y[t] = 0x7fffffff - 20 + t;",
        "Y[t] = t * 0x8000000;",
        "Y[t] = t << (t + 1);",
        "Y[t] = 7 / t;",
        "Y[t] = int(t * 1e9f);",
    ],
)
def test_arithmetic_without_a_defined_result_is_reported(body: str) -> None:
    source = f'extern "C" __global__ void kernel(int* Y) {{ const int t = threadIdx.x; {body} }}'
    (emulated,) = compile_modules([k.module(source, [k.tensor("Y", k.OUTPUT, (32,), "int32")])])
    with pytest.raises(EmulationError, match="undefined arithmetic"):
        emulated.run({"Y": np.zeros(32, np.int32)})
