"""Object code with all that a run of it needs: what is kept in files, and sent by workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import calculator

Scratch: TypeAlias = tuple[tuple[int, ...], str, bool]
"""Shape and dtype's name of memory that a kernel needs, and whether each thread has its own."""


@dataclass(frozen=True, slots=True)
class NumberedSite:
    """A checked subscript, as ``common.sites.Site``; the tensor is counted, as names are not part
    of what makes object code."""

    tensor: int
    """Position among inputs, then outputs."""
    axis: int
    first: int
    extent: int
    unsigned: bool


@dataclass(frozen=True, slots=True)
class KernelCode:
    """What a kernel needs to run."""

    object_code: bytes
    sites: tuple[NumberedSite, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    """The arrays that follow the arguments."""
    regions: int = 0
    """Loops whose iterations threads share."""
    threads: int = 1
    """That the kernel is to run on."""
    formulas: str = ""
    """Of code for all sizes of a class: the names of those that vary, the shapes of the scratch
    arrays, and the first index and extent of each site, as ``grammar.varying.formula`` has them, in
    JSON."""

    def at(self, sizes: Mapping[str, int]) -> AtSizes:
        """What is special to a run with these values of the sizes that vary."""
        return self.by_size()(sizes)

    def needs(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Formulas, as those of ``grammar.varying``, for what a call needs besides its arguments:
        the sizes that vary, in the order of their names, and the bytes of each scratch array."""
        names, shapes, _ = json.loads(self.formulas)
        each = zip(shapes, self.scratch, strict=True)
        return tuple(names), tuple(
            ["*", np.dtype(dtype).itemsize, *shape] for shape, (_, dtype, _) in each
        )

    def by_size(self) -> Callable[[Mapping[str, int]], AtSizes]:
        """``at``, time and again."""
        names, shapes, boxes = json.loads(self.formulas)
        found = calculator((tuple(names), tuple(map(tuple, shapes)), tuple(map(tuple, boxes))))
        scratch, sites = self.scratch, self.sites

        def at(sizes: Mapping[str, int]) -> AtSizes:
            given, shapes, boxes = found(sizes)
            return AtSizes(
                given,
                tuple(
                    [(s, dtype, own) for s, (_, dtype, own) in zip(shapes, scratch, strict=True)]
                ),
                tuple(
                    [
                        NumberedSite(site.tensor, site.axis, first, extent, site.unsigned)
                        for (first, extent), site in zip(boxes, sites, strict=True)
                    ]
                ),
            )

        return at


class AtSizes(NamedTuple):
    """What is special to a run of code for all sizes of a class."""

    sizes: tuple[int, ...]
    """Those that vary, in the order of their names."""
    scratch: tuple[Scratch, ...]
    """As in ``KernelCode``."""
    sites: tuple[NumberedSite, ...]
