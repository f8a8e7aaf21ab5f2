"""Integer arithmetic that is done in a narrow type and widened when it is too late.

``-> (int32(M, N) C) { C(m, n) +=! A(m, k) * B(k, n) }`` multiplies in the type of ``A`` and ``B``:
for int8 the products wrap, and what is summed in int32 is wrong. A cast that is written says that
this is meant; one that the language puts in does not. Likewise ``X(i) * (1 / N)``: the quotient is
an integer, which is 0. And ``Key(n) % B``, of a uint32: indices and sizes are int32, as which what
is large is negative. And ``(X(i) + Y(i)) / 2``: the quotient has room in the type, the sum has not.

Floats are left alone, but for numbers that no tensor of floats gives a type: in ``s * X(n) where
s = 0.1``, ``sqrt(3.0) * X(n)`` and ``I(n) / 3.0 * X(n)`` of float64, they are rounded to float32
first. So they are in ``float64(0.1 * n)``, where a cast that is written does not mean it: only
``float64(float32(0.1 * n))`` does. The 16-bit ones are computed in float32 anyway, and what is too
large for float32 becomes inf, which nobody takes for a result.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, TypeGuard

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.intervals import Bounds, either, operation, within
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, INT32, INT64, Kind, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import (
    children,
    evaluated,
    index_lets,
    is_index_arithmetic,
    made_of_indices,
    walk,
)

_LARGEST_INDEX = 2**16
"""An index or a size is taken to be no larger. What is made of these alone is checked for the sizes
of a call (``tcl.grammar.ranges.intervals``)."""

_Operation: TypeAlias = c.Unary | c.Binary
_MOST_SHOWN = 200
"""Characters of an expression that a message writes anew; of a longer one it shows the start."""

_ORDERS = ("<", "<=", ">", ">=")
_NOUNS = {"*": "product", "+": "sum", "-": "difference", "/": "quotient", "%": "remainder"}


def late_widenings(
    statement: c.Statement,
    source: Source,
    meant: Collection[Span],
    cut: Mapping[Span, Span],
    before: Sequence[c.Statement] = (),
) -> Iterator[Diagnostic]:
    """A warning for each expression that can wrap before the language widens it, or before it is
    divided. ``meant``: what a cast that is written gives the type that it has; ``cut``: quotients
    of literals that are no integers, and their dividends; ``before``: statements before it."""
    lets = {let.name: let.value for let in statement.lets}
    nodes = [node for expr in evaluated(statement) for node in walk(expr)]
    asked = [n for n in nodes if isinstance(n, c.Binary) and n.op in (*_ORDERS, "!=", "==")]
    compared = {frozenset((n.left, n.right)) for n in asked if n.op in _ORDERS}
    constants = {n.left for n in asked if isinstance(n.right, c.Const)}
    largest = {s.target for s in before if "max" in (s.op, getattr(s.rhs, "op", ""))}
    work = _Widening(lets, index_lets(lets), source, meant, cut, compared, constants, largest)
    for expr in evaluated(statement):
        yield from work.below(expr, f" of '{statement.target}'" if expr is statement.rhs else "")


def narrow_sums(
    statement: c.Statement, source: Source, meant: Collection[Span]
) -> Iterator[Diagnostic]:
    """A warning, if a sum that has the type of its terms can leave the 8 or 16 bits of these."""
    rhs, type_ = statement.rhs, statement.rhs.type
    if statement.op != "+" or not statement.reduction or not type_.is_integral or type_.bits > 16:
        return
    lets = {let.name: let.value for let in statement.lets}
    work = _Widening(lets, (), source, meant)
    low, high = work._bounds(rhs)
    times = _points(statement)
    if rhs.span in meant or (times is not None and within((times * low, times * high), type_)):
        return
    remedies = work._remedies(rhs, work._wrapping(rhs, INT32), INT32)
    yield Diagnostic(
        f"the sum '{statement.target}' has the type of its terms, {type_}, and wraps beyond "
        f"{type_.limits[0]} to {type_.limits[1]}; {remedies}",
        statement.span,
        section=Section.REDUCTIONS,
    )


def summed_in(statement: c.Statement, source: Source, to: ScalarType) -> str:
    """What to write for the value of a statement, so that it is computed in type ``to``."""
    work = _Widening({let.name: let.value for let in statement.lets}, (), source, ())
    return work._in_type(statement.rhs, work._wrapping(statement.rhs, to), to)[1]


def _points(statement: c.Statement) -> int | None:
    """How many terms a sum has, if only constants decide it."""
    found = 1
    ranges = {each.index: each for each in statement.ranges}
    for index in statement.reduction:
        match ranges.get(index):
            case c.Range(start=c.Const(value=start), stop=c.Const(value=stop)):
                found *= max(0, int(stop) - int(start))
            case _:
                return None
    return found


@dataclass(slots=True)
class _Widening:
    lets: Mapping[str, c.Expr]
    index_lets: Collection[str]
    source: Source
    meant: Collection[Span]
    cut: Mapping[Span, Span] = field(default_factory=dict)
    compared: Collection[frozenset[c.Expr]] = ()
    """What is compared with what."""
    asked: Collection[c.Expr] = ()
    """What is compared with constants."""
    largest: Collection[str] = ()
    """Tensors whose elements are the larger of some values."""
    reported: set[Span] = field(default_factory=set)
    known: dict[int, Bounds] = field(default_factory=dict)
    """Bounds of the expressions looked at so far, by identity."""
    let_bounds: dict[str, Bounds] = field(default_factory=dict)

    def below(self, expr: c.Expr, of: str) -> Iterator[Diagnostic]:
        """What is wrong in a value. ``of``: whose type it is given, if it is a tensor's."""
        if isinstance(expr, c.Read):  # subscripts are exact
            return
        if isinstance(expr, c.Cast):
            if expr.span == expr.operand.span:
                yield from self._widened(expr.operand, expr.type, of)
            elif expr.operand.type.kind is Kind.UINT and expr.type.kind is not Kind.UINT:
                before = f"it is cast to {expr.type}"
                yield from self._too_early(expr.operand, before, "-", expr.type)
            if (expr.operand.type, expr.type) == (FLOAT32, FLOAT64):  # also one that is written
                yield from self._rounded(expr.operand)
        if isinstance(expr, c.Const) and expr.type.is_float:
            for span, left in self.cut.items():
                if expr.span.start <= span.start and span.end <= expr.span.end:
                    yield from self._cut(span, left)
        if isinstance(expr, c.Binary):
            yield from self._made_signed(expr)
            yield from self._divided(expr)
            yield from self._compared(expr)
        for child in children(expr):
            yield from self.below(child, "")

    def _rounded(self, expr: c.Expr) -> Iterator[Diagnostic]:
        """What is wrong with a number that is rounded to float32 before it becomes a float64."""
        parts = list(self._parts(expr))
        for part in parts:
            cast = isinstance(part, c.Cast) and part.span != part.operand.span
            if cast or part.span in self.meant:
                return
            if isinstance(part, c.Read) and part.type.is_float:
                return
        # A wider quotient of a literal that is rounded would keep what the literal lost.
        for part in sorted(filter(_is_rounded, parts), key=lambda p: not isinstance(p, c.Const)):
            leaf = next(
                p
                for p in self._parts(part)
                if isinstance(p, c.Read) or not (children(p) or isinstance(p, c.LetRef))
            )
            if leaf.span in self.reported:
                return
            self.reported.add(leaf.span)
            text = self.source.one_line(leaf.span)
            yield Diagnostic(
                f"this is computed in float32, and then widened to float64; write float64({text}) "
                f"for {text}",
                expr.span,
                section=Section.LITERALS,
            )
            return

    def _parts(self, expr: c.Expr) -> Iterator[c.Expr]:
        """A value and its parts, but subscripts; those of each name that it uses, once."""
        parts, lets = [expr], dict(self.lets)
        for part in parts:  # which grow
            yield part
            parts += () if isinstance(part, c.Read) else children(part)
            if isinstance(part, c.LetRef):
                parts += filter(None, [lets.pop(part.name, None)])

    def _made_signed(self, expr: c.Binary) -> Iterator[Diagnostic]:
        """What is wrong with unsigned values that meet an index or a size."""
        if expr.op not in _NOUNS:
            return
        for value, other in ((expr.left, expr.right), (expr.right, expr.left)):
            type_ = self._was_unsigned(value) if _of_indices(other) else None
            if type_ is None:
                continue
            better = f"{type_}({self.source.one_line(other.span)})"
            if isinstance(value, c.Cast):
                meant = f"{value.type}({self.source.one_line(value.span)})"
                better += f", or {meant} if this is meant"
            yield Diagnostic(
                f"this {_NOUNS[expr.op]} is computed in {expr.type}, where large values of "
                f"{type_} become negative; write {better}",
                expr.span,
                section=Section.ARITHMETIC,
            )

    def _was_unsigned(self, expr: c.Expr) -> ScalarType | None:
        """The type of 32 bits or more that the language made signed in this value, if values of it
        can be too large for that."""
        match expr:
            case c.Cast(operand=operand, type=type_) if expr.span == operand.span:
                wide = operand.type.kind is Kind.UINT and operand.type.bits >= 32
                fits = not wide or not type_.is_integral or within(self._bounds(operand), type_)
                return None if fits else operand.type
            case c.Binary(op=op, left=left, right=right) if op in _NOUNS:
                values = [
                    value
                    for value in (left, right)
                    if not (isinstance(value, c.Const) or _of_indices(value))
                ]
                found = [self._was_unsigned(value) for value in values]
                return found[0] if found and None not in found else None
            case _:
                return None

    def _widened(self, expr: c.Expr, to: ScalarType, of: str) -> Iterator[Diagnostic]:
        """What is wrong with making this value one of a wider type."""
        if to.is_float:
            for root in self._roots(expr, remainders=False):
                yield from self._cut_quotients(root)
        for root in self._roots(expr):
            found = self._wrapping(root, to)
            if found and root.span not in self.reported:
                self.reported.update((root.span, *(n.span for n in found)))
                where = f"the {to}{of}" if of and root is expr else to
                remedies = self._remedies(root, found, to)
                yield _wraps_before(found[0], f"and then widened to {where}; {remedies}")

    def _roots(self, expr: c.Expr, *, remainders: bool = True) -> Iterator[c.Expr]:
        """A value, and those of the names that it uses, each computed in a type of its own.
        ``remainders``: also names of what a remainder is taken."""
        roots, seen = [expr], set[str]()
        while roots:
            root = roots.pop()
            yield root
            for node in self._region(root, remainders=remainders):
                if isinstance(node, c.LetRef) and node.name not in seen:
                    seen.add(node.name)
                    roots.append(self.lets[node.name])

    def _divided(self, expr: c.Binary) -> Iterator[Diagnostic]:
        """What is wrong with a dividend of 8 bits that wraps, if the quotient would fit. One of 16
        bits is often given these as room for values of 8 or 12."""
        type_ = expr.type
        if expr.op != "/" or not type_.is_integral or type_.bits > 8:
            return
        if not within(operation("/", self._unwrapped(expr.left), self._bounds(expr.right)), type_):
            return
        yield from self._too_early(expr.left, "it is divided", "+-*")

    def _compared(self, expr: c.Binary) -> Iterator[Diagnostic]:
        """What is wrong with unsigned differences of which the larger is taken, or which 0 is asked
        to be more or less than: a negative one wraps to a large number."""
        sides, type_ = (expr.left, expr.right), expr.left.type
        zero = expr.op in _ORDERS and any(isinstance(s, c.Const) and s.value == 0 for s in sides)
        if type_.kind is not Kind.UINT or not (zero or expr.op == "max"):
            return
        what = "it is compared with 0" if zero else "the larger value is taken"
        for side in sides:
            yield from self._too_early(side, what, "-", INT32 if type_.bits < 32 else INT64)

    def _too_early(
        self, expr: c.Expr, before: str, ops: str, to: ScalarType = INT32
    ) -> Iterator[Diagnostic]:
        """What is wrong with a value in which some of these operations wrap."""
        for root in self._roots(expr):
            wraps = self._wrapping(root, to)
            found = [n for n in wraps if n.op in ops and n.span not in self.reported]
            self.reported.update(n.span for n in found)
            if found:
                remedies = self._remedies(root, found, to)
                yield _wraps_before(found[0], f"before {before}; {remedies}")

    def _unwrapped(self, expr: c.Expr) -> Bounds:
        """Bounds of what would be, if no sum, difference or product in a value wrapped."""
        match expr:
            case c.Binary(op="+" | "-" | "*" as op) if expr.span not in self.meant:
                return operation(op, self._unwrapped(expr.left), self._unwrapped(expr.right))
            case _:
                return self._before_wrapping(expr)

    def _cut_quotients(self, expr: c.Expr) -> Iterator[Diagnostic]:
        """What is wrong with the quotients of integers in a value of which a float is made. Of an
        index, such as ``i / 2``, one may be meant; not by a size. Where a remainder is taken of it,
        as of a place in a row of rows, ``p / 15 % 15``, one is meant."""
        for node in self._region(expr, remainders=False):
            if not (isinstance(node, c.Binary) and node.op == "/" and node.type.is_integral):
                continue
            by_size = isinstance(node.right, c.Size | c.Dimension)
            if by_size or not is_index_arithmetic(node, self.index_lets):
                yield from self._cut(node.span, node.left.span)

    def _cut(self, span: Span, left: Span) -> Iterator[Diagnostic]:
        """What is wrong with a quotient of integers as a float. ``left``: its dividend."""
        if span in self.reported:
            return
        self.reported.add(span)
        text, one = (self.source.one_line(each) for each in (span, left))
        better = text.replace(one, f"{one}.0" if one.isdigit() else f"float({one})", 1)
        yield Diagnostic(
            "this quotient of integers is cut to an integer before a float is made of it; write "
            f"{better}, or float({text}) if it is meant to be cut",
            span,
            section=Section.ARITHMETIC,
        )

    def _region(self, expr: c.Expr, *, remainders: bool = True) -> Iterator[c.Expr]:
        """``expr`` and what is computed in its type for it, parents first. ``remainders``: also
        that of which a remainder is taken."""
        stack = [expr]
        while stack:
            node = stack.pop()
            if node.span in self.meant:
                continue
            yield node
            match node:
                case c.Unary(operand=operand):
                    stack.append(operand)
                case c.Binary(op=op, left=left, right=right) if left.type == node.type:
                    stack += (right, left) if op != "%" or remainders else (right,)
                case c.Select(then=then, otherwise=otherwise):
                    stack += (otherwise, then)
                case _:
                    pass

    def _wrapping(self, expr: c.Expr, to: ScalarType) -> list[_Operation]:
        """What can wrap in a value, and would do no harm in type ``to``."""
        return [node for node in self._region(expr) if self._wraps(node, to)]

    def _wraps(self, expr: c.Expr, to: ScalarType) -> TypeGuard[_Operation]:
        """Whether an operation can leave its type, and would do no harm in type ``to``."""
        if not isinstance(expr, _Operation) or expr.op not in ("+", "-", "*"):
            return False
        type_ = expr.type
        if not type_.is_integral or is_index_arithmetic(expr, self.index_lets):
            return False
        if type_.kind is Kind.UINT and self._guarded(expr):
            return False
        if to.is_float:  # an int32 of which a float is made is as good as the float
            wider = type_.bits < 32 or (type_.bits == 32 and expr.op == "*")
        else:
            wider = to.is_integral and to.bits > type_.bits
        return wider and not within(self._before_wrapping(expr), type_)

    def _guarded(self, expr: _Operation) -> bool:
        """Whether this is a difference of values of which the def asks which is larger, or of which
        the first one is the largest of an earlier statement, or more than a part of itself."""
        match expr:
            case c.Binary(op="-", left=c.Read(tensor=name)) if name in self.largest:
                return True
            case c.Binary(op="-", left=left, right=c.Binary(op="%" | "/", left=whole)):
                return left == whole
            case c.Binary(op="-", left=left, right=c.Const()):
                return left in self.asked
            case (
                c.Binary(op="-", left=c.Binary(op="max"))
                | c.Binary(op="-", right=c.Binary(op="min"))
            ):
                return True
            case c.Binary(op="-", left=left, right=right):
                return frozenset((left, right)) in self.compared
        return False

    def _remedies(self, root: c.Expr, wrapping: list[_Operation], to: ScalarType) -> str:
        """What to write for a value, so that it is computed in type ``to``, or meant to wrap."""
        text, better = self._in_type(root, wrapping, to)
        return f"write {better}, or {root.type}({text}) if it is meant to wrap"

    def _in_type(self, root: c.Expr, wrapping: list[_Operation], to: ScalarType) -> tuple[str, str]:
        """A value, shortened, and what to write for it, so that it is computed in type ``to``."""
        text = better = self.source.text[root.span.start : root.span.end]
        operands = sorted(_operands_to_widen(root, [n.span for n in wrapping]), reverse=True)
        for span in operands:
            start, end = span.start - root.span.start, span.end - root.span.start
            better = f"{better[:start]}{to}({better[start:end]}){better[end:]}"
        text, better = " ".join(text.split()), " ".join(better.split())
        if len(better) > _MOST_SHOWN:
            operand = self.source.text[operands[-1].start : operands[-1].end]
            text, better = "...", f"{to}({operand}) for {operand}"
            better += ", and likewise for the others" if len(operands) > 1 else ""
        return text, better

    # --- values that occur ---

    def _bounds(self, expr: c.Expr) -> Bounds:
        """Bounds of an integer value, after wrapping."""
        if id(expr) not in self.known:
            found = self._before_wrapping(expr)
            self.known[id(expr)] = found if within(found, expr.type) else expr.type.limits
        return self.known[id(expr)]

    def _before_wrapping(self, expr: c.Expr) -> Bounds:
        """Bounds of an integer value before it wraps, if it does; its operands may have."""
        match expr:
            case c.Const(value=value):
                return int(value), int(value)
            case c.Index():
                return -_LARGEST_INDEX, _LARGEST_INDEX
            case c.Size() | c.Dimension():
                return 0, _LARGEST_INDEX
            case c.LetRef(name=name):
                if not self.let_bounds:  # in order, so that no chain of them is followed
                    for let, bound in self.lets.items():
                        if bound.type.is_integral:
                            self.let_bounds[let] = self._bounds(bound)
                return self.let_bounds[name]
            case c.Unary(op="-", operand=operand):
                low, high = self._bounds(operand)
                return -high, -low
            case c.Cast(operand=operand) if operand.type.is_integral:
                return self._bounds(operand)
            case c.Cast(operand=operand) if operand.type.is_bool:
                return operand.type.limits
            case c.Select(then=then, otherwise=otherwise):
                return either(self._bounds(then), self._bounds(otherwise))
            case c.Binary(op=op, left=left, right=right):
                return operation(op, self._bounds(left), self._bounds(right))
            case _:
                return expr.type.limits


