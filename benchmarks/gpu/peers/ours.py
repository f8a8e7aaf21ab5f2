"""Our own kernels: with the untuned default options, and with tuned ones where there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

import tcl
from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.peers.cupy_peer import CupyBase
from tcl.bench.task import DEFAULT_FORM, TUNED_FORM, Array, Task
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cuda.run.compile import cubin, occupancy
from tcl.codegen.options.options import MappingOptions
from tcl.executors import machine
from tcl.executors.call_kernels import size
from tcl.executors.cuda_executor import CudaExecutor
from tcl.executors.executor import Executor
from tcl.grammar.check.definitions import check
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


class OnGpu:
    """A def on the first device that this process sees, compiled when it is called first.

    Subscripts that depend on data are not checked, as a checked call waits for the device, which
    peers do not.
    """

    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        self.executor = CudaExecutor(sized, options, 0)

    def __call__(self, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> object:
        """Compute. It returns before the device is done."""
        return self.executor(*inputs, outputs=outputs, unchecked=True)

    def facts(self) -> list[dict[str, Any]]:
        """What its kernels take of the device, as JSON data; known once it was called."""
        profile = machine.this_machine().profile(self.executor.device)
        found: list[dict[str, Any]] = []
        for launcher in self.executor.kernels:
            module = launcher.module
            taken = cubin(module, profile).resources
            for each, launch in zip(taken, module.launches, strict=True):
                shape = {"blocks": launch.blocks, "threads": launch.threads}
                shared = {"shared": each.shared + launch.shared}
                share = {"occupancy": occupancy(each, launch, profile).share}
                found.append({**asdict(each), **shape, **shared, **share})
        return found


class OnCpu:
    """The same on the CPU, for rehearsals."""

    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        self.executor = Executor(sized, options, 1)

    def __call__(self, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> object:
        """Compute."""
        return self.executor(*inputs, outputs=outputs)

    def facts(self) -> list[dict[str, Any]]:
        """Nothing."""
        return []


class Ours(CupyBase):
    """The contender."""

    _made: tuple[str, MappingOptions, OnGpu | OnCpu]

    def versions(self) -> dict[str, str]:
        """Of us and what launches for us."""
        return {"tcl": tcl.__version__, **super().versions()}

    def _compiled(
        self, task: Task, inputs: Sequence[Any], options: MappingOptions
    ) -> tuple[SizedDef, OnGpu | OnCpu]:
        sized = size(check(task.text)[task.entry], tuple(inputs))
        return sized, (OnGpu if self.on_gpu else OnCpu)(sized, options)

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The tuned options that the task names, or the default ones."""
        yield TUNED_FORM if task.tuned else DEFAULT_FORM, partial(self._form, task, inputs)

    def _form(self, task: Task, inputs: Mapping[str, Array]) -> DeviceForm:
        options = MappingOptions.from_json(task.tuned) if task.tuned else DEFAULT
        sized, call = self._compiled(task, [inputs[name] for name in task.inputs], options)
        self._made = TUNED_FORM if task.tuned else DEFAULT_FORM, options, call
        tensors = sized.checked.outputs
        made: list[tuple[Any, ...]] = []

        def build(given: dict[str, Any]) -> Run:
            outputs = tuple(
                self.xp.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in tensors
            )
            made.append(outputs)
            return partial(call, [given[name] for name in task.inputs], outputs)

        runs = self.runs(self.all_own(inputs), build)
        named = dict(zip((t.name for t in tensors), made[0], strict=True))

        def results() -> list[Array]:
            for output in named.values():
                output.fill(77)  # what is not written shows
            runs(1)[0]()
            self.clock.check()
            return [self.host(named[name]) for name in task.results]

        return DeviceForm(runs, results)

    def facts(self, task: Task) -> dict[str, Any]:
        """The options as JSON text, and what the kernels take of the device."""
        name, options, call = self._made
        return {name: {"options": options.to_json(), "kernels": call.facts()}}

    def latencies(self) -> dict[str, list[float]]:
        """Of calls from Python, the host's side alone: ours, and CuPy's of the same kernel; and of
        an empty kernel, also with waiting for its end. In turns, seconds per call."""
        task = Task(_TINY, "tiny", {"N": _EXTENT}, ("A", "B"), ("C",))
        arrays = [np.ones(_EXTENT, np.float32) for _ in range(2)]
        a, b = map(self.own, arrays)
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
        call = self._compiled(task, arrays, DEFAULT)[1].executor
        runs["tcl"] = lambda: call(a, b, outputs=(out,))
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


make = Ours
