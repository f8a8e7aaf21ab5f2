"""From a read ``X(A x + b)`` to who reads an element ``X(y)``: all ``x`` with ``A x + b = y``.

The equations are solved one index at a time, as in Hermite's normal form: what a pivot leaves over
of an equation is its right side, the indices that no equation needs are summed over, and what is
left without an unknown becomes a condition. Divisions are exact, under a condition that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tcl.common.dataclass import dataclass
from tcl.gradients.polynomials import Poly, Range, never_negative, of_atom, of_number, poly_tree
from tcl.gradients.ranges import Box
from tcl.gradients.trees import binary, number, put
from tcl.grammar.syntax import ast


@dataclass(frozen=True, slots=True)
class Subscript:
    """One subscript of a read, in the forward def's indices."""

    tree: ast.Expr
    poly: Poly | None
    """None of one that is not a sum of indices with factors."""


@dataclass(frozen=True, slots=True)
class Inverse:
    """The points of a statement that read one element of a tensor."""

    targets: tuple[str, ...]
    """The indices of the element."""
    values: Mapping[str, ast.Expr]
    """Index of the statement → its value, of those that the element decides."""
    conditions: tuple[ast.Expr, ...]
    """Under which there is such a point,"""
    summed: Mapping[str, Range]
    """for each value of these indices of the statement."""


@dataclass(slots=True)
class Inversion:
    """Solves the equations of one read."""

    subscripts: Sequence[Subscript]
    ranges: Mapping[str, Range]
    """Of the statement's indices."""
    box: Box
    """Of the tensor that is read."""
    preferred: Sequence[str]
    """The statement's indices, those first that no loop should run over."""
    fresh: Sequence[str]
    """Names for indices of the element that no index of the statement can lend its name."""
    known: Sequence[Poly] = ()
    """Formulas that are not negative."""
    solved: dict[str, tuple[Poly, int]] = field(default_factory=dict)
    """Index → ``poly / divisor``."""
    names: dict[int, str] = field(default_factory=dict)
    """Axis → the index whose name it takes."""
    left: list[int] = field(default_factory=list)
    """Axes whose equations become conditions."""

    def inverse(self) -> Inverse:
        """The points that read an element."""
        for axis in self._order():
            self._eliminate(axis)
        names = self._targets()
        own = {_unknown_atom(axis): of_atom(name) for axis, name in enumerate(names)}
        within = {name: self.box[axis] for axis, name in enumerate(names)}
        summed = {i: r for i, r in self.ranges.items() if i not in self.solved}
        # A name of the statement that an index of the element takes is decided by it.
        ranges = {**summed, **within}
        order = (*names, *summed)
        values: dict[str, ast.Expr] = {}
        conditions: list[ast.Expr] = []
        for index in self.ranges:
            if index in self.solved:
                poly, divisor = self.solved[index]
                poly = poly.put(own)
                tree = poly_tree(poly, order)
                if divisor != 1:
                    exact = binary("%", tree, number(divisor))
                    conditions.append(binary("==", exact, number(0)))
                values[index] = binary("/", tree, number(divisor)) if divisor != 1 else tree
                conditions += self._bounds_inside(
                    index, poly, divisor, values[index], ranges, order
                )
        for axis in self.left:
            there = put(self.subscripts[axis].tree, values)
            conditions.append(binary("==", there, ast.Name(names[axis], there.span)))
        return Inverse(tuple(names), values, tuple(conditions), summed)

    def _bounds_inside(
        self,
        index: str,
        poly: Poly,
        divisor: int,
        value: ast.Expr,
        ranges: Mapping[str, Range],
        order: Sequence[str],
    ) -> list[ast.Expr]:
        """The conditions under which a decided index is in its range, of those that are needed."""
        first, stop = self.ranges[index]
        found = []
        if not never_negative(poly - first.scaled(divisor), ranges, self.known):
            # Also of a quotient: where the division is exact, it says the same.
            tree = poly_tree(poly, order) if first == of_number(0) else value
            found.append(binary(">=", tree, poly_tree(first)))
        last = (stop - of_number(1)).scaled(divisor)
        if not never_negative(last - poly, ranges, self.known):
            found.append(binary("<", value, poly_tree(stop)))
        return found

    def _order(self) -> list[int]:
        """Equations of one index first: they decide it alone."""

        def indices_of(axis: int) -> int:
            poly = self.subscripts[axis].poly
            return len(self.ranges.keys() & poly.atoms) if poly is not None else len(self.ranges)

        return sorted(range(len(self.subscripts)), key=lambda axis: (indices_of(axis) != 1, axis))

    def _eliminate(self, axis: int) -> None:
        poly = self.subscripts[axis].poly
        exact = {i: p for i, (p, divisor) in self.solved.items() if divisor == 1}
        if poly is None or any(d != 1 and i in poly.atoms for i, (_, d) in self.solved.items()):
            self.left.append(axis)
            return
        poly = poly.put(exact)
        pivot = self._pivot(poly)
        if pivot is None:
            self.left.append(axis)
            return
        k = poly.coefficient(pivot)
        assert k, "a pivot"
        rest = of_atom(_unknown_atom(axis)) - poly.without(pivot)
        value = rest if k > 0 else rest.scaled(-1)
        self.solved = (
            {i: (p.put({pivot: value}), d) for i, (p, d) in self.solved.items()}
            if abs(k) == 1
            else dict(self.solved)
        )
        self.solved[pivot] = value, abs(k)
        self.names[axis] = pivot

    def _pivot(self, poly: Poly) -> str | None:
        """The index that an equation decides."""
        candidates = []
        for place, index in enumerate(self.preferred):
            k = poly.coefficient(index) if index not in self.solved else 0
            if k:
                used = any(index in p.atoms for p, d in self.solved.values())
                if abs(k) == 1 or not used:
                    candidates.append((place, index))
        return candidates[0][1] if candidates else None

    def _targets(self) -> list[str]:
        """Names for the indices of the element."""
        spare = [n for n in self.fresh if n not in self.ranges]
        return [
            self.names[axis] if axis in self.names else spare.pop(0)
            for axis in range(len(self.subscripts))
        ]


def _unknown_atom(axis: int) -> str:
    """The atom that stands for an index of the element."""
    return f"@{axis}"
