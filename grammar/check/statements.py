"""The checks of one assignment."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from tcl.common.closest import closest
from tcl.common.number_format import plural
from tcl.grammar.check import literals
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.expressions import ExprChecker
from tcl.grammar.check.places import check_places, computed, element
from tcl.grammar.check.scope import DefScope, dims_of, missing_comma
from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.printer import expr_text
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree import traverse
from tcl.grammar.tree.size_expressions import no_size
from tcl.grammar.tree.traverse import reads


def check_assign(
    statement: ast.Assign, scope: DefScope, declared: ast.TensorType | None
) -> tuple[c.Statement, c.Tensor] | None:
    """The checked statement and its target, as it defines that, or None after noting what is wrong.

    ``declared`` is the target's type, if the def declares one.
    """
    before = len(scope.problems)
    if _is_local(statement, scope):
        _refuse_local(statement, scope)
        return None
    _check_target(statement, scope, declared)
    bound = {clause.name for clause in statement.where if isinstance(clause, ast.Let)}
    indices = _output_indices(statement, scope, bound)
    ranged = _ranged(statement, scope)
    checker = ExprChecker(
        scope, frozenset(indices) | ranged, frozenset(_usable(statement)), writing=statement
    )

    lets: list[c.Let] = []
    exists: list[c.Expr] = []
    for clause in statement.where:
        if isinstance(clause, ast.Let):
            _let(clause, checker, lets)
    ranges = _ranges(statement, checker, lets)
    subscripts = [checker.subscript(i) for i in computed(statement, bound)]
    rhs = checker.typed(statement.rhs)
    checker.writing = None
    for clause in statement.where:
        if isinstance(clause, ast.Exists) and (value := checker.typed(clause.value)) is not None:
            exists.append(literals.settle(value))
    if statement.equivalent is not None:
        for argument in statement.equivalent.arguments:
            # A whole tensor by its name: only this note may use it.
            if not (isinstance(argument, ast.Name) and scope.is_tensor(argument.name)):
                checker.typed(argument)

    seen = [*checker.indices, *(r.index for r in ranges if r.index in ranged)]
    reduction = tuple(n for n in dict.fromkeys(seen) if n not in indices)
    if rhs is not None and len(indices) == len(statement.indices):
        _check_operator(statement, reduction, checker)
    if rhs is None or len(scope.problems) > before:
        return None
    places = [s for s in subscripts if s is not None]
    type_ = _target_type(statement, rhs, scope, declared)
    if places:
        check_places(statement, places, lets, declared, scope, type_)
    if type_ is None:
        return None
    op, initialise = statement.op.removesuffix("!").removesuffix("="), statement.op.endswith("!")
    result = c.Statement(
        target=statement.target,
        indices=tuple(indices),
        op=op or "=",
        initialise=initialise,
        rhs=literals.converted(rhs, type_),
        reduction=reduction,
        ranges=tuple(ranges),
        lets=tuple(lets),
        exists=tuple(exists),
        span=statement.span,
        place=element(statement, indices, places, type_) if places else None,
    )
    _check_in_place(result, scope)
    dims = None if declared is None else dims_of(declared)
    tensor = c.Tensor(
        statement.target, type_, len(result.axes), dims, False, scope.outputs[statement.target]
    )
    return None if len(scope.problems) > before else (result, tensor)


def _is_local(statement: ast.Assign, scope: DefScope) -> bool:
    """Whether a statement gives a value to a name of its own, as other languages do."""
    name = statement.target
    plain = not statement.indices and statement.op == "="
    return plain and not scope.is_tensor(name) and name not in BUILTINS


def _refuse_local(statement: ast.Assign, scope: DefScope) -> None:
    name = statement.target
    listed = ", ".join([*scope.outputs, name])
    message = f"'{name}' is neither an input nor an output; bind it in each statement that uses it"
    message += f", as in O(i) = {name} * {name} where {name} = A(i)"
    if scope.after_where(name):
        message = missing_comma(name)
    message += f"; or add it to the outputs: -> ({listed})"
    scope.refuse(statement.target_span, message, Section.WHERE)


def _check_target(statement: ast.Assign, scope: DefScope, declared: ast.TensorType | None) -> None:
    name, span = statement.target, statement.target_span
    if name in scope.inputs:
        scope.refuse(
            span,
            f"'{name}' is an input, and inputs are immutable; assign to an output of another name, "
            f"such as {name}2",
            Section.STATEMENTS,
        )
        return
    if name not in scope.outputs:
        if name in BUILTINS:
            message = f"'{name}' is a built-in function and cannot be assigned"
        else:
            near = closest(name, scope.outputs)
            message = (
                f"'{name}' is neither an input nor an output; "
                f"{f'write {near!r}, or ' if near else ''}"
                f"add it to the outputs: -> ({', '.join([*scope.outputs, name])})"
            )
        scope.refuse(span, message, Section.STATEMENTS)
        return
    known = scope.written.get(name)
    rank = len(declared.dims) if declared is not None else known.rank if known else None
    if rank is not None and rank != len(statement.indices):
        origin = "is declared with" if declared is not None else "has"
        message = (
            f"'{name}' {origin} {plural(rank, 'dimension')} "
            f"but is assigned with {len(statement.indices)}"
        )
        if declared is not None and not rank:  # a type alone is that of a scalar
            typed = f"{declared.scalar}(...) {name}"
            message += f"; write its sizes too, as in {typed}, new names for those of no input, "
            message += "or leave the type out"
        scope.refuse(span, message, Section.STATEMENTS)


def _output_indices(statement: ast.Assign, scope: DefScope, bound: Container[str]) -> list[str]:
    """The indices that stand on the left by themselves. ``bound``: names of values."""
    names: list[str] = []
    for index in statement.indices:
        if not isinstance(index, ast.Name) or index.name in bound:
            continue
        taken = scope.what_is(index.name)
        if taken is not None:
            scope.refuse(
                index.span,
                f"'{index.name}' is {taken} and cannot be an index; {_instead(index.name, scope)}",
                Section.STATEMENTS,
            )
        elif index.name in names:
            scope.refuse(
                index.span,
                f"the index '{index.name}' appears twice on the left; use two names",
                Section.STATEMENTS,
            )
        else:
            names.append(index.name)
    return names


def _instead(name: str, scope: DefScope) -> str:
    """What to write in place of a name that stands for something else than an index."""
    tensor = scope.inputs.get(name) or scope.written.get(name)
    if tensor is None or not tensor.rank or not tensor.type.is_integral:
        return "rename the index"
    element = f"{name}({', '.join('ijkl'[: tensor.rank])})"
    return f"write {element} to reduce into the element that it selects, or rename the index"


def _ranged(statement: ast.Assign, scope: DefScope) -> frozenset[str]:
    """The indices that where clauses give a range."""
    names: set[str] = set()
    for clause in statement.where:
        if not isinstance(clause, ast.Range):
            continue
        taken = scope.what_is(clause.index)
        if taken is not None:
            scope.refuse(
                clause.span,
                f"'{clause.index}' is {taken}; only an index can have a range",
                Section.WHERE,
            )
        elif clause.index in names:
            scope.refuse(clause.span, f"'{clause.index}' has two ranges; keep one", Section.WHERE)
        else:
            names.add(clause.index)
    return frozenset(names)


def _ranges(statement: ast.Assign, checker: ExprChecker, lets: list[c.Let]) -> list[c.Range]:
    """The explicit ranges. Their bounds may use every name that the statement binds to sizes."""
    culprits: dict[str, c.Expr] = {}
    for let in lets:
        if found := no_size(let.value, culprits):
            culprits[let.name] = found[1]
    # Of its own: an index that a range uses, which is refused, is not reduced over as well.
    sizes = replace(checker, in_range=True, indices={})
    ranges: list[c.Range] = []
    for clause in statement.where:
        if isinstance(clause, ast.Range):
            start = _bound(clause, clause.start, sizes, culprits)
            stop = _bound(clause, clause.stop, sizes, culprits)
            if start is not None and stop is not None:
                ranges.append(c.Range(clause.index, start, stop, clause.span))
    return ranges


def _bound(
    clause: ast.Range, expr: ast.Expr, checker: ExprChecker, culprits: Mapping[str, c.Expr]
) -> c.Expr | None:
    """The start or the end of a range: a size expression."""
    value = checker.typed(expr)
    if value is None:
        return None
    found = no_size(value, culprits)
    if found is None:
        which = "start" if expr is clause.start else "end"
        return checker.as_integer(value, f"the {which} of a range")
    place, culprit = found
    remedy = f"give '{clause.index}' all values that it may have, and guard with ? :"
    match culprit:
        case c.Index(name=name):
            why = f"uses the index '{name}'"
        case c.Read(tensor=name):
            why = f"reads '{name}'"
        case _:
            why = f"uses a {culprit.type}"
            remedy = "compute in integers, as in N * 3 / 2"
    through = f"uses '{place.name}', which " if isinstance(place, c.LetRef) else ""
    checker.scope.refuse(
        place.span,
        f"the range of '{clause.index}' {through}{why}, but ranges may use only sizes and whole "
        f"numbers; {remedy}",
        Section.WHERE,
    )
    return None


def _usable(statement: ast.Assign) -> Iterator[str]:
    """Names inside subscripts, those on the left included: an unknown one there is an index,
    elsewhere it is a mistake."""
    for index in statement.indices:
        yield from (n.name for n in walk.walk(index) if isinstance(n, ast.Name))
    for expr in walk.expressions(statement):
        for node in walk.walk(expr):
            if isinstance(node, ast.Apply) and node.name not in BUILTINS:
                for argument in node.arguments:
                    for inner in walk.walk(argument):
                        if isinstance(inner, ast.Name):
                            yield inner.name


def _let(clause: ast.Let, checker: ExprChecker, lets: list[c.Let]) -> None:
    scope = checker.scope
    taken = scope.what_is(clause.name)
    if clause.name in checker.bound or clause.name in checker.indices:
        taken = "an index"
    elif clause.name in checker.lets:
        taken = "bound already"
    if taken is not None:
        scope.refuse(
            clause.span, f"'{clause.name}' is {taken}; choose another name to bind", Section.WHERE
        )
    value = checker.typed(clause.value)
    if taken is None and clause.name in checker.indices:
        scope.refuse(
            clause.span,
            f"'{clause.name}' is an index of its own value; choose another name to bind",
            Section.WHERE,
        )
    value = None if value is None else literals.settle(value)
    checker.lets[clause.name] = None if value is None else value.type
    if value is not None:
        lets.append(c.Let(clause.name, value))


def _check_operator(
    statement: ast.Assign, reduction: tuple[str, ...], checker: ExprChecker
) -> None:
    if not reduction or statement.op != "=":
        return
    ranges = {clause.index: clause for clause in statement.where if isinstance(clause, ast.Range)}
    unused = [n for n in reduction if n not in checker.indices]
    if unused:
        checker.scope.refuse(
            ranges[unused[0]].span,
            f"'{unused[0]}' is used nowhere but in its range; leave it out, or use a reduction "
            "such as +=! instead of =",
            Section.REDUCTIONS,
        )
        return
    names = ", ".join(f"'{n}'" for n in reduction)
    checker.scope.refuse(
        statement.op_span,
        f"{names} {'appears' if len(reduction) == 1 else 'appear'} only on the right, which "
        "means a reduction; use a reduction such as +=! instead of =, or put the index on the left",
        Section.REDUCTIONS,
    )


def _target_type(
    statement: ast.Assign, rhs: c.Expr, scope: DefScope, declared: ast.TensorType | None
) -> ScalarType | None:
    """The target's element type: declared, or decided by its first assignment."""
    known = scope.written.get(statement.target)
    value = t.arithmetic(rhs.type) if statement.op[0] in "+*" else rhs.type
    if declared is not None:
        type_, origin = t.scalar_type(declared.scalar), "declared"
    elif known is not None:
        type_, origin = known.type, "of type"
    elif value.weak:
        return literals.settle(rhs).type
    else:
        return value
    bad = not t.assignable(value, type_)
    if not bad and rhs.type.weak and type_.is_integral:
        bad = not literals.fits(rhs, type_)
    if bad:
        shown = literals.settle(rhs).type if value.weak else value
        first = _first_literal(statement.target, scope)
        if declared is None and first is not None and first is not statement.rhs:
            text = expr_text(first)
            better = f"{text}.0" if (type_, shown) == (t.INT32, t.FLOAT32) else f"{shown}({text})"
            scope.refuse(
                first.span,
                f"this makes '{statement.target}' {type_}, narrower than the {shown} assigned to "
                f"it in line {statement.span.line}; write {better}, or declare its type and sizes",
                Section.TYPES,
            )
            return None
        scope.refuse(
            statement.rhs.span,
            f"'{statement.target}' is {origin} {type_}, narrower than the {shown} assigned to it; "
            f"{_wider_sum(statement.target, type_, shown, scope)}"
            f"{_narrowed(statement, rhs, type_)}",
            Section.TYPES,
        )
        return None
    return type_


