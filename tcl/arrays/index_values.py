"""Values of index tensors that lead to no element that is not there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tcl.grammar.ranges.accesses import accesses
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.linear import NO_FACTS, Analysis, Linear
from tcl.grammar.tree.checked import Binary, CheckedDef, Read, Unary
from tcl.grammar.tree.traverse import evaluated, walk


class _Small(Analysis):
    """Linear forms of arithmetic on values that are too small to wrap."""

    def _exact(self, expr: Unary | Binary, form: Linear) -> Linear:
        return form


def index_tensors(checked: CheckedDef) -> tuple[str, ...]:
    """The integer inputs that are read inside subscripts; all of them, if none is seen there."""
    whole = [t.name for t in checked.inputs if t.type.is_integral]
    found = {
        node.tensor
        for statement in checked.statements
        for expr in evaluated(statement)
        for read in walk(expr)
        if isinstance(read, Read)
        for subscript in read.subscripts
        for node in walk(subscript)
        if isinstance(node, Read)
    }
    return tuple(n for n in whole if n in found) or tuple(whole)


def fitting(
    checked: CheckedDef, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, int]]:
    """Input → the least and the largest of its values with which no subscript leaves its tensor,
    for those that subscripts use affinely (``5 * Column(r, s) + k``) and under no condition, and
    where there is such a value. For these shapes of the inputs; raises what ``infer`` raises."""
    found: dict[str, tuple[int, int]] = {}
    inputs = {t.name for t in checked.inputs}
    for name, low, high in _uses(checked, shapes):
        if name in inputs:
            least, most = found.get(name, (low, high))
            found[name] = max(least, low), min(most, high)
    return {name: (low, high) for name, (low, high) in found.items() if low <= high}


def _uses(
    checked: CheckedDef, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, int, int]]:
    """Tensor, and the values that one subscript allows it."""
    sized = infer(checked, shapes)
    for each in sized.statements:
        lets = {let.name: let.value for let in each.statement.lets}
        analysis = _Small(sized.sizes, sized.shapes, lets)
        for index, (first, stop) in each.ranges.items():
            analysis.resolve(index, (first, stop - 1))
        for access in accesses(each.statement, analysis):
            reads = [a for a in access.form.terms if isinstance(a, Read)]
            if len(reads) != 1 or access.facts is not NO_FACTS or not access.evaluated:
                continue
            (read,) = reads
            factor = access.form.terms[read]
            rest = access.form.plus(Linear({read: factor}), -1)
            low, high = analysis.bounds(rest)
            if not rest.is_affine or not (math.isfinite(low) and math.isfinite(high)):
                continue
            first = sized.origins[access.read.tensor][access.axis]
            last = first + sized.shapes[access.read.tensor][access.axis] - 1
            ends = (first - int(low), last - int(high))
            least, most = ends if factor > 0 else (-ends[1], -ends[0])
            yield read.tensor, -(-least // abs(factor)), most // abs(factor)
