"""A GPU that the emulator stands for: all parts of a call but the GPU itself.

Real arrays of CuPy and torch (on the host's memory, see ``cuda_arrays``), real sources, real
CUBINs; what a launch would have a GPU do, the emulator does with the same source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_arrays import HostCupy
from fake_cuda import FakeDriver

from tcl.arrays import cupy_arrays
from tcl.backends.cuda_backend import emulated_once
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run.ready import Machine, ModuleForAll
from tcl.codegen.devices.cupy_driver import Loaded
from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.executors import machine as executing
from tcl.grammar.ranges.sized import SizedDef

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Emulating(FakeDriver):
    """Runs a module's kernels on the CPU once the last of them is launched."""

    arguments: Mapping[str, int] = field(default_factory=dict)
    profile: GpuProfile = H200
    codes: list[bytes] = field(default_factory=list)
    at: list[CudaModule] = field(default_factory=list)
    """What modules for many sizes were at some of them."""

    def emit(
        self,
        sized: SizedDef,
        options: MappingOptions,
        profile: GpuProfile,
        layouts: Mapping[str, ir.Layout],
        unchecked: bool,
    ) -> CudaModule:
        self._module = emit_module(sized, options, profile, layouts, unchecked)
        return self._module

    def load(self, code: bytes, kernels: Mapping[str, int]) -> Loaded:
        self.codes.append(code)
        module = self._module
        more = bool(module.sites)
        # Another module may have kernels of these names.
        keys = {x.name: f"{x.name} of {len(self.codes)}" for x in module.launches}
        counts = {x.name: len(x.tensors) + len(x.sizes) + more for x in module.launches}
        self.arguments = {**self.arguments, **{keys[n]: count for n, count in counts.items()}}
        self._names = list(self.arguments)
        places: dict[str, int] = {}

        def ran(name: str) -> Callable[[tuple[int, ...]], None]:
            def run(addresses: tuple[int, ...]) -> None:
                launch = next(x for x in module.launches if x.name == name)
                places.update(zip(launch.tensors, addresses, strict=False))
                if launch is module.launches[-1]:
                    given = addresses[len(launch.tensors) :][: len(launch.sizes)]
                    _emulate(self._launched(module, given), places)

            return run

        self.effects = {**self.effects, **{keys[name]: ran(name) for name in kernels}}
        found = super().load(code, {keys[name]: shared for name, shared in kernels.items()})
        return Loaded({name: found.kernels[keys[name]] for name in kernels}, found.keep)

    def _launched(self, module: CudaModule, sizes: tuple[int, ...]) -> CudaModule:
        """The module as it is for what its last kernel was launched with."""
        blocks = self.launched[-1].blocks
        alike = (m for m in reversed(self.at) if m.source == module.source)
        for each in alike:
            if (each.launches[-1].blocks, each.launches[-1].sizes) == (blocks, sizes):
                return each
        assert not sizes
        return module


def _emulate(module: CudaModule, places: Mapping[str, int]) -> None:
    outer = [t for t in module.tensors if t.role is not ir.Role.SCRATCH]
    emulated_once(module).run({t.name: _memory(t, places[t.name]) for t in outer})


def _memory(tensor: ir.Tensor, address: int) -> Array:
    interface = {
        "version": 3,
        "data": (address, False),
        "shape": tensor.layout.extents,
        "strides": tensor.layout.strides,
        "typestr": f"|V{tensor.layout.itemsize}",
    }
    held = np.asarray(type("Holder", (), {"__array_interface__": interface})())
    return held.view(numpy_dtype(tensor.layout.type))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Emulating:
    """This machine's GPU, and a cache folder of its own."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    made = Emulating()
    machine = Machine(made, lambda _: made.profile, made.emit)
    monkeypatch.setattr(executing, "this_machine", lambda: machine)
    whole = ModuleForAll.at

    def noted(self: ModuleForAll, sizes: Mapping[str, int]) -> CudaModule:
        made.at.append(whole(self, sizes))
        return made.at[-1]

    monkeypatch.setattr(ModuleForAll, "at", noted)
    host = HostCupy()
    monkeypatch.setattr(cupy_arrays, "cupy_arrays", lambda: host)
    return made
