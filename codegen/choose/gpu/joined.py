"""Blocks that several nests share, of which one needs what another one made: one launch for all.

Products that follow each other often have a dimension of results alike, as time has in a cell of a
network: a block then takes some points of that and all of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import tee

from tcl.codegen.choose.gpu.contraction import covering
from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape
from tcl.codegen.choose.gpu.predicted import counts_of
from tcl.codegen.choose.gpu.streaming import rowwise
from tcl.codegen.counters.prediction import APIECE, LAUNCH, Prediction, predict
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.gpu.steps import together
from tcl.common.errors import OptionsError

_BLOCKS = (((4, 8), (32, 8)), ((4, 8), (64, 4)))
"""Results of a thread, those along what nests share first, and threads of a block, those last, as
``covering`` has it."""
_FEW = 1 << 27
"""Points up to which launches are worth the work that blocks repeat: more take longer than that."""

Choices = Callable[[FusionGroup, OptionsDraft, bool], dict[str, NestOptions]]
"""Those of the nests of a group; the last: whether it shares the blocks of the one before."""


def joined(
    program: ir.Program,
    groups: Iterable[FusionGroup],
    profile: GpuProfile,
    choices_of: Choices,
) -> tuple[list[FusionGroup], dict[str, NestOptions]] | None:
    """The first groups, if they should share their blocks, and their choices; None if they may be
    faster on their own."""
    ahead, again = tee(groups)
    for by_row, choices in enumerate((_covering, _by_row)):
        for run, drafts in choices(program, again if by_row else ahead, profile):
            options = dict[str, NestOptions]()
            for group, draft in zip(run, drafts, strict=True):
                options |= choices_of(group, draft, group is not run[0])
            prediction = _prediction(program, run, options, profile)
            if prediction is None:
                continue
            # Tiles are waited for as often in kernels of their own.
            seconds = prediction.rank - (0.0 if by_row else prediction.waited)
            if seconds < len(run) * APIECE + _computed(run, profile):
                return run, options
            break
    return None


def common_results(one: ir.Nest, other: ir.Nest) -> list[int]:
    """The leading results that two nests have alike."""
    found = []
    for k, (a, b) in enumerate(zip(one.dims, other.dims, strict=False)):
        if a.reduction or b.reduction or (a.first, a.extent) != (b.first, b.extent):
            break
        found.append(k)
    return found


def _computed(run: Sequence[FusionGroup], profile: GpuProfile) -> float:
    """Seconds of the products, beside launches: nobody takes less."""
    return 2 * sum(g.leader.points for g in run) / profile.float32_flops


Drafts = Iterator[tuple[list[FusionGroup], list[OptionsDraft]]]
"""Groups that may share their blocks, and what each is to have: what takes the least work first."""


def _covering(program: ir.Program, groups: Iterable[FusionGroup], profile: GpuProfile) -> Drafts:
    """Blocks of some points of the results that groups share."""
    run = _run(program, groups)
    if len(run) < 2:
        return

    def work(block: tuple[tuple[int, int], tuple[int, int]]) -> int:
        """Results of the multiprocessor with the most blocks, in what nests share."""
        (held, _), (_, threads) = block
        _, shape, common = run[0]
        blocks = -(-math.prod(map(shape.extent, common)) // (held * threads))
        return -(-blocks // profile.multiprocessors) * held * threads

    for held, threads in sorted(_BLOCKS, key=work):
        drafts = [covering(s, common, held, threads, profile) for _, s, common in run]
        made = [draft for draft in drafts if draft is not None]
        if len(made) == len(run):
            yield [group for group, _, _ in run], made


def _by_row(program: ir.Program, groups: Iterable[FusionGroup], profile: GpuProfile) -> Drafts:
    """Blocks of a row each, of products so small that launches take longer: each block reads all
    of what rows are multiplied with."""
    run: list[FusionGroup] = []
    rows: list[int] = []
    for group in groups:
        nest = group.leader
        if nest.sequential or nest.points == 0 or _computed([*run, group], profile) > LAUNCH:
            break
        common = common_results(run[0].leader, nest) if run else []
        rows = rows or common
        if run and (not rows or len(common) < len(rows)):
            break
        run.append(group)
    number = math.prod(run[0].leader.dims[k].extent for k in rows) if run else 0
    if len(run) > 1 and 2 * number >= profile.multiprocessors:
        points = max(g.leader.points for g in run) // number
        shapes = [Shape(program, g.leader) for g in run]
        yield run, [rowwise(s, rows, profile, points, again=True) for s in shapes]


def _run(
    program: ir.Program, groups: Iterable[FusionGroup]
) -> list[tuple[FusionGroup, Shape, list[int]]]:
    """The first groups with a dimension of results alike, along which vectors lie: each with its
    shape, and the positions of the dimensions that all of them share."""
    run: list[tuple[FusionGroup, Shape, list[int]]] = []
    alike: tuple[tuple[int, int, int], ...] | None = None
    for group in groups:
        shape = Shape(program, group.leader)
        nest, own = shape.nest, _common(shape)
        plain = not nest.sequential and 0 < nest.points <= _FEW and len(nest.dims) > 1
        if not plain or own is None or (run and own != alike):
            break
        alike = own
        run.append((group, shape, [k for k, _, _ in own]))
    return run


def _common(shape: Shape) -> tuple[tuple[int, int, int], ...] | None:
    """(position, first, extent) of the leading result and of that along which results lie, the
    dimensions that nests share; None where there are no vectors of these."""
    nest = shape.nest
    lane = next((k for k in shape.results if shape.stride(nest.point.target, k) == 1), None)
    if lane is None or len(shape.results) < 3 or shape.vector(lane) == 1:
        return None
    return tuple((k, nest.dims[k].first, nest.dims[k].extent) for k in (0, lane))


def _prediction(
    program: ir.Program,
    run: Sequence[FusionGroup],
    options: Mapping[str, NestOptions],
    profile: GpuProfile,
) -> Prediction | None:
    """What the groups take in the same blocks; None if they cannot be there."""
    made = together(program, options, profile)
    if made is None or sum(not n.joined for n in made.nests) > 1:
        return None
    try:
        counts = counts_of(made, profile)
    except OptionsError:
        return None
    return None if counts is None else predict(counts)
