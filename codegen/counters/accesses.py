"""The accesses of a kernel's code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tcl.codegen.counters.places import Linear, Place


class Memory(Enum):
    """What a request is."""

    GLOBAL_READ = "global reads"
    GLOBAL_WRITE = "global writes"
    GLOBAL_COPY = "global copies"
    """What asynchronous copies read, past the first cache."""
    SHARED_READ = "shared reads"
    SHARED_WRITE = "shared writes"
    SHARED_COPY = "shared copies"
    """What they write."""
    MATRIX_READ = "matrix reads"
    """``ldmatrix``."""

    @property
    def is_global(self) -> bool:
        """Whether sectors are asked for, else wavefronts."""
        return self in (Memory.GLOBAL_READ, Memory.GLOBAL_WRITE, Memory.GLOBAL_COPY)


@dataclass(frozen=True, slots=True)
class Box:
    """The elements that an access goes through."""

    of_block: tuple[int, ...]
    """Along each axis of the tensor, those of one block."""
    of_all: tuple[int, ...]
    """Those of all blocks."""
    grid: frozenset[str]
    """The variables of blocks on which it depends."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One access of the code."""

    kind: Memory
    tensor: str
    """Empty for what threads exchange."""
    size: int
    """Bytes that a thread accesses at once."""
    place: Place
    offset: Linear
    """Bytes from the tensor's first element, or from the beginning of a panel's buffer. Where data
    decides, what it depends on is taken to lead to places far apart."""
    outside: Place
    """The place before the loops that are written out: what is asked for there is on its way at
    once."""
    box: Box | None = None
    """The elements; None for what threads exchange."""
    ahead: int = 1
    """How many iterations of the loop around it are on their way."""
    phase: int = 0
    """Which of the block's statements it belongs to: one after the other, by number."""
    matrices: int = 0
    different: float = 1.0
    """The share of a thread's accesses that compilers leave: where loops that are written out read
    an element again, it is in a register."""
