"""What the backward pass needs of the forward pass: what it is given, what it computes again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.polynomials import ZERO, Poly, poly_tree
from tcl.gradients.propagate import needless_cast, whole
from tcl.gradients.ranges import Box, Formulas
from tcl.gradients.trees import NOWHERE, apply, binary, cast, name, number, of_type
from tcl.gradients.versions import Step, Version
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax import ast
from tcl.grammar.syntax import walk as walk_ast
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import computed, walk

KEYWORDS = frozenset({"def", "where", "in", "exists", "min", "max"})


class Names:
    """Names of one derived def: each means one thing."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = {*taken, *BUILTINS, *KEYWORDS}

    def fresh(self, wanted: str) -> str:
        """This name, or one like it that is free."""
        found, count = wanted, 1
        while found in self.taken:
            count += 1
            found = f"{wanted}_{count}"
        self.taken.add(found)
        return found

    def indices(self, count: int) -> list[str]:
        letters = [n for n in "ijklmnpqrstuvw" if n not in self.taken]
        more = (f"i{k}" for k in range(10**6) if f"i{k}" not in self.taken)
        return [*letters, *(next(more) for _ in range(max(0, count - len(letters))))][:count]


Reader = Callable[[Version, list[ast.Expr]], ast.Expr]


@dataclass(slots=True)
class Writer:
    """Writes the expressions of one step of the forward pass."""

    step: Step
    formulas: Formulas
    read: Reader
    renamed: dict[str, str]
    """Index or ``where`` name → its name in the derived def."""
    lets: bool
    """Whether names that ``where`` binds stay; else what they are stands in their place."""

    def tree(self, expr: c.Expr) -> ast.Expr:
        """The expression in the derived def."""
        match expr:
            case c.Const():
                return _literal(expr)
            case c.Index(name=index):
                return name(self.renamed.get(index, index))
            case c.Size() | c.Dimension():
                return self.formulas.tree(expr, {})
            case c.LetRef(name=let):
                if self.lets:
                    return name(self.renamed.get(let, let))
                return self.tree(self.step.lets[let])
            case c.Read(tensor=tensor, subscripts=subscripts):
                found = [self.tree(s) for s in subscripts]
                return self.read(self.step.version(tensor), found)
            case c.Unary(op=op, operand=operand):
                return ast.Unary(op, self.tree(operand), NOWHERE)
            case c.Binary(op=op, left=left, right=right):
                return binary(op, self._operand(left, right), self._operand(right, left))
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = self.tree(condition)
                return ast.Select(holds, self.tree(then), self.tree(otherwise), NOWHERE)
            case c.Call(name=function, arguments=arguments):
                return apply(function, *map(self.tree, arguments))
            case c.Cast(operand=operand, type=type_):
                return cast(type_.name, self.tree(operand))
        raise AssertionError("all kinds")

    def left(self) -> list[ast.Expr]:
        """Where the step writes: indices, and of a scatter subscripts."""
        statement = self.step.statement
        if statement.place is not None:
            return [self.tree(s) for s in statement.place.subscripts]
        return [name(self.renamed.get(i, i)) for i in statement.indices]

    def _operand(self, operand: c.Expr, other: c.Expr) -> ast.Expr:
        """One side of an operation, whose conversion may happen by itself."""
        if isinstance(operand, c.Cast) and needless_cast(operand, other):
            return self.tree(operand.operand)
        if operand.type.is_float and not isinstance(other, c.Const | c.Cast):
            return whole(operand, self.tree(operand))
        return self.tree(operand)


def _literal(expr: c.Const) -> ast.Expr:
    if expr.type.is_bool:
        return cast("bool", number(int(expr.value)))
    value = expr.value
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return _NEUTRAL["max" if value < 0 else "min"]
    return number(value)


