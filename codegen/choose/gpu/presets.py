"""What the presets choose on a GPU, where nothing else was chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcl.codegen.choose.gpu.contraction import contraction
from tcl.codegen.choose.gpu.joined import joined
from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape
from tcl.codegen.choose.gpu.predicted import best_split, counts_of
from tcl.codegen.choose.gpu.streaming import rowwise, streaming
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.chunk import Chunk, why_not_chunked
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.gpu.steps import alone
from tcl.codegen.passes.split import VECTOR, is_whole, parts_of

_NAIVE_THREADS = 128
"""Of a block."""
_LEAST_PART = 32
"""Points that a thread reduces at least before its sum is split."""
_STREAMED = 1024
"""Threads of a multiprocessor that keep it busy with nothing but reading memory."""
_LONG_ROW = 64
"""Points of a row from which on nests share blocks row by row."""


@dataclass(frozen=True, slots=True)
class GpuPreset:
    """What a preset chooses where nothing else was chosen."""

    name: str
    profile: GpuProfile
    known: dict[str, tuple[ir.Nest, OptionsDraft | None]] = field(default_factory=dict)
    """What was found for sums of products, by nest: the search for it tries many."""
    shared: dict[str, tuple[tuple[ir.Nest, ...], tuple[int, dict[str, NestOptions]] | None]] = (
        field(default_factory=dict)
    )
    """Likewise for what follows a nest in the same blocks."""

    def choices(
        self, program: ir.Program, given: Mapping[str, NestOptions]
    ) -> dict[str, NestOptions]:
        """Choices for the nests of which not all was said, that go with what is given."""
        open_ = {n.name for n in program.nests if not given[n.name].complete_on("GPU")}
        chosen: dict[str, NestOptions] = {}
        if self.name == "naive":
            chosen = {n.name: _one_point_each(n) for n in program.nests}
        else:
            for stretch in _stretches(fusion_groups(program.nests)):
                if any(group.names & open_ for group in stretch):
                    self._choose(program, stretch, chosen)
        return {
            n.name: _going_with(given[n.name], chosen[n.name], program, n, self.profile)
            for n in program.nests
            if n.name in open_
        }

    def split(
        self,
        program: ir.Program,
        given: Mapping[str, NestOptions],
        chosen: Mapping[str, NestOptions],
    ) -> tuple[str, tuple[int, ...]] | None:
        """The next nest whose reduction should be split, so that all of the device has work, and
        into how many parts; None if there is none."""
        if self.name == "naive" or all(o.split is not None for o in given.values()):
            return None
        followers = set[str]().union(*(g.followers for g in fusion_groups(program.nests)))
        for nest in program.nests:
            own = given[nest.name]
            if own.split is None and nest.name not in followers and not chosen[nest.name].fuse:
                parts = _split_parts(program, nest, own.over(chosen[nest.name]), self.profile)
                if parts:
                    return nest.name, parts
        return None

    def _choose(
        self, program: ir.Program, groups: Sequence[FusionGroup], found: dict[str, NestOptions]
    ) -> None:
        position = 0
        while position < len(groups):
            shared = self._joined_run(program, groups[position:])
            if shared is not None:
                found |= shared[1]
                position += shared[0]
                continue
            run = self._rowwise_run(program, groups[position:]) if self.name != "pointwise" else []
            if len(run) > 1:
                for group, choice in run:
                    _set_choices(group, choice, program, found, joined=group is not run[0][0])
                position += len(run)
                continue
            group = groups[position]
            shape = Shape(program, group.leader)
            if group.leader.sequential or group.leader.points == 0:
                for nest in program.nests:
                    if nest.name in group.names:
                        found[nest.name] = _one_point_each(nest)
            else:
                tiled = self._contraction(shape) if self.name in ("mlp", "conv") else None
                _set_choices(group, tiled or streaming(shape, self.profile), program, found)
            position += 1

    def _contraction(self, shape: Shape) -> OptionsDraft | None:
        nest, choice = self.known.get(shape.nest.name, (None, None))
        if nest is not shape.nest:
            choice = contraction(shape, self.profile)
            self.known[shape.nest.name] = shape.nest, choice
        return choice

    def _joined_run(
        self, program: ir.Program, groups: Sequence[FusionGroup]
    ) -> tuple[int, dict[str, NestOptions]] | None:
        """As ``joined``, where the first group is a product."""
        first = groups[0].leader.name
        nests, choices = self.shared.get(first, ((), None))
        leaders = tuple(g.leader for g in groups)
        if len(nests) != len(leaders) or any(
            a is not b for a, b in zip(nests, leaders, strict=True)
        ):
            choices = self._found_joined(program, groups)
            self.shared[first] = leaders, choices
        return choices

    def _found_joined(
        self, program: ir.Program, groups: Sequence[FusionGroup]
    ) -> tuple[int, dict[str, NestOptions]] | None:
        if self.name != "mlp" or Shape(program, groups[0].leader).pair is None:
            return None

        def set_choices(
            group: FusionGroup, choice: OptionsDraft, found: dict[str, NestOptions], later: bool
        ) -> None:
            _set_choices(group, choice, program, found, joined=later)

        return joined(program, groups, self.profile, set_choices)

    def _rowwise_run(
        self, program: ir.Program, groups: Sequence[FusionGroup]
    ) -> list[tuple[FusionGroup, OptionsDraft]]:
        """The first groups that can share blocks row by row: what one makes of a row the next one
        needs."""
        first = groups[0].leader
        run: list[FusionGroup] = []
        rows: list[int] = []
        for group in groups:
            nest = group.leader
            if nest.sequential or nest.points == 0:
                break
            if self._contraction(Shape(program, nest)) is not None:
                break
            common = _common(first, nest)
            if run:
                rows = rows or common
                if not rows or len(common) < len(rows):
                    break
                if not _enough_rows(run, nest, rows, self.profile):
                    break
            run.append(group)
        while len(run) > 1 and rows:
            made = _groups_by_row(program, run, rows, self.profile)
            if made is not None:
                return made
            run.pop()
        return []


def _stretches(groups: Sequence[FusionGroup]) -> Iterator[list[FusionGroup]]:
    """The groups, those apart that never share blocks: what reduces the parts of a split nest needs
    those of all blocks."""
    found: list[FusionGroup] = []
    for group in groups:
        if found and is_whole(group.leader):
            yield found
            found = []
        found.append(group)
    if found:
        yield found


def _split_parts(
    program: ir.Program, nest: ir.Nest, o: NestOptions, profile: GpuProfile
) -> tuple[int, ...]:
    """Parts of the longest reduction."""
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction]
    if nest.sequential or not reductions or nest.points == 0:
        return ()
    chunk, threads, tile = o.chunk or (), math.prod(filter(None, o.threads or ())), o.tile or ()
    sizes = zip(nest.dims, (*chunk, *[0] * len(nest.dims)), strict=False)
    blocks = math.prod(-(-d.extent // c) for d, c in sizes if c and not d.reduction)
    tiled = any(level >= 0 for level in o.stage or ())
    k = max(reductions, key=lambda k: nest.dims[k].extent)
    if tiled:
        made = alone(program, nest, o, profile)
        counts = None if made is None else counts_of(made, profile)
        if counts is None:
            return ()
        count, _ = best_split(counts, nest, k, tile[k] if k < len(tile) else 1)
        return (*[0] * k, count) if count > 1 else ()
    wanted = profile.multiprocessors * _STREAMED
    own = (o.threads or ())[k] if k < len(o.threads or ()) else 1
    least = max(_LEAST_PART * max(1, own), 16 * (tile[k] if k < len(tile) else 1))
    most = max(1, wanted // max(1, blocks * threads))
    count = parts_of(nest.dims[k].extent, most, least, VECTOR)
    return (*[0] * k, count) if count > 1 else ()


def _one_point_each(nest: ir.Nest) -> NestOptions:
    """A thread for each result, without anything else."""
    results = sum(not d.reduction for d in nest.dims)
    if (nest.sequential and nest.running is None) or not results:
        return PLAIN
    sizes = (*[1] * (results - 1), _NAIVE_THREADS)
    return replace(PLAIN, chunk=sizes, threads=sizes)


def _set_choices(
    group: FusionGroup,
    choice: OptionsDraft,
    program: ir.Program,
    found: dict[str, NestOptions],
    *,
    joined: bool = False,
) -> None:
    """The choices of a nest, and those of nests that are fused with it: the same loops."""
    own = group.leader
    names = [n for n in program.nests if n.name in group.names]
    for k, nest in enumerate(names):
        options = choice.options().of_first(len(nest.dims))
        if nest.name != own.name:
            options = replace(options, stage=(), buffers=1)
        shared = any(options.chunk or ())
        found[nest.name] = replace(options, fuse=shared and (joined or k > 0))


def _common(one: ir.Nest, other: ir.Nest) -> list[int]:
    """The leading results that two nests have alike."""
    found = []
    for k, (a, b) in enumerate(zip(one.dims, other.dims, strict=False)):
        if a.reduction or b.reduction or (a.first, a.extent) != (b.first, b.extent):
            break
        found.append(k)
    return found


def _enough_rows(
    run: Sequence[FusionGroup],
    nest: ir.Nest,
    rows: Sequence[int],
    profile: GpuProfile,
) -> bool:
    """Whether blocks are enough for the device, and rows for a block."""
    blocks = math.prod(nest.dims[k].extent for k in rows)
    inside = max(n.points // max(1, blocks) for n in (nest, *(u.leader for u in run)))
    return 2 * blocks >= profile.multiprocessors and inside >= _LONG_ROW


def _groups_by_row(
    program: ir.Program, run: Sequence[FusionGroup], rows: Sequence[int], profile: GpuProfile
) -> list[tuple[FusionGroup, OptionsDraft]] | None:
    """The groups row by row; None if one of them needs other rows."""
    nests = [u.leader for u in run]
    blocks = math.prod(nests[0].dims[k].extent for k in rows)
    points = max(n.points // max(1, blocks) for n in nests)
    shapes = [(u, Shape(program, u.leader)) for u in run]
    made = [(u, rowwise(s, rows, profile, points, again=True)) for u, s in shapes]
    first = next(n.name for n in program.nests if n.name in run[0].names)
    for group, choice in made:
        for nest in [n for n in program.nests if n.name in group.names]:
            sizes = choice.options().of_first(len(nest.dims)).chunk or ()
            if why_not_chunked(nest, sizes):
                return None
            program = Chunk(nest.name, sizes, clip=False)(program)
            if nest.name != first:
                if why_not_fused(program.nests, nest.name):
                    return None
                program = Fuse(nest.name)(program)
    return made


def _going_with(
    given: NestOptions,
    chosen: NestOptions,
    program: ir.Program,
    nest: ir.Nest,
    profile: GpuProfile,
) -> NestOptions:
    """The preset's choices, without those that cannot be together with the given ones."""
    if not given.made().keys() - {"fuse", "split"}:
        return chosen
    plain = replace(chosen, stage=(), register=(), buffers=1, mma=())
    weaker = (
        chosen,
        plain,
        replace(plain, vectorize=(-1, 1)),
        replace(plain, vectorize=(-1, 1), threads=(), tile=()),
        replace(PLAIN, fuse=chosen.fuse),
    )
    for choices in weaker:
        # An order is honoured or refused, whatever else is chosen.
        options = replace(given.over(choices), order=(), inner_order=())
        if alone(program, nest, options, profile, "bind") is not None:
            return choices
    return chosen
