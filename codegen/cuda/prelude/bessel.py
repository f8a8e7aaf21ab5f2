"""Helper functions of the kernels' source: Bessel functions.

CUDA's own of the first and second kind are good to 5e-12 only, in float64 and beyond 8; the
modified ones are not good to four units in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.common import chebyshev as cpu_tables
from tcl.codegen.cuda.prelude import bessel_coefficients as tables
from tcl.codegen.cuda.prelude.text import device_function, table


def _small(order: int, powers: Sequence[float]) -> str:
    factor = "a * " if order else ""
    return device_function(
        f"double bessel_j{order}_small(double a)",
        table("powers", powers) + f"    return {factor}polynomial(a * a, powers);\n",
        f"j{order} for 0 <= a <= 3.",
    )


def _first_kind(order: int, middle: Sequence[float]) -> str:
    return device_function(
        f"double j{order}_of(double x)",
        table("middle", middle)
        + f"""\
    double a = fabs(x), value;
    if (a > 8.0)
        value = bessel{order}_far(a, false);
    else
        value = a > 3.0 ? chebyshev((a - 5.5) / 2.5, middle) : bessel_j{order}_small(a);
    return {"copysign(1.0, x) * value" if order else "value"};
""",
    )


def _second_kind(order: int, powers: Sequence[float], middle: Sequence[float]) -> str:
    small = "value" if not order else "x * value - 0.6366197723675814 / x"
    pole = "    if (x == 0.0) return -infinity();\n" if order else ""
    return device_function(
        f"double y{order}_of(double x)",
        table("powers", powers)
        + table("middle", middle)
        + f"""\
    if (x > 8.0) return bessel{order}_far(x, true);
    if (x > 3.0) return chebyshev((x - 5.5) / 2.5, middle);
{pole}\
    double value = polynomial(x * x, powers);
    return 0.6366197723675814 * log(x) * bessel_j{order}_small(x) + ({small});
""".replace("+ (value)", "+ value"),
    )


def _far(order: int, p: Sequence[float], q: Sequence[float]) -> str:
    # The phase is x less an eighth of a turn, or three eighths.
    cos, sin = ("s - c", "-s - c") if order else ("c + s", "s - c")
    return device_function(
        f"double bessel{order}_far(double x, bool second_kind)",
        table("series_p", p)
        + table("series_q", q)
        + f"""\
    if (x == infinity()) return 0.0;
    double z = 8.0 / x, t = 2.0 * z * z - 1.0, s = sin(x), c = cos(x);
    double p = chebyshev(t, series_p), q = z * chebyshev(t, series_q);
    double cosine = {cos}, sine = {sin};
    double sum = second_kind ? p * sine + q * cosine : p * cosine - q * sine;
    return sum / (1.772453850905516 * sqrt(x));
""",
        f"j{order} or y{order} for x > 8, by Hankel's expansion.",
    )


def _modified(order: int, small: Sequence[float], large: Sequence[float]) -> str:
    near = "value * a / (a + a + 1.0)" if order else "value / (0.5 * a + 1.0)"
    result = "copysign(value, x)" if order else "value"
    return device_function(
        f"double cyl_bessel_i{order}_of(double x)",
        table("small", small)
        + table("large", large)
        + f"""\
    double a = fabs(x), value;
    if (a > 800.0) a = 800.0;  // infinite from there on
    if (a <= 8.0) {{
        value = chebyshev(0.25 * a - 1.0, small) * exp(a);
        value = {near};
    }} else {{
        bool halves = a > 709.0;  // exp(a) overflows before the function does
        double e = exp(halves ? 0.5 * a : a);
        value = chebyshev(16.0 / a - 1.0, large) / sqrt(a) * e;
        if (halves) value *= e;
    }}
    return {result};
""",
    )


HELPERS: dict[str, str] = {
    "bessel_j0_small": _small(0, tables.J0_SMALL),
    "bessel_j1_small": _small(1, tables.J1_SMALL),
    "bessel0_far": _far(0, tables.P0, tables.Q0),
    "bessel1_far": _far(1, tables.P1, tables.Q1),
    "j0_of": _first_kind(0, tables.J0_MIDDLE),
    "j1_of": _first_kind(1, tables.J1_MIDDLE),
    "y0_of": _second_kind(0, tables.Y0_SMALL, tables.Y0_MIDDLE),
    "y1_of": _second_kind(1, tables.Y1_SMALL, tables.Y1_MIDDLE),
    "cyl_bessel_i0_of": _modified(0, cpu_tables.I0_SMALL, cpu_tables.I0_LARGE),
    "cyl_bessel_i1_of": _modified(1, cpu_tables.I1_SMALL, cpu_tables.I1_LARGE),
}
