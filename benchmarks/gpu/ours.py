"""What is ours: a compiled def as a function of arrays on the device. The one place that knows
how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcl.api import size
from tcl.bench.task import Task
from tcl.codegen.options import MappingOptions
from tcl.executor import Executor
from tcl.grammar.check import check
from tcl.grammar.sized import SizedDef
from tcl.known import DEFAULT

Call = Callable[[Sequence[Any], tuple[Any, ...]], object]
"""Of inputs and outputs. It returns before the device is done."""


def sized_def(task: Task, inputs: Sequence[Any]) -> SizedDef:
    """The def with the sizes of these arrays."""
    return size(check(task.text)[task.entry], tuple(inputs))


def compiled(sized: SizedDef, options: MappingOptions | None, device: str) -> Call:
    """A def, compiled with these options or the default ones for a device, ``cuda`` or ``cpu``."""
    if device != "cpu":
        raise NotImplementedError("there are no kernels for GPUs yet")
    executor = Executor(sized, options or DEFAULT, 1)
    return lambda inputs, outputs: executor.run(inputs, outputs)
