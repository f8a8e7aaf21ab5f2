"""Index arithmetic used as a value is int32. For sizes that make it wrap, say so.

In a subscript the same arithmetic is exact, and nothing needs to be said.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcl.grammar.ranges.intervals import Bounds, product
from tcl.grammar.ranges.linear import Analysis
from tcl.grammar.sizes.varying import largest, smallest
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.types import INDEX
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import children, evaluated, is_index_arithmetic


def overflows(statement: c.Statement, analysis: Analysis) -> Iterator[Diagnostic]:
    """A problem for each largest expression of indices and sizes whose values leave int32."""
    for expr in evaluated(statement):
        yield from _overflows_below(expr, analysis)


def _overflows_below(expr: c.Expr, analysis: Analysis) -> Iterator[Diagnostic]:
    if is_index_arithmetic(expr):
        low, high = _bounds(expr, analysis)
        least, most = INDEX.limits
        if low < least or high > most:
            yield Diagnostic(
                f"this index arithmetic takes values from {low} to {high} for these sizes, "
                f"which {INDEX} cannot hold; convert its parts to float first",
                expr.span,
                section=Section.ARITHMETIC,
            )
        return
    if isinstance(expr, c.Read):  # subscripts are exact, but may contain reads
        for read in _outermost_reads(expr.subscripts):
            yield from _overflows_below(read, analysis)
        return
    for child in children(expr):
        yield from _overflows_below(child, analysis)


def _outermost_reads(exprs: tuple[c.Expr, ...]) -> Iterator[c.Read]:
    stack = list(reversed(exprs))
    while stack:
        expr = stack.pop()
        if isinstance(expr, c.Read):
            yield expr
        else:
            stack.extend(reversed(children(expr)))


def _bounds(expr: c.Expr, analysis: Analysis) -> Bounds:
    """Bounds over everything that is computed on the way: intermediate results wrap, too."""
    form = analysis.linear(expr)
    if isinstance(expr, c.Binary) and expr.op == "*" and not form.is_affine:
        found = product(_bounds(expr.left, analysis), _bounds(expr.right, analysis))
    else:
        found = analysis.bounds(form)
    inner = [_bounds(child, analysis) for child in children(expr)]
    low = smallest(found[0], *(b[0] for b in inner))
    return low, largest(found[1], *(b[1] for b in inner))
