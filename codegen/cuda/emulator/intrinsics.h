// CUDA's integer functions, conversions and rounded arithmetic.
#pragma once
#include "functions.h"

namespace device {

// min and max as CUDA overloads them: mixed signs are unsigned, floats ignore a NaN.
#define EMULATOR_LEAST(T, A, B)                                                   \
  static inline T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; }         \
  static inline T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
EMULATOR_LEAST(int, int, int)
EMULATOR_LEAST(unsigned, unsigned, unsigned)
EMULATOR_LEAST(unsigned, unsigned, int)
EMULATOR_LEAST(unsigned, int, unsigned)
EMULATOR_LEAST(long, long, long)
EMULATOR_LEAST(unsigned long, unsigned long, unsigned long)
EMULATOR_LEAST(long long, long long, long long)
EMULATOR_LEAST(unsigned long long, unsigned long long, unsigned long long)
EMULATOR_LEAST(unsigned long long, unsigned long long, long long)
EMULATOR_LEAST(unsigned long long, long long, unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(double(a), b); }
static inline double max(float a, double b) { return fmax(double(a), b); }
static inline double min(double a, float b) { return fmin(a, double(b)); }
static inline double max(double a, float b) { return fmax(a, double(b)); }

static inline int abs(int x) { return x < 0 ? int(0u - x) : x; }
static inline long abs(long x) { return x < 0 ? long(0ul - x) : x; }
static inline long long abs(long long x) { return x < 0 ? (long long)(0ull - x) : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline long long llabs(long long x) { return abs(x); }

static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
static inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a * b >> 32);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return unsigned(((unsigned long long)high << 32 | low) << (by & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return unsigned(((unsigned long long)high << 32 | low) >> (by & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select) {
  unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= unsigned(bytes >> 8 * (select >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}

// Float to integer: out of range gives the nearest end. A NaN gives 0, or, where one of both
// types has 64 bits, only the highest bit (PTX ISA, cvt).
template <class To, class From>
static inline To saturated(From x) {
  constexpr bool is_signed = To(-1) < To(0);
  constexpr To top = To(1) << (8 * sizeof(To) - 1);
  constexpr To low = is_signed ? top : To(0), high = is_signed ? To(~top) : To(~To(0));
  if (x != x) return sizeof(To) == 8 || sizeof(From) == 8 ? top : To(0);
  if (x <= From(low)) return low;
  if (x >= From(high)) return high;  // rounded up to a power of two where it has too many bits
  return To(x);
}
#define EMULATOR_CONVERT(FROM, F, TO, T)                                                         \
  static inline TO __##F##2##T##_rz(FROM x) { return saturated<TO>(x); }                         \
  static inline TO __##F##2##T##_rn(FROM x) { return saturated<TO>(FROM(__builtin_rint(x))); }         \
  static inline TO __##F##2##T##_rd(FROM x) { return saturated<TO>(FROM(__builtin_floor(x))); }        \
  static inline TO __##F##2##T##_ru(FROM x) { return saturated<TO>(FROM(__builtin_ceil(x))); }
EMULATOR_CONVERT(float, float, int, int)
EMULATOR_CONVERT(float, float, unsigned, uint)
EMULATOR_CONVERT(float, float, long long, ll)
EMULATOR_CONVERT(float, float, unsigned long long, ull)
EMULATOR_CONVERT(double, double, int, int)
EMULATOR_CONVERT(double, double, unsigned, uint)
EMULATOR_CONVERT(double, double, long long, ll)
EMULATOR_CONVERT(double, double, unsigned long long, ull)

#define EMULATOR_ROUNDED(FROM, F, TO, T) \
  static inline TO __##F##2##T##_rn(FROM x) { return (TO)x; }
EMULATOR_ROUNDED(int, int, float, float)
EMULATOR_ROUNDED(unsigned, uint, float, float)
EMULATOR_ROUNDED(long long, ll, float, float)
EMULATOR_ROUNDED(unsigned long long, ull, float, float)
EMULATOR_ROUNDED(long long, ll, double, double)
EMULATOR_ROUNDED(unsigned long long, ull, double, double)
EMULATOR_ROUNDED(double, double, float, float)
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }

#define EMULATOR_ARITHMETIC(T, P)                                                      \
  static inline T __##P##add_rn(T a, T b) { return a + b; }                            \
  static inline T __##P##sub_rn(T a, T b) { return a - b; }                            \
  static inline T __##P##mul_rn(T a, T b) { return a * b; }                            \
  static inline T __##P##div_rn(T a, T b) { return a / b; }                            \
  static inline T __##P##rcp_rn(T a) { return T(1) / a; }                              \
  static inline T __##P##sqrt_rn(T a) { return sqrt(a); }
EMULATOR_ARITHMETIC(float, f)
EMULATOR_ARITHMETIC(double, d)
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline float __saturatef(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }

// Approximate on a GPU, precise here.
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }

}  // namespace device
