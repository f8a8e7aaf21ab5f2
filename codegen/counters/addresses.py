"""Integer instructions for addresses and for the numbers of blocks and threads, about: as NVRTC
13.5 has them for sm_90."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tcl.codegen.counters.arithmetic import Instructions
from tcl.codegen.counters.places import Linear, Place
from tcl.codegen.counters.scopes import GRID
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import dims_of_values
from tcl.common.dataclass import dataclass

_GLOBAL, _SHARED = 2, 2
"""For an address, whose terms are added up, once for all tensors: scaled, and added to a pointer,
which is read first. Addresses that differ by a constant are one."""
_REACH, _FAR_BASE = 1 << 24, 2
"""Bytes around an address that an access reaches by a constant; and for one further off."""
UNIFORM, GATHERED = 2, 4
"""For each read at an address that all threads share and no loop moves, which compilers keep where
reads cannot use it, and at one that data decide."""
MOVED = 2
"""For an address in a loop that moves it; twice for the two words of a global one."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Those that a thread has computed."""

    written_out: Mapping[str, int]
    """Variables of serial loops → iterations that are written out at once."""
    known: set[Hashable] = field(default_factory=set)

    def is_new(self, made: Hashable) -> bool:
        """Whether something is computed for the first time; it is known then."""
        new = made not in self.known
        self.known.add(made)
        return new

    def needed(
        self,
        tensor: ir.Tensor,
        offset: Linear,
        terms: Callable[[], int],
        place: Place,
        outside: Place,
        begin: Place,
    ) -> Iterator[tuple[Place, Instructions]]:
        """What an access takes unless an address that differs by a constant is known. ``terms``:
        numbers of blocks and threads that it is the sum of; ``begin``: where it is computed if no
        loop moves it."""
        loops, moving = self._loops(offset, outside)
        size = tensor.layout.itemsize
        threads = np.zeros(1, np.int64) if offset.threads is None else offset.threads // size
        own = (threads - threads[0]).tobytes() if threads.any() else b""
        varying = tuple((v, offset.factors.get(v, 0) // size) for v in loops)
        if not self.is_new((tensor.name, varying, own, tuple(outside.tests) if moving else ())):
            return
        if tensor.shared:
            yield (outside, {"integer": MOVED}) if moving else (begin, {"integer": _SHARED})
            return
        if moving:
            yield self._turns(outside), {"integer": 2 * MOVED}
        made = _GLOBAL
        if not threads.any() and not any(f for _, f in varying):
            made = 1  # the pointer itself
        elif self.is_new((varying, own)):
            made += max(1, terms() - 1)
        apart = (
            abs(f) * (place.loops[v] - 1)
            for v, f in offset.factors.items()
            if v in place.loops and v not in loops
        )
        made += _FAR_BASE * ((sum(apart) + _REACH // 2) // _REACH)
        yield begin.by(outside.active), {"integer": made}

    def is_uniform(self, offset: Linear, outside: Place) -> bool:
        """Whether the block alone decides an address."""
        return (
            offset.threads is None
            and any(offset.factors.values())
            and (not self._loops(offset, outside)[1])
        )

    def _loops(self, offset: Linear, outside: Place) -> tuple[list[str], list[str]]:
        """The loops around an access that are loops in machine code, and those that move it."""
        loops = [v for v, n in outside.loops.items() if self.written_out.get(v) != n]
        return loops, [v for v in loops if not v.startswith(GRID) and offset.factors.get(v)]

    def _turns(self, place: Place) -> Place:
        """Once for all iterations of loops that are written out at once."""
        times = {v: self.written_out.get(v, 1) for v in place.loops}
        loops = {v: -(-n // times[v]) for v, n in place.loops.items()}
        tests = []
        for test in place.tests:
            factors = {v: f * times.get(v, 1) for v, f in test.value.factors.items()}
            tests.append(replace(test, value=replace(test.value, factors=factors)))
        return replace(place, loops=loops, tests=tuple(tests))

    def different(self, offset: Linear, place: Place, outside: Place) -> float:
        """The share of different offsets among those of loops that are written out."""
        whole = {v for v in outside.loops if self.written_out.get(v) == outside.loops[v]}
        apart = [v for v in place.loops if v not in outside.loops or v in whole]
        found = {0}
        for variable in apart:
            if step := offset.factors.get(variable, 0):
                turns = range(0, place.loops[variable] * step, step)
                found = {begin + turn for begin in found for turn in turns}
        return len(found) / math.prod([place.loops[variable] for variable in apart])


def far_apart(computed: Sequence[ir.Value]) -> ir.Affine:
    """A place that is another one, far away, for each point of what subscripts depend on."""
    names = dims_of_values(computed)
    found = ir.Affine()
    for name, far in zip(sorted(names), itertools.cycle(_FAR), strict=False):
        found += ir.Affine.variable(name).scaled(far)
    return found


_FAR = (32 * 1_000_003, 32 * 999_983_009, 32 * 7_368_787)
"""Bytes."""


def divided(counts: Sequence[int]) -> int:
    """Instructions for the iterations of several folds out of one number: a division, but for the
    last one, a remainder, but for the first one; one more for a divisor that is no power of two."""
    found = 0
    for k, count in enumerate(counts):
        after = math.prod(counts[k + 1 :])
        if count > 1:
            found += max(1, (after > 1) + (math.prod(counts[:k]) > 1)) + (after.bit_count() > 1)
    return found
