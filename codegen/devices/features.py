"""Features of processors by LLVM's names: which of them need others, and what is left without some.

What a feature needs is that of LLVM's tables, ``X86.td`` and ``AArch64Features.td``, and what every
processor with it has: LLVM was never tried without, and ends the process where it cannot go on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

BASELINE = {
    "x86_64": frozenset("64bit cmov cx8 fxsr mmx sse sse2".split()),
    "aarch64": frozenset("fp-armv8 neon".split()),
}
"""What every processor of an architecture has that kernels are made for."""

MASKED_STORES = "avx512vl"
"""With it, one plain instruction writes some of a vector's lanes."""

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
    "avx512f": "avx2 avx512cd f16c fma",
    "avx512cd": "avx512f",
    # Xeon Phi has none of these three, all others have all.
    "avx512bw": "avx512dq avx512f avx512vl",
    "avx512dq": "avx512bw",
    "avx512vl": "avx512bw",
    "avx512vpopcntdq": "avx512f",
    **dict.fromkeys(("avx512ifma", "avx512vnni", "avx512vp2intersect"), "avx512bw"),
    **dict.fromkeys(("avx512bf16", "avx512bitalg", "avx512vbmi", "avx512vbmi2"), "avx512bw"),
    "avx512fp16": "avx512bw",
    "avx10.1": "avx512bf16 avx512bitalg avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vnni "
    "avx512vpopcntdq",
    "avx10.2": "avx10.1",
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


def stated(text: str) -> dict[str, bool]:
    """Whether a string of features, as ``+avx2,-avx512f``, says that each is there. As for LLVM,
    the last word counts."""
    return {word[1:]: word[0] == "+" for word in text.split(",") if word}


def present(text: str) -> frozenset[str]:
    """The features that are there by such a string: with all that they need, and without those
    that need what is said not to be there."""
    said = stated(text)
    found = with_needed(feature for feature, there in said.items() if there)
    return without(found, {feature for feature, there in said.items() if not there})


def named(architecture: str) -> frozenset[str]:
    """The features of an architecture that ``_NEEDS`` knows."""
    baseline = BASELINE.get(architecture, frozenset())
    return baseline.union(f for f in _NEEDS if not baseline.isdisjoint(with_needed((f,))))


def of_hwcaps(cpuinfo: str) -> frozenset[str]:
    """The features that Linux's ``/proc/cpuinfo`` of an AArch64 machine lists."""
    lines = (x.partition(":")[2] for x in cpuinfo.splitlines() if x.startswith("Features"))
    words = set(next(lines, "").split())
    return frozenset(f for f, names in _OF_LINUX.items() if names <= words)
