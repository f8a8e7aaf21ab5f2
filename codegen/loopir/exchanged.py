"""16-bit results of tensor cores: pairs of threads exchange them before they are stored.

A thread has two neighbours of each 8 columns (``passes/gpu/mma_shape.py``), so that what a warp
stores at once would fill half of each sector, and the second cache takes each sector twice (a
product of float16 4096x4096x4096 takes 203 us instead of 221 so, on an H100). Of two times 8
columns, thread ``t`` of four stores four neighbours: even threads of the first ones, odd threads of
the second ones.
"""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.thread_body import ThreadBody
from tcl.grammar.sizes.varying import provably_divides, provably_equal

BYTES = 8
"""That a thread stores at once."""
APART = 6
"""Elements from a thread's first ones to those that it stores, for odd threads."""


def exchanged(body: ThreadBody) -> ir.Fold | None:
    """The registers along columns of which two are stored at once, if the results of these loops
    are exchanged."""
    geometry, loops = body.geometry, body.loops
    store = body.statements[0] if len(body.statements) == 1 else None
    if body.guarded or not isinstance(store, ir.Store) or not loops:
        return None
    lane, tensor = loops[-1].fold, geometry.program.tensor(store.ref.tensor)
    kept = [x.fold for x in loops if x.fold.dim == lane.dim and x.fold.level == "register"]
    halves = any(x.fold.level == "half" for x in loops)
    if not halves or not kept or kept[0].count % 2 or not store.ref.is_affine or tensor.shared:
        return None
    layout, place = tensor.layout, tensor.layout.place(store.ref)
    if layout.itemsize * lane.count * 2 != BYTES or layout.base % BYTES:
        return None
    if not provably_equal(geometry.stride(place, lane), layout.itemsize):
        return None
    own = (lane.name, f"{lane.dim}.thread")
    steps = [s for f, s in geometry.strides(place) if f.name not in own]
    whole = all(provably_divides(BYTES, s) for s in (*steps, geometry.value_at_start(place)))
    return kept[0] if whole else None
