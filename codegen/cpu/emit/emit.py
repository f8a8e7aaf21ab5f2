"""Loop IR → LLVM IR text.

One function, entered as ``tcl.codegen.cpu.abi`` says, and beside it the one that runs it on a
single thread. Nothing in the text comes from names of the def.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import assert_never

from tcl.codegen.common.sites import Site
from tcl.codegen.cpu.abi import PAGE, apart
from tcl.codegen.cpu.emit.accesses import AccessEmitter
from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.addresses import FAIL, Addresses
from tcl.codegen.cpu.emit.dots import Dots
from tcl.codegen.cpu.emit.loops import LoopEmitter
from tcl.codegen.cpu.emit.matrix import MatrixUnit
from tcl.codegen.cpu.emit.ragged import Ragged
from tcl.codegen.cpu.emit.scope import (
    AccumulatorRegisters,
    At,
    PointCount,
    PointRange,
    Scope,
    number,
)
from tcl.codegen.cpu.emit.sharing import Sharing
from tcl.codegen.cpu.emit.sizes import definitions
from tcl.codegen.cpu.emit.values import Values
from tcl.codegen.cpu.llvm.arith import arithmetic
from tcl.codegen.cpu.llvm.branches import only_if
from tcl.codegen.cpu.llvm.builder import Builder, Val, register_type
from tcl.codegen.cpu.llvm.entry import OPENING, alone
from tcl.codegen.cpu.llvm.transpose import mixed
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import besides, is_free, of_indices_and_data
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.terms import common_guard, guard, terms
from tcl.codegen.loopir.terms import product as product_of
from tcl.codegen.loopir.walk import loads, statements, variables, walk
from tcl.common.dataclass import dataclass
from tcl.common.recursion import with_room
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.types import ScalarType


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel as LLVM IR."""

    text: str
    sites: tuple[Site, ...]
    """By number, as the error record names them."""
    regions: int = 0
    """Loops whose iterations threads share; a kernel that has none runs on one thread."""


def emit_program(program: ir.Built, device: CpuProfile, *, unchecked: bool = False) -> KernelSource:
    """The LLVM IR of a built program. ``unchecked`` leaves out the checks of data-dependent
    subscripts. Raises ``CompileError`` for a built-in that this machine's C library lacks."""
    return with_room(lambda: _emit(program, device, unchecked))


def _aligned(b: Builder, pointer: Val, base: int) -> Val:
    """The next multiple of so many bytes; memory that has to begin there has room to spare."""
    there = b.op(f"getelementptr i8, {pointer}, i64 {base - 1}", "ptr")
    return b.call("llvm.ptrmask.p0.i64", "ptr", 1, there, Val(str(-base), "i64"))


def _emit(program: ir.Built, device: CpuProfile, unchecked: bool) -> KernelSource:
    b = Builder(features=device.present, fused=device.fused, rounds=device.rounds)
    pointers: dict[str, Val] = {}
    for k, tensor in enumerate(program.tensors):
        at = b.op(f"getelementptr ptr, ptr %tensors, i64 {k}", "ptr")
        pointers[tensor.name] = b.op(f"load ptr, {at}, align 8", "ptr")
    pointers |= moved_apart(b, program.tensors, pointers)
    for tensor in program.tensors:
        if tensor.private:
            own = b.op(f"mul i64 %thread, {number(apart(tensor.layout.bytes)).text}", "i64")
            pointers[tensor.name] = b.op(f"getelementptr i8, {pointers[tensor.name]}, {own}", "ptr")
        if tensor.role is ir.Role.SCRATCH and tensor.layout.base > 1:
            pointers[tensor.name] = _aligned(b, pointers[tensor.name], tensor.layout.base)
    sites: list[Site] = []
    b.set_apart([t.name for t in program.tensors])
    regions = Statements(b, program, pointers, device, unchecked, sites).emit()
    failed = b.op("load i64, ptr %error, align 8", "i64")
    result = b.op(f"trunc {failed} to i32", "i32")
    b.do(f"ret {result}")
    lines = b.finished()
    sizes = definitions(program, lines)
    body = [*OPENING, *sizes, *b.entry, *lines, "}", "", alone()]
    parts = [*b.declared.values(), "", *b.defined.values(), *([FAIL] if sites else []), *body]
    return KernelSource("\n".join(parts), tuple(sites), regions)


