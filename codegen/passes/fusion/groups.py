"""Fusion groups: a nest, its leader, and its followers, which run in its loops.

Which nests share the loops over their *chunks* is another question: that of ``fuse``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple, Protocol

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import SHORT
from tcl.codegen.loopir.walk import loads, walk
from tcl.codegen.passes.fusion.epilogues import Epilogue, ends, epilogue, prologue
from tcl.codegen.passes.fusion.siblings import Sibling, sibling
from tcl.common.dataclass import dataclass

_MOST = 16
"""Nests that may be fused with one."""


class PerResult(NamedTuple):
    """What each result of a nest needs, with what is fused with it."""

    sums: int = 1
    """Accumulators, and for each that is fused with an extreme value one more value, as that is
    chosen under a condition, not added."""
    registers: int = 1
    """Theirs, where the accumulator of the nest itself takes one."""
    calls: int = 0
    """Calls of functions in epilogues."""
    computed: tuple[ir.Let, ...] = ()
    """Where the nest reduces nothing, each result, and what epilogues make of it."""
    points: tuple[ir.Point, ...] = ()
    """Of the reductions beside it."""


ALONE = PerResult()
"""Of a nest with nothing fused."""


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """A nest with loops, and what is done in them besides."""

    leader: ir.Nest
    start: tuple[str, ir.Value] | None = None
    """A nest before it, and where its sums start because of that."""
    siblings: tuple[Sibling, ...] = ()
    """Reductions at the same points."""
    epilogues: tuple[Epilogue, ...] = ()
    """What is done with the results."""

    @property
    def sums(self) -> int:
        """Accumulators of each result."""
        return 1 + len(self.siblings)

    @property
    def per_result(self) -> PerResult:
        """Where an accumulator of a wider type than the leader's takes several registers."""
        one = self.leader.point.type.itemsize
        more = sum(not b.always for b in self.siblings)
        wide = sum(-(-b.point.type.itemsize // one) for b in self.siblings)
        calls = _calls(e.value for e in self.epilogues)
        points = tuple(b.point for b in self.siblings)
        return PerResult(self.sums + more, 1 + wide + more, calls, self._computed(), points)

    def _computed(self) -> tuple[ir.Let, ...]:
        """As of ``PerResult``; none if there are no epilogues."""
        leader = self.leader
        if leader.reduces or self.start is not None:
            return ()
        made = [ir.Store(leader.point.target, leader.point.value)]
        steps = ends(made, self.epilogues, [f"{leader.name}.result"])
        return tuple(step for step in steps if isinstance(step, ir.Let))

    @property
    def followers(self) -> set[str]:
        """The nests that have no loops of their own."""
        before = [self.start[0]] if self.start else []
        return {*before, *(b.nest for b in self.siblings), *(e.nest for e in self.epilogues)}

    @property
    def names(self) -> set[str]:
        return {self.leader.name, *self.followers}

    @property
    def stores(self) -> list[ir.Store]:
        """What is written, in order."""
        leader = self.leader
        found = [ir.Store(leader.point.target, leader.point.value, leader.streamed)]
        found += [ir.Store(b.point.target, b.point.value) for b in self.siblings]
        return found + [ir.Store(e.target, e.value, e.streamed) for e in self.epilogues]

    @property
    def written(self) -> set[str]:
        return {store.ref.tensor for store in self.stores}


class FusionLimits(Protocol):
    """Whether nests that could be fused with each other have, or will have, the loops for that."""

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """Whether the nest of a reduction has the leader's loops."""
        ...

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """Whether the nest has the leader's loops over its results. ``calls`` are those of
        functions, for each of them."""
        ...


def fusion_groups(
    nests: Iterable[ir.Nest], limits: FusionLimits | None = None
) -> Iterator[FusionGroup]:
    """The nests in order, those together that run in the loops of one; each group is found when it
    is asked for. Without ``limits``: those that can, for nests that may have chunks, but no other
    loops yet."""
    limits = limits or _Unscheduled()
    pending = list(nests)
    group: FusionGroup | None = None
    for nest, following in zip_longest(pending, pending[1:]):
        longer = _longer(group, nest, following, limits) if group is not None else None
        if group is not None and longer is None:
            yield group
        group = longer or FusionGroup(nest)
    if group is not None:
        yield group


def _longer(
    group: FusionGroup, nest: ir.Nest, following: ir.Nest | None, limits: FusionLimits
) -> FusionGroup | None:
    """The group with the nest after it, if that can be fused, and need not be where the sums of the
    one that follows start."""
    leader = group.leader
    if len(group.followers) >= _MOST or not _together(leader, nest):
        return None
    if group == FusionGroup(leader):
        start = _start(leader, nest, limits)
        if start is not None:
            return FusionGroup(nest, (leader.name, start))
    if following is not None and _start(nest, following, limits) is not None:
        return None
    other = sibling(leader, nest)
    if other is not None and _independent(group, other) and limits.fits_points(group, other, nest):
        return replace(group, siblings=(*group.siblings, other))
    after = epilogue(leader, group.stores, group.start[1] if group.start else None, nest)
    # A store that is to go past the caches would be left out.
    if after is not None and not any(s.streamed and s.ref == after.target for s in group.stores):
        calls = _calls([after.value, *(e.value for e in group.epilogues)])
        if limits.fits_results(leader, nest, calls):
            return replace(group, epilogues=(*group.epilogues, after))
    return None


def _together(one: ir.Nest, after: ir.Nest) -> bool:
    """Whether a nest is in the same chunks as the one before it."""
    return after.joined or not (one.chunks or after.chunks)


def _start(one: ir.Nest, after: ir.Nest, limits: FusionLimits) -> ir.Value | None:
    """Where the sums of a nest start because of the one before it, if that can be fused."""
    start = prologue(one, after) if _together(one, after) else None
    return start if start is not None and limits.fits_results(after, one, _calls([start])) else None


def _calls(values: Iterable[ir.Value]) -> int:
    """How many ``long_calls`` there are. What has the same value at all points is computed once."""
    return sum(not _is_constant(call) for value in values for call in long_calls(value))


def long_calls(value: ir.Value) -> list[ir.Call]:
    """The calls in a value of functions that are more than an instruction."""
    return [v for v in walk(value) if isinstance(v, ir.Call) and v.name not in SHORT]


def _is_constant(value: ir.Value) -> bool:
    """Whether it is made of constants alone."""
    made = (ir.Const, ir.Unary, ir.Binary, ir.Cast, ir.Call)
    return all(isinstance(v, made) for v in walk(value))


def _independent(group: FusionGroup, other: Sibling) -> bool:
    """Whether a reduction does not touch what those write that are fused already, nor they what it
    writes."""
    target = other.point.target.tensor
    read = {load.ref.tensor for load in loads(other.point.value)}
    along = [(b.point.target.tensor, b.point.value) for b in group.siblings]
    along += [(e.target.tensor, e.value) for e in group.epilogues]
    if group.start is not None:
        along.append((group.leader.point.target.tensor, group.start[1]))
    return all(
        tensor != target
        and tensor not in read
        and all(load.ref.tensor != target for load in loads(value))
        for tensor, value in along
    )


@dataclass(frozen=True, slots=True)
class _Unscheduled:
    """For nests that have no loops yet: they can get the same."""

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        return True

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        return True
