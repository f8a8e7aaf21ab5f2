"""The backward pass: from the last statement to the first, what each read gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.adjoint import Adjoint, written_conditions
from tcl.gradients.forward import Forward, from_first
from tcl.gradients.gradient_sums import GradientSums, Reading, Share
from tcl.gradients.propagate import Conditions, Propagation, Term
from tcl.gradients.read_shares import ReadShares
from tcl.gradients.terms import under
from tcl.gradients.trees import Product, apply, binary, name, opposite, rebuilt
from tcl.gradients.versions import Step, Version
from tcl.grammar.syntax import ast, walk
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads


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
                terms = of.propagation.terms(statement.rhs, of.seed)
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
