"""The built-in functions as CUDA C++: CUDA's own, or the prelude's.

CUDA's own are taken where their documented error is at most two units in the last place in float32
and four in float64; in float64 also ``tgamma``, with up to ten, and ``lgamma``, with more than
four next to its negative zeros. Of the others, float32 functions are float64 ones, rounded.
"""

from __future__ import annotations

from tcl.codegen.cuda.cpp.pieces import Binds, Piece, call, converted, infix
from tcl.grammar.syntax.types import FLOAT64, ScalarType

_BY_DOUBLE = frozenset(
    """acos acosh asin asinh atan2 atanh cyl_bessel_i0 cyl_bessel_i1 erfc erfcinv erfcx erfinv
    j0 j1 lgamma normcdf normcdfinv pow sinh tan tgamma y0 y1""".split()
)
"""Functions whose float32 version is less exact, or lacking."""
OWN = {
    **dict.fromkeys(("hypot", "norm3d", "norm4d"), "norm_of"),
    **dict.fromkeys(("rhypot", "rnorm3d", "rnorm4d"), "rnorm_of"),
    **{
        name: f"{name}_of"
        for name in """cyl_bessel_i0 cyl_bessel_i1 erfcinv erfcx erfinv expit j0 j1 normcdf
        normcdfinv y0 y1""".split()
    },
}
"""Built-in → the helper function of the prelude, of either type or of float64."""
OWN_DOUBLE = {"erfc": "erfc_of"}
"""As ``OWN``, for float64 only: rounded to float32, CUDA's function is exact enough."""


def builtin(name: str, arguments: list[Piece], t: ScalarType) -> Piece:
    """The built-in ``name`` on arguments of type ``t``."""
    if name == "fdivide":
        return infix("/", arguments[0], arguments[1], Binds.PRODUCT)
    if t == FLOAT64:
        return call((OWN | OWN_DOUBLE).get(name, name), *arguments)
    if name in _BY_DOUBLE:
        wide = [converted("double", a) for a in arguments]
        return converted("float", call(OWN.get(name, name), *wide))
    return call(OWN.get(name, f"{name}f"), *arguments)
