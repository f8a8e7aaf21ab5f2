"""The search space of a def on a GPU: mapping options as knobs, derived from its nests and the
device. What can be scheduled is what the passes accept of the options that the knobs encode."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Trials
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.steps import DIVIDING, LOOPS
from tcl.codegen.passes.split import Split, shifted
from tcl.codegen.schedule.gpu import GpuPlan, plan_gpu
from tcl.common.errors import OptionsError
from tcl.tuner.space.gpu.kernel_groups import KernelKnobs, Member, chunks_of
from tcl.tuner.space.program_space import ProgramSpace
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


_LINES = 8
"""Neighbours in memory that threads and lanes touch together, at least: a sector of floats."""
_WRITTEN_OUT = 1024
"""Points in a thread's code: more take long to compile."""
_ADDRESSES = 24
"""Registers for what is neither summed up nor read."""
_WAVES = 4
"""Blocks per multiprocessor up to which reductions are split."""
_OF_BLOCK = 4096
"""Points that are enough for a block."""


def heuristics(knobs: KernelKnobs, profile: GpuProfile, default: Values) -> list[Constraint]:
    """Of the kernels of some nests; each says why a configuration is no use trying."""
    found: list[Constraint] = []
    for member in knobs.members:
        nest = _Nest(member, profile)
        found += [nest.warps, nest.coalesced, nest.why_too_many_registers]
        if member.knobs.reductions and member.knobs.panels.knobs:
            found.append(nest.tiles)
    for position in range(len(knobs.members)):
        kernel = _KernelHeuristics(knobs, position, profile, default)
        found += [kernel.joined, kernel.why_idle] if knobs.joins else [kernel.why_idle]
    own = {k.name: default[k.name] for k in knobs.knobs}
    return [partial(_unless_default, own, c) for c in found]


def _unless_default(
    default: Values, heuristic: Callable[[Values], str | None], values: Values
) -> str | None:
    reason = heuristic(values)
    # Looked at quietly: they need not be drawn again.
    if reason is None or any(values.get(name) != value for name, value in default.items()):
        return reason
    for name in default:
        values[name]
    return None


