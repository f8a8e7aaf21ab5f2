"""Object code with all that a run of it needs: what is kept in files, and sent by workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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
