// CUDA's mathematical functions and numeric intrinsics. float ones round what the float64 function
// gives, as the reference backend does, so that both agree to the last bit; what the C library
// lacks is computed as there (reference/special.py, whose tables come with the kernels).
#pragma once
#include "device.h"

#define EMULATOR_UNARY(DO)                                                                       \
  DO(acos) DO(acosh) DO(asin) DO(asinh) DO(atan) DO(atanh) DO(cbrt) DO(ceil) DO(cos) DO(cosh)    \
  DO(erf) DO(erfc) DO(exp) DO(exp2) DO(expm1) DO(fabs) DO(floor) DO(j0) DO(j1) DO(lgamma)        \
  DO(log) DO(log10) DO(log1p) DO(log2) DO(logb) DO(nearbyint) DO(rint) DO(round) DO(sin)         \
  DO(sinh) DO(sqrt) DO(tan) DO(tanh) DO(tgamma) DO(trunc) DO(y0) DO(y1)
#define EMULATOR_BINARY(DO) DO(atan2) DO(copysign) DO(fmod) DO(hypot) DO(pow) DO(remainder)

extern "C" {
#define EMULATOR_DECLARE(NAME) double NAME(double);
EMULATOR_UNARY(EMULATOR_DECLARE)
#undef EMULATOR_DECLARE
#define EMULATOR_DECLARE(NAME) double NAME(double, double);
EMULATOR_BINARY(EMULATOR_DECLARE)
EMULATOR_DECLARE(nextafter)
#undef EMULATOR_DECLARE
float nextafterf(float, float);
double fma(double, double, double);
float fmaf(float, float, float);
double scalbn(double, int);
double frexp(double, int*);
int ilogb(double);
double jn(int, double);
double yn(int, double);
long long llround(double);
long long llrint(double);
}

