"""What a thread reads of operands before it computes: registers, filled in vectors where memory
allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.cuda.emit.scope import CudaScope, Geometry
from tcl.codegen.cuda.emit.writer import Writer, iteration
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, values_in
from tcl.grammar.sizes.varying import provably_equal


@dataclass(frozen=True, slots=True)
class LoadedFragment:
    """An operand, as it is read in some unrolled loops and lanes."""

    load: ir.Load
    over: tuple[ir.Fold, ...]
    """The folds that it depends on, ``along`` last."""
    along: ir.Fold | None
    """The one in which ``width`` elements are read at once."""
    width: int
    guarded: tuple[str, ...]
    """Dimensions whose points have to be there; elsewhere it is zero."""

    def read(self, writer: Writer, scope: CudaScope) -> str:
        """Reads it; the variable that has it then."""
        ref, memory, lines = self.load.ref, writer.memory, writer.lines
        name = writer.names.new(f"{memory.name(ref.tensor).removesuffix('_tile')}_read")
        sizes = "".join(f"[{f.count}]" for f in self.over)
        type_ = memory.element_type(ref.tensor)
        lines.add(f"{type_} {name}{sizes};")
        moved = [f for f in self.over if f != self.along]
        with writer.unrolled(moved, scope) as inner:
            to = name + "".join(f"[{iteration(f, inner)}]" for f in moved)
            if self.along is None:
                test, element = memory.bounds_test(self.guarded, inner), memory.element(ref, inner)
                lines.add(f"{to} = {f'{test} ? {element} : ({type_})0' if test else element};")
                return name
            writer.used.add("load")
            for k in range(0, self.along.count, self.width):
                at = inner.with_fold(self.along, str(k))
                test = memory.bounds_test(self.guarded, at)
                parts = [f"{to} + {k}" if k else to, memory.pointer(ref, at), *filter(None, [test])]
                lines.add(f"load<{self.width}>({', '.join(parts)});")
        return name

    def register_of(self, variable: str, scope: CudaScope) -> str:
        """The register of an element, of what was read to a variable."""
        return variable + "".join(f"[{iteration(f, scope)}]" for f in self.over)


def hoistable(load: ir.Load) -> bool:
    """Whether an element can be read before it is known that it is needed."""
    return load.total and all(isinstance(s, ir.Affine) for s in load.ref.subscripts)


def fragments(
    geometry: Geometry, loops: Sequence[ir.Loop], body: Sequence[ir.Statement]
) -> list[LoadedFragment]:
    """What can be read before unrolled loops and lanes around a body."""
    if not loops:
        return []
    values = (v for statement in body for v in values_in(statement))
    found = {x.ref: x for v in values for x in loads(v) if hoistable(x)}
    return [_fragment(geometry, load, loops) for load in found.values()]


def _fragment(geometry: Geometry, load: ir.Load, loops: Sequence[ir.Loop]) -> LoadedFragment:
    tensor = geometry.program.tensor(load.ref.tensor)
    place = tensor.layout.place(load.ref)
    over = [x.fold for x in loops if not provably_equal(geometry.stride(place, x.fold), 0)]
    widths = {f: geometry.width(tensor.layout, place, f) for f in over}
    along = max(over, key=lambda f: widths[f], default=None)
    if along is None or widths[along] == 1:
        along = None
    else:
        over.sort(key=lambda f: f == along)
    dims = {f.dim for f, _ in geometry.strides(place)}
    guarded = [d for d in geometry.dims if d in dims and geometry.ragged[d] and not tensor.shared]
    width = 1 if along is None else widths[along]
    return LoadedFragment(load, tuple(over), along, width, tuple(guarded))
