"""Kernels of tests on a real GPU, where ``TCL_TESTS_ON_GPU`` is set: in the place of emulated ones.

They are compiled for the device that is here, whatever device they were made for, and are loaded
and launched as those of calls are. Arguments lie as the emulator's arena has them: as aligned as
layouts promise and no more, with gaps around them in which nothing may be written. Launches have a
process of their own, as one that fails spoils it, and one that does not end is killed with it.

The variable names a file, to which a line is added for every run. ``TCL_TESTS_ON_GPU_UNTIL``: the
Unix time from which on no more kernels are run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import pytest

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import EmulationError, Order
from tcl.codegen.cuda.emulator.arena import GAP, POISON, Array, Bytes, arena_of
from tcl.codegen.cuda.run.compile import cubin
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.devices.cupy_driver import Driver, Memory
from tcl.codegen.devices.gpu import GpuProfile, of_device
from tcl.codegen.loopir import ir
from tcl.common.errors import CompileError
from tcl.workers.pool import WorkerDiedError, WorkerPool, WorkerTimeoutError

ON_GPU = os.environ.get("TCL_TESTS_ON_GPU", "")
UNTIL = float(os.environ.get("TCL_TESTS_ON_GPU_UNTIL", "inf"))
SECONDS = 20.0
"""After which a launch is thought not to end."""
SHARE = 10.0
"""Seconds of one check where time is short."""
DEVICE = 0
ALIGNED = 512
"""Memory begins at multiples of so many bytes."""


def time_is_up(since: float = np.inf) -> bool:
    """Whether no more kernels are to be run, of a check that began then."""
    now = time.time()
    return now > UNTIL or (np.inf > UNTIL and now - since > SHARE)


def note(outcome: str, what: str) -> None:
    """A line of the file."""
    file, _, test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0].partition("::")
    where = f"{file.rpartition('/')[2]}::{test}"
    line = "\t".join((outcome, where, " | ".join(what.split("\n"))))
    with open(ON_GPU, "a", encoding="utf-8") as notes:
        notes.write(f"{line[:3000]}\n")


class WatchedDriver(Driver):
    """The device, with what calls do not ask of it."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[tuple[Memory, int]] = []
        """Memory that holds zeros between launches, and its bytes."""

    def zeros(self, size: int) -> Memory:
        self.pieces.append((super().zeros(size), size))
        return self.pieces[-1][0]

    def allocate(self, size: int) -> Memory:
        memory: Memory = self._package.cuda.alloc(size)
        return memory

    def upload(self, address: int, values: Bytes) -> None:
        runtime = self._runtime
        runtime.memcpy(address, values.ctypes.data, values.nbytes, runtime.memcpyHostToDevice)


