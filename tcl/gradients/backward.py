"""The backward pass: from the last statement to the first, what each read gets, and what the terms
of a ``min``, ``max`` or product get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.forward import Forward, Writer, assign, from_first, ranges_of
from tcl.gradients.gradient_sums import GradientSums, Reading, Share
from tcl.gradients.polynomials import Range, poly_tree
from tcl.gradients.propagate import Conditions, Propagation, Term
from tcl.gradients.ranges import Formulas
from tcl.gradients.read_shares import ReadShares
from tcl.gradients.terms import under
from tcl.gradients.trees import (
    NOWHERE,
    Product,
    apply,
    binary,
    name,
    number,
    of_type,
    opposite,
    over,
    rebuilt,
    times,
)
from tcl.gradients.versions import Step, Version
from tcl.grammar.syntax import ast, walk
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads


@dataclass(frozen=True, slots=True)
class Adjoint:
    """A step of the forward pass with the gradient of what it makes; what the terms of a reduction
    get. For that it writes statements, such as one that counts ties."""

    step: Step
    writer: Writer
    propagation: Propagation
    seed: ast.Expr
    """The gradient of the result."""
    own: list[ast.Expr]
    """Where the result is."""
    sums: GradientSums
    active: frozenset[Version]
    """What depends on the inputs whose gradients are asked for."""

    def extreme_terms(self) -> Iterator[Term]:
        """A ``min`` or ``max`` over indices: the terms that it equals share its gradient evenly."""
        statement = self.step.statement
        term, stored = self._terms_tensor()
        indices = self._renamed(statement.indices)
        old = self.sums.forward.read(self.step.before, self.own) if self.step.keeps_value else None
        if stored or not self._kept_terms():
            value = self._value_again(indices, term, old)
        else:
            value = self.sums.forward.read(self.step.after, self.own)
        ties = self._fresh("_ties")
        if old is not None:
            first = ast.Select(binary("==", old, value), number(1), number(0), old.span)
            self._emit(ties, indices, "=", first)
        is_best = binary("==", term, value)
        one = ast.Select(is_best, number(1), number(0), value.span)
        op = "+=" if old is not None else "+=!"
        count = self._emit(ties, indices, op, one)
        share = over(self.seed, count)
        yield from self.propagation.terms(statement.rhs, share, (is_best,))
        if old is not None and self.step.before in self.active:
            within = written_conditions(self.sums.forward.formulas, self.step, indices)
            part = under([*within, binary("==", old, value)], share)
            self.sums.add(self.step.before, Share(tuple(indices), part, {}))

    def extreme_scatter_terms(self) -> Iterator[Term]:
        """A ``min`` or ``max`` into elements that data choose."""
        statement, left = self.step.statement, self.writer.left()
        if not _exact(statement.rhs, self.step.lets) or not self._kept_terms():
            raise ArgumentError(
                f"'{statement.target}' is the {statement.op} of computed terms, into elements "
                "that data select: its gradient cannot be derived; store the terms in a "
                "separate output"
            )
        term = self.writer.tree(statement.rhs)
        is_best = binary("==", term, self.sums.forward.read(self.step.after, left))
        ties = self._fresh("_ties")
        self.sums.emit_zeros(ties, statement.target)
        ranges = self._ranges()
        one = ast.Select(is_best, number(1), number(0), NOWHERE)
        self.sums.statements.append(assign(ties, left, "+=", one, ranges_of(ranges)))
        yield from self.propagation.terms(
            statement.rhs, over(self.seed, apply(ties, *left)), (is_best,)
        )

    def product_terms(self) -> Iterator[Term]:
        """A product over indices: each term has the product of the others. That is all of it by the
        term, unless a term is 0: then only that term has any, and none has if two are 0."""
        statement = self.step.statement
        term, _ = self._terms_tensor()
        indices = self._renamed(statement.indices)
        is_zero, is_not = binary("==", term, number(0)), binary("!=", term, number(0))
        zeros = self._emit(
            self._fresh("_zeros"),
            indices,
            "+=!",
            ast.Select(is_zero, number(1), number(0), term.span),
        )
        rest = self._emit(
            self._fresh("_rest"),
            indices,
            "*=!",
            ast.Select(is_not, term, number(1), term.span),
        )
        whole = times(self.seed, rest)
        if self.step.keeps_value:
            old = self.sums.forward.read(self.step.before, self.own)
            if self.step.before in self.active:
                within = written_conditions(self.sums.forward.formulas, self.step, indices)
                part = under([*within, binary("==", zeros, number(0))], whole)
                self.sums.add(self.step.before, Share(tuple(indices), part, {}))
            whole = times(whole, old)
        rhs = statement.rhs
        one_zero, no_zero = binary("==", zeros, number(1)), binary("==", zeros, number(0))
        yield from self.propagation.terms(rhs, over(whole, term), (no_zero,))
        yield from self.propagation.terms(rhs, whole, (one_zero, is_zero))

    def _value_again(self, indices: list[str], term: ast.Expr, old: ast.Expr | None) -> ast.Expr:
        """The result of a reduction, of the terms that were stored."""
        target, op = self._fresh(""), self.step.statement.op
        if old is not None:
            self._emit(target, indices, "=", old)
        bang = "" if old is not None else "!"
        return self._emit(target, indices, f"{op}={bang}", term)

    def _terms_tensor(self) -> tuple[ast.Expr, bool]:
        """The terms of a reduction, and whether they are stored in a tensor of their own: what is
        compared has to be the same number wherever it is computed."""
        statement = self.step.statement
        value = self.writer.tree(statement.rhs)
        if _exact(statement.rhs, self.step.lets):
            return value, False
        target = self._fresh("_terms")
        indices = self._renamed(statement.all_indices)
        self._emit(target, indices, "=", of_type(statement.rhs.type.name, value))
        return apply(target, *map(name, indices)), True

    def _emit(self, target: str, indices: list[str], op: str, value: ast.Expr) -> ast.Expr:
        """A statement over a step's points, or its results; an element of what it makes."""
        ranges = self._ranges()
        if not op.endswith("!") and op == "=" and len(indices) < len(ranges):
            ranges = {i: ranges[i] for i in indices}
        self.sums.statements.append(assign(target, indices, op, value, ranges_of(ranges)))
        return apply(target, *map(name, indices))

    def _kept_terms(self) -> bool:
        """Whether the terms of a reduction are what they were in the forward pass: a sum that is
        computed again may be rounded otherwise, and equal nothing that was kept."""
        read = {self.step.version(r.tensor) for r in reads(self.step.statement)}
        return not self.step.keeps_value and all(
            self.sums.forward.is_kept(version) for version in read
        )

    def _fresh(self, suffix: str) -> str:
        """The name of a tensor beside the result."""
        return self.sums.forward.names.fresh(f"{self.step.statement.target}{suffix}")

    def _renamed(self, indices: Iterable[str]) -> list[str]:
        return [self.writer.renamed.get(i, i) for i in indices]

    def _ranges(self) -> dict[str, Range]:
        return {self.writer.renamed.get(i, i): r for i, r in self.step.ranges.items()}


