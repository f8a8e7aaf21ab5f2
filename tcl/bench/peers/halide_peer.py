"""Halide with its autoschedulers, for the rows that it takes minutes to set up.

Left out: whatever needs a schedule by hand to be sensible (packed products of odd shapes, grouped
and masked convolutions), gathers, and chains. The fastest of two autoschedulers' schedules counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tcl.bench.peers.library import PeerLibrary, element_type
from tcl.bench.task import Array, PeerForm, Registry, Task, Values, values
from tcl.tuner.measure.placement import aligned

hl: Any = import_module("halide")

forms = Registry()
form = forms.form
_AUTOSCHEDULERS = ("Mullapudi2016", "Adams2019")


class _Halide(PeerLibrary):
    def __init__(self, threads: int) -> None:
        super().__init__(forms, threads)
        folder = Path(hl.__file__).parent / "lib64"
        self._names: list[str] = []
        for name in _AUTOSCHEDULERS:
            plugin = folder / f"libautoschedule_{name.lower()}.so"
            if plugin.exists():
                hl.load_plugin(str(plugin))
                self._names.append(name)

    def versions(self) -> dict[str, str]:
        from importlib.metadata import version

        return {"halide": version("halide")}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        for name, builder in forms.builders(task.entry, element_type(inputs)):
            for scheduler in self._names:
                make = partial(self._scheduled, builder, scheduler, task, inputs)
                yield f"{name}, {scheduler}", make

    def _scheduled(
        self, builder: Any, scheduler: str, task: Task, inputs: Mapping[str, Array]
    ) -> PeerForm:
        buffers = {k: hl.Buffer(v) for k, v in inputs.items() if v.ndim}
        scalars = {k: float(v) for k, v in inputs.items() if not v.ndim}
        # The builder makes a Func; the pipeline's output is its estimate's size.
        func, shape = builder(values(buffers | scalars, task.sizes))
        out = aligned(shape, "float32", task.past)
        target = hl.get_host_target()
        for axis, extent in enumerate(reversed(shape)):
            func.set_estimate(func.args()[axis], 0, extent)
        pipeline = hl.Pipeline(func)
        parameters = {"parallelism": str(self.threads)}
        pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(scheduler, parameters))
        pipeline.compile_jit(target)
        buffer = hl.Buffer(out)

        def run() -> object:
            return pipeline.realize(buffer)

        run.keep = buffers, inputs  # type: ignore[attr-defined]  # the pipeline holds bare pointers

        def results() -> list[Array]:
            run()
            return [out]

        return PeerForm(run, results, self.threads)


def make(threads: int) -> _Halide:
    os.environ["HL_NUM_THREADS"] = str(threads)
    return _Halide(threads)


# Halide's first dimension is the innermost: subscripts are those of the defs, reversed.


@form("matmul", name="sum", types=("float32",))
def matmul(x: Values) -> Any:
    m, n = hl.Var("m"), hl.Var("n")
    k = hl.RDom([(0, x.sizes.K)])
    out = hl.Func("C")
    out[n, m] = 0.0
    out[n, m] += x.A[k.x, m] * x.B[n, k.x]
    return out, (x.sizes.M, x.sizes.N)


@form("convolution", name="sum", types=("float32",))
def convolution(x: Values) -> Any:
    s = x.sizes
    w, h, f, n = (hl.Var(v) for v in "whfn")
    r = hl.RDom([(0, s.KW), (0, s.KH), (0, s.C)])
    out = hl.Func("O")
    out[w, h, f, n] = x.B[f]
    out[w, h, f, n] += x.I[w + r.x, h + r.y, r.z, n] * x.W1[r.x, r.y, r.z, f]
    return out, (s.N, s.F, s.H - s.KH + 1, s.W - s.KW + 1)


@form("softmax_twice", name="softmax")
def softmax(x: Values) -> Any:
    s = x.sizes
    d, n = hl.Var("d"), hl.Var("n")
    r = hl.RDom([(0, s.D)])
    most, power, total, out = (hl.Func(f) for f in ("most", "power", "total", "O"))
    most[n] = hl.f32(-3.4e38)
    most[n] = hl.max(most[n], x.I[r.x, n])
    power[d, n] = hl.fast_exp(x.I[d, n] - most[n])
    total[n] = 0.0
    total[n] += power[r.x, n]
    out[d, n] = power[d, n] / total[n]
    return out, (s.N, s.D)


@form("bias_relu_scale", name="pointwise")
def bias_relu_scale(x: Values) -> Any:
    m, n = hl.Var("m"), hl.Var("n")
    out = hl.Func("O")
    out[n, m] = hl.max(x.I[n, m] + x.bias[n], 0.0) * hl.f32(x.scale)
    return out, (x.sizes.M, x.sizes.N)


@form("stencil", name="pointwise")
def stencil(x: Values) -> Any:
    j, i = hl.Var("j"), hl.Var("i")
    t = x.I
    out = hl.Func("O")
    rows = t[j + 1, i + 1] + t[j + 1, i] + t[j + 1, i + 2]
    out[j, i] = hl.f32(0.2) * (rows + t[j, i + 1] + t[j + 2, i + 1])
    return out, (x.sizes.M - 2, x.sizes.N - 2)


@form("column_sum", name="sum")
def column_sum(x: Values) -> Any:
    n = hl.Var("n")
    r = hl.RDom([(0, x.sizes.M)])
    out = hl.Func("C")
    out[n] = 0.0
    out[n] += x.I[n, r.x]
    return out, (x.sizes.N,)