def _first_literal(target: str, scope: DefScope) -> ast.Expr | None:
    """The number that an output is assigned first, if it is one."""
    first = next(s for s in scope.statements if target in walk.targets(s))
    value = first.rhs if isinstance(first, ast.Assign) else None
    number = value.operand if isinstance(value, ast.Unary) else value
    return value if isinstance(number, ast.Number) else None


def _wider_sum(target: str, own: ScalarType, to: ScalarType, scope: DefScope) -> str:
    """What to write where a sum gave the target its type. It wraps, or is rounded, in that type,
    which a cast of what is made of it cannot mend."""
    if target not in scope.sums or not (to.is_float or to.holds(own)):
        return ""
    line = next(s for s in scope.statements if target in walk.targets(s)).span.line
    return f"write {scope.sums[target](to)} in line {line}, which gives it its type, or "


def _narrowed(statement: ast.Assign, rhs: c.Expr, to: ScalarType) -> str:
    """What to do about a value of a wider type: of a float that is reduced, not a cast of it all,
    which would round each term."""
    wide = [n.span for n in traverse.walk(rhs) if isinstance(n, c.Read) and n.type == rhs.type]
    found = [node for node in walk.walk(statement.rhs) if node.span in wide]
    if statement.op == "=" or not (to.is_float and found):
        return f"cast the value: {to}(...)"
    part = expr_text(found[0])
    return (
        f"cast what is {rhs.type}, {to}({part}), or reduce into a {rhs.type} output and cast that "
        f"in a second statement; {to}(...) of the whole value would round each term"
    )


def _check_in_place(statement: c.Statement, scope: DefScope) -> None:
    """Reading the target is fine at the very element being written, unless that is reduced into.
    At no other one it is: ``ExprChecker`` says so."""
    for read in reads(statement):
        if read.tensor != statement.target:
            continue
        if statement.initialise:
            why = f"but {statement.op}=! clears it first; use = or a second output"
        elif statement.reduction or statement.place is not None:
            why = "while it is being reduced into; use a second output"
        else:
            continue
        scope.refuse(read.span, f"'{statement.target}' is read {why}", Section.STATEMENTS)
