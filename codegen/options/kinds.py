"""What values an option of a nest can have: how they are checked and read, and what they come to
where a nest has one dimension more or less.

Adding an option of one of these kinds is a row in ``nest_options.py``.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, SupportsIndex

from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.common.shown import shown

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Lanes a loop may be vectorised to; 1 says not to."""
MAX_RANK = 64


class OptionKind(ABC):
    __slots__ = ()

    neutral: ClassVar[Any] = ()
    """The value that asks for nothing."""
    unit: ClassVar[str] = ""
    """Of ``feature``."""

    @abstractmethod
    def checked(self, key: str, value: object) -> Any:
        """The value, as it is kept; ``OptionsError`` for one that no nest could honour."""

    def from_json(self, where: str, value: object) -> Any:
        """The value that JSON data stands for, to be checked; ``OptionsError`` for none."""
        return self.checked(where, value)

    def asks(self, value: Any) -> bool:
        """Whether a value asks for anything."""
        return bool(value != self.neutral)

    def feature(self, value: Any) -> float:
        """What a model is told of a value."""
        return float(value is not None and self.asks(value))

    def canonical(self, value: Any) -> Any:
        """The same for all values that ask for the same."""
        return value if value is not None and self.asks(value) else self.neutral

    def with_leading(self, value: Any) -> Any:
        """The value for the same nest with one more dimension before the others."""
        return value

    def without_leading(self, value: Any) -> Any:
        """The inverse of ``with_leading``."""
        return value

    def of_first(self, value: Any, count: int) -> Any:
        """The value for a nest that has the first so many of the dimensions alone."""
        return value


class IntegerList(OptionKind):
    __slots__ = ()

    def from_json(self, where: str, value: object) -> Any:
        if not isinstance(value, list):
            raise OptionsError(f"{where}: must be a list of integers: {shown(value)}")
        return tuple(value)


@dataclass(frozen=True, slots=True)
class Sizes(IntegerList):
    """A number for each leading dimension, result (dimension that is not reduced) or operand."""

    least: int
    most: int
    words: str
    """What is said of other numbers; the most is filled in."""
    per: Literal["dimension", "result", "operand"] = "dimension"
    nothing: int = 0
    """Numbers up to this one ask for nothing."""
    unit = "log2"

    def checked(self, key: str, value: object) -> tuple[int, ...]:
        sizes = _integers(key, value)
        if sizes and not self.least <= min(sizes) <= max(sizes) <= self.most:
            raise OptionsError(f"{key}: {self.words.format(self.most)}: {shown(sizes)}")
        return sizes

    def asks(self, value: tuple[int, ...]) -> bool:
        return any(size > self.nothing for size in value)

    def feature(self, value: tuple[int, ...] | None) -> float:
        return math.log2(max(1, *value)) if value else 0.0

    def canonical(self, value: tuple[int, ...] | None) -> tuple[int, ...]:
        sizes = [self.least if size <= self.nothing else size for size in value or ()]
        while sizes and sizes[-1] == self.least:
            sizes.pop()
        return tuple(sizes)

    def with_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return (0, *value) if value and self.per != "operand" else value

    def without_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return value if self.per == "operand" else value[1:]

    def of_first(self, value: tuple[int, ...], count: int) -> tuple[int, ...]:
        if self.per == "operand" or len(value) <= count:
            return value
        return value[:count] if any(value[:count]) else ()


@dataclass(frozen=True, slots=True)
class Permutation(IntegerList):
    """All dimensions in another order; () is the natural one."""

    def checked(self, key: str, value: object) -> tuple[int, ...]:
        order = _integers(key, value)
        if sorted(order) != list(range(len(order))):
            raise OptionsError(
                f"{key}: must name each dimension from 0 to {len(order) - 1} once, or be empty: "
                f"{shown(order)}"
            )
        return order

    def with_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return (0, *(k + 1 for k in value)) if value else value

    def without_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k - 1 for k in value if k)

    def of_first(self, value: tuple[int, ...], count: int) -> tuple[int, ...]:
        kept = tuple(k for k in value if k < count)
        return () if kept == tuple(range(len(kept))) else kept


