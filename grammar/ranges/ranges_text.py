"""Ranges, shapes and first indices of a sized definition, as people read them."""

from __future__ import annotations

from tcl.common.number_format import plural
from tcl.grammar.ranges.sized import Limit, SizedDef, SizedStatement
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.source import Source
from tcl.grammar.tree.checked import Tensor


def ranges_text(sized: SizedDef) -> str:
    """Each tensor with its shape and first index; each statement with the range of every index,
    and where that comes from."""
    checked = sized.checked
    sizes = [f"{name}={value}" for name, value in sized.sizes.items() if "#" not in name]
    lines = [" ".join([checked.name, *sizes])]
    lines += [f"  {_tensor(sized, t)}" for t in checked.inputs]
    lines += output_lines(sized)
    for statement in sized.statements:
        lines += [
            "",
            checked.source.one_line(statement.statement.span),
            *_indices(sized, statement),
        ]
    return "\n".join(lines)


def output_lines(sized: SizedDef) -> list[str]:
    """Each output with its shape and first index."""
    lines = []
    for tensor in sized.checked.outputs:
        origin = sized.origins[tensor.name]
        first = f"first index {origin[0] if len(origin) == 1 else origin}"
        lines.append(f"  {_tensor(sized, tensor)}, {first if origin else 'one element'}")
    return lines


def _tensor(sized: SizedDef, tensor: Tensor) -> str:
    shape = ", ".join(map(str, sized.shapes[tensor.name]))
    return f"{tensor.name}: {tensor.type}({shape})" if shape else f"{tensor.name}: {tensor.type}"


def _indices(sized: SizedDef, statement: SizedStatement) -> list[str]:
    rows = []
    for index, (first, stop) in statement.ranges.items():
        extent = stop - first
        symbolic = isinstance(extent, Size)
        count = f"{extent} values" if symbolic else plural(extent, "value")
        reduced = "reduced over" if index in statement.statement.reduction else ""
        rows.append((index, f"{first}:{stop}", count, reduced, _why(sized, statement, index)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True) if w).rstrip()
        for row in rows
    ]


def _why(sized: SizedDef, statement: SizedStatement, index: str) -> str:
    """What gave an index its range."""
    source = sized.checked.source
    for clause in statement.statement.ranges:
        if clause.index == index:
            start, stop = (source.one_line(e.span) for e in (clause.start, clause.stop))
            return f"where {index} in {start}:{stop}"
    low, high = (_limit(source, limit) for limit in statement.limits[index])
    return low if low == high else f"first: {low}; last: {high}"


def _limit(source: Source, limit: Limit) -> str:
    match limit.how:
        case "read":
            return source.one_line(limit.span)
        case "exists":
            return f"exists {source.one_line(limit.span)}"
        case "written":
            return f"{limit.tensor} as it was made before"
        case "declared":
            return f"{limit.tensor} as it is declared"
