"""Operators as CUDA C++: ``+ - * / % min max``, comparisons, ``&& ||``, unary ``- !``."""

from __future__ import annotations

from tcl.codegen.cuda.cpp.pieces import Binds, Piece, call, converted, infix, prefix
from tcl.codegen.cuda.cpp.types import c_type, is_small
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, UINT16, Kind, ScalarType

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_INFIX = {"+": Binds.SUM, "-": Binds.SUM, "*": Binds.PRODUCT, "/": Binds.PRODUCT}
_BOOL = {"+": "||", "max": "||", "*": "&&", "min": "&&", "||": "||", "&&": "&&"}
_LOGIC = {"||": Binds.OR, "&&": Binds.AND}
_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo"}
_NAMES |= {"min": "min_of", "max": "max_of"}


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
    if is_small(t):
        return converted(c_type(t), prefix("-", _without_conversion(operand, t)))
    if t.kind is Kind.UINT:
        return prefix("-", operand)
    return call("subtract", Piece("0LL" if t.bits == 64 else "0"), operand)


def accumulated(op: str, target: str, value: Piece, t: ScalarType) -> str:
    """The statement ``target op= value``."""
    if t.is_bool:
        return f"{target} {'|' if op in ('+', 'max') else '&'}= {value.text};"
    in_place = t.is_float or is_small(t) or t.kind is Kind.UINT
    if op in ("+", "*") and in_place and (op, t) != ("*", UINT16):
        return f"{target} {op}= {value.text};"
    return f"{target} = {reduced(op, Piece(target), value, t).text};"


def _divide(op: str, left: Piece, right: Piece, t: ScalarType) -> Piece:
    """Integer / and %."""
    divisor = _literal(right, t)
    if divisor > 0:
        whole = infix(
            op, _without_conversion(left, t), _without_conversion(right, t), Binds.PRODUCT
        )
        return converted(c_type(t), whole) if is_small(t) else whole
    return call(_NAMES[op], left, right)


def _without_conversion(piece: Piece, t: ScalarType) -> Piece:
    """A constant of a small type without its conversion, for where C++ converts anyway."""
    head = f"({c_type(t)})"
    rest = piece.text.removeprefix(head)
    if not is_small(t) or rest == piece.text or not rest.lstrip("-").isdigit():
        return piece
    return Piece(rest, Binds.UNARY if rest.startswith("-") else Binds.PRIMARY)


def _literal(piece: Piece, t: ScalarType) -> int:
    """The value of a positive constant; 0 for all else."""
    digits = _without_conversion(piece, t).text.rstrip("uUL")
    return int(digits) if digits.isdigit() else 0


def constant_binds(text: str) -> Binds:
    """How tightly a constant binds."""
    return Binds.UNARY if text.startswith("-") or ")" in text[1:-1] else Binds.PRIMARY
