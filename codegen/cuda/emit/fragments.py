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
    sizes += f"[{fragment.length}]" if fragment.row else ""
    type_ = memory.element_type(ref.tensor)
    lines.add(f"{type_} {name}{sizes};")
    with writer.unrolled(fragment.over, scope) as inner:
        to = name + "".join(f"[{iteration(f, inner)}]" for f in fragment.over)
        if not fragment.row:
            test, element = memory.bounds_test(fragment.guarded, inner), memory.element(ref, inner)
            lines.add(f"{to} = {f'{test} ? {element} : ({type_})0' if test else element};")
            return name
        for fold, _ in fragment.row:
            inner = inner.with_fold(fold, "0")
        for first, width in fragment.pieces():
            at = inner.with_fold(fragment.row[0][0], str(first))
            test = memory.bounds_test(fragment.guarded, at)
            if width == 1:
                element = memory.element(ref, at)
                lines.add(
                    f"{to}[{first}] = {f'{test} ? {element} : ({type_})0' if test else element};"
                )
                continue
            writer.used.add("load")
            parts = [f"{to} + {first}" if first else to, memory.pointer(ref, at)]
            lines.add(f"load<{width}>({', '.join([*parts, *filter(None, [test])])});")
    return name


def register_of(fragment: Fragment, variable: str, scope: CudaScope) -> str:
    """The register of an element, of what was read to a variable."""
    numbers = [iteration(f, scope) for f in fragment.over]
    steps = ((iteration(f, scope), step) for f, step in fragment.row)
    along = [n if step == 1 else f"{n} * {step}" for n, step in steps if n != "0"]
    if fragment.row:
        numbers.append(" + ".join(along) or "0")
    return variable + "".join(f"[{n}]" for n in numbers)
