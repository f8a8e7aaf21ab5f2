"""A stand-in for the CUDA driver: launches are written down, and nothing runs on any GPU.

What tests with it show is everything up to the binding: which kernels are launched, in which
order, on which stream and device, with which arguments. That CUDA then does what its manual says
is shown on a machine with a GPU only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tcl.codegen.devices.cupy_driver import WITHOUT_ASKING, Driver, ErrorRecord, Loaded


@dataclass(frozen=True)
class Launched:
    """A launch that was asked for."""

    kernel: str
    device: int
    blocks: int
    threads: int
    shared: int
    stream: int
    arguments: tuple[int, ...]


@dataclass
class Block:
    """Memory at an address."""

    ptr: int


@dataclass
class FakeDriver(Driver):
    """Loads nothing and runs ``effects``, by kernel, on the arguments of a launch."""

    arguments: Mapping[str, int]
    """How many each kernel takes."""
    effects: Mapping[str, Callable[[tuple[int, ...]], None]] = field(default_factory=dict)
    here: int = 0
    """The current device; -1: none was chosen."""
    launched: list[Launched] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    """Kernels that asked for more shared memory."""
    waits: list[int] = field(default_factory=list)
    """Streams that were waited for."""
    records: int = 0
    zeroed: list[int] = field(default_factory=list)
    """Bytes of memory that began with zeros."""
    cleared: list[tuple[int, int, int]] = field(default_factory=list)
    """Addresses, bytes and streams of what was cleared."""

    def __post_init__(self) -> None:
        self._names = list(self.arguments)

        def launch(kernel: int, *rest: int) -> None:
            assert len(rest) == 10
            blocks, *flat, shared, stream, at, extra = rest
            assert flat[:2] == [1, 1] and flat[3:] == [1, 1] and extra == 0
            name = self._names[kernel - 1]
            count = self.arguments[name]
            places = (ctypes.c_uint64 * count).from_address(at)
            values = tuple(ctypes.c_uint64.from_address(place).value for place in places)
            self.launched.append(Launched(name, self.here, blocks, flat[2], shared, stream, values))
            if name in self.effects:
                self.effects[name](values)

        self.launch = launch

    def current(self) -> int:
        return self.here

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        before, self.here = self.here, device
        try:
            yield
        finally:
            self.here = before

    def load(self, code: bytes, kernels: Mapping[str, int]) -> Loaded:
        self.asked |= {name: size for name, size in kernels.items() if size > WITHOUT_ASKING}
        return Loaded({name: 1 + self._names.index(name) for name in kernels}, code)

    def download(self, address: int, size: int, stream: int) -> bytearray:
        self.waits.append(stream)
        return bytearray(ctypes.string_at(address, size))

    def zeros(self, size: int) -> Block:
        self.zeroed.append(size)
        return Block(1 << 32)

    def clear(self, address: int, size: int, stream: int) -> None:
        self.cleared.append((address, size, stream))

    def record(self, words: int) -> ErrorRecord:
        self.records += 1
        memory = (ctypes.c_uint64 * words)()

        def read(stream: int) -> tuple[int, ...]:
            self.waits.append(stream)
            return tuple(memory)

        return ErrorRecord(ctypes.addressof(memory), read, memory)
