"""Classes of sizes: the values of a size that varies and share one kernel, and options.

A class has as many sizes as one kernel serves well: those of a bucket, in which sizes are alike
enough for the same options, and that are multiples of what vectors ask for, or any. Kernels,
tuning caches and searches have the same classes, which are decided here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size

BUCKETS = (1, 2, 4, 8, 1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 31)
"""Where buckets begin and the last one ends. Options that are good for a size are good for others
of the same order of magnitude; a finer division would compile more and gain little. Below 16 one
tile holds all points, so that the best one for a size is slow for another: benchmarks/README.md."""

MULTIPLE = 16
"""Sizes that this divides have no ragged ends: it is what the widest vectors of floats hold, and
a line of the cache."""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Sizes from ``least`` to ``most`` that ``multiple`` divides."""

    multiple: int
    least: int
    most: int

    def __str__(self) -> str:
        if self.multiple == 1:
            return f"{self.least}..{self.most}"
        return f"{self.multiple}*({-(-self.least // self.multiple)}..{self.most // self.multiple})"

    def __contains__(self, size: int) -> bool:
        return self.least <= size <= self.most and size % self.multiple == 0

    @property
    def representative(self) -> int:
        """The size by which options are chosen: in the middle, and no more regular than all others
        of the class; of few sizes the largest, whose tile holds all others."""
        least, most, multiple = self.least, self.most, self.multiple
        if most < MULTIPLE:
            return most
        middle = 1 << ((least.bit_length() + most.bit_length()) // 2)
        return middle + multiple if least < middle + multiple <= most else least

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds (``kind_of``) of the sizes that it is the class of."""
        lengths = range(self.least.bit_length(), self.most.bit_length() + 1)
        return tuple(2 * length + (self.multiple == MULTIPLE) for length in lengths)

    def symbol(self, name: str) -> int:
        """The size of this name, as what compilers work with."""
        least, most, multiple = self.least, self.most, self.multiple
        return Size.named(
            name, least=least, most=most, multiple=multiple, value=self.representative
        )


def class_of(size: int, *, narrow: bool = False) -> SizeClass | None:
    """The class that a size is in; None if it is in none. ``narrow``: one within a factor of two,
    for what is not the same for all of a bucket."""
    if not BUCKETS[0] <= size < BUCKETS[-1]:
        return None
    if not narrow:
        return _WIDE[bisect_right(BUCKETS, size) - 1][size % MULTIPLE == 0]
    least = 1 << (size.bit_length() - 1)
    return SizeClass(MULTIPLE if size % MULTIPLE == 0 else 1, least, 2 * least - 1)


_WIDE = [
    [SizeClass(multiple, least, end - 1) for multiple in (1, MULTIPLE)]
    for least, end in pairwise(BUCKETS)
]
"""Made once, as they are asked for in calls: those of any sizes and of multiples, by bucket."""


def kind_of(size: int) -> int:
    """A number that sizes share which are in the same classes, narrow or not."""
    return 2 * size.bit_length() + (size % MULTIPLE == 0)


def classes_of(sizes: Mapping[str, int], varying: Sequence[str]) -> Iterator[dict[str, SizeClass]]:
    """The classes that may share a kernel of these sizes, by the names of those that vary: the
    widest first. None if one of the sizes is in no class."""
    for narrow in (False, True):
        found = {name: class_of(sizes[name], narrow=narrow) for name in varying}
        classes = {name: each for name, each in found.items() if each is not None}
        if len(classes) == len(found):
            yield classes
