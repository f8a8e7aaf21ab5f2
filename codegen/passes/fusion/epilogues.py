"""Nests that work on the results of another one, at its points, while these are in registers.

``O(n, f) +=! ...; O(n, f) = O(n, f) + B(f)``: the second statement needs no loops of its own, as
each of its points needs one result of the first, which is then not stored in between (an
*epilogue*). Likewise ``O(n, f) = B(f); O(n, f) += ...``: what the first one makes is where the sum
starts (a *prologue*).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.walk import (
    children,
    loads,
    renamed,
    renamed_ref,
    rewritten,
    values_of,
    walk,
)
from tcl.codegen.passes.vectorize import outputs
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What a nest does with results of another one, in the dimensions of that."""

    nest: str
    target: ir.TensorRef
    value: ir.Value
    streamed: int

    @property
    def variable(self) -> ir.Variable:
        """What it makes, as the tensor will have it."""
        return ir.Variable(f"{self.nest}.result", self.value.type)

    @property
    def point(self) -> ir.Point:
        return ir.Point((), self.target, self.value.type, "=", True, self.value)


def prologue(first: ir.Nest, second: ir.Nest) -> ir.Value | None:
    """What the first nest writes, as the start of the second one's sums, right after it; None if
    it cannot be that. Their loops are not looked at."""
    names = _same_results(second, first)
    a, b = first.point, second.point
    if names is None or not _is_plain(first) or a.op != "=" or b.op == "=" or b.initialise:
        return None
    if second.sequential or first.streamed or not (_exact(a) and _exact(b)):
        return None
    if second.points == 0:
        return None
    target = renamed_ref(a.target, names)
    value = renamed(a.value, names)
    read = {load.ref.tensor for v in values_of(b) for load in loads(v)}
    if target != b.target or target.tensor in read:
        return None
    return value if all(r == target for r in _reads_of(value, {target.tensor})) else None


def epilogue(
    leader: ir.Nest, made: Sequence[ir.Store], start: ir.Value | None, nest: ir.Nest
) -> Epilogue | None:
    """The nest as one that works on results of the leader, right after it and those that are fused
    with it already; None if it cannot be that. ``made`` is what these write, ``start`` that of the
    leader's sums. Loops are not looked at."""
    names = _same_results(leader, nest)
    if names is None or not _is_plain(nest) or leader.sequential:
        return None
    point = nest.point
    if leader.points == 0 or not (_exact(leader.point) and _exact(point)):
        return None
    target, value = renamed_ref(point.target, names), renamed(_written_value(point), names)
    written = {store.ref.tensor: store.ref for store in made}
    if any(ref != written[ref.tensor] for ref in _reads_of(value, written)):
        return None
    if any(ref.tensor in written for ref in _in_subscripts(value)):
        return None
    # What it writes may be touched at its own point only.
    values = [*values_of(leader.point), *(s.value for s in made), *([start] if start else ())]
    touched = [store.ref for store in made]
    touched += [ref for v in values for ref in _reads_of(v, {target.tensor})]
    if any(ref.tensor == target.tensor and ref != target for ref in touched):
        return None
    return Epilogue(nest.name, target, value, nest.streamed)


def ends(
    made: Sequence[ir.Store], epilogues: Sequence[Epilogue], names: Sequence[str]
) -> tuple[ir.Statement, ...]:
    """Stores of results, and of what is made of them; those that would be overwritten at once are
    left out. ``names`` are for the results until then."""
    if not epilogues:
        return tuple(made)
    steps: list[ir.Statement] = []
    known: dict[ir.TensorRef, ir.Value] = {}
    last: dict[str, ir.Store] = {}
    for name, store in zip(names, made, strict=True):
        known[store.ref] = ir.Variable(name, store.value.type)
        last[store.ref.tensor] = replace(store, value=known[store.ref])
        steps.append(ir.Let(name, store.value))
    for each in epilogues:
        value = rewritten(each.value, lambda load: known.get(load.ref, load))
        steps.append(ir.Let(each.variable.name, value))
        known[each.target] = each.variable
        last[each.target.tensor] = ir.Store(each.target, each.variable, each.streamed)
    return (*steps, *last.values())


def loops_over(nest: ir.Nest, dims: Sequence[ir.Dim]) -> list[tuple[object, ...]]:
    """What a nest's loops over some dimensions are like, the same in nests whose dimensions have
    other names."""
    at = {d.name: k for k, d in enumerate(dims)}
    folds = ((x.fold, x.kind) for x in nest.loops if x.fold.dim in at)
    return [(at[f.dim], f.level, f.step, f.count, kind) for f, kind in folds]


def same_result_loops(leader: ir.Nest, nest: ir.Nest) -> bool:
    """Whether a nest has the loops that the other one has over its results."""
    return loops_over(leader, outputs(leader)) == loops_over(nest, outputs(nest))


def _same_results(leader: ir.Nest, nest: ir.Nest) -> dict[str, str] | None:
    """Dimensions of a nest without reductions → those of the leader's results, if alike."""
    own = outputs(leader)
    if not provably_equal(
        [(d.first, d.extent) for d in own], [(d.first, d.extent) for d in nest.dims]
    ):
        return None
    if nest.reduces:
        return None
    return {b.name: a.name for a, b in zip(own, nest.dims, strict=True)}


def _is_plain(nest: ir.Nest) -> bool:
    """Whether nothing is done for the nest besides what its point says."""
    point = nest.point
    return point.target.is_affine and not (
        nest.sequential
        or nest.staged
        or nest.prefetched
        or point.lets
        or point.kept
        or any(x.alignment for x in nest.loops)
    )


def _exact(point: ir.Point) -> bool:
    """Whether what is read back is what was computed: nothing is rounded when it is stored."""
    return point.type.compute == point.type == point.value.type


def _written_value(point: ir.Point) -> ir.Value:
    """What a point without reductions writes, its first value included."""
    if point.op == "=":
        return point.value
    stored: ir.Value = ir.Load(point.target, point.type, total=True)
    first = identity(point.op, point.type) if point.initialise else stored
    return ir.Binary(point.op, first, point.value, point.type)


def _reads_of(value: ir.Value, tensors: Container[str]) -> list[ir.TensorRef]:
    """The elements of these tensors that a value reads."""
    return [load.ref for load in loads(value) if load.ref.tensor in tensors]


def _in_subscripts(value: ir.Value) -> Iterator[ir.TensorRef]:
    """The elements that decide which others are read."""
    for load in loads(value):
        for inner in children(load):
            yield from (v.ref for v in walk(inner) if isinstance(v, ir.Load))
