"""What GPUs are like, as data: named ones from their data sheets, and the devices of this machine.

What follows from the compute capability is that of the CUDA programming guide's table of technical
specifications; ``tests/codegen/cuda/test_cuda_profile.py`` compares it with the table that comes
with CuPy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from tcl.codegen.devices.cupy_driver import cupy
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError

SHARED_LINE = 128
"""Bytes: all banks of shared memory once. Panels begin at multiples of it."""


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """A GPU: everything that scheduling and code generation know about it."""

    backend: ClassVar[Literal["cuda"]] = "cuda"
    """What makes kernels for it, as keys of tuning caches have it."""
    kind: ClassVar[Literal["GPU"]] = "GPU"
    threads: ClassVar[None] = None
    """A kernel runs on no threads of the host."""

    name: str
    capability: tuple[int, int]
    """(9, 0) for sm_90."""
    multiprocessors: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    shared_per_multiprocessor: int
    """Bytes."""
    shared_per_block: int
    """Bytes that a block may have, with the opt-in."""
    l2_bytes: int
    memory_bytes_per_second: float
    """Peak of the data sheet."""
    float32_flops: float
    """Peak of the data sheet, without tensor cores."""
    tensor_flops: float
    """Peak of the data sheet for 16-bit floats added up in float32, not sparse."""
    tf32_flops: float
    """Likewise for tf32; 0 where there is none."""
    registers_per_multiprocessor: int = 65536
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    warp: int = 32
    specific: bool = False
    """Whether code is built for this architecture alone, with what no later one is sure to have:
    ``sm_90a``."""

    @property
    def architecture(self) -> str:
        """``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}{'a' * self.specific}"

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    @property
    def family(self) -> str:
        """What it has in common with GPUs that kernels are alike for."""
        return self.architecture

    @property
    def identity(self) -> str:
        """The same text for all GPUs of its make, another for every other: by the name of its data
        sheet where that is known, as drivers spell names differently. A learned model of this GPU
        alone has a file name made of it."""
        sheet = known(self.name, self.architecture, self.multiprocessors) or self
        return f"{sheet.name}; {self.architecture}; {self.multiprocessors}"

    @property
    def async_copies(self) -> bool:
        """Whether ``cp.async`` is there."""
        return self.capability >= (8, 0)

    @property
    def shared_reserved(self) -> int:
        """Bytes of shared memory that the system takes for each block."""
        return 1024 if self.capability >= (8, 0) else 0

    @property
    def shared_unit(self) -> int:
        """Shared memory is given to blocks in multiples of so many bytes."""
        return 128 if self.capability >= (8, 0) else 256

    @property
    def idle_sums(self) -> bool:
        """Whether threads without a part in a sum add up what the first ones do, which is stored
        nowhere: from sm_100 on, NVRTC 13.5 crashes on some sums that not all threads take part
        in."""
        return self.capability >= (10, 0)

    @property
    def float32_lanes(self) -> int:
        """Multiplications and additions in float32 that a multiprocessor begins in a cycle."""
        return 64 if self.capability in ((7, 5), (8, 0)) else 128

    @property
    def float64_lanes(self) -> int:
        """Likewise in float64."""
        return {(8, 0): 32, (9, 0): 64, (10, 0): 64}.get(self.capability, 2)

    @property
    def clock(self) -> float:
        """Cycles of a multiprocessor in a second, those of the data sheet's peak."""
        return self.float32_flops / (2 * self.float32_lanes * self.multiprocessors)

    @property
    def warps_per_multiprocessor(self) -> int:
        """How many warps a multiprocessor holds at once."""
        return self.threads_per_multiprocessor // self.warp


_KIB, _MIB = 1 << 10, 1 << 20

_LIMITS: Mapping[tuple[int, int], tuple[int, int, int]] = {
    (7, 5): (1024, 16, 64 * _KIB),
    (8, 0): (2048, 32, 164 * _KIB),
    (8, 6): (1536, 16, 100 * _KIB),
    (8, 9): (1536, 24, 100 * _KIB),
    (9, 0): (2048, 32, 228 * _KIB),
    (10, 0): (2048, 32, 228 * _KIB),
    (12, 0): (1536, 24, 100 * _KIB),
}
"""Threads, blocks and bytes of shared memory of a multiprocessor, by compute capability."""


