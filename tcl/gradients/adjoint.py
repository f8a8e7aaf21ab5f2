"""A step of the backward pass, and what the terms of a ``min``, ``max`` or product get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.forward import Writer, assign, ranges_of
from tcl.gradients.gradient_sums import GradientSums, Share
from tcl.gradients.polynomials import Range, poly_tree
from tcl.gradients.propagate import Propagation, Term
from tcl.gradients.ranges import Formulas
from tcl.gradients.terms import under
from tcl.gradients.trees import NOWHERE, apply, binary, name, number, of_type, over, times
from tcl.gradients.versions import Step, Version
from tcl.grammar.syntax import ast
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
