"""The backward pass: from the last statement to the first, what each read gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.forward import (
    Forward,
    Names,
    Writer,
    assign,
    filled,
    from_first,
    names_below,
    ranges_of,
)
from tcl.gradients.invert import Inversion, Subscript
from tcl.gradients.phases import Phased, phased
from tcl.gradients.polynomials import ONE, ZERO, Range, never_negative, of_atom, poly_tree
from tcl.gradients.propagate import Conditions, Propagation, Term
from tcl.gradients.ranges import Box, Formulas
from tcl.gradients.terms import Integers, combined, under
from tcl.gradients.trees import (
    NOWHERE,
    Product,
    apply,
    binary,
    conjuncts,
    is_literal,
    is_number,
    name,
    number,
    of_type,
    opposite,
    over,
    put,
    rebuilt,
    size_of,
    summed,
    times,
)
from tcl.gradients.versions import Step, Version
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax import ast, walk
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads

Reading = Callable[[list[ast.Expr]], ast.Expr]
"""An element of something, by its indices."""


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


@dataclass(frozen=True, slots=True)
class _Quotient:
    """A quotient that is known where conditions hold."""

    factors: Product
    conditions: Conditions
    there: ast.Expr


@dataclass(slots=True)
class Backward:
    """Writes the statements of the backward pass."""

    formulas: Formulas
    steps: list[Step]
    forward: Forward
    names: Names
    active: frozenset[Version]
    """What depends on the inputs whose gradients are asked for."""
    seeds: dict[str, str]
    """Output → the input that holds its gradient."""
    prefix: str
    """Of the names of gradients."""
    shares: dict[Version, list[Share]] = field(default_factory=dict)
    statements: list[ast.Assign] = field(default_factory=list)
    finished: dict[Version, list[Share]] = field(default_factory=dict)

    def run(self) -> None:
        """All statements, last to first; then the gradients of inputs are all of their shares."""
        for output, seed in self.seeds.items():
            version = output, self.forward.final[output]
            if version in self.active:
                box = self.formulas.boxes[output]
                indices = self.names.indices(len(box))
                value = apply(seed, *from_first([name(i) for i in indices], box))
                self._add_share(version, Share(tuple(indices), value, {}))
        for step in reversed(self.steps):
            if step.after in self.shares:
                self._backward_step(step)

    def _add_share(self, version: Version, share: Share) -> None:
        self.shares.setdefault(version, []).append(share)

    # --- one statement ---

    def _backward_step(self, step: Step) -> None:
        writer = self.forward.writer(step)
        gradient = self.gradient(
            step.after, self._adjoint_name(step.after), inline=self._goes_on(step)
        )
        own = writer.left()
        seed = gradient(own)
        if step.keeps and step.before in self.active:
            self._pass_on_kept(step, gradient)
        propagation = Propagation(
            writer.tree, step.lets, lambda read: step.version(read.tensor) in self.active
        )
        terms = list(self._terms(step, propagation, writer, seed, own))
        by_read: dict[c.Read, list[Term]] = {}
        quotients = self._quotients(step)
        for term in terms:
            value = _with_quotients(term, quotients)
            by_read.setdefault(term.read, []).append(replace(term, value=value))
        for read, its in by_read.items():
            self._reads(step, writer, read, its)

    def _goes_on(self, step: Step) -> bool:
        """Whether what is read gets its gradient at the same points, where nothing is summed."""
        everything = {*step.statement.all_indices}
        return all(
            everything <= {s.name for s in read.subscripts if isinstance(s, c.Index)}
            for read in reads(step.statement)
            if step.version(read.tensor) in self.active
        )

    def _adjoint_name(self, version: Version) -> str:
        tensor, number_ = version
        last = number_ == self.forward.final[tensor]
        return f"{self.prefix}{tensor}" if last else f"{self.prefix}{tensor}_{number_}"

    def _terms(
        self,
        step: Step,
        propagation: Propagation,
        writer: Writer,
        seed: ast.Expr,
        own: list[ast.Expr],
    ) -> Iterator[Term]:
        """What the reads of a step get, before anyone asks who reads what."""
        statement = step.statement
        rhs = statement.rhs
        match statement.op:
            case "=" | "+":
                terms = propagation.terms(rhs, seed)
                if statement.op == "=" and step.whole and _worth_reading(rhs):
                    terms = self._reusing(terms, writer.tree(rhs), step, own)
                yield from terms
            case "min" | "max" if statement.place is not None:
                yield from self._extreme_scatter(step, propagation, writer, seed)
            case "min" | "max":
                yield from self._extreme_reduction(step, propagation, writer, seed, own)
            case _ if statement.place is not None:
                raise ArgumentError(
                    f"'{statement.target}' is a product of terms, into elements that data "
                    "select: its gradient cannot be derived"
                )
            case _:
                yield from self._product_reduction(step, propagation, writer, seed, own)

    def _reusing(
        self, terms: Iterator[Term], value: ast.Expr, step: Step, own: list[ast.Expr]
    ) -> Iterator[Term]:
        """The terms with what the statement computed read where it is known, not computed again."""
        for term in terms:
            if self.forward.is_kept(step.after) and value in walk.walk(term.value):
                there = self.forward.read(step.after, own)
                found = rebuilt(term.value, lambda n, t=there: t if n == value else n)  # type: ignore[misc]
                yield replace(term, value=found)
            else:
                yield term

    def _quotients(self, step: Step) -> list[_Quotient]:
        """Quotients that the derived def is given, as read at the points of a step:
        ``exp(X(n, d) - m(n)) / total(n)`` is the softmax itself."""
        found = []
        for other in self.steps:
            statement = other.statement
            rhs, writer = statement.rhs, self.forward.writer(other)
            conditions: tuple[ast.Expr, ...] = ()
            if isinstance(rhs, c.Select):
                conditions, rhs = (writer.tree(rhs.condition),), rhs.then
            if statement.op != "=" or not (isinstance(rhs, c.Binary) and rhs.op == "/"):
                continue
            known = all(self.forward.is_kept(other.version(r.tensor)) for r in reads(statement))
            alike = all(step.ranges.get(i) == other.ranges[i] for i in statement.indices)
            plain = not self.forward.renamed(other) and rhs.type.bits != 16
            if known and alike and plain and other.whole and self.forward.is_kept(other.after):
                there = self.forward.read(other.after, [name(i) for i in statement.indices])
                found.append(_Quotient(Product.of(writer.tree(rhs)), conditions, there))
        return found

    def _pass_on_kept(self, step: Step, gradient: Reading) -> None:
        """What the target held and still holds passes its gradient on."""
        statement = step.statement
        renamed = self.forward.renamed(step)
        indices = [renamed.get(i, i) for i in statement.indices]
        if statement.place is not None:
            indices = self.names.indices(len(statement.axes))
            if statement.op != "+":
                raise ArgumentError(
                    f"'{statement.target}' is reduced by {statement.op}= into elements that "
                    "data select, and keeps its earlier values: its gradient cannot be "
                    "derived; use a reduction with !, in a separate tensor"
                )
        value = gradient([name(i) for i in indices])
        within = self._written_conditions(step, indices) if statement.place is None else []
        if statement.op != "+":  # assigned or reduced: only what is outside is as it was
            outside = [opposite(each, of_integers=True) for each in within]
            if not outside:
                return
            condition = outside[0]
            for each in outside[1:]:
                condition = binary("||", condition, each)
            value = under([condition], value)
        self._add_share(step.before, Share(tuple(indices), value, {}))

    def _written_conditions(self, step: Step, indices: Sequence[str]) -> list[ast.Expr]:
        """The conditions under which an element of its target is one that a step writes."""
        box = self.formulas.boxes[step.statement.target]
        ranges = (step.ranges[i] for i in step.statement.indices)
        cases = zip(indices, ranges, box, strict=True)
        return [each for index, range_, axis in cases for each in _in_range(index, range_, axis)]

    # --- reductions ---

    def _terms_tensor(self, step: Step, writer: Writer, what: str) -> tuple[ast.Expr, bool]:
        """The terms of a reduction, and whether they are stored in a tensor of their own: what is
        compared has to be the same number wherever it is computed."""
        statement = step.statement
        value = writer.tree(statement.rhs)
        if _exact(statement.rhs, step.lets):
            return value, False
        target = self.names.fresh(f"{statement.target}_{what}")
        indices = [writer.renamed.get(i, i) for i in statement.all_indices]
        self._emit(step, writer, target, indices, "=", of_type(statement.rhs.type.name, value))
        return apply(target, *map(name, indices)), True

    def _emit(
        self,
        step: Step,
        writer: Writer,
        target: str,
        indices: list[str],
        op: str,
        value: ast.Expr,
    ) -> ast.Expr:
        """A statement over a step's points, or its results; an element of what it makes."""
        ranges = {writer.renamed.get(i, i): r for i, r in step.ranges.items()}
        if not op.endswith("!") and op == "=" and len(indices) < len(ranges):
            ranges = {i: ranges[i] for i in indices}
        self.statements.append(assign(target, indices, op, value, ranges_of(ranges)))
        return apply(target, *map(name, indices))

    def _extreme_reduction(
        self,
        step: Step,
        propagation: Propagation,
        writer: Writer,
        seed: ast.Expr,
        own: list[ast.Expr],
    ) -> Iterator[Term]:
        """A ``min`` or ``max`` over indices: the terms that it equals share its gradient evenly."""
        statement = step.statement
        term, stored = self._terms_tensor(step, writer, "terms")
        indices = [writer.renamed.get(i, i) for i in statement.indices]
        old = self.forward.read(step.before, own) if step.keeps_value else None
        if stored or not self._kept_terms(step):
            value = self._value_again(step, writer, indices, term, old)
        else:
            value = self.forward.read(step.after, own)
        ties = self.names.fresh(f"{statement.target}_ties")
        if old is not None:
            first = ast.Select(binary("==", old, value), number(1), number(0), old.span)
            self._emit(step, writer, ties, indices, "=", first)
        is_best = binary("==", term, value)
        one = ast.Select(is_best, number(1), number(0), value.span)
        op = "+=" if old is not None else "+=!"
        count = self._emit(step, writer, ties, indices, op, one)
        share = over(seed, count)
        yield from propagation.terms(statement.rhs, share, (is_best,))
        if old is not None and step.before in self.active:
            within = self._written_conditions(step, indices)
            part = under([*within, binary("==", old, value)], share)
            self._add_share(step.before, Share(tuple(indices), part, {}))

    def _extreme_scatter(
        self, step: Step, propagation: Propagation, writer: Writer, seed: ast.Expr
    ) -> Iterator[Term]:
        """A ``min`` or ``max`` into elements that data choose."""
        statement, left = step.statement, writer.left()
        if not _exact(statement.rhs, step.lets) or not self._kept_terms(step):
            raise ArgumentError(
                f"'{statement.target}' is the {statement.op} of computed terms, into elements "
                "that data select: its gradient cannot be derived; store the terms in a "
                "separate output"
            )
        term = writer.tree(statement.rhs)
        is_best = binary("==", term, self.forward.read(step.after, left))
        ties = self.names.fresh(f"{statement.target}_ties")
        self._emit_zeros(ties, statement.target)
        ranges = {writer.renamed.get(i, i): r for i, r in step.ranges.items()}
        one = ast.Select(is_best, number(1), number(0), NOWHERE)
        self.statements.append(assign(ties, left, "+=", one, ranges_of(ranges)))
        yield from propagation.terms(statement.rhs, over(seed, apply(ties, *left)), (is_best,))

    def _emit_zeros(self, target: str, tensor: str) -> None:
        """The statement that begins a tensor like another one, into which others add at places that
        data choose."""
        box, type_ = self.formulas.boxes[tensor], self.formulas.checked.tensors[tensor].type.name
        indices = self.names.indices(len(box))
        self.statements.append(filled(target, indices, box, type_, number(0)))

    def _kept_terms(self, step: Step) -> bool:
        """Whether the terms of a reduction are what they were in the forward pass: a sum that is
        computed again may be rounded otherwise, and equal nothing that was kept."""
        read = {step.version(r.tensor) for r in reads(step.statement)}
        return not step.keeps_value and all(self.forward.is_kept(version) for version in read)

    def _value_again(
        self,
        step: Step,
        writer: Writer,
        indices: list[str],
        term: ast.Expr,
        old: ast.Expr | None,
    ) -> ast.Expr:
        """The result of a reduction, of the terms that were stored."""
        target, op = self.names.fresh(step.statement.target), step.statement.op
        if old is not None:
            self._emit(step, writer, target, indices, "=", old)
        bang = "" if old is not None else "!"
        return self._emit(step, writer, target, indices, f"{op}={bang}", term)

    def _product_reduction(
        self,
        step: Step,
        propagation: Propagation,
        writer: Writer,
        seed: ast.Expr,
        own: list[ast.Expr],
    ) -> Iterator[Term]:
        """A product over indices: each term has the product of the others. That is all of it by the
        term, unless a term is 0: then only that term has any, and none has if two are 0."""
        statement = step.statement
        term, _ = self._terms_tensor(step, writer, "terms")
        indices = [writer.renamed.get(i, i) for i in statement.indices]
        is_zero, is_not = binary("==", term, number(0)), binary("!=", term, number(0))
        zeros = self._emit(
            step,
            writer,
            self.names.fresh(f"{statement.target}_zeros"),
            indices,
            "+=!",
            ast.Select(is_zero, number(1), number(0), term.span),
        )
        rest = self._emit(
            step,
            writer,
            self.names.fresh(f"{statement.target}_rest"),
            indices,
            "*=!",
            ast.Select(is_not, term, number(1), term.span),
        )
        whole = times(seed, rest)
        if step.keeps_value:
            old = self.forward.read(step.before, own)
            if step.before in self.active:
                within = self._written_conditions(step, indices)
                part = under([*within, binary("==", zeros, number(0))], whole)
                self._add_share(step.before, Share(tuple(indices), part, {}))
            whole = times(whole, old)
        rhs = statement.rhs
        one_zero, no_zero = binary("==", zeros, number(1)), binary("==", zeros, number(0))
        yield from propagation.terms(rhs, over(whole, term), (no_zero,))
        yield from propagation.terms(rhs, whole, (one_zero, is_zero))

    # --- reads ---

    def _reads(self, step: Step, writer: Writer, read: c.Read, terms: list[Term]) -> None:
        """The share that one read has in the gradient of what it reads."""
        version = step.version(read.tensor)
        if any(_reads_below(s, step.lets) for s in read.subscripts):
            # A condition keeps a place from being one: all of them stand in front.
            groups: dict[Conditions, list[ast.Expr]] = {}
            for term in terms:
                groups.setdefault(term.conditions, []).append(term.value)
            for conditions, values in groups.items():
                part = under(conditions, summed(values))
                self._add_share(version, self._placed(step, writer, read, part))
            return
        value = combined([(term.conditions, term.value) for term in terms])
        own = writer.tree(read)
        inversion = self._inversion(step, writer, read)
        if own not in walk.walk(value):
            found = self._phased(inversion)
            if found is not None:
                self._by_phases(version, value, inversion, found)
                return
        inverse = inversion.inverse()
        # The element itself, rather than X(2 * ((h - kh) / 2) + kh).
        itself = name("@itself")
        there = self.forward.read(version, [name(i) for i in inverse.targets])
        value = rebuilt(value, lambda node: itself if node == own else node)
        value = put(put(value, inverse.values), {"@itself": there})
        share = Share(inverse.targets, under(inverse.conditions, value), dict(inverse.summed))
        self._add_share(version, self._settled(share))

    def _placed(self, step: Step, writer: Writer, read: c.Read, value: ast.Expr) -> Share:
        """The share of a read at a place that data decide. What decides another dimension is an
        index there, or a condition: on the left stand indices, each once, and what is read."""
        ranges = {writer.renamed.get(i, i): r for i, r in step.ranges.items()}
        place: list[ast.Expr] = []
        conditions: list[ast.Expr] = []
        for subscript, axis in zip(read.subscripts, self.formulas.boxes[read.tensor], strict=True):
            tree = writer.tree(subscript)
            own = tree.name if isinstance(tree, ast.Name) and tree not in place else ""
            inside = _meeting(ranges[own], axis) if own in ranges else None
            if inside is not None:  # where it is outside, a condition keeps it from being read
                ranges[own] = inside
            if inside is None and not _reads_below(subscript, step.lets):
                letters = self.names.indices(len(ranges) + 1)
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
        sizes = frozenset(self.formulas.checked.sizes)
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

    def _letters(self, letters: str) -> list[str]:
        """Names for indices, these letters first."""
        found = [n for n in letters if n not in self.names.taken]
        return [*found, *(n for n in self.names.indices(30) if n not in found)]

    def _phased(self, inversion: Inversion, phase: Sequence[int] | None = None) -> Phased | None:
        return phased(
            inversion.subscripts,
            inversion.ranges,
            inversion.box,
            inversion.preferred,
            self._letters("pqrstuv"),
            phase,
        )

    def _by_phases(
        self, version: Version, value: ast.Expr, inversion: Inversion, found: Phased
    ) -> None:
        """The share of a strided read: tensors of its phases, or one with the phases as
        dimensions."""
        names = inversion.inverse().targets
        phases, place = found.element([name(i) for i in names])
        strides = [s.stride for s in found.strides]
        wanted = f"{self._adjoint_name(version)}_phase"
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
        self._add_share(version, Share(names, share, {}))

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
        target = self.names.fresh(wanted)
        ranges = dict(zip(inverse.targets, found.box, strict=True)) | dict(inverse.summed)
        op = "+=!" if inverse.summed else "="
        value = under(inverse.conditions, value)
        self.statements.append(assign(target, [*inverse.targets], op, value, ranges_of(ranges)))
        return target

    def _inversion(self, step: Step, writer: Writer, read: c.Read) -> Inversion:
        renamed = writer.renamed
        ranges = {renamed.get(i, i): r for i, r in step.ranges.items()}
        results = [renamed.get(i, i) for i in step.statement.indices]

        def rank(index: str) -> tuple[bool, bool, int]:
            """Long loops first: of lengths that are not known, those of results."""
            first, stop = ranges[index]
            length = (stop - first).constant
            return length is not None, length is None and index not in results, -(length or 0)

        subscripts = []
        for subscript in read.subscripts:
            poly = self.formulas.poly(subscript, step.lets)
            if poly is not None:
                poly = poly.put({i: of_atom(n) for i, n in renamed.items()})
            subscripts.append(Subscript(writer.tree(subscript), poly))
        return Inversion(
            subscripts,
            ranges,
            self.formulas.boxes[read.tensor],
            sorted(ranges, key=rank),
            self.names.indices(len(ranges) + len(subscripts)),
            [stop - first for first, stop in ranges.values()],
        )

    # --- gradients of tensors ---

    def gradient(self, version: Version, wanted: str, *, inline: bool = False) -> Reading:
        """The gradient of a version: where it is one element of another tensor that, else a tensor
        that is computed. ``inline``: whether a short expression may stand in its place."""
        shares = self._final_shares(version, wanted)
        if len(shares) == 1 and (_is_element(shares[0]) or (inline and _is_short(shares[0]))):
            (share,) = shares

            def element(indices: list[ast.Expr]) -> ast.Expr:
                return put(share.value, dict(zip(share.indices, indices, strict=True)))

            return element
        target = self.names.fresh(wanted)
        self.compute(version, target)
        return lambda indices: apply(target, *indices)

    def compute(self, version: Version, target: str, *, declared: bool = False) -> None:
        """The statements that add up all shares of a gradient; ``declared``: whether the derived
        def says how large it is."""
        box = self.formulas.boxes[version[0]]
        shares = self._final_shares(version, target)
        begun = shares[0].place is not None and not (declared and shares[0].covers(box))
        if begun:
            self._emit_zeros(target, version[0])
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

    def _final_shares(self, version: Version, wanted: str) -> list[Share]:
        """All shares of a gradient, one for each set of indices that is summed over."""
        if version not in self.finished:
            placed = [s for s in self.shares[version] if s.place is not None]
            others = [s for s in self.shares[version] if s.place is None]
            shares = _merged(self._shares_of_same_indices(others))
            box = self.formulas.boxes[version[0]]
            parted = [self._without_factors(share, box, wanted) for share in shares]
            whole = _merged(sorted(parted, key=lambda s: bool(s.summed)))
            self.finished[version] = [*whole, *placed]
        return self.finished[version]

    def _without_factors(self, share: Share, box: Box, wanted: str) -> Share:
        """The share of a sum with factors that are the same in all of its terms in front of it: of
        what takes time to compute, and where the sum is alone or a plain product."""
        types = {t.type for t in self.formulas.checked.tensors.values() if t.type.is_float}
        conditions, value = _parted(share.value)
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
        target = self.names.fresh(f"{wanted}_sum")
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
        integers = Integers({**own, **share.summed}, frozenset(self.formulas.checked.sizes), {})
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
        named = next((s for s in ordered[::-1] if not _is_element(s)), ordered[0])
        return [_renamed(share, named.indices, self.names) for share in ordered]