@dataclass(frozen=True, slots=True)
class VectorLanes(IntegerList):
    """A dimension, -1 being the last result's, and as many of its points as a vector has."""

    neutral = (-1, 1)

    def checked(self, key: str, value: object) -> tuple[int, int]:
        pair = _integers(key, value)
        if len(pair) != 2:
            raise OptionsError(f"{key}: must be (dimension, lanes): {shown(value)}")
        if not -1 <= pair[0] < MAX_RANK:
            raise OptionsError(f"{key}: dimension must be -1 or a position: {shown(pair[0])}")
        if pair[1] not in WIDTHS:
            allowed = ", ".join(map(str, WIDTHS))
            raise OptionsError(f"{key}: lanes must be one of {allowed}: {shown(pair[1])}")
        return pair[0], pair[1]

    def asks(self, value: tuple[int, int]) -> bool:
        return value[1] > 1

    def with_leading(self, value: tuple[int, int]) -> tuple[int, int]:
        return (value[0] + 1, value[1]) if value[0] >= 0 else value

    def without_leading(self, value: tuple[int, int]) -> tuple[int, int]:
        return (value[0] - 1, value[1]) if value[0] > 0 else value

    def of_first(self, value: tuple[int, int], count: int) -> tuple[int, int]:
        return value if value[0] < count else self.neutral


@dataclass(frozen=True, slots=True)
class Dimensions(IntegerList):
    """Two or three different dimensions, or none."""

    def checked(self, key: str, value: object) -> tuple[int, ...]:
        chosen = _integers(key, value)
        if any(not 0 <= k < MAX_RANK for k in chosen):
            most = MAX_RANK - 1
            raise OptionsError(f"{key}: positions must be from 0 to {most}: {shown(chosen)}")
        if chosen and (len(chosen) not in (2, 3) or len(set(chosen)) != len(chosen)):
            raise OptionsError(f"{key}: must be two or three different dimensions: {shown(chosen)}")
        return chosen

    def with_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k + 1 for k in value)

    def without_leading(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k - 1 for k in value if k)

    def of_first(self, value: tuple[int, ...], count: int) -> tuple[int, ...]:
        return tuple(k for k in value if k < count)


@dataclass(frozen=True, slots=True)
class Count(OptionKind):
    """A number from 1, which asks for nothing."""

    most: int
    neutral = 1

    def checked(self, key: str, value: object) -> int:
        count = integer(value)
        if count is None or not 1 <= count <= self.most:
            raise OptionsError(f"{key}: must be from 1 to {self.most}: {shown(value)}")
        return count


@dataclass(frozen=True, slots=True)
class Flag(OptionKind):
    """Yes or no."""

    neutral = False

    def checked(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise OptionsError(f"{key}: must be true or false: {shown(value)}")
        return value


def integer(value: object) -> int | None:
    """The value of an integer of any class, NumPy's too; None for everything else."""
    if type(value) is int:
        return value  # what a class can do is asked slowly
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # a NumPy array has the method, but refuses
        return None


def _integers(key: str, value: object) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(value[0], tuple | list):
        value = value[0]  # as in .tile([16, 32])
    if type(value) is tuple and len(value) <= MAX_RANK and {*map(type, value)} <= {int}:
        return value  # as nearly all are
    if not isinstance(value, (tuple, list)) or len(value) > MAX_RANK:
        raise OptionsError(f"{key}: must be a list of up to {MAX_RANK} integers: {shown(value)}")
    found = tuple(map(integer, value))
    if None in found:
        raise OptionsError(f"{key}: must be integers: {shown(value)}")
    return tuple(x for x in found if x is not None)