class Statements:
    """Emits the body of a program at the end of a builder's function."""

    def __init__(
        self,
        b: Builder,
        program: ir.Built,
        pointers: dict[str, Val],
        device: CpuProfile,
        unchecked: bool,
        sites: list[Site],
    ) -> None:
        self.b, self.program = b, program
        self.x86 = device.architecture == "x86_64"
        self.dims = {d.name: d for s in program.spaces for d in s.dims}
        self.values = Values(b, self.dims, device.converts_half)
        places = Pointers(b, pointers)
        addresses = Addresses(
            *(b, program, self.dims, places, unchecked),
            *(self.values.value, self.values.parting, sites),
        )
        self.memory = AccessEmitter(
            *(b, program, places, addresses, device.converts_half),
            masks=device.has("avx512bw") and device.has("avx512vl"),
            ends_soon=device.reads_ahead,
        )
        self.values.memory = self.memory
        self.matrix = MatrixUnit(b, device, program, self.dims, places)
        self.dots = Dots(b, device, self.values, self.memory)
        self.loops = LoopEmitter(
            *(b, program, self.statement, addresses.as_number, self.memory),
            *(self.values.value, Ragged(program, self.memory.masks)),
        )
        self.guards: dict[int, ir.Value | None] = {}
        """By identity of a loop: as of ``common_guard``."""
        self.added: dict[int, list[tuple[ir.Value | None, ir.Value]]] = {}
        """By identity of an accumulation: what it adds, and under which conditions."""
        self.kinds = {x.fold.name: x.kind for s in program.spaces for x in s.loops}

    def emit(self) -> int:
        """All kernels. Threads share the chunks of those that have some; the first one does what
        lies between. Returns the number of regions by which they meet; 0 if nothing is shared."""
        scope = Scope(
            {d.name: PointRange(At(), PointCount.for_extent(d.extent)) for d in self.dims.values()}
        )
        threads = Sharing(self.b)
        alone = not any(k.grid for k in self.program.kernels)
        for position, kernel in enumerate(self.program.kernels):
            if position and not alone:
                threads.meet()
            if kernel.grid:
                with self.matrix.configured(kernel.body):
                    self.loops.shared(kernel, threads, scope)
            elif alone:
                self._alone(kernel.body, scope)
            else:
                threads.first_only(partial(self._alone, kernel.body, scope))
            # On x86, what was written past the caches is not in order with what is written after
            # it: before other threads are told that it is there, it has to be.
            self.memory.across.settle()
            if self.x86 and any(
                isinstance(s, ir.Store) and s.streamed for s in statements(kernel.body)
            ):
                self.b.do(self.b.call_text("llvm.x86.sse.sfence", "void"))
        return 0 if alone else len(self.program.kernels)

    def _alone(self, body: ir.Statement, scope: Scope) -> None:
        with self.matrix.configured(body):
            self.statement(body, scope)

    def statement(self, statement: ir.Statement, scope: Scope) -> None:
        """One statement, and everything inside it."""
        match statement:
            case ir.Block(body=body):
                self._block(body, scope.copied())
            case ir.For(loop=ir.Loop(fold=fold, kind=ir.Kind.DOT), body=body):
                self._at_once(fold, body, scope)
            case ir.For(loop=ir.Loop(kind=ir.Kind.MMA)):
                self._fragment(statement, scope)
            case ir.For():
                self._loop(statement, scope)
            case ir.First() | ir.Within():
                self.loops.either(statement, scope)
            case ir.Let(name=name, value=value):
                scope.variables[name] = self.values.let(value, scope)
                scope.lets[name] = value
            case ir.Declare():
                self._declare(statement, scope)
            case ir.Accumulate():
                self._accumulate(statement, scope)
            case ir.Scan():
                self._scan(statement, scope)
            case ir.Carry():
                self._carry(statement, scope)
            case ir.Matrix(name=name):
                own = scope.accumulators[name]
                key = tuple([scope.folds[each].constant for each in own.names])
                self.matrix.move(statement, own, scope, self.values.slot_at(own, key))
            case ir.Store():
                self._write(statement, scope)
            case ir.Update():
                self._block((statement,), scope)
            case ir.Prefetch():
                self.memory.prefetch(statement, scope)
            case ir.Barrier() | ir.Fill() | ir.Pipeline() | ir.Last():
                raise ir.IRError(f"a CPU has no {type(statement).__name__}")
            case _:
                assert_never(statement)

    def _block(self, body: Sequence[ir.Statement], scope: Scope) -> None:
        if body and isinstance(last := body[-1], ir.Update):
            self._scatter(body[:-1], last, scope)
            return
        for statement in body:
            self.statement(statement, scope)

    def _loop(self, loop: ir.For, scope: Scope) -> None:
        """A loop; one that changes nothing unless a condition holds only if it does."""
        key = id(loop)
        if key not in self.guards:
            self.guards[key] = self._guard(loop)
        condition = self.guards[key]
        if condition is not None and scope.holds:
            condition = besides(condition, scope.holds)
        inner = partial(self.loops.loop, loop.loop, loop.body, scope)
        if condition is None or scope.lanes > 1:
            inner()
        else:
            self._where(self.values.value(condition, scope), inner)

    def _guard(self, loop: ir.For) -> ir.Value | None:
        """The condition of a loop that is worth a branch: what is written out, and may be computed
        in vain, rather is."""
        free = all(
            isinstance(s, ir.Accumulate) and is_free(guard(s.op, s.value)[1])
            for s in statements(loop)
            if isinstance(s, ir.Accumulate | ir.Update)
        )
        return None if free and loop.loop.kind is not ir.Kind.SERIAL else common_guard(loop)

    def _where(self, condition: Val, emit: Callable[[], None]) -> None:
        """What is done where a condition holds that is the same in all lanes."""
        condition = self.b.settled(condition)
        if condition.text == "true":
            emit()
        elif condition.text != "false":
            only_if(self.b, lambda: condition, emit, "then", whole=True)

    def _write(self, store: ir.Store, scope: Scope) -> None:
        ref, value = store.ref, store.value
        if isinstance(value, ir.Load) and self.memory.copy_elements(
            ref, value, scope, store.padded
        ):
            return
        made = self.values.value(value, scope)
        self.memory.store(ref, made, scope, store.streamed, store.padded)

    def _scatter(self, first: Sequence[ir.Statement], update: ir.Update, scope: Scope) -> None:
        """An update after other statements of its block, of which values that its condition does
        not need are computed where that holds."""
        b, op = self.b, update.op
        condition, value = guard(op, update.value)
        later = [] if condition is None else _only_where(condition, first)
        for s in first:
            if s not in later:
                self.statement(s, scope)

        free = condition is not None and scope.lanes == 1 and self._free(update.ref, value, later)

        def counted(where: Val | None = None) -> None:
            for s in later:
                self.statement(s, scope)
            made = self.values.value(value, scope)
            others = where is not None and _reads_others(condition, update.ref, first)
            self.memory.update(
                update.ref,
                lambda old: arithmetic(b, op, old, made, value.type),
                scope,
                where,
                others,
            )

        if condition is None:
            counted()
            return
        # What indices decide is foreseen: a branch leaves out the updates that do not count.
        indices, data = of_indices_and_data(condition) if free else (condition, None)

        def chosen() -> None:
            where = None if data is None else b.settled(self.values.value(data, scope))
            if where is None or where.text == "true":
                counted()
            elif where.text != "false":
                counted(where)

        if indices is None:
            chosen()
            return
        there = self.values.value(indices, scope)
        if there.lanes > 1:
            raise ir.IRError("whether lanes of a scatter count differs between them")
        self._where(there, chosen)

    def _free(self, ref: ir.TensorRef, value: ir.Value, lets: Sequence[ir.Let]) -> bool:
        """Whether what an update needs may be computed where it does not count, too."""
        values = [value, *(s.value for s in ref.computed), *(let.value for let in lets)]
        affine = all(load.ref.is_affine for v in values for load in loads(v))
        return affine and all(map(is_free, values))

    def _at_once(self, fold: ir.Fold, statement: ir.Statement, scope: Scope) -> None:
        """A statement for all points of a dot product."""
        match statement:
            case ir.Block(body=body):
                for s in body:
                    self._at_once(fold, s, scope)
            case ir.Accumulate():
                self.dots.add(fold, statement, scope)
            case ir.Store():
                self.dots.store(fold, statement, scope)
            case ir.Prefetch():
                self.memory.prefetch(statement, scope)
            case _:
                raise ir.IRError(f"{fold.name}: no instruction does a {type(statement).__name__}")

    def _fragment(self, statement: ir.For, scope: Scope) -> None:
        """What a matrix unit does at once; or a part of a fragment, one after the other."""
        loops: list[ir.Loop] = []
        inner: ir.Statement = statement
        while isinstance(inner, ir.For) or (isinstance(inner, ir.Block) and len(inner.body) == 1):
            if isinstance(inner, ir.For):
                loops.append(inner.loop)
            inner = inner.body if isinstance(inner, ir.For) else inner.body[0]
        mma = [x.fold for x in loops if x.kind is ir.Kind.MMA]
        if len(mma) == 2 and isinstance(inner, ir.Accumulate):
            self.matrix.multiply(tuple(x.fold for x in loops), inner, scope)
        elif self.dims[statement.loop.fold.dim].reduction:
            self.loops.padded(statement.loop.fold, statement.body, scope)
        else:
            self.loops.loop(ir.Loop(statement.loop.fold), statement.body, scope)

    def _declare(self, declare: ir.Declare, scope: Scope) -> None:
        b = self.b
        lanes = [f.count for f in declare.over if self.kinds[f.name] is ir.Kind.VECTOR]
        unrolled = tuple(f for f in declare.over if self.kinds[f.name] is ir.Kind.UNROLL)
        width = lanes[0] if lanes else scope.lanes
        rows = next((f for f in declare.over if self.kinds[f.name] is ir.Kind.MMA), None)
        own = AccumulatorRegisters(register_type(declare.type), width, unrolled, rows=rows)
        scope.accumulators[declare.name] = own
        if rows is not None and declare.start is None:
            keys = product(*(range(0, f.step * f.count, f.step) for f in unrolled))
            self.matrix.declare(own, list(keys))
        if declare.start is not None:
            start = b.spread(self.values.value(declare.start, scope), width)
            for key in product(*(range(0, f.step * f.count, f.step) for f in unrolled)):
                self.values.each_row(own, key, lambda at: self.values.hold(own, at(own), start))

    def _carry(self, carry: ir.Carry, scope: Scope) -> None:
        b = self.b
        own, total = scope.accumulators[carry.name], scope.accumulators[carry.total]
        lost = scope.accumulators[carry.lost] if carry.lost else None
        zero = b.spread(b.constant(0.0, own.type), own.lanes)

        def each(at: Callable[[AccumulatorRegisters], str]) -> None:
            def held(some: AccumulatorRegisters) -> Val:
                return self.values.held(some, at(some))

            new, old = held(own), held(total)
            if lost is not None:
                new = b.binary("fsub", new, held(lost))
            after = b.binary("fadd", old, new)
            if lost is not None:
                off = b.binary("fsub", b.binary("fsub", after, old), new)
                still = b.binary("fsub", off, off)  # not a number for an infinite sum
                finite = b.compare("fcmp ord", still, still)
                self.values.hold(lost, at(lost), b.select(finite, off, zero))
            self.values.hold(total, at(total), after)
            self.values.hold(own, at(own), zero)

        for key in list(own.slots):
            self.values.each_row(own, key, each)

    def _scan(self, scan: ir.Scan, scope: Scope) -> None:
        b, own, op, type_ = self.b, scope.accumulators[scan.name], scan.op, scan.value.type
        new = b.spread(self.values.value(scan.value, scope), scope.lanes)
        before = self.values.accumulated(own, scope)
        if own.lanes == scope.lanes:
            result = last = arithmetic(b, op, before, new, type_)
        else:
            start = identity(op, type_)
            if op == "+" and type_.is_float:
                start = ir.Const(-0.0, type_)  # of +0.0, LLVM makes shuffles that are slow on Zen 4
            nothing = b.spread(self.values.value(start, scope), scope.lanes)
            if scope.there is not None:
                new = b.select(scope.there, new, nothing)
            new = self._prefix(op, new, nothing, type_)
            result = arithmetic(b, op, b.spread(before, scope.lanes), new, type_)
            last = arithmetic(b, op, before, b.lane(new, scope.lanes - 1), type_)
        self.values.hold(own, self.values.slot(own, scope), last)
        scope.variables[scan.result] = result

    def _prefix(self, op: str, value: Val, nothing: Val, type_: ScalarType) -> Val:
        """In each lane the reduction over the lanes up to there, in as many steps as there are
        doublings."""
        b, lanes, shift = self.b, value.lanes, 1
        while shift < lanes:
            places = [lanes + k - shift if k >= shift else k for k in range(lanes)]
            value = arithmetic(b, op, mixed(b, nothing, value, places), value, type_)
            shift *= 2
        return value

    def _accumulate(self, statement: ir.Accumulate, scope: Scope) -> None:
        op, key = statement.op, id(statement)
        if key not in self.added:
            self.added[key] = [guard(op, value) for value in terms(op, statement.value)]
        for condition, value in self.added[key]:
            self._add(statement, condition, value, scope)

    def _add(
        self,
        statement: ir.Accumulate,
        condition: ir.Value | None,
        value: ir.Value,
        scope: Scope,
    ) -> None:
        b = self.b
        if condition is not None and scope.holds:
            condition = besides(condition, scope.holds)
        chosen = (
            Val("true", "i1")
            if condition is None
            else b.settled(self.values.value(condition, scope))
        )
        if chosen.text == "true":
            self._update(statement, value, scope)
        elif chosen.lanes > 1:
            inner = self.values.lanes_where(chosen, value, scope)
            self._update(statement, value, inner, chosen)
        elif is_free(value):
            # Of what data decide LLVM would make branches, as it takes them to wait for memory.
            data = condition is not None and any(True for _ in loads(condition))
            self._update(statement, value, scope, chosen, foreseen=not data)
        else:
            self._where(chosen, partial(self._update, statement, value, scope))

    def _update(
        self,
        to: ir.Accumulate,
        value: ir.Value,
        scope: Scope,
        where: Val | None = None,
        *,
        foreseen: bool = True,
    ) -> None:
        """``accumulator op= value``, where a condition holds that a core has ``foreseen``."""
        b, op, own = self.b, to.op, scope.accumulators[to.name]
        added: list[Val] = []
        if op == "=":
            result = self.values.value(value, scope)
        elif op == "+" and (both := product_of(value)) is not None:
            # Any rounding will do in a reduction: one instruction where the machine has it.
            left = self.values.value(both.left, scope)
            right = self.values.value(both.right, scope)
            added = [left, right]
            result = b.intrinsic("fmuladd", left, right, self.values.accumulated(own, scope))
        else:
            new = self.values.value(value, scope)
            added = [new]
            old = self.values.accumulated(own, scope)
            result = arithmetic(b, op, old, new, value.type)
        result = b.spread(result, own.lanes)
        if where is not None:
            old = self.values.accumulated(own, scope)
            choose = b.select if foreseen or result.lanes > 1 else b.unforeseen
            result = choose(where, result, old)
        if scope.there is not None and self.dims[scope.lane_dim].reduction:
            # Lanes that do not exist have nothing to add; of what was read under a mask, that is 0.
            # To choose by a constant mask, LLVM keeps two values of each sum: filter gradients of
            # 28 x 28 with 24 sums took 5 times as long on Zen 4.
            there = scope.there
            if op != "+" or not all((v.text, there.text) in b.zeroed for v in added):
                result = b.select(there, result, self.values.accumulated(own, scope))
        self.values.hold(own, self.values.slot(own, scope), result)


