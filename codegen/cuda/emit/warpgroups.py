"""Tensor cores of sm_90: what a warpgroup multiplies at once, both factors in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.common.warps import (
    MMA_COLUMNS,
    MMA_DEPTH,
    SLAB,
    SLAB_TURN,
    WARPGROUP,
    WARPGROUP_DEPTH,
)
from tcl.codegen.cuda.emit.writer import Writer
from tcl.codegen.devices.banks import VECTOR
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import mma_type
from tcl.grammar.syntax.types import BFLOAT16

_SLAB_BYTES = WARPGROUP_DEPTH * SLAB
"""Of 64 rows: what a warpgroup reads of a factor with 64 rows or columns."""


@dataclass(frozen=True, slots=True)
class Warpgroups:
    """Writes the innermost part of a product: where both factors are, then the instructions."""

    writer: Writer
    accumulate: ir.Accumulate
    depth: ir.Fold
    factors: tuple[ir.Load, ir.Load]
    """The one that has the rows, and the one that has the columns."""

    def write(self) -> None:
        """Begins the products, and waits until they are done, or only the earlier ones are."""
        writer, lines = self.writer, self.writer.lines
        own = writer.accumulators[self.accumulate.name]
        columns = MMA_COLUMNS * next(f.count for f in own.over if f.level == "register")
        type_ = mma_type(self.accumulate.value)
        kind = "bf16" if type_ == BFLOAT16 else "f16"
        name = f"wgmma_m64n{columns}k{MMA_DEPTH}_{kind}"
        writer.used |= {name, "begin_products", "commit_products", "panel_part"}
        parts = [self._part(load, k == 0) for k, load in enumerate(self.factors)]
        lines.add("begin_products();")
        lines.add("#pragma unroll", margin=True)
        with lines.block(f"for (int k = 0; k < {WARPGROUP_DEPTH // MMA_DEPTH}; ++k) {{"):
            places = ", ".join(f"{part} + {step} * k" for part, step, _ in parts)
            turned = ", ".join(str(int(across)) for *_, across in parts)
            sums = f"(float (&)[{columns // 2}]){own.name}"
            lines.add(f"{name}<{turned}>({sums}, {places});")
        lines.add("commit_products();")
        wait = "end_products" if writer.unfinished is None else "wait_for_earlier_products"
        writer.used |= {wait, "end_products"}
        if writer.unfinished is None:
            lines.add(f"end_products({sums});")
        else:
            lines.add("wait_for_earlier_products();")
            writer.unfinished = sums

    def _part(self, load: ir.Load, by_row: bool) -> tuple[str, int, bool]:
        """The variable that says where a factor is, what leads to its next points, and whether its
        rows go across the reduction."""
        writer, memory = self.writer, self.writer.memory
        layout, panel = memory.layout(load.ref), memory.name(load.ref.tensor)
        across = layout.step(load.ref, self.depth.name) != 1
        name = writer.names.new(f"{panel.removesuffix('_tile')}_part")
        at = [x for x in (memory.buffer.get(load.ref.tensor, "0"),) if x != "0"]
        if by_row and layout.bytes > _SLAB_BYTES:
            at.append(f"threadIdx.x / {WARPGROUP} * {_SLAB_BYTES // layout.itemsize}")
        bytes_ = f"{_SLAB_BYTES}, {SLAB_TURN}"
        text = f"panel_part<{bytes_}>(&{panel}[{' + '.join(at) or '0'}])"
        writer.lines.add(f"const unsigned long long {name} = {text};")
        step = MMA_DEPTH * (SLAB if across else layout.itemsize) // VECTOR
        return name, step, across
