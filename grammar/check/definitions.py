"""The checks of a def that need no sizes: AST → checked definitions.

That includes what depends on what, and what starts from nothing, over all statements. All problems
of a text are reported together, each with its place and a remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from tcl.common.dataclass import dataclass
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.calls import expand
from tcl.grammar.check.running import all_pairs
from tcl.grammar.check.scope import DefScope, dims_of, recurrence
from tcl.grammar.check.statements import check_assign
from tcl.grammar.check.widening import late_widenings, narrow_sums, summed_in
from tcl.grammar.ranges.inference import without_range
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.errors import Diagnostic, TclSemanticError
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.types import scalar_type
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.checked import Index, Statement
from tcl.grammar.tree.traverse import reads, walk

MAX_CALL_DEPTH = 32
"""Deepest nesting of calls between defs."""

MAX_STATEMENTS = 10_000
"""Most statements of a def, calls expanded."""


def check(text: str, name: str = "<string>") -> dict[str, c.CheckedDef]:
    """Parse and check a text of one or more defs; def name → checked def, in order.

    ``name`` is shown in messages. Raises ``TclSyntaxError`` or ``TclSemanticError``.
    """
    module = parse(text, name)
    checker = _ModuleChecker(Source(text, name), {})
    for definition in module.defs:
        if definition.name in checker.defs:
            first = checker.defs[definition.name]
            checker.problems.append(
                Diagnostic(
                    f"def '{definition.name}' is defined twice; rename one of them",
                    definition.span,
                    ((first.span, "the first one"),),
                    Section.DEFS,
                )
            )
            continue
        checker.defs[definition.name] = definition
    ends = [*(d.begin for d in module.defs[1:]), len(text)]
    for definition, end in zip(module.defs, ends, strict=True):
        checker.bounds[definition.name] = definition.begin, end
    for definition in checker.defs.values():
        checker.check_def(definition)
    done = {n: checker.done[n] for n in checker.defs}
    called = set().union(*checker.called.values())  # the caller may declare the sizes of outputs
    for name, checked in done.items():
        if checked is not None and name not in called:
            checker.problems += without_range(checked)
    if checker.problems:
        raise TclSemanticError(checker.source, checker.problems)
    return {n: d for n, d in done.items() if d is not None}


@dataclass(slots=True)
class _ModuleChecker:
    source: Source
    defs: dict[str, ast.Def]
    done: dict[str, c.CheckedDef | None] = field(default_factory=dict)
    """None for a def with problems."""
    open: list[str] = field(default_factory=list)
    """Defs being checked: each but the first is called by the one before it."""
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where a def begins, and where the next one does."""
    called: dict[str, set[str]] = field(default_factory=dict)
    """The defs that a def calls, by itself or by these."""
    depths: dict[str, int] = field(default_factory=dict)
    """How deep the calls of a def are nested."""
    problems: list[Diagnostic] = field(default_factory=list)

    def check_def(self, definition: ast.Def) -> c.CheckedDef | None:
        """The checked def; None if it has problems, which are then in ``problems``."""
        if definition.name not in self.done:
            self.open.append(definition.name)
            self.done[definition.name] = _DefChecker(self, definition).check_all()
            self.open.pop()
        return self.done[definition.name]

    def text(self, name: str) -> str:
        """Of a checked def and those that it calls."""
        wanted = (name, *self.called.get(name, ()))
        return "".join(self.source.text[a:b] for a, b in sorted(self.bounds[n] for n in wanted))