def _only_where(condition: ir.Value, body: Sequence[ir.Statement]) -> list[ir.Let]:
    """The values with names in a block that are computed only where a condition holds: it needs
    them not, they check no subscript where it does not hold, and they are something there alone, or
    computed of floats. Others may begin, and read, before the condition is known: on Cascade Lake,
    a sum by groups takes 1.1 times as long where they do not, and one by distances .85."""
    lets = {s.name: s.value for s in body if isinstance(s, ir.Let)}

    def guarded(value: ir.Value) -> bool:
        return isinstance(value, ir.Select) and value.condition == condition

    def late(value: ir.Value) -> bool:
        checks = any(s.check for load in loads(value) for s in load.ref.computed)
        return guarded(value) or (not checks and any(v.type.is_float for v in walk(value)))

    asked = {name for name, value in lets.items() if not late(value)}
    pending = [condition, *(lets[name] for name in asked)]
    while pending:
        named = {v.name for v in walk(pending.pop()) if isinstance(v, ir.Variable)}
        pending += [lets[name] for name in named & lets.keys() - asked]
        asked |= named
    return [s for s in body if isinstance(s, ir.Let) and s.name not in asked]


def _reads_others(
    condition: ir.Value | None, ref: ir.TensorRef, body: Sequence[ir.Statement]
) -> bool:
    """Whether a condition is made of other tensors than the subscripts of an element, behind the
    names of values in a block, too."""
    read: dict[str, set[str]] = {}

    def tensors(value: ir.Value) -> set[str]:
        found = {load.ref.tensor for load in loads(value)}
        return found.union(*(read.get(name, {name}) for name in variables([value])))

    for s in body:
        if isinstance(s, ir.Let):
            read[s.name] = tensors(s.value)
    asked = set() if condition is None else tensors(condition)
    return all(asked.isdisjoint(tensors(s.value)) for s in ref.computed)


