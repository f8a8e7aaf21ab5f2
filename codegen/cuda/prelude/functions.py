"""Helper functions of the kernels' source: built-ins that CUDA lacks or has less exactly.

The formulas are those of ``tcl.codegen.cpu.math.special`` and ``tcl.codegen.reference.special``,
which name where they come from.
"""

from __future__ import annotations

from tcl.codegen.common import chebyshev as tables
from tcl.codegen.cuda.prelude.text import device_function, table

HELPERS: dict[str, str] = {
    "norm_scale": device_function(
        "double norm_scale(double a, double b, double c, double d)",
        """\
    double largest = fmax(fmax(a, b), fmax(c, d));
    return largest > 0x1p500 ? 0x1p-600 : largest < 0x1p-450 ? 0x1p600 : 1.0;
""",
        "A power of two that keeps the squares of the scaled numbers in range.",
    ),
    "norm_of": """\
// The length of a vector; infinite if any part is, whatever the others are.
__device__ inline float norm_of(float a, float b, float c = 0.0f, float d = 0.0f)
{
    const float limit = infinity();
    if (fabsf(a) == limit || fabsf(b) == limit || fabsf(c) == limit || fabsf(d) == limit)
        return limit;
    double x = a, y = b, z = c, w = d;  // squares of floats do not overflow there
    return (float)sqrt((x * x + y * y) + (z * z + w * w));
}
__device__ inline double norm_of(double a, double b, double c = 0.0, double d = 0.0)
{
    const double limit = infinity();
    a = fabs(a), b = fabs(b), c = fabs(c), d = fabs(d);
    if (a == limit || b == limit || c == limit || d == limit) return limit;
    double scale = norm_scale(a, b, c, d);
    a *= scale, b *= scale, c *= scale, d *= scale;
    return sqrt((a * a + b * b) + (c * c + d * d)) / scale;
}
""",
    "rnorm_of": """\
// 1 / the length of a vector, also where that length overflows.
__device__ inline float rnorm_of(float a, float b, float c = 0.0f, float d = 0.0f)
{
    const float limit = infinity();
    if (fabsf(a) == limit || fabsf(b) == limit || fabsf(c) == limit || fabsf(d) == limit)
        return 0.0f;
    double x = a, y = b, z = c, w = d;
    return (float)(1.0 / sqrt((x * x + y * y) + (z * z + w * w)));
}
__device__ inline double rnorm_of(double a, double b, double c = 0.0, double d = 0.0)
{
    const double limit = infinity();
    a = fabs(a), b = fabs(b), c = fabs(c), d = fabs(d);
    if (a == limit || b == limit || c == limit || d == limit) return 0.0;
    double scale = norm_scale(a, b, c, d);
    a *= scale, b *= scale, c *= scale, d *= scale;
    return scale * (1.0 / sqrt((a * a + b * b) + (c * c + d * d)));
}
""",
    "expit_of": """\
// 1 / (1 + exp(-x)), by an exponential that does not overflow; of float32, with what rounding lost.
__device__ inline float expit_of(float x)
{
    float e = expf(-fabsf(x)), above = x < 0.0f ? e : 1.0f, below = 1.0f + e;
    float lost = (1.0f - below) + e, inverse = 1.0f / below, ratio = above * inverse;
    return fmaf(fmaf(-ratio, below, above) - ratio * lost, inverse, ratio);
}
__device__ inline double expit_of(double x)
{
    double e = exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
""",
    "chebyshev": """\
// The sum of a Chebyshev series at t, by Clenshaw's recurrence.
template <int count>
__device__ inline double chebyshev(double t, const double (&c)[count])
{
    double before = 0.0, last = c[count - 1];
    for (int k = count - 2; k > 0; --k) {
        double next = fma(t + t, last, c[k] - before);
        before = last;
        last = next;
    }
    return fma(t, last, c[0] - before);
}
""",
    "polynomial": """\
// The value of a polynomial, highest power first.
template <int count>
__device__ inline double polynomial(double x, const double (&c)[count])
{
    double total = c[0];
    for (int k = 1; k < count; ++k) total = fma(total, x, c[k]);
    return total;
}
""",
    "erfcx_positive": device_function(
        "double erfcx_positive(double x)",
        table("series", tables.ERFCX)
        + """\
    if (x > 1e8) return 0.5641895835477563 / x;
    return chebyshev((x - 3.75) / (x + 3.75), series) / (1.0 + 2.0 * x);
""",
        "exp(x * x) * erfc(x) for x >= 0.",
    ),
    "exp_of_square": device_function(
        "double exp_of_square(double x, double factor)",
        """\
    double square = x * x, lost = fma(x, x, -square), e = exp(factor * square);
    return e == infinity() ? e : fma(factor * lost, e, e);
""",
        "exp(factor * x * x) for a power of two, with the rounding of the square mended.",
    ),
    "erfcx_of": device_function(
        "double erfcx_of(double x)",
        """\
    if (x < -26.7) return infinity();
    return x < 0.0 ? 2.0 * exp_of_square(x, 1.0) - erfcx_positive(-x) : erfcx_positive(x);
""",
        "exp(x * x) * erfc(x).",
    ),
    "erfc_of": device_function(
        "double erfc_of(double x)",
        """\
    if (!(x > 0.5)) return 1.0 - erf(x);
    return x > 28.0 ? 0.0 : erfcx_positive(x) * exp_of_square(x, -1.0);
""",
        "erfc(x), more exactly than CUDA's.",
    ),
    "erfinv_central": device_function(
        "double erfinv_central(double x)",
        """\
    const double half_root_pi = 0.886226925452758;
    double s = x * x;
    double y = x * (((0.0867072 * s + 0.1276) * s + 0.2320136665) * s + half_root_pi);
    for (int k = 0; k < 3; ++k) y -= (erf(y) - x) * (exp(y * y) * half_root_pi);
    return y;
""",
        "y with erf(y) = x for |x| <= 0.5: its power series, then Newton's method.",
    ),
    "erfcinv_tail": device_function(
        "double erfcinv_tail(double c)",
        """\
    const double near = 0.147, half_root_pi = 0.886226925452758;
    double first = log(c * (2.0 - c)), u = 0.5 * first + 2.0 / (3.141592653589793 * near);
    double y = sqrt(sqrt(u * u - first / near) - u), target = log(c);
    for (int k = 0; k < 3; ++k) {
        double e = erfcx_positive(y);
        y += (log(e) - target - y * y) * (e * half_root_pi);
    }
    return y;
""",
        "y with erfc(y) = c for 0 < c <= 0.5: Winitzki's formula, then Newton's method on its log.",
    ),
    "erfinv_of": device_function(
        "double erfinv_of(double x)",
        """\
    double a = fabs(x);
    if (a <= 0.5) return erfinv_central(x);
    if (!(a <= 1.0)) return not_a_number();
    return copysign(a == 1.0 ? infinity() : erfcinv_tail(1.0 - a), x);
""",
        "y with erf(y) = x.",
    ),
    "erfcinv_of": device_function(
        "double erfcinv_of(double c)",
        """\
    if (!(c >= 0.0 && c <= 2.0)) return not_a_number();
    if (c == 0.0 || c == 2.0) return c == 0.0 ? infinity() : -infinity();
    if (c < 0.5) return erfcinv_tail(c);
    return c > 1.5 ? -erfcinv_tail(2.0 - c) : erfinv_central(1.0 - c);
""",
        "y with erfc(y) = c.",
    ),
    "normcdf_of": device_function(
        "double normcdf_of(double x)",
        """\
    if (x < -40.0 || x > 40.0) return x < 0.0 ? 0.0 : 1.0;
    // erfc magnifies an error of its argument: the rounding of the product is put back.
    double high = -x * 0.7071067811865476;
    double low = fma(-x, 0.7071067811865476, -high) + x * 4.833646656726457e-17;
    return 0.5 * (erfc_of(high) - 1.1283791670955126 * exp(-high * high) * low);
""",
        "The standard normal distribution function.",
    ),
    "normcdfinv_of": device_function(
        "double normcdfinv_of(double p)",
        """\
    return 0.0 - 1.4142135623730951 * erfcinv_of(2.0 * p);
""",
        "x with normcdf(x) = p.",
    ),
}
