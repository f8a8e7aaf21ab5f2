"""The built-in functions: CUDA's math library, as in Tensor Comprehensions, and ``expit``.

A built-in takes and returns floats. Integer and bool arguments are converted to float32, a
wider float argument decides the type of the call. 16-bit floats are computed in float32.
"""

from __future__ import annotations

from types import MappingProxyType

_BY_ARITY = {
    1: """acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1
          erf erfc erfcinv erfcx erfinv exp exp10 exp2 expit expm1 fabs floor j0 j1 lgamma log
          log10 log1p log2 logb normcdf normcdfinv rcbrt round rsqrt sin sinh sinpi sqrt tan tanh
          tgamma trunc y0 y1""",
    2: """atan2 copysign fdim fdivide fmax fmin fmod hypot nextafter pow remainder rhypot""",
    3: """fma norm3d rnorm3d""",
    4: """norm4d rnorm4d""",
}

BUILTINS: MappingProxyType[str, int] = MappingProxyType(
    {name: arity for arity, names in _BY_ARITY.items() for name in names.split()}
)
"""Name → number of arguments."""
