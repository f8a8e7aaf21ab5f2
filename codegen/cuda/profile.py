"""What a GPU is like, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """A GPU: everything that scheduling and code generation know about it."""

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
    registers_per_multiprocessor: int = 65536
    registers_per_thread: int = 255
    threads_per_block: int = 1024
    warp: int = 32

    @property
    def architecture(self) -> str:
        """``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    @property
    def async_copies(self) -> bool:
        """Whether ``cp.async`` is there."""
        return self.capability >= (8, 0)


H200 = GpuProfile("H200", (9, 0), 132, 2048, 32, 228 << 10, 227 << 10, 50 << 20, 4.8e12, 66.9e12)
