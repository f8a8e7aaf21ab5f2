"""What the knobs of one nest have to meet: what can be scheduled, and what is worth trying.

Each reads no more values than it needs: those that it has read are drawn again where it is not met.
What can be scheduled is asked of the passes' own functions. Most of it can be told from few knobs,
so that the others are looked at only if these leave it open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TypeAlias

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import refusal
from tcl.codegen.passes.cpu.dot import dotted, in_groups, why_not_dotted
from tcl.codegen.passes.cpu.matrix import why_not_fed
from tcl.codegen.passes.cpu.peel import why_not_peeled
from tcl.codegen.passes.cpu.prefetch import why_not_prefetched
from tcl.codegen.passes.cpu.register import why_not_registers
from tcl.codegen.passes.cpu.skip import why_not_skipped
from tcl.codegen.passes.cpu.stage import why_not_staged
from tcl.codegen.passes.cpu.steps import with_loops
from tcl.codegen.passes.cpu.stream import why_not_streamed
from tcl.codegen.passes.tile import points_inside
from tcl.codegen.passes.vectorize import vector_dim, vectorized
from tcl.tuner.space.cpu.chunks import ChunkKnobs
from tcl.tuner.space.cpu.nest import NestKnobs, last_output
from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Constraint

WhyNot: TypeAlias = Callable[..., str | None]
_kept = lru_cache(maxsize=4096)
"""Few knobs have few values: what they come to is asked again and again."""


def sharing(chunks: ChunkKnobs) -> Constraint:
    """Of the nests of a group: the sentence with which one is refused to share the chunks of those
    before it."""
    why_not = _kept(chunks.why_not_shared)
    return lambda values: why_not(chunks.divided(values), chunks.fused(values))


def constraints(program: ir.Program, knobs: NestKnobs, device: CpuProfile) -> Iterator[Constraint]:
    """Of a nest; each gives the sentence with which a configuration's options are refused. Chunks,
    tiles, orders and lanes never are."""
    nest = knobs.nest
    if knobs.dot.knobs:
        yield partial(_dot, knobs, _kept(partial(why_not_dotted, nest, device=device)))
    if knobs.matrix.knobs:
        yield partial(_fed, knobs, device)
    if knobs.register.knobs:
        yield partial(_registers, knobs, _kept(partial(_why_not_registers, nest, device)))
    if knobs.stream.knobs:
        bare = _kept(
            lambda lanes, *chosen: _why_not_written(program, vectorized(nest, *lanes), *chosen)
        )
        yield partial(_stream, program, knobs, device, bare)
    if knobs.prefetch.knobs:
        yield partial(_prefetch, knobs, _kept(partial(why_not_prefetched, program, nest)))
    if knobs.skip.knobs:
        yield partial(_skipped, knobs, device)
    lanes = int(knobs.vector[1].choices[-1]) if knobs.vector else 1
    large = knobs.stage.may_be_too_large(lanes, bool(knobs.dot.knobs))
    if large:
        yield partial(_panels, knobs, device, large)


def _dot(knobs: NestKnobs, why_not: WhyNot, values: Mapping[str, Value]) -> str | None:
    sizes = knobs.dots(values)
    if not sizes or knobs.matrix.mma(values):  # which the knob of the matrix unit answers for
        return None
    return refusal("dot", knobs.nest.name, why_not(sizes, knobs.vectorize(values)))


def _fed(knobs: NestKnobs, device: CpuProfile, values: Mapping[str, Value]) -> str | None:
    mma = knobs.matrix.mma(values)
    if not mma:
        return None
    loops = NestOptions(vectorize=knobs.vectorize(values), dot=knobs.dots(values), mma=mma)
    reason = why_not_fed(with_loops(knobs.nest, loops, device), knobs.stage.copied(values))
    return refusal("mma", knobs.nest.name, reason)


def _why_not_registers(
    nest: ir.Nest,
    device: CpuProfile,
    sizes: tuple[int, ...],
    points: tuple[int, ...],
    lanes: tuple[int, int],
    dot: tuple[int, ...],
) -> str | None:
    if why_not_dotted(nest, dot, lanes, device) is not None:
        return None  # it is refused for that
    return why_not_registers(
        dotted(nest, dot, device), sizes, in_groups(points, dot), lanes, device
    )


def _registers(knobs: NestKnobs, why_not: WhyNot, values: Mapping[str, Value]) -> str | None:
    nest, lanes = knobs.nest, knobs.vectorize(values)
    if knobs.matrix.mma(values):
        return None  # its knob has none but those that can be
    sizes, dot = knobs.register_tile(values), knobs.dots(values)
    if why_not(sizes, tuple(d.extent for d in nest.dims), lanes, dot) is None:
        return None
    points = points_inside(nest, knobs.chunk(values), knobs.tile(values))
    return refusal("register", nest.name, why_not(sizes, points, lanes, dot))


def _stream(
    program: ir.Program,
    knobs: NestKnobs,
    device: CpuProfile,
    why_not: WhyNot,
    values: Mapping[str, Value],
) -> str | None:
    stream, peel = knobs.stream.chosen(values)
    if not (stream or peel):
        return None
    nest, lanes = knobs.nest, knobs.vectorize(values)
    # With both, which of them is refused first may depend on all loops.
    refused = why_not(lanes, stream, peel) if stream != peel else None
    if refused is None:
        copied = any(level >= 0 for level in knobs.stage.copied(values))
        nest = with_loops(nest, _loops(knobs, values), device)
        refused = _why_not_written(program, nest, stream, peel, copied)
    return refused


def _why_not_written(
    program: ir.Program, nest: ir.Nest, stream: bool, peel: bool, copied: bool = False
) -> str | None:
    reason = why_not_peeled(program, nest, stream, copied) if peel else None
    if reason is not None:
        return refusal("peel", nest.name, reason)
    reason = why_not_streamed(program, nest, peel) if stream else None
    return refusal("stream", nest.name, reason)


def _prefetch(knobs: NestKnobs, why_not: WhyNot, values: Mapping[str, Value]) -> str | None:
    ahead = knobs.prefetch.distances(values)
    if not ahead:
        return None
    lane = vector_dim(knobs.nest, *knobs.vectorize(values))
    copied = knobs.stage.copied(values)
    some = tuple(min(1, distance) for distance in ahead)
    return refusal("prefetch", knobs.nest.name, why_not(some, lane.name if lane else None, copied))


def _skipped(knobs: NestKnobs, device: CpuProfile, values: Mapping[str, Value]) -> str | None:
    if not knobs.skip.chosen(values):
        return None
    nest = _with_loops(knobs, device, values)
    if nest is None:
        return None
    made = knobs.chunks[0].made_with(values, knobs.nest) if knobs.chunks else set()
    return refusal("skip", nest.name, why_not_skipped(nest, made))


def _panels(
    knobs: NestKnobs, device: CpuProfile, large: tuple[Knob, ...], values: Mapping[str, Value]
) -> str | None:
    if not any(values[k.name] for k in large):
        return None
    nest = _with_loops(knobs, device, values)
    if nest is None:
        return None
    # What nests whose chunks it shares write is never copied before these: there is no such choice.
    return refusal("stage", nest.name, why_not_staged(nest, knobs.stage_levels(values), set()))


def _with_loops(
    knobs: NestKnobs, device: CpuProfile, values: Mapping[str, Value]
) -> ir.Nest | None:
    """The nest with all of its loops; None where its dot products are refused."""
    nest, lanes = knobs.nest, knobs.vectorize(values)
    dot, mma = knobs.dots(values), knobs.matrix.mma(values)
    if why_not_dotted(nest, dot, lanes, device, bool(mma)) is not None:
        return None
    return with_loops(nest, _loops(knobs, values), device)


def _loops(knobs: NestKnobs, values: Mapping[str, Value]) -> NestOptions:
    """What decides about the loops of a nest."""
    order, inner_order = knobs.order(values)
    return NestOptions(
        chunk=knobs.chunk(values),
        tile=knobs.tile(values),
        order=order,
        inner_order=inner_order,
        vectorize=knobs.vectorize(values),
        register=knobs.register_tile(values),
        dot=knobs.dots(values),
        mma=knobs.matrix.mma(values),
    )


def heuristics(knobs: NestKnobs) -> Iterator[Constraint]:
    """Of a nest; each says in a sentence why a configuration is the double of another one, or not
    worth trying."""
    if knobs.chunks:
        for position, knob in zip(knobs.movable, knobs.tiles, strict=True):
            yield partial(_tile_is_no_chunk, knobs, knobs.nest.dims[position].name, knob)
        yield partial(_copied_before_chunks, knobs)
    if knobs.vector:
        yield partial(_lanes_are_filled, knobs)
    if knobs.register.tile:
        yield partial(_register_is_said_once, knobs)


def _tile_is_no_chunk(
    knobs: NestKnobs, dim: str, knob: Knob, values: Mapping[str, Value]
) -> str | None:
    size = int(values[knob.name])
    if size == knob.choices[-1]:
        return None
    span = knobs.span(values, dim)
    if span is not None and size >= span:
        return _of(knobs.nest, f"a tile of {size} points is a whole chunk of {dim}")
    return None


def _copied_before_chunks(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    if knobs.stage.before_chunks(values) and not knobs.spans(values):
        return _of(knobs.nest, "there are no chunks before which operands are copied")
    return None


def _lanes_are_filled(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    if knobs.matrix.mma(values):
        return None  # lanes follow from that
    target, lanes = (int(values[k.name]) for k in knobs.vector)
    if lanes == 1:
        targets = tuple(int(v) for v in knobs.vector[0].choices)
        if len(targets) > 1 and target != last_output(knobs.nest, targets):
            return _of(knobs.nest, "without lanes the vectorised dimension is no choice")
        return None
    extent = knobs.nest.dims[target].extent
    size = int(values[knobs.tiles[knobs.movable.index(target)].name])
    tile = min(size, knobs.span(values, knobs.nest.dims[target].name) or size)
    as_default = size == extent and (target, lanes) == knobs.default_lanes
    if lanes > tile and not as_default:
        return _of(knobs.nest, f"{lanes} lanes are more than the {tile} points of a tile")
    return None


def _register_is_said_once(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    if knobs.matrix.mma(values):
        return None  # the register tile follows from that
    return _of(knobs.nest, knobs.register.redundant(values, knobs.lanes_of(values)))


def _of(nest: ir.Nest, reason: str | None) -> str | None:
    return None if reason is None else f"nest {nest.name}: {reason}"
