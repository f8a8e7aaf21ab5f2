"""What a CPU is like, as data."""

from __future__ import annotations

from typing import ClassVar, Literal

from tcl.codegen.devices import features as known_features
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import ScalarType

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
    kind: ClassVar[Literal["CPU"]] = "CPU"

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
    def family(self) -> str:
        """What it has in common with CPUs that kernels are alike for."""
        return f"{self.architecture}-{self.vector_bits}"

    @property
    def identity(self) -> str:
        """The same text for all CPUs of its make, however many threads may be used, and another for
        every other. A learned model of this CPU alone has a file name made of it."""
        return f"{self.title or self.name}; {self.vector_bits}; {self.cores}"

    @property
    def present(self) -> frozenset[str]:
        """The LLVM features that are there, or emulated."""
        return known_features.present(self.features, self.emulated)

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
