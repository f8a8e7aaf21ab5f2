"""Helper functions of the kernels' source: built-ins that CUDA lacks or has less exactly.

The formulas are those of ``tcl.codegen.reference.special``, which names where they come from; the
Bessel functions and ``erfcx`` take the Chebyshev series of ``tcl.codegen.cpu.tables``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.cpu import tables
from tcl.codegen.reference.special import GILES_CENTRE, GILES_TAIL

_PER_LINE = 4


def _table(name: str, values: Sequence[float]) -> str:
    rows = [values[k : k + _PER_LINE] for k in range(0, len(values), _PER_LINE)]
    lines = ",\n".join("        " + ", ".join(map(repr, row)) for row in rows)
    return f"    const double {name}[] = {{\n{lines},\n    }};\n"


def _function(head: str, body: str, comment: str = "") -> str:
    note = f"// {comment}\n" if comment else ""
    return f"{note}__device__ inline {head}\n{{\n{body}}}\n"


def _bessel(order: int, small: Sequence[float], large: Sequence[float]) -> str:
    near = "value * a / (a + a + 1.0)" if order else "value / (0.5 * a + 1.0)"
    result = "copysign(value, x)" if order else "value"
    return _function(
        f"double cyl_bessel_i{order}_of(double x)",
        _table("small", small)
        + _table("large", large)
        + f"""\
    double a = fabs(x), value;
    if (a > 800.0) a = 800.0;  // infinite from there on
    if (a <= 8.0) {{
        value = chebyshev(0.25 * a - 1.0, small) * exp(a);
        value = {near};
    }} else {{
        double e = exp(0.5 * a);  // exp(a) overflows before the function does
        value = chebyshev(16.0 / a - 1.0, large) / sqrt(a) * e * e;
    }}
    return {result};
""",
    )


HELPERS: dict[str, str] = {
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
__device__ inline double polynomial(double t, const double (&c)[count])
{
    double total = c[0];
    for (int k = 1; k < count; ++k) total = fma(total, t, c[k]);
    return total;
}
""",
    "erfcx_positive": _function(
        "double erfcx_positive(double x)",
        _table("series", tables.ERFCX)
        + """\
    if (x > 1e8) return 0.5641895835477563 / x;
    return chebyshev((x - 3.75) / (x + 3.75), series) / (1.0 + 2.0 * x);
""",
        "exp(x * x) * erfc(x) for x >= 0.",
    ),
    "exp_of_square": _function(
        "double exp_of_square(double x, double factor)",
        """\
    double square = x * x, lost = fma(x, x, -square), e = exp(factor * square);
    return e == infinity() ? e : fma(factor * lost, e, e);
""",
        "exp(factor * x * x) for a power of two, with the rounding of the square mended.",
    ),
    "erfcx_of": _function(
        "double erfcx_of(double x)",
        """\
    if (x < -26.7) return infinity();
    return x < 0.0 ? 2.0 * exp_of_square(x, 1.0) - erfcx_positive(-x) : erfcx_positive(x);
""",
        "exp(x * x) * erfc(x).",
    ),
    "erfc_of": _function(
        "double erfc_of(double x)",
        """\
    if (!(x > 0.5)) return 1.0 - erf(x);
    return x > 28.0 ? 0.0 : erfcx_positive(x) * exp_of_square(x, -1.0);
""",
        "erfc(x), more exactly than CUDA's.",
    ),
    "refine_erf": _function(
        "double refine_erf(double y, double residual)",
        """\
    double newton = residual / (1.1283791670955126 * exp(-y * y));
    return y - newton / (1.0 + y * newton);
""",
        "One step of Halley's towards erf(y) = z, the residual being erf(y) - z.",
    ),
    "erfinv_start": _function(
        "double erfinv_start(double x, double complement)",
        _table("centre", GILES_CENTRE)
        + _table("tail", GILES_TAIL)
        + """\
    double w = -log(complement * (1.0 + x));
    return x * (w < 5.0 ? polynomial(w - 2.5, centre) : polynomial(sqrt(w) - 3.0, tail));
""",
        "erfinv(x) to about 1e-6 for x >= 0, given 1 - x.",
    ),
    "erfcinv_upper": _function(
        "double erfcinv_upper(double z)",
        """\
    double y;
    if (z > 0.01) {
        y = erfinv_start(1.0 - z, z);
        for (int k = 0; k < 2; ++k) y = refine_erf(y, z - erfc_of(y));
        return y;
    }
    // Newton's method on log(erfc(y)), which is nearly a parabola.
    double target = log(z);
    y = sqrt(-target - log(1.772453850905516 * sqrt(-target)));
    for (int k = 0; k < 4; ++k) {
        double scaled = erfcx_positive(y);
        y = y + (log(scaled) - y * y - target) * scaled * 0.886226925452758;
    }
    return y;
""",
        "y with erfc(y) = z for 0 < z <= 0.5.",
    ),
    "erfinv_of": _function(
        "double erfinv_of(double x)",
        """\
    double a = fabs(x), y;
    if (!(a <= 1.0)) return not_a_number();
    if (a == 1.0) {
        y = infinity();
    } else if (a > 0.5) {
        y = erfcinv_upper(1.0 - a);
    } else {
        y = erfinv_start(a, 1.0 - a);
        for (int k = 0; k < 2; ++k) y = refine_erf(y, erf(y) - a);
    }
    return copysign(y, x);
""",
        "y with erf(y) = x.",
    ),
    "erfcinv_of": _function(
        "double erfcinv_of(double z)",
        """\
    if (z == 0.0) return infinity();
    return z > 0.0 && z <= 0.5 ? erfcinv_upper(z) : erfinv_of(1.0 - z);
""",
        "y with erfc(y) = z.",
    ),
    "normcdf_of": _function(
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
    "normcdfinv_of": _function(
        "double normcdfinv_of(double p)",
        """\
    return 0.0 - 1.4142135623730951 * erfcinv_of(2.0 * p);
""",
        "x with normcdf(x) = p.",
    ),
    "cyl_bessel_i0_of": _bessel(0, tables.I0_SMALL, tables.I0_LARGE),
    "cyl_bessel_i1_of": _bessel(1, tables.I1_SMALL, tables.I1_LARGE),
}
_SCALE = _function(
    "double norm_scale(double a, double b, double c, double d)",
    """\
    double largest = fmax(fmax(a, b), fmax(c, d));
    return largest > 0x1p500 ? 0x1p-600 : largest < 0x1p-450 ? 0x1p600 : 1.0;
""",
    "A power of two that keeps the squares of the scaled numbers in range.",
)
HELPERS = {"norm_scale": _SCALE, **HELPERS}
