"""Reads of fragments as C++."""

from __future__ import annotations

from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.cuda.emit.writer import Writer, iteration
from tcl.codegen.loopir.fragments import Fragment


def read_fragment(fragment: Fragment, writer: Writer, scope: CudaScope) -> str:
    """Reads it; the variable that has it then."""
    ref, memory, lines = fragment.load.ref, writer.memory, writer.lines
    name = writer.names.new(f"{memory.name(ref.tensor).removesuffix('_tile')}_read")
    sizes = "".join(f"[{f.count}]" for f in fragment.over)
    type_ = memory.element_type(ref.tensor)
    lines.add(f"{type_} {name}{sizes};")
    moved = [f for f in fragment.over if f != fragment.along]
    with writer.unrolled(moved, scope) as inner:
        to = name + "".join(f"[{iteration(f, inner)}]" for f in moved)
        if fragment.along is None:
            test, element = memory.bounds_test(fragment.guarded, inner), memory.element(ref, inner)
            lines.add(f"{to} = {f'{test} ? {element} : ({type_})0' if test else element};")
            return name
        writer.used.add("load")
        for k in range(0, fragment.along.count, fragment.width):
            at = inner.with_fold(fragment.along, str(k))
            test = memory.bounds_test(fragment.guarded, at)
            parts = [f"{to} + {k}" if k else to, memory.pointer(ref, at), *filter(None, [test])]
            lines.add(f"load<{fragment.width}>({', '.join(parts)});")
    return name


def register_of(fragment: Fragment, variable: str, scope: CudaScope) -> str:
    """The register of an element, of what was read to a variable."""
    return variable + "".join(f"[{iteration(f, scope)}]" for f in fragment.over)
