"""Products of small matrices that one instruction of a CPU computes: the table of them.

A *fragment* adds a product of matrices, ``rows x k`` of one factor by ``k x columns`` of the other
one, to ``rows x columns`` sums, each in 32 bits. ``k`` is ``words x depth``: ``depth`` neighbours
of a reduction lie next to each other in a 32-bit word. A dot-product instruction is a fragment of
one row and one word, with a column for each lane of a vector. A matrix unit (AMX) multiplies
fragments of many rows, in registers of their own, each of up to 16 rows of 16 words. From Intel's
"Intrinsics Guide" and Arm's "Neon Intrinsics Reference".
"""

from __future__ import annotations

from collections.abc import Iterator

from tcl.codegen.devices.cpu import CpuProfile
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import (
    BFLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT32,
    ScalarType,
)


@dataclass(frozen=True, slots=True)
class Form:
    """A fragment's instruction for vectors of one length."""

    bits: int
    """Of a vector of sums."""
    intrinsic: str
    """LLVM's name of it."""
    needs: frozenset[str]
    """LLVM's features that a processor must have for it."""

    @property
    def lanes(self) -> int:
        """Sums in a vector."""
        return self.bits // 32


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one instruction multiplies and adds up."""

    instruction: str
    factors: tuple[ScalarType, ScalarType]
    """The types that it takes, in its order."""
    depth: int
    """Points of a reduction that it adds up."""
    sums: ScalarType
    """What it adds them up in; integers wrap around."""
    forms: tuple[Form, ...]
    """By length, longest first."""
    adds: bool = True
    """Whether it adds to what was summed up before, or that takes another instruction."""
    rows: int = 1
    columns: int | None = None
    """None: as many as a vector has lanes."""
    words: int = 1
    """Along the reduction, each with ``depth`` points."""

    def forms_of(self, device: CpuProfile) -> tuple[Form, ...]:
        """Those that a device has, longest first."""
        return tuple(
            f
            for f in self.forms
            if f.needs <= device.present and (self.rows > 1 or f.bits <= device.vector_bits)
        )

    @property
    def operations(self) -> int:
        """Instructions for one vector of sums."""
        return 1 if self.adds else 2

    def sums_up(self, type_: ScalarType) -> bool:
        """Whether it adds up in a type: integers of 32 bits of either sign are alike."""
        whole = (INT32, UINT32)
        return type_ == self.sums or (type_ in whole and self.sums in whole)


def fragments(device: CpuProfile, matrix: bool = False) -> Iterator[Fragment]:
    """The dot products that a device has, the best ones of the same depth first; or, as ``matrix``,
    the fragments that its matrix unit multiplies, all of the same rows, columns and words."""
    rows = _MATRIX if matrix else _ARM if device.architecture == "aarch64" else _X86
    return (f for f in rows if f.forms_of(device))


def fragment_of(
    device: CpuProfile, types: tuple[ScalarType, ScalarType], depth: int
) -> tuple[Fragment, bool]:
    """The fragment for such factors, and whether it takes them in the other order. ``LookupError``
    if there is none."""
    for fragment in fragments(device):
        if fragment.depth == depth and types in (fragment.factors, fragment.factors[::-1]):
            return fragment, types != fragment.factors
    raise LookupError(f"{device.name} multiplies no {types[0]} by {types[1]}, {depth} at once")


def _forms(*forms: tuple[int, str, str]) -> tuple[Form, ...]:
    """Forms, each by its bits, LLVM's name after ``llvm.`` and features."""
    return tuple(Form(bits, f"llvm.{name}", frozenset(n.split())) for bits, name, n in forms)


def _vnni(name: str, avx: str) -> tuple[Form, ...]:
    """An instruction of AVX512-VNNI that AVX-VNNI (``avx``) has as well, in shorter vectors."""
    return _forms(
        (512, f"x86.avx512.{name}.512", "avx512vnni"),
        (256, f"x86.avx512.{name}.256", avx),
        (256, f"x86.avx512.{name}.256", "avx512vnni avx512vl"),
        (128, f"x86.avx512.{name}.128", avx),
        (128, f"x86.avx512.{name}.128", "avx512vnni avx512vl"),
    )


def _int8(name: str) -> tuple[Form, ...]:
    return _forms(
        (512, f"x86.avx10.{name}.512", "avx10.2"),
        (256, f"x86.avx2.{name}.256", "avxvnniint8"),
        (128, f"x86.avx2.{name}.128", "avxvnniint8"),
    )


def _neon(
    name: str, factors: tuple[ScalarType, ScalarType], sums: ScalarType, types: str, feature: str
) -> Fragment:
    forms = _forms((128, f"aarch64.neon.{name}.{types}", feature))
    return Fragment(name, factors, 4 // factors[0].itemsize, sums, forms)


MATRIX_REGISTERS = 8
"""Of a matrix unit: each holds the sums of a fragment, or the part of a factor that it takes."""


def _tile(
    product: str, factors: tuple[ScalarType, ScalarType], depth: int, sums: ScalarType, feature: str
) -> Fragment:
    forms = _forms((512, f"x86.{product}", f"amx-tile {feature}"))
    return Fragment(product, factors, depth, sums, forms, rows=16, columns=16, words=16)


_MATRIX = (
    _tile("tdpbssd", (INT8, INT8), 4, INT32, "amx-int8"),
    _tile("tdpbsud", (INT8, UINT8), 4, INT32, "amx-int8"),
    _tile("tdpbusd", (UINT8, INT8), 4, INT32, "amx-int8"),
    _tile("tdpbuud", (UINT8, UINT8), 4, INT32, "amx-int8"),
    _tile("tdpbf16ps", (BFLOAT16, BFLOAT16), 2, FLOAT32, "amx-bf16"),
)
_X86 = (
    Fragment("vpdpbssd", (INT8, INT8), 4, INT32, _int8("vpdpbssd")),
    Fragment("vpdpbuud", (UINT8, UINT8), 4, INT32, _int8("vpdpbuud")),
    Fragment("vpdpbusd", (UINT8, INT8), 4, INT32, _vnni("vpdpbusd", "avxvnni")),
    Fragment("vpdpwssd", (INT16, INT16), 2, INT32, _vnni("vpdpwssd", "avxvnni")),
    Fragment(
        "vpmaddwd",
        (INT16, INT16),
        2,
        INT32,
        _forms(
            (512, "x86.avx512.pmaddw.d.512", "avx512bw"),
            (256, "x86.avx2.pmadd.wd", "avx2"),
            (128, "x86.sse2.pmadd.wd", "sse2"),
        ),
        adds=False,
    ),
    Fragment(
        "vdpbf16ps",
        (BFLOAT16, BFLOAT16),
        2,
        FLOAT32,
        _forms(
            (512, "x86.avx512bf16.dpbf16ps.512", "avx512bf16"),
            (256, "x86.avx512bf16.dpbf16ps.256", "avx512bf16 avx512vl"),
            (128, "x86.avx512bf16.dpbf16ps.128", "avx512bf16 avx512vl"),
        ),
    ),
)
_ARM = (
    _neon("sdot", (INT8, INT8), INT32, "v4i32.v16i8", "dotprod"),
    _neon("udot", (UINT8, UINT8), INT32, "v4i32.v16i8", "dotprod"),
    _neon("usdot", (UINT8, INT8), INT32, "v4i32.v16i8", "i8mm"),
    _neon("bfdot", (BFLOAT16, BFLOAT16), FLOAT32, "v4f32.v8bf16", "bf16"),
)
