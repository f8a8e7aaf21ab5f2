"""CuPy: whole arrays, written into outputs, and kernels of one line where there is something to
fuse. There are no convolutions and no normalisations in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.peer import Setting
from benchmarks.gpu.peers.cupy_arrays import CupyBase
from tcl.bench.arrays import Array
from tcl.bench.task import Task, Values, as_tuple, values

_Build: TypeAlias = Callable[[Any, Values], Run]
_FORMS: dict[str, list[tuple[str, bool, _Build]]] = {}


def form(*entries: str, name: str, kernel: bool = False) -> Callable[[_Build], _Build]:
    """Register a form: from the array module and the arrays, a function that does the work.
    ``kernel``: it is written in CUDA, and cannot be rehearsed."""

    def register(build: _Build) -> _Build:
        for entry in entries:
            _FORMS.setdefault(entry, []).append((name, kernel, build))
        return build

    return register


class Cupy(CupyBase):
    """The contender."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The registered forms."""
        arrays = self.device_arrays(inputs)
        for name, kernel, build in _FORMS.get(task.entry, ()):
            if self.on_gpu or not kernel:
                yield name, partial(self._form, build, task, arrays)

    def _form(self, build: _Build, task: Task, arrays: Mapping[str, Any]) -> DeviceForm:
        runs = self.repeated(arrays, lambda given: build(self.xp, values(given, task.sizes)))
        return DeviceForm(runs, lambda: [self.host(a) for a in as_tuple(runs(1)[0]())])


def make(setting: Setting) -> Cupy:
    """The contender."""
    return Cupy(setting)


def _product(xp: ModuleType, a: Any, b: Any) -> Run:
    out = xp.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    return lambda: xp.matmul(a, b, out=out)


@form("matmul", name="matmul")
def matmul(xp: Any, x: Values) -> Run:
    return _product(xp, x.A, x.B)


@form("tmm", name="matmul")
def tmm(xp: Any, x: Values) -> Run:
    return _product(xp, x.A, x.B.T)


@form("c3", name="matmul")
def c3(xp: Any, x: Values) -> Run:
    return _product(xp, x.I, x.W.T)


@form("batch_matmul", name="matmul")
def batch_matmul(xp: Any, x: Values) -> Run:
    return _product(xp, x.X, x.Y)


@form("kronecker3_1", name="matmul")
def kronecker(xp: Any, x: Values) -> Run:
    s = x.sizes
    flat = _product(xp, x.X.reshape(-1, s.N2), x.W2.T)

    def run() -> Any:
        found: Any = flat()
        return found.reshape(s.M, s.N0, s.N1, s.D2)

    return run


@form("softmax_twice", name="max, exp, sum")
def softmax(xp: Any, x: Values) -> Run:
    rows = (x.sizes.N, 1)
    out, highest, total = xp.empty_like(x.I), xp.empty(rows, "float32"), xp.empty(rows, "float32")

    def run() -> Any:
        xp.max(x.I, axis=1, keepdims=True, out=highest)
        xp.subtract(x.I, highest, out=out)
        xp.exp(out, out=out)
        xp.sum(out, axis=1, keepdims=True, out=total)
        return xp.divide(out, total, out=out)

    return run


@form("moments", name="mean, squares")
def moments(xp: Any, x: Values) -> Run:
    mean, var = xp.empty(x.sizes.N, "float32"), xp.empty(x.sizes.N, "float32")

    def run() -> Any:
        xp.mean(x.I, axis=1, out=mean)
        xp.mean(x.I * x.I, axis=1, out=var)
        xp.subtract(var, mean * mean, out=var)
        return mean, var

    return run


@form("moments", name="ReductionKernel", kernel=True)
def moments_kernel(xp: Any, x: Values) -> Run:
    mean, var = xp.empty(x.sizes.N, "float32"), xp.empty(x.sizes.N, "float32")
    squares = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
    count = xp.float32(x.sizes.K)

    def run() -> Any:
        xp.mean(x.I, axis=1, out=mean)
        squares(x.I, var, axis=1)
        xp.divide(var, count, out=var)
        xp.subtract(var, mean * mean, out=var)
        return mean, var

    return run


@form("attention_scores", name="matmul, max, exp, sum")
def attention(xp: Any, x: Values) -> Run:
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
def bias_relu_scale(xp: Any, x: Values) -> Run:
    out = xp.empty_like(x.I)

    def run() -> Any:
        xp.add(x.I, x.bias, out=out)
        xp.maximum(out, 0, out=out)
        return xp.multiply(out, x.scale, out=out)

    return run


@form("bias_relu_scale", name="ElementwiseKernel", kernel=True)
def bias_relu_scale_kernel(xp: Any, x: Values) -> Run:
    out = xp.empty_like(x.I)
    kernel = xp.ElementwiseKernel(
        "T i, T bias, T scale", "T o", "o = max(i + bias, T(0)) * scale", "bias_relu_scale"
    )
    return lambda: kernel(x.I, x.bias, x.scale, out)


@form("stencil", name="slices")
def stencil(xp: Any, x: Values) -> Run:
    i = x.I
    out = xp.empty((i.shape[0] - 2, i.shape[1] - 2), i.dtype)
    others = (i[:-2, 1:-1], i[2:, 1:-1], i[1:-1, :-2], i[1:-1, 2:])

    def run() -> Any:
        xp.add(i[1:-1, 1:-1], others[0], out=out)
        for other in others[1:]:
            xp.add(out, other, out=out)
        return xp.multiply(out, xp.float32(0.2), out=out)

    return run


@form("stencil", name="ElementwiseKernel", kernel=True)
def stencil_kernel(xp: Any, x: Values) -> Run:
    i = x.I
    out = xp.empty((i.shape[0] - 2, i.shape[1] - 2), i.dtype)
    kernel = xp.ElementwiseKernel(
        "T mid, T up, T down, T left, T right", "T o",
        "o = (mid + up + down + left + right) * T(0.2)", "stencil",
    )  # fmt: skip
    views = (i[1:-1, 1:-1], i[:-2, 1:-1], i[2:, 1:-1], i[1:-1, :-2], i[1:-1, 2:])
    return lambda: kernel(*views, out)


@form("row_sum", name="sum")
def row_sum(xp: Any, x: Values) -> Run:
    out = xp.empty(x.sizes.M, "float32")
    return lambda: xp.sum(x.I, axis=1, out=out)


@form("column_sum", name="sum")
def column_sum(xp: Any, x: Values) -> Run:
    out = xp.empty(x.sizes.N, "float32")
    return lambda: xp.sum(x.I, axis=0, out=out)


@form("one_lut", name="take, sum")
def lut(xp: Any, x: Values) -> Run:
    out = xp.empty((x.sizes.B, x.sizes.D), "float32")
    return lambda: xp.sum(xp.take(x.LUT1, x.I1, axis=0), axis=1, out=out)


@form("argmin", name="argmin, min")
def argmin(xp: Any, x: Values) -> Run:
    best, least = xp.empty((), "int64"), xp.empty((), "float32")

    def run() -> Any:
        xp.argmin(x.Distance, out=best)
        xp.min(x.Distance, out=least)
        return best, least

    return run
