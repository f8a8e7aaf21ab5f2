"""CuPy's raw kernels: CUDA C++ that a user wrote, launched on a grid of blocks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tcl.backends.cuda_harness import TIMING, Device
from tcl.block_tuning.candidates import Block, LaunchShape, default_blocks, sizes_of
from tcl.block_tuning.target import LaunchTarget
from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.compile import Resources, occupancy
from tcl.codegen.devices.cupy_driver import WITHOUT_ASKING, cupy
from tcl.codegen.devices.gpu import GpuProfile, of_device
from tcl.codegen.options.knobs import Value
from tcl.common.errors import ArgumentError
from tcl.common.shown import shown
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.machine_lock import locked

Shared: TypeAlias = int | Callable[[Block, dict[str, Value]], int]
"""Bytes of dynamic shared memory of a block."""
Grid: TypeAlias = Callable[[Block, dict[str, Value]], Sequence[int]]
"""Blocks along x, y, z."""

LONGEST: Block = (1024, 1024, 64)
"""Threads of a block along x, y, z, at most; of all GPUs so far, as are the next."""
MOST_BLOCKS: Block = ((1 << 31) - 1, 65535, 65535)
_FIXED = 256
"""Threads of the block that is the default: enough to fill a multiprocessor that holds few blocks,
few enough for kernels of many registers."""
_NOTHING = 'extern "C" __global__ void nothing() {}'
_IN_BLOCK = {"block.x": 0, "block.y": 1, "block.z": 2}


class KernelDevice(Device):
    """A device on which users' kernels are measured."""

    def launch(
        self, kernel: Any, grid: Block, block: Block, arguments: Sequence[Any], shared: int
    ) -> None:
        """Launch a raw kernel; returns at once."""
        with self._stream:
            kernel(grid, block, tuple(arguments), shared_mem=shared)

    def synchronise(self) -> None:
        """Wait for everything on the device, whoever launched it."""
        self._runtime.deviceSynchronize()

    def capturing(self) -> bool:
        """Whether the caller's stream records a graph."""
        return bool(self._cuda.get_current_stream().is_capturing())

    def compiled(self, source: str, name: str) -> Any:
        return cupy().RawKernel(source, name)


class CupyOwn:
    """CuPy's arrays, and those of others that lie on a CUDA device."""

    def __init__(self, device: KernelDevice) -> None:
        self._package = cupy()
        self._device = device

    def is_array(self, value: object) -> bool:
        return hasattr(value, "__cuda_array_interface__")

    def interface(self, array: Any) -> dict[str, Any]:
        found: dict[str, Any] = array.__cuda_array_interface__
        return found

    def writable(self, array: Any) -> bool:
        return not array.__cuda_array_interface__["data"][1]

    def device_number(self, array: Any) -> int | None:
        """The device that it lies on; None if it does not say."""
        device = getattr(array, "device", None)
        found = getattr(device, "id", getattr(device, "index", None))
        return found if isinstance(found, int) else None

    def copy(self, array: Any) -> Any:
        return self._synchronised(self._package.array(array, copy=True))

    def restore(self, array: Any, copy: Any) -> None:
        self._package.asarray(array)[...] = copy
        self._synchronised(None)

    def fill(self, array: Any, value: float) -> None:
        self._package.asarray(array).fill(value)
        self._synchronised(None)

    def values(self, array: Any) -> Array:
        found: Array = self._package.asnumpy(array)
        return found

    def _synchronised(self, found: Any) -> Any:
        self._device.synchronise()
        return found


def this_device() -> tuple[GpuProfile, KernelDevice, CupyOwn, int]:
    """The current device: what it is like, how it runs kernels, its arrays, its number. Raises
    ``ArgumentError`` if there is none."""
    number = int(cupy("tuning a raw kernel").cuda.runtime.getDevice())
    profile = of_device(number)
    device = KernelDevice(number, profile)
    return profile, device, CupyOwn(device), number


