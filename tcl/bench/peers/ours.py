"""Our own kernels: with the untuned default options, and with the tuning cache's best."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tcl
from tcl.backends.program_backend import CpuBackend
from tcl.bench.task import DEFAULT_FORM, TUNED_FORM, Array, PeerForm, Task
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.executors.call_kernels import size
from tcl.executors.executor import Executor
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import DEFAULT, array_layouts
from tcl.tuner.measure.placement import aligned
from tcl.tuner.space.cpu.mapping import MappingSpace

_CANDIDATES = 5
"""Random candidates whose compile time is taken, beside the default's."""


class _Ours:
    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._used = DEFAULT
        self._arrays: list[Array] = []

    def versions(self) -> dict[str, str]:
        import llvmlite

        return {"tcl": tcl.__version__, "llvmlite": llvmlite.__version__}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        checked = check(task.text)[task.entry]
        self._arrays = [inputs[name] for name in task.inputs]
        sized = size(checked, self._arrays)
        options = MappingOptions.from_json(task.tuned) if task.tuned else DEFAULT
        name = TUNED_FORM if task.tuned else DEFAULT_FORM
        self._used = options
        yield name, lambda: _form(task, sized, options, self._arrays, self._threads)

    def facts(self, task: Task) -> dict[str, Any]:
        if task.tuned:
            return {"tuned": self._used.to_json()}
        sized = size(check(task.text)[task.entry], self._arrays)
        layouts = array_layouts(self._arrays)
        backend = CpuBackend(task.text, task.entry, layouts, folder="", threads=self._threads)
        space = MappingSpace(backend.program(), backend.device)
        rng = random.Random(len(sized.statements))
        drawn = (space.space.sample(rng) for _ in range(_CANDIDATES))
        others = (space.to_options(config) for config in drawn if config is not None)
        times = []
        for options in (self._used, *others):
            begin = time.perf_counter()
            with contextlib.suppress(OptionsError):
                backend.compile(options)
                times.append(time.perf_counter() - begin)
        return {"compile_seconds": times, "default": self._used.to_json()}


def _form(
    task: Task, sized: SizedDef, options: MappingOptions, arrays: list[Array], threads: int
) -> PeerForm:
    executor = Executor(sized, options, threads)
    outputs = tuple(
        aligned(sized.shapes[t.name], numpy_dtype(t.type), task.past) for t in sized.checked.outputs
    )
    for output in outputs:
        output.fill(0)
    named = {t.name: o for t, o in zip(sized.checked.outputs, outputs, strict=True)}

    def run() -> object:
        return executor(*arrays, outputs=outputs)

    def results() -> list[Array]:
        for output in outputs:
            output.fill(output.dtype.type(-77))  # what is not written shows
        run()
        return [named[name] for name in task.results]

    executor.prepare(arrays)  # how many threads are worth it is known from then on
    return PeerForm(run, results, executor.threads)


def make(threads: int) -> _Ours:
    return _Ours(threads)
