"""CuPy: whole arrays, written into outputs, and kernels of one line where there is something to
fuse. There are no convolutions and no normalisations in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.gpu.clock import CupyClock, DeviceForm, HostClock, Run
from benchmarks.gpu.peer import COPY, GpuPeer, Probe, Setting
from tcl.bench.task import Array, Builder, Registry, Task, Values, values


class CupyBase(GpuPeer):
    """What CuPy's contender and ours share."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.xp: Any = import_module("cupy") if self.on_gpu else np
        self.clock = CupyClock(setting.l2_bytes, setting.bus) if self.on_gpu else HostClock()

    def versions(self) -> dict[str, str]:
        """Of CuPy and of CUDA."""
        if not self.on_gpu:
            return {"numpy": np.__version__}
        runtime = self.xp.cuda.runtime
        return {
            "cupy": self.xp.__version__,
            "CUDA driver": str(runtime.driverGetVersion()),
            "CUDA runtime": str(runtime.runtimeGetVersion()),
        }

    def own(self, array: Array) -> Any:
        """An input on the device."""
        return self.xp.asarray(array)

    def copy(self, array: Any) -> Any:
        """The same values at another address."""
        return array.copy()

    def host(self, array: Any) -> Array:
        """A result as one of NumPy's arrays."""
        found: Array = self.xp.asnumpy(array) if self.on_gpu else np.array(array)
        return found

    def close(self) -> None:
        """Give memory back to the device."""
        if self.on_gpu:
            self.clock.check()
            self.xp.get_default_memory_pool().free_all_blocks()


_COPIED = (64 << 20, 1 << 30)
_THREADS = 256
_COPY = """
extern "C" __global__ void copy(const float4* __restrict__ from, float4* __restrict__ to)
{
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x * %(each)d;
    float4 held[%(each)d];
    #pragma unroll
    for (int i = 0; i < %(each)d; ++i) held[i] = from[first + i * blockDim.x + threadIdx.x];
    #pragma unroll
    for (int i = 0; i < %(each)d; ++i) to[first + i * blockDim.x + threadIdx.x] = held[i];
}
"""
_plain, _kernels = Registry(), Registry()
form, kernel = _plain.form, _kernels.form
"""Register what makes, from arrays and ``xp``, a function that does the work; ``kernel`` what is
written in CUDA, and cannot be rehearsed."""