class RawKernels(LaunchTarget):
    """A raw kernel on the current device, for one global size."""

    arrays: CupyOwn
    settings = replace(TIMING, sample=2e-5, single=True)
    """Launches are timed one by one, not in graphs."""

    def __init__(
        self,
        kernel: Any,
        name: str | None,
        sizes: Block,
        *,
        guarded: bool,
        grid: Grid | None,
        shared: Shared,
    ) -> None:
        """``kernel``: a ``RawKernel``, or a ``RawModule`` with the ``name`` of one in it. Raises
        ``ArgumentError``."""
        package = cupy("tuning a raw kernel")
        self._module = isinstance(kernel, package.RawModule)
        if self._module and name is None:
            raise ArgumentError("a RawModule has several kernels; select one with name=")
        if not self._module and name is not None:
            raise ArgumentError(
                f"name= selects a kernel of a RawModule, but this is the RawKernel {kernel.name}"
            )
        self._kernel = kernel
        self.name = str(name or kernel.name)
        self._sizes = sizes
        self._guarded = guarded
        self._grid, self._shared = grid, shared
        self._profile, self._device, self.arrays, self._number = this_device()
        self._built: dict[tuple[tuple[str, Value], ...], Any] = {}

    @property
    def source(self) -> str | None:
        """The text, options and all; of a file with machine code its hash."""
        kernel = self._kernel
        text = kernel.code
        if text is None:
            text = hashlib.sha256(Path(kernel.file_path).read_bytes()).hexdigest()
        return repr((text, self.name, kernel.options, kernel.backend))

    @property
    def device(self) -> str:
        return device_identity(self._profile)

    def blocks(self) -> tuple[Block, ...]:
        found = default_blocks(
            self._sizes, LONGEST, self._profile.threads_per_block, self._profile.warp
        )

        def far(block: Block) -> tuple[float, int]:
            return abs(math.log2(math.prod(block) / _FIXED)), -block[0]

        if not self._guarded:  # those that fit come first: the default has to
            found = tuple(b for b in found if self._divides(b)) or found
        first = min((b for b in found if b[0] <= 32 or len(b) == 1), key=far, default=found[0])
        return tuple(dict.fromkeys((first, *found)))

    def _divides(self, block: Block) -> bool:
        return all(n % b == 0 for n, b in zip(self._sizes, block, strict=True))

    def why_not_asked(self, candidate: LaunchShape) -> str | None:
        block, profile = candidate.block, self._profile
        threads = math.prod(block)
        if threads > profile.threads_per_block:
            return (
                f"{threads} threads are more than a block of {profile.name} can have "
                f"({profile.threads_per_block})"
            )
        for axis, longest, size in zip("xyz", LONGEST, block, strict=False):
            if size > longest:
                return f"{size} threads along {axis} are more than CUDA allows ({longest})"
        if not self._guarded and not self._divides(block):
            return (
                f"the global size {_unless_one(self._sizes)} is not a multiple of it, and with "
                "guarded=False the kernel would run beyond the end"
            )
        for axis, most, count in zip("xyz", MOST_BLOCKS, self._blocks(candidate), strict=False):
            if count > most:
                return f"{count} blocks along {axis} are more than CUDA allows ({most})"
        shared = self._shared_of(candidate)
        if shared > profile.shared_per_block:
            return (
                f"{shared} bytes of shared memory are more than a block of {profile.name} can "
                f"have ({profile.shared_per_block})"
            )
        return None

    def why_not(self, candidate: LaunchShape) -> str | None:
        """What the compiled kernel takes of a multiprocessor decides."""
        kernel = self._kernel_of(candidate)
        taken, threads = kernel.attributes, math.prod(candidate.block)
        if threads > taken["max_threads_per_block"]:
            return (
                f"{threads} threads are more than this kernel can have "
                f"({taken['max_threads_per_block']}) with {taken['num_regs']} registers each"
            )
        dynamic = self._shared_of(candidate)
        resources = Resources(self.name, taken["num_regs"], taken["shared_size_bytes"], 0, 0, 0)
        launch = Launch(self.name, 1, threads, dynamic, ())
        room = occupancy(resources, launch, self._profile)
        if room.blocks == 0:
            return (
                f"no block fits a multiprocessor of {self._profile.name}: too much of its "
                f"{' and '.join(room.limits)}"
            )
        _allow(kernel, dynamic)
        return None

    def _shared_of(self, candidate: LaunchShape) -> int:
        if isinstance(self._shared, int):
            return self._shared
        found = self._shared(candidate.block, dict(candidate.defines))
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise ArgumentError(
                f"shared_bytes returned {shown(found)} for block {candidate}; it must return a "
                "whole number of bytes"
            )
        return found

    def _blocks(self, candidate: LaunchShape) -> Block:
        if self._grid is None:
            return tuple(-(-n // b) for n, b in zip(self._sizes, candidate.block, strict=True))
        found = self._grid(candidate.block, dict(candidate.defines))
        return sizes_of(f"the grid for block {candidate}", found)

    def launched(self, candidate: LaunchShape) -> tuple[Block, int]:
        return self._blocks(candidate), self._shared_of(candidate)

    def launch(self, candidate: LaunchShape, arguments: Sequence[Any]) -> None:
        kernel, (grid, shared) = self._kernel_of(candidate), self.launched(candidate)
        _allow(kernel, shared)
        kernel(grid, candidate.block, tuple(arguments), shared_mem=shared)

    def check(self, arguments: Sequence[Any]) -> None:
        if self._device.capturing():
            raise ArgumentError(
                f"{self.name} cannot be tuned while a CUDA graph is captured; tune it before"
            )
        for k, value in enumerate(arguments):
            if not self.arrays.is_array(value):
                continue
            number = self.arrays.device_number(value)
            if number not in (self._number, None):
                raise ArgumentError(
                    f"argument {k} of {self.name} is on cuda:{number}, but cuda:{self._number} "
                    "was the current device when the tuner was created"
                )

    def bound(self, candidate: LaunchShape, arguments: Sequence[Any]) -> Run:
        kernel, (grid, shared) = self._kernel_of(candidate), self.launched(candidate)
        return partial(self._device.launch, kernel, grid, candidate.block, arguments, shared)

    def empty_launch(self) -> Callable[[], object]:
        kernel = self._device.compiled(_NOTHING, "nothing")
        return partial(self._device.launch, kernel, (1,), (1,), (), 0)

    def _kernel_of(self, candidate: LaunchShape) -> Any:
        """The kernel with a candidate's definitions, compiled when it is asked about."""
        defines = _expanded(candidate)
        if defines not in self._built:
            self._built[defines] = self._build(defines)
        return self._built[defines]

    def _build(self, defines: tuple[tuple[str, Value], ...]) -> Any:
        kernel = self._kernel
        if defines:
            if kernel.code is None:
                raise ArgumentError(
                    f"defines needs the source of {self.name}, but there is only machine code"
                )
            options = (*kernel.options, *(f"-D{name}={value}" for name, value in defines))
            settings = {
                "options": options,
                "backend": kernel.backend,
                "enable_cooperative_groups": kernel.enable_cooperative_groups,
            }
            if self._module:
                settings["name_expressions"] = kernel.name_expressions
                kernel = type(kernel)(code=kernel.code, **settings)
            else:
                return type(kernel)(kernel.code, self.name, **settings)
        return kernel.get_function(self.name) if self._module else kernel

    def synchronise(self) -> None:
        self._device.synchronise()

    def seconds(self, run: Run, calls: int) -> float:
        """By events around the kernel, with cold caches, as all kernels on a GPU are timed."""
        total = 0.0
        for _ in range(calls):
            self._device.flush()
            total += self._device.timed(run)
        return total / calls

    def alone(self) -> AbstractContextManager[None]:
        return locked(f"tcl-measuring-cuda-{self._number}")

    # A forked process cannot use the device, so that there is no ``trial``; and CUDA does not say
    # what ``others`` do.

    def lost(self) -> bool:
        try:
            self._device.synchronise()
            self._device.check()
        except RuntimeError:
            return True
        return False


def _allow(kernel: Any, shared: int) -> None:
    """Let a kernel have so much dynamic shared memory, which CUDA wants to be asked for."""
    if shared > max(WITHOUT_ASKING, kernel.max_dynamic_shared_size_bytes):
        kernel.max_dynamic_shared_size_bytes = shared


def _expanded(candidate: LaunchShape) -> tuple[tuple[str, Value], ...]:
    """Macros that stand for the block's own sizes have their numbers."""
    sizes = (*candidate.block, 1, 1)
    return tuple(
        (name, sizes[_IN_BLOCK[value]] if isinstance(value, str) and value in _IN_BLOCK else value)
        for name, value in candidate.defines
    )


def _unless_one(sizes: Block) -> int | Block:
    return sizes[0] if len(sizes) == 1 else sizes