class _DefChecker:
    """Checks one def, statement by statement."""

    def __init__(self, module: _ModuleChecker, definition: ast.Def) -> None:
        self.module = module
        self.definition = definition
        self.scope = DefScope(definition.statements, frozenset(module.defs))
        self.bindings: list[c.SizeBinding] = []
        self.statements: list[c.Statement] = []
        self.declared: dict[str, ast.TensorType] = {}
        self.boundaries: list[c.CallBoundary] = []
        self.calls = 0
        self.faulty_callee = False
        """Some def that this one calls has problems, which are reported there."""

    def check_all(self) -> c.CheckedDef | None:
        definition, scope = self.definition, self.scope
        if definition.name in BUILTINS:
            scope.refuse(
                definition.span,
                f"'{definition.name}' is a built-in function; rename the def",
                Section.DEFS,
            )
        for param in definition.params:
            self._input(param)
        for output in definition.outputs:
            if self._free(output, "output"):
                scope.outputs[output.name] = output.span
                if output.type is not None:
                    self._declare_sizes(output, output.type)
                    self.declared[output.name] = output.type
        if not definition.outputs:
            scope.refuse(definition.span, "a def needs an output: -> (O)", Section.DEFS)
        for statement in definition.statements:
            self._statement(statement)
        for name, span in scope.outputs.items():
            if name not in scope.written:
                scope.refuse(
                    span,
                    f"the output '{name}' is never assigned; assign it or remove it",
                    Section.DEFS,
                )
        check_dependencies(self.statements, scope)
        self.module.problems += scope.problems
        if scope.problems or self.faulty_callee:
            return None
        return c.CheckedDef(
            name=definition.name,
            inputs=tuple(t for t in scope.inputs.values() if t is not None),
            outputs=tuple(t for n in scope.outputs if (t := scope.written[n]) is not None),
            statements=tuple(self.statements),
            bindings=tuple(self.bindings),
            boundaries=tuple(self.boundaries),
            uninitialised=uninitialised(self.statements, scope),
            text=self.module.text(definition.name),
            source=self.module.source,
            warnings=tuple(scope.warnings),
        )

    # --- inputs and outputs ---

    def _input(self, param: ast.Param) -> None:
        scope = self.scope
        if not self._free(param, "input"):
            return
        if param.type is None:
            scope.refuse(
                param.span,
                f"the input '{param.name}' needs a type, such as float(N) {param.name}",
                Section.TYPES,
            )
            scope.inputs[param.name] = None
            return
        self._declare_sizes(param, param.type)
        scope.known_sizes.update(scope.sizes)
        dims, type_ = dims_of(param.type), scalar_type(param.type.scalar)
        scope.inputs[param.name] = c.Tensor(param.name, type_, len(dims), dims, True, param.span)

    def _free(self, param: ast.Param, role: str) -> bool:
        """Whether a name can be given to an input or output."""
        name, span, scope = param.name, param.span, self.scope
        if name in BUILTINS:
            scope.refuse(span, f"'{name}' is a built-in function; rename the {role}", Section.DEFS)
        elif role == "output" and name in scope.inputs:
            scope.refuse(
                span,
                f"'{name}' is an input, and inputs are immutable; name the output differently, "
                f"such as {name}2",
                Section.DEFS,
            )
        elif name in scope.sizes:
            first = next(b for b in self.bindings if b.size == name)
            scope.refuse(
                span,
                f"'{name}' is already a size, the extent of dimension {first.axis} of "
                f"'{first.tensor}': use it without passing it, or rename the {role}",
                Section.DEFS,
            )
        elif (taken := scope.what_is(name)) is not None:
            scope.refuse(
                span, f"'{name}' is already defined as {taken}; rename one of them", Section.DEFS
            )
        else:
            return True
        return False

    def _declare_sizes(self, param: ast.Param, type_: ast.TensorType) -> None:
        scope = self.scope
        for axis, dim in enumerate(type_.dims):
            if isinstance(dim, ast.Number):
                self.bindings.append(c.SizeBinding(int(dim.value), param.name, axis, dim.span))
                continue
            if dim.name in BUILTINS:
                message = f"'{dim.name}' cannot be a size: it is a built-in function; rename it"
                scope.refuse(dim.span, message, Section.DEFS)
                continue
            if scope.is_tensor(dim.name) or dim.name == param.name:
                scope.refuse(
                    dim.span,
                    f"'{dim.name}' cannot be a size: it is "
                    f"{scope.what_is(dim.name) or 'the tensor itself'}; a size needs its own "
                    "name, because its value comes from the shapes of the arrays; rename one "
                    "of them",
                    Section.DEFS,
                )
                continue
            scope.sizes.setdefault(dim.name, dim.span)
            self.bindings.append(c.SizeBinding(dim.name, param.name, axis, dim.span))

    # --- statements ---

    def _statement(self, statement: ast.Statement) -> None:
        called = self._called(statement)
        if called is not None:
            self._expand_call(*called)
            return
        if isinstance(statement, ast.Call):
            message = "several targets need a call of another def: A, B = f(X, Y)"
            self.scope.refuse(statement.span, message, Section.CALLS)
            self._mark_written(t.name for t in statement.targets)
            return
        checked = check_assign(statement, self.scope, self.declared.get(statement.target))
        if checked is None:
            self._mark_written([statement.target])
            return
        done, tensor = checked
        self.statements.append(done)
        source, meant = self.module.source, self.scope.meant
        self.scope.warnings += late_widenings(
            done, source, meant, self.scope.cut, self.statements[:-1]
        )
        self.scope.warnings += all_pairs(done, source)
        if self.scope.written.get(statement.target) is None:
            if statement.target not in self.declared:
                self.scope.warnings += narrow_sums(done, source, meant)
                if done.op in ("+", "*"):
                    self.scope.sums[statement.target] = partial(summed_in, done, source)
            self.scope.written[statement.target] = tensor
        self._sizes_known(statement.target)

    def _mark_written(self, names: Iterator[str] | list[str]) -> None:
        """After a faulty statement: its targets count as written, so nothing else complains."""
        for name in names:
            if name not in self.scope.inputs:
                self.scope.written.setdefault(name, None)
                self._sizes_known(name)

    def _sizes_known(self, tensor: str) -> None:
        sizes = (b.size for b in self.bindings if b.tensor == tensor)
        self.scope.known_sizes.update(s for s in sizes if isinstance(s, str))

    def _called(self, statement: ast.Statement) -> tuple[ast.Apply, tuple[ast.Name, ...]] | None:
        """The call of another def that a statement is, and its targets; None if it is none."""
        match statement:
            case ast.Call(targets=targets, value=ast.Apply() as value):
                pass
            case ast.Assign(indices=(), op="=", rhs=ast.Apply() as value, where=()):
                targets = (ast.Name(statement.target, statement.target_span),)
            case _:
                return None
        if value.name not in self.module.defs or self.scope.is_tensor(value.name):
            return None
        return value, targets

    def _expand_call(self, call: ast.Apply, targets: tuple[ast.Name, ...]) -> None:
        prefix = f"{call.name}#{self.calls}"
        self.calls += 1
        names = [t.name for t in targets]
        done = None
        if call.name in self.module.open:
            self.scope.refuse(
                call.span, f"'{call.name}' calls itself; defs cannot recurse", Section.CALLS
            )
        elif len(self.module.open) > MAX_CALL_DEPTH:
            self._too_deep(call.span)
        else:
            callee = self.module.check_def(self.module.defs[call.name])
            if callee is None:
                self.faulty_callee = True
            else:  # how deep its calls are nested is counted in whatever order defs stand
                name, depths = self.definition.name, self.module.depths
                called = self.module.called
                called.setdefault(name, set()).update((call.name, *called.get(call.name, ())))
                depths[name] = max(depths.get(name, 0), depths.get(call.name, 0) + 1)
                if depths[name] > MAX_CALL_DEPTH:
                    self._too_deep(call.span)
                else:
                    done = expand(call, targets, callee, self.scope, self.declared, prefix)
        if done is not None and len(self.statements) + len(done[0]) > MAX_STATEMENTS:
            self.scope.refuse(
                call.span,
                f"with its calls expanded, the def has more than {MAX_STATEMENTS} statements",
                Section.CALLS,
            )
            done = None
        if done is None:
            self._mark_written(names)
            return
        arguments = tuple(a.name for a in call.arguments if isinstance(a, ast.Name))
        self._boundary(arguments, call.span)
        statements, bindings, tensors = done
        self.statements += statements
        self.bindings += bindings
        self._boundary(tuple(names), call.span)
        for tensor in tensors:
            if self.scope.written.get(tensor.name) is None:
                self.scope.written[tensor.name] = tensor
            self._sizes_known(tensor.name)

    def _too_deep(self, span: Span) -> None:
        self.scope.refuse(
            span,
            f"calls are nested deeper than {MAX_CALL_DEPTH}; write some of them out",
            Section.CALLS,
        )

    def _boundary(self, tensors: tuple[str, ...], span: Span) -> None:
        self.boundaries.append(c.CallBoundary(len(self.statements), tensors, span))


