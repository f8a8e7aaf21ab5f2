"""What kernels are made for, by the names that users give devices: ``cpu``, ``cuda:0``,
``cuda-emulated``."""

from __future__ import annotations

import math
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcl.arrays.arguments import Array
from tcl.backends.program_backend import CpuBackend
from tcl.codegen.cpu.run.memory import check_variable
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.options.knobs import Value
from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy
from tcl.common.shown import shown
from tcl.executors.call_inputs import Inputs
from tcl.executors.size_classes import ForAll, for_all
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import Query
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.key import ArrayLayout
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.program_space import ProgramSpace

if TYPE_CHECKING:
    from tcl.backends import cuda_backend, cuda_harness
    from tcl.codegen.cuda import emulator
    from tcl.codegen.devices import gpu, named
    from tcl.tuner.space.gpu import mapping as gpu_mapping
else:
    cuda_backend, cuda_harness = (
        Lazy("tcl.backends.cuda_backend"),
        Lazy("tcl.backends.cuda_harness"),
    )
    emulator, gpu = Lazy("tcl.codegen.cuda.emulator"), Lazy("tcl.codegen.devices.gpu")
    gpu_mapping, named = Lazy("tcl.tuner.space.gpu.mapping"), Lazy("tcl.codegen.devices.named")

EMULATED = "cuda-emulated"
EMULATED_POINTS = 20_000_000
"""Points of all statements together that are emulated at most."""


class Target(ABC):
    name: Any
    """As users say it."""
    device: Any
    """What it is like: a ``Device``."""
    timing: Any = MeasureSettings()
    """How long and how often to measure."""

    @property
    def identity(self) -> str:
        """What measured times depend on."""
        return device_identity(self.device)

    @property
    def cores(self) -> int:
        """Of the host, that kernels are measured on."""
        return self.device.threads or 1

    @abstractmethod
    def backend(self, source: str, entry: str, arrays: Sequence[Array | ArrayLayout]) -> Any:
        """A ``ProgramBackend`` that knows what these inputs are like and not their values."""

    @abstractmethod
    def space(self, backend: Any, fixed: Mapping[str, Value] | None = None) -> ProgramSpace:
        """What is searched. ``ValueError`` for a fixed knob that there is not."""

    def query(
        self, sized: SizedDef, arrays: Sequence[Array | ArrayLayout], varying: Sequence[str] = ()
    ) -> Query:
        """How a cache is asked for options of a def on these inputs. ``varying``: names of sizes
        that vary. Where one kernel can be for their classes, it is asked for these."""
        names = [name for name in varying if name in sized.checked.sizes]
        found = for_all(sized.checked, sized.sizes, names, self.device) if names else None
        if isinstance(found, ForAll):
            return found.query(self.device)
        return Query.on_inputs(sized, arrays, self.device)


@dataclass(frozen=True)
class CpuTarget(Target):
    """This CPU, with that many threads."""

    threads: int
    name = "cpu"

    @property
    def device(self) -> CpuProfile:
        return replace(host_cpu(), threads=self.threads)

    def backend(self, source: str, entry: str, arrays: Sequence[Array | ArrayLayout]) -> CpuBackend:
        check_variable()  # a search would store the failures of kernels as theirs
        return CpuBackend.described(source, entry, arrays, self.threads)

    def space(self, backend: Any, fixed: Mapping[str, Value] | None = None) -> ProgramSpace:
        return MappingSpace(backend.program(), self.device, fixed)


@dataclass(frozen=True)
class CudaTarget(Target):
    """A GPU of this machine."""

    number: int
    device: gpu.GpuProfile

    @property
    def name(self) -> str:
        return f"cuda:{self.number}"

    @property
    def timing(self) -> MeasureSettings:
        return cuda_harness.TIMING

    def backend(self, source: str, entry: str, arrays: Sequence[Array | ArrayLayout]) -> Any:
        return cuda_backend.CudaBackend.described(source, entry, arrays, self.device, self.number)

    def space(self, backend: Any, fixed: Mapping[str, Value] | None = None) -> ProgramSpace:
        return gpu_mapping.GpuMappingSpace(backend.program(), self.device, fixed)


@dataclass(frozen=True)
class EmulatedTarget(CudaTarget):
    """A GPU that the CPU emulates: what is right there is right, but times mean nothing."""

    name = EMULATED
    timing = MeasureSettings()

    @property
    def identity(self) -> str:
        return f"{super().identity}, emulated"

    def backend(self, source: str, entry: str, arrays: Sequence[Array | ArrayLayout]) -> Any:
        return cuda_backend.EmulatedBackend.described(source, entry, arrays, self.device)

    def query(
        self, sized: SizedDef, arrays: Sequence[Array | ArrayLayout], varying: Sequence[str] = ()
    ) -> Query:
        query = super().query(sized, arrays, varying)
        return replace(query, key=replace(query.key, backend=EMULATED, device=self.identity))


def target(device: str, threads: int) -> Target:
    """The device of this name. ``threads`` are those of kernels on a CPU.

    Raises ``ArgumentError`` for one that there is not, or that this machine cannot use.
    """
    if not isinstance(device, str):
        raise ArgumentError(f"a device is a name such as 'cpu' or 'cuda:0', not {shown(device)}")
    if device == "cpu":
        return CpuTarget(threads)
    if device == EMULATED:
        if reason := emulator.why_not():
            raise ArgumentError(reason)
        return EmulatedTarget(0, gpu.A100)
    found = re.fullmatch(r"cuda(?::([0-9]+))?", device)
    if found is None:
        raise ArgumentError(
            f"there is no device {shlex.quote(device)} here; possible devices are cpu, cuda:0 "
            f"and {EMULATED}{_shown(device)}"
        )
    number = int(found[1] or 0)
    return CudaTarget(number, gpu.of_device(number))


def target_of(inputs: Inputs, chosen: Target | None, threads: int) -> Target:
    """What kernels for these inputs are for: what was chosen, else the device that they lie on.
    Raises ``ArgumentError`` if they lie on a GPU, and another device was chosen."""
    if inputs.gpu is None:
        return chosen or CpuTarget(threads)
    found = CudaTarget(inputs.given.device, inputs.gpu)
    if chosen is not None and chosen.name != found.name:
        raise ArgumentError(
            f"the inputs are on {found.name}, but device= selects {chosen.name}; leave out "
            "device=, or pass NumPy arrays"
        )
    return found


def timed_target(device: str, threads: int, *, here: bool) -> Target:
    """``target``, for a search. ``here``: whether this machine does the work.

    Raises ``ArgumentError`` for a device on which nothing is timed, or not from here, too.
    """
    if device == EMULATED:
        raise ArgumentError("times of emulated kernels have no meaning, so they cannot be tuned")
    found = target(device, threads)
    if found.name != "cpu" and not here:
        raise ArgumentError(f"{device} is tuned on this machine; leave out --executor")
    return found


def _shown(name: str) -> str:
    """What can be done with a device that is known by this name and not here."""
    try:
        known = named.device_named(name)
    except ArgumentError:
        return ""
    plain = shlex.quote(known.title.lower())
    return f"; tcl show --device {plain} shows the kernels for any {known.title}"


def check_emulated(sized: SizedDef) -> None:
    """``ArgumentError`` for what would take too long to be emulated."""
    points = sum(
        math.prod(s.extent(i) for i in (*s.statement.indices, *s.statement.reduction))
        for s in sized.statements
    )
    if points > EMULATED_POINTS:
        raise ArgumentError(
            f"{sized.checked.name} has {points:,} points with these sizes; at most "
            f"{EMULATED_POINTS:,} are emulated"
        )