def written_conditions(formulas: Formulas, step: Step, indices: Sequence[str]) -> list[ast.Expr]:
    """The conditions under which an element of its target is one that a step writes."""
    box = formulas.boxes[step.statement.target]
    ranges = (step.ranges[i] for i in step.statement.indices)
    cases = zip(indices, ranges, box, strict=True)
    return [each for index, range_, axis in cases for each in _in_range(index, range_, axis)]


def _in_range(index: str, range_: Range, axis: Range) -> list[ast.Expr]:
    """The conditions under which an index of a tensor is one that a statement writes."""
    (first, stop), (low, high) = range_, axis
    found = [] if first == low else [binary(">=", name(index), poly_tree(first))]
    return found if stop == high else [*found, binary("<", name(index), poly_tree(stop))]


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


@dataclass(frozen=True, slots=True)
class Quotient:
    """A quotient that is known where conditions hold."""

    factors: Product
    conditions: Conditions
    there: ast.Expr


def known_quotients(step: Step, steps: Iterable[Step], forward: Forward) -> list[Quotient]:
    """Quotients that the derived def is given, as read at the points of a step:
    ``exp(X(n, d) - m(n)) / total(n)`` is the softmax itself."""
    found = []
    for other in steps:
        statement = other.statement
        rhs, writer = statement.rhs, forward.writer(other)
        conditions: tuple[ast.Expr, ...] = ()
        if isinstance(rhs, c.Select):
            conditions, rhs = (writer.tree(rhs.condition),), rhs.then
        if statement.op != "=" or not (isinstance(rhs, c.Binary) and rhs.op == "/"):
            continue
        known = all(forward.is_kept(other.version(r.tensor)) for r in reads(statement))
        alike = all(step.ranges.get(i) == other.ranges[i] for i in statement.indices)
        plain = not forward.renamed(other) and rhs.type.bits != 16
        if known and alike and plain and other.whole and forward.is_kept(other.after):
            there = forward.read(other.after, [name(i) for i in statement.indices])
            found.append(Quotient(Product.of(writer.tree(rhs)), conditions, there))
    return found


def with_quotients(term: Term, known: list[Quotient]) -> ast.Expr:
    """A term's value with quotients that are known in the place of what they are."""
    value = term.value
    for quotient in known:
        rest = Product.of(value).without(quotient.factors)
        if rest is not None and {*quotient.conditions} <= {*term.conditions}:
            value = replace(rest, above=(*rest.above, quotient.there)).tree()
    return value


