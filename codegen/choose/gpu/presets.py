"""What the presets choose on a GPU, where nothing else was chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, islice, pairwise, takewhile, tee

from tcl.codegen.choose.gpu.contraction import Counted, contraction
from tcl.codegen.choose.gpu.joined import common_results, joined
from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape
from tcl.codegen.choose.gpu.predicted import best_split, counts_of
from tcl.codegen.choose.gpu.streaming import finishing, rowwise, streaming
from tcl.codegen.counters.counts import KernelCounts
from tcl.codegen.counters.prediction import adding_up_seconds
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.gpu.steps import alone
from tcl.codegen.passes.split import VECTOR, adding_up, is_whole, parts_of
from tcl.codegen.passes.tile import Chunk, why_not_chunked
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError

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
    known: dict[str, tuple[ir.Nest, Counted | None]] = field(default_factory=dict)
    """What was found for sums of products, by nest: the search for it tries many."""

    def choices(
        self,
        program: ir.Program,
        given: Mapping[str, NestOptions],
        first: int,
        chosen: Mapping[str, NestOptions],
    ) -> Iterator[tuple[ir.Nest, dict[str, NestOptions]]]:
        """Choices for the nests from the ``first`` on of which not all was said, that go with what
        is given: nests that lead, each with the choices for it and for those fused with it. They
        are made when they are asked for. ``chosen``: what was found for earlier nests by then."""
        open_ = {n.name: n for n in program.nests if not given[n.name].complete_on("GPU")}
        for stretch in _stretches(program.nests[first:]):
            if any(n.name in open_ for n in stretch):
                parts = {n: o.over(chosen[n]) if n in chosen else o for n, o in given.items()}
                for leader, found in self._choose(program, stretch, parts):
                    own = {name: o for name, o in found.items() if name in open_}
                    for name, o in own.items():
                        own[name] = _going_with(given[name], o, program, open_[name], self.profile)
                    yield leader, own

    def split(
        self, program: ir.Program, nest: ir.Nest, given: NestOptions, chosen: NestOptions
    ) -> tuple[int, ...]:
        """Into how many parts the reduction of a nest that leads should be split, so that all of
        the device has work; empty if it should not."""
        if self.name == "naive" or chosen.fuse:
            return ()
        return self._split_parts(program, nest, given.over(chosen))

    def _split_parts(self, program: ir.Program, nest: ir.Nest, o: NestOptions) -> tuple[int, ...]:
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
            counts = self._counts(program, nest, o)
            if counts is None:
                return ()
            count, _ = best_split(counts, nest, k, tile[k] if k < len(tile) else 1)
            return (*[0] * k, count) if count > 1 else ()
        wanted = self.profile.multiprocessors * _STREAMED
        own = (o.threads or ())[k] if k < len(o.threads or ()) else 1
        least = max(_LEAST_PART * max(1, own), 16 * (tile[k] if k < len(tile) else 1))
        most = max(1, wanted // max(1, blocks * threads))
        count = parts_of(nest.dims[k].extent, most, least, VECTOR)
        return (*[0] * k, count) if count > 1 else ()

    def _counts(self, program: ir.Program, nest: ir.Nest, o: NestOptions) -> KernelCounts | None:
        """What a nest asks for with these options: counted before, where they were chosen here."""
        at, found = self.known.get(nest.name, (None, None))
        of_choice = found.draft.options().of_first(len(nest.dims)) if found is not None else None
        if found is not None and at is nest and o == of_choice:
            return found.counts
        made = alone(program, nest, o, self.profile)
        return None if made is None else counts_of(made, self.profile)

    def _choose(
        self, program: ir.Program, nests: Sequence[ir.Nest], before: Mapping[str, NestOptions]
    ) -> Iterator[tuple[ir.Nest, dict[str, NestOptions]]]:
        """Nests that lead, and what was found for each and for those fused with it. ``before``:
        what is known of the options of other nests."""
        groups = fusion_groups(nests)
        while (group := next(groups, None)) is not None:
            nest = group.leader
            groups, *copies = tee(groups, 3)
            ahead, again = (takewhile(lambda g: not is_whole(g.leader), c) for c in copies)
            shared = self._joined_run(program, group, ahead)
            if shared is not None:
                alike, found = shared
                for each in alike:
                    yield each.leader, {name: found[name] for name in each.names}
                next(islice(groups, len(alike) - 2, None))
                continue
            run = self._rowwise_run(program, chain([group], again))
            if len(run) > 1:
                for each, choice in run:
                    later = each.leader is not nest
                    yield each.leader, _choices_of(each, choice, program, joined=later)
                next(islice(groups, len(run) - 2, None))
            elif self.name == "naive" or nest.sequential or nest.points == 0:
                yield nest, {n.name: _one_point_each(n) for n in _nests(program, group)}
            else:
                shape = Shape(program, nest)
                tiled = self._contraction(shape) if self.name in ("mlp", "conv") else None
                choice = streaming(shape, self.profile) if tiled is None else tiled.draft
                if is_whole(nest):
                    choice = self._finishing(shape, group, before) or choice
                yield nest, _choices_of(group, choice, program)

    def _finishing(
        self,
        shape: Shape,
        group: FusionGroup,
        before: Mapping[str, NestOptions],
    ) -> OptionsDraft | None:
        """Choices with which the last block of those that make parts adds them up, where that takes
        less than a kernel of its own."""
        program, nest = shape.program, shape.nest
        own = _nests(program, group)
        wholes = [n.name.removesuffix(".whole") for n in own if is_whole(n)]
        chunk, *rest = {(before[name].chunk, before[name].threads) for name in wholes}
        if rest or chunk[0] is None or chunk[0][:1] != (1,):
            return None
        sizes = zip((nest.dims[k].extent for k in shape.results), chunk[0][1:], strict=False)
        of_block = math.prod(size or extent for extent, size in sizes)
        results = math.prod(map(shape.extent, shape.results))
        size, (part,) = nest.point.type.compute.itemsize, map(shape.extent, shape.reductions)
        threads = math.prod(filter(None, chunk[1] or ()))
        about = size * results, size * of_block, max(1, threads), self.profile
        second, last = adding_up_seconds(part, *about)
        if second <= last:
            return None
        made = finishing(shape, chunk[0][1:], threads)
        chunks = {**{n: chunk[0] for n in wholes}, **{n.name: made.options().chunk for n in own}}
        try:
            for name, each in chunks.items():
                each = (each or ())[: len(program.nest(name).dims)]
                program = Chunk(name, each, clip=False)(program)
        except OptionsError:
            return None
        parts = [program.nest(name) for name in wholes]
        if adding_up(parts, [program.nest(n.name) for n in own]) is None:
            return None
        return made

    def _contraction(self, shape: Shape) -> Counted | None:
        nest, choice = self.known.get(shape.nest.name, (None, None))
        if nest is shape.nest:
            return choice
        if nest is not None and choice is not None and shape.nest.dims[1:] and shape.is_split:
            choice = Counted(choice.draft.of_part(), None)  # its ranking counts the parts
        else:
            choice = contraction(shape, self.profile)
        self.known[shape.nest.name] = shape.nest, choice
        return choice

    def _joined_run(
        self, program: ir.Program, group: FusionGroup, ahead: Iterable[FusionGroup]
    ) -> tuple[list[FusionGroup], dict[str, NestOptions]] | None:
        """As ``joined``, where the first group is a product."""
        if self.name != "mlp" or Shape(program, group.leader).pair is None:
            return None

        def choices_of(
            each: FusionGroup, choice: OptionsDraft, later: bool
        ) -> dict[str, NestOptions]:
            return _choices_of(each, choice, program, joined=later)

        return joined(program, chain([group], ahead), self.profile, choices_of)

    def _rowwise_run(
        self, program: ir.Program, groups: Iterable[FusionGroup]
    ) -> list[tuple[FusionGroup, OptionsDraft]]:
        """The first groups that can share blocks row by row: what one makes of a row the next one
        needs."""
        run: list[FusionGroup] = []
        rows: list[int] = []
        for group in groups if self.name not in ("naive", "pointwise") else ():
            nest = group.leader
            if nest.sequential or nest.points == 0:
                break
            if self._contraction(Shape(program, nest)) is not None:
                break
            if run:
                common = common_results(run[0].leader, nest)
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


def begins_stretch(nests: Sequence[ir.Nest], k: int) -> bool:
    """Whether a nest never shares blocks with those before it: what reduces the parts of a split
    nest needs those of all blocks."""
    return k == 0 or (is_whole(nests[k]) and not is_whole(nests[k - 1]))


def _stretches(nests: Sequence[ir.Nest]) -> Iterator[Sequence[ir.Nest]]:
    """The nests, those apart that never share blocks."""
    starts = [k for k in range(len(nests)) if begins_stretch(nests, k)]
    for start, stop in pairwise([*starts, len(nests)]):
        yield nests[start:stop]


def _nests(program: ir.Program, group: FusionGroup) -> list[ir.Nest]:
    """The nests of a group, in order."""
    names = group.names
    return [n for n in program.nests if n.name in names]


def _one_point_each(nest: ir.Nest) -> NestOptions:
    """A thread for each result, without anything else."""
    results = sum(not d.reduction for d in nest.dims)
    if (nest.sequential and nest.running is None) or not results:
        return PLAIN
    sizes = (*[1] * (results - 1), _NAIVE_THREADS)
    return replace(PLAIN, chunk=sizes, threads=sizes)


def _choices_of(
    group: FusionGroup, choice: OptionsDraft, program: ir.Program, *, joined: bool = False
) -> dict[str, NestOptions]:
    """The choices of a nest, and those of nests that are fused with it: the same loops."""
    found, all_of = {}, choice.options()
    for k, nest in enumerate(_nests(program, group)):
        options = all_of.of_first(len(nest.dims))
        if nest.name != group.leader.name:
            options = replace(options, stage=(), buffers=1)
        shared = any(options.chunk or ())
        found[nest.name] = replace(options, fuse=shared and (joined or k > 0))
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
    first = _nests(program, run[0])[0].name
    for group, choice in made:
        for nest in _nests(program, group):
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
