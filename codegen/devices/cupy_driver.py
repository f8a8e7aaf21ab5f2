"""CuPy, which is imported when CUDA is first asked for, and what it is used for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError, CompileError
from tcl.common.extras import installing


def cupy(what: str = "CUDA") -> Any:
    """The package ``cupy``. Raises ``ArgumentError`` for ``what`` if it is not there."""
    try:
        import cupy as package
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "cupy"
        why = "which is not installed" if missing else f"which cannot be imported: {error}"
        raise ArgumentError(
            f"{what} needs the package CuPy, {why}; install it with {installing('cuda')}"
        ) from None
    except OSError as error:  # it makes a folder, and does not start without it
        raise ArgumentError(
            f"{what} needs the package CuPy, which cannot have its cache folder: {error}; "
            "set CUPY_CACHE_DIR to a writable folder"
        ) from None
    return package


def nvrtc() -> Any:
    """CuPy's binding of NVRTC. Needs no driver. Raises ``ArgumentError`` if either is missing."""
    cupy("compiling for CUDA")
    from cupy.cuda import nvrtc as binding

    try:
        binding.getVersion()
    except (RuntimeError, ImportError, OSError):  # of cuda-pathfinder: it looked everywhere
        raise ArgumentError(
            "compiling for CUDA needs the library NVRTC, which was not found; "
            f"install it with {installing('cuda')}"
        ) from None
    return binding


class Driver:
    """What running kernels asks of CUDA, by CuPy's bindings. Devices are numbers, streams, kernels
    and memory addresses.

    ``launch`` and ``current`` are the bindings themselves: a call goes through them every time.
    """

    def __init__(self) -> None:
        package = cupy("running on a GPU")
        self._package = package
        self._runtime = package.cuda.runtime
        self._driver = package.cuda.driver
        self.launch: Callable[..., None] = self._driver.launchKernel
        """Takes a kernel, blocks and threads (each along x, y, z), bytes of shared memory, a
        stream, the address of the array of the arguments' addresses, and 0."""

    def check(self) -> None:
        """Raise ``ArgumentError`` if there is no GPU, or none that CuPy can use."""
        try:
            self._runtime.getDeviceCount()
        except RuntimeError as error:  # CuPy's own, which says what CUDA says
            raise ArgumentError(
                f"running on a GPU needs a GPU and a driver that CuPy can use: {error}"
            ) from None

    def current(self) -> int:
        """The device that launches go to in this thread; -1 if none was chosen yet."""
        try:
            found: int = self._driver.ctxGetDevice()
            return found
        except self._driver.CUDADriverError:
            return -1

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """A block in which launches go to a device.

        Not CuPy's own: for the device that a new thread starts with, that does nothing, and the
        thread's first launch then finds no context.
        """
        if self.current() == device:  # nothing to do, nor allowed while a graph is captured
            yield
            return
        before = self._runtime.getDevice()
        self._runtime.setDevice(device)
        self._runtime.free(0)
        try:
            yield
        finally:
            if before != device:
                self._runtime.setDevice(before)

    def load(self, code: bytes, kernels: Mapping[str, int]) -> Loaded:
        """Load a CUBIN on the current device. ``kernels`` holds names and the bytes of shared
        memory that each asks for when it is launched. Raises ``CompileError``."""
        try:
            module = self._package.cuda.function.Module()
            module.load(code)
            functions = {name: module.get_function(name) for name in kernels}
            for name, shared in kernels.items():
                pointer, driver = functions[name].ptr, self._driver
                if shared > WITHOUT_ASKING:
                    attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    driver.funcSetAttribute(pointer, attribute, shared)
                if 2 * shared > WITHOUT_ASKING:  # two blocks might get no more than one needs
                    attribute = driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
                    driver.funcSetAttribute(pointer, attribute, _ALL)
        except RuntimeError as error:
            raise CompileError(f"the compiled kernel cannot be loaded: {error}") from None
        return Loaded({name: f.ptr for name, f in functions.items()}, (module, functions))

    def download(self, address: int, size: int, stream: int) -> bytearray:
        """Bytes of the current device's memory, once all that a stream was given has ended."""
        found = bytearray(size)
        host = ctypes.addressof(ctypes.c_char.from_buffer(found))
        copy = self._runtime.memcpyDeviceToHost
        self._runtime.memcpyAsync(host, address, size, copy, stream)
        self._runtime.streamSynchronize(stream)
        return found

    def zeros(self, size: int) -> Memory:
        """So many zeros on the current device. Not of a pool, from which memory may still be in use
        on another stream."""
        memory: Memory = self._package.cuda.Memory(size)
        self.clear(memory.ptr, size, 0)
        self._runtime.streamSynchronize(0)
        return memory

    def clear(self, address: int, size: int, stream: int) -> None:
        """Sets bytes of the current device's memory to zero, in the order of a stream."""
        self._runtime.memsetAsync(address, 0, size, stream)

    def record(self, words: int) -> ErrorRecord:
        """Zeroed memory on the current device that can be read back."""
        size = 8 * words
        memory = self._package.cuda.alloc(size)
        pinned = self._package.cuda.alloc_pinned_memory(size)
        host = (ctypes.c_uint64 * words).from_address(pinned.ptr)
        self._runtime.memsetAsync(memory.ptr, 0, size, 0)
        self._runtime.streamSynchronize(0)
        copy = self._runtime.memcpyDeviceToHost

        def read(stream: int) -> Sequence[int]:
            self._runtime.memcpyAsync(pinned.ptr, memory.ptr, size, copy, stream)
            self._runtime.streamSynchronize(stream)
            return tuple(host)

        return ErrorRecord(memory.ptr, read, (memory, pinned))


_ALL = 100
"""Percent of the memory that a multiprocessor divides into cache and shared memory."""
WITHOUT_ASKING = 48 << 10
"""Bytes of shared memory that a kernel may have without an attribute that says so."""


class Memory(Protocol):
    """Memory on a device, for as long as this lives."""

    @property
    def ptr(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    kernels: Mapping[str, int]
    keep: object
    """What has to live as long as they are used."""


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A few words of device memory that kernels write to."""

    address: int
    read: Callable[[int], Sequence[int]]
    """Waits for all of a stream's work so far and gives the words."""
    keep: object