@dataclass(frozen=True, slots=True)
class Backward:
    """Writes the statements of the backward pass."""

    steps: list[Step]
    forward: Forward
    active: frozenset[Version]
    """What depends on the inputs whose gradients are asked for."""
    seeds: dict[str, str]
    """Output → the input that holds its gradient."""
    sums: GradientSums

    def run(self) -> None:
        """All statements, last to first; then the gradients of inputs are all of their shares."""
        for output, seed in self.seeds.items():
            version = output, self.forward.final[output]
            if version in self.active:
                box = self.forward.formulas.boxes[output]
                indices = self.forward.names.indices(len(box))
                value = apply(seed, *from_first([name(i) for i in indices], box))
                self.sums.add(version, Share(tuple(indices), value, {}))
        for step in reversed(self.steps):
            if step.after in self.sums.shares:
                self._backward_step(step)

    def _backward_step(self, step: Step) -> None:
        writer = self.forward.writer(step)
        gradient = self.sums.gradient(
            step.after, self.sums.adjoint_name(step.after), inline=self._goes_on(step)
        )
        own = writer.left()
        seed = gradient(own)
        if step.keeps and step.before in self.active:
            self._pass_on_kept(step, gradient)
        propagation = Propagation(
            writer.tree, step.lets, lambda read: step.version(read.tensor) in self.active
        )
        # All of them, before anyone asks who reads what.
        of = Adjoint(step, writer, propagation, seed, own, self.sums, self.active)
        terms = list(self._terms(of))
        by_read: dict[c.Read, list[Term]] = {}
        quotients = known_quotients(step, self.steps, self.forward)
        for term in terms:
            value = with_quotients(term, quotients)
            by_read.setdefault(term.read, []).append(replace(term, value=value))
        for read, its in by_read.items():
            ReadShares(step, writer, self.sums).add(read, its)

    def _goes_on(self, step: Step) -> bool:
        """Whether what is read gets its gradient at the same points, where nothing is summed."""
        everything = {*step.statement.all_indices}
        return all(
            everything <= {s.name for s in read.subscripts if isinstance(s, c.Index)}
            for read in reads(step.statement)
            if step.version(read.tensor) in self.active
        )

    def _terms(self, of: Adjoint) -> Iterator[Term]:
        """What the reads of a step get."""
        step, statement = of.step, of.step.statement
        match statement.op:
            case "=" | "+":
                terms = of.propagation.terms(statement.rhs, of.seed, self._where_used(of))
                if statement.op == "=" and step.whole and _worth_reading(statement.rhs):
                    terms = self._reusing(terms, of)
                yield from terms
            case "min" | "max" if statement.place is not None:
                yield from of.extreme_scatter_terms()
            case "min" | "max":
                yield from of.extreme_terms()
            case _ if statement.place is not None:
                raise ArgumentError(
                    f"'{statement.target}' is a product of terms, into elements that data "
                    "select: its gradient cannot be derived"
                )
            case _:
                yield from of.product_terms()

    def _where_used(self, of: Adjoint) -> Conditions:
        """A name that was stored has values, infinite ones too, where no condition lets it be used:
        what it reads gets nothing there, not 0 * inf."""
        if of.step.statement.target in self.forward.formulas.checked.tensors:
            return ()
        return (binary("!=", of.seed, number(0)),)

    def _reusing(self, terms: Iterator[Term], of: Adjoint) -> Iterator[Term]:
        """The terms with what the statement computed read where it is known, not computed again."""
        after, value = of.step.after, of.writer.tree(of.step.statement.rhs)
        for term in terms:
            if self.forward.is_kept(after) and value in walk.walk(term.value):
                there = self.forward.read(after, of.own)
                found = rebuilt(term.value, lambda n, t=there: t if n == value else n)  # type: ignore[misc]
                yield replace(term, value=found)
            else:
                yield term

    def _pass_on_kept(self, step: Step, gradient: Reading) -> None:
        """What the target held and still holds passes its gradient on."""
        statement = step.statement
        renamed = self.forward.renamed(step)
        indices = [renamed.get(i, i) for i in statement.indices]
        if statement.place is not None:
            indices = self.forward.names.indices(len(statement.axes))
            if statement.op != "+":
                raise ArgumentError(
                    f"'{statement.target}' is reduced by {statement.op}= into elements that "
                    "data select, and keeps its earlier values: its gradient cannot be "
                    "derived; use a reduction with !, in a separate tensor"
                )
        value = gradient([name(i) for i in indices])
        if statement.op != "+":  # assigned or reduced: only what is outside is as it was
            within = written_conditions(self.forward.formulas, step, indices)
            outside = [opposite(each, of_integers=True) for each in within]
            if not outside:
                return
            condition = outside[0]
            for each in outside[1:]:
                condition = binary("||", condition, each)
            value = under([condition], value)
        self.sums.add(step.before, Share(tuple(indices), value, {}))


def _worth_reading(rhs: c.Expr) -> bool:
    """Whether a value is better read than computed again: more than a few operations."""
    if rhs.type.bits == 16:
        return False  # rounded where it is stored
    return isinstance(rhs, c.Call) or (isinstance(rhs, c.Binary) and rhs.op == "/")
