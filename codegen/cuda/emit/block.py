"""One kernel: what a block does, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import assert_never

from tcl.codegen.cuda.cpp.types import c_type, constant
from tcl.codegen.cuda.emit.combine import combines, write_combined
from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.guards import guarded
from tcl.codegen.cuda.emit.leaf import write_leaf
from tcl.codegen.cuda.emit.pipeline import pipeline
from tcl.codegen.cuda.emit.scope import Scope
from tcl.codegen.cuda.emit.writer import Accumulators, Writer, chain
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import branches, statements
from tcl.codegen.passes.gpu.barriers import alone
from tcl.codegen.passes.gpu.bind import thread_folds
from tcl.codegen.passes.gpu.mma_shape import THREADS

UNROLLED = 1024
"""Points that may be written out one after the other."""
BRANCHING = 4
"""How many of those a point with branches is worth: compilers take long to straighten them out."""
LONGEST = 16
"""Iterations that are."""


class Kernel:
    """Writes the statements of one kernel."""

    def __init__(self, writer: Writer, threads: int, profile: GpuProfile) -> None:
        self.writer = writer
        self.geometry, self.memory = writer.geometry, writer.memory
        self.lines, self.integer = writer.lines, writer.integer
        self.threads = threads
        """Of a block."""
        self.async_copies = profile.async_copies
        # From sm_100 on, NVRTC 13.5 crashes on some sums that not all threads take part in. What
        # the others add up then is what the first ones do, and is stored nowhere.
        self.idle_sums = profile.capability >= (10, 0)
        self.fills = Fills(writer)
        self.offsets: dict[str, str] = {}
        """Expression of a block's or thread's offset → its variable."""
        self.repeated = False
        """Whether this place is in a loop that all threads run together."""
        self.written: frozenset[str] = frozenset()
        """The tensors that the kernel writes."""

    # Where blocks and threads are.

    def bind(self, chunks: Sequence[tuple[ir.Fold, ...]], nests: Sequence[ir.Nest]) -> Scope:
        """The offsets of blocks and threads, as variables."""
        scope = Scope({})
        after = math.prod(folds[0].count for folds in chunks)
        for k, folds in enumerate(chunks):
            count = folds[0].count
            after //= count
            text = _place("blockIdx.x", after, count, outermost=k == 0)
            name = self._offset(folds[0], text, "block")
            for fold in folds:
                scope = scope.with_fold(fold, name)
        for nest in nests:
            scope = self._threads(nest, scope)
        return scope

    def _threads(self, nest: ir.Nest, scope: Scope) -> Scope:
        folds = thread_folds(nest)
        after = math.prod(f.count for f in folds)
        whole = after == self.threads
        for k, fold in enumerate(folds):
            after //= fold.count
            text = _place("threadIdx.x", after, fold.count, outermost=whole and k == 0)
            scope = scope.with_fold(fold, self._offset(fold, text, fold.level))
        return scope

    def _offset(self, fold: ir.Fold, text: str, what: str) -> str:
        """The variable of a fold's offset, from its iteration."""
        if fold.count == 1:
            return "0"
        index = fold.dim.rpartition(".")[2]
        if self.geometry.nest_of[fold.dim].name in self.geometry.fills:
            index = f"copy{index}"
        step = f" * {fold.step}" if fold.step != 1 else ""
        cast = f"({self.integer})"
        text = f"{cast}({text}){step}" if " " in text else f"{cast}{text}{step}"
        if text not in self.offsets:  # nests that share a block often have the same
            name = self.offsets[text] = self.writer.names.new(f"{index}_{what}")
            self.lines.add(f"const {self.integer} {name} = {text};")
        return self.offsets[text]

    # Statements that all threads run together.

    def together(self, statement: ir.Statement, scope: Scope) -> None:
        """A statement outside of loops over threads."""
        match statement:
            case ir.Block(body=body) if not alone(statement):
                for s in body:
                    self.together(s, scope)
            case ir.Barrier():
                self.lines.add("__syncthreads();")
            case ir.Declare():
                self._declare(statement)
            case ir.For(loop=loop, body=body) if _phases(statement):
                parts = body.body if isinstance(body, ir.Block) else (body,)
                ahead = pipeline(self, statement, parts)
                if ahead is not None:
                    ahead.write(scope, again=self.repeated)
                    return
                before, self.repeated = self.repeated, self.repeated or loop.fold.count > 1
                with self.serial(loop.fold, scope) as inner:
                    self.together(body, inner)
                self.repeated = before
            case ir.Block() | ir.For() | ir.Store() | ir.Let() | ir.Accumulate():
                self._phase(statement, scope)
            case ir.First() | ir.Prefetch():
                raise ir.IRError(f"a GPU has no {type(statement).__name__}")
            case _:
                assert_never(statement)

    def serial(self, fold: ir.Fold, scope: Scope) -> _Opened:
        """A loop, as a context in which its fold is known."""
        return _Opened(self, fold, scope)

    def _declare(self, declare: ir.Declare) -> None:
        own = tuple(f for f in declare.over if f.level not in THREADS)
        name = self.writer.names.new(_spoken(declare.name))
        self.writer.accumulators[declare.name] = Accumulators(name, own)
        sizes = "".join(f"[{f.count}]" for f in own)
        type_ = c_type(declare.type)
        if declare.start is None:
            self.lines.add(f"{type_} {name}{sizes};")
            return
        start = constant(declare.start.value, declare.type)
        self.writer.used |= {"infinity"} if "infinity" in start else set()
        if not own:
            self.lines.add(f"{type_} {name} = {start};")
            return
        count = math.prod(f.count for f in own)
        self.lines.add(f"{type_} {name}{sizes};")
        self.lines.add("#pragma unroll", margin=True)
        flat = f"(&{name}{'[0]' * len(own)})[k]" if len(own) > 1 else f"{name}[k]"
        self.lines.add(f"for (int k = 0; k < {count}; ++k) {flat} = {start};")

    # Phases: what each thread does on its own.

    def _phase(self, statement: ir.Statement, scope: Scope) -> None:
        nest = self.nest_of(statement)
        if combines(statement):
            write_combined(self.writer, statement, scope)
            return
        if nest is not None and nest.name in self.geometry.fills:
            self.of_thread(statement, scope, self.fills.fill)
        else:
            self.of_thread(statement, scope, self._loops)

    def of_thread(
        self,
        statement: ir.Statement,
        scope: Scope,
        write: Callable[[ir.Statement, Scope], None],
    ) -> None:
        """What each thread does that has a part in it."""
        nest = self.nest_of(statement)
        inside = list(statements(statement))
        bound = {s.loop.fold for s in inside if isinstance(s, ir.For)}
        stores = any(isinstance(s, ir.Store) for s in inside)
        if stores:
            tests = self._one_thread(nest, bound, scope)
        else:
            tests = [] if self.idle_sums else self._busy(nest)
        with self.lines.nested():
            if tests:
                self.lines.open(f"if ({' && '.join(tests)}) {{")
            write(statement, scope)

    def nest_of(self, statement: ir.Statement) -> ir.Nest | None:
        """The nest whose loops a phase has."""
        for s in statements(statement):
            if isinstance(s, ir.For):
                return self.geometry.nest_of[s.loop.fold.dim]
        return None

    def _busy(self, nest: ir.Nest | None) -> list[str]:
        """Tests that a thread has a part in the nest."""
        count = math.prod(f.count for f in thread_folds(nest)) if nest is not None else 1
        return [f"threadIdx.x < {count}"] if 1 < count < self.threads else []

    def _one_thread(self, nest: ir.Nest | None, bound: set[ir.Fold], scope: Scope) -> list[str]:
        """Tests that leave one thread for each iteration of the loops over threads."""
        folds = thread_folds(nest) if nest is not None else ()
        if not any(f in bound for f in folds):
            return ["threadIdx.x == 0"] if self.threads > 1 else []
        others = [f"{scope.folds[f.name]} == 0" for f in folds if f not in bound]
        return [*self._busy(nest), *others]

    def _loops(self, statement: ir.Statement, scope: Scope) -> None:
        """Loops of one thread, from the outermost."""
        match statement:
            case ir.For() | ir.Accumulate() if combines(statement):
                write_combined(self.writer, statement, scope)
            case ir.Declare():
                self._declare(statement)
            case ir.For(loop=loop, body=body) if loop.kind is ir.Kind.THREAD:
                self._loops(body, scope)
            case ir.For(loop=loop, body=body) if loop.kind is ir.Kind.SERIAL:
                self._unroll(statement)
                with self.serial(loop.fold, scope) as inner:
                    self._loops(body, inner)
            case ir.For():
                loops, innermost = chain(statement)
                self._leaf(loops, innermost, scope)
            case ir.Block(body=parts) if not alone(statement):
                for s in parts:
                    self._loops(s, scope)
            case _:
                self._leaf((), statement, scope)

    def _leaf(self, loops: Sequence[ir.Loop], body: ir.Statement, scope: Scope) -> None:
        dims = guarded(self.geometry, body, loops, scope)
        write_leaf(self.writer, loops, body, dims, scope)

    def _unroll(self, loop: ir.For) -> None:
        """Lets loops of one thread be written out, or some of their iterations, so that what one of
        them reads comes while another one computes."""
        count = loop.loop.fold.count
        inside = [s.loop for s in statements(loop.body) if isinstance(s, ir.For)]
        if any(x.fold.level == "mma" for x in inside):  # an instruction for many points
            inside = [x for x in inside if x.fold.level == "register"]
        points = math.prod(x.fold.count for x in inside if x.kind is not ir.Kind.THREAD)
        if branches(loop.body):
            points *= BRANCHING
        if count < 2 or points > UNROLLED:
            return
        whole = count <= LONGEST and count * points <= UNROLLED
        times = count if whole else max(1, min(4, UNROLLED // points))
        if times > 1:
            self.lines.add("#pragma unroll" + ("" if whole else f" {times}"), margin=True)


class _Opened:
    """A serial loop."""

    def __init__(self, kernel: Kernel, fold: ir.Fold, scope: Scope) -> None:
        self.kernel, self.fold, self.scope = kernel, fold, scope
        self.nested = kernel.lines.nested()

    def __enter__(self) -> Scope:
        self.nested.__enter__()
        fold, kernel = self.fold, self.kernel
        count = kernel.geometry.iterations(fold)
        if count == 1:
            return self.scope.with_fold(fold, "0")
        index = fold.dim.rpartition(".")[2]
        wish = index if fold.step == 1 and fold.level == "point" else f"{index}_{fold.level}"
        name = kernel.writer.names.new(wish)
        end = fold.step * count
        kernel.lines.open(
            f"for ({kernel.integer} {name} = 0; {name} < {end}; {name} += {fold.step}) {{"
        )
        return self.scope.with_fold(fold, name)

    def __exit__(self, *error: object) -> None:
        self.nested.__exit__(None, None, None)


def _phases(loop: ir.For) -> bool:
    """Whether threads run the loop together: loops over threads lie in it."""
    if loop.loop.kind is not ir.Kind.SERIAL:
        return False
    return any(
        isinstance(s, ir.Barrier) or (isinstance(s, ir.For) and s.loop.kind is ir.Kind.THREAD)
        for s in statements(loop.body)
    )


def _place(of: str, after: int, count: int, *, outermost: bool) -> str:
    """The iteration of a fold, each of which goes through ``after`` others."""
    text = f"{of} / {after}" if after > 1 else of
    return text if outermost else f"{text} % {count}"


def _spoken(name: str) -> str:
    """What an accumulator is called."""
    return name.replace("accumulator", "sum")


def chunks_of(kernel: ir.Statement) -> tuple[list[tuple[ir.Fold, ...]], ir.Statement]:
    """The loops over chunks around what a block does."""
    found = []
    while isinstance(kernel, ir.For) and kernel.loop.kind is ir.Kind.PARALLEL:
        found.append((kernel.loop.fold, *kernel.along))
        kernel = kernel.body
    return found, kernel


def with_fills(nests: Sequence[ir.Nest]) -> list[ir.Nest]:
    """The nests, and those that fill their panels."""
    return [m for n in nests for m in (n, *(c.fill for c in n.staged if c.fill is not None))]
