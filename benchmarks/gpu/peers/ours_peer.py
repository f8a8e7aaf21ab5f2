"""Our own kernels: with the untuned default options, and with tuned ones where there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import tcl
from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.ours import Compiled, compiled, sized_def
from benchmarks.gpu.peer import Probe, Setting
from benchmarks.gpu.peers.cupy_arrays import CupyBase
from tcl.bench.arrays import Array
from tcl.bench.peers.names import DEFAULT_FORM, TUNED_FORM
from tcl.bench.task import Task
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import DEFAULT

_CALLS = 200
_ROUNDS = 15
_TINY = "def tiny(float(N) A, float(N) B) -> (C) { C(n) = A(n) + B(n) }"
_KERNEL = """
extern "C" __global__ void tiny(const float* A, const float* B, float* C)
{
    C[threadIdx.x] = A[threadIdx.x] + B[threadIdx.x];
}
"""
_EMPTY = 'extern "C" __global__ void empty() {}'
_EXTENT = 32


class Ours(CupyBase):
    """The contender."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._made: dict[str, tuple[MappingOptions, Compiled]] = {}

    def versions(self) -> dict[str, str]:
        """Of us and what launches for us."""
        return {"tcl": tcl.__version__, **super().versions()}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The default options, and the tuned ones that the task names."""
        arrays = self.device_arrays(inputs)
        sized = sized_def(task, [inputs[name] for name in task.inputs])
        self._made = {}
        yield DEFAULT_FORM, partial(self._form, DEFAULT_FORM, task, sized, DEFAULT, arrays)
        if task.tuned:
            tuned = MappingOptions.from_json(task.tuned)
            yield TUNED_FORM, partial(self._form, TUNED_FORM, task, sized, tuned, arrays)

    def _form(
        self,
        name: str,
        task: Task,
        sized: SizedDef,
        options: MappingOptions,
        arrays: Mapping[str, Any],
    ) -> DeviceForm:
        call = compiled(sized, options, self.setting.device)
        self._made[name] = options, call
        tensors = sized.checked.outputs
        made: list[tuple[Any, ...]] = []

        def build(given: dict[str, Any]) -> Run:
            inputs = [given[name] for name in task.inputs]
            outputs = tuple(
                self.xp.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in tensors
            )
            made.append(outputs)
            return lambda: call(inputs, outputs)

        runs = self.repeated(arrays, build)
        named = dict(zip((t.name for t in tensors), made[0], strict=True))

        def results() -> list[Array]:
            for output in named.values():
                output.fill(77)  # what is not written shows
            runs(1)[0]()
            self.clock.check()
            return [self.host(named[name]) for name in task.results]

        return DeviceForm(runs, results)

    def facts(self, task: Task) -> dict[str, Any]:
        """Of each form the options as JSON text, and what its kernels take of the device."""
        return {
            name: {"options": options.to_json(), "kernels": made.facts()}
            for name, (options, made) in self._made.items()
        }

    def probes(self) -> Iterator[Probe]:
        """None that CuPy's contender does not have."""
        return iter(())

    def latencies(self) -> dict[str, list[float]]:
        """Of calls from Python, the host's side alone: ours, and CuPy's of the same kernel; and of
        an empty kernel, also with waiting for its end. In turns, seconds per call."""
        task = Task(_TINY, "tiny", {"N": _EXTENT}, ("A", "B"), ("C",))
        arrays = [np.ones(_EXTENT, np.float32) for _ in range(2)]
        a, b = (self.xp.asarray(array) for array in arrays)
        out = self.xp.empty_like(a)
        runs: dict[str, Run] = {}
        if self.on_gpu:
            kernel = self.xp.RawKernel(_KERNEL, "tiny")
            empty = self.xp.RawKernel(_EMPTY, "empty")
            runs["CuPy RawKernel"] = lambda: kernel((1,), (_EXTENT,), (a, b, out))
            runs["CuPy RawKernel, empty"] = lambda: empty((1,), (_EXTENT,), ())

            def wait() -> None:
                empty((1,), (_EXTENT,), ())
                self.clock.check()

            runs["CuPy RawKernel, empty, waited for"] = wait
        else:
            runs["CuPy RawKernel"] = lambda: self.xp.add(a, b, out=out)
        call = compiled(sized_def(task, arrays), None, self.setting.device)
        runs["tcl"] = lambda: call((a, b), (out,))
        return self._in_turns(runs)

    def _in_turns(self, runs: Mapping[str, Run]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {name: [] for name in runs}
        for warm in [True] * 2 + [False] * _ROUNDS:
            for name, run in runs.items():
                self.clock.check()  # an empty queue: a full one would make the host wait
                begin = time.perf_counter()
                for _ in range(_CALLS):
                    run()
                seconds = (time.perf_counter() - begin) / _CALLS
                if not warm:
                    found[name].append(seconds)
        self.clock.check()
        return found


def make(setting: Setting) -> Ours:
    """The contender."""
    return Ours(setting)