def check_dependencies(statements: Sequence[Statement], scope: DefScope) -> None:
    """Tensors may depend on each other only in a directed acyclic graph.

    A tensor may depend on itself: that is an update in place.
    """
    edges: dict[str, dict[str, Statement]] = {}
    for statement in statements:
        for read in reads(statement):
            if read.tensor != statement.target and read.tensor not in scope.inputs:
                edges.setdefault(statement.target, {}).setdefault(read.tensor, statement)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]  # [a, b, ..., a], each of which depends on the next
    else:
        return
    steps = [edges[a][b] for a, b in pairwise(cycle)]
    first = min(steps, key=lambda s: s.span)
    names = " -> ".join(reversed(cycle))
    later = max(steps, key=lambda s: s.span).target
    advice = f"write the later value of '{later}' to another output, such as {later}2"
    section = Section.STATEMENTS
    if any(map(_shifted, steps, cycle[1:])):
        advice, section = recurrence(first.target), Section.CUMSUM
    scope.problems.append(
        Diagnostic(
            f"the tensors {names} depend on each other in a cycle; {advice}",
            first.span,
            tuple(
                (s.span, f"here {s.target} depends on {b}")
                for s, b in sorted(zip(steps, cycle[1:], strict=True), key=lambda p: p[0].span)
            ),
            section,
        )
    )


def _shifted(statement: Statement, tensor: str) -> bool:
    """Whether the statement reads the tensor at an index that it computes from others, not data."""
    subscripts = (s for read in reads(statement) if read.tensor == tensor for s in read.subscripts)
    made_of = ({type(e) for e in walk(s)} for s in subscripts)
    return any(Index in each and each != {Index} and c.Read not in each for each in made_of)


def uninitialised(statements: Sequence[Statement], scope: DefScope) -> frozenset[str]:
    """Outputs whose first statement reduces into whatever they hold; warns about each."""
    seen: set[str] = set()
    found: set[str] = set()
    for statement in statements:
        name = statement.target
        if name not in seen and statement.op != "=" and not statement.initialise:
            found.add(name)
            scope.warnings.append(
                Diagnostic(
                    f"'{name}' is reduced into but never initialised; write {statement.op}=! to "
                    "start from the value of no terms, or pass outputs= to add to existing "
                    "arrays",
                    statement.span,
                    section=Section.REDUCTIONS,
                )
            )
        seen.add(name)
    return frozenset(found)
