"""Helper functions of the kernels' source: operators where C++'s own do something else.

Signed integers wrap, division never traps, and a NaN wins in minima and maxima.
"""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "infinity": """\
__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }
""",
    "not_a_number": """\
__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }
""",
    "add": """\
// a + b, wrapping.
__device__ __forceinline__ int add(int a, int b)
{
    return (int)((unsigned int)a + (unsigned int)b);
}
__device__ __forceinline__ long long add(long long a, long long b)
{
    return (long long)((unsigned long long)a + (unsigned long long)b);
}
""",
    "subtract": """\
// a - b, wrapping.
__device__ __forceinline__ int subtract(int a, int b)
{
    return (int)((unsigned int)a - (unsigned int)b);
}
__device__ __forceinline__ long long subtract(long long a, long long b)
{
    return (long long)((unsigned long long)a - (unsigned long long)b);
}
""",
    "multiply": """\
// a * b, wrapping.
__device__ __forceinline__ int multiply(int a, int b)
{
    return (int)((unsigned int)a * (unsigned int)b);
}
__device__ __forceinline__ long long multiply(long long a, long long b)
{
    return (long long)((unsigned long long)a * (unsigned long long)b);
}
__device__ __forceinline__ unsigned short multiply(unsigned short a, unsigned short b)
{
    return (unsigned short)((unsigned int)a * (unsigned int)b);  // too large for an int
}
""",
    "divide": """\
// a / b for integers: 0 where b is 0, and the one overflow wraps.
template <class T> __device__ __forceinline__ T divide(T a, T b)
{
    if (b == T(0)) return T(0);
    if (T(-1) < T(0) && b == T(-1)) return T(0ULL - (unsigned long long)a);
    return T(a / b);
}
""",
    "modulo": """\
// a % b for integers, with the sign of a: 0 where b is 0.
template <class T> __device__ __forceinline__ T modulo(T a, T b)
{
    if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
    return T(a % b);
}
""",
    "min_of": """\
// The smaller one; a NaN wins.
template <class T> __device__ __forceinline__ T min_of(T a, T b)
{
    return a < b || a != a ? a : b;
}
""",
    "max_of": """\
// The larger one; a NaN wins.
template <class T> __device__ __forceinline__ T max_of(T a, T b)
{
    return a > b || a != a ? a : b;
}
""",
    "least_of": """\
// As min_of, but of two zeros it may give either: for reductions, whose order is free.
template <class T> __device__ __forceinline__ T least_of(T a, T b) { return min_of(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float least_of(float a, float b)
{
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif
""",
    "greatest_of": """\
// As max_of, but of two zeros it may give either: for reductions, whose order is free.
template <class T> __device__ __forceinline__ T greatest_of(T a, T b) { return max_of(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float greatest_of(float a, float b)
{
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif
""",
}
