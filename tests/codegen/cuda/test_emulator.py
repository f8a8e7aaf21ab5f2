"""CUDA kernels on the CPU: correct ones run clean in all orders, faults are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import emulator_kernels as k
import numpy as np
import pytest

from tcl.codegen.common.sites import Site
from tcl.codegen.cuda.cpp.arith import OWN
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.emulator import (
    ORDERS,
    Emulated,
    EmulationError,
    compile_modules,
    compiler,
    why_not,
)
from tcl.common.errors import CompileError
from tcl.grammar.check.builtins import BUILTINS

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

Arrays = dict[str, Any]
RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape, dtype=np.float32)


def outputs(module: CudaModule, **inputs: Any) -> Arrays:
    """The inputs, and poisoned outputs."""
    arrays = dict(inputs)
    for tensor in module.tensors:
        if tensor.role is k.OUTPUT and tensor.name not in arrays:
            dtype = np.dtype(tensor.layout.type.name)
            count = int(np.prod(tensor.layout.extents)) * dtype.itemsize
            poison = np.full(count, 0xFF, np.uint8).view(dtype)
            arrays[tensor.name] = poison.reshape(tensor.layout.extents)
    return arrays


def matmul_case() -> tuple[CudaModule, Arrays, Arrays]:
    a, b = floats(k.M, k.K), floats(k.K, k.N)
    module = k.matmul()
    return module, outputs(module, A=a, B=b), {"C": a @ b}


def reduction_case() -> tuple[CudaModule, Arrays, Arrays]:
    x = floats(k.ROWS, k.COLUMNS)
    module = k.reduction()
    arrays = outputs(module, X=x, total=np.zeros(1, np.float32))
    return module, arrays, {"Y": x.sum(1), "total": x.sum(keepdims=True)[0]}


def pipeline_case() -> tuple[CudaModule, Arrays, Arrays]:
    x = floats(k.STEPS, 256)
    kept = np.delete(x, 5, axis=0).sum(0)
    module = k.pipeline()
    summed = sum(np.roll(kept, -1)[i * 64 : i * 64 + 64] for i in range(4))
    return module, outputs(module, X=x), {"Y": summed}


def half_case() -> tuple[CudaModule, Arrays, Arrays]:
    a, b = floats(16, 16).astype(np.float16), floats(16, 8).astype(np.float16)
    module = k.mma_half()
    first = np.tile([0.0, 1.0], (16, 4)) + np.repeat([0.0, 2.0], 8)[:, None]
    return module, outputs(module, A=a, B=b), {"C": a.astype(float) @ b.astype(float) + first}


def tf32_case() -> tuple[CudaModule, Arrays, Arrays]:
    a, b = floats(16, 8), floats(8, 8)
    module = k.mma_tf32()

    def cut(x: Any) -> Any:
        return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)

    return module, outputs(module, A=a, B=b), {"C": cut(a) @ cut(b)}


CASES: dict[str, Callable[[], tuple[CudaModule, Arrays, Arrays]]] = {
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


def caught(emulated: Emulated, **inputs: Any) -> str:
    """What the emulator says about a faulty module, in whatever order it runs."""
    said = ""
    for order in ORDERS:
        with pytest.raises(EmulationError) as error:
            emulated.run(outputs(emulated.module, **inputs), order)
        said = str(error.value)
    return said


def changed(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


BARRIER = "    __syncthreads();\n  }"
XOR = "sum += __shfl_xor_sync(0xffffffffu, sum, d)"
COPY = "copy_async<16>(stages + s * 256 + 4 * t, X + s * 256 + 4 * t"
FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "matmul": [
        ("shared + 2048", "shared + 2304", "out of bounds.*shared"),
        (BARRIER, "    if (row < 20) __syncthreads();\n  }", "divergent barrier"),
        (
            BARRIER,
            "    if (row < 20) __syncthreads();\n    else __syncthreads( );\n  }",
            "divergent barrier",
        ),
        ("float sum = 0.0f;", "float sum = 0; ((float*)A)[0] = 1;", "input written"),
    ],
    "reduction": [
        ("atomicAdd(total, sum)", "total[0] += sum", "race: .* of block"),
        (
            "atomicAdd(total, sum)",
            "if (blockIdx.x < 2) atomicAdd(total, sum); else total[0] += sum",
            "one of both atomically",
        ),
        (XOR, f"if (threadIdx.x != 40) {XOR}", "deadlock|divergent"),
        ("0xffffffffu", "0x7fffffffu", "divergent warp"),
        (XOR, f"{{\nif (threadIdx.x % 2) {XOR};\nelse {XOR};}}", "divergent warp"),
        ("Y[blockIdx.x] = sum", "Y[100000000] = sum", "wild access"),
        (
            "float sum = 0.0f;",
            "float sum = 0.0f, kept[4] = {0, 1, 2, 3}; sum = kept[threadIdx.x % 5] - sum;",
            "array in registers",
        ),
        (
            "Y[blockIdx.x] = sum",
            "volatile float kept[20000]; for (int i = 0; i < 20000; ++i) kept[i] = sum; "
            "Y[blockIdx.x] = kept[19999]",
            "stack overflow",
        ),
    ],
    "pipeline": [
        (
            "    wait_copies<1>();\n    __syncthreads();\n",
            "    __syncthreads();\n    wait_copies<1>();\n",
            "race: ",
        ),
        ("stages + (s", "stages + 4 + (s", "out of bounds.*shared"),
        (COPY, f"{COPY} + 1", "misaligned: .* of X"),
        (f"s + 2 < {k.STEPS}", f"s + 2 < {k.STEPS + 1}", "out of.* of X"),
        ("copy_async<16>(stages + s", "copy_async<16>(Y + s", "wrong memory"),
    ],
}
"""What is replaced, by what, and what is said: beside those in kernels of definitions, which
``test_cuda_faults`` has."""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str) -> None:
    module, given, _ = CASES[name]()
    modules = [
        replace(module, source=changed(module.source, old, new)) for old, new, _ in FAULTS[name]
    ]
    given = {n: a for n, a in given.items() if n not in ("C", "Y")}
    for (*_, message), emulated in zip(FAULTS[name], compile_modules(modules), strict=True):
        said = caught(emulated, **given)
        assert re.search(message, said), said
        assert "line " in said or "overflow" in message


def test_a_missing_wait_shows_in_the_result_where_nothing_is_checked() -> None:
    module = k.pipeline(changed(k.PIPELINE, "wait_copies<1>();", ""))
    (emulated,) = compile_modules([module], checked=False)
    arrays = outputs(module, X=floats(k.STEPS, 256))
    emulated.run(arrays)
    assert np.isnan(arrays["Y"]).all()


def test_matrices_are_loaded_from_aligned_rows_that_were_written_before() -> None:
    inputs = {"A": np.ones((16, 16), np.float16), "B": np.ones((16, 8), np.float16)}
    moved = k.mma_half(source=changed(k.MMA_HALF, "lane / 16 * 8)", "lane / 16 * 7)"))
    unordered = k.mma_half(source=changed(k.MMA_HALF, "__syncthreads();", ""))
    first, second = compile_modules([moved, unordered])
    assert "misaligned" in caught(first, **inputs)
    assert "race" in caught(second, **inputs)


@pytest.mark.parametrize("order", ORDERS)
def test_bfloat16_products(order: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = floats(16, 16).astype(ml_dtypes.bfloat16), floats(16, 8).astype(ml_dtypes.bfloat16)
    module = k.mma_half("bfloat16")
    arrays = outputs(module, A=a, B=b)
    compile_modules([module])[0].run(arrays, order)
    first = np.tile([0.0, 1.0], (16, 4)) + np.repeat([0.0, 2.0], 8)[:, None]
    expected = a.astype(float) @ b.astype(float) + first
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-5, atol=1e-5)


BYTES = """
extern "C" __global__ void __launch_bounds__(64)
kernel(const unsigned char* __restrict__ X, unsigned char* __restrict__ Y) {
  extern __shared__ __align__(128) unsigned char shared[];
  shared[threadIdx.x] = X[threadIdx.x];
  __syncthreads();
  Y[64 * blockIdx.x + threadIdx.x] = shared[63 - threadIdx.x] + blockIdx.x;
}
"""


def test_neighbouring_bytes_are_apart() -> None:
    tensors = [k.tensor("X", k.INPUT, (64,), "uint8"), k.tensor("Y", k.OUTPUT, (3, 64), "uint8")]
    good = k.module(BYTES, tensors, blocks=3, threads=64, shared=64)
    wrong = replace(good, source=changed(BYTES, "shared[threadIdx.x]", "shared[threadIdx.x / 2]"))
    one, other = compile_modules([good, wrong])
    x = RNG.integers(0, 200, 64, np.uint8)
    arrays = outputs(good, X=x)
    one.run(arrays)
    np.testing.assert_array_equal(arrays["Y"], x[::-1] + np.arange(3, dtype=np.uint8)[:, None])
    assert "race" in caught(other, X=x)


STRIDED = """
extern "C" __global__ void __launch_bounds__(32)
kernel(const unsigned char* __restrict__ X, unsigned char* __restrict__ Y) {
  const int i = threadIdx.x % 4, j = threadIdx.x / 4;
  if (j < 5)
    *reinterpret_cast<float*>(Y + 40 * j - 8 * i) =
        *reinterpret_cast<const float*>(X - 24 * i + 0 * j) + j;
}
"""


def test_strides_are_kept_and_what_lies_between_elements_is_not_touched() -> None:
    given = floats(4, 6)
    x = np.broadcast_to(given[::-1, 2], (5, 4)).T
    y = np.zeros((5, 10), np.float32)
    view = y[:, 6::-2].T
    assert (x.strides, view.strides) == ((-24, 0), (-8, 40))
    tensors = [
        k.tensor("X", k.INPUT, (4, 5), strides=x.strides),
        k.tensor("Y", k.OUTPUT, (4, 5), strides=view.strides),
    ]
    good = k.module(STRIDED, tensors)
    beside = k.module(changed(STRIDED, "8 * i) =", "8 * i + 4) ="), tensors)
    first, second = compile_modules([good, beside])
    for order in ORDERS:
        y[...] = 7
        first.run({"X": x, "Y": view}, order)
        np.testing.assert_array_equal(view, x + np.arange(5, dtype=np.float32))
        assert (y[:, 1::2] == 7).all() and (y[:, 8] == 7).all()
    with pytest.raises(EmulationError, match=r"out of bounds: .* of Y"):
        second.run({"X": x, "Y": view})
    with pytest.raises(EmulationError, match="has strides"):
        first.run({"X": x.copy(), "Y": view})


def test_memory_beside_a_tensor_is_looked_at_where_nothing_is_checked() -> None:
    source = 'extern "C" __global__ void kernel(float* Y) { Y[threadIdx.x] = 1.0f; }'
    (emulated,) = compile_modules(
        [k.module(source, [k.tensor("Y", k.OUTPUT, (31,))])], checked=False
    )
    with pytest.raises(EmulationError, match="beside tensor Y"):
        emulated.run({"Y": np.zeros(31, np.float32)})


def test_outputs_stay_where_a_subscript_is_out_of_range() -> None:
    source = """
