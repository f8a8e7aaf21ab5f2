"""The shares that reads have in the gradients of what they read.

Strided reads go phase by phase: no remainder and no wasted point in the loops of their gradients.
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
from tcl.gradients.forward import Writer, assign, ranges_of
from tcl.gradients.gradient_sums import GradientSums, Share
from tcl.gradients.invert import Inversion, Subscript
from tcl.gradients.polynomials import (
    ONE,
    ZERO,
    Range,
    never_negative,
    of_atom,
    of_number,
    poly_tree,
)
from tcl.gradients.propagate import Conditions, Term
from tcl.gradients.ranges import Box, rounded_down
from tcl.gradients.terms import Integers, combined, under
from tcl.gradients.trees import (
    apply,
    binary,
    conjuncts,
    is_number,
    name,
    number,
    put,
    rebuilt,
    summed,
)
from tcl.gradients.versions import Step, Version
from tcl.grammar.syntax import ast, walk
from tcl.grammar.tree import checked as c

SEPARATE = 4
"""Phases that have tensors of their own, where not all have equally many terms."""


@dataclass(frozen=True, slots=True)
class ReadShares:
    step: Step
    writer: Writer
    sums: GradientSums

    def add(self, read: c.Read, terms: list[Term]) -> None:
        version = self.step.version(read.tensor)
        if any(_reads_below(s, self.step.lets) for s in read.subscripts):
            # A condition keeps a place from being one: all of them stand in front.
            groups: dict[Conditions, list[ast.Expr]] = {}
            for term in terms:
                groups.setdefault(term.conditions, []).append(term.value)
            for conditions, values in groups.items():
                part = under(conditions, summed(values))
                self.sums.add(version, self._placed(read, part))
            return
        value = combined([(term.conditions, term.value) for term in terms])
        own = self.writer.tree(read)
        inversion = self._inversion(read)
        if own not in walk.walk(value):
            found = self._phased(inversion)
            if found is not None:
                self._by_phases(version, value, inversion, found)
                return
        inverse = inversion.inverse()
        # The element itself, rather than X(2 * ((h - kh) / 2) + kh).
        itself = name("@itself")
        there = self.sums.forward.read(version, [name(i) for i in inverse.targets])
        value = rebuilt(value, lambda node: itself if node == own else node)
        value = put(put(value, inverse.values), {"@itself": there})
        share = Share(inverse.targets, under(inverse.conditions, value), dict(inverse.summed))
        self.sums.add(version, self._settled(share))

    def _placed(self, read: c.Read, value: ast.Expr) -> Share:
        """The share of a read at a place that data decide. An index that decides another dimension
        stands there if it is the only one and stays inside; or else a condition decides."""
        ranges = {self.writer.renamed.get(i, i): r for i, r in self.step.ranges.items()}
        place: list[ast.Expr] = []
        conditions: list[ast.Expr] = []
        for subscript, axis in zip(
            read.subscripts, self.sums.forward.formulas.boxes[read.tensor], strict=True
        ):
            tree = self.writer.tree(subscript)
            own = tree.name if isinstance(tree, ast.Name) and tree not in place else ""
            inside = _meeting(ranges[own], axis) if own in ranges else None
            if inside is not None:  # where it is outside, a condition keeps it from being read
                ranges[own] = inside
            if inside is None and isinstance(tree, ast.Name):
                letters = self.sums.forward.names.indices(len(ranges) + 1)
                index = next(n for n in letters if n not in ranges)
                ranges[index] = axis
                conditions.append(binary("==", name(index), tree))
                tree = name(index)
            place.append(tree)
        return Share((), under(conditions, value), ranges, tuple(place))

    def _settled(self, share: Share) -> Share:
        """The share without sums of which a condition, ``i == 0``, leaves a single term."""
        value = share.value
        if not isinstance(value, ast.Select) or not is_number(value.otherwise, 0):
            return share
        sizes = frozenset(self.sums.forward.formulas.checked.sizes)
        integers = Integers({i: (ZERO, ZERO) for i in share.indices}, sizes, {})
        conditions = list(conjuncts(value.condition))
        for each in conditions:
            if not isinstance(each, ast.Binary) or each.op != "==":
                continue
            for index, fixed in ((each.left, each.right), (each.right, each.left)):
                if not isinstance(index, ast.Name) or index.name not in share.summed:
                    continue
                if integers.poly(fixed) is None:  # of the element's indices and sizes
                    continue
                first, stop = share.summed[index.name]
                others = [c_ for c_ in conditions if c_ is not each]
                inside = [
                    binary(">=", fixed, poly_tree(first)),
                    binary("<", fixed, poly_tree(stop)),
                ]
                settled = put(under([*inside, *others], value.then), {index.name: fixed})
                rest = {i: r for i, r in share.summed.items() if i != index.name}
                return self._settled(Share(share.indices, settled, rest))
        return share

    def _phased(self, inversion: Inversion, phase: Sequence[int] | None = None) -> Phased | None:
        return phased(
            inversion.subscripts,
            inversion.ranges,
            inversion.box,
            inversion.preferred,
            self._letters("pqrstuv"),
            phase,
        )

    def _letters(self, letters: str) -> list[str]:
        """Names for indices, these letters first."""
        found = [n for n in letters if n not in self.sums.forward.names.taken]
        return [*found, *(n for n in self.sums.forward.names.indices(30) if n not in found)]

    def _by_phases(
        self, version: Version, value: ast.Expr, inversion: Inversion, found: Phased
    ) -> None:
        """The share of a strided read: tensors of its phases, or one with the phases as
        dimensions."""
        names = inversion.inverse().targets
        phases, place = found.element([name(i) for i in names])
        strides = [s.stride for s in found.strides]
        wanted = f"{self.sums.adjoint_name(version)}_phase"
        if not found.conditions or math.prod(strides) > SEPARATE:
            target = self._phase(f"{wanted}s", value, inversion, found)
            axis = found.strides[0].axis
            share: ast.Expr = apply(target, *place[:axis], *phases, *place[axis:])
        else:

            def chosen(known: tuple[int, ...]) -> ast.Expr:
                """The gradient at a place of the phases that begin so."""
                if len(known) < len(strides):
                    *others, last = (chosen((*known, k)) for k in range(strides[len(known)]))
                    for k, each in reversed([*enumerate(others)]):
                        is_it = binary("==", phases[len(known)], number(k))
                        last = ast.Select(is_it, each, last, each.span)
                    return last
                one = self._phased(inversion, known)
                assert one is not None, "as with all phases"
                if one.is_empty:
                    return number(0)
                suffix = "".join(map(str, known))
                return apply(self._phase(f"{wanted}{suffix}", value, inversion, one), *place)

            share = chosen(())
        self.sums.add(version, Share(names, share, {}))

    def _phase(self, wanted: str, value: ast.Expr, inversion: Inversion, found: Phased) -> str:
        """The statement that computes phases of a strided read's share; its target."""
        inverse = Inversion(
            found.subscripts,
            found.ranges,
            found.box,
            [*found.phases, *inversion.preferred],
            inversion.fresh,
            inversion.known,
        ).inverse()
        value = put(under(found.conditions, put(value, found.values)), inverse.values)
        target = self.sums.forward.names.fresh(wanted)
        ranges = dict(zip(inverse.targets, found.box, strict=True)) | dict(inverse.summed)
        op = "+=!" if inverse.summed else "="
        value = under(inverse.conditions, value)
        self.sums.statements.append(
            assign(target, [*inverse.targets], op, value, ranges_of(ranges))
        )
        return target

    def _inversion(self, read: c.Read) -> Inversion:
        renamed = self.writer.renamed
        ranges = {renamed.get(i, i): r for i, r in self.step.ranges.items()}
        results = [renamed.get(i, i) for i in self.step.statement.indices]

        def rank(index: str) -> tuple[bool, bool, int]:
            """Long loops first: of lengths that are not known, those of results."""
            first, stop = ranges[index]
            length = (stop - first).constant
            return length is not None, length is None and index not in results, -(length or 0)

        subscripts = []
        for subscript in read.subscripts:
            poly = self.sums.forward.formulas.poly(subscript, self.step.lets)
            if poly is not None:
                poly = poly.put({i: of_atom(n) for i, n in renamed.items()})
            subscripts.append(Subscript(self.writer.tree(subscript), poly))
        return Inversion(
            subscripts,
            ranges,
            self.sums.forward.formulas.boxes[read.tensor],
            sorted(ranges, key=rank),
            self.sums.forward.names.indices(len(ranges) + len(subscripts)),
            [stop - first for first, stop in ranges.values()],
        )


def _meeting(one: Range, other: Range) -> Range | None:
    """What two ranges have in common, if that has a formula."""
    (first, stop), (low, high) = one, other
    begins = [a for a, b in ((first, low), (low, first)) if never_negative(a - b, {})]
    ends = [a for a, b in ((stop, high), (high, stop)) if never_negative(b - a, {})]
    known = begins and ends and never_negative(ends[0] - begins[0], {})
    return (begins[0], ends[0]) if known else None


def _reads_below(subscript: c.Expr, lets: dict[str, c.Expr]) -> bool:
    """Whether data decide a subscript."""
    if isinstance(subscript, c.LetRef):
        return _reads_below(lets[subscript.name], lets)
    below = any(_reads_below(child, lets) for child in walk.children(subscript))
    return below or isinstance(subscript, c.Read)


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