def _renamed(share: Share, indices: tuple[str, ...], names: Names) -> Share:
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


def _merged(shares: Sequence[Share]) -> list[Share]:
    """Shares that are summed over the same indices as one."""
    groups: dict[tuple[tuple[str, Range], ...], list[Share]] = {}
    for share in shares:
        groups.setdefault(tuple(sorted(share.summed.items())), []).append(share)
    return [
        replace(its[0], value=combined([_parted(share.value) for share in its]))
        for its in groups.values()
    ]


def _parted(value: ast.Expr) -> tuple[Conditions, ast.Expr]:
    """A value that is 0 where a condition does not hold as a term under that condition."""
    if isinstance(value, ast.Select) and is_number(value.otherwise, 0):
        return (value.condition,), value.then
    return (), value


def _is_element(share: Share) -> bool:
    """Whether a share is one element of one tensor, whatever its indices."""
    value = share.value
    if share.summed or not isinstance(value, ast.Apply | ast.Name) or value.name in BUILTINS:
        return False
    arguments = value.arguments if isinstance(value, ast.Apply) else ()
    plain = ast.Name | ast.Number | ast.Binary
    return all(isinstance(node, plain) for a in arguments for node in walk.walk(a))


def _is_short(share: Share) -> bool:
    """Whether a share is a short expression that is computed in no time."""
    plain = ast.Name | ast.Number | ast.Binary | ast.Unary | ast.Cast
    if share.summed or size_of(share.value) > SHORT:
        return False
    return all(
        isinstance(n, plain) or (isinstance(n, ast.Apply) and n.name not in BUILTINS)
        for n in walk.walk(share.value)
    )


