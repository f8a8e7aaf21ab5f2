"""Blocks that several nests share, of which one needs what another one made: one launch for all.

Products that follow each other often have a dimension of results alike, as time has in a cell of a
network: a block then takes some points of that and all of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tcl.codegen.choose.gpu.contraction import covering
from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape
from tcl.codegen.choose.gpu.predicted import counts_of
from tcl.codegen.counters.prediction import LAUNCH, predict
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.gpu.steps import together
from tcl.common.errors import OptionsError

_BLOCKS = (((4, 8), (32, 8)), ((4, 8), (64, 4)))
"""Results of a thread and threads of a block: those along what nests share last, as ``covering``
has it."""
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
    run = _run(program, groups)
    if len(run) < 2:
        return None
    computed = 2 * sum(g.leader.points for g in run) / profile.float32_flops
    apart = len(run) * LAUNCH + computed  # nobody takes less
    best: tuple[float, dict[str, NestOptions]] | None = None
    for held, threads in _BLOCKS:
        options = dict[str, NestOptions]()
        for group, (shape, common) in zip(run, _shapes(program, run), strict=True):
            draft = covering(shape, common, held, threads, profile)
            if draft is None:
                break
            options |= choices_of(group, draft, group is not run[0])
        else:
            seconds = _seconds(program, run, options, profile)
            if seconds is not None and (best is None or seconds < best[0]):
                best = seconds, options
    return (run, best[1]) if best is not None and best[0] < apart else None


def _run(program: ir.Program, groups: Iterable[FusionGroup]) -> list[FusionGroup]:
    """The first groups with a dimension of results alike, along which vectors lie."""
    run: list[FusionGroup] = []
    for group in groups:
        nest = group.leader
        own = _common(program, nest)
        plain = not nest.sequential and 0 < nest.points <= _FEW and len(nest.dims) > 1
        if not plain or own is None or (run and own != _common(program, run[0].leader)):
            break
        run.append(group)
    return run


def _common(program: ir.Program, nest: ir.Nest) -> tuple[tuple[int, int, int], ...] | None:
    """(position, first, extent) of the leading result and of that along which results lie, the
    dimensions that nests share; None where there are no vectors of these."""
    shape = Shape(program, nest)
    lane = next((k for k in shape.results if shape.stride(nest.point.target, k) == 1), None)
    if lane is None or len(shape.results) < 3 or shape.vector(lane) == 1:
        return None
    return tuple((k, nest.dims[k].first, nest.dims[k].extent) for k in (0, lane))


def _shapes(program: ir.Program, run: Sequence[FusionGroup]) -> list[tuple[Shape, list[int]]]:
    found = []
    for group in run:
        common = _common(program, group.leader)
        assert common is not None
        found.append((Shape(program, group.leader), [k for k, _, _ in common]))
    return found


def _seconds(
    program: ir.Program,
    run: Sequence[FusionGroup],
    options: Mapping[str, NestOptions],
    profile: GpuProfile,
) -> float | None:
    """What the groups take in the same blocks; None if they cannot be there."""
    made = together(program, options, profile)
    if made is None or sum(not n.joined for n in made.nests) > 1:
        return None
    try:
        counts = counts_of(made, profile)
    except OptionsError:
        return None
    return None if counts is None else predict(counts).rank
