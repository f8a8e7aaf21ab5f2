"""What a compiled kernel takes of a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import Occupancy, fitting


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as the assembler says."""

    kernel: str
    registers: int
    """Per thread."""
    shared: int
    """Bytes per block that the kernel has in itself; those of ``Launch.shared`` come on top."""
    spill_stores: int
    """Bytes per thread that are written to memory for want of registers."""
    spill_loads: int
    stack: int
    """Bytes per thread."""


def occupancy(resources: Resources, launch: Launch, profile: GpuProfile) -> Occupancy:
    """How full a multiprocessor is of a kernel that was compiled."""
    shared = resources.shared + launch.shared
    return fitting(launch.threads, resources.registers, shared, profile)


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")


def read_resources(log: str) -> Iterator[Resources]:
    """What the assembler says of each kernel in its log, with ``-v``."""
    kernel = function = ""
    frames: dict[str, tuple[int, int, int]] = {}
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            kernel = found[1]
        elif found := _PROPERTIES.search(line):
            function = found[1]
        elif found := _FRAME.search(line):
            frames[function] = int(found[1]), int(found[2]), int(found[3])
        elif kernel and (found := _USED.search(line)):
            stack, stores, loads = frames.get(kernel, (0, 0, 0))
            shared, whole = _SHARED.search(line), _STACK.search(line)
            yield Resources(
                kernel=kernel,
                registers=int(found[1]),
                shared=int(shared[1]) if shared else 0,
                spill_stores=stores,
                spill_loads=loads,
                stack=int(whole[1]) if whole else stack,
            )
            kernel = ""