extern "C" __global__ void kernel(const int* I, int* Y, unsigned long long* error) {
  const int i = I[threadIdx.x];
  if (i < 0 || i >= 32) {
    if (atomicCAS(error, 0ull, 2ull) == 0) error[1] = (unsigned long long)(long long)i;
  }
  Y[threadIdx.x] = i;
}
"""
    tensors = [k.tensor("I", k.INPUT, (32,), "int32"), k.tensor("Y", k.OUTPUT, (32,), "int32")]
    sites = (Site("I", 0, 0, 1, False), Site("Y", 1, 0, 32, False))
    (emulated,) = compile_modules([k.module(source, tensors, sites=sites)])
    index, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    emulated.run({"I": index, "Y": y})
    np.testing.assert_array_equal(y, index)
    y[...] = 0
    index[7] = -3
    with pytest.raises(IndexError, match="index -3 is out of range for dimension 1 of tensor Y"):
        emulated.run({"I": index, "Y": y})
    assert not y.any()


def test_scratch_is_poisoned_and_launches_follow_one_another() -> None:
    source = """
extern "C" __global__ void first(const float* X, float* S) {
  if (threadIdx.x < 16) S[threadIdx.x] = X[threadIdx.x];
}
extern "C" __global__ void second(const float* S, float* Y) {
  Y[threadIdx.x] = S[31 - threadIdx.x];
}
"""
    tensors = (
        k.tensor("X", k.INPUT, (32,)),
        k.tensor("Y", k.OUTPUT, (32,)),
        k.tensor("S", k.SCRATCH, (32,)),
    )
    launches = (Launch("first", 1, 32, 0, ("X", "S")), Launch("second", 1, 32, 0, ("S", "Y")))
    (emulated,) = compile_modules([CudaModule(source, launches, tensors)])
    x, y = floats(32), floats(32)
    emulated.run({"X": x, "Y": y})
    assert np.isnan(y[:16]).all()
    np.testing.assert_array_equal(y[16:], x[15::-1])


def test_modules_of_a_batch_do_not_meet() -> None:
    """Same kernel and helper names, different meanings."""
    modules = []
    for i in range(3):
        source = (
            f"#define SIZE {i + 1}\n__device__ float helper(float x) {{ return x * SIZE; }}\n"
            'extern "C" __global__ void kernel(float* Y)'
            " { Y[threadIdx.x] = helper(threadIdx.x); }\n#undef SIZE\n"
        )
        modules.append(k.module(source, [k.tensor("Y", k.OUTPUT, (32,))]))
    for i, emulated in enumerate(compile_modules(modules)):
        y = np.zeros(32, np.float32)
        emulated.run({"Y": y})
        np.testing.assert_array_equal(y, np.arange(32) * (i + 1))


def test_a_module_that_does_not_compile_is_named_with_its_line() -> None:
    wrong = k.matmul(changed(k.MATMUL, "float sum = 0.0f;", "float sum = none;"))
    with pytest.raises(CompileError) as error:
        compile_modules([k.matmul(), wrong])
    said = str(error.value)
    assert "module 1 of 2" in said and "‘none’" in said
    assert re.search(r"line \d+: float sum = none;", said)


def test_only_shared_memory_of_the_launch_is_emulated() -> None:
    outside = k.matmul(k.SHARED + changed(k.MATMUL, k.SHARED, ""))
    arrays = outputs(outside, A=floats(k.M, k.K), B=floats(k.K, k.N))
    compile_modules([outside])[0].run(arrays)
    assert not np.isnan(arrays["C"]).any()
    fixed = k.matmul(changed(k.MATMUL, k.SHARED, "__shared__ unsigned char shared[4096];"))
    with pytest.raises(CompileError, match="only dynamic shared memory"):
        compile_modules([fixed])


def test_kernels_may_have_any_name() -> None:
    modules = []
    for name in ("min", "shuffle", "lane", "emulator", "shared_", "access"):
        source = (
            f'extern "C" __global__ void {name}(float* Y) '
            "{ Y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, float(threadIdx.x), 1); }"
        )
        tensors = (k.tensor("Y", k.OUTPUT, (32,)),)
        modules.append(CudaModule(source, (Launch(name, 1, 32, 0, ("Y",)),), tensors))
    for emulated in compile_modules(modules):
        y = np.zeros(32, np.float32)
        emulated.run({"Y": y})
        np.testing.assert_array_equal(y, np.arange(32) ^ 1)


def test_its_own_code_is_compiled_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Until a file, the compiler or its options change."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    own: Any = compiler
    compiled: list[Any] = []
    run, make = own.run_compiler, own._runtime.__wrapped__
    monkeypatch.setattr(own, "run_compiler", lambda *given: compiled.append(run(*given)))
    first = [file.read_bytes() for file in make()]
    assert len(compiled) == len(first) == 4
    assert [file.read_bytes() for file in make()] == first
    assert len(compiled) == 4
    before = own._made_of()
    monkeypatch.setattr(own, "_RUNTIME", (*own._RUNTIME, "-DNEW"))
    assert own._made_of() != before


def test_without_a_compiler_there_is_one_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    compiler.host_compiler.cache_clear()
    try:
        assert why_not() == (
            "emulating CUDA kernels needs a C++ compiler: $CXX, c++, g++ or clang++"
        )
    finally:
        compiler.host_compiler.cache_clear()


def test_built_ins_agree_with_the_reference() -> None:
    """To the last bit, where the reference rounds a float64 function."""
    import tcl.codegen.reference.special as special
    from tcl.codegen.reference.libm import LIBM, LIBM_FLOAT32

    x = np.concatenate([floats(196) * 3, RNG.random(56, np.float32), [0, -0.0, np.inf, np.nan]])
    x = RNG.permutation(x.astype(np.float32)).reshape(4, 64)
    modules, expected = [], []
    # Those that kernels call CUDA's function for, in either type.
    cudas = {n: arity for n, arity in BUILTINS.items() if n not in OWN and n != "fdivide"}
    for name, arity in cudas.items():
        function = LIBM_FLOAT32.get(name) or getattr(special, name, None) or LIBM.get(name)
        assert function is not None, name
        arguments = ", ".join(f"X[threadIdx.x + {64 * i}]" for i in range(arity))
        body = f"Y[threadIdx.x] = {name}f({arguments});"
        source = f'extern "C" __global__ void kernel(const float* X, float* Y) {{ {body} }}'
        tensors = [k.tensor("X", k.INPUT, (4, 64)), k.tensor("Y", k.OUTPUT, (1, 64))]
        modules.append(k.module(source, tensors, threads=64))
        expected.append([_value(function, x[:arity, i]) for i in range(64)])
    for name, emulated, values in zip(
        cudas, compile_modules(modules, checked=False), expected, strict=True
    ):
        arrays = outputs(emulated.module, X=x)
        emulated.run(arrays)
        np.testing.assert_array_equal(arrays["Y"][0], np.array(values, np.float32), err_msg=name)


def _value(function: Callable[..., float], arguments: Any) -> float:
    try:
        with np.errstate(all="ignore"):
            return float(np.float32(function(*map(np.float64, arguments))))
    except (ZeroDivisionError, OverflowError):
        return float("nan")
