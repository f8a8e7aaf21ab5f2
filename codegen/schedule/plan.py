"""The plan: what every choice came to, and why. It is made once, before any nest has loops; passes
apply it, and decide nothing."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.verify import verify
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.kinds import OptionKind, Permutation, Sizes, VectorLanes
from tcl.codegen.options.nest_options import OPTIONS, Device, NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Pass, PassStep, RefusedError
from tcl.codegen.passes.order import why_not_ordered
from tcl.codegen.passes.vectorize import outputs, why_not_vectorized
from tcl.common.errors import NoNestError, OptionsError
from tcl.common.recursion import with_room
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import representative

Target = TypeVar("Target", CpuProfile, GpuProfile)

ALL_NESTS = "asked for all nests"
"""The name of the source of ``MappingOptions.default``."""


@dataclass(frozen=True, slots=True)
class OptionSource:
    """Where choices come from."""

    name: str
    """In a few words."""
    options: NestOptions


@dataclass(frozen=True, slots=True)
class NestPlan:
    options: NestOptions
    """In a plan, nothing is left open that the device has."""
    sources: tuple[OptionSource, ...]
    """The first one that says something about an option decides it."""
    done: Mapping[str, str] = field(default_factory=dict)
    """What became of choices that are done already, by option."""
    left_off: Mapping[str, str] = field(default_factory=dict)
    """Why less of an option is done than was chosen, or nothing, by option."""

    def or_else(self, name: str, options: NestOptions) -> NestPlan:
        """These choices, and others where there are none yet."""
        sources = (*self.sources, OptionSource(name, options))
        return replace(self, options=self.options.over(options), sources=sources)

    def without(self, key: str, reason: str, value: Any = None) -> NestPlan:
        """These choices, with less of an option than was chosen, or nothing."""
        if value is None:
            value = OPTIONS[key].kind.neutral
        options = replace(self.options, **{key: value})
        return replace(self, options=options, left_off={**self.left_off, key: reason})

    def complete_on(self, device: Device) -> bool:
        """Whether everything was asked for in this very nest, as in a search's candidates."""
        return self.sources[0].options.complete_on(device)

    def asked(self, key: str) -> bool:
        """Whether an option was asked for in this very nest: then it is honoured or refused."""
        return getattr(self.sources[0].options, key) is not None

    def reason(self, key: str) -> str:
        """Why an option is what it is."""
        if key in self.left_off:
            return f"left off: {self.left_off[key]}"
        return self.done.get(key) or str(self.decided_by(key))

    def why_nothing(self, key: str) -> str | None:
        """Why nothing is left of an option; None if something is, or nothing was asked for."""
        asks = OPTIONS[key].kind.asks(getattr(self.options, key))
        return None if asks else self.left_off.get(key)

    def decided_by(self, key: str) -> str | None:
        """Who decided an option; None if it is open."""
        deciding = (s.name for s in self.sources if getattr(s.options, key) is not None)
        return next(deciding, None)


@dataclass(frozen=True, slots=True)
class Plan(ABC, Generic[Target]):
    """What becomes of a program. Each device has a subclass, which lists its passes."""

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

    def kernels(self, built: ir.Built) -> list[list[list[str]]]:
        """The nests of each kernel of the plan, ``built``, those together that share chunks. The
        last block of those that reduce parts may do what the next ones do."""
        launch = {s.name: k for k, kernel in enumerate(built.kernels) for s in kernel.spaces}
        found: list[list[list[str]]] = []
        for name, nest in self.nests.items():
            if nest.options.fuse and found:
                found[-1][-1].append(name)
            elif found and launch.get(name, -1) == launch.get(found[-1][0][0]):
                found[-1].append([name])
            else:
                found.append([[name]])
        return found

    @abstractmethod
    def passes(self) -> Iterator[tuple[str, tuple[Pass, ...]]]:
        """The named passes that apply the plan, in the order in which they run."""

    @abstractmethod
    def build(self, program: ir.Program) -> ir.Built:
        """The kernels of a program that went through all passes."""

    def applied(self) -> Iterator[tuple[str, ir.Program]]:
        """(name, program) after each of the named passes. Raises ``OptionsError`` for options that
        cannot be applied."""
        program = self.program
        for name, passes in self.passes():
            for one in passes:
                program = one(program)
            yield name, program

    def scheduled(self) -> ir.Built:
        """The kernels. Raises ``OptionsError`` for options that cannot be applied."""

        def made() -> ir.Built:
            *_, (_, program) = self.applied()
            verify(program)  # once: what is wrong after one pass is wrong after the last
            built = self.build(program)
            verify(built)
            return built

        return with_room(made)


def lowered(
    sized: SizedDef, options: MappingOptions, layouts: Mapping[str, ir.Layout]
) -> ir.Program:
    """The nests that a plan is made of, without loops but those over their points."""
    program = lower(sized, layouts)
    return merged(program) if options.merges else program


def at_representative(sized: SizedDef) -> SizedDef:
    """The def with the numbers by which choices are made, of sizes that are formulas."""
    inputs = sized.checked.inputs
    shapes = {t.name: tuple(map(representative, sized.shapes[t.name])) for t in inputs}
    return infer(sized.checked, shapes)


AnyPlan = TypeVar("AnyPlan", bound=Plan[Any])