@dataclass(frozen=True)
class Held:
    """Poisoned memory with gaps around it."""

    driver: WatchedDriver
    whole: Memory
    size: int

    @staticmethod
    def new(driver: WatchedDriver, size: int) -> Held:
        held = Held(driver, driver.allocate(size + 2 * GAP + ALIGNED), size)
        driver.upload(held.ptr - GAP, np.full(size + 2 * GAP, POISON, np.uint8))
        return held

    @property
    def ptr(self) -> int:
        return -(-(self.whole.ptr + GAP) // ALIGNED) * ALIGNED

    def intact(self) -> bool:
        """Whether nothing was written to the gaps."""
        found = self.driver.download(self.ptr - GAP, self.size + 2 * GAP, 0)
        seen = np.frombuffer(found, np.uint8)
        return bool((seen[:GAP] == POISON).all() and (seen[-GAP:] == POISON).all())


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left."""

    memory: bytes
    """The arena's."""
    error: IndexError | None
    wrong: str
    """With memory that is no argument."""


def run_on(launcher: CudaLauncher, memory: Bytes, firsts: Sequence[int]) -> Ran:
    """Runs kernels on a copy of an arena, in which the arguments have these offsets."""
    driver = launcher.driver
    assert isinstance(driver, WatchedDriver)
    scratch: list[Held] = []

    def allocate(size: int) -> Memory:
        scratch.append(Held.new(driver, size))
        return scratch[-1]

    with driver.on(launcher.device):
        arena = Held.new(driver, memory.nbytes)
        driver.upload(arena.ptr, memory)
        error = None
        try:
            launcher([arena.ptr + first for first in firsts], 0, allocate)
        except IndexError as found:
            error = found
        left = bytes(driver.download(arena.ptr, memory.nbytes, 0))
        wrong = "" if all(h.intact() for h in scratch) else "memory beside scratch was overwritten"
        if any(any(driver.download(zeros.ptr, size, 0)) for zeros, size in driver.pieces):
            wrong = "memory that holds zeros between launches does not"
    return Ran(left, error, wrong)


@lru_cache(1)
def _launcher(module: CudaModule, code: bytes) -> CudaLauncher:
    """The kernels, whose runs one after the other count in the same memory."""
    return CudaLauncher(module, code, WatchedDriver(), DEVICE)


def _run(module: CudaModule, code: bytes, memory: Bytes, firsts: Sequence[int]) -> Ran:
    """In the process for it."""
    try:
        return run_on(_launcher(module, code), memory, firsts)
    except (RuntimeError, CompileError) as error:  # of CUDA: nothing runs in this process any more
        os.write(2, f"{type(error).__name__}: {error}".replace("\n", " ").encode())
        os._exit(1)


def _begin() -> None:
    driver = WatchedDriver()
    driver.check()
    with driver.on(DEVICE):
        driver.allocate(1)


@cache
def _process() -> WorkerPool:
    return WorkerPool(1, initializer=_begin, timeout=SECONDS)


@cache
def profile() -> GpuProfile:
    """The device that is here."""
    return _process().submit(of_device, DEVICE).result()


def fits(module: CudaModule) -> bool:
    """Whether the device has the threads and the memory that a module asks for."""
    here = profile()
    return all(
        launch.threads <= here.threads_per_block and launch.shared <= here.shared_per_block
        for launch in module.launches
    )


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A module, as ``Emulated`` has it."""

    module: CudaModule
    compiled: CudaModule
    """The one whose code it is: of all sizes, where they vary."""

    def run(self, arrays: Mapping[str, Array], order: Order = "forward", *, seed: int = 1) -> None:
        """As ``Emulated.run``. Orders are the device's own."""
        if time_is_up():
            pytest.skip("the time is up")
        if not fits(self.module):
            note("skipped", "more threads or shared memory than the device has")
            pytest.skip("more threads or shared memory than the device has")
        arena = arena_of(self.module, arrays)
        outer = [t for t in self.module.tensors if t.role is not ir.Role.SCRATCH]
        firsts = [arena.places[t.name].first for t in outer]
        begin = time.perf_counter()
        try:
            code = cubin(self.compiled, profile()).code
            compiled = time.perf_counter()
            ran = _process().submit(_run, self.module, code, arena.memory, firsts).result()
        except (CompileError, WorkerDiedError, WorkerTimeoutError) as error:
            raise EmulationError(f"on {profile().name}: {error}") from error
        end = time.perf_counter()
        note("ran", f"compiled in {compiled - begin:.3f} s, run in {end - compiled:.3f} s")
        before = arena.memory.copy()
        arena.memory[:] = np.frombuffer(ran.memory, np.uint8)
        changed = np.flatnonzero((arena.inside < 2) & (arena.memory != before))
        if changed.size and (place := arena.at(int(changed[0]))) is not None:
            raise EmulationError(f"tensor {place.name}, or memory beside it, was overwritten")
        if ran.wrong:
            raise EmulationError(ran.wrong)
        if ran.error is not None:
            raise ran.error
        for tensor in outer:
            if tensor.role is ir.Role.OUTPUT and 0 not in tensor.layout.extents:
                array, place = arrays[tensor.name], arena.places[tensor.name]
                array[...] = arena.elements(place, array.dtype)
