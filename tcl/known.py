"""The best way that is known to map a def: from the tuning cache, else a heuristic default."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tcl.arguments import Array
from tcl.codegen.device import CpuProfile, host_cpu
from tcl.codegen.errors import OptionsError
from tcl.codegen.options import MappingOptions
from tcl.codegen.version import CODEGEN_VERSION
from tcl.grammar.canonical import canonical_text
from tcl.grammar.sized import SizedDef
from tcl.tuner.cache import ArrayLayout, CacheKey, TuningCache, default_path
from tcl.tuner.errors import CacheError
from tcl.warn import warn

DEFAULT = MappingOptions("mlp")
"""What is used when nothing is known: tiles and vectors where they apply."""


def cache_key(sized: SizedDef, arrays: Sequence[Array], threads: int = 1) -> CacheKey:
    """What measured times of this def on these inputs, with so many threads, depend on."""
    return CacheKey(
        definition=canonical_text(sized.checked),
        backend="cpu",
        inputs=tuple(ArrayLayout(a.shape, a.strides, a.dtype.name) for a in arrays),
        device=device_identity(replace(host_cpu(), threads=threads)),
        codegen_version=CODEGEN_VERSION,
    )


def best_known(sized: SizedDef, arrays: Sequence[Array], threads: int = 1) -> MappingOptions:
    """The best options that the user's cache has for this, else the heuristic default."""
    path = default_path()
    if path.exists():
        try:
            record = TuningCache(path).best(cache_key(sized, arrays, threads))
            if record is not None:
                return MappingOptions.from_json(record.options)
        except (CacheError, OptionsError) as error:
            warn(f"cached options are not used: {error}")
    return DEFAULT


def device_identity(device: CpuProfile) -> str:
    """What measured times depend on: model, vector width, cores, caches, and threads if there are
    several."""
    threads = "" if device.threads == 1 else f"; {device.threads} threads"
    return (
        f"{_model()}; {device.vector_bits}-bit vectors; {os.cpu_count()} cores; "
        f"L2 {device.l2_bytes >> 10} KiB{threads}"
    )


@functools.cache
def _model() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
