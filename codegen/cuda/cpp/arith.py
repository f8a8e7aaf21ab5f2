"""Operators, conversions and built-in functions as CUDA C++.

CUDA's own functions are taken where their documented error is at most two units in the last place
in float32 and four in float64; in float64 also ``tgamma``, with up to ten, and ``lgamma``, with
more than four next to its negative zeros. Of the others, float32 functions are float64 ones,
rounded.
"""

from __future__ import annotations

from tcl.codegen.cuda.cpp.pieces import Binds, Piece, call, converted, infix, prefix
from tcl.codegen.cuda.cpp.types import c_type, constant, is_half, is_small
from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import FLOAT16, FLOAT32, FLOAT64, UINT16, Kind, ScalarType

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_INFIX = {"+": Binds.SUM, "-": Binds.SUM, "*": Binds.PRODUCT, "/": Binds.PRODUCT}
_BOOL = {"+": "||", "max": "||", "*": "&&", "min": "&&", "||": "||", "&&": "&&"}
_LOGIC = {"||": Binds.OR, "&&": Binds.AND}
_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo"}
_NAMES |= {"min": "min_of", "max": "max_of"}
_ZERO = Piece("0LL")


def binary(op: str, left: Piece, right: Piece, t: ScalarType) -> Piece:
    """``left op right``, both of type ``t``."""
    if op in _COMPARISONS:
        return infix(
            op, _without_conversion(left, t), _without_conversion(right, t), Binds.COMPARISON
        )
    if t.is_bool:
        return infix(_BOOL[op], left, right, _LOGIC[_BOOL[op]])
    if op in ("min", "max"):
        return call(_NAMES[op], left, right)
    if t.is_float:
        if op == "%":
            return call("fmod" if t == FLOAT64 else "fmodf", left, right)
        return infix(op, left, right, _INFIX[op])
    if op in ("/", "%"):
        return _divide(op, left, right, t)
    first, second = (_without_conversion(x, t).text for x in (left, right))
    if (op, first) == ("-", "0") or (op, second) == ("*", "-1"):
        return unary("-", right if op == "-" else left, t)
    if is_small(t) and (op, t) != ("*", UINT16):
        # Computed as int, where it does not overflow.
        whole = infix(op, _without_conversion(left, t), _without_conversion(right, t), _INFIX[op])
        return converted(c_type(t), whole)
    if t.kind is Kind.UINT and not is_small(t):
        return infix(op, left, right, _INFIX[op])
    return call(_NAMES[op], left, right)


def reduced(op: str, left: Piece, right: Piece, t: ScalarType) -> Piece:
    """One step of a reduction: ``binary``, with no say in which of two zeros is the least."""
    if t == FLOAT32 and op in ("min", "max"):
        return call("least_of" if op == "min" else "greatest_of", left, right)
    return binary(op, left, right, t)


def unary(op: str, operand: Piece, t: ScalarType) -> Piece:
    """``-`` or ``!``."""
    if op == "!" or t.is_float:
        return prefix(op, operand)
    if t.bits == 64:
        return prefix("-", operand) if t.kind is Kind.UINT else call("subtract", _ZERO, operand)
    negative = call("negative", _without_conversion(operand, t))
    return negative if c_type(t) == "int" else converted(c_type(t), negative)


def accumulated(op: str, target: str, value: Piece, t: ScalarType) -> str:
    """The statement ``target op= value``."""
    if t.is_bool:
        return f"{target} {'|' if op in ('+', 'max') else '&'}= {value.text};"
    in_place = t.is_float or is_small(t) or t.kind is Kind.UINT
    if op in ("+", "*") and in_place and (op, t) != ("*", UINT16):
        return f"{target} {op}= {value.text};"
    return f"{target} = {reduced(op, Piece(target), value, t).text};"


def _divide(op: str, left: Piece, right: Piece, t: ScalarType) -> Piece:
    divisor = _literal(right, t)
    if divisor > 0:
        whole = infix(
            op, _without_conversion(left, t), _without_conversion(right, t), Binds.PRODUCT
        )
        return converted(c_type(t), whole) if is_small(t) else whole
    return call(_NAMES[op], left, right)


def _without_conversion(piece: Piece, t: ScalarType) -> Piece:
    """A constant of a small type, where it is a number of that type, without its conversion, for
    where C++ converts anyway."""
    head = f"({c_type(t)})"
    rest = piece.text.removeprefix(head)
    if not is_small(t) or rest == piece.text or not rest.lstrip("-").isdigit():
        return piece
    least, most = t.limits
    if not least <= int(rest) <= most:
        return piece
    return Piece(rest, Binds.UNARY if rest.startswith("-") else Binds.PRIMARY)


def _literal(piece: Piece, t: ScalarType) -> int:
    """The value of a positive constant; 0 for all else."""
    digits = _without_conversion(piece, t).text.rstrip("uUL")
    return int(digits) if digits.isdigit() else 0


def constant_binds(text: str) -> Binds:
    return Binds.UNARY if text.startswith("-") or ")" in text[1:-1] else Binds.PRIMARY


def cast(operand: Piece, source: ScalarType, target: ScalarType) -> Piece:
    """A value of type ``source`` as ``target``, by the rules of ``checked.Cast``."""
    if is_half(target):
        single = as_single(operand, source, target)
        exact = not source.is_float and source.bits <= 8
        return single if exact else call(f"round_to_{_short(target)}", single)
    if c_type(source) == c_type(target):
        return operand
    if target.is_bool:
        zero = Piece("0" if is_small(source) else constant(0, source))
        return infix("!=", operand, zero, Binds.COMPARISON)
    if source.is_float and target.is_integral:
        return call(f"to_{target.name}", operand)
    return converted(c_type(target), operand)


def as_single(operand: Piece, source: ScalarType, target: ScalarType) -> Piece:
    """A float that rounds to the 16-bit float ``target`` as the value itself does."""
    if source.compute == FLOAT32:
        return operand
    if source == FLOAT64:
        return call("odd_float", operand)
    if source.bits <= 16:
        return converted("float", operand)
    if source.bits == 32:
        return call("odd_float", converted("double", operand))
    return call("odd_float", call("odd_double", operand))


def bits_of(single: Piece, target: ScalarType) -> Piece:
    """A float, rounded to the bits of a 16-bit float."""
    return call(f"float_to_{_short(target)}", single)


def _short(t: ScalarType) -> str:
    return "half" if t == FLOAT16 else "bfloat"


def bare(value: ir.Value) -> ir.Value:
    """The value without conversions that change nothing in registers."""
    while isinstance(value, ir.Cast) and not is_half(value.type):
        if c_type(value.type) != c_type(value.operand.type):
            break
        value = value.operand
    return value


def is_rounded(value: ir.Value, target: ScalarType) -> bool:
    """Whether it is known to be a value of this 16-bit float. What is read is not: a panel may
    hold wider values of the type."""
    value = bare(value)
    return isinstance(value, ir.Cast) and value.type == target


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
