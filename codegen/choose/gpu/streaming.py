"""Options for nests that read what they read once: whole lines of memory, in vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, power_above, power_below
from tcl.codegen.counters.prediction import L2_BYTES, memory_rate
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.gpu.shared_rows import MOST_WORDS

THREADS = 256
"""Of a block, about."""
_VECTORS = 8
"""That a thread reads of a row, at most if threads are enough."""
_LEAST_SHARE = 32
"""Threads that share a row, if it has vectors for them: those of a warp."""
_BUSY = 512
"""Threads of a multiprocessor from which on a thread may have several vectors."""
_LINE = 8
"""Threads that read a line of memory in vectors."""
_STREAMED = 1024
"""Threads of a multiprocessor that keep memory busy, where each reads a few vectors at once."""
_LEAST_TERMS = 4
"""Of a thread that shares a sum."""


def streaming(shape: Shape, profile: GpuProfile) -> OptionsDraft:
    """Choices for a nest that shares its blocks with none."""
    lane = shape.lane_dim()
    if lane is not None and lane in shape.reductions:
        rows = [k for k in shape.results if shape.extent(k) > 1]
        return rowwise(shape, rows, profile)
    made = OptionsDraft.empty(len(shape.nest.dims))
    for k in shape.results:
        made.chunk[k] = 1
    if lane is None:
        return made
    width, threads = _lanes(shape, lane, profile), THREADS
    if shape.reductions:
        # Threads share each sum if there are not enough results for all of the device.
        others = math.prod(shape.extent(k) for k in shape.results if k != lane)
        vectors = others * -(-shape.extent(lane) // width)
        longest = max(shape.reductions, key=shape.extent)
        along = math.prod(shape.extent(k) for k in shape.reductions)
        most = min(along // _LEAST_TERMS, shape.extent(longest), profile.threads_per_block // _LINE)
        wanted = -(-profile.multiprocessors * _STREAMED // vectors)
        share = min(power_above(wanted), power_below(max(1, most)))
        if share > 1:
            made.threads[longest] = share
            threads = max(1, THREADS // share, min(_LINE, profile.threads_per_block // share))
    if width > 1:
        made.lanes = lane, width
    own = min(threads, power_above(-(-shape.extent(lane) // width)))
    made.threads[lane], made.chunk[lane] = own, own * width
    left = threads // own
    held = _AT_ONCE // (width * shape.largest)
    results = math.prod(map(shape.extent, shape.results))
    enough = results >= profile.multiprocessors * _STREAMED * held * width
    enough &= shape.extent(lane) >= held * made.chunk[lane]
    if held > 1 and enough and not shape.reductions:
        made.register[lane] = held
        made.chunk[lane] *= held
    for k in sorted((k for k in shape.results if k != lane), reverse=True):
        own = min(left, power_below(shape.extent(k)))
        if own > 1:
            made.threads[k] = made.chunk[k] = own
            left //= own
    return made


_AT_ONCE = 16
"""Bytes of results of a thread: in one vector, or in several steps, so that it waits once for what
all of them need."""


def _lanes(shape: Shape, lane: int, profile: GpuProfile) -> int:
    """Lanes along a dimension. What begins within a vector is read one by one, and asks the second
    cache for the same as often: with fewer lanes, where that would take longer than memory."""
    width, size = shape.vector(lane), shape.largest
    layouts = {r: shape.program.tensor(r.tensor).layout for r in set(refs(shape.nest))}
    along = [r for r in layouts if shape.stride(r, lane) == 1 and r.is_affine]
    places = [layouts[r].place(r).constant for r in along]
    near = L2_BYTES * profile.multiprocessors * profile.clock / memory_rate(profile)
    room = near * len({r.tensor for r in along})
    while width > 1 and sum(width if x % (width * size) else 1 for x in places) > room:
        width //= 2
    return width


_SUMMED = 192
"""Words of a thread that adds up parts, for what it reads at once and for sums. It reads all parts
of a result at once where they fit: a loop over parts would be written out by compilers, which begin
all its reads early, until there are no registers left."""


def finishing(shape: Shape, chunk: Sequence[int], threads: int) -> OptionsDraft:
    """Choices for a nest that adds up the parts of results, so that its blocks are those that made
    these parts. ``chunk``: the results of such a block, per dimension, 0 for all; ``threads``: the
    most that it has."""
    made, left = OptionsDraft.empty(len(shape.nest.dims)), power_below(threads)
    made.chunk = {k: size for k, size in zip(shape.results, chunk, strict=False) if size}
    lane, words = shape.lane_dim(), max(1, shape.largest // 4)
    order = sorted(shape.results, key=lambda k: (k != lane, -k))
    (part,) = shape.reductions
    most = _SUMMED // (shape.extent(part) + 1)
    for k in order:
        size, width = made.chunk.get(k, shape.extent(k)), 1
        if k == lane:
            width = math.gcd(shape.vector(k), size)
            made.lanes = (k, width) if width > 1 else made.lanes
            words *= width
        steps = size // width if k in made.chunk else power_above(-(-size // width))
        own = min(left, steps & -steps)
        held = min(power_below(max(1, most // words)), (steps // own) & -(steps // own))
        made.threads[k], made.register[k] = own, held
        left //= own
        words *= held
    share = min(left, power_below(max(1, shape.extent(part) // _LEAST_TERMS)))
    made.threads[part] = share
    made.register[part] = min(max(1, _SUMMED // words - 1), -(-shape.extent(part) // share))
    return made


def rowwise(
    shape: Shape, rows: Sequence[int], profile: GpuProfile, points: int = 0, *, again: bool = False
) -> OptionsDraft:
    """Choices for a nest of whose dimensions ``rows`` are shared among blocks, and all others
    among the threads of a block; ``points``: of the longest row of those that share the block;
    ``again``: whether several nests read it."""
    made = OptionsDraft.empty(len(shape.nest.dims))
    for k in shape.results:
        made.chunk[k] = 1 if k in rows else 0
    inside = [k for k in range(len(shape.nest.dims)) if k not in rows and shape.extent(k) > 1]
    longest = max(math.prod(shape.extent(k) for k in inside), points)
    vectors = -(-longest // max(1, 16 // shape.largest))
    number = math.prod(shape.extent(k) for k in rows)
    threads = _row_threads(vectors, number, profile)
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
    steps = {k: -(-shape.extent(k) // (width if k == lane else 1)) for k in inside}
    shares = _shares(steps, lane, threads)
    for k, share in shares.items():
        if share > 1:
            made.threads[k] = share
    held = {k: -(-steps[k] // share) for k, share in shares.items()}
    words = math.prod(held.values()) * width * max(1, shape.largest // 4)
    if again and words <= MOST_WORDS:
        made.register = {k: n for k, n in held.items() if n > 1}
    return made


def _row_threads(vectors: int, rows: int, profile: GpuProfile) -> int:
    """Threads that share a row of so many vectors: few, so that each has several on their way and
    those of a warp exchange sums without waiting for others, but enough for all of the device."""
    threads = min(2 * THREADS, max(_LEAST_SHARE, power_above(-(-vectors // _VECTORS))))
    wanted = profile.multiprocessors * _BUSY
    while threads < THREADS and threads < vectors and rows * threads < wanted:
        threads *= 2
    return min(threads, power_above(vectors))


def _shares(steps: dict[int, int], lane: int, threads: int) -> dict[int, int]:
    """So many threads, divided among dimensions that take so many steps: so that each thread has
    the fewest, and of these with the most threads along the lanes, where they read whole lines."""
    rest = sorted((k for k in steps if k != lane), reverse=True)
    found: list[dict[int, int]] = []
    own = most = min(threads, power_above(steps[lane]))
    while own >= min(_LINE, most):
        left = threads // own
        found.append({lane: own})
        for k in rest:
            found[-1][k] = min(left, power_above(steps[k]))
            left //= found[-1][k]
        own //= 2
    return min(found, key=lambda shares: math.prod(-(-steps[k] // n) for k, n in shares.items()))