@dataclass(frozen=True, slots=True)
class _Nest:
    member: Member
    profile: GpuProfile

    def _says(self, reason: str) -> str:
        return f"nest {self.member.nest.name}: {reason}"

    def warps(self, values: Values) -> str | None:
        """Whole warps, where there are points for them."""
        knobs = self.member.knobs
        threads = knobs.divided(values).block_threads
        room = math.prod(int(k.threads.choices[-1]) for k in knobs.dims)
        if threads < min(self.profile.warp, room):
            return self._says(f"{threads} threads are less than a warp")
        return None

    def coalesced(self, values: Values) -> str | None:
        """Neighbouring threads touch neighbours in memory of some tensor."""
        divided = self.member.knobs.divided
        along = [k.dim for k in divided.dims if k.dim.name in divided.in_order]
        if not along:
            return None
        sizes = divided(values).sizes
        for dim in along:
            lanes, threads, _ = sizes[dim.name]
            if lanes * threads >= min(_LINES, dim.extent // 2):
                return None
        return self._says("no operand is read in whole cache lines")

    def why_too_many_registers(self, values: Values) -> str | None:
        """What threads hold fits into their registers."""
        knobs, divided = self.member.knobs, self.member.knobs.divided(values)
        held = {k.dim.name: divided.sizes[k.dim.name] for k in knobs.dims}
        points = math.prod(lanes * count for lanes, _, count in held.values())
        if points > _WRITTEN_OUT:
            return self._says(f"{points} points are too many to unroll")
        own = {k.dim.name: held[k.dim.name][0] * held[k.dim.name][2] for k in knobs.results}
        words = 0
        if self.member.nest.point.op != "=":
            words = math.prod(own.values()) * _registers_of_value(
                self.member.nest.point.type.compute.bits
            )
            words *= self.member.sums
        own |= {k.dim.name: held[k.dim.name][0] for k in knobs.reductions}
        for load in knobs.panels.reads:
            dims = load.ref.names
            count = math.prod(n for name, n in own.items() if name in dims)
            words += count * _registers_of_value(load.type.compute.bits)
        threads = -(-divided.block_threads // self.profile.warp) * self.profile.warp
        most = self.profile.registers_per_multiprocessor // max(1, threads)
        most = min(most, self.profile.registers_per_thread)
        if words + _ADDRESSES > most:
            return self._says(f"a thread needs more than {words} registers, and has {most}")
        return None

    def tiles(self, values: Values) -> str | None:
        """Reductions are tiled for panels."""
        knobs = self.member.knobs
        if knobs.staged(values):
            return None
        tiled = next(iter(knobs.tiles(values)), None)
        return None if tiled is None else self._says(f"{tiled} needs no tiles without copies")


def _registers_of_value(bits: int) -> int:
    return max(1, bits // 32)


@dataclass(frozen=True, slots=True)
class _KernelHeuristics:
    """What nests that share a kernel have together."""

    knobs: KernelKnobs
    position: int
    """Of the member that it begins with, if it does."""
    profile: GpuProfile
    default: Values

    def joined(self, values: Values) -> str | None:
        """What knobs say of joining and chunks is so."""
        members, position = self.knobs.members, self.position
        if self.knobs.joins_in_vain(position, values):
            name = members[position].nest.name
            return f"nest {name}: nests that share a kernel are not split"
        kernel = self.knobs.kernel_of(position, values)
        if len(kernel) < 2:
            return None
        for name in kernel[0].knobs.chunks(values):
            if name not in kernel[0].shared:
                return f"nest {kernel[1].nest.name}: it has no chunks that match those of {name}"
        return None

    def why_idle(self, values: Values) -> str | None:
        """Blocks for much of the device, where there is work for them."""
        kernel = self.knobs.kernel_of(self.position, values)
        if not kernel:
            return None
        blocks, parts = _blocks(kernel, values)
        name = kernel[0].nest.name
        if parts > 1 and blocks * parts > _WAVES * self.profile.multiprocessors:
            return f"nest {name}: {blocks} blocks are enough; {parts} times as many are not needed"
        points = max(m.nest.points for m in kernel)
        enough = min(self.profile.multiprocessors // 2, points // _OF_BLOCK)
        enough = min(enough, math.prod(k.dim.extent for k in kernel[0].knobs.results))
        if blocks * parts >= enough:
            return None
        # The preset's blocks are as many as there can be.
        of_default = self.knobs.kernel_of(self.position, self.default)
        if not of_default or blocks * parts < math.prod(_blocks(of_default, self.default)):
            return f"nest {name}: {blocks} blocks leave most of the device idle"
        return None


def _blocks(kernel: list[Member], values: Values) -> tuple[int, int]:
    """Blocks, and parts that each of them is split into."""
    first, chunks = kernel[0], chunks_of(kernel, values)[0]
    counts = (-(-first.nest.dim(name).extent // size) for name, size in chunks.items())
    return math.prod(counts), first.knobs.divided(values).parts


_NESTS = 8
"""Nests that get knobs: those with the most points, and those that share a kernel with them by
default. The rest is mapped by the preset."""


class GpuMappingSpace(ProgramSpace):
    """Configurations that encode ``MappingOptions`` of one program on a GPU.

    Per nest, for each dimension: the threads along it, the points that each of them holds, and the
    steps in which the block goes through its chunk, or through a tile of a reduction, which is so
    always a multiple of what threads hold at once; the vectorised dimension and its lanes; the
    orders of loops over reductions; the operands that are copied to shared memory, and how many
    copies of these there are; whether it joins the kernel of the nest before. Nests that can go
    along with others follow these. The default is what the preset ``mlp`` chooses. For ``fixed``
    see ``ProgramSpace``.
    """

    _preset = "mlp"

    def __init__(
        self, program: ir.Program, profile: GpuProfile, fixed: Mapping[str, Value] | None = None
    ) -> None:
        super().__init__(program, fixed)
        self._profile = profile
        self._default = self._resolved(MappingOptions(self._preset))
        self._groups = self._with_knobs(self._default)
        if any(group.from_options(self._default) is None for group in self._groups):
            # The knobs cannot encode what the preset joins: each nest has a kernel of its own,
            # then.
            apart = {name: replace(o, fuse=False) for name, o in self._default.items()}
            self._groups = self._with_knobs(apart)
        self._known = {n.name for g in self._groups for m in g.members for n in m.nests}
        knobs = [k for group in self._groups for k in group.knobs]
        canonical = self._canonical({k.name: k.default for k in knobs})
        legal = (c for g in self._groups for c in constraints(g, self._program, profile))
        worth = (h for g in self._groups for h in heuristics(g, profile, canonical))
        self._declare((replace(k, default=canonical[k.name]) for k in knobs), legal, worth)

    def _with_knobs(self, default: Mapping[str, NestOptions]) -> tuple[KernelKnobs, ...]:
        led = fusion_groups(self._program.nests)
        kernels: list[list[ir.Nest]] = []
        for fused in led:
            names = fused.names
            first = next(n for n in self._program.nests if n.name in names)
            if not (kernels and default[first.name].fuse):
                kernels.append([])
            kernels[-1].append(fused.leader)
        able = [k for k in kernels if all(map(_has_choices, k))]
        able.sort(key=lambda kernel: -max(n.points for n in kernel))
        found: list[str] = []
        for kernel in able:
            if len(found) < _NESTS:
                found += [n.name for n in kernel]
        return KernelKnobs.all_of(self._program, self._profile, default, found)

    def _canonical(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: v for g in self._groups for name, v in g.canonical(values).items()}

    def _decode(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        found = {name: o for name, o in self._default.items() if name not in self._known}
        for group in self._groups:
            found.update(group.options(values))
        return found

    def _encode(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        values: dict[str, Value] = {}
        for group in self._groups:
            found = group.from_options(resolved)
            if found is None:
                return None
            values.update(found)
        return values

    def _plan(self, options: MappingOptions) -> GpuPlan:
        return plan_gpu(self._program, options, self._profile)


def _has_choices(nest: ir.Nest) -> bool:
    return not nest.sequential and nest.points > 0
