"""Keeps values that joined nests have in common: computed by the first, read by the others.

Only what calls a function is worth keeping, and only what a chunk needs of it: every thread has
room for one chunk, which is still in its cache when the next nest comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children, dims_of_values, moved, renamed, replaced, walk
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least, provably_equal

_PART = 4
"""The part of the second cache that may be filled."""


def with_shared_values(
    program: ir.Program, joined: Sequence[FusionGroup], device: CpuProfile
) -> _SharedValues:
    """Joined nests with their common values computed once, and the memory that holds these."""
    shared = _SharedValues(list(joined), [])
    for later in range(1, len(joined)):
        pending = [joined[later].leader.point.value]
        while pending:
            value = pending.pop()
            if not any(isinstance(v, ir.Call) for v in walk(value)):
                continue
            makers = range(later) if _may_be_shared(value) else ()
            if not any(_share(program, shared, k, later, value, device) for k in makers):
                pending += _direct_operands(value)
    return shared


def computed_before(program: ir.Program, nest: ir.Nest) -> Iterator[tuple[ir.Value, ir.Nest]]:
    """The values of a nest that one before it in the same chunks computes as well, and may keep,
    each with that nest."""
    position = program.nests.index(nest)
    makers: list[ir.Nest] = []
    while program.nests[position].joined:
        position -= 1
        makers.append(program.nests[position])
    pending = [nest.point.value] if makers else []
    while pending:
        value = pending.pop()
        if not any(isinstance(v, ir.Call) for v in walk(value)):
            continue
        maker = next((m for m in makers[::-1] if _computes(m, nest, value)), None)
        if maker is not None and _may_be_shared(value):
            yield value, maker
        else:
            pending += _direct_operands(value)


def _computes(maker: ir.Nest, user: ir.Nest, value: ir.Value) -> bool:
    """Whether a nest computes a value of a later one at each of its points."""
    names = same_dims(maker, user)
    if not dims_of_values([value]) <= names.keys():
        return False
    computed = [*_always(maker.point.value), *(let.value for let in maker.point.lets)]
    return renamed(value, names) in computed


@dataclass(slots=True)
class _SharedValues:
    groups: list[FusionGroup]
    memory: list[ir.Tensor]


def _share(
    program: ir.Program,
    shared: _SharedValues,
    earlier: int,
    later: int,
    value: ir.Value,
    device: CpuProfile,
) -> bool:
    """Let a nest read a value that an earlier one computes, if it does."""
    maker, user = shared.groups[earlier].leader, shared.groups[later].leader
    if maker.compacted is not None:
        return False  # it is not at all of its points
    if not _computes(maker, user, value):
        return False
    names = same_dims(maker, user)
    wanted = renamed(value, names)
    changed = set[str]().union(*(u.written for u in shared.groups[earlier:later]))
    if changed.intersection(v.ref.tensor for v in walk(wanted) if isinstance(v, ir.Load)):
        return False
    back = {own: its for its, own in names.items()}
    after = shared.groups[earlier + 1 : later + 1]
    if (
        _is_stored(shared.groups[earlier], after, wanted, program)
        and maker.point.target.names <= back.keys()
    ):
        ref = maker.point.target
    else:
        place = _place_in_chunk(maker, wanted)
        if place is None or math.prod(place[1]) * value.type.itemsize > device.l2_bytes // _PART:
            return False
        ref = _memory(shared, earlier, wanted, *place)
    subscripts = (moved(s, back) for s in ref.affine)
    found = ir.Load(ir.TensorRef(ref.tensor, tuple(subscripts)), value.type, total=True)
    point = replace(user.point, value=replaced(user.point.value, value, found))
    shared.groups[later] = replace(shared.groups[later], leader=replace(user, point=point))
    return True


def _memory(
    shared: _SharedValues,
    position: int,
    value: ir.Value,
    subscripts: tuple[ir.Affine, ...],
    extents: tuple[int, ...],
) -> ir.TensorRef:
    """Where a nest stores a value from now on, or already does."""
    nest = shared.groups[position].leader
    point = nest.point
    for let in point.lets:
        for store in point.kept:
            if let.value == value and store.value == ir.Variable(let.name, value.type):
                return store.ref
    name = f"{nest.name}.kept{len(point.kept)}"
    ref = ir.TensorRef(name, subscripts)
    layout = ir.contiguous(value.type, extents, (0,) * len(extents))
    shared.memory.append(ir.Tensor(name, ir.Role.SCRATCH, layout, private=True))
    variable = ir.Variable(name, value.type)
    point = replace(
        point,
        lets=(*point.lets, ir.Let(name, value)),
        kept=(*point.kept, ir.Store(ref, variable)),
        value=replaced(point.value, value, variable),
    )
    shared.groups[position] = replace(shared.groups[position], leader=replace(nest, point=point))
    return ref


def _direct_operands(value: ir.Value) -> tuple[ir.Value, ...]:
    """The values directly inside a value, but for subscripts."""
    return () if isinstance(value, ir.Load) else children(value)


def _may_be_shared(value: ir.Value) -> bool:
    """Whether it can be kept as it is, and is the same value wherever it stands."""
    if not value.type.is_float or value.type.compute != value.type:
        return False
    for v in walk(value):
        if isinstance(v, ir.Variable | ir.Combined):
            return False
        if isinstance(v, ir.Load) and not v.ref.is_affine:
            return False
    return True


def _always(value: ir.Value) -> list[ir.Value]:
    """The parts that are computed at every point, whatever the data."""
    pending, found = [value], []
    while pending:
        current = pending.pop()
        found.append(current)
        match current:
            case ir.Select(condition=condition):
                pending.append(condition)
            case ir.Binary(op="&&" | "||", left=left):
                pending.append(left)
            case _:
                pending += _direct_operands(current)
    return found


def same_dims(maker: ir.Nest, user: ir.Nest) -> dict[str, str]:
    """Dimensions of ``user`` → those of ``maker`` that have the same values in a chunk."""
    names = {b.dim: a.dim for a, b in zip(maker.chunks, user.chunks, strict=True)}
    divided = set(names) | set(names.values())
    for dim in user.dims:
        for own in maker.dims:
            same = _index(own.name) == _index(dim.name) and own.first == dim.first
            apart = not {dim.name, own.name} & divided
            if same and apart and provably_equal(own.extent, dim.extent):
                names[dim.name] = own.name
    return names


def with_lanes_last(maker: ir.Nest, dims: Iterable[ir.Dim]) -> list[ir.Dim]:
    """Dimensions of ``maker``, of which it keeps values, in the order in which these lie in memory:
    its vectors lie in one piece."""
    lane = maker.lane.dim if maker.lane is not None else None
    return sorted(dims, key=lambda d: d.name == lane)


def _index(dim: str) -> str:
    return dim.split(".", 1)[1]


def _is_stored(
    group: FusionGroup, after: Sequence[FusionGroup], value: ir.Value, program: ir.Program
) -> bool:
    """Whether what the nest stores is the value, and stays there while the nests after it run."""
    point = group.leader.point
    target = point.target.tensor
    exact = program.tensor(target).layout.type == value.type
    written = {e.target.tensor for e in group.epilogues}.union(*(u.written for u in after))
    return point.op == "=" and point.value == value and exact and target not in written


def _place_in_chunk(
    nest: ir.Nest, value: ir.Value
) -> tuple[tuple[ir.Affine, ...], tuple[int, ...]] | None:
    """Subscripts and extents of one chunk of a value that has one for each point of the nest."""
    names = dims_of_values([value])
    if names != {d.name for d in nest.dims if not provably_at_least(1, d.extent)} and names != {
        d.name for d in nest.dims
    }:
        return None
    steps = {f.dim: f for f in nest.chunks}
    subscripts, extents = [], []
    for dim in with_lanes_last(nest, nest.dims):
        if dim.name not in names:
            continue
        index = ir.Affine.variable(dim.name) + ir.Affine((), -dim.first)
        if dim.name in steps:
            index = index + ir.Affine.variable(steps[dim.name].name).scaled(-1)
        subscripts.append(index)
        extents.append(steps[dim.name].step if dim.name in steps else dim.extent)
    return tuple(subscripts), tuple(extents)
