"""Running a module's kernels: all that a call does besides them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.devices.cupy_driver import Driver, Loaded, Memory
from tcl.codegen.loopir import ir
from tcl.grammar.ranges.sized import SizedDef

RECORD = 2
"""Words of the error record: 1 + the site, and the value that was out of range."""
_APART = 256
"""Scratch tensors begin at multiples of so many bytes, as what CUDA allocates does."""

Step: TypeAlias = tuple[int, int, int, int, int]
"""A kernel, its blocks, threads and shared memory, and where the addresses of its arguments lie."""


class CudaFrame:
    """What one call writes its arguments to. Made once and used again, as making it costs more
    than a launch."""

    __slots__ = ("_keep", "addresses", "at", "record", "steps")

    def __init__(self, launcher: CudaLauncher) -> None:
        module = launcher.module
        slots = {tensor.name: k for k, tensor in enumerate(module.tensors)}
        self.addresses = (ctypes.c_uint64 * (len(slots) + 1))()
        """Of inputs, outputs and scratch memory, in the module's order, then of the record."""
        self.at = start = ctypes.addressof(self.addresses)
        self.record = None
        if module.sites:
            self.record = launcher.driver.record(RECORD)
            self.addresses[len(slots)] = self.record.address
        steps: list[Step] = []
        keep: list[object] = []
        for launch in module.launches:
            places = [start + 8 * slots[name] for name in launch.tensors]
            if launch.sizes:  # of an int, the first four bytes are read
                sizes = (ctypes.c_int64 * len(launch.sizes))(*launch.sizes)
                keep.append(sizes)
                first = ctypes.addressof(sizes)
                places += range(first, first + 8 * len(sizes), 8)
            places += [start + 8 * len(slots)] * bool(module.sites)
            arguments = (ctypes.c_uint64 * len(places))(*places)
            keep.append(arguments)
            if launch.blocks:  # CUDA has no empty grids
                kernel = launcher.kernels[launch.name]
                at = ctypes.addressof(arguments)
                steps.append((kernel, launch.blocks, launch.threads, launch.shared, at))
        self.steps = tuple(steps)
        self._keep = keep


def loaded_module(module: CudaModule, code: bytes, driver: Driver, device: int) -> Loaded:
    """The kernels of a module, on a device. Raises ``CompileError`` for code that cannot be
    loaded."""
    shared: dict[str, int] = {}
    for launch in module.launches:
        shared[launch.name] = max(shared.get(launch.name, 0), launch.shared)
    with driver.on(device):
        return driver.load(code, shared)


_PIECES = 64
"""Pieces of zeros: as many calls may be on their way before one clears its own."""


class Zeros:
    """Memory that holds zeros between launches, in which kernels count the blocks that are done.

    A piece of it belongs to an address of scratch memory. Whoever allocates that gives it to one
    launch after the other, in the order of a stream or of a graph, or parts of sums would overwrite
    each other as well. So no two launches that may run at once count in the same piece.
    """

    __slots__ = ("_driver", "_free", "_memory", "_pieces", "_sizes")

    def __init__(self, driver: Driver, sizes: Mapping[int, int]) -> None:
        """``sizes``: bytes of each tensor that holds zeros, by its place among the addresses. On
        the current device."""
        self._driver, self._sizes = driver, sizes
        self._memory = driver.zeros(_PIECES * sum(sizes.values()))
        self._pieces: dict[int, int] = {}
        self._free = [self._memory.ptr + k * sum(sizes.values()) for k in range(_PIECES)]

    def give(self, addresses: ctypes.Array[ctypes.c_uint64], scratch: int, stream: int) -> None:
        """Sets the addresses of the tensors that hold zeros, for a launch on a stream whose scratch
        memory begins at ``scratch``. Where no piece is left they stay in that memory, and are
        cleared before."""
        try:
            place = self._pieces.get(scratch) or self._pieces.setdefault(scratch, self._free.pop())
        except IndexError:
            for slot, size in self._sizes.items():
                self._driver.clear(addresses[slot], size, stream)
            return
        for slot, size in self._sizes.items():
            addresses[slot] = place
            place += size


class CudaLauncher:
    """A module's kernels on one device, with frames for their calls. Safe to use from several
    threads at once.

    Frames lie in a list, from which a call takes one for as long as it runs: ``pop`` and
    ``append`` are atomic. A launch copies the arguments, so that a frame is free once all kernels
    are launched; with an error record it is when they have ended.
    """

    __slots__ = (
        *("_loaded", "_sized", "arguments", "device", "driver", "frames", "kernels", "module"),
        *("room", "zeros"),
    )

    def __init__(
        self,
        module: CudaModule,
        code: bytes | Loaded,
        driver: Driver,
        device: int,
        sized: SizedDef | None = None,
    ) -> None:
        """``code``: or kernels that are loaded already, which may serve several modules. ``sized``:
        the def, which errors show. Raises ``CompileError`` for code that cannot be loaded."""
        self._sized = sized
        if isinstance(code, bytes):
            code = loaded_module(module, code, driver, device)
        self._loaded = code
        self.module = module
        self.driver = driver
        self.device = device
        self.kernels = code.kernels
        self.frames: list[CudaFrame] = []
        scratch = [t for t in module.tensors if t.role is ir.Role.SCRATCH]
        self.arguments = len(module.tensors) - len(scratch)
        """Inputs and outputs."""
        self.room = tuple(-(-t.layout.bytes // _APART) * _APART for t in scratch)
        """Bytes of each scratch tensor."""
        places = zip(range(self.arguments, len(module.tensors)), scratch, self.room, strict=True)
        zeroed = {slot: size for slot, tensor, size in places if tensor.zeroed}
        with driver.on(device):
            self.zeros = Zeros(driver, zeroed) if zeroed else None

    def frame(self) -> CudaFrame:
        """A frame to fill; to be put back into ``frames`` after a call that went well. The device
        is the current one."""
        try:
            return self.frames.pop()
        except IndexError:
            return CudaFrame(self)

    def launch(
        self, frame: CudaFrame, stream: int, allocate: Callable[[int], Memory], wait: bool = True
    ) -> None:
        """Launch on the arguments in a frame, which is put back. The device is the current one.

        ``allocate`` gives memory on the device that may be used on the stream from then on.
        Waits for the kernels only if the module has sites: ``IndexError`` for a subscript that
        was out of range. Not with ``wait`` off, which is for kernels whose results are looked at.
        """
        if self.room:
            memory = allocate(sum(self.room))  # goes back when this returns, in stream order
            address = memory.ptr
            for slot, size in enumerate(self.room, self.arguments):
                frame.addresses[slot] = address
                address += size
            if self.zeros is not None:
                self.zeros.give(frame.addresses, memory.ptr, stream)
        launch = self.driver.launch
        for kernel, blocks, threads, shared, arguments in frame.steps:
            launch(kernel, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, 0)
        if wait and frame.record is not None:
            failed, value = frame.record.read(stream)
            if failed:  # the frame is not used again: the next one's record is zero
                site = self.module.sites[failed - 1]
                raise site.error(value - (value >> 63 << 64), self._sized)
        self.frames.append(frame)

    def __call__(
        self,
        addresses: Sequence[int],
        stream: int,
        allocate: Callable[[int], Memory],
        wait: bool = True,
    ) -> None:
        """Run on tensors at these addresses: inputs, then outputs. Nothing is checked but
        data-dependent subscripts; ``wait`` as in ``launch``."""
        with self.driver.on(self.device):
            frame = self.frame()
            for slot, address in enumerate(addresses):
                frame.addresses[slot] = address
            self.launch(frame, stream, allocate, wait)
