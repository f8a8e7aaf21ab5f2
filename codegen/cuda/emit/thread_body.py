"""The innermost part of a nest: unrolled loops and lanes around a few statements.

What is read is read first, to registers, in vectors where memory allows; then the statements are
written out; what is stored in lanes is gathered and written in vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.codegen.cuda.cpp.types import c_type, from_memory, to_memory
from tcl.codegen.cuda.emit.mma import tensor_cores
from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.writer import Writer, iteration
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.fragments import Fragment, fragments, row_loop
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.thread_body import ThreadBody


def read_fragment(fragment: Fragment, writer: Writer, scope: CudaScope) -> str:
    """Reads it; the variable that has it then."""
    ref, memory, lines = fragment.load.ref, writer.memory, writer.lines
    name = writer.names.new(f"{memory.name(ref.tensor).removesuffix('_tile')}_read")
    sizes = "".join(f"[{f.count}]" for f in fragment.over)
    sizes += f"[{fragment.length}]" if fragment.row else ""
    type_ = memory.element_type(ref.tensor)
    lines.add(f"{type_} {name}{sizes};")
    with writer.unrolled(fragment.over, scope) as inner:
        to = name + "".join(f"[{iteration(f, inner)}]" for f in fragment.over)
        if not fragment.row:
            test, element = memory.bounds_test(fragment.guarded, inner), memory.element(ref, inner)
            lines.add(f"{to} = {f'{test} ? {element} : ({type_})0' if test else element};")
            return name
        for fold, _ in fragment.row:
            inner = inner.with_fold(fold, "0")
        for first, width in fragment.pieces():
            at = inner.with_fold(fragment.row[0][0], str(first))
            test = memory.bounds_test(fragment.guarded, at)
            if width == 1:
                element = memory.element(ref, at)
                lines.add(
                    f"{to}[{first}] = {f'{test} ? {element} : ({type_})0' if test else element};"
                )
                continue
            writer.used.add("load")
            parts = [f"{to} + {first}" if first else to, memory.pointer(ref, at)]
            lines.add(f"load<{width}>({', '.join([*parts, *filter(None, [test])])});")
    return name


def register_of(fragment: Fragment, variable: str, scope: CudaScope) -> str:
    """The register of an element, of what was read to a variable."""
    numbers = [iteration(f, scope) for f in fragment.over]
    steps = ((iteration(f, scope), step) for f, step in fragment.row)
    along = [n if step == 1 else f"{n} * {step}" for n, step in steps if n != "0"]
    if fragment.row:
        numbers.append(" + ".join(along) or "0")
    return variable + "".join(f"[{n}]" for n in numbers)


def write_thread_body(writer: Writer, body: ThreadBody, scope: CudaScope) -> None:
    """Unrolled loops and lanes around statements."""
    product = tensor_cores(writer, body.loops, body.statements)
    if product is not None:
        product.write(scope)
        return
    whole = body.whole_vectors()
    if whole is None:
        _BodyWriter(writer, body).write(scope)
        return
    assert body.lane is not None
    reach, there = whole
    dim = writer.geometry.dims[body.lane.dim]
    first = writer.memory.index(ir.Affine.variable(dim.name), scope)
    end = writer.sizes.index_number(dim.first + dim.extent)
    with writer.lines.block(f"if ({first} + {reach} < {end}) {{"):
        _BodyWriter(writer, there).write(scope)
    with writer.lines.block("else {"):
        _BodyWriter(writer, body).write(scope)


@dataclass(frozen=True, slots=True)
class _BodyWriter:
    writer: Writer
    body: ThreadBody

    def write(self, scope: CudaScope) -> None:
        """What is read, then the loops; rows of an operand are read each where it is used."""
        writer, body = self.writer, self.body
        found = fragments(body.geometry, body.loops, body.statements)
        row = row_loop(body.geometry, body.loops, body.statements, found)
        read = {f: read_fragment(f, writer, scope) for f in found if row not in f.over}
        fixed = [x.fold for x in body.loops if x.fold not in (body.lane, row)]
        pairs = body.exchanged()
        if pairs is not None:
            self._exchanged(pairs, [f for f in fixed if f != pairs], scope, read)
            return
        if row is None:
            with writer.unrolled(fixed, scope) as inner:
                self._points(inner, read)
            return
        for statement in body.statements:
            assert isinstance(statement, ir.Accumulate)  # as ``row_loop`` has seen
            writer.accumulators[statement.name].of_rows = True
        summed = [f for f in fixed if body.geometry.dims[f.dim].reduction]
        results = [f for f in fixed if f not in summed]
        with writer.unrolled([row], scope) as outer:
            for f in found:
                if row in f.over:
                    own = replace(f, over=tuple([x for x in f.over if x != row]))
                    read[own] = read_fragment(own, writer, outer)
            turn = iteration(row, outer)
            with (
                writer.unrolled(summed, outer) as around,
                writer.unrolled(results, around, turn=turn) as inner,
            ):
                self._points(inner, read, turn)

    def _points(self, scope: CudaScope, read: Mapping[Fragment, str], turn: str = "") -> None:
        """The statements of some points, in lanes if there are any."""
        writer, lane = self.writer, self.body.lane
        known = {f.load.ref for f in read}
        inner = writer.complete(scope, self.body.statements, lane, known)
        outside, within = self.body.asked()
        if lane is not None and lane.dim in outside:
            inner = inner.with_fold(lane, "0")
        with writer.guard(outside, inner):
            self._lanes(within, inner, read, turn)

    def _exchanged(
        self, pairs: ir.Fold, rest: list[ir.Fold], scope: CudaScope, read: Mapping[Fragment, str]
    ) -> None:
        """The store, two registers of columns at once."""
        writer, lane, (store,) = self.writer, self.body.lane, self.body.statements
        assert lane is not None and isinstance(store, ir.Store)
        lines, memory = writer.lines, writer.memory
        known = {*(f.load.ref for f in read), store.ref}
        index = pairs.dim.rpartition(".")[2]
        first, number = (writer.names.new(f"{index}_{n}") for n in ("pair", "register"))
        made = writer.names.new(f"{memory.name(store.ref.tensor)}_made")
        of_pairs = f"for (int {first} = 0; {first} < {pairs.count}; {first} += 2) {{"
        of_two = f"for (int {number} = {first}; {number} < {first} + 2; ++{number}) {{"
        lines.add("#pragma unroll", margin=True)
        with lines.block(of_pairs), writer.unrolled(rest, scope) as around:
            lines.add(f"{memory.element_type(store.ref.tensor)} {made}[2][{lane.count}];")
            lines.add("#pragma unroll", margin=True)
            inner = around.with_fold(pairs, f"{number} * {pairs.step}")
            with lines.block(of_two), writer.unrolled([lane], inner) as at:
                at = self._with(read, writer.complete(at, [store], None, known))
                place = f"{made}[{number} % 2][{iteration(lane, at)}]"
                self._each([store], at, {store.ref: place})
            begin = around.with_fold(pairs, f"{first} * {pairs.step}").with_fold(lane, "0")
            writer.used.add("store_exchanged")
            lines.add(f"store_exchanged({memory.pointer(store.ref, begin)}, {made});")

    def _lanes(
        self,
        guarded: Sequence[str],
        scope: CudaScope,
        read: Mapping[Fragment, str],
        turn: str,
    ) -> None:
        writer, lane, parts = self.writer, self.body.lane, self.body.statements
        if lane is None:
            self._each(parts, self._with(read, scope), {})
            return
        gathered = {
            ref: (writer.names.new(f"{writer.memory.name(ref.tensor)}_made"), width)
            for ref, width in self.body.gathered().items()
        }
        for ref, (name, _) in gathered.items():
            type_ = writer.memory.element_type(ref.tensor)
            writer.lines.add(f"{type_} {name}[{lane.count}];")
        with writer.unrolled([lane], scope, turn=turn) as inner:
            known = {*(f.load.ref for f in read), *gathered}
            inner = self._with(read, writer.complete(inner, parts, None, known))
            number = iteration(lane, inner)
            places = {ref: f"{name}[{number}]" for ref, (name, _) in gathered.items()}
            with writer.guard(guarded, inner):
                self._each(parts, inner, places)
        for ref, (name, width) in gathered.items():
            writer.used.add("store")
            for k in range(0, lane.count, width):
                place = writer.memory.pointer(ref, scope.with_fold(lane, str(k)))
                made = f"{name} + {k}" if k else name
                writer.lines.add(f"store<{width}>({place}, {made});")

    def _with(self, read: Mapping[Fragment, str], scope: CudaScope) -> CudaScope:
        """The place, where these fragments are known."""
        return scope.with_loaded(
            {f.load.ref: register_of(f, name, scope) for f, name in read.items()}
        )

    def _each(
        self,
        body: Sequence[ir.Statement],
        scope: CudaScope,
        places: Mapping[ir.TensorRef, str],
    ) -> None:
        """The statements of one point. ``places``: where elements are written that are gathered."""
        writer = self.writer
        for statement in body:
            values = writer.expressions(scope)
            match statement:
                case ir.Let(name=name, value=value):
                    variable = writer.names.new(name)
                    text = values.text(value)
                    writer.lines.add(f"const {c_type(value.type)} {variable} = {text};")
                    scope = scope.with_variable(name, variable)
                case ir.Accumulate(name=name, op=op, value=value):
                    own = writer.accumulator(name, scope)
                    writer.lines.add(values.accumulate(op, own, value, value.type))
                case ir.Store(ref=ref, value=value):
                    text = values.stored(value, writer.memory.type(ref.tensor))
                    place = places.get(ref) or writer.memory.element(ref, scope)
                    writer.lines.add(f"{place} = {text};")
                case ir.Update():
                    self._update(statement, scope)
                case ir.Block(body=inner):
                    self._each(inner, scope, places)
                case _:
                    raise ir.IRError(f"{type(statement).__name__} lies in an unrolled loop")

    def _update(self, update: ir.Update, scope: CudaScope) -> None:
        writer, ref, op = self.writer, update.ref, update.op
        values, type_ = writer.expressions(scope), writer.memory.type(ref.tensor)
        condition, value = guard(op, update.value)
        inside = f"if ({values.text(condition)}) {{" if condition is not None else "{"
        with writer.lines.block(inside):
            name = writer.names.new("element")
            place = writer.memory.element(ref, scope)
            writer.lines.add(f"{writer.memory.element_type(ref.tensor)} &{name} = {place};")
            new = values.merge(op, from_memory(name, type_), values.text(value), type_)
            writer.lines.add(f"{name} = {to_memory(new, type_)};")
