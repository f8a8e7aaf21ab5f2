"""What is known at a place in the emitted code."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tcl.codegen import ir
from tcl.codegen.cpu.builder import Builder, Val


@dataclass(frozen=True, slots=True)
class Range:
    """Where the loops of one dimension stand, in points from its start."""

    offset: Val | int
    span: Val | int
    """Points that the enclosing loop hands to the next fold."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Loops and variables around a place, and the lanes that run there."""

    ranges: dict[str, Range]
    """By dim."""
    folds: dict[str, Val | int] = field(default_factory=dict)
    """Offset in points of each fold, by name."""
    variables: dict[str, Val] = field(default_factory=dict)
    accumulators: dict[str, tuple[str, Val]] = field(default_factory=dict)
    """Name → (stack slot, a value of its type)."""
    lanes: int = 1
    lane_dim: str = ""
    mask: Val | None = None
    """The lanes that really run, where reading for the others would be wrong."""

    def under(self, mask: Val | None) -> Scope:
        """The same place with other lanes switched off."""
        return replace(self, mask=mask)

    def copied(self) -> Scope:
        """For a block of its own: names defined in it end with it."""
        return replace(self, variables=dict(self.variables), accumulators=dict(self.accumulators))


def add(b: Builder, left: Val | int, right: Val | int) -> Val | int:
    """A sum of index values, folded where both are known."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if left == 0:
        return right
    if right == 0:
        return left
    return b.binary("add nsw", i64(left), i64(right))


def scale(b: Builder, value: Val | int, factor: int) -> Val | int:
    """An index value times a constant."""
    if isinstance(value, int):
        return value * factor
    if factor == 1:
        return value
    return b.binary("mul nsw", value, i64(factor))


def i64(value: Val | int) -> Val:
    """An index value as an operand."""
    return Val(str(value), "i64") if isinstance(value, int) else value


def affine(b: Builder, index: ir.Affine, nest: ir.Nest, scope: Scope) -> tuple[Val | int, int]:
    """(value in the first lane, what each further lane adds)."""
    total: Val | int = index.constant
    step = 0
    for name, c in index.terms:
        if name in scope.folds:
            total = add(b, total, scale(b, scope.folds[name], c))
            continue
        total = add(b, total, nest.dim(name).first * c)
        total = add(b, total, scale(b, scope.ranges[name].offset, c))
        if name == scope.lane_dim:
            step = c
    return total, step


def lane_values(b: Builder, value: Val | int, step: int, lanes: int) -> Val:
    """An index value in every lane."""
    if step == 0:
        return i64(value)
    ladder = ", ".join(f"i64 {step * k}" for k in range(lanes))
    return b.binary("add nsw", i64(value), Val(f"<{ladder}>", "i64", lanes))
