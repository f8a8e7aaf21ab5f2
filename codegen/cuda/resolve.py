"""What is chosen for each nest on a GPU: its own options, else those for all nests, else the
preset's."""

from __future__ import annotations

from tcl.codegen import ir
from tcl.codegen.cuda.presets import plan, splits
from tcl.codegen.cuda.profile import GpuProfile
from tcl.codegen.cuda.split import Split, shifted
from tcl.codegen.errors import OptionsError
from tcl.codegen.options import MappingOptions, NestOptions
from tcl.codegen.resolve import fitting


def resolve(
    program: ir.Program, options: MappingOptions, profile: GpuProfile
) -> tuple[ir.Program, dict[str, NestOptions]]:
    """The program with its reductions split, and every nest's choices, with nothing left open.

    Raises ``OptionsError`` for choices for a nest that the program lacks, and for those that no GPU
    has.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(
            f"nests: choices for {len(options.nests)} nests were given, "
            f"{program.name} has {len(program.nests)}"
        )
    given = {
        nest.name: options.own(k).over(fitting(nest, options.default))
        for k, nest in enumerate(program.nests)
    }
    for nest in program.nests:
        _refuse(nest, given[nest.name])
    program, given = _split(options.preset, program, given, profile)
    chosen = plan(options.preset, program, given, profile)
    return program, {name: given[name].over(o) for name, o in chosen.items()}


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
    if any(given.prefetch or ()):
        raise OptionsError(f"prefetch: nest {nest.name}: threads of a GPU fetch nothing ahead")
    if given.stream:
        raise OptionsError(f"stream: nest {nest.name}: a GPU has no stores past its caches here")
    for position, (dim, size) in enumerate(zip(nest.dims, given.tile or (), strict=False)):
        if size and not dim.reduction:
            raise OptionsError(
                f"tile: nest {nest.name}: on a GPU results are divided by chunk, and tile is for "
                f"reductions; dimension {position} is none"
            )
