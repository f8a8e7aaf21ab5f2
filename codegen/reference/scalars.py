"""How single operations on scalars are spelled in generated code.

Numba and NumPy promote mixed operands their own way (int32 + int32 gives int64, uint64 with
int64 gives float64), so results are cast back to the type of the operation, always.
"""

from __future__ import annotations

from tcl.grammar.syntax.types import BFLOAT16, FLOAT64, UINT64, Kind, ScalarType


def literal(value: int | float | bool, t: ScalarType) -> str:
    """A literal of type ``t``."""
    if t.is_float:
        return f"{t.compute.name}({float(value)!r})"
    if t.is_bool:
        return str(bool(value))
    return integer_constant(int(value), t)


def integer_constant(value: int, t: ScalarType) -> str:
    """An integer literal wrapped to the integral type ``t``."""
    low, high = t.limits
    return f"{t.name}({(value - low) % (high - low + 1) + low})"


def negation(t: ScalarType) -> str:
    """Template of ``-x``."""
    return "(-{})" if t.is_float else f"{t.name}(-{{}})"


def arithmetic(op: str, t: ScalarType) -> str:
    """Template of ``+ - * / % min max`` on two values of type ``t``."""
    if op in ("min", "max") and not t.is_bool:
        return ("minimum" if op == "min" else "maximum") + "({}, {})"
    if t.is_float:
        if op != "%":
            return f"({{}} {op} {{}})"
        if t.compute == FLOAT64:
            return "b_fmod({}, {})"
        return "float32(b_fmod(float64({}), float64({})))"
    if t.is_bool:
        return "({} or {})" if op in ("+", "max") else "({} and {})"
    if op in ("/", "%"):
        function = "divide" if op == "/" else "modulo"
        if t.kind is Kind.UINT:
            return f"{t.name}({function}_unsigned(uint64({{}}), uint64({{}})))"
        return f"{t.name}({function}(int64({{}}), int64({{}})))"
    return f"{t.name}({{}} {op} {{}})"


def convert(source: ScalarType, target: ScalarType) -> str:
    """Template of a cast from ``source`` to ``target``."""
    if target.is_bool:
        return "{}" if source.is_bool else f"({{}} != {literal(0, source)})"
    if target.is_float:
        return _to_float(source, target)
    if not source.is_float:
        return f"{target.name}({{}})"
    if target == UINT64:
        return "float_to_uint64(float64({}))"
    low, high = target.limits
    return f"{target.name}(float_to_int(float64({{}}), int64({low}), int64({high})))"


def _to_float(source: ScalarType, target: ScalarType) -> str:
    if target.bits > 16:
        return "{}" if source.compute == target else f"{target.name}({{}})"
    if source.is_integral and source.bits == 64 and target == BFLOAT16:
        return f"round_bfloat16(odd_from_{source.name}({{}}))"
    return f"round_{target.name}(float64({{}}))"


def loaded(t: ScalarType) -> str:
    """Template that turns a stored element into a value."""
    return f"{t.name}_value({{}})" if t.is_float and t.bits == 16 else "{}"


def stored(t: ScalarType) -> str:
    """Template that turns a value into an element to store."""
    return f"{t.name}_bits(float64({{}}))" if t.is_float and t.bits == 16 else "{}"


def identity_value(op: str, t: ScalarType) -> str:
    """The value that a reduction starts from."""
    if op in ("+", "*"):
        return literal(0 if op == "+" else 1, t)
    if t.is_float:
        return f"{t.compute.name}({'inf' if op == 'min' else '-inf'})"
    low, high = t.limits
    return literal(high if op == "min" else low, t)
