"""What is ours: a compiled def as a function of arrays on the device. The one place that knows
how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from tcl.api import size
from tcl.bench.task import Task
from tcl.codegen.options import MappingOptions
from tcl.executor import Executor
from tcl.grammar.check import check
from tcl.grammar.sized import SizedDef
from tcl.known import DEFAULT

Call: TypeAlias = Callable[[Sequence[Any], tuple[Any, ...]], object]
"""Of inputs and outputs. It returns before the device is done."""
_EXECUTOR = "tcl.cuda_executor"


def sized_def(task: Task, inputs: Sequence[Any]) -> SizedDef:
    """The def with the sizes of these arrays."""
    return size(check(task.text)[task.entry], tuple(inputs))


def compiled(sized: SizedDef, options: MappingOptions | None, device: str) -> Call:
    """A def with these options or the default ones, for a device, ``cuda`` (the first that this
    process sees) or ``cpu``; compiled when it is called first.

    On a GPU subscripts that depend on data are not checked, as a checked call waits for the
    device, which peers do not.
    """
    chosen = options or DEFAULT
    if device == "cpu":
        executor = Executor(sized, chosen, 1)
        return lambda inputs, outputs: executor(*inputs, outputs=outputs)
    if find_spec(_EXECUTOR) is None:
        raise NotImplementedError("there are no kernels for GPUs yet")
    on_gpu: Any = import_module(_EXECUTOR).CudaExecutor(sized, chosen, 0)
    return lambda inputs, outputs: on_gpu(*inputs, outputs=outputs, unchecked=True)
