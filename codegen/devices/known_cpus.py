"""CPUs that are known by name, from their data sheets, for machines that are not here.

LLVM's names and features are those of its tables ``X86.td`` and ``AArch64Processors.td``; the
levels of x86-64 are those of the processor supplement of its System V ABI. Of features there are
those that generated code can use. Cores and caches are those of one model of a line, which is named
beside it: Intel's from its product pages, AMD's from its EPYC data sheets, Arm's from the technical
reference manuals of its cores and the pages of those who sell machines with them. The third cache
is what one core reaches: on AMD's, that of its complex.
"""

from __future__ import annotations

import re
from functools import partial

from tcl.codegen.devices.cpu_profile import CpuProfile, vector_bits
from tcl.codegen.devices.features import BASELINE, with_needed

_KIB, _MIB = 1 << 10, 1 << 20

_TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}

_V2 = "crc32 cx16 popcnt sahf sse4.2"
_V3 = f"{_V2} avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512vl"
_SKYLAKE = f"{_V3} adx aes pclmul"
_SKYLAKE_SP = f"{_V4} adx aes pclmul"
_CASCADE_LAKE = f"{_SKYLAKE_SP} avx512vnni"
_ICE_LAKE = (
    f"{_CASCADE_LAKE} avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vpopcntdq gfni sha vaes "
    "vpclmulqdq"
)
_SAPPHIRE_RAPIDS = f"{_ICE_LAKE} amx-bf16 amx-int8 avx512bf16 avx512fp16 avxvnni"
_ZEN2 = f"{_SKYLAKE} sha sse4a"
_ZEN3 = f"{_ZEN2} vaes vpclmulqdq"
_ZEN4 = f"{_ICE_LAKE} avx512bf16 sse4a"
_ZEN5 = f"{_ZEN4} avx512vp2intersect avxvnni"
_NEOVERSE_N1 = "aes crc dotprod fullfp16 lse rcpc rdm sha2"
_NEOVERSE_V1 = f"{_NEOVERSE_N1} bf16 fp16fml i8mm sve"
_NEOVERSE_V2 = f"{_NEOVERSE_V1} sve2"
_M1 = f"{_NEOVERSE_N1} fp16fml sha3"
_M2 = f"{_M1} bf16 i8mm"


def _cpu(
    title: str,
    name: str,
    features: str,
    cores: int,
    caches: tuple[float, float, float],
    triple: str = _TRIPLES["x86_64"],
) -> CpuProfile:
    """A CPU of the table: LLVM's name, features besides those of every processor of its kind, and
    caches in KiB, KiB and MiB."""
    kind = "aarch64" if triple.startswith(("aarch64", "arm64")) else "x86_64"
    present = with_needed((*BASELINE[kind], *features.split()))
    return CpuProfile(
        name=name,
        features=",".join(f"+{f}" for f in sorted(present)),
        triple=triple,
        vector_bits=vector_bits(kind, present),
        cores=cores,
        l1_bytes=int(caches[0] * _KIB),
        l2_bytes=int(caches[1] * _KIB),
        l3_bytes=int(caches[2] * _MIB),
        title=title,
    )


_arm = partial(_cpu, triple=_TRIPLES["aarch64"])


def _apple(title: str, name: str, features: str, cores: int, l2_mib: int) -> CpuProfile:
    """A core of the fast kind. Its cluster shares the second cache, all of the chip the third."""
    caches = (128, l2_mib * 1024, 8)
    return _cpu(title, name, features, cores, caches, "arm64-apple-darwin")


PROFILES: tuple[CpuProfile, ...] = (
    # No model in particular; caches such as most of them have.
    _cpu("x86-64", "x86-64", "", 4, (32, 256, 8)),
    _cpu("x86-64-v2", "x86-64-v2", _V2, 4, (32, 256, 8)),
    _cpu("x86-64-v3", "x86-64-v3", _V3, 4, (32, 512, 8)),
    _cpu("x86-64-v4", "x86-64-v4", _V4, 8, (32, 1024, 16)),
    _cpu("Haswell", "haswell", f"{_V3} pclmul", 4, (32, 256, 8)),  # Core i7-4770
    _cpu("Skylake", "skylake", _SKYLAKE, 4, (32, 256, 8)),  # Core i7-6700
    _cpu("Skylake-SP", "skylake-avx512", _SKYLAKE_SP, 28, (32, 1024, 38.5)),  # Platinum 8180
    _cpu("Cascade Lake", "cascadelake", _CASCADE_LAKE, 28, (32, 1024, 38.5)),  # Platinum 8280
    _cpu("Ice Lake-SP", "icelake-server", _ICE_LAKE, 40, (48, 1280, 60)),  # Platinum 8380
    # Platinum 8480+
    _cpu("Sapphire Rapids", "sapphirerapids", _SAPPHIRE_RAPIDS, 56, (48, 2048, 105)),
    # 6980P
    _cpu("Granite Rapids", "graniterapids", f"{_SAPPHIRE_RAPIDS} amx-fp16", 128, (48, 2048, 504)),
    _cpu("Zen 2", "znver2", _ZEN2, 64, (32, 512, 16)),  # EPYC 7742
    _cpu("Zen 3", "znver3", _ZEN3, 64, (32, 512, 32)),  # EPYC 7763
    _cpu("Zen 4", "znver4", _ZEN4, 96, (32, 1024, 32)),  # EPYC 9654
    _cpu("Zen 5", "znver5", _ZEN5, 128, (48, 1024, 32)),  # EPYC 9755
    _arm("AArch64", "generic", "", 4, (32, 512, 4)),  # Armv8.0
    _arm("Neoverse N1", "neoverse-n1", _NEOVERSE_N1, 80, (64, 1024, 32)),  # Ampere Altra
    _arm("Neoverse V1", "neoverse-v1", _NEOVERSE_V1, 64, (64, 1024, 32)),  # Graviton3
    _arm("Neoverse N2", "neoverse-n2", _NEOVERSE_V2, 128, (64, 1024, 64)),  # Yitian 710
    _arm("Neoverse V2", "neoverse-v2", _NEOVERSE_V2, 72, (64, 1024, 114)),  # Grace
    _arm("Graviton2", "neoverse-n1", _NEOVERSE_N1, 64, (64, 1024, 32)),
    _arm("Graviton3", "neoverse-v1", _NEOVERSE_V1, 64, (64, 1024, 32)),
    _arm("Graviton4", "neoverse-v2", _NEOVERSE_V2, 96, (64, 2048, 36)),
    _apple("Apple M1", "apple-m1", _M1, 8, 12),
    _apple("Apple M2", "apple-m2", _M2, 8, 16),
    _apple("Apple M3", "apple-m3", _M2, 8, 16),
    _apple("Apple M4", "apple-m4", _M2, 10, 16),
)
"""The CPUs that are known by name."""


def find(name: str) -> CpuProfile | None:
    """A CPU by its name, however written (``zen 3``, ``skylake-sp``), or by LLVM's (``znver3``,
    ``neoverse-v2``); None if there is none of that name."""
    wanted = _folded_name(name)
    return next(
        (p for p in PROFILES if wanted in (_folded_name(p.title), _folded_name(p.name))), None
    )


def _folded_name(name: str) -> str:
    """A name without what people write one way or another."""
    return re.sub(r"^(intel|amd|arm|aws)\s|[\s_-]", "", name.lower())
