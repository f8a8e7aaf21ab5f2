"""What can be scheduled on a GPU: the passes are tried with the options that the knobs encode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import Trials
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.steps import DIVIDING, LOOPS
from tcl.codegen.passes.split import Split, shifted
from tcl.common.errors import OptionsError
from tcl.tuner.space.gpu.kernel_groups import KernelKnobs, chunks_of
from tcl.tuner.space.search_space import Constraint, Quiet

Values = Mapping[str, Value]
_CACHED = 1024
"""Divisions of a kernel whose passes' results are cached."""


def constraints(
    knobs: KernelKnobs, program: ir.Program, profile: GpuProfile
) -> Iterator[Constraint]:
    """Of the kernels of some nests; each gives the sentence with which options are refused."""
    kernels = [_KernelConstraints(knobs, k, program, profile) for k in range(len(knobs.members))]
    for kernel in kernels:
        yield kernel.bound
        yield kernel.panels


@dataclass(frozen=True, slots=True)
class _KernelConstraints:
    """The nests that share a kernel with a member, if it is the first of them."""

    knobs: KernelKnobs
    position: int
    """Of the member."""
    program: ir.Program
    profile: GpuProfile
    _trials: dict[object, Trials[GpuProfile] | OptionsError] = field(default_factory=dict)

    def bound(self, values: Values) -> str | None:
        """Chunks can be shared, and threads can have what they are given. Where not, what divides
        points is drawn again."""
        options = self._options(Quiet(values))
        found = self._trials_after_chunks(options)
        if isinstance(found, OptionsError):
            return self._refused(found, values, panels=False)
        for name, own in options.items():
            bound = found.through("bind", name, own)
            if isinstance(bound, OptionsError):
                return self._refused(bound, values, panels=False)
        return None

    def panels(self, values: Values) -> str | None:
        """What is copied can be, feeds tensor cores, and fits into shared memory; there are not
        too many blocks. Where not, what is copied is drawn again, and the sizes of that."""
        options = self._options(Quiet(values))
        found = self._trials_after_chunks(options)
        if isinstance(found, OptionsError) or not options:
            return None
        try:
            program = found.program
            for step in LOOPS:
                for name, own in options.items():
                    for each in step.passes(name, own, self.profile):
                        program = each(program)
            WithinLimits(self.profile)(program)
        except OptionsError as refused:
            return self._refused(refused, values, panels=True)
        return None

    def _options(self, values: Values) -> dict[str, NestOptions]:
        """By nest of the kernel; of one that is split, those of its parts."""
        kernel, found = self.knobs.kernel_of(self.position, values), {}
        for member, chunks in zip(kernel, chunks_of(kernel, values) if kernel else (), strict=True):
            own = member.options(values, chunks, joined=member is not kernel[0])
            if own[member.nest.name].split:
                return {member.nest.name: own[member.nest.name]}
            found.update(own)
        return found

    def _trials_after_chunks(
        self, options: dict[str, NestOptions]
    ) -> Trials[GpuProfile] | OptionsError:
        """The passes after chunks, to be tried; or the error with which there are none."""
        key = tuple((name, o.chunk, o.fuse, o.split) for name, o in options.items())
        found = self._trials.get(key)
        if found is None:
            if len(self._trials) >= _CACHED:
                self._trials.clear()
            found = self._trials[key] = self._divide_alone(options)
        for name, own in options.items():
            options[name] = shifted(own) if own.split else own
        return found

    def _divide_alone(
        self, options: Mapping[str, NestOptions]
    ) -> Trials[GpuProfile] | OptionsError:
        """The program of these nests alone, with their chunks."""
        program = self.program
        program = replace(program, nests=tuple(n for n in program.nests if n.name in options))
        try:
            for name, own in options.items():
                program = Split(name, own.split or ())(program)
            program = replace(program, nests=tuple(n for n in program.nests if n.name in options))
            for step in DIVIDING:
                for name, own in options.items():
                    own = shifted(own) if own.split else own
                    for each in step.passes(name, own, self.profile):
                        program = each(program)
        except OptionsError as refused:
            return refused.with_traceback(None)
        return Trials(program, LOOPS, self.profile)

    def _refused(self, error: OptionsError, values: Values, *, panels: bool) -> str:
        """The sentence; what is to be drawn again is looked at."""
        for member in self.knobs.kernel_of(self.position, Quiet(values)):
            knobs, divided = member.knobs, member.knobs.divided
            again: list[Knob] = [k.steps for k in knobs.dims]
            if panels:
                again += [*knobs.panels.knobs, *divided.use_cores]
            else:
                of_dims = (k for each in knobs.dims for k in (each.threads, each.register))
                again += [*of_dims, divided.block, *divided.vector, *divided.split]
                again += divided.use_cores
            for knob in again:
                if len(knob.choices) > 1:
                    values[knob.name]
        for knob in self.knobs.joins.values():
            values[knob.name]
        return str(error)
