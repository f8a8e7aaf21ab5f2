"""What several points of a statement would compute alike, as a statement of its own.

``d_V(j, e) +=! d_O(i, e) * exp(S(i, j) - m(i))`` computes ``exp`` for every ``e``: with
``exp_S(i, j) = exp(S(i, j) - m(i))`` it is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcl.gradients.forward import Names, assign
from tcl.gradients.trees import apply, name, with_parts
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax import ast, walk

_SIMPLE = frozenset({"fmin", "fmax", "fabs", "fma", "fdim", "copysign", "ceil", "floor", "trunc"})
"""Functions that take about as long as an addition."""


def hoisted(statements: Sequence[ast.Assign], names: Names) -> list[ast.Assign]:
    """The statements, all of whose indices have ranges, with such statements in front."""
    made = {s.target for s in statements}
    found: dict[tuple[ast.Expr, tuple[ast.Where, ...]], ast.Expr] = {}
    first: list[ast.Assign] = []
    for statement in statements:
        for tree in _candidates(statement.rhs, made):
            ranges = _ranges(statement, tree)
            if not 0 < len(ranges) < len(statement.where) or (tree, ranges) in found:
                continue
            indices = [r.index for r in ranges if isinstance(r, ast.Range)]
            nodes = list(walk.walk(tree))
            function = next(n.name for n in nodes if _takes_time(n) and isinstance(n, ast.Apply))
            read = next(n.name for n in nodes if isinstance(n, ast.Apply) and not _is_call(n))
            target = names.fresh(f"{function}_{read}")
            found[tree, ranges] = apply(target, *map(name, indices))
            first.append(assign(target, indices, "=", tree, list(ranges)))
    return first + [_with_hoisted(s, found) for s in statements]


def _with_hoisted(
    statement: ast.Assign, found: dict[tuple[ast.Expr, tuple[ast.Where, ...]], ast.Expr]
) -> ast.Assign:
    def changed(tree: ast.Expr) -> ast.Expr:
        for (whole, ranges), there in found.items():
            if tree == whole and _ranges(statement, tree) == ranges:
                return there
        return with_parts(tree, changed)

    return replace(statement, rhs=changed(statement.rhs))


def _candidates(tree: ast.Expr, made: set[str]) -> Iterator[ast.Expr]:
    """The largest expressions that are always computed, of inputs at plain indices, with functions
    that take time."""
    if isinstance(tree, ast.Select | ast.Number | ast.Name):
        return
    nodes = list(walk.walk(tree))
    if not any(map(_takes_time, nodes)):
        return
    reads = [n for n in nodes if isinstance(n, ast.Apply) and not _is_call(n)]
    plain = all(isinstance(a, ast.Name) for n in reads for a in n.arguments)
    simple = not any(isinstance(n, ast.Select) for n in nodes)
    of_call = isinstance(tree, ast.Apply) and _is_call(tree)
    if reads and plain and simple and of_call and not made & {n.name for n in reads}:
        yield tree
        return
    for child in walk.children(tree):
        yield from _candidates(child, made)


def _is_call(tree: ast.Apply) -> bool:
    return tree.name in BUILTINS


def _takes_time(tree: ast.Expr) -> bool:
    return isinstance(tree, ast.Apply) and _is_call(tree) and tree.name not in _SIMPLE


def _ranges(statement: ast.Assign, tree: ast.Expr) -> tuple[ast.Where, ...]:
    """The ranges of the indices in an expression, in the order in which these stand there."""
    own = {w.index: w for w in statement.where if isinstance(w, ast.Range)}
    names = dict.fromkeys(n.name for n in walk.walk(tree) if isinstance(n, ast.Name))
    return tuple(own[n] for n in names if n in own)