def _gpu(
    name: str,
    capability: tuple[int, int],
    multiprocessors: int,
    l2_bytes: int,
    gigabytes: float,
    teraflops: tuple[float, float, float],
) -> GpuProfile:
    """A GPU of the table: per second, gigabytes, and teraflops of float32, of 16-bit floats on
    tensor cores and of tf32."""
    threads, blocks, shared = _LIMITS[capability]
    return GpuProfile(
        name=name,
        capability=capability,
        multiprocessors=multiprocessors,
        threads_per_multiprocessor=threads,
        blocks_per_multiprocessor=blocks,
        shared_per_multiprocessor=shared,
        shared_per_block=shared - (1024 if capability >= (8, 0) else 0),
        l2_bytes=l2_bytes,
        memory_bytes_per_second=gigabytes * 1e9,
        float32_flops=teraflops[0] * 1e12,
        tensor_flops=teraflops[1] * 1e12,
        tf32_flops=teraflops[2] * 1e12,
    )


T4 = _gpu("T4", (7, 5), 40, 4 * _MIB, 320, (8.1, 65, 0))
A100 = _gpu("A100", (8, 0), 108, 40 * _MIB, 2039, (19.5, 312, 156))
RTX_3090 = _gpu("RTX 3090", (8, 6), 82, 6 * _MIB, 936, (35.6, 71, 35.6))
RTX_4090 = _gpu("RTX 4090", (8, 9), 128, 72 * _MIB, 1008, (82.6, 165.2, 82.6))
L4 = _gpu("L4", (8, 9), 58, 48 * _MIB, 300, (30.3, 121, 60))
H100 = _gpu("H100", (9, 0), 132, 50 * _MIB, 3350, (66.9, 989.4, 494.7))
H200 = _gpu("H200", (9, 0), 132, 50 * _MIB, 4800, (66.9, 989.4, 494.7))
B200 = _gpu("B200", (10, 0), 148, 126 * _MIB, 8000, (75, 2250, 1125))
RTX_5090 = _gpu("RTX 5090", (12, 0), 170, 96 * _MIB, 1792, (104.8, 209.5, 104.8))

PROFILES: tuple[GpuProfile, ...] = (
    *(T4, A100, RTX_3090, RTX_4090, L4, H100, H200, B200, RTX_5090),
)
"""The GPUs that are known by name; the first of a compute capability stands for it."""


def find(name: str) -> GpuProfile | None:
    """The profile of a GPU by its name (``h200``, ``rtx 4090``), by an architecture (``sm_80``:
    the first GPU that has it; ``sm_90a``: built for it alone), or of a device of this machine
    (``cuda:0``); None if nothing is called that. Raises ``ArgumentError`` for a device that is not
    here."""
    wanted = _folded_name(name)
    device = re.fullmatch(r"cuda(?::([0-9]+))?", name.strip().lower())
    if device:
        return of_device(int(device[1] or 0))
    for known in PROFILES:
        if wanted in (_folded_name(known.name), _folded_name(known.architecture)):
            return known
        if wanted == _folded_name(known.architecture) + "a" and known.capability >= (9, 0):
            return replace(known, specific=True)
    return None


def _folded_name(name: str) -> str:
    """A name without what people write one way or another."""
    return re.sub(r"nvidia|geforce|tesla|[\s_-]", "", name.lower())


def device_count() -> int:
    """The CUDA devices of this machine: 0 too if there is no driver or no CuPy."""
    try:
        return int(cupy().cuda.runtime.getDeviceCount())
    except (ArgumentError, RuntimeError):
        return 0


