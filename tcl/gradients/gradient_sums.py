"""Tensors of gradients: each the sum of its shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from tcl.common.dataclass import dataclass
from tcl.gradients.forward import Forward, Names, assign, filled, names_below, ranges_of
from tcl.gradients.polynomials import ONE, Range, never_negative, poly_tree
from tcl.gradients.propagate import Conditions
from tcl.gradients.ranges import Box
from tcl.gradients.terms import Integers, combined, under
from tcl.gradients.trees import (
    Product,
    apply,
    binary,
    is_literal,
    is_number,
    name,
    number,
    put,
    size_of,
)
from tcl.gradients.versions import Version
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


Reading = Callable[[list[ast.Expr]], ast.Expr]
"""An element of something, by its indices."""


@dataclass(slots=True)
class GradientSums:
    """The shares that were found, and the statements of the backward pass."""

    forward: Forward
    prefix: str
    """Of the names of gradients."""
    shares: dict[Version, list[Share]] = field(default_factory=dict)
    statements: list[ast.Assign] = field(default_factory=list)
    _finished: dict[Version, list[Share]] = field(default_factory=dict)

    def add(self, version: Version, share: Share) -> None:
        self.shares.setdefault(version, []).append(share)

    def adjoint_name(self, version: Version) -> str:
        tensor, number_ = version
        last = number_ == self.forward.final[tensor]
        return f"{self.prefix}{tensor}" if last else f"{self.prefix}{tensor}_{number_}"

    def gradient(self, version: Version, wanted: str, *, inline: bool = False) -> Reading:
        """The gradient of a version: where it is one element of another tensor that, else a tensor
        that is computed. ``inline``: whether a short expression may stand in its place."""
        shares = self._final_shares(version, wanted)
        if len(shares) == 1 and (is_element(shares[0]) or (inline and is_short(shares[0]))):
            (share,) = shares

            def element(indices: list[ast.Expr]) -> ast.Expr:
                return put(share.value, dict(zip(share.indices, indices, strict=True)))

            return element
        target = self.forward.names.fresh(wanted)
        self.compute(version, target)
        return lambda indices: apply(target, *indices)

    def compute(self, version: Version, target: str, *, declared: bool = False) -> None:
        """The statements that add up all shares of a gradient; ``declared``: whether the derived
        def says how large it is."""
        box = self.forward.formulas.boxes[version[0]]
        shares = self._final_shares(version, target)
        begun = shares[0].place is not None and not (declared and shares[0].covers(box))
        if begun:
            self.emit_zeros(target, version[0])
        for position, share in enumerate(shares):
            first = position == 0 and not begun
            op = "=" if first and not share.summed else "+=!" if first else "+="
            if share.place is None:
                own = dict(zip(share.indices, box, strict=True))
                left: Sequence[str | ast.Expr] = share.indices
            else:
                own, left = {}, share.place
            ranges = ranges_of({**own, **share.summed})
            self.statements.append(assign(target, left, op, share.value, ranges))

    def emit_zeros(self, target: str, tensor: str) -> None:
        """The statement that begins a tensor like another one, into which others add at places that
        data choose."""
        box, type_ = (
            self.forward.formulas.boxes[tensor],
            self.forward.formulas.checked.tensors[tensor].type.name,
        )
        indices = self.forward.names.indices(len(box))
        self.statements.append(filled(target, indices, box, type_, number(0)))

    def _final_shares(self, version: Version, wanted: str) -> list[Share]:
        """All shares of a gradient, one for each set of indices that is summed over."""
        if version not in self._finished:
            placed = [s for s in self.shares[version] if s.place is not None]
            others = [s for s in self.shares[version] if s.place is None]
            shares = merged(self._shares_of_same_indices(others))
            box = self.forward.formulas.boxes[version[0]]
            parted = [self._without_factors(share, box, wanted) for share in shares]
            whole = merged(sorted(parted, key=lambda s: bool(s.summed)))
            self._finished[version] = [*whole, *placed]
        return self._finished[version]

    def _without_factors(self, share: Share, box: Box, wanted: str) -> Share:
        """The share of a sum with factors that are the same in all of its terms in front of it: of
        what takes time to compute, and where the sum is alone or a plain product."""
        types = {t.type for t in self.forward.formulas.checked.tensors.values() if t.type.is_float}
        conditions, value = parted(share.value)
        named = {n for each in conditions for n in names_below(each)}
        around: Conditions | None = conditions
        if named & share.summed.keys():
            around = self._where_any(conditions, share, box)
        if not share.summed or len(types) > 1 or around is None:
            return share
        product = Product.of(value)
        inner, outer = product.parted(lambda f: bool(names_below(f) & share.summed.keys()))
        reads_float = any(isinstance(f, ast.Apply) and f.name not in BUILTINS for f in inner.above)
        running = around != conditions and any(not is_literal(f) for f in outer.factors)
        if not reads_float or not (running or _takes_time(outer)):
            return share
        if any(type_.bits == 16 for type_ in types):  # rounded where it is stored
            return share
        target = self.forward.names.fresh(f"{wanted}_sum")
        ranges = ranges_of({**dict(zip(share.indices, box, strict=True)), **share.summed})
        total = under(conditions, inner.tree())
        self.statements.append(assign(target, list(share.indices), "+=!", total, ranges))
        there = apply(target, *map(name, share.indices))
        whole = replace(outer, above=(there, *outer.above)).tree()
        return Share(share.indices, under(around, whole), {})

    def _where_any(self, conditions: Conditions, share: Share, box: Box) -> Conditions | None:
        """Under which a running sum, of terms where ``j <= i``, has any; None if it is none."""
        if len(conditions) != 1 or len(share.summed) != 1:
            return None
        ((index, (first, stop)),) = share.summed.items()
        own = dict(zip(share.indices, box, strict=True))
        integers = Integers(
            {**own, **share.summed}, frozenset(self.forward.formulas.checked.sizes), {}
        )
        least = integers.difference(conditions[0])
        k = least.coefficient(index) if least is not None else None
        if least is None or not k or abs(k) != 1 or len(least.atoms & own.keys()) != 1:
            return None
        most = least.put({index: stop - ONE if k > 0 else first})
        if never_negative(most, own, [b - a for a, b in own.values()]):
            return ()
        return (binary(">=", poly_tree(most, share.indices), number(0)),)

    def _shares_of_same_indices(self, shares: list[Share]) -> list[Share]:
        """The shares with the same indices, those that are not summed first."""
        if not shares:
            return []
        ordered = sorted(shares, key=lambda share: bool(share.summed))
        # The seed's own indices say nothing; others stand in the forward def.
        named = next((s for s in ordered[::-1] if not is_element(s)), ordered[0])
        return [renamed(share, named.indices, self.forward.names) for share in ordered]


def _takes_time(product: Product) -> bool:
    """Whether factors are better multiplied with a sum than with its terms: those with functions,
    and quotients by what is read."""
    nodes = [n for factor in product.factors for n in walk.walk(factor)]
    if any(isinstance(n, ast.Apply) and n.name in BUILTINS for n in nodes):
        return True
    return any(isinstance(n, ast.Apply) for factor in product.below for n in walk.walk(factor))
