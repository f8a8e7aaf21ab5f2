"""The names of a def and what is known about them while its statements are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tcl.common.closest import closest_few
from tcl.common.dataclass import dataclass
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax.ast import Apply, Assign, Expr, Let, Name, Number, Statement, TensorType
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.meant import no_name
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Span
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.syntax.walk import expressions, targets, walk
from tcl.grammar.tree.checked import Tensor


def dims_of(type_: TensorType) -> tuple[str | int, ...]:
    """The size symbols and constants of a declared type."""
    return tuple(int(d.value) if isinstance(d, Number) else d.name for d in type_.dims)


def recurrence(name: str) -> str:
    """What is wrong where elements of a tensor would be computed from others of them."""
    return (
        f"elements of '{name}' cannot depend on each other, because they are computed in any "
        f"order; write a running sum as {name}(i) +=! (j <= i) ? X(j) : 0, and any other "
        "recurrence as a loop in Python"
    )


def missing_comma(name: str) -> str:
    """What is wrong where a clause of a where stands behind no comma."""
    return f"put ',' before '{name} = ...', to bind it in the where that ends before it"


@dataclass(slots=True)
class DefScope:
    """Names of one def. Problems are collected, never raised."""

    statements: tuple[Statement, ...] = ()
    """All of the def, those that are still to be checked included."""
    defs: frozenset[str] = frozenset()
    """Names of the defs of the text."""
    inputs: dict[str, Tensor | None] = field(default_factory=dict)
    """None where the type has errors."""
    outputs: dict[str, Span] = field(default_factory=dict)
    """Listed outputs, where they are listed."""
    written: dict[str, Tensor | None] = field(default_factory=dict)
    """Outputs that something wrote; None where the statement that did so has errors."""
    sums: dict[str, Callable[[ScalarType], str]] = field(default_factory=dict)
    """Of outputs that a sum or a product gives their type: what to reduce to have another one."""
    sizes: dict[str, Span] = field(default_factory=dict)
    """Size symbols, where they were first seen."""
    known_sizes: set[str] = field(default_factory=set)
    """Those whose value is known: from an input, or from an output already written."""
    problems: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    meant: set[Span] = field(default_factory=set)
    """The operands of casts to the type that they have."""
    cut: dict[Span, Span] = field(default_factory=dict)
    """Quotients of literals that are no integers, and their dividends."""
    bound: dict[str, list[Statement]] = field(init=False, default_factory=dict)
    """The statements whose where clause binds a name to a value."""

    def __post_init__(self) -> None:
        for statement in self.statements:
            for clause in statement.where if isinstance(statement, Assign) else ():
                if isinstance(clause, Let):
                    self.bound.setdefault(clause.name, []).append(statement)

    def refuse(self, span: Span, message: str, section: Section) -> None:
        """Note an error, and the section of the reference that explains it."""
        self.problems.append(Diagnostic(message, span, section=section))

    def is_tensor(self, name: str) -> bool:
        return name in self.inputs or name in self.outputs or name in self.written

    def what_is(self, name: str) -> str | None:
        """What a name stands for in the def, in words; None if it is free for an index or a let.

        These may be called as a built-in is, which always has its parentheses: y0, j1.
        """
        if name in self.inputs:
            return "an input"
        if name in self.outputs or name in self.written:
            return "an output"
        if name in self.sizes:
            return "a size symbol"
        return None

    def needs(self, name: str, other: str) -> bool:
        """Whether some statement makes ``name`` of ``other``, directly or through others."""
        made_of: dict[str, set[str]] = {}
        for statement in self.statements:
            nodes = (node for e in expressions(statement) for node in walk(e))
            used = {node.name for node in nodes if isinstance(node, Name | Apply)}
            for target in targets(statement):
                made_of.setdefault(target, set()).update(used)
        seen, left = set[str](), [name]
        while left:
            uses = made_of.get(left.pop(), set[str]()) - seen
            seen |= uses
            left += uses
        return other in seen

    def readable(self, name: str, span: Span, arguments: Sequence[Expr] = ()) -> Tensor | None:
        """The tensor of that name, if it may be read here; else the problem is noted."""
        if name in self.inputs:
            return self.inputs[name]
        if name in self.written:
            return self.written[name]
        if name in self.outputs:
            self.refuse(
                span,
                f"'{name}' is read before it is written; assign it first",
                Section.STATEMENTS,
            )
        elif name in self.defs:
            message = f"'{name}' is a def; call it in a separate statement: A = {name}(X)"
            self.refuse(span, message, Section.CALLS)
        else:
            functions = [n for n, arity in BUILTINS.items() if arity == len(arguments) > 0]
            functions += ["min", "max"] if len(arguments) == 2 else []
            values = any(isinstance(node, Apply) for a in arguments for node in walk(a))
            known = [self.tensors(), functions if len(name) > 1 else []]
            if values and len(name) > 1 and name.islower():
                remedy = "; there is no such function, and a tensor has to be among the inputs"
                known = [functions, self.tensors(), list(BUILTINS)]
                self.undefined(name, span, f"function '{name}'", known, remedy, Section.FUNCTIONS)
            else:
                self.undefined(name, span, f"tensor or function '{name}'", known)
        return None

    def undefined(
        self,
        name: str,
        span: Span,
        what: str,
        known: Sequence[Sequence[str]],
        remedy: str = "",
        section: Section = Section.DEFS,
        index: str = "",
    ) -> None:
        """Note that a name stands for nothing, and what may be meant: one of the ``known`` names;
        the ``remedy`` where none of these looks like it, or what makes an ``index`` of it."""
        given = ", ".join([*list(self.inputs)[:8], *(["..."] if len(self.inputs) > 8 else [])])
        remedy = remedy or (
            f"; it is not among the inputs ({given or 'none'}); list it there with its type, or "
            f"correct the name{index}"
        )
        meant = no_name(name)
        folded = name.casefold()
        bound = self.bound_elsewhere(name, span)
        if self.after_where(name):
            self.refuse(span, missing_comma(name), Section.WHERE)
        elif bound is not None:
            self.refuse(span, f"'{name}' is bound {bound}", Section.WHERE)
        elif meant is not None and all(n.casefold() != folded for n in self.known_names()):
            self.refuse(span, *meant)
        else:
            self.refuse(span, f"undefined {what}{_suggest(name, *known) or remedy}", section)

    def after_where(self, name: str) -> bool:
        """Whether ``name = ...`` stands after a where clause, and may be meant as another one."""
        pairs = zip(self.statements, self.statements[1:], strict=False)
        return name not in self.outputs and any(
            isinstance(before, Assign)
            and before.where
            and isinstance(s, Assign)
            and (s.target, s.indices, s.op) == (name, (), "=")
            for before, s in pairs
        )

    def bound_elsewhere(self, name: str, span: Span) -> str | None:
        """Where the where clause is that binds a name used before it or in another statement."""
        binding = self.bound.get(name, [])
        if any(s.span.start <= span.start < s.span.end for s in binding):
            return "by a later clause; put that clause first"
        if binding:
            return "in another statement only; bind it here too, or assign it to an output"
        return None

    def known_names(self) -> list[str]:
        """All names that stand for something."""
        return [*self.inputs, *self.outputs, *self.sizes, *BUILTINS, *self.defs]

    def tensors(self) -> list[str]:
        """What an element is read of, or may be meant to be, and calls of defs."""
        return [*self.inputs, *self.outputs, *self.bound, *self.defs]


def _suggest(name: str, *known: Sequence[str]) -> str:
    """A remedy for an undefined name: those names that look like it, of the first kind that has
    any."""
    close = next(filter(None, (closest_few(name, names, 2) for names in known)), [])
    return "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?" if close else ""