def of_device(number: int = 0) -> GpuProfile:
    """A device of this machine. What it says itself is taken; peaks are those of its data sheet if
    it is a known GPU, else follow from its clocks and widths. Raises ``ArgumentError``."""
    try:
        runtime = cupy("finding one").cuda.runtime
    except ArgumentError as error:
        raise ArgumentError(f"there is no device cuda:{number} here: {error}") from None
    try:
        count = int(runtime.getDeviceCount())
    except RuntimeError as error:  # such as that the driver is older than CuPy's CUDA
        raise ArgumentError(
            f"there is no device cuda:{number} here; CuPy finds no driver for it: {error}"
        ) from None
    if number >= count:
        why = f"the last is cuda:{count - 1}" if count else "CuPy finds no GPU"
        raise ArgumentError(f"there is no device cuda:{number} here; {why}")
    title = runtime.getDeviceProperties(number)["name"].decode()
    attributes = {
        name: runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), number)
        for name in _ATTRIBUTES
    }
    major, minor = (runtime.deviceGetAttribute(which, number) for which in _CAPABILITY)
    return device_line(title, (major, minor), attributes)


_CAPABILITY = (75, 76)
"""``cudaDevAttrComputeCapabilityMajor`` and ``Minor``, which CuPy has no names for."""
_ATTRIBUTES = (
    *("MultiProcessorCount", "MaxThreadsPerMultiProcessor", "MaxBlocksPerMultiprocessor"),
    *("MaxSharedMemoryPerMultiprocessor", "MaxSharedMemoryPerBlockOptin", "L2CacheSize"),
    *("MaxRegistersPerMultiprocessor", "MaxThreadsPerBlock", "WarpSize", "ClockRate"),
    *("GlobalMemoryBusWidth", "MemoryClockRate"),
)


def known(title: str, architecture: str, multiprocessors: int) -> GpuProfile | None:
    """The profile of the data sheet of a device, by what its driver calls it (``NVIDIA H200``), its
    architecture and multiprocessors; None if it is not among those that are known."""
    words = set(re.split(r"[\s_-]+", title.upper()))
    about = architecture.removesuffix("a"), multiprocessors
    alike = (p for p in PROFILES if (p.architecture, p.multiprocessors) == about)
    return next((p for p in alike if words.issuperset(p.name.upper().split())), None)


def device_line(
    title: str, capability: tuple[int, int], attributes: Mapping[str, int]
) -> GpuProfile:
    """A device by its name, compute capability and attributes, as the driver gives them. Raises
    ``ArgumentError`` for one that is too old."""
    if capability < PROFILES[0].capability:
        raise ArgumentError(
            f"{title} has compute capability {capability[0]}.{capability[1]}; "
            f"{PROFILES[0].capability[0]}.{PROFILES[0].capability[1]} is the minimum"
        )
    count = attributes["MultiProcessorCount"]
    base = max((p for p in PROFILES if p.capability <= capability), key=lambda p: p.capability)
    found = known(title, f"sm_{capability[0]}{capability[1]}", count)
    measured = replace(
        found or base,
        name=title,
        capability=capability,
        multiprocessors=count,
        threads_per_multiprocessor=attributes["MaxThreadsPerMultiProcessor"],
        blocks_per_multiprocessor=attributes["MaxBlocksPerMultiprocessor"],
        shared_per_multiprocessor=attributes["MaxSharedMemoryPerMultiprocessor"],
        shared_per_block=attributes["MaxSharedMemoryPerBlockOptin"],
        l2_bytes=attributes["L2CacheSize"],
        registers_per_multiprocessor=attributes["MaxRegistersPerMultiprocessor"],
        threads_per_block=attributes["MaxThreadsPerBlock"],
        warp=attributes["WarpSize"],
    )
    return measured if found else _with_peaks(measured, base, attributes)


def _with_peaks(
    measured: GpuProfile, base: GpuProfile, attributes: Mapping[str, int]
) -> GpuProfile:
    """Peaks of a device whose data sheet is not at hand: two operations per core and clock, two
    transfers per clock of the memory, tensor cores in proportion to the nearest known GPU."""
    flops = (
        2e3 * measured.float32_lanes * measured.multiprocessors * attributes["ClockRate"]
    )  # the rate is in kHz
    width = attributes["GlobalMemoryBusWidth"] / 8
    share = flops / base.float32_flops
    return replace(
        measured,
        float32_flops=flops,
        tensor_flops=base.tensor_flops * share,
        tf32_flops=base.tf32_flops * share,
        memory_bytes_per_second=2e3 * attributes["MemoryClockRate"] * width,
    )