class Cupy(CupyBase):
    """The contender."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The registered forms."""
        arrays = self.all_own(inputs)
        for registry in (_plain, _kernels) if self.on_gpu else (_plain,):
            for name, builder in registry.builders(task.entry):
                yield name, partial(self.form, arrays, partial(self._build, builder, task))

    def _build(self, builder: Builder, task: Task, given: dict[str, Any]) -> Run:
        return builder(values({**given, "xp": self.xp}, task.sizes))

    def probes(self) -> Iterator[Probe]:
        """Copies: the driver's, and kernels with 16-byte accesses."""
        for size in _COPIED if self.on_gpu else (1 << 20,):
            yield Probe(f"copyto, {size >> 20} MiB", COPY, 2 * size, partial(self._copyto, size))
            for each in (1, 4) if self.on_gpu else ():
                name = f"kernel, {each} x 16 bytes per thread, {size >> 20} MiB"
                yield Probe(name, COPY, 2 * size, partial(self._kernel, size, each))

    def _pair(self, size: int) -> tuple[Any, Any]:
        source = self.xp.arange(size // 4, dtype=self.xp.float32)
        return source, self.xp.empty_like(source)

    def _copyto(self, size: int) -> Run:
        source, target = self._pair(size)
        return lambda: self.xp.copyto(target, source)

    def _kernel(self, size: int, each: int) -> Run:
        source, target = self._pair(size)
        copy = self.xp.RawKernel(_COPY % {"each": each}, "copy")
        blocks = size // (16 * each * _THREADS)
        return lambda: copy((blocks,), (_THREADS,), (source, target))


make = Cupy


def _product(x: Values, a: Any, b: Any) -> Run:
    return partial(x.xp.matmul, a, b, out=x.xp.empty((*a.shape[:-1], b.shape[-1]), a.dtype))


form("matmul", name="matmul")(lambda x: _product(x, x.A, x.B))
form("tmm", name="matmul")(lambda x: _product(x, x.A, x.B.T))
form("mtm", name="matmul")(lambda x: _product(x, x.A.T, x.B))
form("c3", name="matmul")(lambda x: _product(x, x.I, x.W.T))
form("batch_matmul", name="matmul")(lambda x: _product(x, x.X, x.Y))


@form("kronecker3_1", name="matmul")
def kronecker(x: Values) -> Run:
    s = x.sizes
    flat: Any = _product(x, x.X.reshape(-1, s.N2), x.W2.T)
    return lambda: flat().reshape(s.M, s.N0, s.N1, s.D2)


@form("softmax_twice", name="max, exp, sum")
def softmax(x: Values) -> Run:
    xp = x.xp
    rows = (x.sizes.N, 1)
    out, highest, total = xp.empty_like(x.I), xp.empty(rows, "float32"), xp.empty(rows, "float32")

    def run() -> Any:
        xp.max(x.I, axis=1, keepdims=True, out=highest)
        xp.subtract(x.I, highest, out=out)
        xp.exp(out, out=out)
        xp.sum(out, axis=1, keepdims=True, out=total)
        return xp.divide(out, total, out=out)

    return run


def _moments(x: Values, mean_square: Callable[[Any], object]) -> Run:
    """``mean_square``: writes the mean of each row's squares."""
    xp = x.xp
    mean, var = xp.empty(x.sizes.N, "float32"), xp.empty(x.sizes.N, "float32")

    def run() -> Any:
        xp.mean(x.I, axis=1, out=mean)
        mean_square(var)
        xp.subtract(var, mean * mean, out=var)
        return mean, var

    return run


@form("moments", name="mean, squares")
def moments(x: Values) -> Run:
    return _moments(x, lambda out: x.xp.mean(x.I * x.I, axis=1, out=out))


@kernel("moments", name="ReductionKernel")
def moments_kernel(x: Values) -> Run:
    xp = x.xp
    squares = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
    count = xp.float32(x.sizes.K)

    def mean_square(out: Any) -> None:
        squares(x.I, out, axis=1)
        xp.divide(out, count, out=out)

    return _moments(x, mean_square)


@form("attention_scores", name="matmul, max, exp, sum")
def attention(x: Values) -> Run:
    xp = x.xp
    s = x.sizes
    keys, scale = x.K.transpose(0, 2, 1), float(s.D) ** -0.5
    out = xp.empty((s.B, s.S, s.S), "float32")

    def run() -> Any:
        xp.matmul(x.Q, keys, out=out)
        xp.multiply(out, xp.float32(scale), out=out)
        xp.subtract(out, out.max(axis=2, keepdims=True), out=out)
        xp.exp(out, out=out)
        return xp.divide(out, out.sum(axis=2, keepdims=True), out=out)

    return run


@form("bias_relu_scale", name="add, maximum, multiply")
def bias_relu_scale(x: Values) -> Run:
    xp = x.xp
    out = xp.empty_like(x.I)

    def run() -> Any:
        xp.add(x.I, x.bias, out=out)
        xp.maximum(out, 0, out=out)
        return xp.multiply(out, x.scale, out=out)

    return run


@kernel("bias_relu_scale", name="ElementwiseKernel")
def bias_relu_scale_kernel(x: Values) -> Run:
    xp = x.xp
    out = xp.empty_like(x.I)
    fused = xp.ElementwiseKernel(
        "T x, T bias, T scale", "T y", "y = max(x + bias, T(0)) * scale", "bias_relu_scale"
    )
    return lambda: fused(x.I, x.bias, x.scale, out)


@form("stencil", name="slices")
def stencil(x: Values) -> Run:
    xp = x.xp
    i = x.I
    out = xp.empty((i.shape[0] - 2, i.shape[1] - 2), i.dtype)
    others = (i[:-2, 1:-1], i[2:, 1:-1], i[1:-1, :-2], i[1:-1, 2:])

    def run() -> Any:
        xp.add(i[1:-1, 1:-1], others[0], out=out)
        for other in others[1:]:
            xp.add(out, other, out=out)
        return xp.multiply(out, xp.float32(0.2), out=out)

    return run


@kernel("stencil", name="ElementwiseKernel")
def stencil_kernel(x: Values) -> Run:
    xp = x.xp
    i = x.I
    out = xp.empty((i.shape[0] - 2, i.shape[1] - 2), i.dtype)
    fused = xp.ElementwiseKernel(
        "T mid, T up, T down, T left, T right", "T o",
        "o = (mid + up + down + left + right) * T(0.2)", "stencil",
    )  # fmt: skip
    views = (i[1:-1, 1:-1], i[:-2, 1:-1], i[2:, 1:-1], i[1:-1, :-2], i[1:-1, 2:])
    return lambda: fused(*views, out)


form("row_sum", name="sum")(
    lambda x: partial(x.xp.sum, x.I, axis=1, out=x.xp.empty(x.sizes.M, "float32"))
)
form("column_sum", name="sum")(
    lambda x: partial(x.xp.sum, x.I, axis=0, out=x.xp.empty(x.sizes.N, "float32"))
)


@form("one_lut", name="take, sum")
def lut(x: Values) -> Run:
    xp = x.xp
    out = xp.empty((x.sizes.B, x.sizes.D), "float32")
    return lambda: xp.sum(xp.take(x.LUT1, x.I1, axis=0), axis=1, out=out)


@form("argmin", name="argmin, min")
def argmin(x: Values) -> Run:
    # Not into outputs: CuPy 14.2 takes ``out`` of ``min`` for a type.
    return lambda: (x.xp.argmin(x.Distance), x.xp.min(x.Distance))
