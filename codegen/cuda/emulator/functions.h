// CUDA's mathematical functions, those that kernels call. float ones round what the float64 function
// gives, as the reference backend does, so that both agree to the last bit; what the C library lacks
// is computed as there (reference/special.py).
#pragma once
#include "device.h"

#define EMULATOR_UNARY(DO)                                                                       \
  DO(acos) DO(acosh) DO(asin) DO(asinh) DO(atan) DO(atanh) DO(cbrt) DO(ceil) DO(cos) DO(cosh)    \
  DO(erf) DO(erfc) DO(exp) DO(exp2) DO(expm1) DO(fabs) DO(floor) DO(lgamma) DO(log) DO(log10)    \
  DO(log1p) DO(log2) DO(logb) DO(round) DO(sin) DO(sinh) DO(sqrt) DO(tan) DO(tanh) DO(tgamma)    \
  DO(trunc)
#define EMULATOR_BINARY(DO) DO(atan2) DO(copysign) DO(fmod) DO(pow) DO(remainder)

extern "C" {
#define EMULATOR_DECLARE(NAME) double NAME(double);
EMULATOR_UNARY(EMULATOR_DECLARE)
#undef EMULATOR_DECLARE
#define EMULATOR_DECLARE(NAME) double NAME(double, double);
EMULATOR_BINARY(EMULATOR_DECLARE)
EMULATOR_DECLARE(nextafter)
#undef EMULATOR_DECLARE
float nextafterf(float, float);
}

namespace device {

static inline double nextafter(double x, double y) { return ::nextafter(x, y); }
static inline float nextafterf(float x, float y) { return ::nextafterf(x, y); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// What the C library lacks, in float64.
namespace special {
constexpr double PI = 3.141592653589793;
static EMULATOR double sinpi(double x) {
  double r = ::fmod(::fabs(x), 2.0);
  if (r != r) return r;
  bool negative = r > 1.0;
  if (r >= 1.0) r = r - 1.0;
  if (r == 0) return ::copysign(0.0, x);
  if (r > 0.5) r = 1.0 - r;
  double value = r <= 0.25 ? ::sin(PI * r) : ::cos(PI * (0.5 - r));
  return negative != (x < 0) ? -value : value;
}
static EMULATOR double cospi(double x) {
  double r = ::fmod(::fabs(x), 2.0);
  if (r != r) return r;
  if (r > 1.0) r = 2.0 - r;
  bool negative = r > 0.5;
  if (negative) r = 1.0 - r;
  if (r == 0.5) return 0;
  double value = r <= 0.25 ? ::cos(PI * r) : ::sin(PI * (0.5 - r));
  return negative ? -value : value;
}
static EMULATOR double rcbrt(double x) {
  double y = 1.0 / ::cbrt(x);
  if (x == 0 || y == 0) return y;
  return y + y * fma(-(x * y * y), y, 1.0) / 3.0;
}
static EMULATOR double rsqrt(double x) { return 1.0 / ::sqrt(x); }
static EMULATOR double exp10(double x) { return ::pow(10.0, x); }
static EMULATOR double fdim(double x, double y) {
  return x != x || y != y ? x + y : x > y ? x - y : 0.0;
}
static EMULATOR double fmin(double x, double y) { return x < y || y != y ? x : y; }
static EMULATOR double fmax(double x, double y) { return x > y || y != y ? x : y; }
}  // namespace special

#define EMULATOR_BOTH(NAME, HOME, PARAMETERS, FLOATS, ARGUMENTS)                     \
  static inline double NAME PARAMETERS { return HOME::NAME ARGUMENTS; }              \
  static inline float NAME##f FLOATS { return float(HOME::NAME ARGUMENTS); }
#define EMULATOR_ONE(NAME) EMULATOR_BOTH(NAME, , (double x), (float x), (x))
#define EMULATOR_TWO(NAME) EMULATOR_BOTH(NAME, , (double x, double y), (float x, float y), (x, y))
#define EMULATOR_ONE_SPECIAL(NAME) EMULATOR_BOTH(NAME, special, (double x), (float x), (x))
#define EMULATOR_TWO_SPECIAL(NAME) \
  EMULATOR_BOTH(NAME, special, (double x, double y), (float x, float y), (x, y))
EMULATOR_UNARY(EMULATOR_ONE)
EMULATOR_BINARY(EMULATOR_TWO)
EMULATOR_ONE_SPECIAL(sinpi)
EMULATOR_ONE_SPECIAL(cospi)
EMULATOR_ONE_SPECIAL(rcbrt)
EMULATOR_ONE_SPECIAL(rsqrt)
EMULATOR_ONE_SPECIAL(exp10)
EMULATOR_TWO_SPECIAL(fdim)
EMULATOR_TWO_SPECIAL(fmin)
EMULATOR_TWO_SPECIAL(fmax)

}  // namespace device
