"""Panels filled: boxes copied from global to shared memory by all threads of a block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tcl.codegen.cuda.emit.scope import Scope
from tcl.codegen.cuda.emit.writer import Writer
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements

LEAST_ASYNC = 4
"""Bytes that a copy has at least which no thread waits for."""
MAX_HELD = 64
"""Words that a thread may have read before it writes them to panels."""


class Fills:
    """Writes copies."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.memory, self.lines = writer, writer.memory, writer.lines
        self.held: dict[str, str] = {}
        """Panel → the registers that its next contents are in."""

    def fill(self, statement: ir.Statement, scope: Scope) -> None:
        """Copies a box."""
        with self._each(statement, scope) as (store, width, inner, _):
            to, element, there = self._parts(store, inner)
            if width > 1:
                self.writer.used.add("copy")
                self.lines.add(f"copy<{width}>(&{to}, &{element}, {there or 'true'});")
            else:
                self._one(to, element, there, store)

    def fill_async(self, statement: ir.Statement, scope: Scope) -> None:
        """Begins to copy a box; nobody waits."""
        with self._each(statement, scope) as (store, width, inner, _):
            to, element, there = self._parts(store, inner)
            size = width * self.memory.layout(store.ref).itemsize
            self.writer.used |= {"copy_async", "commit_copies", "wait_copies"}
            self.lines.add(f"copy_async<{size}>(&{to}, &{element}, {there or 'true'});")

    def can_be_async(self, statement: ir.Statement) -> bool:
        """Whether its copies are large enough for that."""
        store, width = _store(statement), _width(statement)
        return self.memory.layout(store.ref).itemsize * width >= LEAST_ASYNC

    def can_be_held(self, fills: Sequence[ir.Statement]) -> bool:
        """Whether a thread has registers for all that it copies, with loops that are written out:
        no register is found by a number that is not known before."""
        loops = [s.loop for f in fills for s in statements(f) if isinstance(s, ir.For)]
        words = sum(
            math.prod(_steps(f)) * _width(f) * max(4, self.memory.layout(_store(f).ref).itemsize)
            for f in fills
        )
        return words <= 4 * MAX_HELD and all(x.kind is not ir.Kind.SERIAL for x in loops)

    def declare(self, statement: ir.Statement) -> None:
        """Registers for what a thread copies."""
        store, width = _store(statement), _width(statement)
        steps = math.prod(_steps(statement))
        name = self.writer.names.new(f"{self.memory.name(store.ref.tensor)}_next")
        self.held[store.ref.tensor] = name
        type_ = self.memory.element_type(store.ref.tensor)
        self.lines.add(f"{type_} {name}[{steps}][{width}];")

    def fetch(self, statement: ir.Statement, scope: Scope) -> None:
        """Reads what a thread copies to its registers."""
        with self._each(statement, scope) as (store, width, inner, step):
            _, element, there = self._parts(store, inner)
            to = f"{self.held[store.ref.tensor]}[{step}]"
            if width > 1:
                self.writer.used.add("load")
                test = f", {there}" if there else ""
                self.lines.add(f"load<{width}>({to}, &{element}{test});")
            else:
                self._one(f"{to}[0]", element, there, store)

    def put(self, statement: ir.Statement, scope: Scope) -> None:
        """Writes what a thread has in its registers to the panel."""
        with self._each(statement, scope) as (store, width, inner, step):
            to = self.memory.element(store.ref, inner)
            held = f"{self.held[store.ref.tensor]}[{step}]"
            if width > 1:
                self.writer.used.add("store")
                self.lines.add(f"store<{width}>(&{to}, {held});")
            else:
                self.lines.add(f"{to} = {held}[0];")

    def _one(self, to: str, element: str, there: str, store: ir.Store) -> None:
        zero = f"({self.memory.element_type(store.ref.tensor)})0"
        self.lines.add(f"{to} = {f'{there} ? {element} : {zero}' if there else element};")

    def _parts(self, store: ir.Store, scope: Scope) -> tuple[str, str, str]:
        """Where to, what, and on which condition; else a zero."""
        to = self.memory.element(store.ref, scope)
        value = store.value
        if isinstance(value, ir.Select) and isinstance(value.then, ir.Load):
            there = self.writer.text(value.condition, scope)
            return to, self.memory.element(value.then.ref, scope), there
        if not isinstance(value, ir.Load):
            raise ir.IRError(f"{store.ref.tensor} is filled with what is no copy")
        return to, self.memory.element(value.ref, scope), ""

    @contextmanager
    def _each(
        self, statement: ir.Statement, scope: Scope
    ) -> Iterator[tuple[ir.Store, int, Scope, str]]:
        """Inside of the loops over what a thread copies: the copy, the elements of each, and the
        number of the step."""
        width, step, depth = 1, "0", 0
        guarded: dict[str, None] = {}
        geometry = self.writer.geometry
        with self.lines.nested():
            while isinstance(statement, ir.For):
                loop, fold = statement.loop, statement.loop.fold
                if geometry.ragged[fold.dim]:
                    guarded[fold.dim] = None
                if loop.kind is ir.Kind.VECTOR:
                    width = fold.count
                    scope = scope.with_fold(fold, "0")
                elif loop.kind is not ir.Kind.THREAD and fold.count == 1:
                    scope = scope.with_fold(fold, "0")
                elif loop.kind is not ir.Kind.THREAD:
                    name = self.writer.names.of(f"step {depth}", "step")
                    depth += 1
                    if loop.kind is ir.Kind.UNROLL:
                        self.lines.add("#pragma unroll", margin=True)
                    self.lines.open(f"for (int {name} = 0; {name} < {fold.count}; ++{name}) {{")
                    text = name if fold.step == 1 else f"{name} * {fold.step}"
                    scope = scope.with_fold(fold, text)
                    step = name if step == "0" else f"({step}) * {fold.count} + {name}"
                statement = statement.body
            if not isinstance(statement, ir.Store):
                raise ir.IRError("a panel is filled by one store")
            if guarded:
                self.lines.open(f"if ({self.memory.inside(guarded, scope)}) {{")
            yield statement, width, scope, step


def _store(statement: ir.Statement) -> ir.Store:
    return next(s for s in statements(statement) if isinstance(s, ir.Store))


def _steps(statement: ir.Statement) -> list[int]:
    """How often each loop runs in which a thread copies one after the other."""
    loops = (s.loop for s in statements(statement) if isinstance(s, ir.For))
    return [x.fold.count for x in loops if x.kind in (ir.Kind.UNROLL, ir.Kind.SERIAL)]


def _width(statement: ir.Statement) -> int:
    folds = (s.loop for s in statements(statement) if isinstance(s, ir.For))
    return next((x.fold.count for x in folds if x.kind is ir.Kind.VECTOR), 1)
