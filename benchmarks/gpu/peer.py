"""What a contender on a GPU has to offer, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu.clock import Clock, DeviceForm, Run
from tcl.bench.task import Array, Task, as_tuple
from tcl.common.dataclass import dataclass

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


class GpuPeer:
    """A contender: ``tcl.bench.task.Peer``, with arrays on the device."""

    clock: Clock

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.on_gpu = setting.device == "cuda"

    def versions(self) -> dict[str, str]:
        """Of what it is made of."""
        raise NotImplementedError

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """Names and makers of the forms it has; none for tasks that it leaves out."""
        raise NotImplementedError

    def own(self, array: Array) -> Any:
        """An input on the device."""
        raise NotImplementedError

    def copy(self, array: Any) -> Any:
        """The same values at another address."""
        raise NotImplementedError

    def host(self, array: Any) -> Array:
        """A result as one of NumPy's arrays."""
        raise NotImplementedError

    def all_own(self, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """All inputs on the device."""
        return {name: self.own(array) for name, array in inputs.items()}

    def runs(
        self, arrays: Mapping[str, Any], build: Callable[[dict[str, Any]], Run]
    ) -> Callable[[int], Sequence[Run]]:
        """``DeviceForm.runs``, of what makes one from inputs; all but the first get copies."""
        first = build(dict(arrays))

        def runs(count: int) -> list[Run]:
            copies = ({n: self.copy(a) for n, a in arrays.items()} for _ in range(count - 1))
            return [first, *map(build, copies)]

        return runs

    def form(self, arrays: Mapping[str, Any], build: Callable[[dict[str, Any]], Run]) -> DeviceForm:
        """The form of what makes, from inputs, a function that returns results."""
        runs = self.runs(arrays, build)
        return DeviceForm(runs, lambda: [self.host(a) for a in as_tuple(runs(1)[0]())])

    def facts(self, task: Task) -> dict[str, Any]:
        """What else there is to report on a task, as JSON data."""
        return {}

    def probes(self) -> Iterator[Probe]:
        """What it can find out of the device's limits."""
        return iter(())

    def latencies(self) -> dict[str, list[float]]:
        """What it can find out of the cost of a launch: seconds by name."""
        return {}

    def close(self) -> None:
        """Give back what the last task took."""
