"""Values of the loop IR as C: every text has the C type of its scalar type, or converts to it."""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.loopir import ir
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import Size, Undecided
from tcl.grammar.syntax.types import FLOAT64, Kind, ScalarType

HELPERS = """\
#include <math.h>
#include <stdlib.h>

// Integers wrap, division by 0 gives 0, a NaN wins in minima and maxima, conversions saturate.
#define TCL_ADD(T, a, b) ({ T _r; __builtin_add_overflow((T)(a), (T)(b), &_r); _r; })
#define TCL_SUB(T, a, b) ({ T _r; __builtin_sub_overflow((T)(a), (T)(b), &_r); _r; })
#define TCL_MUL(T, a, b) ({ T _r; __builtin_mul_overflow((T)(a), (T)(b), &_r); _r; })
#define TCL_DIV(T, a, b) ({ T _a = (a), _b = (b); \\
    _b == 0 ? (T)0 : (T)-1 < 0 && _b == (T)-1 ? TCL_SUB(T, 0, _a) : (T)(_a / _b); })
#define TCL_MOD(T, a, b) ({ T _a = (a), _b = (b); \\
    _b == 0 || ((T)-1 < 0 && _b == (T)-1) ? (T)0 : (T)(_a % _b); })
#define TCL_MIN(T, a, b) ({ T _a = (a), _b = (b); _a < _b || _a != _a ? _a : _b; })
#define TCL_MAX(T, a, b) ({ T _a = (a), _b = (b); _a > _b || _a != _a ? _a : _b; })
#define TCL_TO(T, x, low, high) ({ double _x = (x); \\
    _x != _x ? (T)0 : _x <= (double)(low) ? (low) : _x >= (double)(high) ? (high) : (T)_x; })
// The position of an index; outside of the tensor, that is recorded, and 0 taken.
#define TCL_AT(index, first, extent, site) ({ long long _i = (index) - (first); \\
    if (_i < 0 || _i >= (extent)) failed = failed ? failed : (site), _i = 0; \\
    _i; })
"""

_NAMES = {
    **{"bool": "_Bool", "float32": "float", "float64": "double"},
    **{"int8": "signed char", "int16": "short", "int32": "int", "int64": "long long"},
    **{"uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int"},
    **{"uint64": "unsigned long long"},
}
_SUFFIXES = {"uint32": "u", "int64": "ll", "uint64": "ull", "float32": "f"}
_INTEGERS = {"+": "TCL_ADD", "-": "TCL_SUB", "*": "TCL_MUL", "/": "TCL_DIV", "%": "TCL_MOD"}
_LOGIC = {"+": "||", "max": "||", "*": "&&", "min": "&&", "||": "||", "&&": "&&"}
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_LIBRARY = frozenset(
    """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1
    fabs fdim floor fma fmax fmin fmod hypot j0 j1 lgamma log log10 log1p log2 logb nextafter pow
    remainder round sin sinh sqrt tan tanh tgamma trunc y0 y1""".split()
)
"""C's functions, of the same names."""
_FORMULAS = {
    "exp10": "pow(10.0, {})",
    "expit": "({{ double _x = ({}), _e = exp(-fabs(_x)); (_x < 0 ? _e : 1.0) / (1.0 + _e); }})",
    "fdivide": "(({}) / ({}))",
    "normcdf": "(0.5 * erfc(({}) * -0.70710678118654752))",
    "rcbrt": "(1.0 / cbrt({}))",
    "rhypot": "(1.0 / hypot({}, {}))",
    "norm3d": "hypot(hypot({}, {}), {})",
    "norm4d": "hypot(hypot({}, {}), hypot({}, {}))",
    "rnorm3d": "(1.0 / hypot(hypot({}, {}), {}))",
    "rnorm4d": "(1.0 / hypot(hypot({}, {}), hypot({}, {})))",
    "rsqrt": "(1.0 / sqrt({}))",
}
"""Of float64."""


def c_type(t: ScalarType) -> str:
    """The C type of a scalar type. Raises ``OptionsError`` for a 16-bit float."""
    if t.name not in _NAMES:
        raise OptionsError(f"C has no {t.name}; show the source for cpu, or use float32")
    return _NAMES[t.name]


