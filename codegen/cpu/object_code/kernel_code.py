"""Object code with all that a run of it needs: what is kept in files, and sent by workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcl.grammar.varying import value_of

Scratch: TypeAlias = tuple[tuple[int, ...], str, bool]
"""Shape and dtype's name of memory that a kernel needs, and whether each thread has its own."""


@dataclass(frozen=True, slots=True)
class NumberedSite:
    """A checked subscript, as ``loopir.sites.Site``; the tensor is counted, as names are not part
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
    sizes: tuple[int, ...] = ()
    """Those that vary, in the order of their names."""
    formulas: str = ""
    """Of code for all sizes of a class: the names of those that vary, the shapes of the scratch
    arrays, and the first index and extent of each site, as ``grammar.varying.formula`` has them, in
    JSON."""

    def at(self, sizes: Mapping[str, int]) -> KernelCode:
        """The code with these values of the sizes that vary."""
        names, shapes, boxes = json.loads(self.formulas)
        scratch = tuple(
            (tuple(value_of(n, sizes) for n in shape), dtype, private)
            for shape, (_, dtype, private) in zip(shapes, self.scratch, strict=True)
        )
        sites = tuple(
            replace(site, first=value_of(first, sizes), extent=value_of(extent, sizes))
            for (first, extent), site in zip(boxes, self.sites, strict=True)
        )
        given = tuple(sizes[name] for name in names)
        return replace(self, scratch=scratch, sites=sites, sizes=given, formulas="")
