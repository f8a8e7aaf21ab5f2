"""Results that threads have in registers, for the nests that share their block.

Where threads reduce to one result, all of them get it (they combine their sums by exchanging
them). What comes after it in the same threads need not read it back from memory, nor wait until it
is there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import rewritten, with_values
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal

Place: TypeAlias = tuple[str, tuple[tuple[int, frozenset[tuple[int | ir.Fold, int]]], ...]]
"""An element by its tensor and, per axis, a constant and factors of the chunks' offsets, by their
number, and of threads' ones."""


@dataclass(slots=True)
class BlockResults:
    """What is known while a block's statements are built."""

    threads: int
    """Of the block, that have something to do."""
    alike: Container[str]
    """Nests whose threads have the same points."""
    declared: list[ir.Declare] = field(default_factory=list)
    places: dict[Place, ir.Variable] = field(default_factory=dict)

    def reading(self, group: FusionGroup, rows: Mapping[ir.TensorRef, ir.Variable]) -> FusionGroup:
        """The group, with what is known not read from memory; ``rows``: what each thread has
        besides."""
        nest = group.leader

        def here(load: ir.Load) -> ir.Value:
            if load.ref in rows:
                return rows[load.ref]
            place = self._place(load.ref, nest)
            return load if place is None else self.places.get(place, load)

        def value(one: ir.Value) -> ir.Value:
            return rewritten(one, here)

        leader = replace(nest, point=with_values(nest.point, value))
        siblings = tuple(
            replace(b, point=replace(b.point, value=value(b.point.value))) for b in group.siblings
        )
        epilogues = tuple(replace(e, value=value(e.value)) for e in group.epilogues)
        start = None if group.start is None else (group.start[0], value(group.start[1]))
        return FusionGroup(leader, start, siblings, epilogues)

    def forget(self, tensors: Iterable[str]) -> None:
        gone = set(tensors)
        self.places = {k: v for k, v in self.places.items() if k[0] not in gone}

    def forwarded(
        self, nest: ir.Nest, loops: Sequence[ir.Loop], ended: Sequence[ir.Statement]
    ) -> list[tuple[ir.Statement, ...]] | None:
        """What all threads compute, and then what is stored, for the end of a nest whose loops over
        results are these; None if a thread has several results, or they are rounded."""
        stores = [s for s in ended if isinstance(s, ir.Store)]
        places = [self._place(s.ref, nest) for s in stores]
        apart = nest.name in self.alike
        several = (x for x in loops if not apart or x.kind is not ir.Kind.THREAD)
        if not all(provably_equal(x.fold.count, 1) for x in several) or None in places:
            return None
        if self.threads == 1 or nest.thread_count != self.threads:
            return None  # the others have sums of nothing
        if any(s.value.type.compute != s.value.type for s in stores):
            return None
        values: list[ir.Statement] = [s for s in ended if not isinstance(s, ir.Store)]
        kept: list[ir.Statement] = []
        for store, place in zip(stores, places, strict=True):
            variable = ir.Variable(f"{store.ref.tensor}.{len(self.declared)}", store.value.type)
            self.declared.append(ir.Declare(variable.name, variable.type))
            values.append(ir.Accumulate(variable.name, "=", store.value))
            kept.append(replace(store, value=variable))
            if place is not None:
                self.places[place] = variable
        return [tuple(values), tuple(kept)]

    def _place(self, ref: ir.TensorRef, nest: ir.Nest) -> Place | None:
        """An element that is the same at all points of a thread; None for one that is not."""
        axes = []
        for s in ref.subscripts:
            if not isinstance(s, ir.Affine):
                return None
            constant, factors = s.constant, list[tuple[int | ir.Fold, int]]()
            for name, c in s.terms:
                if all(name != d.name for d in nest.dims):
                    return None
                constant += c * nest.dim(name).first
                for fold in nest.folds(name):
                    if fold in nest.chunks:
                        factors.append((nest.chunks.index(fold), c))
                    elif nest.name in self.alike and fold in nest.threads:
                        factors.append((fold, c))
                    elif not provably_equal(fold.count, 1):
                        return None
            axes.append((constant, frozenset(factors)))
        return ref.tensor, tuple(axes)
