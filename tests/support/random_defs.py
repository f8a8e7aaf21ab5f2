"""Random defs of one kind beside the reference: with their defaults, with random options, on this
processor and on an older one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from comparing import check_cpu
from cpu_kernels import Array, fenced_copy, random_options, sized_of

from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions

OLDER = find("Haswell") or host_cpu()
DEVICES = (host_cpu(), OLDER if OLDER.present <= host_cpu().present else host_cpu())


def check_random_defs(
    draw: Callable[[random.Random], tuple[str, list[Array]]],
    seed: str,
    times: int,
    devices: Sequence[CpuProfile] = DEVICES,
) -> None:
    """So many defs, each with its inputs: as ``draw`` makes them."""
    rng = random.Random(seed)
    for _ in range(times):
        text, inputs = draw(rng)
        sized = sized_of(text, *inputs)
        after = rng.random() < 0.5
        fenced = [fenced_copy(a, after=after) for a in inputs]
        device = replace(rng.choice(devices), threads=rng.choice([1, 2]))
        for options in (MappingOptions("mlp"), random_options(rng, sized, device)):
            check_cpu(sized, fenced, options, device)
