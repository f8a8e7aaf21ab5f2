"""What is ours: a compiled def as a function of arrays on the device. The one place that knows
how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from tcl.bench.task import Task
from tcl.codegen.options.options import MappingOptions
from tcl.executors.call_kernels import size
from tcl.executors.executor import Executor
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import DEFAULT


class Compiled(Protocol):
    """A def for given sizes and options, compiled when it is called first."""

    def __call__(self, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> object:
        """Compute. It returns before the device is done."""

    def facts(self) -> list[dict[str, Any]]:
        """What its kernels take of the device, as JSON data; known once it was called."""


def sized_def(task: Task, inputs: Sequence[Any]) -> SizedDef:
    """The def with the sizes of these arrays."""
    return size(check(task.text)[task.entry], tuple(inputs))


def compiled(sized: SizedDef, options: MappingOptions | None, device: str) -> Compiled:
    """A def with these options or the default ones, for a device: ``cuda``, the first that this
    process sees, or ``cpu``."""
    return (_OnCpu if device == "cpu" else _OnGpu)(sized, options or DEFAULT)


class _OnCpu:
    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        self._executor = Executor(sized, options, 1)

    def __call__(self, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> object:
        return self._executor(*inputs, outputs=outputs)

    def facts(self) -> list[dict[str, Any]]:
        return []


class _OnGpu:
    """Subscripts that depend on data are not checked, as a checked call waits for the device, which
    peers do not."""

    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        from tcl.executors.cuda_executor import CudaExecutor

        self._executor = CudaExecutor(sized, options, 0)

    def __call__(self, inputs: Sequence[Any], outputs: tuple[Any, ...]) -> object:
        return self._executor(*inputs, outputs=outputs, unchecked=True)

    def facts(self) -> list[dict[str, Any]]:
        from tcl.codegen.cuda.run.cubin_store import cubin
        from tcl.codegen.cuda.run.occupancy import occupancy
        from tcl.executors.machine import this_machine

        profile = this_machine().profile(self._executor.device)
        found: list[dict[str, Any]] = []
        for launcher in self._executor.kernels:
            module = launcher.module
            taken = cubin(module, profile).resources
            for each, launch in zip(taken, module.launches, strict=True):
                shape = {"blocks": launch.blocks, "threads": launch.threads}
                shared = {"shared": each.shared + launch.shared}
                share = {"occupancy": occupancy(each, launch, profile).share}
                found.append({**asdict(each), **shape, **shared, **share})
        return found
