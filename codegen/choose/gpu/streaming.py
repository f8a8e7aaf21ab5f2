"""Options for nests that read what they read once: whole lines of memory, in vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, power_above, power_below
from tcl.codegen.devices.gpu import GpuProfile

THREADS = 256
"""Of a block, about."""
_LONG = 16384
"""Points of a row from which on more threads work on it."""


def streaming(shape: Shape, profile: GpuProfile) -> OptionsDraft:
    """Choices for a nest that shares its blocks with none."""
    lane = shape.lane_dim()
    if lane is not None and lane in shape.reductions:
        rows = [k for k in shape.results if shape.extent(k) > 1]
        return rowwise(shape, rows)
    made = OptionsDraft.empty(len(shape.nest.dims))
    for k in shape.results:
        made.chunk[k] = 1
    if lane is None:
        return made
    width = shape.vector(lane)
    others = math.prod(shape.extent(k) for k in shape.results if k != lane)
    along = math.prod(shape.extent(k) for k in shape.reductions)
    threads = THREADS
    if shape.reductions:
        # A few threads share each sum if there are not enough results for all of the device.
        wanted = profile.multiprocessors * THREADS * 4
        while width > 1 and others * shape.extent(lane) // width < wanted:
            width //= 2
        shared = power_below(min(8, max(1, along // 4)))
        if others * shape.extent(lane) // width < wanted and shared > 1:
            longest = max(shape.reductions, key=shape.extent)
            share = min(shared, power_below(shape.extent(longest)))
            made.threads[longest] = share
            threads //= share
    if width > 1:
        made.lanes = lane, width
    own = min(threads, power_above(-(-shape.extent(lane) // width)))
    made.threads[lane], made.chunk[lane] = own, own * width
    left = threads // own
    for k in sorted((k for k in shape.results if k != lane), reverse=True):
        own = min(left, power_below(shape.extent(k)))
        if own > 1:
            made.threads[k] = made.chunk[k] = own
            left //= own
    return made


def rowwise(shape: Shape, rows: Sequence[int], points: int = 0) -> OptionsDraft:
    """Choices for a nest of whose dimensions ``rows`` are shared among blocks, and all others
    among the threads of a block; ``points``: of the longest row of those that share the block."""
    made = OptionsDraft.empty(len(shape.nest.dims))
    for k in shape.results:
        made.chunk[k] = 1 if k in rows else 0
    inside = [k for k in range(len(shape.nest.dims)) if k not in rows and shape.extent(k) > 1]
    longest = max(math.prod(shape.extent(k) for k in inside), points)
    most = 2 * THREADS if longest >= _LONG else THREADS
    vectors = max(1, longest // max(1, 16 // shape.largest))
    threads = max(1, min(most, power_above(vectors)))
    if rows and threads < THREADS // 2:
        last = rows[-1]
        several = min(THREADS // 2 // threads, power_below(shape.extent(last)))
        if several > 1:
            made.threads[last] = made.chunk[last] = several
    lane = shape.lane_dim()
    if lane not in inside:
        lane = inside[-1] if inside else None
    if lane is None:
        return made
    width = shape.vector(lane)
    if width > 1:
        made.lanes = lane, width
    left = threads
    for k in sorted(inside, key=lambda k: (k != lane, -k)):
        steps = -(-shape.extent(k) // (width if k == lane else 1))
        own = min(left, power_above(steps))
        if own > 1:
            made.threads[k] = own
            left //= own
    return made
