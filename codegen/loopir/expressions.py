"""What the loop IR computes from: names of dimensions and folds, elements of memory, and values.

The grammar of the whole tree stands in ``ir``, through which these nodes are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from tcl.codegen.common.warps import WARPGROUP_DEPTH
from tcl.common.dataclass import Hashed, dataclass
from tcl.grammar.sizes.varying import Size, largest, provably_equal, representative, smallest
from tcl.grammar.syntax.types import ScalarType


class IRError(Exception):
    """The IR is built wrongly: a mistake in a pass, never in what a user wrote."""


# Names: dimensions, folds, and index expressions over them.


@dataclass(frozen=True, slots=True)
class Dim:
    """A named range of integers, ``first .. first + extent``."""

    name: str
    """Unique in the program."""
    first: int
    extent: int
    reduction: bool
    """Points along it are combined (in any order), not written apart."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One tile level of a dimension: ``count`` ranges of up to ``step`` points each."""

    dim: str
    level: str
    """``tile``, ``point``, ``lane``, ...; unique within the dimension."""
    step: int
    """Points of the dimension that one iteration covers; 1 for the innermost fold."""
    count: int
    """Iterations when the enclosing range is full."""

    @property
    def name(self) -> str:
        """``dim.level``, unique in the program."""
        return f"{self.dim}.{self.level}"

    @property
    def by_warpgroup(self) -> bool:
        """Whether it is of the points that a warpgroup of a GPU adds up products of at once."""
        return self.level == "mma" and self.count == WARPGROUP_DEPTH


@dataclass(frozen=True, slots=True)
class Affine(Hashed):
    """``constant + sum(coefficient * name)``, exact in 64 bits."""

    terms: tuple[tuple[str, int], ...] = ()
    """(dim or fold name, coefficient), sorted by name, no zero coefficients. A dim stands for
    its value, a fold for its offset in points (``iteration * step``)."""
    constant: int = 0

    @staticmethod
    def variable(name: str) -> Affine:
        """The value of one dim or fold."""
        return Affine(((name, 1),), 0)

    def __add__(self, other: Affine) -> Affine:
        if not (self.terms and other.terms):  # as most are
            return Affine(self.terms or other.terms, self.constant + other.constant)
        terms = dict(self.terms)
        for name, coefficient in other.terms:
            terms[name] = terms.get(name, 0) + coefficient
        kept = tuple(sorted((n, c) for n, c in terms.items() if c))
        return Affine(kept, self.constant + other.constant)

    def scaled(self, factor: int) -> Affine:
        """This expression times an integer."""
        terms = tuple((n, c * factor) for n, c in self.terms) if factor else ()
        return Affine(terms, self.constant * factor)

    def coefficient(self, name: str) -> int:
        """The coefficient of ``name``, 0 when it does not occur."""
        for own, c in self.terms:
            if own == name:
                return c
        return 0

    def interval(self, dims: Mapping[str, Dim]) -> tuple[int, int]:
        """The smallest and the largest value, both taken, over non-empty ``dims``; terms must be
        dims."""
        low = high = self.constant
        for name, c in self.terms:
            ends = (c * dims[name].first, c * (dims[name].first + dims[name].extent - 1))
            low, high = low + smallest(*ends), high + largest(*ends)
        return low, high


# Memory.


