"""What a CPU is like, as data: the machine this runs on. ``known_cpus`` has others.

``TCL_CPU_FEATURES`` narrows the machine: to what a known processor has (``x86-64-v3``), or by
single features (``-avx512f``). Kernels then run on every machine that has what is left.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from tcl.codegen.devices import features as known_features
from tcl.codegen.devices.matrix_unit_permission import permitted
from tcl.common.closest import closest
from tcl.common.errors import ArgumentError, UnknownNameError
from tcl.common.forks import whole
from tcl.common.headroom import MEGABYTE, need_room
from tcl.grammar.syntax.types import ScalarType

VARIABLE = "TCL_CPU_FEATURES"
"""The environment variable that narrows the machine for the whole process."""

LINE = 64
"""Bytes of a cache line: what memory hands over at once, what threads need not share with each
other, and the widest vector."""

SHORTEST_STREAM = 16
"""Bytes of the shortest vector that processors can store past their caches."""


@dataclass(frozen=True, slots=True)
class CpuProfile:
    """A CPU: everything that scheduling and code generation know about it."""

    backend: ClassVar[Literal["cpu"]] = "cpu"
    """What makes kernels for it, as keys of tuning caches have it."""

    name: str
    """LLVM's name of the model. Features decide, not the name: LLVM mistakes some hosts."""
    features: str
    """LLVM's feature string, ``+avx2,-avx512f,...``."""
    triple: str
    """LLVM's target triple."""
    vector_bits: int
    cores: int
    """Of the whole machine."""
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    threads: int = 1
    """That a kernel is to run on."""
    title: str = ""
    """What people call it, and how it was narrowed: measured times depend on both."""
    emulated: str = ""
    """Features that the processor lacks and kernels may use none the less, as ``features``: their
    instructions are functions then, see ``tcl.codegen.cpu.emulated``. For tests."""

    def lanes(self, type_: ScalarType) -> int:
        """How many values of a type fill one vector register."""
        return max(1, self.vector_bits // 8 // type_.compute.itemsize)

    @property
    def architecture(self) -> str:
        """``x86_64``, ``aarch64``, or what else the triple begins with."""
        return known_features.architecture(self.triple)

    @property
    def present(self) -> frozenset[str]:
        """The LLVM features that are there, with those that they need, or emulated. What needs one
        that is said to be missing is missing, too, as it is for LLVM."""
        there, missing, emulated = (
            [f[1:] for f in text.split(",") if f.startswith(sign)]
            for text, sign in ((self.features, "+"), (self.features, "-"), (self.emulated, "+"))
        )
        found = known_features.without(known_features.with_needed(there), frozenset(missing))
        return found.union(emulated)

    def has(self, feature: str) -> bool:
        """Whether an LLVM feature is there."""
        return feature in self.present

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 16 if self.architecture == "x86_64" and self.vector_bits < 512 else 32

    @property
    def fused(self) -> bool:
        """Whether one instruction multiplies and adds, with one rounding."""
        return self.architecture != "x86_64" or bool({"fma", "fma4"} & self.present)

    @property
    def reads_ahead(self) -> bool:
        """Whether memory that is read in order comes in time by itself, at the ends of pages, too.
        AMD's processors, by the feature that they alone have: on Zen 3, sums of what had been asked
        for 2 KiB ahead were measured to take 1.1 to 1.2 times as long."""
        return "sse4a" in self.present

    @property
    def rounds(self) -> bool:
        """Whether one instruction rounds a float to an integer, in any direction."""
        return self.architecture != "x86_64" or "sse4.1" in self.present

    @property
    def converts_half(self) -> bool:
        """Whether one instruction converts between float16 and float32."""
        return self.architecture == "aarch64" or "f16c" in self.present


def vector_bits(architecture: str, present: frozenset[str]) -> int:
    """Of the longest vectors that kernels use where these features are present."""
    if architecture == "x86_64":
        return 512 if "avx512f" in present else 256 if "avx" in present else 128
    return 128


def host_cpu() -> CpuProfile:
    """The machine this runs on, as narrowed by ``TCL_CPU_FEATURES``. Raises ``CompileError`` if
    there is no room for LLVM, and ``ArgumentError`` for what the variable cannot say."""
    return _narrowed_host(os.environ.get(VARIABLE, "").strip())


@functools.lru_cache(maxsize=8)
def _narrowed_host(text: str) -> CpuProfile:
    return narrowed(_whole_host(), text) if text else _whole_host()


def narrowed(device: CpuProfile, text: str) -> CpuProfile:
    """A CPU without some of its features, as ``TCL_CPU_FEATURES`` says: names of known CPUs, which
    leave no more than they have, and features with a minus, by commas. Raises ``ArgumentError``."""
    from tcl.codegen.devices import known_cpus

    kind = device.architecture
    baseline = known_features.BASELINE.get(kind, frozenset())
    listed = {f[1:] for f in device.features.split(",") if f} | device.present
    kept = device.present
    said = set[str]()  # however names are written, as measured times are kept by it
    for word in sorted({w.strip() for w in text.split(",")}):
        if word.startswith("-"):
            feature = word[1:]
            known = listed | known_features.named(kind)
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
                f"{VARIABLE} takes features to leave out, as in -avx512f, and names of processors "
                f"to have no more than, as in x86-64-v3, by commas, not {word[:40]!r}"
            )
        if other.architecture != kind:
            raise ArgumentError(
                f"{VARIABLE}: {other.title} is {other.architecture}, and this machine is {kind}"
            )
        kept = known_features.without(kept, kept - other.present - baseline)
        said.add(other.title)
    if kept == device.present:
        return device
    gone = sorted((listed | known_features.named(kind)) - kept)
    return replace(
        device,
        # What is left out comes last, and takes along what LLVM's own tables let need it.
        features=",".join([*(f"+{f}" for f in sorted(kept)), *(f"-{f}" for f in gone)]),
        vector_bits=vector_bits(kind, kept),
        title=f"{device.title}, narrowed to {', '.join(sorted(said))}",
    )


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
