"""Expressions of derived defs: made as a person would write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.source import Span

NOWHERE = Span(0, 0, 1, 1)
"""Where what is derived stands: it is printed, and parsed again."""

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def number(value: float) -> ast.Expr:
    """A literal; of a negative number the opposite of one."""
    if value < 0:
        return ast.Unary("-", ast.Number(-value, NOWHERE), NOWHERE)
    return ast.Number(value, NOWHERE)


def name(text: str) -> ast.Expr:
    """An index, a size or a scalar."""
    return ast.Name(text, NOWHERE)


def apply(function: str, *arguments: ast.Expr) -> ast.Expr:
    """A call of a built-in function, or an element of a tensor; of one without dimensions it."""
    if not arguments:
        return name(function)
    return ast.Apply(function, arguments, NOWHERE, NOWHERE)


def binary(op: str, left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """An operation as it stands."""
    return ast.Binary(op, left, right, NOWHERE)


def cast(type_: str, operand: ast.Expr) -> ast.Expr:
    return ast.Cast(type_, operand, NOWHERE)


@lru_cache(1024)
def expression_of(text: str) -> ast.Expr:
    statement = parse(f"def f() -> (O) {{ O = {text} }}").defs[0].statements[0]
    assert isinstance(statement, ast.Assign)
    return statement.rhs


def is_number(tree: ast.Expr, value: float) -> bool:
    """Whether this is a literal of that value."""
    return isinstance(tree, ast.Number) and tree.value == value


def is_literal(tree: ast.Expr) -> bool:
    """Whether the value is made of literals alone, so that it has the type of what it meets."""
    match tree:
        case ast.Number():
            return True
        case ast.Unary(operand=operand):
            return is_literal(operand)
        case ast.Binary(left=left, right=right):
            return is_literal(left) and is_literal(right)
        case ast.Select(then=then, otherwise=otherwise):
            return is_literal(then) and is_literal(otherwise)
        case _:
            return False


def of_type(type_: str, tree: ast.Expr) -> ast.Expr:
    """The value with this type, if it is made of literals: a cast would make them float32 first."""
    return times(tree, cast(type_, number(1))) if is_literal(tree) else tree


# --- arithmetic that leaves out what changes nothing ---


def negative(tree: ast.Expr) -> ast.Expr:
    """``-tree``."""
    if isinstance(tree, ast.Unary) and tree.op == "-":
        return tree.operand
    if isinstance(tree, ast.Binary) and tree.op in "*/":
        return replace(tree, left=negative(tree.left))
    return ast.Unary("-", tree, NOWHERE)


def _split_sign(tree: ast.Expr) -> tuple[bool, ast.Expr]:
    """Whether a minus stands in front, and what is behind it."""
    match tree:
        case ast.Unary(op="-", operand=operand):
            return True, operand
        case ast.Binary(op="*" | "/", left=left):
            minus, rest = _split_sign(left)
            return minus, replace(tree, left=rest) if minus else tree
        case _:
            return False, tree


def times(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left * right``, of floats: grouped from the left."""
    if isinstance(right, ast.Binary) and right.op in "*/":
        inner = times(left, right.left)
        return times(inner, right.right) if right.op == "*" else over(inner, right.right)
    if is_number(left, 1):
        return right
    if is_number(right, 1):
        return left
    (one, left), (two, right) = _split_sign(left), _split_sign(right)
    found = left if is_number(right, 1) else right if is_number(left, 1) else None
    if found is None:
        found = binary("*", left, right)
    return negative(found) if one != two else found


