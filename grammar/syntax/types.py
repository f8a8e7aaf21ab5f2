"""Scalar types and how they combine.

The rules are Tensor Comprehensions' own: a float wins over an integer, the wider wins within a
kind, signed wins over unsigned. Number literals are weak: they take the type of what they are
combined with (NumPy's NEP 50), so that ``0.1 * x`` is computed in ``x``'s precision.
"""

from __future__ import annotations

from enum import Enum

from tcl.common.dataclass import dataclass


class Kind(Enum):
    """Families of scalar types."""

    BOOL = "bool"
    UINT = "uint"
    INT = "int"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class ScalarType:
    name: str
    """As written in a def and shown in messages."""
    kind: Kind
    bits: int
    weak: bool = False
    """True for a literal whose type is decided by what it meets."""

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:  # that of an enumeration takes a microsecond
        return hash(self.name)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @property
    def is_integral(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def compute(self) -> ScalarType:
        """The type arithmetic is done in: float32 for the 16-bit floats, else the type itself."""
        return FLOAT32 if self.is_float and self.bits == 16 else self

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory: a bool takes one, too."""
        return max(1, self.bits // 8)

    def holds(self, other: ScalarType) -> bool:
        """Whether this and another are integer types, and it has all values of the other."""
        if not (self.is_integral and other.is_integral):
            return False
        (low, high), (least, most) = self.limits, other.limits
        return low <= least and most <= high

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of a bool or integer type."""
        match self.kind:
            case Kind.BOOL:
                return 0, 1
            case Kind.UINT:
                return 0, 2**self.bits - 1
            case Kind.INT:
                return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
            case Kind.FLOAT:
                raise ValueError(f"{self.name} has no integer limits")


BOOL = ScalarType("bool", Kind.BOOL, 1)
UINT8, UINT16, UINT32, UINT64 = (ScalarType(f"uint{b}", Kind.UINT, b) for b in (8, 16, 32, 64))
INT8, INT16, INT32, INT64 = (ScalarType(f"int{b}", Kind.INT, b) for b in (8, 16, 32, 64))
FLOAT16, FLOAT32, FLOAT64 = (ScalarType(f"float{b}", Kind.FLOAT, b) for b in (16, 32, 64))
BFLOAT16 = ScalarType("bfloat16", Kind.FLOAT, 16)
WEAK_INT = ScalarType("integer literal", Kind.INT, 32, weak=True)
WEAK_FLOAT = ScalarType("float literal", Kind.FLOAT, 32, weak=True)

INDEX = INT32
"""The type of index variables and sizes used as values."""

SCALAR_TYPES = {
    t.name: t
    for t in (
        *(BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64),
        *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64),
    )
}
ALIASES = {"half": "float16", "float": "float32", "double": "float64", "byte": "uint8"}


def zero_text(type_: ScalarType) -> str:
    """0 as a def says it where nothing else gives it its type."""
    return {"float32": "0.0", "int32": "0"}.get(type_.name, f"{type_.name}(0)")


def scalar_type(name: str) -> ScalarType:
    """The type that a type name or alias stands for; ``KeyError`` for any other name."""
    return SCALAR_TYPES[ALIASES.get(name, name)]


def promote(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type in which two values of these types meet."""
    if a == b:
        return a
    if a.weak and b.weak:
        return WEAK_FLOAT
    if a.weak or b.weak:
        weak, strong = (a, b) if a.weak else (b, a)
        if weak.is_float:
            return strong if strong.is_float else FLOAT32
        return INT32 if strong.is_bool else strong
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return a if a.is_float else b
        if a.bits == b.bits:  # float16 meets bfloat16
            return FLOAT32
        return a if a.bits > b.bits else b
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.kind is b.kind:
        return a if a.bits > b.bits else b
    return SCALAR_TYPES[f"int{max(a.bits, b.bits)}"]


def arithmetic(t: ScalarType) -> ScalarType:
    """The type of ``+ - * / %`` over operands of type ``t``: bools count as int32, as in C."""
    return INT32 if t.is_bool else t


def assignable(value: ScalarType, target: ScalarType) -> bool:
    """Whether a value may be assigned to a tensor of type ``target`` without a cast."""
    return promote(value, target) == target