def planned(
    sized: SizedDef,
    options: MappingOptions,
    layouts: Mapping[str, ir.Layout],
    plan: Callable[[ir.Program], AnyPlan],
) -> AnyPlan:
    """The plan that is made of a def once it is lowered, and dimensions are merged.

    Raises ``OptionsError`` for options that cannot be planned; that is a ``NoNestError`` where they
    were asked for in all nests, and no nest can have them.
    """

    def made() -> AnyPlan:
        found = plan(lowered(sized, options, layouts))
        _refuse_what_no_nest_has(found, options.default)
        return found

    return with_room(made)


def asked_for(program: ir.Program, options: MappingOptions, device: Device) -> dict[str, NestPlan]:
    """What was asked for, by nest: for this one, else for all, as far as that applies to it. For a
    search's candidate, that is all that there is to choose. A plan is refused once it is made if
    something that was asked for in all nests came to nothing in each of them.

    Raises ``OptionsError`` for choices for a nest that the program lacks.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(options.no_nest(program.name, len(program.nests)))
    found = {}
    for position, nest in enumerate(program.nests):
        own = options.own(position)
        asked = NestPlan(own, (OptionSource("asked for this nest", own),))
        if options.default.made() or not own.complete_on(device):
            asked = _with_default(asked, nest, options.default)
        found[nest.name] = asked
    return found


def _with_default(plan: NestPlan, nest: ir.Nest, choices: NestOptions) -> NestPlan:
    """The choices for a nest, and for what it says nothing about the part of those for all nests
    that it could have, whatever its loops."""
    counts = {
        "dimension": ("dimensions", len(nest.dims)),
        "result": ("dimensions that are not reduced", len(outputs(nest))),
        "operand": ("operands", len(operands(nest.point))),
    }

    def part(kind: OptionKind, value: Any) -> tuple[Any, str | None]:
        """What is left of a value, and why it is not all of it."""
        match kind:
            case Sizes(per=per) if nest.sequential and not (
                per == "operand" or (per == "result" and nest.running)
            ):
                return (), nest.sequential
            case Sizes(per=per):
                what, count = counts[per]
                return value[:count], f"it has {count} {what}, but {len(value)} were given"
            case Permutation():
                reason = why_not_ordered(nest, value)
            case VectorLanes():
                reason = why_not_vectorized(nest, *value)
            case _:
                reason = None
        return (kind.neutral if reason else value), reason

    left_off = {}
    fitting = {}
    for key, value in choices.made().items():
        kind = OPTIONS[key].kind
        fitting[key], reason = part(kind, value)
        if reason and kind.asks(value) and not kind.asks(fitting[key]) and not plan.asked(key):
            left_off[key] = reason
    plan = plan.or_else(ALL_NESTS, NestOptions(**fitting))
    return replace(plan, left_off=left_off)


def _refuse_what_no_nest_has(plan: Plan[Any], choices: NestOptions) -> None:
    """``NoNestError`` for something that was asked for in all nests, and that none has. A nest that
    asks for something else itself needs none of it."""
    for key in choices.made():
        asked = [
            (name, nest) for name, nest in plan.nests.items() if nest.decided_by(key) == ALL_NESTS
        ]
        why = [(name, nest.why_nothing(key)) for name, nest in asked]
        if why and all(reason for _, reason in why):
            name, reason = why[-1 if key == "fuse" else 0]  # the first has no nest before it
            others = "" if len(plan.nests) == 1 else "; no other nest can have it, either"
            raise NoNestError(f"{key}: nest {name}: {reason}{others}")


def with_chunks(
    program: ir.Program,
    nests: Mapping[str, NestPlan],
    steps: Sequence[PassStep[Target]],
    device: Target,
) -> tuple[ir.Program, dict[str, NestPlan]]:
    """The program in which nests have their chunks and those share them that can, by the ``steps``
    of a device for that; and the choices, without ``fuse`` where nobody asked for that in this very
    nest, and it cannot be."""
    found = {}
    for name, plan in nests.items():
        for step in steps:
            try:
                for each in step.passes(name, plan.options, device):
                    program = each(program)
            except RefusedError as refused:
                # What else is refused still is when the plan is applied.
                if refused.option == "fuse" and not plan.asked("fuse"):
                    plan = plan.without("fuse", refused.reason)
        found[name] = plan
    return program, found


def plan_text(plan: Plan[Target], built: ir.Built) -> str:
    """The plan, whose kernels are ``built``, as text."""
    lines = [f"{plan.program.name} on {plan.target.name}"]
    if plan.target.threads is not None:
        lines[0] += f", {plan.target.threads} thread{'s' * (plan.target.threads > 1)}"
    for kernel in plan.kernels(built):
        for group in kernel:
            last = f", by the last blocks of {kernel[0][0]}" if group is not kernel[0] else ""
            for name in group:
                where = f", in the chunks of {group[0]}" if name != group[0] else last
                lines += ["", f"nest {name}{where}"]
                lines += _choices(plan.nests[name], plan.target.kind)
    return "\n".join(lines)


def _choices(nest: NestPlan, device: Device) -> Iterator[str]:
    """A line for each option of a nest."""
    made = {
        key: json.dumps(value)
        for key, value in nest.options.made().items()
        if device not in OPTIONS[key].refused
    }
    wide, width = max(map(len, made)), max(map(len, made.values()))
    for key, value in made.items():
        yield f"  {key:<{wide}}  {value:<{width}}  {nest.reason(key)}"