def over(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left / right``."""
    if is_number(right, 1):
        return left
    (one, left), (two, right) = _split_sign(left), _split_sign(right)
    found = binary("/", left, right)
    return negative(found) if one != two else found


def plus(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left + right``."""
    if left == right:
        return times(number(2), left)
    minus, rest = _split_sign(right)
    if minus:
        return binary("-", left, rest)
    minus, rest = _split_sign(left)
    return binary("-", right, rest) if minus else binary("+", left, right)


@dataclass(frozen=True, slots=True)
class Product:
    """``numerators / denominators``, with a minus in front or not."""

    minus: bool
    above: tuple[ast.Expr, ...]
    below: tuple[ast.Expr, ...]

    @staticmethod
    def of(tree: ast.Expr) -> Product:
        """A chain of products and quotients, taken apart."""
        match tree:
            case ast.Unary(op="-", operand=operand):
                inner = Product.of(operand)
                return replace(inner, minus=not inner.minus)
            case ast.Binary(op="*", left=left, right=right):
                a, b = Product.of(left), Product.of(right)
                return Product(a.minus != b.minus, a.above + b.above, a.below + b.below)
            case ast.Binary(op="/", left=left, right=right):
                a, b = Product.of(left), Product.of(right)
                return Product(a.minus != b.minus, a.above + b.below, a.below + b.above)
            case _:
                return Product(False, () if is_number(tree, 1) else (tree,), ())

    def tree(self) -> ast.Expr:
        """The chain again: what is multiplied before what is divided by, numbers as one."""
        numbers = [f.value for f in self.above if isinstance(f, ast.Number)]
        rest: Sequence[ast.Expr] = self.above
        if len(numbers) > 1:
            rest = [number(math.prod(numbers)), *(f for f in rest if not isinstance(f, ast.Number))]
        found = reduce(times, rest, number(1))
        found = reduce(over, self.below, found)
        return negative(found) if self.minus else found

    @property
    def factors(self) -> tuple[ast.Expr, ...]:
        return self.above + self.below

    def parted(self, first: Callable[[ast.Expr], bool]) -> tuple[Product, Product]:
        """The factors for which ``first`` holds, and the others, with the minus."""

        def of(holds: bool) -> Product:
            sides = [[f for f in side if first(f) == holds] for side in (self.above, self.below)]
            return Product(self.minus and not holds, tuple(sides[0]), tuple(sides[1]))

        return of(True), of(False)

    def without(self, other: Product) -> Product | None:
        """The rest, if all of another one's factors are here."""
        above, below = list(self.above), list(self.below)
        for rest, its in ((above, other.above), (below, other.below)):
            for each in its:
                if each not in rest:
                    return None
                rest.remove(each)
        return Product(self.minus != other.minus, tuple(above), tuple(below))

    def common(self, other: Product) -> Product:
        """The factors, of what is read or computed, that both have."""

        def both(one: Sequence[ast.Expr], two: Sequence[ast.Expr]) -> tuple[ast.Expr, ...]:
            left, found = list(two), []
            for each in one:
                if each in left and not is_literal(each):
                    left.remove(each)
                    found.append(each)
            return tuple(found)

        return Product(False, both(self.above, other.above), both(self.below, other.below))


def summed(addends: Sequence[ast.Expr]) -> ast.Expr:
    """Their sum, with the factors that all of them have in front of it: ``(a - b) * c``."""
    products = [Product.of(each) for each in addends]
    common = reduce(Product.common, products)
    if len(set(addends)) == 1 or not (common.above or common.below):
        return reduce(plus, addends)
    rests = [each.without(common) for each in products]
    rest = reduce(plus, [each.tree() for each in rests if each is not None])
    found = reduce(times, common.above, rest)
    return reduce(over, common.below, found)


def opposite(condition: ast.Expr, *, of_integers: bool = False) -> ast.Expr:
    """What holds where a condition does not. A comparison of floats is turned only if a NaN makes
    no difference: ``==`` and ``!=``."""
    match condition:
        case ast.Unary(op="!", operand=operand):
            return operand
        case ast.Binary(op=op) if op in _OPPOSITE and (of_integers or op in ("==", "!=")):
            return replace(condition, op=_OPPOSITE[op])
        case _:
            return ast.Unary("!", condition, NOWHERE)


def all_of(conditions: list[ast.Expr]) -> ast.Expr | None:
    """All conditions, in this order, each once; None if there are none."""
    once = list(dict.fromkeys(part for each in conditions for part in conjuncts(each)))
    return reduce(lambda a, b: binary("&&", a, b), once) if once else None


def conjuncts(condition: ast.Expr) -> Iterator[ast.Expr]:
    """The parts of ``a && b && c``."""
    if isinstance(condition, ast.Binary) and condition.op == "&&":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


# --- changing ---


def with_parts(tree: ast.Expr, change: Callable[[ast.Expr], ast.Expr]) -> ast.Expr:
    """``tree`` with ``change`` applied to what it is made of."""
    changed: dict[str, Any] = {}
    for part in walk.parts(type(tree)):
        inner = getattr(tree, part)
        changed[part] = tuple(map(change, inner)) if isinstance(inner, tuple) else change(inner)
    return replace(tree, **changed) if changed else tree


def rebuilt(tree: ast.Expr, change: Callable[[ast.Expr], ast.Expr]) -> ast.Expr:
    """``tree`` with ``change`` applied to every node, children first."""
    return change(with_parts(tree, lambda inner: rebuilt(inner, change)))


def put(tree: ast.Expr, values: Mapping[str, ast.Expr]) -> ast.Expr:
    """Expressions in the place of names."""

    def leaf(node: ast.Expr) -> ast.Expr:
        return values.get(node.name, node) if isinstance(node, ast.Name) else node

    return rebuilt(tree, leaf) if values else tree


def size_of(tree: ast.Expr) -> int:
    """Number of nodes."""
    return sum(1 for _ in walk.walk(tree))
