"""float32 formulas in float32 arithmetic.

Coefficients are minimax polynomials of the relative error, found by the Remez algorithm in
160-bit arithmetic and rounded to float32 one after the other, the rest fitted anew each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.scale import (
    in_range,
    times_normal_power,
    times_power,
    up_to,
)
from tcl.codegen.cpu.math.tools import (
    at_least,
    at_most,
    log_edges,
    log_times,
    logistic,
    normal,
    polynomial,
    round_shifted,
    split,
    with_sign,
)

_LOG2_E = math.log2(math.e)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""The logarithm of 2: eleven bits, and the rest."""

_LOG10_2_HIGH, _LOG10_2_LOW = 0.301025390625, 4.605038981195214e-06
"""log10(2), likewise."""

# The exponential functions.

_EXP = (0.4999999403953552, 0.16666516661643982, 0.04166809841990471, 0.008369196206331253,
        0.0013839409220963717)  # fmt: skip
"""exp(r) = 1 + r + r*r * p(r) for |r| <= log(2)/2."""


def _exp(x: Number) -> Number:
    x = in_range(x, -104.0, 89.0)
    n, shifted = round_shifted(x, _LOG2_E, 254)
    r = n.fma(x.like(-_LN2_LOW), n.fma(x.like(-_LN2_HIGH), x))
    return times_power(polynomial(r, (1.0, 1.0, *_EXP)), n, shifted)


def _exp_within(x: Number) -> Number:
    """The same for -87 <= x <= 88."""
    n, shifted = round_shifted(x, _LOG2_E, 127)
    r = n.fma(x.like(-_LN2_LOW), n.fma(x.like(-_LN2_HIGH), x))
    return times_normal_power(polynomial(r, (1.0, 1.0, *_EXP)), n, shifted)


# 2**r = 1 + r * p(r) and 10**r = 1 + r * log(10) + r*r * p(r).
_EXP2 = (0.6931472420692444, 0.24022655189037323, 0.05550272390246391, 0.009617065079510212,
         0.0013418126618489623, 0.00015821278793737292)  # fmt: skip
_EXP10 = (2.6509487628936768, 2.0346598625183105, 1.1712896823883057, 0.541728138923645,
          0.2065030187368393)  # fmt: skip
_LN10_HIGH, _LN10_LOW = 2.302585124969482, -3.1975436e-08


def _exp2(x: Number) -> Number:
    x = in_range(x, -151.0, 129.0)
    n, shifted = round_shifted(x, 1.0, 254)
    return times_power(polynomial(x - n, (1.0, *_EXP2)), n, shifted)


def _exp10(x: Number) -> Number:
    x = in_range(x, -46.0, 39.0)
    n, shifted = round_shifted(x, math.log2(10), 254)
    r = n.fma(x.like(-_LOG10_2_LOW), n.fma(x.like(-_LOG10_2_HIGH), x))
    low = (r * r).fma(polynomial(r, _EXP10), r * _LN10_LOW)
    return times_power(r.fma(x.like(_LN10_HIGH), low) + 1.0, n, shifted)


_EXPM1 = (0.4999999701976776, 0.16666539013385773, 0.04166775569319725, 0.008367122150957584,
          0.0013835729332640767)  # fmt: skip
"""expm1(r) = r + r*r * p(r) for |r| <= log(2)/2."""


_TANH_NEAR = (-0.33333316445350647, 0.13332544267177582, -0.05384804680943489,
              0.021055085584521294, -0.006252137012779713)  # fmt: skip
"""tanh(x) = x + x*x*x * p(x*x) for |x| <= 0.55."""


def _expm1(x: Number) -> Number:
    kept = at_least(at_most(x, 89.0), -20.0)
    n, shifted = round_shifted(kept, _LOG2_E, 126)
    r = n.fma(x.like(-_LN2_LOW), n.fma(x.like(-_LN2_HIGH), kept))
    p = (r * r).fma(polynomial(r, _EXPM1), r)
    # Half of it, as 2**128 is no float32.
    half = (shifted << 23).number()
    result = half.fma(p, half - 0.5)
    return (x.abs() < 1e-12).choose(x, result + result)


def _tanh(x: Number) -> Number:
    square = x * x
    near = (x * square).fma(polynomial(square, _TANH_NEAR), x)
    e = _exp_within(up_to(x.abs() * 2.0, 20.0))
    far = x.like(1.0) - x.like(2.0) / (e + 1.0)
    return with_sign((x.abs() > 0.55).choose(far, near), x)


# Logarithms.

_LOG = (0.3333333134651184, -0.250008225440979, 0.20001259446144104, -0.16623321175575256,
        0.14201124012470245, -0.13160058856010437, 0.12765288352966309,
        -0.07638663053512573)  # fmt: skip
"""log(1 + f) = f - f*f/2 + f*f*f * p(f) for 1 + f from sqrt(1/2) to sqrt(2)."""


def _log_parts(x: Number) -> tuple[Number, Number, Number]:
    """f, log(1 + f) - f and e, for x = (1 + f) * 2**e; garbage unless x is positive."""
    scaled, less = normal(x)
    m, e = split(scaled)
    f = m - 1.0
    square = f * f
    return f, square.fma(x.like(-0.5), square * f * polynomial(f, _LOG)), e + less


def _log(x: Number) -> Number:
    f, rest, e = _log_parts(x)
    low = e.fma(x.like(_LN2_LOW), rest) + f
    return log_edges(x, e.fma(x.like(_LN2_HIGH), low))


_LOG2_E_PARTS = 1.4426950216293335, _LOG2_E - 1.4426950216293335
_LOG10_E_PARTS = 0.4342944920063019, math.log10(math.e) - 0.4342944920063019


def _log2(x: Number) -> Number:
    f, rest, e = _log_parts(x)
    return log_edges(x, log_times(f, rest, e, _LOG2_E_PARTS))


def _log10(x: Number) -> Number:
    f, rest, e = _log_parts(x)
    rest = e.fma(x.like(_LOG10_2_LOW * math.log(10)), rest)
    return log_edges(x, log_times(f, rest, e * _LOG10_2_HIGH, _LOG10_E_PARTS))


# The error function.

_ERF_NEAR = (0.12837915122509003, -0.37612488865852356, 0.11281732469797134,
             -0.026763057336211205, 0.004987509921193123, -0.0005960409180261195)  # fmt: skip
"""erf(x) = x + x * p(x*x) for |x| <= 0.93."""
_ERF_FAR = (-0.12864850461483002, -0.6351512670516968, -0.10623694211244583,
            0.02376210130751133, -0.003642467549070716, 0.00032280301093123853,
            -1.1230838026676793e-05)  # fmt: skip
"""log(erfc(t)) = -t + t * p(t) from 0.92 to 3.95."""


def _erf(x: Number) -> Number:
    near = x.fma(polynomial(x * x, _ERF_NEAR), x)
    t = at_most(x.abs(), 3.95)
    exponent = t.fma(polynomial(t, _ERF_FAR), -t)
    far = with_sign(x.like(1.0) - _exp_within(exponent), x)
    return (x.abs() > 0.93).choose(far, near)


FORMULAS: dict[str, Callable[..., Number]] = {
    "erf": _erf,
    "exp": _exp,
    "exp10": _exp10,
    "exp2": _exp2,
    "expit": lambda x: logistic(x, _exp),
    "expm1": _expm1,
    "log": _log,
    "log10": _log10,
    "log2": _log2,
    "rsqrt": lambda x: x.like(1.0) / x.sqrt(),
    "tanh": _tanh,
}
