"""One statement as one Python function: loops over its output points, or over some of them, an
accumulator, loops over its reduction points, one store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tcl.codegen.common.sums import TERMS
from tcl.codegen.reference.blocks import INDENT, AssignLine, Branch, PythonNames, render_source
from tcl.codegen.reference.expressions import (
    CheckedSite,
    Emitter,
    ExpressionCode,
    arithmetic,
    identity_value,
    literal,
    loaded,
    shifted,
    stored,
)
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.syntax.types import FLOAT64
from tcl.grammar.tree.checked import LetRef, Read, Statement
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import computed, reads, walk

_PART = f"""\
terms += 1
if terms == {TERMS}:
{INDENT}part = acc - lost
{INDENT}after = total + part
{INDENT}off = after - total - part
{INDENT}lost = off if off - off == {{zero}} else {{zero}}
{INDENT}total, acc, terms = after, {{zero}}, 0"""
"""What comes after each point of a long sum of floats: see ``tcl.codegen.common.sums``."""
_LOOPS = 8
"""Loops of one kind nested in each other; Python allows 20 of all kinds."""


@dataclass(frozen=True, slots=True)
class StatementFunction:
    name: str
    text: str
    """A ``def`` with the parameters ``tensors``, ``points`` where only these are computed, and
    ``error``."""
    tensors: tuple[str, ...]
    sites: tuple[CheckedSite, ...]


def emit_statement(
    sized: SizedDef,
    sized_statement: SizedStatement,
    name: str,
    *,
    readable: bool,
    unchecked: bool,
    sampled: bool = False,
) -> StatementFunction:
    """The function ``name`` that runs one statement on the arrays of its tensors. ``sampled``: it
    takes the points to compute, a row of index values each, in the order of the target's
    dimensions."""
    statement = sized_statement.statement
    names = PythonNames(readable)
    emitter = Emitter(sized, sized_statement, names, unchecked)
    if statement.place is not None:
        lines = _scattered(sized, sized_statement, statement.place, emitter)
        return _function(name, lines, emitter, ["error"])
    target = sized.checked.tensors[statement.target]
    shape = ", ".join(
        shifted(ExpressionCode(names.index(index)), origin).text
        for index, origin in zip(statement.indices, sized.origins[target.name], strict=True)
    )
    element = f"{names.tensor(target.name)}[{shape or '()'}]"
    if sampled:
        lines, depth = _over_points(statement.indices, names)
    else:
        lines, depth = _loops(statement.indices, sized_statement, names, 1, "p")
    if statement.op == "=":
        result = _evaluate(statement, emitter)
        lines += render_source(emitter.block, depth)
    else:
        start = identity_value(statement.op, target.type)
        if not statement.initialise:
            start = loaded(target.type).format(element)
        result = "acc"
        lines.append(f"{INDENT * depth}acc = {start}")
        points = prod(max(0, sized_statement.extent(index)) for index in statement.reduction)
        zero = literal(0, target.type)
        long = statement.op == "+" and target.type.is_float and points > TERMS
        if long:
            lines.append(f"{INDENT * depth}total, lost, terms = {zero}, {zero}, 0")
        inner, deeper = _loops(statement.reduction, sized_statement, names, depth, "q")
        value = _evaluate(statement, emitter)
        step = arithmetic(statement.op, target.type).format("acc", value)
        emitter.block.append(AssignLine("acc", step))
        lines += inner + render_source(emitter.block, deeper)
        if long:
            result = "(total + acc)"
            lines += [INDENT * deeper + line for line in _PART.format(zero=zero).splitlines()]
    lines.append(f"{INDENT * depth}{element} = {stored(target.type).format(result)}")
    return _function(name, lines, emitter, ["points", "error"] if sampled else ["error"])


def _function(
    name: str, lines: Sequence[str], emitter: Emitter, given: Sequence[str]
) -> StatementFunction:
    """The function of these lines, which takes the tensors that they name and what else is
    given."""
    names = emitter.names
    tensors = names.used_tensors()
    parameters = ", ".join([*(names.tensor(t) for t in tensors), *given])
    text = "\n".join([f"def {name}({parameters}):", *lines, ""])
    return StatementFunction(name, text, tensors, tuple(emitter.sites))


def _scattered(sized: SizedDef, of: SizedStatement, place: Read, emitter: Emitter) -> list[str]:
    """A scatter: point after point, in the order of the indices, each into its element. Sums and
    products of floats are held in float64 until all points are there."""
    statement, names = of.statement, emitter.names
    type_ = place.type
    wide = type_.is_float and statement.op in ("+", "*")
    held = FLOAT64 if wide else type_
    array = names.tensor(place.tensor)
    box = ", ".join(
        ":" if i is None else f"{of.ranges[i][0] - origin}:{max(of.ranges[i]) - origin}"
        for i, origin in zip(statement.axes, sized.origins[place.tensor], strict=True)
    )
    each = f"{INDENT}for e in ndindex(box.shape):"
    start = identity_value(statement.op, held)
    if not statement.initialise:
        start = loaded(type_).format("box[e]")
    lines = [
        f"{INDENT}acc = {f'doubles({array})' if wide else array}",
        f"{INDENT}box, part = {array}[{box}], acc[{box}]",
    ]
    if wide or statement.initialise:
        begun = f"float64({start})" if wide else stored(held).format(start)
        lines += [each, f"{INDENT * 2}part[e] = {begun}"]
    loops, depth = _loops(statement.indices, of, names, 1, "p")
    inner, depth = _loops(statement.reduction, of, names, depth, "q")
    _evaluate_lets(statement, emitter)
    outside = emitter.block
    condition, value = term(statement)
    if condition is not None:
        outside.append(AssignLine("counts", emitter.value(condition)))
        emitter.block = []
    element = f"acc[{emitter.place(place)}]"
    new = emitter.value(value)
    old = element if wide else loaded(held).format(element)
    step = arithmetic(statement.op, held).format(old, f"float64({new})" if wide else new)
    emitter.block.append(AssignLine(element, step if wide else stored(held).format(step)))
    if condition is not None:
        outside.append(Branch("counts", emitter.block, []))
    lines += [*loops, *inner, *render_source(outside, depth)]
    if wide:
        rounded = stored(type_).format(f"{type_.compute.name}(part[e])")
        lines += [each, f"{INDENT * 2}box[e] = {rounded}"]
    return lines


def emit_marks(
    sized: SizedDef, sized_statement: SizedStatement, tensors: Sequence[str]
) -> StatementFunction:
    """The function ``run`` that marks which elements of ``tensors`` a statement reads at some
    points: it takes an array of bools for each, the points, and ``error``, which it leaves alone.

    What is read on a condition is marked in any case, where it is an element. Subscripts may use
    indices, sizes and constants."""
    statement = sized_statement.statement
    names = PythonNames(readable=False)
    emitter = Emitter(sized, sized_statement, names, unchecked=True)
    lines, depth = _over_points(statement.indices, names)
    inner, depth = _loops(statement.reduction, sized_statement, names, depth, "q")
    lines += inner
    pad = INDENT * depth
    for number, read in enumerate(dict.fromkeys(r for r in reads(statement))):
        if read.tensor not in tensors:
            continue
        places, inside = [], []
        for axis, subscript in enumerate(read.subscripts):
            place = f"s{number}_{axis}"
            value = emitter.exact(subscript)
            lines += render_source(emitter.block, depth)
            emitter.block.clear()
            lines.append(f"{pad}{place} = {value} - {sized.origins[read.tensor][axis]}")
            inside.append(f"0 <= {place} < {sized.shapes[read.tensor][axis]}")
            places.append(place)
        marks = f"{names.tensor(read.tensor)}[{', '.join(places) or '()'}]"
        lines += [f"{pad}if {' and '.join(inside) or 'True'}:", f"{pad}{INDENT}{marks} = True"]
    found = names.used_tensors()
    parameters = ", ".join([*(names.tensor(t) for t in found), "points", "error"])
    return StatementFunction("run", "\n".join([f"def run({parameters}):", *lines, ""]), found, ())


def _over_points(indices: tuple[str, ...], names: PythonNames) -> tuple[list[str], int]:
    """The header of a loop over given points, and the depth of its body."""
    lines = [f"{INDENT}for n in range(points.shape[0]):"]
    lines += [f"{INDENT * 2}{names.index(i)} = points[n, {k}]" for k, i in enumerate(indices)]
    return lines, 2


def _evaluate(statement: Statement, emitter: Emitter) -> str:
    """The right-hand side's text, its lets and steps before it in the emitter's block."""
    _evaluate_lets(statement, emitter)
    return emitter.value(statement.rhs)


def _evaluate_lets(statement: Statement, emitter: Emitter) -> None:
    exact = _exact_lets(statement)
    for let in statement.lets:
        emitter.block.append(AssignLine(emitter.names.let(let.name), emitter.value(let.value)))
        if let.name in exact:
            name = emitter.names.exact_let(let.name)
            emitter.block.append(AssignLine(name, emitter.exact(let.value)))


def _loops(
    indices: tuple[str, ...],
    statement: SizedStatement,
    names: PythonNames,
    depth: int,
    counter: str,
) -> tuple[list[str], int]:
    """Loop headers from ``depth`` on, and the depth of their body. The indices of very many
    dimensions share one last loop, whose ``counter`` is taken apart."""
    lines: list[str] = []
    nested = indices if len(indices) <= _LOOPS else indices[: _LOOPS - 1]
    for index in nested:
        first, stop = statement.ranges[index]
        header = f"for {names.index(index)} in range({first}, {max(first, stop)}):"
        lines.append(INDENT * depth + header)
        depth += 1
    rest = indices[len(nested) :]
    if rest:
        extents = [max(0, statement.extent(index)) for index in rest]
        lines.append(f"{INDENT * depth}for {counter} in range({prod(extents)}):")
        depth += 1
        for k, index in enumerate(rest):
            # Without points the body never runs, but the divisors must not be 0 for Numba.
            stride, extent = max(1, prod(extents[k + 1 :])), max(1, extents[k])
            place = f"{counter} // {stride} % {extent} + {statement.ranges[index][0]}"
            lines.append(f"{INDENT * depth}{names.index(index)} = {place}")
    return lines, depth


def _exact_lets(statement: Statement) -> set[str]:
    """Integral lets that some subscript uses, directly or through another let."""
    integral = {let.name: let.value for let in statement.lets if let.value.type.is_integral}
    used: set[str] = set()
    pending = [subscript for read in reads(statement) for subscript in read.subscripts]
    pending += computed(statement)
    while pending:
        for node in walk(pending.pop()):
            if isinstance(node, LetRef) and node.name in integral and node.name not in used:
                used.add(node.name)
                pending.append(integral[node.name])
    return used
