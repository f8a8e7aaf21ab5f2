"""What stands on the left and is more than an index: the places that a scatter writes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from tcl.grammar.check.scope import DefScope, dims_of
from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax.printer import expr_text
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.types import ScalarType, zero_text
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import walk as nodes


def computed(statement: ast.Assign, bound: Container[str]) -> Iterator[ast.Expr]:
    """The subscripts on the left that are more than an index. ``bound``: names of values."""
    for index in statement.indices:
        if not isinstance(index, ast.Name) or index.name in bound:
            yield index


def check_places(
    statement: ast.Assign,
    places: Sequence[c.Expr],
    lets: Sequence[c.Let],
    declared: ast.TensorType | None,
    scope: DefScope,
    type_: ScalarType | None,
) -> None:
    """Note a problem unless data decide about some of the ``places``, in a reduction into a tensor
    of known size."""
    of_data, of_indices = _names_of(lets, c.Read), _names_of(lets, c.Index)
    bound = {let.name for let in lets}
    if not any(_has(place, c.Read, of_data) for place in places):
        texts = list(computed(statement, bound))
        moving = [t for t, p in zip(texts, places, strict=True) if _has(p, c.Index, of_indices)]
        _refuse(statement, (moving or texts)[0], bool(moving), scope, type_)
        return
    name = statement.target
    if statement.op == "=":
        scope.refuse(
            statement.op_span,
            f"data select the element of '{name}' that is written, so several points may write "
            "the same one; combine them with a reduction: += *= min= max=, as in H(Bin(i)) +=! "
            "1",
            Section.SCATTERS,
        )
        return
    unknown = _without_sizes(statement, bound, declared, scope)
    if scope.written.get(name) is None and unknown is not None:
        dims = ", ".join(
            i.name.upper() if isinstance(i, ast.Name) and i.name not in bound else "100"
            for i in statement.indices
        )
        why = f", and no input has the size '{unknown}'" if unknown else ""
        scope.refuse(
            statement.span,
            f"the size of '{name}' is unknown, because data select where it is written{why}; "
            f"declare it in the output list, such as -> ({type_ or 'float'}({dims}) {name}), with "
            "a number or a size of an input where data select; or assign all of it first",
            Section.SCATTERS,
        )


def element(
    statement: ast.Assign, indices: Sequence[str], places: Sequence[c.Expr], type_: ScalarType
) -> c.Read:
    """The element that is written, as if it were read."""
    rest = iter(places)
    subscripts = tuple(
        c.Index(i.name, i.span) if isinstance(i, ast.Name) and i.name in indices else next(rest)
        for i in statement.indices
    )
    return c.Read(statement.target, subscripts, type_, statement.target_span)


def _refuse(
    statement: ast.Assign,
    place: ast.Expr,
    moves: bool,
    scope: DefScope,
    type_: ScalarType | None,
) -> None:
    """Note that a place is known before anything runs. ``moves``: with the indices."""
    text, target = expr_text(place), statement.target
    if moves:
        example = "O(j) = X(j - 1) where j in 1:N + 1 for O(i + 1) = X(i)"
        if any(isinstance(n, ast.Binary) and n.op == "*" for n in walk.walk(place)):
            example = "O(j) = j % 2 == 0 ? X(j / 2) : 0 where j in 0:2 * N for O(2 * i) = X(i)"
        if statement.op != "=":
            example = "S(g) +=! X(4 * g + k) where k in 0:4 for S(i / 4) +=! X(i)"
        message = (
            f"'{text}' on the left is computed from indices alone; write an index there, and "
            f"compute on the right: {example}"
        )
    else:
        nodes_of = (n for e in walk.expressions(statement) for n in walk.walk(e))
        taken = {n.name for n in nodes_of if isinstance(n, ast.Name)}
        free = (n for n in "ijk" if n not in taken and scope.what_is(n) is None)
        index = next(free, "at")
        left = ", ".join(index if i is place else expr_text(i) for i in statement.indices)
        whole = _whole(statement, place, index, f"{target}({left})", scope, type_)
        stop = place.value + 1 if isinstance(place, ast.Number) else f"{text} + 1"
        message = (
            f"'{text}' on the left is one place; {whole}write an index there, and give it this "
            f"one value: {target}({left}) {statement.op} ... where {index} in {text}:{stop}"
        )
    scope.refuse(place.span, message, Section.STATEMENTS)


def _whole(
    statement: ast.Assign,
    place: ast.Expr,
    index: str,
    element: str,
    scope: DefScope,
    type_: ScalarType | None,
) -> str:
    """How to assign the whole target first, if this statement, its first, writes one of several
    places. ``index``: what stands for the place in ``element``."""
    writers = [
        s
        for s in scope.statements
        if isinstance(s, ast.Assign)
        and s.target == statement.target
        and len(s.indices) == len(statement.indices)
    ]
    axis = next(axis for axis, i in enumerate(statement.indices) if i is place)
    places = [s.indices[axis] for s in writers]
    values = {int(p.value) for p in places if isinstance(p, ast.Number)}
    others = [i for i in statement.indices if i is not place]
    names = [i.name for i in others if isinstance(i, ast.Name)]
    if writers[0] is not statement or len(values) < 2 or len(names) < len(others) or not type_:
        return ""
    ranges = [
        f"{index} in 0:{max(values) + 1}" if i is place else f"{expr_text(i)} in 0:..."
        for i in statement.indices
    ]
    zero = f"{element} = {zero_text(type_)} where {', '.join(ranges)}"
    return f"as others are written, too, assign all first: {zero}; then "


def _names_of(lets: Iterable[c.Let], kind: type[c.Read | c.Index]) -> set[str]:
    """The bound names whose values are made of such parts, directly or through other names."""
    found: set[str] = set()
    for let in lets:
        if _has(let.value, kind, found):
            found.add(let.name)
    return found


def _has(value: c.Expr, kind: type[c.Read | c.Index], names: Container[str]) -> bool:
    """Whether an expression has a part of that kind, or one of those names."""
    return any(
        isinstance(n, kind) or (isinstance(n, c.LetRef) and n.name in names) for n in nodes(value)
    )


def _without_sizes(
    statement: ast.Assign,
    bound: Container[str],
    declared: ast.TensorType | None,
    scope: DefScope,
) -> str | None:
    """The first size that nothing gives a value, of the dimensions that data say the place in; ""
    without a declared type; None if all have one. ``bound``: names of values."""
    if declared is None:
        return ""
    for dim, index in zip(dims_of(declared), statement.indices, strict=False):
        if isinstance(index, ast.Name) and index.name not in bound:
            continue
        if isinstance(dim, str) and dim not in scope.known_sizes:
            return dim
    return None
