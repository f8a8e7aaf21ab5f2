"""Derivatives of the built-in functions, in the language.

Each is a text in the function's arguments ``x y z w``. What a comparison decides is a list of
cases, which become guards: nothing of the side that is not taken reaches a gradient.
"""

from __future__ import annotations

from typing import TypeAlias

Cases: TypeAlias = tuple[tuple[str, str], ...]
"""(condition, derivative), of which no two hold at once; where none holds it is 0. The condition is
empty where there is no other case."""

_LOG2, _LOG10 = "0.6931471805599453", "2.302585092994046"
_PI, _TWO_OVER_ROOT_PI = "3.141592653589793", "1.1283791670955126"
_HALF_ROOT_PI, _ROOT_TWO_PI, _OVER_ROOT_TWO_PI = (
    "0.886226925452758",
    "2.5066282746310002",
    "0.3989422804014327",
)

_OF_ONE = {
    "acos": "-1 / sqrt((1 - x) * (1 + x))",
    "acosh": "1 / sqrt((x - 1) * (x + 1))",
    "asin": "1 / sqrt((1 - x) * (1 + x))",
    "asinh": "1 / hypot(x, 1)",
    "atan": "1 / (1 + x * x)",
    "atanh": "1 / ((1 - x) * (1 + x))",
    "cbrt": "1 / (3 * cbrt(x) * cbrt(x))",
    "cos": "-sin(x)",
    "cosh": "sinh(x)",
    "cospi": f"-{_PI} * sinpi(x)",
    "cyl_bessel_i0": "cyl_bessel_i1(x)",
    "erf": f"{_TWO_OVER_ROOT_PI} * exp(-x * x)",
    "erfc": f"-{_TWO_OVER_ROOT_PI} * exp(-x * x)",
    "erfcinv": f"-{_HALF_ROOT_PI} * exp(erfcinv(x) * erfcinv(x))",
    "erfcx": f"2 * x * erfcx(x) - {_TWO_OVER_ROOT_PI}",
    "erfinv": f"{_HALF_ROOT_PI} * exp(erfinv(x) * erfinv(x))",
    "exp": "exp(x)",
    "exp10": f"{_LOG10} * exp10(x)",
    "exp2": f"{_LOG2} * exp2(x)",
    "expit": "expit(x) * expit(-x)",
    "expm1": "exp(x)",
    "j0": "-j1(x)",
    "log": "1 / x",
    "log10": f"1 / ({_LOG10} * x)",
    "log1p": "1 / (1 + x)",
    "log2": f"1 / ({_LOG2} * x)",
    "normcdf": f"{_OVER_ROOT_TWO_PI} * exp(-0.5 * x * x)",
    "normcdfinv": f"{_ROOT_TWO_PI} * exp(0.5 * normcdfinv(x) * normcdfinv(x))",
    "rcbrt": "-rcbrt(x) / (3 * x)",
    "rsqrt": "-0.5 * rsqrt(x) / x",
    "sin": "cos(x)",
    "sinh": "cosh(x)",
    "sinpi": f"{_PI} * cospi(x)",
    "sqrt": "0.5 / sqrt(x)",
    "tan": "1 + tan(x) * tan(x)",
    "tanh": "1 - tanh(x) * tanh(x)",
    "y0": "-y1(x)",
    "y1": "y0(x) - y1(x) / x",
}

_NORMS = {"hypot": "xy", "norm3d": "xyz", "norm4d": "xyzw"}
_OVER_NORMS = {"rhypot": "xy", "rnorm3d": "xyz", "rnorm4d": "xyzw"}


def _norms() -> dict[str, tuple[Cases, ...]]:
    """Square roots of sums of squares, and one over them."""
    found: dict[str, tuple[Cases, ...]] = {}
    for function, letters in _NORMS.items():
        value = f"{function}({', '.join(letters)})"
        found[function] = tuple((("", f"{letter} / {value}"),) for letter in letters)
    for function, letters in _OVER_NORMS.items():
        value = f"{function}({', '.join(letters)})"
        cubed = f"{value} * {value} * {value}"
        found[function] = tuple((("", f"-{letter} * {cubed}"),) for letter in letters)
    return found


DERIVATIVES: dict[str, tuple[Cases, ...]] = {
    **{function: ((("", text),),) for function, text in _OF_ONE.items()},
    **_norms(),
    "atan2": (
        (("", "y / (x * x + y * y)"),),
        (("", "-x / (x * x + y * y)"),),
    ),
    "copysign": ((("x != 0", "copysign(1.0, x) * copysign(1.0, y)"),), ()),
    "cyl_bessel_i1": ((("x != 0", "cyl_bessel_i0(x) - cyl_bessel_i1(x) / x"), ("x == 0", "0.5")),),
    "fabs": ((("x > 0", "1"), ("x < 0", "-1")),),
    "fdim": (
        (("x > y", "1"), ("x == y", "0.5")),
        (("x > y", "-1"), ("x == y", "-0.5")),
    ),
    "fdivide": ((("", "1 / y"),), (("", "-x / (y * y)"),)),
    "fma": ((("", "y"),), (("", "x"),), (("", "1"),)),
    "fmod": ((("", "1"),), (("", "(fmod(x, y) - x) / y"),)),
    "j1": ((("x != 0", "j0(x) - j1(x) / x"), ("x == 0", "0.5")),),
    "pow": (
        (("y != 0", "y * pow(x, y - 1)"),),
        (("x != 0 || y < 0", "pow(x, y) * log(x)"),),
    ),
    "remainder": ((("", "1"),), (("", "(remainder(x, y) - x) / y"),)),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), ((),)),
}
"""Function → the derivative by each argument. ``fmin`` and ``fmax`` have rules of their own."""

REFUSED = {
    "lgamma": "the digamma function, which the language does not have",
    "tgamma": "the digamma function, which the language does not have",
    "logb": "not defined: the function is a whole number with jumps",
    "nextafter": "not defined: the function steps between numbers",
}
"""Functions without a derivative that can be said, and what it would take."""
