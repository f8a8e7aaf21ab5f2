"""Rows that threads have in registers, for all nests of a block that read them.

Where nests of a block divide the same points in the same way among its threads, with nothing left
for a loop, each thread reads the same elements for every one of them: it reads them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.fragments import hoistable
from tcl.codegen.loopir.walk import loads, renamed, renamed_point, renamed_ref, values_of
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal

MOST_WORDS = 80
"""32-bit words of rows that a thread keeps: half as many as leave two blocks of 256 threads."""


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Fusion groups of a block, those that divide their points alike in the dimensions of the
    first of them, and what threads keep for these."""

    groups: tuple[FusionGroup, ...]
    kept: Mapping[ir.TensorRef, ir.Variable]
    """Elements, in the dimensions of the first group that divides its points so."""
    declared: tuple[ir.Declare, ...]
    first: int
    """The group that reads them."""
    spaces: Mapping[str, ir.Space | None]
    """By the name of a nest whose points are given otherwise than it has them: None for those
    that another one has."""

    @property
    def reads(self) -> tuple[ir.Statement, ...]:
        """What the first group does at each of its points."""
        return tuple(
            ir.Accumulate(v.name, "=", ir.Load(ref, v.type, total=True))
            for ref, v in self.kept.items()
        )

    @staticmethod
    def from_groups(program: ir.Program, groups: Sequence[FusionGroup]) -> SharedRows:
        """For the groups of a block, in order."""
        alone = SharedRows(tuple(groups), {}, (), -1, {})
        first = next((k for k, g in enumerate(groups) if _in_registers(g.leader)), None)
        if first is None or len(groups) < first + 2:
            return alone
        leader = groups[first].leader
        alike = [first, *(k for k in range(first + 1, len(groups)) if _alike(leader, groups[k]))]
        if len(alike) < 2:
            return alone
        moved = list(groups)
        for k in alike[1:]:
            names = {
                b.name: a.name for a, b in zip(leader.dims, groups[k].leader.dims, strict=True)
            }
            moved[k] = _renamed_group(groups[k], names)
        reduced = {d.name for k in alike for d in moved[k].leader.dims if d.reduction}
        dims = tuple(replace(d, reduction=d.name in reduced) for d in leader.dims)
        spaces: dict[str, ir.Space | None] = {groups[k].leader.name: None for k in alike[1:]}
        spaces[leader.name] = ir.Space(leader.name, dims, leader.loops)
        kept, declared = _kept(program, [moved[k] for k in alike], moved, reduced)
        return SharedRows(tuple(moved), kept, declared, first, spaces)

    def spaces_of(self, nests: Iterable[ir.Nest]) -> list[ir.Space]:
        found = (self.spaces.get(n.name, n.space) for n in nests)
        return [s for s in found if s is not None]


def _in_registers(nest: ir.Nest) -> bool:
    """Whether threads have all points of a block at once."""
    held = any(x.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR) for x in nest.loops)
    serial = (x.fold.count for x in nest.loops if x.kind is ir.Kind.SERIAL)
    plain = not nest.staged and not nest.sequential and not nest.point.scatters
    return held and plain and all(provably_equal(n, 1) for n in serial)


def _alike(first: ir.Nest, group: FusionGroup) -> bool:
    """Whether the group's leader divides its points as the first nest does."""
    nest = group.leader
    if not _in_registers(nest) or _shape(nest) != _shape(first):
        return False
    own, its = ([(d.first, d.extent) for d in n.dims] for n in (first, nest))
    return provably_equal(own, its)


def _shape(nest: ir.Nest) -> list[tuple[object, ...]]:
    at = {d.name: k for k, d in enumerate(nest.dims)}
    moving = (x for x in nest.loops if x.kind is not ir.Kind.SERIAL)
    return [(at[x.fold.dim], x.fold.level, x.fold.step, x.fold.count, x.kind) for x in moving]


def _kept(
    program: ir.Program,
    alike: Sequence[FusionGroup],
    groups: Sequence[FusionGroup],
    reduced: AbstractSet[str],
) -> tuple[dict[ir.TensorRef, ir.Variable], tuple[ir.Declare, ...]]:
    """The elements that several groups read and none of the block's writes; ``reduced``: the
    dimensions that some of them reduce over."""
    written = set[str]().union(*(g.written for g in groups))
    leader = alike[0].leader
    own = [x.fold for x in leader.loops if x.kind not in (ir.Kind.PARALLEL, ir.Kind.SERIAL)]
    at_once = (ir.Kind.THREAD, ir.Kind.VECTOR)
    shared = {x.fold.dim for x in leader.loops if x.kind in at_once} & reduced
    of_first = {x.ref: x for v in values_of(leader.point) for x in loads(v) if hoistable(x)}
    times = Counter(ref for g in alike for ref in {x.ref for v in _values(g) for x in loads(v)})
    kept: dict[ir.TensorRef, ir.Variable] = {}
    declared: list[ir.Declare] = []
    left = MOST_WORDS
    for ref, load in of_first.items():
        tensor = program.tensor(ref.tensor)
        if times[ref] < 2 or ref.tensor in written or load.type != tensor.layout.type:
            continue
        names = ref.names
        if not shared <= names:
            continue  # one element for all who share a sum
        over = tuple(f for f in own if f.dim in names)
        words = max(1, load.type.compute.bits // 32)
        for fold in over:
            words *= 1 if fold in leader.threads else fold.count
        if over and words <= left:
            left -= words
            name = f"{ref.tensor}.kept{len(kept) or ''}"
            kept[ref] = ir.Variable(name, load.type)
            declared.append(ir.Declare(name, load.type, over))
    return kept, tuple(declared)


def _values(group: FusionGroup) -> Iterator[ir.Value]:
    yield from values_of(group.leader.point)
    yield from (s.point.value for s in group.siblings)
    yield from (e.value for e in group.epilogues)
    if group.start is not None:
        yield group.start[1]


def _renamed_group(group: FusionGroup, names: Mapping[str, str]) -> FusionGroup:
    def value(one: ir.Value) -> ir.Value:
        return renamed(one, names)

    leader = group.leader
    dims = tuple(replace(d, name=names[d.name]) for d in leader.dims)
    loops = tuple(replace(x, fold=replace(x.fold, dim=names[x.fold.dim])) for x in leader.loops)
    siblings = []
    for s in group.siblings:
        earliest = s.first and replace(s.first, value=value(s.first.value))
        siblings.append(replace(s, point=renamed_point(s.point, names), first=earliest))
    epilogues = (
        replace(e, target=renamed_ref(e.target, names), value=value(e.value))
        for e in group.epilogues
    )
    start = None if group.start is None else (group.start[0], value(group.start[1]))
    made = replace(leader, dims=dims, loops=loops, point=renamed_point(leader.point, names))
    return FusionGroup(made, start, tuple(siblings), tuple(epilogues))
