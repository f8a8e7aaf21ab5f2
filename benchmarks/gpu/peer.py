"""What a contender on a GPU has to offer, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.gpu.clock import Clock, DeviceForm, Run
from tcl.bench.arrays import Array
from tcl.bench.task import Task
from tcl.grammar.check.definitions import check

COPY = "copy"
"""The rate of bytes; other rates are those of an element type's multiply-adds."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a contender is to work."""

    device: str
    """``cuda``, or ``cpu`` in a rehearsal."""
    quick: bool
    l2_bytes: int
    bus: str
    """PCI address of the device."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Something that shows what the device can do."""

    name: str
    rate: str
    """``COPY``, or an element type."""
    amount: int
    """Bytes, read and written both counted, or operations."""
    make: Callable[[], Run]


class GpuPeer(Protocol):
    """A contender."""

    clock: Clock

    def versions(self) -> dict[str, str]:
        """Of what it is made of."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """Names and makers of the forms it has; none for tasks that it leaves out."""

    def facts(self, task: Task) -> dict[str, Any]:
        """What else there is to report on a task, as JSON data."""

    def probes(self) -> Iterator[Probe]:
        """What it can find out of the device's limits."""

    def latencies(self) -> dict[str, list[float]]:
        """What it can find out of the cost of a launch: seconds by name."""

    def close(self) -> None:
        """Give back what the last task took."""


def element_types(task: Task) -> dict[str, str]:
    """Tensor to the name of its element type."""
    tensors = check(task.text)[task.entry].tensors
    return {name: tensor.type.name for name, tensor in tensors.items()}
