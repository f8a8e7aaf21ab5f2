"""What a device is like, as data."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tcl.codegen.common.headroom import MEGABYTE, need_room
from tcl.codegen.devices.matrix_unit import permitted
from tcl.grammar.interrupts import deferred
from tcl.grammar.types import ScalarType

SHORTEST_STREAM = 16
"""Bytes of the shortest vector that processors can store past their caches."""


@dataclass(frozen=True, slots=True)
class CpuProfile:
    """A CPU: everything that scheduling and code generation know about it."""

    name: str
    """LLVM's name of the model. Features decide, not the name: LLVM mistakes some hosts."""
    features: str
    """LLVM's feature string, ``+avx2,-avx512f,...``."""
    triple: str
    """LLVM's target triple."""
    vector_bits: int
    cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    threads: int = 1
    """That a kernel is to run on."""
    emulated: str = ""
    """Features that the processor lacks and kernels may use none the less, as ``features``: their
    instructions are functions then, see ``tcl.codegen.cpu.emulated``. For tests."""

    def lanes(self, type_: ScalarType) -> int:
        """How many values of a type fill one vector register."""
        return max(1, self.vector_bits // 8 // type_.compute.itemsize)

    @property
    def present(self) -> frozenset[str]:
        """The LLVM features that are there, or emulated."""
        all_ = f"{self.features},{self.emulated}".split(",")
        return frozenset(f[1:] for f in all_ if f.startswith("+"))

    def has(self, feature: str) -> bool:
        """Whether an LLVM feature is there."""
        return feature in self.present


@functools.lru_cache(maxsize=1)
def host_cpu() -> CpuProfile:
    """The machine this runs on. Raises ``CompileError`` if there is no room for LLVM."""
    with deferred():  # an interrupted llvmlite may free something twice
        need_room("LLVM", 256 * MEGABYTE)
        import llvmlite.binding as llvm

        features = permitted(llvm.get_host_cpu_features())
        flags = {name for name, present in features.items() if present}
        sizes = dict(_caches())
        bound = hasattr(os, "sched_getaffinity")
        return CpuProfile(
            name=llvm.get_host_cpu_name(),
            features=",".join(f"{'+' if features[f] else '-'}{f}" for f in sorted(features)),
            triple=llvm.get_process_triple(),
            vector_bits=512 if "avx512f" in flags else 256 if "avx" in flags else 128,
            cores=len(os.sched_getaffinity(0)) if bound else os.cpu_count() or 1,
            l1_bytes=sizes.get(1, 32 << 10),
            l2_bytes=sizes.get(2, 512 << 10),
            l3_bytes=sizes.get(3, 8 << 20),
        )


def _caches() -> Iterator[tuple[int, int]]:
    """(level, bytes) of the data caches, where Linux tells."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (entry / "type").read_text().strip()
            size = (entry / "size").read_text().strip()
            level = int((entry / "level").read_text())
            if kind != "Instruction":
                yield level, int(size[:-1]) * units[size[-1]]
        except (OSError, ValueError, KeyError):
            continue
