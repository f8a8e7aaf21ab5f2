"""The plan: what every choice came to, and why. It is made once, before any nest has loops; passes
apply it, and decide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.kinds import Kind, Lanes, Permutation, Sizes
from tcl.codegen.options.options import OPTIONS, Device, MappingOptions, NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.vectorize import why_not_vectorized

Target = TypeVar("Target", CpuProfile, GpuProfile)


@dataclass(frozen=True, slots=True)
class Source:
    """Where choices come from."""

    name: str
    """In a few words."""
    options: NestOptions


@dataclass(frozen=True, slots=True)
class NestPlan:
    """What was chosen for a nest."""

    options: NestOptions
    """In a plan, nothing is left open that the device has."""
    sources: tuple[Source, ...]
    """The first one that says something about an option decides it."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What became of choices that were changed, by option."""

    def or_else(self, name: str, options: NestOptions) -> NestPlan:
        """These choices, and others where there are none yet."""
        sources = (*self.sources, Source(name, options))
        return replace(self, options=self.options.over(options), sources=sources)

    def without(self, key: str, reason: str, value: Any = None) -> NestPlan:
        """These choices, with less of an option than was chosen, or nothing."""
        if value is None:
            value = OPTIONS[key].kind.neutral
        options = replace(self.options, **{key: value})
        return replace(self, options=options, notes={**self.notes, key: f"left off: {reason}"})

    def complete_on(self, device: Device) -> bool:
        """Whether everything was asked for in this very nest, as in a search's candidates."""
        return self.sources[0].options.complete_on(device)

    def asked(self, key: str) -> bool:
        """Whether an option was asked for in this very nest: then it is honoured or refused."""
        return getattr(self.sources[0].options, key) is not None

    def reason(self, key: str) -> str:
        """Why an option is what it is."""
        deciding = (s.name for s in self.sources if getattr(s.options, key) is not None)
        return self.notes.get(key) or next(deciding)


@dataclass(frozen=True, slots=True)
class Plan(Generic[Target]):
    """What becomes of a program."""

    target: Target
    """What it is for; of a CPU, with as many threads as are woken."""
    program: ir.Program
    """Its nests have no loops yet but those over their points; on a GPU, reductions are split."""
    nests: Mapping[str, NestPlan]
    """By name, in order."""

    @property
    def options(self) -> dict[str, NestOptions]:
        """The choices of each nest."""
        return {name: nest.options for name, nest in self.nests.items()}

    @property
    def kernels(self) -> list[list[str]]:
        """The nests, those together that share chunks."""
        found: list[list[str]] = []
        for name, nest in self.nests.items():
            if nest.options.fuse and found:
                found[-1].append(name)
            else:
                found.append([name])
        return found


def asked_for(program: ir.Program, options: MappingOptions, device: Device) -> dict[str, NestPlan]:
    """What was asked for, by nest: for this one, else for all, as far as that applies to it. For a
    search's candidate, that is all that there is to choose.

    Raises ``OptionsError`` for choices for a nest that the program lacks.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(options.no_nest(program.name, len(program.nests)))
    found = {}
    for position, nest in enumerate(program.nests):
        own = options.own(position)
        asked = NestPlan(own, (Source("asked for this nest", own),))
        if options.default.made() or not own.complete_on(device):
            asked = asked.or_else("asked for all nests", fitting(nest, options.default))
        found[nest.name] = asked
    return found


def fitting(nest: ir.Nest, choices: NestOptions) -> NestOptions:
    """The part of choices for all nests that applies to this one."""
    counts = {
        "dimension": len(nest.dims),
        "result": sum(not d.reduction for d in nest.dims),
        "operand": len(operands(nest.point)),
    }

    def part(kind: Kind, value: Any) -> Any:
        match kind:
            case Sizes(per=per):
                return () if nest.sequential and per != "operand" else value[: counts[per]]
            case Permutation():
                return value if len(value) == len(nest.dims) and not nest.sequential else ()
            case Lanes():
                return (-1, 1) if why_not_vectorized(nest, *value) else value
            case _:
                return value

    made = choices.made().items()
    return NestOptions(**{key: part(OPTIONS[key].kind, value) for key, value in made})


def applied(
    program: ir.Program, passes: Iterable[tuple[str, Iterable[Pass]]]
) -> Iterator[tuple[str, ir.Program]]:
    """(name, program) after each of the named passes."""
    for name, each in passes:
        for one in each:
            program = one(program)
        yield name, program