namespace device {

#define EMULATOR_ONE(NAME)                                                      \
  static inline double NAME(double x) { return ::NAME(x); }                     \
  static inline float NAME(float x) { return float(::NAME(double(x))); }        \
  static inline float NAME##f(float x) { return NAME(x); }
EMULATOR_UNARY(EMULATOR_ONE)
#define EMULATOR_TWO(NAME)                                                                      \
  static inline double NAME(double x, double y) { return ::NAME(x, y); }                        \
  static inline float NAME(float x, float y) { return float(::NAME(double(x), double(y))); }    \
  static inline float NAME##f(float x, float y) { return NAME(x, y); }
EMULATOR_BINARY(EMULATOR_TWO)

static inline double nextafter(double x, double y) { return ::nextafter(x, y); }
static inline float nextafterf(float x, float y) { return ::nextafterf(x, y); }
static inline float nextafter(float x, float y) { return nextafterf(x, y); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
static inline double scalbn(double x, int n) { return ::scalbn(x, n); }
static inline double ldexp(double x, int n) { return ::scalbn(x, n); }
static inline float scalbnf(float x, int n) { return float(::scalbn(x, n)); }
static inline float ldexpf(float x, int n) { return scalbnf(x, n); }
static inline float scalbn(float x, int n) { return scalbnf(x, n); }
static inline float ldexp(float x, int n) { return scalbnf(x, n); }
static inline int ilogb(double x) { return ::ilogb(x); }
static inline int ilogbf(float x) { return ::ilogb(x); }
static inline double frexp(double x, int* e) { return ::frexp(x, e); }
static inline float frexpf(float x, int* e) { return float(::frexp(x, e)); }
static inline double jn(int n, double x) { return ::jn(n, x); }
static inline double yn(int n, double x) { return ::yn(n, x); }
static inline float jnf(int n, float x) { return float(::jn(n, x)); }
static inline float ynf(int n, float x) { return float(::yn(n, x)); }
static inline long long llround(double x) { return ::llround(x); }
static inline long long llrint(double x) { return ::llrint(x); }

template <class T>
static inline bool isnan(T x) { return x != x; }
template <class T>
static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T>
static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T>
static inline bool signbit(T x) { return __builtin_signbit(x); }

// What the C library lacks, in float64.
namespace special {
#define NOT_A_NUMBER __builtin_nan("")
#define INFINITE __builtin_inf()
constexpr double PI = 3.141592653589793, SQRT_PI = 1.772453850905516;
constexpr double TWO_OVER_SQRT_PI = 1.1283791670955126, ONE_OVER_SQRT_PI = 0.5641895835477563;
constexpr double SQRT_2 = 1.4142135623730951;
constexpr double HALF_SQRT_2 = 0.7071067811865476, HALF_SQRT_2_LOW = -4.833646656726457e-17;
#include "tables.h"

template <int N>
EMULATOR double chebyshev(const double (&coefficients)[N], double t) {
  double after = 0, current = 0;
  for (int k = N - 1; k > 0; --k) {
    double next = 2.0 * t * current - after + coefficients[k];
    after = current;
    current = next;
  }
  return t * current - after + 0.5 * coefficients[0];
}
template <int N>
EMULATOR double polynomial(const double (&coefficients)[N], double t) {
  double total = 0;
  for (int k = 0; k < N; ++k) total = total * t + coefficients[k];
  return total;
}
static EMULATOR double erfcx_positive(double x) {
  if (x > 1e8) return ONE_OVER_SQRT_PI / x;
  return chebyshev(ERFCX, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x);
}
static EMULATOR double erfcx(double x) {
  if (x != x) return x;
  if (!(x < 0)) return erfcx_positive(x);
  if (x < -26.7) return INFINITE;
  double square = x * x, power = ::exp(square);
  if (power == INFINITE) return INFINITE;
  return 2.0 * (power + power * fma(x, x, -square)) - erfcx_positive(-x);
}
static EMULATOR double refine_erf(double y, double residual) {
  double newton = residual / (TWO_OVER_SQRT_PI * ::exp(-y * y));
  return y - newton / (1.0 + y * newton);
}
static EMULATOR double erfinv_start(double x, double complement) {
  double w = -::log(complement * (1.0 + x));
  return w < 5.0 ? x * polynomial(GILES_CENTRE, w - 2.5)
                 : x * polynomial(GILES_TAIL, ::sqrt(w) - 3.0);
}
static EMULATOR double erfcinv_upper(double z) {
  if (z <= 0.01) {
    double target = ::log(z), y = ::sqrt(-target - ::log(SQRT_PI * ::sqrt(-target)));
    for (int i = 0; i < 4; ++i) {
      double scaled = erfcx_positive(y);
      y = y + (::log(scaled) - y * y - target) * scaled * (0.5 * SQRT_PI);
    }
    return y;
  }
  double y = erfinv_start(1.0 - z, z);
  for (int i = 0; i < 2; ++i) y = refine_erf(y, z - ::erfc(y));
  return y;
}
static EMULATOR double erfinv(double x) {
  double a = ::fabs(x);
  if (!(a <= 1)) return NOT_A_NUMBER;
  if (a == 1) return ::copysign(INFINITE, x);
  if (a > 0.5) return ::copysign(erfcinv_upper(1.0 - a), x);
  double y = erfinv_start(a, 1.0 - a);
  for (int i = 0; i < 2; ++i) y = refine_erf(y, ::erf(y) - a);
  return ::copysign(y, x);
}
static EMULATOR double erfcinv(double z) {
  if (!(z >= 0 && z <= 2)) return NOT_A_NUMBER;
  if (z == 0) return INFINITE;
  return z <= 0.5 ? erfcinv_upper(z) : erfinv(1.0 - z);
}
static EMULATOR double normcdf(double x) {
  if (x != x) return x;
  if (x < -40) return 0;
  if (x > 40) return 1;
  double high = -x * HALF_SQRT_2, low = fma(-x, HALF_SQRT_2, -high) - x * HALF_SQRT_2_LOW;
  return 0.5 * (::erfc(high) - TWO_OVER_SQRT_PI * ::exp(-high * high) * low);
}
static EMULATOR double normcdfinv(double p) { return 0.0 - SQRT_2 * erfcinv(2.0 * p); }
template <int N>
EMULATOR double scaled_bessel(const double (&coefficients)[N], double x) {
  if (x != x || x == INFINITE) return x;
  double value = chebyshev(coefficients, 15.0 / x - 1.0) / ::sqrt(x);
  if (x <= 709) return value * ::exp(x);
  double half = ::exp(0.5 * x);
  return value * half * half;
}
static EMULATOR double bessel_series(double x, int order) {
  double quarter = 0.25 * x * x, total = 1;
  for (int k = 36; k > 0; --k) total = 1.0 + total * quarter / (double(k) * double(k + order));
  return total;
}
static EMULATOR double cyl_bessel_i0(double x) {
  x = ::fabs(x);
  return x <= 7.5 ? bessel_series(x, 0) : scaled_bessel(BESSEL_I0, x);
}
static EMULATOR double cyl_bessel_i1(double x) {
  double a = ::fabs(x);
  if (a <= 7.5) return 0.5 * x * bessel_series(a, 1);
  return ::copysign(scaled_bessel(BESSEL_I1, a), x);
}
static EMULATOR double sinpi(double x) {
  double r = ::fmod(::fabs(x), 2.0);
  if (r != r) return NOT_A_NUMBER;
  bool negative = r > 1.0;
  if (r >= 1.0) r = r - 1.0;
  if (r == 0) return ::copysign(0.0, x);
  if (r > 0.5) r = 1.0 - r;
  double value = r <= 0.25 ? ::sin(PI * r) : ::cos(PI * (0.5 - r));
  return negative != (x < 0) ? -value : value;
}
static EMULATOR double cospi(double x) {
  double r = ::fmod(::fabs(x), 2.0);
  if (r != r) return NOT_A_NUMBER;
  if (r > 1.0) r = 2.0 - r;
  bool negative = r > 0.5;
  if (negative) r = 1.0 - r;
  if (r == 0.5) return 0;
  double value = r <= 0.25 ? ::cos(PI * r) : ::sin(PI * (0.5 - r));
  return negative ? -value : value;
}
// sqrt(a*a + b*b + c*c + d*d), or one over it, without overflow on the way.
static EMULATOR double norm(double a, double b, double c, double d, bool reciprocal) {
  double numbers[] = {::fabs(a), ::fabs(b), ::fabs(c), ::fabs(d)}, largest = numbers[0];
  for (double x : numbers)
    if (x == INFINITE) return reciprocal ? 0.0 : INFINITE;
  for (double x : numbers)
    if (x > largest) largest = x;
  double scale = largest > 0x1p500 ? 0x1p-600 : largest < 0x1p-450 ? 0x1p600 : 1.0;
  for (double& x : numbers) x *= scale;
  double root = ::sqrt((numbers[0] * numbers[0] + numbers[1] * numbers[1]) +
                       (numbers[2] * numbers[2] + numbers[3] * numbers[3]));
  return reciprocal ? scale * (1.0 / root) : root / scale;
}
static EMULATOR double norm4d(double a, double b, double c, double d) {
  return norm(a, b, c, d, false);
}
static EMULATOR double rnorm4d(double a, double b, double c, double d) {
  return norm(a, b, c, d, true);
}
static EMULATOR double norm3d(double a, double b, double c) { return norm(a, b, c, 0, false); }
static EMULATOR double rnorm3d(double a, double b, double c) { return norm(a, b, c, 0, true); }
static EMULATOR double rhypot(double a, double b) { return norm(a, b, 0, 0, true); }
static EMULATOR double rcbrt(double x) {
  double y = 1.0 / ::cbrt(x);
  if (x == 0 || y == 0) return y;
  return y + y * fma(-(x * y * y), y, 1.0) / 3.0;
}
static EMULATOR double rsqrt(double x) { return 1.0 / ::sqrt(x); }
static EMULATOR double exp10(double x) { return ::pow(10.0, x); }
static EMULATOR double fdim(double x, double y) {
  return x != x || y != y ? NOT_A_NUMBER : x > y ? x - y : 0.0;
}
static EMULATOR double fdivide(double x, double y) { return x / y; }
static EMULATOR double fmin(double x, double y) { return x < y || y != y ? x : y; }
static EMULATOR double fmax(double x, double y) { return x > y || y != y ? x : y; }
}  // namespace special

#define EMULATOR_SPECIAL(NAME, PARAMETERS, FLOATS, ARGUMENTS)                        \
  static inline double NAME PARAMETERS { return special::NAME ARGUMENTS; }           \
  static inline float NAME FLOATS { return float(special::NAME ARGUMENTS); }         \
  static inline float NAME##f FLOATS { return float(special::NAME ARGUMENTS); }
#define EMULATOR_ONE_SPECIAL(NAME) EMULATOR_SPECIAL(NAME, (double x), (float x), (x))
#define EMULATOR_TWO_SPECIAL(NAME) \
  EMULATOR_SPECIAL(NAME, (double x, double y), (float x, float y), (x, y))
#define EMULATOR_THREE_SPECIAL(NAME) \
  EMULATOR_SPECIAL(NAME, (double x, double y, double z), (float x, float y, float z), (x, y, z))
#define EMULATOR_FOUR_SPECIAL(NAME)                              \
  EMULATOR_SPECIAL(NAME, (double x, double y, double z, double w), \
                   (float x, float y, float z, float w), (x, y, z, w))
EMULATOR_ONE_SPECIAL(erfcx)
EMULATOR_ONE_SPECIAL(erfinv)
EMULATOR_ONE_SPECIAL(erfcinv)
EMULATOR_ONE_SPECIAL(normcdf)
EMULATOR_ONE_SPECIAL(normcdfinv)
EMULATOR_ONE_SPECIAL(cyl_bessel_i0)
EMULATOR_ONE_SPECIAL(cyl_bessel_i1)
EMULATOR_ONE_SPECIAL(sinpi)
EMULATOR_ONE_SPECIAL(cospi)
EMULATOR_ONE_SPECIAL(rcbrt)
EMULATOR_ONE_SPECIAL(rsqrt)
EMULATOR_ONE_SPECIAL(exp10)
EMULATOR_TWO_SPECIAL(fdim)
EMULATOR_TWO_SPECIAL(fdivide)
EMULATOR_TWO_SPECIAL(fmin)
EMULATOR_TWO_SPECIAL(fmax)
EMULATOR_TWO_SPECIAL(rhypot)
EMULATOR_THREE_SPECIAL(norm3d)
EMULATOR_THREE_SPECIAL(rnorm3d)
EMULATOR_FOUR_SPECIAL(norm4d)
EMULATOR_FOUR_SPECIAL(rnorm4d)

}  // namespace device
