"""The CPU this runs on. ``known_cpus`` has others.

``TCL_CPU_FEATURES`` narrows the machine: to what a known processor has (``x86-64-v3``), or by
single features (``-avx512f``). Kernels then run on every machine that has what is left.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.codegen.devices import features as known_features
from tcl.codegen.devices.cpu_profile import FEW_APART as FEW_APART
from tcl.codegen.devices.cpu_profile import LINE as LINE
from tcl.codegen.devices.cpu_profile import SHORTEST_STREAM as SHORTEST_STREAM
from tcl.codegen.devices.cpu_profile import CpuProfile as CpuProfile
from tcl.codegen.devices.cpu_profile import vector_bits
from tcl.codegen.devices.matrix_unit_permission import permitted
from tcl.codegen.devices.measured_memory import kept_memory
from tcl.common.closest import closest
from tcl.common.errors import ArgumentError, UnknownNameError
from tcl.common.forks import whole
from tcl.common.headroom import MEGABYTE, need_room
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl.codegen.devices import known_cpus
else:
    known_cpus = Lazy("tcl.codegen.devices.known_cpus")

VARIABLE = "TCL_CPU_FEATURES"
"""The environment variable that narrows the machine for the whole process."""


def host_cpu() -> CpuProfile:
    """The machine this runs on, as narrowed by ``TCL_CPU_FEATURES``. Raises ``CompileError`` if
    there is no room for LLVM, and ``ArgumentError`` for what the variable cannot say."""
    return _narrowed_host(os.environ.get(VARIABLE, "").strip())


@functools.lru_cache(maxsize=8)
def _narrowed_host(text: str) -> CpuProfile:
    found = narrowed(_whole_host(), text) if text else _whole_host()
    return replace(found, memory=kept_memory(found))


def narrowed(device: CpuProfile, text: str) -> CpuProfile:
    """A CPU without some of its features, as ``TCL_CPU_FEATURES`` says: names of known CPUs, which
    leave no more than they have, and features with a minus, by commas. Raises ``ArgumentError``."""
    kind = device.architecture
    baseline = known_features.BASELINE.get(kind, frozenset())
    listed = {f[1:] for f in device.features.split(",") if f} | device.present
    kept = device.present
    said = set[str]()  # however names are written, as measured times are kept by it
    for word in sorted({w.strip() for w in text.split(",")}):
        if word.startswith("-"):
            feature = word[1:]
            known = listed | known_features.features_of_architecture(kind)
            if feature not in known:
                near = closest(feature, known)
                hint = f"; did you mean -{near}?" if near else ""
                raise UnknownNameError(
                    f"{VARIABLE}: no {kind} processor has a feature {feature[:40]!r}{hint}"
                )
            if feature in baseline:
                raise ArgumentError(f"{VARIABLE}: kernels for {kind} need {feature}")
            kept = known_features.without(kept, {feature})
            said.add(word)
            continue
        other = known_cpus.find(word)
        if other is None:
            raise UnknownNameError(
                f"{VARIABLE} takes features to turn off, as in -avx512f, and names of "
                f"processors as limits, as in x86-64-v3, separated by commas, not {word[:40]!r}"
            )
        if other.architecture != kind:
            raise ArgumentError(
                f"{VARIABLE}: {other.title} is {other.architecture}, but this machine is {kind}"
            )
        kept = known_features.without(kept, kept - other.present - baseline)
        said.add(other.title)
    if kept == device.present:
        return device
    gone = sorted((listed | known_features.features_of_architecture(kind)) - kept)
    return replace(
        device,
        # What is left out comes last, and takes along what LLVM's own tables let need it.
        features=",".join([*(f"+{f}" for f in sorted(kept)), *(f"-{f}" for f in gone)]),
        vector_bits=vector_bits(kind, kept),
        title=f"{device.title}, narrowed to {', '.join(sorted(said))}",
    )


def forget_host() -> None:
    """Ask again when the machine is next asked for, as something of it was measured."""
    _narrowed_host.cache_clear()


@functools.lru_cache(maxsize=1)
def _whole_host() -> CpuProfile:
    with whole():  # an interrupted llvmlite may free something twice
        need_room("LLVM", 256 * MEGABYTE)
        import llvmlite.binding as llvm

        name, triple = llvm.get_host_cpu_name(), llvm.get_process_triple()
        listed = permitted(llvm.get_host_cpu_features())
    text = ",".join(f"{'+' if there else '-'}{f}" for f, there in sorted(listed.items()))
    kind = known_features.architecture(triple)
    if kind == "aarch64":  # LLVM passes over some of what Linux tells
        more = sorted(known_features.of_hwcaps(_cpuinfo()))
        text = ",".join([text, *(f"+{f}" for f in more if not listed.get(f))]).strip(",")
    sizes = dict(_caches())
    found = CpuProfile(
        name=name,
        features=text,
        triple=triple,
        vector_bits=0,
        cores=os.cpu_count() or 1,
        l1_bytes=sizes.get(1, 32 << 10),
        l2_bytes=sizes.get(2, 512 << 10),
        l3_bytes=sizes.get(3, 8 << 20),
        title=_title(name),
    )
    return replace(found, vector_bits=vector_bits(kind, found.present))


def _cpuinfo() -> str:
    """What Linux tells of the processor; nothing elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _title(name: str) -> str:
    """What people call this processor; ``name`` is LLVM's, by which AArch64 is known."""
    for line in _cpuinfo().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    general = platform.processor() or platform.machine()
    return f"{general} {name}" if general in ("aarch64", "arm", "arm64") else general


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
