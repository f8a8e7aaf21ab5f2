"""What the knobs of one nest have to meet: what cannot work, or is another configuration's double.

A constraint reads no more values than it needs: those that it has read are drawn again where it is
not met.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tcl.tuner.space.cpu.nest import NestKnobs, last_output
from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Constraint


def constraints(knobs: NestKnobs) -> tuple[Constraint, ...]:
    """Of a nest; each says in a sentence why a configuration does not meet it."""
    found: list[Constraint] = []
    if knobs.chunks:
        pairs = zip(knobs.movable, knobs.tiles, strict=True)
        found += [partial(_tile_fits, knobs, knobs.nest.dims[i].name, k) for i, k in pairs]
        found.append(partial(_copied_before_chunks, knobs))
    if knobs.vector:
        found.append(partial(_lanes_fit, knobs))
    if knobs.register.knobs:
        found.append(partial(_register_is_said_once, knobs))
    if knobs.stage.knobs:
        found.append(partial(_panels_fit, knobs))
    if knobs.stream.knobs:
        found.append(partial(_can_stream, knobs))
    if knobs.prefetch.knobs:
        found.append(partial(_can_prefetch, knobs))
    return tuple(found)


def _tile_fits(knobs: NestKnobs, dim: str, knob: Knob, values: Mapping[str, Value]) -> str | None:
    size = int(values[knob.name])
    if size == knob.choices[-1]:
        return None
    span = knobs.span(values, dim)
    if span is not None and size >= span:
        return f"nest {knobs.nest.name}: a tile of {size} points is a whole chunk of {dim}"
    return None


def _copied_before_chunks(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    if knobs.stage.before_chunks(values) and not knobs.spans(values):
        return f"nest {knobs.nest.name}: there are no chunks before which operands are copied"
    return None


def _register_is_said_once(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    lanes = knobs.lanes_of(values)
    reason = knobs.register.redundant(values, lanes)
    return f"nest {knobs.nest.name}: {reason}" if reason else None


def _panels_fit(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    tiles = zip(knobs.movable, knobs.tiles, strict=True)
    sizes = {d.name: d.extent for d in knobs.nest.dims}
    sizes.update({knobs.nest.dims[i].name: int(values[k.name]) for i, k in tiles})
    return knobs.stage.too_large(values, sizes)


def _can_stream(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    target, lanes = (int(values[k.name]) for k in knobs.vector)
    along = knobs.stream.along
    tile = knobs.tiles[knobs.movable.index(along)]
    size = 0 if values[tile.name] == tile.choices[-1] else int(values[tile.name])
    chunk = knobs.span(values, knobs.nest.dims[along].name) or 0
    reason = knobs.stream.why_not(values, target, lanes, (size, chunk))
    return f"nest {knobs.nest.name}: {reason}" if reason else None


def _can_prefetch(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    target, lanes = (int(values[k.name]) for k in knobs.vector) if knobs.vector else (-1, 1)
    tiles = tuple(d.name for d in knobs.nest.dims)
    staged = knobs.stage.levels(values, tiles, False)
    reason = knobs.prefetch.why_not(values, target, lanes, staged)
    return f"nest {knobs.nest.name}: {reason}" if reason else None


def _lanes_fit(knobs: NestKnobs, values: Mapping[str, Value]) -> str | None:
    target, lanes = (int(values[k.name]) for k in knobs.vector)
    if lanes == 1:
        targets = tuple(int(v) for v in knobs.vector[0].choices)
        if len(targets) > 1 and target != last_output(knobs.nest, targets):
            return f"nest {knobs.nest.name}: without lanes the vectorised dimension is no choice"
        return None
    extent = knobs.nest.dims[target].extent
    size = int(values[knobs.tiles[knobs.movable.index(target)].name])
    tile = min(size, knobs.span(values, knobs.nest.dims[target].name) or size)
    as_default = size == extent and (target, lanes) == knobs.default_lanes
    if lanes > tile and not as_default:
        return f"nest {knobs.nest.name}: {lanes} lanes are more than the {tile} points of a tile"
    return None