class Role(Enum):
    """What a tensor is to the kernel."""

    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"
    """Memory the kernel needs while it runs; contents are undefined before and after."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory: the one place of positions and strides."""

    type: ScalarType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes from one element to the next, per dimension; may be negative or 0."""
    origin: tuple[int, ...]
    """The index of the first element, per dimension."""
    alignment: int = 1
    """Every element's address is a multiple of this many bytes."""
    base: int = 1
    """The first element's address is."""
    swizzle: int = 0
    """Bytes of a row of a panel in which vectors change places (``devices.banks.swizzled``); 0
    where elements lie where strides say."""
    slabs: bool = False
    """Whether such rows are cut into pieces of 128 bytes, and the first pieces of all rows lie
    before all second ones: as warpgroups read panels (PTX ISA, "128-byte swizzle")."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.type.itemsize

    @property
    def elements(self) -> int:
        return math.prod(self.extents)

    @property
    def bytes(self) -> int:
        """Those of all elements."""
        return self.elements * self.itemsize

    def place(self, ref: TensorRef) -> Affine:
        """Bytes from the first element to this one; those that depend on data are left out."""
        constant, terms = 0, dict[str, int]()
        for subscript, stride, first in zip(ref.subscripts, self.strides, self.origin, strict=True):
            if isinstance(subscript, Affine):
                constant += (subscript.constant - first) * stride
                for name, c in subscript.terms:
                    terms[name] = terms.get(name, 0) + c * stride
        return Affine(tuple(sorted((n, c) for n, c in terms.items() if c)), constant)

    def step(self, ref: TensorRef, dim: str) -> int:
        """Elements from one point of a dimension to the next: 0 where the element stays the same, 1
        where neighbouring points, as those of lanes, are neighbours in memory; 2 or more where they
        need not be."""
        return self.steps(ref, (dim,))[0]

    def steps(self, ref: TensorRef, dims: Iterable[str]) -> tuple[int, ...]:
        """As ``step``, of each dimension."""
        place, size = self.place(ref), self.itemsize
        steps = [place.coefficient(dim) // size for dim in dims]
        return tuple([max(2, representative(n)) if isinstance(n, Size) else n for n in steps])

    def selected_row(self, ref: TensorRef) -> int:
        """The elements along the only axis whose subscript data select, if these are neighbours in
        memory and their number is known; else 0."""
        selected = [k for k, s in enumerate(ref.subscripts) if isinstance(s, Computed)]
        if len(selected) != 1 or isinstance(self.extents[selected[0]], Size):
            return 0
        beside = provably_equal(self.strides[selected[0]], self.itemsize)
        return self.extents[selected[0]] if beside else 0

    def in_order(self, ref: TensorRef) -> list[str]:
        """The dimensions along which memory is gone through from front to back."""
        return [
            name for name, stride in self.place(ref).terms if provably_equal(stride, self.itemsize)
        ]

    def footprint(self, ref: TensorRef, points: Mapping[str, int]) -> int:
        """How many elements are touched by dimensions with so many points."""
        found = 1
        for subscript, extent in zip(ref.subscripts, self.extents, strict=True):
            if isinstance(subscript, Affine):
                span = 1 + sum(abs(c) * (points[name] - 1) for name, c in subscript.terms)
                extent = min(extent, span)
            found *= extent
        return found


def contiguous(type_: ScalarType, extents: Iterable[int], origin: Iterable[int]) -> Layout:
    """The row-major layout."""
    shape = tuple(extents)
    itemsize = type_.itemsize
    strides: list[int] = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= largest(1, extent)
    return Layout(type_, shape, tuple(reversed(strides)), tuple(origin))


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument of the kernel, or scratch memory."""

    name: str
    role: Role
    layout: Layout
    private: bool = False
    """Scratch of which each thread has its own."""
    shared: bool = False
    """Scratch of which each block of threads has its own."""
    zeroed: bool = False
    """Scratch that holds zeros before each launch: kernels leave zeros there."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A subscript that depends on data, or is not affine."""

    value: Value
    """Of type int64, or uint64 for a plain value of that type."""
    check: bool
    """Outside the tensor, the failure is recorded and a safe element read instead."""
    of: tuple[str, int] | None = None
    """The tensor and its axis that this is a subscript of for people, if another one."""


Subscript: TypeAlias = Affine | Computed


@dataclass(frozen=True, slots=True)
class TensorRef(Hashed):
    """One element of a tensor, by its indices (not yet shifted by the origin)."""

    tensor: str
    subscripts: tuple[Subscript, ...]

    @property
    def affine(self) -> list[Affine]:
        """The subscripts that are index expressions."""
        return [s for s in self.subscripts if isinstance(s, Affine)]

    @property
    def computed(self) -> list[Computed]:
        """The other ones."""
        return [s for s in self.subscripts if isinstance(s, Computed)]

    @property
    def names(self) -> frozenset[str]:
        """The dimensions and folds that index expressions name."""
        return frozenset(name for s in self.affine for name, _ in s.terms)

    @property
    def is_affine(self) -> bool:
        """Whether all subscripts are index expressions."""
        return not self.computed


# Values.


@dataclass(frozen=True, slots=True)
class Const:
    value: int | float | bool
    type: ScalarType

    def __eq__(self, other: object) -> bool:
        """Whether both are the same bits: zeros of either sign are not."""
        return (
            isinstance(other, Const)
            and self.type == other.type
            and provably_equal(self.value, other.value)
            and (
                not self.type.is_float
                or math.copysign(1, self.value) == math.copysign(1, other.value)
            )
        )


@dataclass(frozen=True, slots=True)
class Position:
    """An index expression as a value; wraps to ``type`` (int32, or int64 in subscripts)."""

    index: Affine
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Variable:
    """What a ``Let`` of the nest holds, or its accumulator for this iteration."""

    name: str
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Combined:
    """What accumulators give in all iterations of these folds, reduced to one value, in any
    order."""

    value: Value
    """Of accumulators that have one each, and of variables."""
    op: str
    folds: tuple[Fold, ...]
    type: ScalarType
    place: int = 0
    """Where threads of several warps hand over theirs: bytes from where a kernel exchanges sums."""
    turn: int = 0
    """Of the folds over a thread's results, so many are gone through in turn, from the outermost:
    the values of the others are handed over at once."""


@dataclass(frozen=True, slots=True)
class Load:
    ref: TensorRef
    type: ScalarType
    total: bool
    """In bounds at every point of the nest: may be read where its value is not needed."""


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    """``-``, or ``!`` on a bool."""
    operand: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Binary:
    """As ``tcl.grammar.tree.checked.Binary``: arithmetic, ``min max``, comparison, ``&& ||``."""

    op: str
    left: Value
    right: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Select:
    """Only the chosen side is evaluated."""

    condition: Value
    then: Value
    otherwise: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function."""

    name: str
    arguments: tuple[Value, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion, rounding to 16 bits where ``type`` is a 16-bit float."""

    operand: Value
    type: ScalarType


Value: TypeAlias = (
    Const | Position | Variable | Combined | Load | Unary | Binary | Select | Call | Cast
)