_PARTS = 8
"""Places in a page where a piece may begin."""
_BEFORE = 192
"""Bytes before a piece at which an array begins too near. On Zen 4 (softmax of 4096 x 1024, which
reads its input while it writes a piece, and the piece while it writes its output), an input takes
1.35 to 1.65 times as long from 112 bytes before a piece to 16 behind it, an output 1.1 to 1.65
times from 16 to 272 bytes behind; both together 2.4 times."""
_FARTHEST = _PARTS // 2
"""The first part that is tried, counted from the one in which large arrays begin that the system
maps for them."""


def moved_apart(
    b: Builder, tensors: Sequence[ir.Tensor], pointers: Mapping[str, Val]
) -> dict[str, Val]:
    """The addresses of scratch tensors, each moved by less than a page, for which there is room:
    to a part of a page where neither an array of this call nor another of these begins, while
    there are such parts. What a kernel writes there is then not taken for what it reads from an
    array, or the other way round: see ``PAGE``."""
    scratch = [t for t in tensors if t.role is ir.Role.SCRATCH]
    if not scratch:
        return {}
    one, taken, step = number(1), number(0), PAGE // _PARTS
    for tensor in tensors:
        size = tensor.layout.bytes
        if tensor.role is not ir.Role.SCRATCH and (isinstance(size, Size) or size >= PAGE):
            address = b.op(f"ptrtoint {pointers[tensor.name]} to i64", "i64")
            begin = b.binary("add", address, number(_BEFORE + _FARTHEST * step))
            part = b.binary("and", b.binary("udiv", begin, number(step)), number(_PARTS - 1))
            taken = b.binary("or", taken, b.binary("shl", one, part))
    found = {}
    for tensor in scratch:
        pointer = pointers[tensor.name]
        full = b.compare("icmp eq", taken, number((1 << _PARTS) - 1))
        taken = b.select(full, number(0), taken)
        free = b.binary("xor", taken, number(-1))
        part = b.op(b.call_text("llvm.cttz.i64", "i64", free, Val("true", "i1")), "i64")
        place = b.binary("mul", b.binary("add", part, number(_FARTHEST)), number(step))
        address = b.op(f"ptrtoint {pointer} to i64", "i64")
        move = b.binary("and", b.binary("sub", place, address), number(PAGE - 1))
        found[tensor.name] = b.op(f"getelementptr i8, {pointer}, {move}", "ptr")
        taken = b.binary("or", taken, b.binary("shl", one, part))
    return found
