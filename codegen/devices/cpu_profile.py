"""What a CPU is like, as data."""

from __future__ import annotations

from typing import ClassVar, Literal

from tcl.codegen.devices import features as known_features
from tcl.codegen.devices.measured_memory import NEVER, MeasuredMemory
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import ScalarType

LINE = 64
"""Bytes of a cache line: what memory hands over at once, what threads need not share with each
other, and the widest vector."""
FEW_APART = 6
"""Elements that lanes are apart, at most, to be taken out of whole vectors of what lies between. On
a Cascade Lake, this takes .8 of the time of single bytes six apart, .97 of floats, and of floats
eight apart 1.06 to 1.3."""

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
    memory: MeasuredMemory | None = None
    """What memory and caches are like, where that was measured on the machine itself."""
    emulated: str = ""
    """Features that the processor lacks and kernels may use none the less, as ``features``: their
    instructions are functions then, by ``object_code.compile.emulating``. For tests."""

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
        if self.architecture != "x86_64" or self.vector_bits == 512:
            return 32
        return 32 if self.has("avx512vl") else 16

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
    def adds_beside(self) -> bool:
        """Whether other units add floats than those that multiply them: AMD's processors since Zen
        (its software optimisation guides of families 17h and 19h: pipes 0 and 1 multiply, 2 and 3
        add), in contrast to Intel's and to AMD's before, which have FMA4."""
        return {"sse4a", "avx2"} <= self.present and not self.has("fma4")

    @property
    def streamed_from(self) -> int:
        """Bytes of results from which on it pays to write them past the caches, which pass over
        what they would have to read first.

        Where it was not measured: results often have an operand as large as they are, and half of
        the last cache is what a core was measured to have of it beside others. On Zen 4, whose
        cores share 32 MB, pointwise work takes .98 of the time from 8 MB on, .7 from 12 MB, .5 from
        16 MB, and 1.25 times as long at 4 MB. Machines report all of a last cache that is shared by
        many cores, of which one has but a part: then how large the second one is says more. Arm's
        cores see by themselves that whole lines are written, which they then do not read first
        ("write streaming mode" in the manuals of its Neoverse cores), and store past the caches in
        halves of a vector: nothing is gained by it there."""
        if self.memory is not None:
            return self.memory.streamed_from
        if self.architecture == "aarch64":
            return NEVER
        return max(8 * self.l2_bytes, min(self.l3_bytes // 4, 16 << 20))

    @property
    def peeled_vectors(self) -> int:
        """Vectors of a row, as long as cache lines, from which on it pays in the caches that they
        begin on boundaries, as each would lie in two lines else, and the ends of rows take a few
        vectors more. On Zen 4, rows of 96 vectors take .88 of the time, of 16 as long as without,
        of 6 from 1.0 to 1.18 times as long; on a Cascade Lake, rows of 50 and 54 take .8 to .9, of
        24 from .9 to 1.0, of 10 from .9 to 1.2; on Sapphire Rapids rows of 6 take .71."""
        if self.memory is not None:
            return 4 if self.memory.boundary_gain > 1.05 else 32
        # On Zen 5, rows of 100 floats take 1.1 to 1.2 times as long so; Zen 4 stores halves.
        return 32 if self.tries_halves else 4

    @property
    def halves_vectors(self) -> bool:
        """Whether vectors of 512 bits are worked on in halves: an operation takes twice as long as
        on one of 256 bits, and a store that lies in two cache lines no longer than any. Zen 4,
        which was measured, in contrast to Zen 5 (AMD's optimisation guides of both)."""
        return self.vector_bits == 512 and self.has("sse4a") and not self.has("avx512vp2intersect")

    @property
    def tries_halves(self) -> bool:
        """Whether vectors of half a cache line may be faster than longer ones where nothing is
        reduced. AMD's cores store two of them at once, and only every second one lies in two lines.
        On Zen 5, frames and mosaics of 16-bit pixels take .7 to .88 of the time."""
        return self.vector_bits == 512 and self.has("sse4a")

    @property
    def slows_for_wide_vectors(self) -> bool:
        """Whether a core lowers its clock for a while after any vector of 512 bits, and so makes
        all that follows slower: Intel's Skylake-SP and Cascade Lake (frequency "licences" in
        Intel's specification updates of both; later ones lower it by far less). On Cascade Lake, a
        histogram that 16 lanes cleared took 1.15 times as long."""
        intel = self.architecture == "x86_64" and not self.has("sse4a")
        return intel and self.vector_bits == 512 and not self.has("avx512vbmi")

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
