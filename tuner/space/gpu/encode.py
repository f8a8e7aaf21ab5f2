"""Options of a nest on a GPU as values of its knobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.vectorize import outputs
from tcl.tuner.space.gpu.shared_memory import said_of_panels

UNSAID = -1
"""The value of what no knob can encode."""


def encode(nest: ir.Nest, options: NestOptions, *, joined: bool = False) -> dict[str, Value]:
    """What all knobs that the nest may have would be set to. ``joined``: another nest's knobs say
    its chunks."""
    found: dict[str, Value] = {}
    found[f"{nest.name}.mma"] = int(bool(options.mma))
    target, lanes = options.vectorize or (-1, 1)
    target = len(outputs(nest)) - 1 if target < 0 else target
    chunk, tile = _size_per_dim(nest, options.chunk), _size_per_dim(nest, options.tile)
    threads, register = _size_per_dim(nest, options.threads), _size_per_dim(nest, options.register)
    split = _size_per_dim(nest, options.split)
    serial: list[str] = []
    sizes: dict[str, int] = {}
    for k, dim in enumerate(nest.dims):
        if dim.extent == 1:
            continue  # nothing to divide
        own, held = max(1, threads[k]), max(1, register[k])
        unit = own * held * (lanes if target == k else 1)
        size = tile[k] if dim.reduction else chunk[k]
        extent = -(-dim.extent // max(1, split[k]))
        points = size or extent
        if not dim.reduction and points > unit:
            serial.append(dim.name)
        if size >= extent:
            size = 0
        if dim.reduction and size:
            sizes[dim.name] = size
        steps = UNSAID if size % unit else size // unit
        found[f"{dim.name}.threads"] = own
        found[f"{dim.name}.register"] = held
        found[f"{dim.name}.steps"] = 0 if joined and not dim.reduction else steps
    found[f"{nest.name}.block"] = block_of(max(1, own) for own in threads)
    found[f"{nest.name}.vector"] = target
    found[f"{nest.name}.lanes"] = lanes
    if nest.reduces:
        at = longest(nest)
        others = any(n > 1 for k, n in enumerate(split) if k != at)
        found[f"{nest.name}.split"] = UNSAID if others else max(1, split[at])
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction and d.extent > 1]
    order = _order_of_reductions(reductions, options.order or ())
    found[f"{nest.name}.order"] = " ".join(map(str, order))
    inner = options.inner_order or ()
    kept = [p for p in inner if nest.dims[p].extent > 1]
    as_said = sorted(kept, key=lambda p: nest.dims[p].reduction) == kept
    results = [p for p in kept if p not in reductions]
    text = " ".join(map(str, _order_of_reductions(reductions, inner)))
    found[f"{nest.name}.inner_order"] = text if as_said and results == sorted(results) else UNSAID
    tiled = [nest.dims[reductions[k]].name for k in order]
    loops = [*serial, *(name for name in tiled if name in sizes)]
    return found | said_of_panels(nest, options.stage or (), options.buffers or 1, loops)


def block_of(threads: Iterable[int]) -> int:
    """The least power of two that so many threads, along each dimension, fit in; a warp or more."""
    return max(32, min(1024, 1 << (math.prod(threads) - 1).bit_length()))


def longest(nest: ir.Nest) -> int:
    """The position of the reduction with the most points, which is the one that may be split."""
    reductions = (k for k, d in enumerate(nest.dims) if d.reduction)
    return max(reductions, key=lambda k: nest.dims[k].extent)


def _size_per_dim(nest: ir.Nest, sizes: Sequence[int] | None) -> tuple[int, ...]:
    given = tuple(sizes or ())
    return given + (0,) * (len(nest.dims) - len(given))


def _order_of_reductions(reductions: Sequence[int], permutation: Sequence[int]) -> list[int]:
    """An order of all dimensions as one of the reductions with more than one point."""
    kept = [p for p in permutation if p in reductions] or list(reductions)
    return [reductions.index(p) for p in kept]
