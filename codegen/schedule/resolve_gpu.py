"""What is chosen for each nest on a GPU: its own options, else those for all nests, else the
preset's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.choose.gpu.presets import plan, splits
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.options import MappingOptions, NestOptions
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.gpu.bind import Bind, thread_count
from tcl.codegen.passes.gpu.split import Split, shifted
from tcl.codegen.passes.gpu.stage_shared import uniform_loops, why_no_panel
from tcl.codegen.passes.tile import Tile
from tcl.codegen.schedule.resolve_cpu import fitting


def resolve(
    program: ir.Program, options: MappingOptions, profile: GpuProfile
) -> tuple[ir.Program, dict[str, NestOptions]]:
    """The program with its reductions split, and every nest's choices, with nothing left open.

    Raises ``OptionsError`` for choices for a nest that the program lacks, and for those that no GPU
    has.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(options.no_nest(program.name, len(program.nests)))
    given = {
        nest.name: options.own(k).over(fitting(nest, options.default))
        for k, nest in enumerate(program.nests)
    }
    for nest in program.nests:
        _refuse(nest, given[nest.name])
    own = {n.name: options.own(k) for k, n in enumerate(program.nests)}
    program, given = _split(options.preset, program, given, profile)
    chosen = plan(options.preset, program, given, profile)
    asked = {name: given[name].over(o) for name, o in chosen.items()}
    return program, _able(program, own, asked, profile)


def _able(
    program: ir.Program,
    own: Mapping[str, NestOptions],
    asked: Mapping[str, NestOptions],
    profile: GpuProfile,
) -> dict[str, NestOptions]:
    """The choices, without joining nests and staging operands where that was not a nest's own
    choice and cannot be."""
    found = dict(asked)
    for name, o in asked.items():
        program = Chunk(name, o.chunk or (), clip=False)(program)
    for name, o in asked.items():
        free = own.get(name, NestOptions()).fuse is None
        if o.fuse and free and why_not_fused(program.nests, name):
            found[name] = replace(o, fuse=False)
        elif o.fuse:
            program = Fuse(name)(program)
    for name, o in found.items():
        if (
            any(level >= 0 for level in o.stage or ())
            and own.get(name, NestOptions()).stage is None
        ):
            nest = Bind.of(name, o, profile)(Tile(name, o.tile or ())(program)).nest(name)
            found[name] = replace(o, stage=_stageable(nest, o.stage or ()))
    return found


def _stageable(nest: ir.Nest, levels: tuple[int, ...]) -> tuple[int, ...]:
    """The levels, without those at which an operand cannot be staged."""
    threads, loops = thread_count(nest), len(uniform_loops(nest))
    pairs = zip(operands(nest.point), levels, strict=False)
    return tuple(
        -1 if n < 0 or why_no_panel(nest, load, n, threads, loops) else n for load, n in pairs
    )


def _split(
    preset: str, program: ir.Program, given: dict[str, NestOptions], profile: GpuProfile
) -> tuple[ir.Program, dict[str, NestOptions]]:
    """The program and the choices for it, with reductions split. A nest that goes along with one
    that is split has loops of its own then, and may be split as well."""
    while True:
        for name, parts in splits(preset, program, given, profile).items():
            divided = Split(name, parts)(program)
            if divided is not program:
                program = divided
                given[name] = shifted(given[name])
                given[f"{name}.whole"] = NestOptions(split=())
                break
        else:
            return program, given


def _refuse(nest: ir.Nest, given: NestOptions) -> None:
    """Options of a CPU that a GPU has nothing for."""
    given.check_on("GPU", f"nest {nest.name}")
    for position, (dim, size) in enumerate(zip(nest.dims, given.tile or (), strict=False)):
        if size and not dim.reduction:
            raise OptionsError(
                f"tile: nest {nest.name}: on a GPU results are divided by chunk, and tile is for "
                f"reductions; dimension {position} is none"
            )
