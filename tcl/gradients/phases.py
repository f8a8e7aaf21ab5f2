"""Strided reads, phase by phase: no remainder and no wasted point in the loops of their gradients.

Of ``X(s * h + d * k + b)``, an element belongs to one residue of ``k``. With ``k = s * j + r``,
where ``r`` is one of ``s`` phases, it is ``X(s * (h + d * j) + d * r + b)``: a read of a tensor
with a phase and a place, ``P(r, h + d * j)``, whose gradient divides nothing. ``d_X`` is read off
that of ``P``. Few phases are tensors of their own, ``P0(h + d * j)``, each with just its own ``j``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from tcl.common.dataclass import dataclass
from tcl.gradients.invert import Subscript
from tcl.gradients.polynomials import ONE, ZERO, Range, of_atom, of_number, poly_tree
from tcl.gradients.ranges import Box, rounded_down
from tcl.gradients.trees import binary, name, number
from tcl.grammar.syntax import ast


@dataclass(frozen=True, slots=True)
class Stride:
    """One subscript ``stride * slow + step * fast + offset``, where ``fast`` starts at 0."""

    axis: int
    stride: int
    step: int
    offset: int
    slow: str
    fast: str


@dataclass(slots=True)
class Phased:
    """A read with a dimension for the phase of each of its strided subscripts."""

    strides: list[Stride]
    phases: list[str]
    """Their indices."""
    subscripts: list[Subscript]
    ranges: dict[str, Range]
    box: Box
    values: dict[str, ast.Expr] = field(default_factory=dict)
    """Index of the statement → its value, by those that stand for it."""
    conditions: list[ast.Expr] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether it is known that nothing is read."""
        return any(self.ranges[s.fast] == (ZERO, ZERO) for s in self.strides)

    def element(self, indices: Sequence[ast.Expr]) -> tuple[list[ast.Expr], list[ast.Expr]]:
        """The phases, and the place in them, of an element, by its indices in the tensor."""
        places, found = list(indices), []
        for s in self.strides:
            up = max(0, -(-s.offset // s.stride))
            shifted = _plus(indices[s.axis], s.stride * up - s.offset)
            if s.step == 1:
                found.append(binary("%", shifted, number(s.stride)))
                place = binary("/", shifted, number(s.stride))
                places[s.axis] = _plus(place, -up)
            else:
                inverse = pow(s.step, -1, s.stride)
                turned = binary("*", number(inverse), shifted) if inverse != 1 else shifted
                phase = binary("%", turned, number(s.stride))
                begin = binary("-", _plus(indices[s.axis], -s.offset), _times(s.step, phase))
                found.append(phase)
                places[s.axis] = binary("/", begin, number(s.stride))
        return found, places


def _plus(tree: ast.Expr, by: int) -> ast.Expr:
    return tree if not by else binary("+" if by > 0 else "-", tree, number(abs(by)))


def _times(by: int, tree: ast.Expr) -> ast.Expr:
    return tree if by == 1 else binary("*", number(by), tree)


def phased(
    subscripts: Sequence[Subscript],
    ranges: Mapping[str, Range],
    box: Box,
    preferred: Sequence[str],
    letters: Sequence[str],
    phase: Sequence[int] | None = None,
) -> Phased | None:
    """The read with its phases, or one ``phase`` of it; None if no subscript is strided so."""
    strides = [
        stride
        for axis in range(len(subscripts))
        if (stride := _common_stride(axis, subscripts, ranges, box, preferred)) is not None
    ]
    if not strides:
        return None
    spare = [n for n in letters if n not in ranges]
    names = spare[: len(strides)] if phase is None else []
    atoms = [*map(of_atom, names)] if phase is None else [*map(of_number, phase)]
    found = Phased(strides, names, [], dict(ranges), ())
    places, boxes = list(subscripts), list(box)
    for stride, own in zip(strides, atoms, strict=True):
        s, d, fast = stride.stride, stride.step, stride.fast
        first, stop = ranges[fast]
        most = stop - first + of_number(s - 1) - (own if phase is not None else ZERO)
        found.ranges[fast] = ZERO, rounded_down(most, s)
        value = of_atom(fast).scaled(s) + own + first
        found.values[fast] = poly_tree(value, [fast, *names])
        length = (stop - first).constant
        if phase is None and (length is None or length % s):
            found.conditions.append(binary("<", found.values[fast], poly_tree(stop)))
        place = of_atom(stride.slow) + of_atom(fast).scaled(d)
        places[stride.axis] = Subscript(poly_tree(place), place)
        low, high = box[stride.axis]
        least = -(-((low.constant or 0) - stride.offset - d * (s - 1)) // s)
        last = rounded_down(high - ONE - of_number(stride.offset) + of_number(s), s)
        boxes[stride.axis] = of_number(least), last
    found.ranges |= {n: (ZERO, of_number(s.stride)) for n, s in zip(names, strides, strict=False)}
    axis = strides[0].axis
    own_places = [Subscript(name(n), of_atom(n)) for n in names]
    lengths: list[Range] = [found.ranges[n] for n in names]
    found.subscripts = [*places[:axis], *own_places, *places[axis:]]
    found.box = (*boxes[:axis], *lengths, *boxes[axis:])
    return found


def _common_stride(
    axis: int,
    subscripts: Sequence[Subscript],
    ranges: Mapping[str, Range],
    box: Box,
    preferred: Sequence[str],
) -> Stride | None:
    """How one subscript is strided, if it is so by two indices that stand in no other one."""
    poly = subscripts[axis].poly
    if poly is None or box[axis][0].constant is None:
        return None
    own = [i for i in preferred if i in poly.atoms]
    others = [s.poly for place, s in enumerate(subscripts) if place != axis]
    if len(own) != 2 or any(p is None or p.atoms & {*own} for p in others):
        return None
    slow, fast = own
    stride, step = poly.coefficient(slow), poly.coefficient(fast)
    offset = poly.put({slow: ZERO, fast: ranges[fast][0]}).constant
    if not stride or not step or offset is None or ranges[fast][0].constant is None:
        return None
    if stride < 2 or step < 1 or math.gcd(stride, step) != 1:
        return None
    return Stride(axis, stride, step, offset, slow, fast)