def _wraps_before(expr: _Operation, what: str) -> Diagnostic:
    """A warning of an operation that can wrap before something is done with its value."""
    noun = _NOUNS[expr.op] if isinstance(expr, c.Binary) else "negation"
    message = f"this {noun} is computed in {expr.type}, where it can wrap, {what}"
    return Diagnostic(message, expr.span, section=Section.ARITHMETIC)


def _is_rounded(expr: c.Expr) -> bool:
    """Whether an operation on float32 numbers, or a literal of this type, is not exact."""
    match expr:
        case c.Const(value=float(value), type=type_) if type_ == FLOAT32:
            return ctypes.c_float(value).value != value
        case c.Binary(op="/", right=right, type=type_) if type_ == FLOAT32:
            return not (
                isinstance(right, c.Const) and abs(math.frexp(float(right.value))[0]) == 0.5
            )
        case c.Call(name="log", arguments=(c.Const(value=0.0),)):
            return False
        case c.Call():
            return True
        case _:
            return False


def _of_indices(expr: c.Expr) -> bool:
    """Whether a value is made of indices and sizes, and no cast says which type is meant."""
    if isinstance(expr, c.Cast) and expr.span == expr.operand.span:
        expr = expr.operand
    parts = list(walk(expr))
    if not any(isinstance(part, c.Index | c.Size | c.Dimension) for part in parts):
        return False
    return made_of_indices(expr, ()) and not any(isinstance(part, c.Cast) for part in parts)


def _operands_to_widen(expr: c.Expr, wrapping: Collection[Span]) -> list[Span]:
    """The smallest parts to cast so that everything that can wrap is computed in the wider type."""

    def can_wrap(part: c.Expr) -> bool:
        return any(part.span.start <= s.start and s.end <= part.span.end for s in wrapping)

    match expr:
        case c.Unary(operand=operand):
            return _operands_to_widen(operand, wrapping)
        case c.Binary(left=left, right=right):
            parts = [part for part in (left, right) if can_wrap(part)]
            if not parts:
                parts = [right if isinstance(left, c.Const) else left]
        case c.Select(then=then, otherwise=otherwise):
            parts = [part for part in (then, otherwise) if can_wrap(part)]
            if not parts:  # an operand of what can wrap, which cannot itself
                return [expr.span]
        case _:
            return [expr.span]
    return [span for part in parts for span in _operands_to_widen(part, wrapping)]
