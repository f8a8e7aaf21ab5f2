"""What all warps of a kernel ask of memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcl.codegen.counters.accesses import Access, Memory
from tcl.codegen.counters.requests import SECTOR, WORD, matrix_wavefronts, sectors, wavefronts


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of one kind."""

    requests: int = 0
    """Of warps: one for each access of the code that any of its threads makes."""
    units: int = 0
    """Sectors of global memory, or wavefronts of shared memory."""
    bytes: int = 0
    """That threads asked for."""
    exact: bool = True
    """Whether no data decided what was asked for; else it is the most there can be."""

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.units + other.units,
            self.bytes + other.bytes,
            self.exact and other.exact,
        )

    def left(self, share: float) -> Traffic:
        """A share of it."""
        requests, units, moved = (round(n * share) for n in (self.requests, self.units, self.bytes))
        return Traffic(requests, units, moved, self.exact)

    @property
    def each(self) -> float:
        """Units a request."""
        return self.units / max(1, self.requests)


def traffic_of(access: Access) -> Traffic:
    """What one access of the code comes to, over all blocks and iterations, as the source has
    it."""
    place, size = access.place, access.size
    requests = units = moved = 0
    modulus = SECTOR if access.kind.is_global else WORD
    for counts, offsets, active in place.classes(access.offset, modulus):
        if access.kind is Memory.MATRIX_READ:
            each = matrix_wavefronts(offsets, active, access.matrices)
        elif access.kind.is_global:
            each = sectors(offsets, active, size)
        else:
            each = wavefronts(offsets, active, size)
        requests += int(counts.sum())
        units += int((counts * each).sum())
        own = active.sum(axis=1)
        if access.kind is Memory.MATRIX_READ:
            own = own * 0 + 8 * access.matrices
        moved += int((counts * own).sum()) * size
    return Traffic(requests, units, moved, place.exact)


def by_kind(accesses: Iterable[Access]) -> dict[Memory, Traffic]:
    """The sums over the accesses of each kind, as the source has them."""
    found = dict.fromkeys(Memory, Traffic())
    for access in accesses:
        found[access.kind] += traffic_of(access)
    return found
