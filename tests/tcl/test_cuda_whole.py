"""From arrays on a device to results: all parts but the GPU (see ``emulating_cuda``)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from cpu_kernels import reference, sized_of
from cuda_arrays import HostTorch, cupy_array, on_host, torch_tensor
from cuda_modules import needs_nvrtc
from emulating_cuda import Emulating
from emulating_cuda import driver as driver
from places import ROOT

import tcl
from tcl.arrays import torch_tensors
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.gpu import T4
from tcl.codegen.options.options import MappingOptions
from tcl.executors import cuda_executor

pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")
pytestmark = [needs_nvrtc, pytest.mark.skipif(bool(why_not()), reason=why_not() or "")]

Array = np.ndarray[Any, np.dtype[Any]]


def rand(*shape: int, dtype: Any = np.float32) -> Array:
    rng = np.random.default_rng(7)
    return rng.integers(-4, 5, shape).astype(dtype)


DEFS: dict[str, tuple[str, tuple[Array, ...]]] = {
    "mm": (
        "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        (rand(67, 45), rand(45, 33)),
    ),
    "two outputs": (
        "def f(double(M, N) A) -> (S, T) { S(i) +=! A(i, j)  T(j) max=! A(i, j) }",
        (rand(20, 300, dtype=np.float64),),
    ),
    "softmax": (
        "def softmax(float(N, D) I) -> (T, E, S, O) {"
        " T(n) max=! I(n, d)  E(n, d) = exp(I(n, d) - T(n))  S(n) +=! E(n, d)"
        " O(n, d) = E(n, d) / S(n) }",
        (rand(9, 100),),
    ),
    "lookup": (
        "def lut(float(R, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }",
        (rand(10, 8), np.abs(rand(40, dtype=np.int32))),
    ),
    "number": (
        "def scale(float16(N) A, float16 s) -> (C) { C(i) = A(i) * s }",
        (rand(77, dtype=np.float16), np.asarray(2.5, np.float16)),
    ),
}


@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("name", DEFS)
def test_results(
    name: str, library: str, driver: Emulating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the reference, the first time and again."""
    make: Callable[..., Any] = cupy_array
    if library == "torch":
        pytest.importorskip("torch")
        tensors = HostTorch()
        monkeypatch.setattr(torch_tensors, "torch_tensors", lambda: tensors)
        make = torch_tensor
    source, inputs = DEFS[name]
    entry = source[4 : source.index("(")]
    expected = reference(source, *inputs)
    executor = tcl.compile(source, entry, None, *map(make, inputs))
    for _ in range(2):
        found = executor(*map(make, inputs))
        for f, e in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_allclose(on_host(f), e, rtol=2e-6)
    assert [code[:4] for code in driver.codes] == [b"\x7fELF"]


def test_strides_and_misaligned_arrays(driver: Emulating) -> None:
    source, (a, b) = DEFS["mm"]
    expected = a @ b
    T = tcl.define(source)
    for left in (
        cupy_array(a, strides=(4, 4 * len(a))),
        cupy_array(a, offset=4),
        cupy_array(a, strides=(8 * a.shape[1], 8), offset=8),
    ):
        np.testing.assert_array_equal(on_host(T.mm(left, cupy_array(b))), expected)
    assert len(driver.codes) == 3


def test_an_older_gpu(driver: Emulating) -> None:
    driver.profile = T4
    source, (a, b) = DEFS["mm"]
    found = tcl.define(source).mm(cupy_array(a), cupy_array(b))
    np.testing.assert_array_equal(on_host(found), a @ b)


def test_options_that_do_not_apply(driver: Emulating) -> None:
    source, (a, b) = DEFS["mm"]
    with pytest.raises(tcl.OptionsError):
        tcl.define(source, MappingOptions.from_json('{"s0": {"threads": [99999]}}')).mm(
            cupy_array(a), cupy_array(b)
        )


def test_a_second_executor_finds_its_cubin(
    driver: Emulating, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, (a, b) = DEFS["mm"]
    sized = sized_of(source, a, b)
    for _ in range(2):
        executor = cuda_executor.CudaExecutor(sized, MappingOptions("naive"), 0)
        found = executor(cupy_array(a), cupy_array(b))
        np.testing.assert_array_equal(on_host(found), a @ b)
        monkeypatch.setattr("tcl.codegen.cuda.run.compile.compile_cubin", None)


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="runs in the source tree only")
@pytest.mark.parametrize("name", ["mm", "lookup"])
def test_how_the_benchmark_calls(
    name: str, driver: Emulating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    ours = import_module("benchmarks.gpu.peers.ours")
    source, inputs = DEFS[name]
    call = ours.OnGpu(sized_of(source, *inputs), ours.DEFAULT)
    (expected,) = reference(source, *inputs)
    out = cupy_array(np.full_like(expected, 77))
    for _ in range(2):
        call([cupy_array(i) for i in inputs], (out,))
        np.testing.assert_array_equal(on_host(out), expected)
    assert not driver.waits
    for kernel in call.facts():
        assert kernel["registers"] > 0
        assert kernel["blocks"] * kernel["threads"] > 0
        assert 0 < kernel["occupancy"] <= 1
