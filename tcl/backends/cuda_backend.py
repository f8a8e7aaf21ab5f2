"""CUDA as the tuner sees it: a GPU, or one that the CPU emulates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from numpy.lib.stride_tricks import as_strided

from tcl.arrays.arguments import Array
from tcl.backends.cuda_harness import CudaBench, DeviceArray
from tcl.backends.program_backend import ProgramBackend
from tcl.backends.sent import arrived
from tcl.codegen.common.envelope import seal
from tcl.codegen.compiler import GpuCompiler
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import Emulated, Requests, compile_modules
from tcl.codegen.cuda.run.compile import Cubin, cubin, occupancy
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.cuda.run.ready import ModuleForAll
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.executors import machine
from tcl.tuner.measure.backend import CompiledKernel
from tcl.tuner.measure.harness import Bench
from tcl.tuner.measure.placement import ALIGNED

SPILLS = 256
"""Bytes that a thread may move to and from memory for want of registers."""


@dataclass(frozen=True, slots=True)
class GpuBackend(ProgramBackend):
    """One def on one set of inputs, for a GPU."""

    profile: GpuProfile

    @property
    def compiler(self) -> GpuCompiler:
        return GpuCompiler(self.profile, asked=False)

    def module(self, options: MappingOptions) -> CudaModule:
        """The kernels; where sizes vary those for all of them, as they are launched for these.
        Raises ``OptionsError``."""
        module = self.built(options, self.compiler.module)
        if not self.classes:
            return module
        sizes = {name: self.sized.sizes[name] for name, _ in self.classes}
        return ModuleForAll.from_module(module).at(sizes)


@dataclass(frozen=True, slots=True)
class Loadable:
    """What travels of compiled kernels."""

    module: CudaModule
    """Without its source."""
    code: bytes
    """For one architecture."""


@dataclass(frozen=True, slots=True)
class CudaBackend(GpuBackend):
    """On a device of this machine."""

    number: int = 0

    def compile(self, options: MappingOptions) -> bytes:
        """Machine code and what a launch needs. Needs no device.

        Raises ``OptionsError`` for options that cannot be applied, and for kernels that the device
        cannot run, or not well.
        """
        module = self.module(options)
        found = cubin(module, self.profile)
        check_resources(module, found, self.profile)
        return seal(Loadable(replace(module, source=""), found.code))

    def load(self, code: bytes) -> CompiledKernel:
        """The kernel, on the device, launched on the bench's stream. What checks of subscripts find
        is not waited for: it would be most of what is timed. The reference refuses inputs that are
        out of range; if a kernel gets a subscript wrong, its results are."""
        found = arrived(Loadable, code)
        launcher = CudaLauncher(found.module, found.code, machine.driver(), self.number)

        def run(inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray]) -> None:
            arrays = (*inputs, *outputs)
            if arrays:
                held = arrays[0].device
                launcher([a.address for a in arrays], held.stream, held.allocate, wait=False)

        return run

    def bench(self) -> Bench:
        return CudaBench(self.number, self.profile)


def check_resources(module: CudaModule, compiled: Cubin, profile: GpuProfile) -> None:
    """``OptionsError`` for kernels that cannot run on the device, or spill heavily."""
    for launch, taken in zip(module.launches, compiled.resources, strict=True):
        full = occupancy(taken, launch, profile)
        if full.blocks == 0:
            raise OptionsError(
                f"{launch.name} cannot run on {profile.name}: its {launch.threads} threads with "
                f"{taken.registers} registers and {taken.shared + launch.shared} bytes of shared "
                f"memory are more than a multiprocessor has ({', '.join(full.limits)})"
            )
        spilled = taken.spill_loads + taken.spill_stores
        if spilled > SPILLS:
            raise OptionsError(
                f"{launch.name} has too few registers: a thread moves {spilled} bytes to and "
                f"from memory instead; the limit is {SPILLS}"
            )


@dataclass(frozen=True, slots=True)
class EmulatedBackend(GpuBackend):
    """On the CPU, which emulates the GPU and checks every access. Times mean nothing."""

    def compile(self, options: MappingOptions) -> bytes:
        """The source, which is compiled where it runs, and what a launch needs."""
        return seal(self.module(options))

    def load(self, code: bytes) -> CompiledKernel:
        """The kernel in this process. Raises ``EmulationError`` if none can be emulated here."""
        module = arrived(CudaModule, code)
        emulated = emulated_once(module)
        tensors = [t for t in module.tensors if t.role is not ir.Role.SCRATCH]

        def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            # Merged dimensions are one here; the same elements lie at the same places.
            pairs = zip(tensors, (*inputs, *outputs), strict=True)
            emulated.run({t.name: _seen_as(t.layout, array) for t, array in pairs})

        return run

    def traced(
        self, options: MappingOptions, arrays: Sequence[Array]
    ) -> tuple[ir.Built, tuple[Requests, ...]]:
        """The kernels, and what their warps asked of memory in a run on these inputs and outputs;
        outputs are written."""
        program = self.built(options, lambda _, built: built)
        (emulated,) = compile_modules([self.module(options)], traced=True)
        tensors = [t for t in emulated.module.tensors if t.role is not ir.Role.SCRATCH]
        pairs = zip(tensors, arrays, strict=True)
        return program, emulated.run({t.name: _seen_as(t.layout, a) for t, a in pairs})

    def bench(self) -> Bench:
        return EmulatedBench()


@lru_cache(maxsize=32)
def emulated_once(module: CudaModule) -> Emulated:
    """A module for the emulator, kept: finals load a candidate again and again. Raises
    ``EmulationError`` if none can be emulated here."""
    (emulated,) = compile_modules([module])
    return emulated


class EmulatedBench(Bench):
    """The host's memory in place of a device's, where arrays are aligned."""

    placements = (ALIGNED,)


def _seen_as(layout: ir.Layout, array: Array) -> Array:
    seen: Array = as_strided(array, layout.extents, layout.strides)
    return seen