def constant(value: int | float | bool, t: ScalarType) -> str:
    """A constant, exactly."""
    if isinstance(value, Size):
        raise Undecided("kernels in C are for given sizes")
    if t.is_bool:
        return str(int(value))
    if not t.is_float:
        low, high = t.limits
        whole = (int(value) - low) % (high - low + 1) + low
        suffix = _SUFFIXES.get(t.name, "")
        text = f"({whole + 1}{suffix} - 1)" if whole == low < 0 else f"{whole}{suffix}"
        return f"({c_type(t)}){text}"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    return f"{float(value).hex()}{_SUFFIXES.get(t.name, '')}"


class Values:
    """Writes values. Callbacks write what depends on the place: ``index`` an index expression,
    ``load`` an element, ``variable`` what a name holds, ``combined`` what accumulators give."""

    def __init__(
        self,
        index: Callable[[ir.Affine], str],
        load: Callable[[ir.Load], str],
        variable: Callable[[str], str],
        combined: Callable[[ir.Combined], str],
    ) -> None:
        self.index, self.load, self.variable, self.combined = index, load, variable, combined

    def text(self, value: ir.Value) -> str:
        """The value as an expression that can stand anywhere."""
        match value:
            case ir.Const(value=number, type=t):
                return f"({constant(number, t)})"
            case ir.Position(index=index, type=t):
                return f"({c_type(t)})({self.index(index)})"
            case ir.Variable(name=name):
                return self.variable(name)
            case ir.Combined():
                return self.combined(value)
            case ir.Load():
                return self.load(value)
            case ir.Unary(op=op, operand=operand, type=t):
                inner = self.text(operand)
                if op == "-" and not t.is_float:
                    return f"TCL_SUB({c_type(t)}, 0, {inner})"
                return f"({op}{inner})"
            case ir.Binary(op=op, left=left, right=right):
                return binary(op, self.text(left), self.text(right), left.type)
            case ir.Select(condition=condition, then=then, otherwise=otherwise, type=t):
                which, first, second = map(self.text, (condition, then, otherwise))
                return f"({c_type(t)})({which} ? {first} : {second})"
            case ir.Call(name=name, arguments=arguments, type=t):
                return _call(name, [self.text(a) for a in arguments], t)
            case ir.Cast(operand=operand, type=t):
                return converted(self.text(operand), operand.type, t)


def binary(op: str, left: str, right: str, t: ScalarType) -> str:
    """``left op right``, both of type ``t``."""
    if op in _COMPARISONS:
        return f"({left} {op} {right})"
    if t.is_bool:
        return f"({left} {_LOGIC[op]} {right})"
    if op in ("min", "max"):
        return f"TCL_{op.upper()}({c_type(t)}, {left}, {right})"
    if t.is_float:
        return f"({c_type(t)})fmod({left}, {right})" if op == "%" else f"({left} {op} {right})"
    return f"{_INTEGERS[op]}({c_type(t)}, {left}, {right})"


def converted(text: str, source: ScalarType, target: ScalarType) -> str:
    """A value of type ``source`` as ``target``."""
    if target.is_bool:
        return f"({text} != 0)"
    if source.is_float and target.kind in (Kind.INT, Kind.UINT):
        low, high = (constant(limit, target) for limit in target.limits)
        return f"TCL_TO({c_type(target)}, {text}, {low}, {high})"
    return f"({c_type(target)}){text}"


def _call(name: str, arguments: list[str], t: ScalarType) -> str:
    """A built-in, of float64: of float32, its result is rounded."""
    if name == "nextafter" and t != FLOAT64:
        return f"nextafterf({', '.join(arguments)})"
    if name == "fma" and t != FLOAT64:
        return f"fmaf({', '.join(arguments)})"
    if name in _LIBRARY:
        return f"({c_type(t)}){name}({', '.join(arguments)})"
    if name not in _FORMULAS:
        raise OptionsError(f"C has no {name}; show the source for cpu")
    return f"({c_type(t)}){_FORMULAS[name].format(*(f'(double){a}' for a in arguments))}"
