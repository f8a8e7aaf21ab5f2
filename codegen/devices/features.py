"""Features of processors by LLVM's names: which of them need others, and what is left without some.

What a feature needs is that of LLVM's tables, ``X86.td`` and ``AArch64Features.td``, and what
every processor has that has the feature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

BASELINE = {
    "x86_64": frozenset("64bit cmov cx8 fxsr mmx sse sse2".split()),
    "aarch64": frozenset("fp-armv8 neon".split()),
}
"""What every processor of an architecture has that kernels are made for."""

MASKED_STORES = "avx512vl"
"""With it, one plain instruction writes some of a vector's lanes."""


def gathers_slowly(features: Collection[str]) -> bool:
    """Whether the gathers of a processor of x86-64 take longer than a load for each lane. AMD's
    (``sse4a``) are dozens of steps of microcode, 81 for 16 lanes on Zen 4 (uops.info). So are
    Intel's before Alder Lake and Sapphire Rapids (``avxvnni``) since its updates of 2023 (Intel,
    "Gather Data Sampling", CVE-2022-40982): on a Cascade Lake, 8 float64 of the first cache take
    1.7 times as long as loads, 16 float32 1.0 to 1.6 times."""
    return "sse2" in features and ("sse4a" in features or "avxvnni" not in features)


_PERMUTES = {4: (("avx2", 8), ("avx512f", 16)), 8: (("avx512vl", 4), ("avx512f", 8))}
"""Bytes of an element → elements of a register in which one instruction moves any of them to any
lane, and the feature that has it. AVX2 has none for 8 bytes."""

_NEEDS = {
    "sse2": "sse",
    "sse3": "sse2",
    "ssse3": "sse3",
    "sse4.1": "ssse3",
    "sse4.2": "sse4.1",
    "sse4a": "sse3",
    "avx": "sse4.2",
    "avx2": "avx",
    "f16c": "avx",
    "fma": "avx",
    "fma4": "avx sse4a",
    "vaes": "avx2 aes",
    "vpclmulqdq": "avx pclmul",
    "xop": "fma4",
    **dict.fromkeys(("avxifma", "avxneconvert", "avxvnni", "avxvnniint16", "avxvnniint8"), "avx2"),
    "avx512f": "avx2 f16c fma",
    **dict.fromkeys(("avx512cd", "avx512vpopcntdq"), "avx512f"),
    # Every processor with one of these three has all of them, and LLVM aborts where one is missing.
    "avx512bw": "avx512f avx512dq avx512vl",
    **dict.fromkeys(("avx512dq", "avx512vl"), "avx512bw"),
    **dict.fromkeys(("avx512bf16", "avx512bitalg", "avx512fp16", "avx512ifma"), "avx512bw"),
    **dict.fromkeys(("avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vp2intersect"), "avx512bw"),
    **dict.fromkeys(("amx-avx512", "amx-bf16", "amx-complex", "amx-fp16", "amx-fp8"), "amx-tile"),
    **dict.fromkeys(("amx-int8", "amx-movrs", "amx-tf32"), "amx-tile"),
    "neon": "fp-armv8",
    **dict.fromkeys(("bf16", "dotprod", "i8mm", "rdm"), "neon"),
    "fullfp16": "fp-armv8",
    "fp16fml": "fullfp16 neon",
    "sve": "fullfp16",
    "sve2": "sve",
}
"""Feature → those that it needs. No name stands here that means something on x86-64 and something
else on AArch64."""

_OF_LINUX = {
    "bf16": {"bf16"},
    "dotprod": {"asimddp"},
    "fp16fml": {"asimdfhm"},
    "fullfp16": {"fphp", "asimdhp"},
    "i8mm": {"i8mm"},
    "rdm": {"asimdrdm"},
    "sve": {"sve"},
    "sve2": {"sve2"},
}
"""Feature → what Linux calls it on AArch64 (its ``elf_hwcaps.rst``)."""


def architecture(triple: str) -> str:
    """The key of ``BASELINE`` for a target triple; its first part for any other architecture."""
    found = triple.partition("-")[0]
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)


def with_needed(features: Iterable[str]) -> frozenset[str]:
    """Features, and all that these need."""
    found, waiting = set[str](), list(features)
    while waiting:
        feature = waiting.pop()
        if feature not in found:
            found.add(feature)
            waiting += _NEEDS.get(feature, "").split()
    return frozenset(found)


def without(features: Iterable[str], left_out: Collection[str]) -> frozenset[str]:
    """Those of some features that need none that is left out."""
    return frozenset(f for f in features if with_needed((f,)).isdisjoint(left_out))


@lru_cache(maxsize=64)
def present(features: str, emulated: str) -> frozenset[str]:
    """The features that are there by a list such as ``+avx2,-fma``, with those that they need, and
    the emulated ones. What needs one that is said to be missing is missing, too, as it is for
    LLVM."""
    there, missing, added = (
        [f[1:] for f in text.split(",") if f.startswith(sign)]
        for text, sign in ((features, "+"), (features, "-"), (emulated, "+"))
    )
    return without(with_needed(there), frozenset(missing)).union(added)


def permuted(present: Collection[str], itemsize: int, row: int) -> list[int]:
    """Elements of the registers, the fewest first, that hold a row of so many and in which one
    instruction moves any of them to any lane. Elements of less than four bytes are made as wide."""
    found = _PERMUTES[max(4, itemsize)] if row > 1 else ()
    return [n for feature, n in found if feature in present and n >= row]


def features_of_architecture(architecture: str) -> frozenset[str]:
    """The features of an architecture that ``_NEEDS`` knows."""
    baseline = BASELINE.get(architecture, frozenset())
    return baseline.union(f for f in _NEEDS if not baseline.isdisjoint(with_needed((f,))))


def of_hwcaps(cpuinfo: str) -> frozenset[str]:
    """The features that Linux's ``/proc/cpuinfo`` of an AArch64 machine lists."""
    lines = (x.partition(":")[2] for x in cpuinfo.splitlines() if x.startswith("Features"))
    words = set(next(lines, "").split())
    return frozenset(f for f, names in _OF_LINUX.items() if names <= words)