@dataclass(slots=True)
class Forward:
    """Versions of the forward pass by their names in the derived def."""

    formulas: Formulas
    steps: list[Step]
    names: Names
    kept: frozenset[str]
    """Outputs that the derived def may be given."""
    again: dict[Version, str] = field(default_factory=dict)
    """Versions that are computed again → their tensors."""
    final: dict[str, int] = field(default_factory=dict)
    """Tensor → its last version."""
    other_names: dict[Version, dict[str, str]] = field(default_factory=dict)
    """What a step makes → its names that mean something else in the derived def, with others."""

    def __post_init__(self) -> None:
        checked = self.formulas.checked
        self.final = {t.name: 0 for t in (*checked.inputs, *checked.outputs)}
        for step in self.steps:
            self.final[step.statement.target] = step.after[1]

    def is_kept(self, version: Version) -> bool:
        """Whether the derived def is given this version."""
        tensor, number_ = version
        known = self.formulas.checked.tensors.get(tensor)  # None of a stored name
        is_input = known is not None and known.is_input
        return is_input or (tensor in self.kept and number_ == self.final[tensor])

    def read(self, version: Version, subscripts: list[ast.Expr]) -> ast.Expr:
        tensor, number_ = version
        if self.is_kept(version):
            return apply(tensor, *from_first(subscripts, self.formulas.boxes[tensor]))
        if version not in self.again:
            last = number_ == self.final[tensor]
            self.again[version] = self.names.fresh(tensor if last else f"{tensor}_{number_}")
        return apply(self.again[version], *subscripts)

    def writer(self, step: Step, *, lets: bool = False, read: Reader | None = None) -> Writer:
        """What writes the step's expressions."""
        return Writer(step, self.formulas, read or self.read, self.renamed(step), lets)

    def renamed(self, step: Step) -> dict[str, str]:
        """The step's names that mean something else in the derived def, with others for them: those
        of a def that was called."""
        if step.after not in self.other_names:
            own = {*step.statement.all_indices, *step.lets}
            known = {*self.formulas.checked.tensors, *self.formulas.checked.sizes}
            found = {n: self.names.fresh(n) for n in sorted(own & known)}
            self.other_names[step.after] = found
        return self.other_names[step.after]

    # --- computing again ---

    def statements(self, used: set[str]) -> list[ast.Assign]:
        """The statements that compute what is needed again, in order; ``used``: the names that the
        statements after them use, to which theirs are added."""
        done: list[list[ast.Assign]] = []
        for step in reversed(self.steps):
            if self.again.get(step.after) in used:
                found = self._again(step, used)
                used |= {n for statement in found for n in names_in(statement)}
                done.append(found)
        return [statement for statements in reversed(done) for statement in statements]

    def _again(self, step: Step, used: set[str]) -> list[ast.Assign]:
        """The statements that compute what a step makes: in place, from the last version that is
        there by itself."""
        target, chain = self.again[step.after], [step]
        while chain[0].needs_old:
            first = chain[0]
            there = self.is_kept(first.before) or self.again.get(first.before) in used
            if there and not first.keeps:
                break
            if first.before[1] == 0:
                raise ArgumentError(
                    f"the gradient needs the value of '{step.statement.target}' between two "
                    "statements, which depends on the array that the caller passes; start it "
                    "with an assignment, or a reduction with !"
                )
            chain.insert(0, next(s for s in self.steps if s.after == first.before))

        def in_place(version: Version, subscripts: list[ast.Expr]) -> ast.Expr:
            if version[0] == step.statement.target:  # what the chain has computed by then
                return apply(target, *subscripts)
            return self.read(version, subscripts)

        first, *rest = chain
        found = [self._statement(first, target, self.read)]
        if first.statement.place is not None:
            begun = replace(found[0], op=found[0].op.removesuffix("!"))
            found = [self._begin(first, target), begun]
        return found + [self._statement(each, target, in_place) for each in rest]

    def _begin(self, step: Step, target: str) -> ast.Assign:
        """The statement that gives all elements what a scatter begins with, and a tensor its
        size."""
        statement = step.statement
        value = _NEUTRAL[statement.op]
        if statement.rhs.type.is_float or statement.op in "+*":
            box = self.formulas.boxes[statement.target]
            return filled(target, self.names.indices(len(box)), box, statement.rhs.type.name, value)
        raise ArgumentError(
            f"the gradient needs '{statement.target}', the {statement.op} of integers in "
            "elements that data select, which cannot be computed again; name it in save="
        )

    def _statement(self, step: Step, target: str, read: Reader) -> ast.Assign:
        """A step of the forward pass, on another target."""
        statement, writer = step.statement, self.writer(step, lets=True, read=read)
        where: list[ast.Where] = [
            ast.Let(writer.renamed.get(let.name, let.name), writer.tree(let.value), NOWHERE)
            for let in _used_lets(statement)
        ]
        where += [
            ast.Range(writer.renamed.get(i, i), poly_tree(a), poly_tree(b), NOWHERE)
            for i, (a, b) in step.ranges.items()
        ]
        op = statement.op if statement.op == "=" else f"{statement.op}="
        return assign(
            target,
            writer.left(),
            op + "!" * statement.initialise,
            of_type(statement.rhs.type.name, writer.tree(statement.rhs)),
            where,
        )


def _used_lets(statement: c.Statement) -> list[c.Let]:
    """The names that the statement uses, directly or not."""
    roots = (statement.rhs, *computed(statement))
    used = {n.name for root in roots for n in walk(root) if isinstance(n, c.LetRef)}
    kept: list[c.Let] = []
    for let in reversed(statement.lets):
        if let.name in used:
            kept.insert(0, let)
            used |= {n.name for n in walk(let.value) if isinstance(n, c.LetRef)}
    return kept


def from_first(subscripts: list[ast.Expr], box: Box) -> list[ast.Expr]:
    """Subscripts of an array, whose element 0 is the first one of the tensor."""
    return [
        s if first == ZERO else binary("-", s, poly_tree(first))
        for s, (first, _) in zip(subscripts, box, strict=True)
    ]


def assign(
    target: str, left: Sequence[str | ast.Expr], op: str, rhs: ast.Expr, where: list[ast.Where]
) -> ast.Assign:
    subscripts = tuple(name(each) if isinstance(each, str) else each for each in left)
    return ast.Assign(target, subscripts, op, rhs, None, tuple(where), NOWHERE, NOWHERE, NOWHERE)


_INFINITE = apply("log", ast.Number(0.0, NOWHERE))
_NEUTRAL = {"+": number(0), "*": number(1), "max": _INFINITE}
_NEUTRAL["min"] = ast.Unary("-", _INFINITE, NOWHERE)
"""Reduction → what it begins with."""


def filled(target: str, indices: list[str], box: Box, type_: str, value: ast.Expr) -> ast.Assign:
    """The statement that gives all elements of a new tensor a value."""
    ranges = ranges_of(dict(zip(indices, box, strict=True)))
    return assign(target, indices, "=", cast(type_, value), ranges)


def names_in(statement: ast.Assign) -> Iterator[str]:
    """The names that a statement uses: tensors, sizes, indices, functions."""
    for expr in walk_ast.expressions(statement):
        yield from names_below(expr)


def names_below(tree: ast.Expr) -> set[str]:
    nodes = walk_ast.walk(tree)
    return {node.name for node in nodes if isinstance(node, ast.Name | ast.Apply)}


def ranges_of(ranges: dict[str, tuple[Poly, Poly]]) -> list[ast.Where]:
    """The ``where`` clauses of indices."""
    return [ast.Range(i, poly_tree(a), poly_tree(b), NOWHERE) for i, (a, b) in ranges.items()]
