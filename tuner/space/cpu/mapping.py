"""The search space of a def on a CPU: mapping options as knobs, derived from its nests and the
device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tcl.codegen.choose.cpu.chunk_groups import ChunkGroup, groups
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.kinds import VectorLanes
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import OPTIONS, NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.base import Trials
from tcl.codegen.passes.cpu.steps import LOOPS, MARKS, SEARCHED
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.passes.knobs import Decoded, KnobSubject, Values, without_knobs
from tcl.codegen.passes.tile import Chunk
from tcl.codegen.schedule.cpu import CpuPlan, other_plans, plan_cpu
from tcl.codegen.schedule.parts import unsplit
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import Undecided
from tcl.tuner.space.columns import Column, Rows
from tcl.tuner.space.program_space import ProgramSpace
from tcl.tuner.space.search_space import Config, Constraint, Quiet

_CACHED = 256
"""Divisions of a group whose passes' results are cached."""


@dataclass(frozen=True, slots=True)
class ChunkKnobs:
    """One size per dimension that the nests of a group have in common, and one switch per nest
    that may be joined to the one before it. A size as large as the dimension leaves it whole."""

    program: ir.Program
    device: CpuProfile
    group: ChunkGroup
    sizes: tuple[Knob, ...]
    joins: Mapping[str, Knob]
    always: frozenset[str]
    """Nests without a switch: they are fused with those before them, and share their chunks."""
    given: Mapping[str, Value] | None
    """The sizes with which the first nest can share the chunks that the preset gives to the one
    before it, which has no knobs; None if it does not do so by default."""
    _trials: dict[object, Trials[CpuProfile] | OptionsError] = field(
        default_factory=dict, compare=False, repr=False
    )

    @staticmethod
    def all_of(
        program: ir.Program, device: CpuProfile, default: Mapping[str, NestOptions]
    ) -> tuple[ChunkKnobs, ...]:
        """The knobs of an untiled program, which can encode the sizes of ``default``."""
        found = []
        # Only neighbours can be joined.
        pairs = set(itertools.pairwise(n.name for n in program.nests))
        for group in groups(program, device):
            if not group.shared:
                continue
            first, sizes = group.nests[0], []
            given: dict[str, Value] = {}
            for dims in group.shared:
                extent = first.dim(dims[0]).extent
                own = _chunk_size(first, default[first.name], dims[0])
                choices = sorted({1, own, extent, *(1 << p for p in range(1, extent.bit_length()))})
                fitting = tuple(c for c in choices if 1 <= c <= extent)
                sizes.append(Knob(f"{dims[0]}.chunk", fitting, extent, ordered=True))
                given[sizes[-1].name] = own
            names = [n.name for n in group.nests]
            later = [name for before, name in itertools.pairwise(names) if (before, name) in pairs]
            always = frozenset(n.name for fused in group.fused for n in fused[1:]) & {*later}
            joined = bool(default[first.name].fuse)
            joins = {
                name: Knob(f"{name}.fuse", (0, 1), 0, ordered=False)
                for name in (names[:joined] + later)
                if name not in always
            }
            of_first = given if joined else None
            found.append(ChunkKnobs(program, device, group, tuple(sizes), joins, always, of_first))
        return tuple(found)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return (*self.sizes, *self.joins.values())

    def fused(self, values: Mapping[str, Value]) -> frozenset[str]:
        """The nests that share the chunks of the one before them."""
        asked = frozenset(name for name, knob in self.joins.items() if values[knob.name])
        divided = any(values[k.name] != k.choices[-1] for k in self.sizes)
        return asked | self.always if divided else asked

    def chunk(self, nest: str, values: Mapping[str, Value]) -> tuple[int, ...]:
        position = next(k for k, n in enumerate(self.group.nests) if n.name == nest)
        shared = [dims[position] for dims in self.group.shared]
        sizes = {name: int(values[k.name]) for name, k in zip(shared, self.sizes, strict=True)}
        whole = {d.name: d.extent for d in self.group.nests[position].dims}
        chunk = tuple(n if (n := sizes.get(d, e)) < e else 0 for d, e in whole.items())
        return chunk if any(chunk) else ()

    def from_options(self, options: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        """Knob values for options of the nests; None if the knobs cannot encode them."""
        found: dict[str, Value] = {}
        for position, nest in enumerate(self.group.nests):
            for dims, knob in zip(self.group.shared, self.sizes, strict=True):
                size = _chunk_size(nest, options[nest.name], dims[position])
                if found.setdefault(knob.name, size) != size:
                    return None
            if nest.name in self.joins:
                found[self.joins[nest.name].name] = int(bool(options[nest.name].fuse))
        if any(found[k.name] not in k.choices for k in self.knobs):
            return None
        fused = self.fused(found)
        for nest in self.group.nests:
            own, chunk = options[nest.name], self.chunk(nest.name, found)
            shared = [d.name for d, size in zip(nest.dims, chunk, strict=False) if size]
            other = [d for d in nest.dims if d.name not in shared]
            whole = all(_chunk_size(nest, own, d.name) == d.extent for d in other)
            if not whole or bool(own.fuse) != (nest.name in fused):
                return None
        return found

    def trials(self, values: Mapping[str, Value]) -> Trials[CpuProfile] | OptionsError:
        """The passes after these chunks, to be tried; or the error with which chunks cannot be
        shared like this."""
        fused = self.fused(values)
        key = (*(values[k.name] for k in self.sizes), fused)
        found = self._trials.get(key)
        if found is None:
            if len(self._trials) >= _CACHED:
                self._trials.clear()
            found = self._trials[key] = self._divided(values, fused)
        return found

    def _divided(
        self, values: Mapping[str, Value], fused: frozenset[str]
    ) -> Trials[CpuProfile] | OptionsError:
        program = self.program
        first, *others = names = [nest.name for nest in self.group.nests]
        given = self.given or {}
        if first in fused and any(values[name] != size for name, size in given.items()):
            return OptionsError(f"nest {first}: the nest before it has other chunks")
        try:
            for name in names:
                program = Chunk(name, self.chunk(name, values))(program)
            for name in others:
                program = Fuse(name)(program) if name in fused else program
        except OptionsError as refused:
            return refused.with_traceback(None)
        return Trials(program, (*LOOPS, *MARKS), self.device)


def _chunk_size(nest: ir.Nest, options: NestOptions, dim: str) -> int:
    """The points per chunk of a dimension; its extent if it is whole."""
    sizes = zip(nest.dims, options.chunk or (), strict=False)
    extent = nest.dim(dim).extent
    return min(next((size for d, size in sizes if d.name == dim), 0) or extent, extent)


_NESTS = 8
"""Nests that get knobs: those with the most points. The rest is mapped by the preset."""
_GROUPS = 8
"""Groups of nests that get knobs for their chunks."""
_OWN = [
    name
    for name, option in OPTIONS.items()
    if option.knobs and "CPU" not in option.refused and name not in ("chunk", "fuse")
]
"""Options that are chosen nest by nest."""


class NestKnobs:
    def __init__(
        self,
        program: ir.Program,
        nest: ir.Nest,
        device: CpuProfile,
        default: NestOptions,
        chunks: ChunkKnobs | None,
    ) -> None:
        self.nest, self._device, self._chunks = nest, device, chunks
        self._default_lanes = default.vectorize or (-1, 1)
        self._trials = Trials(program, (*LOOPS, *MARKS), device)
        self._subject = KnobSubject(program, nest, device, default, self._trials)
        searched = {each.option: each for each in (knobs(self._subject) for knobs in SEARCHED)}
        # What presets split has no knobs at all: see ``MappingSpace``.
        self._options = searched | {o: without_knobs(o) for o in _OWN if o not in searched}
        self._decoders = {name: each.decode for name, each in self._options.items()}
        chunk = partial(chunks.chunk, nest.name) if chunks else lambda values: ()
        self._decoders["chunk"] = lambda values, _: chunk(values)
        self._decoders["fuse"] = lambda values, _: bool(
            chunks and nest.name in chunks.fused(values)
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return tuple(knob for each in self._options.values() for knob in each.knobs)

    def decode(self, values: Values) -> Decoded:
        """The options that knob values encode, by name."""
        return Decoded(self._decoders, values)

    def nest_options(self, values: Values) -> NestOptions:
        """The options of the nest, its chunks included."""
        decoded = self.decode(values)
        return NestOptions(**{option: getattr(decoded, option) for option in self._decoders})

    def columns(self, rows: Rows) -> dict[str, Column[Any]]:
        """The options of many configurations at once, by name."""

        def column(option: str) -> Column[Any]:
            return rows.column(lambda values: getattr(self.decode(values), option))

        return {option: column(option) for option in self._decoders}

    def from_options(self, options: NestOptions, chunks: Values) -> dict[str, Value] | None:
        """Knob values, where those of chunks are known; None if the knobs
        cannot encode the options."""
        known = dict(chunks)
        for each in self._options.values():
            own = each.encode(options)
            known.update({k.name: own[k.name] for k in each.knobs})
        if any(known[k.name] not in k.choices for k in self.knobs):
            return None
        decoded = self.decode(known)
        exact = (name for name, each in self._options.items() if each.exact)
        if any(not self._ask_the_same(o, getattr(options, o), getattr(decoded, o)) for o in exact):
            return None
        return self.canonical(known)

    def _ask_the_same(self, option: str, one: Any, other: Any) -> bool:
        """Whether two values of an option ask for the same."""
        kind, last = OPTIONS[option].kind, self._subject.last_result

        def plain(value: Any) -> Any:
            value = kind.canonical(value)
            if isinstance(kind, VectorLanes) and kind.asks(value) and value[0] < 0:
                return last, value[1]
            return value

        return bool(plain(one) == plain(other))

    def canonical(self, values: Values) -> dict[str, Value]:
        """The canonical values of these knobs, among all that mean the same."""
        known = dict(values)
        for each in self._options.values():
            if each.knobs:
                known.update(each.canonical(known, self.decode(known)))
        return {k.name: known[k.name] for k in self.knobs}

    def why_refused(self, values: Values) -> str | None:
        """The reason of the first pass that refuses. Its own options are drawn again, not those
        that were decided before it."""
        quiet = Quiet(values)
        trials = self._chunks.trials(quiet) if self._chunks else self._trials
        if isinstance(trials, OptionsError):
            return None  # refused for that
        found = trials.first_refusal(self.nest.name, self.decode(quiet))
        if found is None:
            return None
        step, error = found
        for option in step.options:
            for knob in self._options[option].knobs:
                values[knob.name]
        return str(error)

    def heuristics(self) -> Iterator[Constraint]:
        """What is not worth trying, in a sentence each."""
        if self._options["vectorize"].knobs:
            yield self._lanes_without_points
        for each in self._options.values():
            if each.knobs:
                yield partial(self._unless_redundant, each.redundant)

    def _lanes_without_points(self, values: Values) -> str | None:
        decoded = self.decode(values)
        target, lanes = decoded.vectorize
        if decoded.mma or lanes == 1:
            return None
        points = self._subject.points_inside(decoded.chunk, decoded.tile)[target]
        own = self._default_lanes
        as_default = points == self.nest.dims[target].extent and decoded.vectorize == (
            self._subject.last_result if own[0] < 0 else own[0],
            own[1],
        )
        if lanes > points and not as_default:
            return (
                f"nest {self.nest.name}: {lanes} lanes are more than the {points} points of a tile"
            )
        return None

    def _unless_redundant(
        self, redundant: Callable[[Values, Decoded], str | None], values: Values
    ) -> str | None:
        reason = redundant(values, self.decode(Quiet(values)))
        return None if reason is None else f"nest {self.nest.name}: {reason}"


class MappingSpace(ProgramSpace):
    """Configurations that encode ``MappingOptions`` of one program on a CPU.

    Per nest: a tile size for each dimension (powers of two, and the extent divided by 2 to 8,
    rounded up; the extent itself leaves it untiled), the order of the loops over tiles and of
    those inside, the vectorised dimension and its lanes, the register tile, the staged
    operands, what is prefetched and written past the caches. Nests that can be fused with others
    follow these. For ``fixed`` see ``ProgramSpace``.
    """

    def __init__(
        self, program: ir.Program, device: CpuProfile, fixed: Mapping[str, Value] | None = None
    ) -> None:
        super().__init__(program, fixed)
        program = self._program
        self._device = device
        default = self._resolved(DEFAULT)
        # Those that are fused with others get their loops.
        given = set[str]().union(*(u.followers for u in fusion_groups(program.nests)))
        given |= {n.name for n in program.nests if n.sequential and n.running is None}
        by_points = sorted(
            (i for i, n in enumerate(program.nests) if n.name not in given),
            key=lambda i: -math.prod(d.extent for d in program.nests[i].dims),
        )
        # Parts of a reduction have no knobs; the preset makes them.
        whole = [i for i in by_points if not default[program.nests[i].name].split]
        chosen = sorted(whole[:_NESTS])
        self._chunks = ChunkKnobs.all_of(program, device, default)[:_GROUPS]
        of_nest = {n.name: chunks for chunks in self._chunks for n in chunks.group.nests}
        self._nests = {
            i: NestKnobs(program, nest, device, default[nest.name], of_nest.get(nest.name))
            for i, nest in enumerate(program.nests)
            if i in chosen
        }
        # Nothing is left to the preset where all nests have knobs, and none is taken apart.
        known = len(chosen) == len(program.nests) and not any(
            n.point.scatters for n in program.nests
        )
        self._preset = "naive" if known else "mlp"
        knobs = (
            *(k for nest in self._nests.values() for k in nest.knobs),
            *(k for group in self._chunks for k in group.knobs),
        )
        nests = self._nests.values()
        self._known = {nest.nest.name for nest in nests}
        self._declare(
            knobs,
            (
                *(partial(_not_shared, chunks) for chunks in self._chunks),
                *(nest.why_refused for nest in nests),
            ),
            (each for nest in nests for each in nest.heuristics()),
        )

    def _decode(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        found = {
            n.name: NestOptions(chunk=chunks.chunk(n.name, values), fuse=n.name in fused)
            for chunks in self._chunks
            for fused in [chunks.fused(values)]
            for n in chunks.group.nests
        }
        return found | {k.nest.name: k.nest_options(values) for k in self._nests.values()}

    @property
    def positions(self) -> frozenset[int]:
        """Of the nests with knobs."""
        return frozenset(self._nests)

    def columns(self, rows: Rows) -> dict[int, dict[str, Column[Any]]]:
        """The options of each row of configurations, by position of the nest and name of
        the option, of nests with knobs: as ``to_options`` does it for one."""
        return {position: knobs.columns(rows) for position, knobs in self._nests.items()}

    def _canonical(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {
            name: v for nest in self._nests.values() for name, v in nest.canonical(values).items()
        }

    def promising(self, most: int) -> Iterator[Config]:
        """As of ``ProgramSpace``: with other lanes and register tiles, and all that follows."""
        known = {self.from_options(DEFAULT)}
        with suppress(Undecided):  # which tile is best, where sizes are formulas
            for plan in other_plans(self._program, self._device, most):
                values = self._encode(unsplit(self._program, plan)) or {}
                config = tuple(values[k.name] for k in self.space.knobs if k.name in values)
                if config not in known and self.space.contains(config) and self.space.valid(config):
                    known.add(config)
                    yield config

    def _plan(self, options: MappingOptions) -> CpuPlan:
        return plan_cpu(self._program, options, self._device)

    def _encode(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        values: dict[str, Value] = {}
        for group in self._chunks:
            sizes = group.from_options(resolved)
            if sizes is None:
                return None
            values.update(sizes)
        for position, knobs in self._nests.items():
            found = knobs.from_options(resolved[self._program.nests[position].name], values)
            if found is None:
                return None
            values.update(found)
        return values

    def _mapped(self, options: MappingOptions) -> list[ir.Nest]:
        return [] if len(self._nests) == len(self._program.nests) else super()._mapped(options)


def _not_shared(chunks: ChunkKnobs, values: Values) -> str | None:
    """Why nests of a group cannot share the chunks of those before them; None if they can."""
    found = chunks.trials(values)
    return str(found) if isinstance(found, OptionsError) else None
