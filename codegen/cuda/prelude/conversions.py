"""Helper functions of the kernels' source: conversions that C++ lacks or leaves open.

Floats become integers by truncation, kept within the type's limits, with 0 for NaN. The 16-bit
floats are rounded once to nearest, ties to even. A wider value goes through a float whose inexact
results are made odd, so that rounding once more to far fewer digits gives what one rounding would
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

from tcl.codegen.cuda.cpp.types import c_type
from tcl.grammar.syntax.types import (
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ScalarType,
)


def _to_integer(t: ScalarType) -> str:
    name = c_type(t)
    low, high = (str(x) for x in t.limits)
    if t == INT32:
        low = f"-{high} - 1"
    elif t == INT64:
        low, high = f"-{high}LL - 1", f"{high}LL"
    elif t.bits >= 32:
        high += "ULL" if t == UINT64 else "u"
    return f"""\
template <class Real> __device__ __forceinline__ {name} to_{t.name}(Real x)
{{
    return saturate<{name}>(x, {low}, {high});
}}
"""


HELPERS: dict[str, str] = {
    "saturate": """\
// x truncated and kept between low and high; 0 for NaN.
template <class Int, class Real>
__device__ __forceinline__ Int saturate(Real x, Int low, Int high)
{
    if (x != x) return 0;
    // The limits may round away from 0; all that lies between the rounded ones converts.
    return x <= Real(low) ? low : x >= Real(high) ? high : Int(x);
}
""",
    **{
        f"to_{t.name}": _to_integer(t)
        for t in (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64)
    },
    "half_to_float": """\
#ifndef TCL_EMULATED
// float16, by its bits.
__device__ __forceinline__ float half_to_float(unsigned short bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
#endif
""",
    "float_to_half": """\
#ifndef TCL_EMULATED
// The bits of a float16.
__device__ __forceinline__ unsigned short float_to_half(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#endif
""",
    "bfloat_to_float": """\
// bfloat16, by its bits: the upper half of a float's.
__device__ __forceinline__ float bfloat_to_float(unsigned short bits)
{
    return __uint_as_float((unsigned int)bits << 16);
}
""",
    "float_to_bfloat": """\
// The bits of a bfloat16.
__device__ __forceinline__ unsigned short float_to_bfloat(float x)
{
    unsigned int bits = __float_as_uint(x);
    if (x != x) return (unsigned short)(bits >> 16 | 0x40u);
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
""",
    "round_to_half": """\
__device__ __forceinline__ float round_to_half(float x)
{
    return half_to_float(float_to_half(x));
}
""",
    "round_to_bfloat": """\
__device__ __forceinline__ float round_to_bfloat(float x)
{
    return bfloat_to_float(float_to_bfloat(x));
}
""",
    "odd_float": """\
// x as a float, made odd where that is inexact.
__device__ __forceinline__ float odd_float(double x)
{
    float near = (float)x;
    if ((double)near == x || x != x) return near;
    bool away = fabs((double)near) > fabs(x);
    return __uint_as_float((__float_as_uint(near) - (away ? 1u : 0u)) | 1u);
}
""",
    "odd_double": """\
// x as a double, made odd where that is inexact: without its last 11 bits if it has more than 53.
__device__ __forceinline__ double odd_double(long long x)
{
    const long long exact = 1LL << 53;
    if (-exact <= x && x <= exact) return (double)x;
    long long kept = x & ~2047LL;
    return (double)(kept == x ? kept : kept | 2048LL);
}
__device__ __forceinline__ double odd_double(unsigned long long x)
{
    if (x <= 1ULL << 53) return (double)x;
    unsigned long long kept = x & ~2047ULL;
    return (double)(kept == x ? kept : kept | 2048ULL);
}
""",
}
