"""Shares of gradients: parts that are added up, each a value by the indices of an element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcl.common.dataclass import dataclass
from tcl.gradients.forward import Names
from tcl.gradients.polynomials import Range
from tcl.gradients.propagate import Conditions
from tcl.gradients.ranges import Box
from tcl.gradients.terms import combined
from tcl.gradients.trees import is_number, name, put, size_of
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax import ast, walk

SHORT = 16
"""Nodes of an expression that stands in the place of a tensor."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the gradient of a tensor."""

    indices: tuple[str, ...]
    value: ast.Expr
    summed: dict[str, Range]
    """Indices that ``value`` is summed over."""
    place: tuple[ast.Expr, ...] | None = None
    """The element that data choose, at each point of ``summed``."""

    def covers(self, box: Box) -> bool:
        """Whether its indices run over all of the dimensions in which they stand by themselves."""
        pairs = zip(self.place or (), box, strict=True)
        names = ((s.name, axis) for s, axis in pairs if isinstance(s, ast.Name))
        return all(self.summed.get(n, axis) == axis for n, axis in names)


def renamed(share: Share, indices: tuple[str, ...], names: Names) -> Share:
    """The share with these indices."""
    changes = {a: name(b) for a, b in zip(share.indices, indices, strict=True) if a != b}
    summed = {}
    used = {*indices, *share.summed, *share.indices}
    for index, range_ in share.summed.items():
        other = index
        if index in indices:
            letters = [n for n in "ijklmnpqrstuvw" if n not in used | names.taken]
            other = letters[0] if letters else names.fresh(index)
            used.add(other)
            changes[index] = name(other)
        summed[other] = range_
    return Share(indices, put(share.value, changes), summed)


def merged(shares: Sequence[Share]) -> list[Share]:
    """Shares that are summed over the same indices as one."""
    groups: dict[tuple[tuple[str, Range], ...], list[Share]] = {}
    for share in shares:
        groups.setdefault(tuple(sorted(share.summed.items())), []).append(share)
    return [
        replace(its[0], value=combined([parted(share.value) for share in its]))
        for its in groups.values()
    ]


def parted(value: ast.Expr) -> tuple[Conditions, ast.Expr]:
    """A value that is 0 where a condition does not hold as a term under that condition."""
    if isinstance(value, ast.Select) and is_number(value.otherwise, 0):
        return (value.condition,), value.then
    return (), value


def is_element(share: Share) -> bool:
    """Whether a share is one element of one tensor, whatever its indices."""
    value = share.value
    if share.summed or not isinstance(value, ast.Apply | ast.Name) or value.name in BUILTINS:
        return False
    arguments = value.arguments if isinstance(value, ast.Apply) else ()
    plain = ast.Name | ast.Number | ast.Binary
    return all(isinstance(node, plain) for a in arguments for node in walk.walk(a))


def is_short(share: Share) -> bool:
    """Whether a share is a short expression that is computed in no time."""
    plain = ast.Name | ast.Number | ast.Binary | ast.Unary | ast.Cast
    if share.summed or size_of(share.value) > SHORT:
        return False
    return all(
        isinstance(n, plain) or (isinstance(n, ast.Apply) and n.name not in BUILTINS)
        for n in walk.walk(share.value)
    )