SEPARATE = 4
"""Phases that have tensors of their own, where not all have equally many terms."""

SHORT = 16
"""Nodes of an expression that stands in the place of a tensor."""


def _takes_time(product: Product) -> bool:
    """Whether factors are better multiplied with a sum than with its terms: those with functions,
    and quotients by what is read."""
    nodes = [n for factor in product.factors for n in walk.walk(factor)]
    if any(isinstance(n, ast.Apply) and n.name in BUILTINS for n in nodes):
        return True
    return any(isinstance(n, ast.Apply) for factor in product.below for n in walk.walk(factor))


def _with_quotients(term: Term, known: list[_Quotient]) -> ast.Expr:
    """A term's value with quotients that are known in the place of what they are."""
    value = term.value
    for quotient in known:
        rest = Product.of(value).without(quotient.factors)
        if rest is not None and {*quotient.conditions} <= {*term.conditions}:
            value = replace(rest, above=(*rest.above, quotient.there)).tree()
    return value


def _in_range(index: str, range_: Range, axis: Range) -> list[ast.Expr]:
    """The conditions under which an index of a tensor is one that a statement writes."""
    (first, stop), (low, high) = range_, axis
    found = [] if first == low else [binary(">=", name(index), poly_tree(first))]
    return found if stop == high else [*found, binary("<", name(index), poly_tree(stop))]


def _worth_reading(rhs: c.Expr) -> bool:
    """Whether a value is better read than computed again: more than a few operations."""
    if rhs.type.bits == 16:
        return False  # rounded where it is stored
    return isinstance(rhs, c.Call) or (isinstance(rhs, c.Binary) and rhs.op == "/")


def _exact(expr: c.Expr, lets: dict[str, c.Expr]) -> bool:
    """Whether an expression is the same number wherever it is computed: nothing is rounded."""
    match expr:
        case c.Read() | c.Const():
            return True
        case c.LetRef(name=let):
            return _exact(lets[let], lets)
        case c.Unary(operand=operand):
            return _exact(operand, lets)
        case c.Select(then=then, otherwise=otherwise):
            return _exact(then, lets) and _exact(otherwise, lets)
        case c.Cast(operand=operand, type=type_):
            wider = type_.bits > operand.type.bits or not operand.type.is_float
            return wider and _exact(operand, lets)
        case _:
            return False


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
