"""Names and types of expressions: AST → checked expressions.

Every method returns None after noting a problem, and passes a None it receives on in silence,
so that one mistake gives one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import assert_never

from tcl.common.closest import closest_few
from tcl.common.dataclass import dataclass
from tcl.common.number_format import plural
from tcl.grammar.check import literals
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.scope import DefScope, recurrence
from tcl.grammar.syntax import ast
from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Span
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree import checked as c

_ORDERS = frozenset({"<", "<=", ">", ">="})
_COMPARISONS = _ORDERS | {"==", "!="}


_COMPARED = "compare it: x != 0"
_JOINED = "=! assigns a logical not; write =, or +=! *=! min=! max=! to reduce"


@dataclass(slots=True)
class ExprChecker:
    scope: DefScope
    bound: frozenset[str] = frozenset()
    """Names that are index variables whatever else: those on the left and those of ranges."""
    usable: frozenset[str] = frozenset()
    """Further names that some subscript or range uses, and that may therefore be indices."""
    in_range: bool = False
    """Checking the bounds of a range, which are made of sizes."""
    writing: ast.Assign | None = None
    """The statement, while what it evaluates is checked: not what only bounds indices."""
    lets: dict[str, ScalarType | None] = field(default_factory=dict)
    indices: dict[str, Span] = field(default_factory=dict)
    """Index variables seen so far, in order of appearance."""

    def typed(self, expr: ast.Expr) -> c.Expr | None:
        """The checked expression; literals may still be weak."""
        match expr:
            case ast.Number(value=value, span=span):
                return c.Const(value, t.WEAK_INT if isinstance(value, int) else t.WEAK_FLOAT, span)
            case ast.Name():
                return self._named(expr)
            case ast.Apply():
                builtin = expr.name in BUILTINS and not self.scope.is_tensor(expr.name)
                return self._builtin(expr) if builtin else self._tensor_read(expr)
            case ast.Dimension():
                return self._dimension(expr)
            case ast.Unary():
                return self._unary(expr)
            case ast.Binary():
                return self._binary(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Cast():
                return self._cast(expr)
            case _:
                assert_never(expr)

    def subscript(self, expr: ast.Expr) -> c.Expr | None:
        """A checked integer expression."""
        value = self.typed(expr)
        return None if value is None else self.as_integer(value, "a subscript")

    def as_integer(self, value: c.Expr, what: str) -> c.Expr | None:
        """The integer that a checked expression has to be, with a concrete type."""
        if not value.type.is_integral:
            return self._problem(
                value.span,
                f"{what} has to be an integer, found {value.type}; cast it with int32()",
                Section.SUBSCRIPTS,
            )
        return literals.settle(value)

    def _problem(self, span: Span, message: str, section: Section) -> c.Expr | None:
        """Note a problem; the None that stands for an expression with one."""
        self.scope.refuse(span, message, section)
        return None

    def _named(self, expr: ast.Name) -> c.Expr | None:
        name, span, scope = expr.name, expr.span, self.scope
        if name in self.lets:
            type_ = self.lets[name]
            return None if type_ is None else c.LetRef(name, type_, span)
        if name in self.bound:
            self.indices.setdefault(name, span)
            return c.Index(name, span)
        if scope.is_tensor(name):
            return self._tensor_read(ast.Apply(name, (), span, span))
        if name in scope.sizes:
            if name not in scope.known_sizes:
                return self._problem(
                    span,
                    f"the size '{name}' is not known before its output is written",
                    Section.DEFS,
                )
            return c.Size(name, span)
        if name in BUILTINS and name not in self.usable:
            return self._problem(
                span, f"'{name}' is a built-in function; call it: {name}(x)", Section.FUNCTIONS
            )
        if name not in self.usable and self.in_range:
            close = "".join(f"; did you mean '{n}'?" for n in closest_few(name, scope.sizes, 1))
            remedy = close or "; ranges use only sizes and whole numbers" + _SIZES
            return self._problem(span, f"'{name}' is not a size{remedy}", Section.WHERE)
        if name not in self.usable:
            known = [[*scope.tensors(), *scope.sizes]]
            index = f"; or make it an index: where {name} in 0:{next(iter(scope.sizes), '...')}"
            index = index if len(name) < 3 and name.islower() else ""
            scope.undefined(name, span, f"name '{name}'", known, index=index)
            return None
        self.indices.setdefault(name, span)
        return c.Index(name, span)

    def _tensor_read(self, expr: ast.Apply) -> c.Expr | None:
        name, scope = expr.name, self.scope
        if name in self.lets or name in self.bound or (name in scope.sizes):
            return self._problem(
                expr.name_span,
                f"'{name}' is not a tensor and takes no subscripts",
                Section.SUBSCRIPTS,
            )
        tensor = (
            None if self._recurs(expr) else scope.readable(name, expr.name_span, expr.arguments)
        )
        if tensor is None:
            # It may be meant as a function or a call of a def, which takes whole tensors.
            for argument in expr.arguments:
                if not (isinstance(argument, ast.Name) and scope.is_tensor(argument.name)):
                    self.typed(argument)
            return None
        indices = f"({', '.join('ijkl'[: tensor.rank])}{', ...' if tensor.rank > 4 else ''})"
        example = name + (indices if tensor.rank else "")
        if not tensor.rank and name in scope.inputs:
            example += f", or give it sizes: {tensor.type}(N) {name}"
        subscripts = [self.subscript(a) for a in expr.arguments]
        if len(subscripts) != tensor.rank:
            return self._problem(
                expr.span,
                f"'{name}' has {plural(tensor.rank, 'dimension')} but is read with "
                f"{plural(len(subscripts), 'subscript')}; write {example}",
                Section.SUBSCRIPTS,
            )
        done = _all(subscripts)
        return None if done is None else c.Read(name, done, tensor.type, expr.span)

    def _recurs(self, expr: ast.Apply) -> bool:
        """Whether an element that is written would depend on another one: of the same tensor, or of
        one that is first assigned later, from this one. Notes the problem."""
        own, name, scope = self.writing, expr.name, self.scope
        if own is None or name not in scope.outputs or expr.arguments == own.indices:
            return False
        itself, known = name == own.target, name in scope.written
        if len(expr.arguments) != len(own.indices):
            return False  # which is said elsewhere
        if not itself and (known or not scope.needs(name, own.target)):
            return False
        before = (
            f"; to use the earlier values of '{name}', write to another output" if known else ""
        )
        scope.refuse(expr.span, recurrence(own.target) + before, Section.CUMSUM)
        return True

    def _builtin(self, expr: ast.Apply) -> c.Expr | None:
        arity = BUILTINS[expr.name]
        arguments = _all([self.typed(a) for a in expr.arguments])
        if len(expr.arguments) != arity:
            return self._problem(
                expr.span,
                f"{expr.name} takes {plural(arity, 'argument')}, found {len(expr.arguments)}",
                Section.FUNCTIONS,
            )
        if arguments is None:
            return None
        type_ = reduce(t.promote, (a.type for a in arguments))
        if not type_.is_float or type_.weak:
            type_ = t.FLOAT32
        converted = tuple(literals.converted(a, type_) for a in arguments)
        return c.Call(expr.name, converted, type_, expr.span)

    def _dimension(self, expr: ast.Dimension) -> c.Expr | None:
        name, scope = expr.tensor, self.scope
        if not scope.is_tensor(name):
            remedy = f"; '{name}' is a size: write {name}" if name in scope.sizes else ""
            scope.undefined(name, expr.span, f"tensor '{name}'", [scope.tensors()], remedy)
            return None
        if name not in scope.inputs and name not in scope.written:
            return self._problem(
                expr.span, f"the sizes of '{name}' are not known before it is written", Section.DEFS
            )
        tensor = scope.inputs.get(name) or scope.written.get(name)
        if tensor is None:
            return None
        if expr.axis >= tensor.rank:
            rank = plural(tensor.rank, "dimension")
            return self._problem(
                expr.span, f"'{name}' has {rank}; the first is {name}.0", Section.DEFS
            )
        return c.Dimension(name, expr.axis, expr.span)

    def _unary(self, expr: ast.Unary) -> c.Expr | None:
        operand = self.typed(expr.operand)
        if operand is None:
            return None
        if expr.op == "!":
            of = self.writing
            beside = of.op_span.end if of is not None and of.op == "=" else None
            if not self._is_bool(operand, _JOINED if beside == expr.span.start else _COMPARED):
                return None
            return c.Unary("!", operand, t.BOOL, expr.span)
        type_ = t.arithmetic(operand.type)
        operand = literals.converted(operand, type_)
        if operand.type.weak and isinstance(operand, c.Select):  # keep literals at the leaves
            operand = literals.settle(operand)
        return self._folded(c.Unary("-", operand, operand.type, expr.span))

    def _binary(self, expr: ast.Binary) -> c.Expr | None:
        left, right = self.typed(expr.left), self.typed(expr.right)
        if left is None or right is None:
            return None
        op, span = expr.op, expr.span
        if op in ("&&", "||"):
            if not (self._is_bool(left) & self._is_bool(right)):
                return None
            return c.Binary(op, left, right, t.BOOL, span)
        if op in _ORDERS and left.type.is_bool != right.type.is_bool:
            return self._problem(
                span,
                f"{op} compares a bool with a number here; comparisons cannot be chained: write "
                "a < b && b < c",
                Section.OPERATORS,
            )
        type_ = literals.meet(left, right)
        if op not in _COMPARISONS and op not in ("min", "max"):
            type_ = t.arithmetic(type_)
        if type_.weak and not (isinstance(left, c.Const) and isinstance(right, c.Const)):
            left, right = literals.settle(left), literals.settle(right)
            type_ = literals.meet(left, right)
        left, right = literals.converted(left, type_), literals.converted(right, type_)
        return self._folded(
            c.Binary(op, left, right, t.BOOL if op in _COMPARISONS else type_, span)
        )

    def _folded(self, expr: c.Unary | c.Binary) -> c.Expr | None:
        result = literals.fold(expr)
        if isinstance(result, str):
            return self._problem(expr.span, result, Section.ARITHMETIC)
        match expr:
            case c.Binary(op="/", left=c.Const(value=int(one)), right=c.Const(value=int(other))):
                if one % other:
                    self.scope.cut[expr.span] = expr.left.span
        return result

    def _select(self, expr: ast.Select) -> c.Expr | None:
        condition = self.typed(expr.condition)
        then, otherwise = self.typed(expr.then), self.typed(expr.otherwise)
        good = condition is not None and self._is_bool(condition)
        if condition is None or not good or then is None or otherwise is None:
            return None
        type_ = literals.meet(then, otherwise)
        then, otherwise = literals.converted(then, type_), literals.converted(otherwise, type_)
        return c.Select(condition, then, otherwise, type_, expr.span)

    def _cast(self, expr: ast.Cast) -> c.Expr | None:
        operand, type_ = self.typed(expr.operand), t.scalar_type(expr.type)
        if operand is None or operand.type == type_:
            self.scope.meant |= set[Span]() if operand is None else {operand.span}
            return operand
        if operand.type.weak and operand.type.is_float and type_ == t.FLOAT64:
            return c.Cast(literals.converted(operand, type_), type_, expr.span)  # rounded once
        return c.Cast(literals.settle(operand), type_, expr.span)

    def _is_bool(self, value: c.Expr, remedy: str = _COMPARED) -> bool:
        if value.type.is_bool:
            return True
        message = f"expected a boolean, found {value.type}; {remedy}"
        self._problem(value.span, message, Section.OPERATORS)
        return False


_SIZES = "; a size is a dimension of an input, as N of float(N) X and T.0 of a tensor T"


def _all(values: Sequence[c.Expr | None]) -> tuple[c.Expr, ...] | None:
    done = tuple(v for v in values if v is not None)
    return done if len(done) == len(values) else None
