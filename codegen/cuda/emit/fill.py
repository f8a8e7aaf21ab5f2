"""Panels filled: boxes copied from global to shared memory by all threads of a block."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from contextlib import contextmanager

from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.threads import Threads
from tcl.codegen.cuda.emit.writer import Writer
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import chain, copied, is_transposed
from tcl.grammar.sizes.varying import representative

_SMALL = 32 << 10
"""Bytes of a tensor that blocks of a multiprocessor find in its first cache. If each reads it from
the second one, they wait for the few slices that have it: of an H100, 1,024 blocks that copy the
same 2 KB take 10.7 us instead of 7.4, and 784 that copy parts of the same 16 KB 12.3 instead of
6.7. Larger tensors are faster past the first cache."""


class Fills:
    """Writes copies."""

    def __init__(self, writer: Writer, threads: Threads) -> None:
        self.writer, self.memory, self.lines = writer, writer.memory, writer.lines
        self.threads = threads
        self.held: dict[str, str] = {}
        """Panel → the registers that its next contents are in."""
        self._steps: set[str] = set()
        """Variables of loops over copies that are written out."""
        self._begun = False
        """Whether there are copies that were begun outside of pipelines and not waited for."""
        self._by_warpgroups = False
        """Whether panels were filled outside of pipelines that warpgroups read."""

    def alone(self, fill: ir.Fill, scope: CudaScope) -> None:
        """Copies a box, not ahead."""
        if fill.asynchronous:
            self.fill_async(fill, scope)
            self._begun = True
        else:
            self.fill(fill, scope)
        self._by_warpgroups |= self.memory.layout_of(fill.panel).slabs

    def wait(self) -> None:
        """Each thread waits for those of its copies that nobody has waited for."""
        if self._begun:
            self.lines.add("commit_copies();")
            self.lines.add("wait_copies<0>();")
            self._begun = False
        self.fence(self._by_warpgroups)
        self._by_warpgroups = False

    def fence(self, by_warpgroups: bool) -> None:
        """What a thread wrote to panels, warpgroups can read after the next barrier."""
        if by_warpgroups:
            self.writer.used.add("fence_panels")
            self.lines.add("fence_panels();")

    def fill(self, fill: ir.Fill, scope: CudaScope) -> None:
        """Copies a box."""
        with self._each(fill, scope) as (store, lane, inner, _):
            to, element, there = self._copied_parts(fill, inner)
            if lane is not None and is_transposed(fill, self.memory.layout(store.ref)):
                held, type_ = "held", self.memory.element_type(fill.panel)
                self.lines.add(f"{type_} {held}[{lane.count}];")
                self._read(held, element, there, lane)
                self._written(fill, store, lane, inner, held)
            elif lane is not None:
                self.writer.used.add("copy")
                self.lines.add(f"copy<{lane.count}>(&{to}, &{element}, {there or 'true'});")
            else:
                self._one(to, element, there, store)

    def fill_async(
        self, fill: ir.Fill, scope: CudaScope, part: tuple[str, int] | None = None
    ) -> None:
        """Begins to copy a box, or a part of it; nobody waits. ``part``: its number, in a loop that
        is written out, and how many there are."""
        with self._each(fill, scope, part) as (store, lane, inner, _):
            constant = self._steps if part is None else ()
            to, element, there = self._copied_parts(fill, inner, constant)
            width = 1 if lane is None else lane.count
            size = str(width * self.memory.layout(store.ref).itemsize)
            self.writer.used |= {"copy_async", "commit_copies", "wait_copies"}
            size += ", true" * (size == "16" and self._copied_by_all(fill))
            self.lines.add(f"copy_async<{size}>(&{to}, &{element}, {there or 'true'});")

    def _copied_by_all(self, fill: ir.Fill) -> bool:
        """Whether a panel is of an input that is so small that most blocks copy the same."""
        geometry = self.writer.geometry
        source = geometry.program.tensor(geometry.kernel.panel(fill.panel).source)
        few = representative(source.layout.bytes) <= _SMALL
        return few and source.role is ir.Role.INPUT

    def declare(self, fill: ir.Fill) -> None:
        """Registers for what a thread copies."""
        loops, _ = chain(fill.body)
        lanes = math.prod(x.fold.count for x in loops if x.kind is ir.Kind.VECTOR)
        steps = math.prod(x.fold.count for x in loops if x.kind is ir.Kind.UNROLL)
        name = self.writer.names.new(f"{self.memory.name(fill.panel)}_next")
        self.held[fill.panel] = name
        self.lines.add(f"{self.memory.element_type(fill.panel)} {name}[{steps}][{lanes}];")

    def fetch(self, fill: ir.Fill, scope: CudaScope) -> None:
        """Reads what a thread copies to its registers."""
        with self._each(fill, scope) as (store, lane, inner, step):
            _, element, there = self._copied_parts(fill, inner)
            to = f"{self.held[store.ref.tensor]}[{step}]"
            if lane is not None:
                self._read(to, element, there, lane)
            else:
                self._one(f"{to}[0]", element, there, store)

    def put(self, fill: ir.Fill, scope: CudaScope) -> None:
        """Writes what a thread has in its registers to the panel."""
        with self._each(fill, scope) as (store, lane, inner, step):
            held = f"{self.held[store.ref.tensor]}[{step}]"
            self._written(fill, store, lane, inner, held)

    def _read(self, to: str, element: str, there: str, lane: ir.Fold) -> None:
        """Reads neighbours to registers."""
        self.writer.used.add("load")
        test = f", {there}" if there else ""
        self.lines.add(f"load<{lane.count}>({to}, &{element}{test});")

    def _written(
        self, fill: ir.Fill, store: ir.Store, lane: ir.Fold | None, scope: CudaScope, held: str
    ) -> None:
        """Writes what registers hold to a panel: neighbours at once, unless it is transposed."""
        to = self.memory.element(store.ref, scope)
        if lane is None:
            self.lines.add(f"{to} = {held}[0];")
        elif not is_transposed(fill, self.memory.layout(store.ref)):
            self.writer.used.add("store")
            self.lines.add(f"store<{lane.count}>(&{to}, {held});")
        else:
            for k in range(lane.count):
                to = self.memory.element(store.ref, scope.with_fold(lane, str(k)))
                self.lines.add(f"{to} = {held}[{k}];")

    def _one(self, to: str, element: str, there: str, store: ir.Store) -> None:
        zero = f"({self.memory.element_type(store.ref.tensor)})0"
        self.lines.add(f"{to} = {f'{there} ? {element} : {zero}' if there else element};")

    def _copied_parts(
        self, fill: ir.Fill, scope: CudaScope, constant: Container[str] = ()
    ) -> tuple[str, str, str]:
        """Where to, what, and on which condition; else a zero. ``constant``: as in ``element``."""
        _, store, load, condition = copied(fill)
        to = self.memory.element(store.ref, scope)
        there = "" if condition is None else self.writer.text(condition, scope)
        return to, self.memory.element(load.ref, scope, constant), there

    @contextmanager
    def _each(
        self, fill: ir.Fill, scope: CudaScope, part: tuple[str, int] | None = None
    ) -> Iterator[tuple[ir.Store, ir.Fold | None, CudaScope, str]]:
        """Inside of the loops over what a thread copies: the copy, the fold of what is read at
        once, and the number of the step. ``part``: as in ``fill_async``; a loop whose iterations
        are divided evenly, else the first part is all of them."""
        loops, store, *_ = copied(fill)
        lane, step, depth = None, "0", 0
        guarded: dict[str, None] = {}
        geometry = self.writer.geometry
        number, parts = part or ("", 1)
        once = (ir.Kind.THREAD, ir.Kind.VECTOR)
        folds = (x.fold for x in loops if x.kind not in once)
        divided = next((f for f in folds if parts > 1 and f.count % parts == 0), None)
        with self.threads.taking_part(fill.body, scope):
            if parts > 1 and divided is None:
                self.lines.open(f"if ({number} == 0) {{")
            for loop in loops:
                fold = loop.fold
                if geometry.ragged[fold.dim]:
                    guarded[fold.dim] = None
                if loop.kind is ir.Kind.VECTOR:
                    lane = fold
                    scope = scope.with_fold(fold, "0")
                elif loop.kind is not ir.Kind.THREAD and fold.count == 1:
                    scope = scope.with_fold(fold, "0")
                elif fold == divided and fold.count == parts:
                    scope = scope.with_fold(fold, f"{number} * {fold.step}")
                elif loop.kind is not ir.Kind.THREAD:
                    name = self.writer.names.name_of(f"step {depth}", "step")
                    depth += 1
                    if loop.kind is ir.Kind.UNROLL:
                        self.lines.add("#pragma unroll", margin=True)
                        self._steps.add(name)
                    count = fold.count // parts if fold == divided else fold.count
                    self.lines.open(f"for (int {name} = 0; {name} < {count}; ++{name}) {{")
                    text = name if fold.step == 1 else f"{name} * {fold.step}"
                    if fold == divided:
                        text = f"{number} * {count * fold.step} + {text}"
                    scope = scope.with_fold(fold, text)
                    step = name if step == "0" else f"({step}) * {fold.count} + {name}"
            if guarded:
                self.lines.open(f"if ({self.memory.bounds_test(guarded, scope)}) {{")
            yield store, lane, scope, step
