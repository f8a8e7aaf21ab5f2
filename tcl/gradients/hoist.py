"""What would be computed several times, computed once.

``d_V(j, e) +=! d_O(i, e) * exp(S(i, j) - m(i))`` computes ``exp`` for every ``e``: with
``exp_S(i, j) = exp(S(i, j) - m(i))`` it is computed once. And a sum of what another statement
computes, the gradient of a bias, reads that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcl.common.dataclass import dataclass
from tcl.gradients.forward import Names, assign
from tcl.gradients.trees import apply, name, size_of, with_parts
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax import ast, walk

_SIMPLE = frozenset({"fmin", "fmax", "fabs", "fma", "fdim", "copysign", "ceil", "floor", "trunc"})
"""Functions that take about as long as an addition."""


def hoisted(statements: Sequence[ast.Assign], names: Names) -> list[ast.Assign]:
    """The statements, all of whose indices have ranges, with such statements before them."""
    last = {s.target: place for place, s in enumerate(statements)}
    wanted: list[_Shared] = []
    for place, statement in enumerate(statements):
        for tree in _candidates(statement.rhs, {t for t, its in last.items() if its >= place}):
            shared = _Shared(tree, _ranges(statement, tree))
            if 0 < len(shared.ranges) < len(statement.where) and shared not in wanted:
                wanted.append(shared)
    made: dict[_Shared, ast.Expr] = {}
    found: list[ast.Assign] = []
    for place, statement in enumerate(statements):
        for shared in wanted:
            ready = all(last.get(read.name, -1) < place for read in shared.reads)
            if shared not in made and ready and shared.is_in(statement):
                target = names.fresh(f"{shared.function}_{shared.reads[0].name}")
                made[shared] = apply(target, *map(name, shared.indices))
                found.append(assign(target, shared.indices, "=", shared.tree, [*shared.ranges]))
        found.append(_with_shared(statement, made))
    return found


@dataclass(frozen=True, slots=True)
class _Shared:
    """An expression over ranges of its indices."""

    tree: ast.Expr
    ranges: tuple[ast.Range, ...]

    @property
    def indices(self) -> list[str]:
        """Those of what it is stored in."""
        return [r.index for r in self.ranges]

    @property
    def reads(self) -> list[ast.Apply]:
        return [n for n in walk.walk(self.tree) if isinstance(n, ast.Apply) and not _is_call(n)]

    @property
    def function(self) -> str:
        """The function that takes time."""
        return next(
            n.name for n in walk.walk(self.tree) if isinstance(n, ast.Apply) and _takes_time(n)
        )

    def is_in(self, statement: ast.Assign) -> bool:
        """Whether a statement computes it."""
        there = any(node == self.tree for node in walk.walk(statement.rhs))
        return there and _ranges(statement, self.tree) == self.ranges


def with_sums_of_others(statements: Sequence[ast.Assign]) -> list[ast.Assign]:
    """The statements, where a sum of what an earlier one assigns reads that."""
    written = [s.target for s in statements]
    found: list[ast.Assign] = []
    for statement in statements:
        for other in found:
            alike = other.rhs == statement.rhs and {*other.where} <= {*statement.where}
            once = other.op == "=" and written.count(other.target) == 1
            if alike and once and statement.op != "=" and size_of(other.rhs) > _SHORT:
                statement = replace(statement, rhs=apply(other.target, *other.indices))
        found.append(statement)
    return found


_SHORT = 4
"""Nodes of an expression that is as well computed as read."""


def _with_shared(statement: ast.Assign, made: dict[_Shared, ast.Expr]) -> ast.Assign:
    """The statement, which reads what is stored."""

    def changed(tree: ast.Expr) -> ast.Expr:
        there = made.get(_Shared(tree, _ranges(statement, tree)))
        return with_parts(tree, changed) if there is None else there

    return replace(statement, rhs=changed(statement.rhs))


def _candidates(tree: ast.Expr, later: set[str]) -> Iterator[ast.Expr]:
    """The largest expressions that are always computed, at plain indices, with functions that take
    time; ``later``: tensors that are still to change."""
    if isinstance(tree, ast.Select | ast.Number | ast.Name):
        return
    nodes = list(walk.walk(tree))
    if not any(map(_takes_time, nodes)):
        return
    reads = [n for n in nodes if isinstance(n, ast.Apply) and not _is_call(n)]
    plain = all(isinstance(a, ast.Name) for n in reads for a in n.arguments)
    simple = not any(isinstance(n, ast.Select) for n in nodes)
    of_call = isinstance(tree, ast.Apply) and _is_call(tree)
    if reads and plain and simple and of_call and not later & {n.name for n in reads}:
        yield tree
        return
    for child in walk.children(tree):
        yield from _candidates(child, later)


def _is_call(tree: ast.Apply) -> bool:
    return tree.name in BUILTINS


def _takes_time(tree: ast.Expr) -> bool:
    return isinstance(tree, ast.Apply) and _is_call(tree) and tree.name not in _SIMPLE


def _ranges(statement: ast.Assign, tree: ast.Expr) -> tuple[ast.Range, ...]:
    """The ranges of the indices in an expression, in the order in which these stand there."""
    own = {w.index: w for w in statement.where if isinstance(w, ast.Range)}
    names = dict.fromkeys(n.name for n in walk.walk(tree) if isinstance(n, ast.Name))
    return tuple(own[n] for n in names if n in own)
