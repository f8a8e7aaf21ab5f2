"""Loop IR → one C function: its arguments are the inputs and outputs of a def, row after row.

Loops that a schedule writes out or gives lanes are loops here, with accumulators in arrays: the
compiler unrolls and vectorises them. Threads' chunks run one after the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tcl.codegen.c.values import HELPERS, Values, binary, c_type
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.common.recursion import with_room
from tcl.grammar.sizes.varying import Undecided, symbols_of
from tcl.grammar.syntax.types import INT32, UINT64

_TAKEN = """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm failed free malloc main""".split()


def emit_program(program: ir.Built) -> str:
    """The C of a built program: a function that returns 0, or the number of a subscript that left
    its tensor, or -1 where there was no memory. Raises ``OptionsError`` for what C lacks, and
    ``Undecided`` where sizes are formulas."""
    if symbols_of(n for t in program.tensors for n in t.layout.extents):
        raise Undecided("kernels in C are for given sizes")
    return with_room(lambda: _Function(program).text())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands."""

    left: Mapping[str, tuple[str, int]]
    """Points of each dimension that the loops around leave to those inside, and the most."""
    folds: Mapping[str, tuple[str, ...]]
    """The variables of the loops around, by dimension: offsets in points."""


class _Function:
    """The function of a program, line by line."""

    def __init__(self, program: ir.Built) -> None:
        self.program = program
        self.dims = {d.name: d for s in program.spaces for d in s.dims}
        self.names: dict[str, str] = {}
        self.over: dict[str, tuple[ir.Fold, ...]] = {}
        self.types: dict[str, str] = {}
        self.sites: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.place = _Place(
            {n: (str(d.extent), d.extent) for n, d in self.dims.items()},
            dict.fromkeys(self.dims, ()),
        )
        self.values = Values(self.index, self.load, self.variable, self.combined)

    def text(self) -> str:
        name = self.name(self.program.name)
        given = [t for t in self.program.tensors if t.role is not ir.Role.SCRATCH]
        scratch = [t for t in self.program.tensors if t.role is ir.Role.SCRATCH]
        heads = ("const " * (t.role is ir.Role.INPUT) + self._pointer(t) for t in given)
        head = f"long {name}({', '.join(heads) or 'void'})"
        for tensor in scratch:
            size = max(1, math.prod(tensor.layout.extents) * tensor.layout.itemsize)
            self.line(f"{self._pointer(tensor)} = malloc({size});")
        if scratch:
            missing = " || ".join(f"!{self.name(t.name)}" for t in scratch)
            self.line(f"if ({missing}) failed = -1;")
            self.line("else {")
        for kernel in self.program.kernels:
            with self.braces():
                self.kernel(kernel, 0)
        if scratch:
            self.line("}")
        for tensor in scratch:
            self.line(f"free({self.name(tensor.name)});")
        notes = [f"// {k}: {site}" for k, site in enumerate(self.sites, 1)]
        body = ["    long failed = 0;", *self.lines, "    return failed;"]
        return "\n".join([HELPERS, *notes, head, "{", *body, "}"])

    def _pointer(self, tensor: ir.Tensor) -> str:
        return f"{c_type(tensor.layout.type)} *restrict {self.name(tensor.name)}"

    # Lines and names.

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        """What is written inside is a block of its own, as is what its loops change."""
        place = self.place
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")
        self.place = place

    def name(self, own: str) -> str:
        """The C name of a tensor, an accumulator, a value or a loop."""
        if own not in self.names:
            text = re.sub(r"\W", "_", own)
            while text in _TAKEN or text in self.names.values():
                text += "_"
            self.names[own] = text
        return self.names[own]

    # Loops and statements.

    def kernel(self, kernel: ir.Kernel, depth: int) -> None:
        """Its chunks, one after the other, from so many loops over them."""
        if depth == len(kernel.grid):
            self.inside(kernel.body)
            return
        folds = kernel.grid[depth]
        chunk = self.name(f"chunk{depth}")
        with self.braces(f"for (long {chunk} = 0; {chunk} < {folds[0].count}; ++{chunk})"):
            for fold in folds:
                self.line(f"const long {self.name(fold.name)} = {chunk} * {fold.step};")
                self.enter(fold)
            self.kernel(kernel, depth + 1)

    def statement(self, statement: ir.Statement) -> None:
        """One statement, and everything inside it."""
        match statement:
            case ir.Block():
                with self.braces():
                    self.inside(statement)
            case ir.For():
                self.loop(statement)
            case ir.First(folds=folds, then=then, otherwise=otherwise):
                first = " && ".join(f"{self.name(f.name)} == 0" for f in folds)
                for head, inner in ((f"if ({first})", then), ("else", otherwise)):
                    with self.braces(head):
                        self.inside(inner)
            case ir.Let(name=name, value=value):
                made = self.values.text(value)
                self.line(f"const {c_type(value.type.compute)} {self.name(name)} = {made};")
            case ir.Declare():
                self.declare(statement)
            case ir.Accumulate(name=name, op=op, value=value):
                own, more = self.variable(name), self.values.text(value)
                self.line(f"{own} = {more if op == '=' else binary(op, own, more, value.type)};")
            case ir.Carry():
                self.carry(statement)
            case ir.Store(ref=ref, value=value):
                self.line(f"{self.element(ref)} = {self.values.text(value)};")
            case ir.Prefetch(ref=ref, ahead=ahead):
                self.line(f"__builtin_prefetch((const char *)&{self.element(ref)} + {ahead});")
            case _:
                raise OptionsError("C has no matrix unit; leave out the option mma")

    def inside(self, body: ir.Statement) -> None:
        """What stands between braces."""
        for s in body.body if isinstance(body, ir.Block) else (body,):
            self.statement(s)

    def loop(self, statement: ir.For) -> None:
        """A loop over what is left of its dimension, or over the iterations in a list."""
        fold, compacted, pause = statement.loop.fold, statement.loop.compacted, statement.pause
        own, span = self.name(fold.name), fold.step * fold.count
        left, most = self.place.left[fold.dim]
        known = str(span) if left == str(most) else f"TCL_MIN(long, {span}, {left})"
        some = left if span >= most else known
        count = self.name(f"{fold.name}.count")
        if pause is not None:
            self.line(f"long {count} = 0;")
        head = f"for (long {own} = 0; {own} < {some}; {own} += {fold.step})"
        if compacted is not None:
            turn = self.name(ir.TURN)
            turns = self.load(ir.Load(compacted.count, INT32, total=True))
            head = f"for (int {turn} = 0; {turn} < {turns}; ++{turn})"
        with self.braces(head):
            if compacted is not None:
                offset = self.load(ir.Load(compacted.offset, INT32, total=True))
                self.line(f"const long {own} = {offset};")
            self.enter(fold)
            self.inside(statement.body)
            if pause is not None:
                with self.braces(f"if (++{count} % {pause.every} == 0)"):
                    self.inside(pause.then)
        if pause is not None and pause.after_last:
            self.statement(pause.then)

    def enter(self, fold: ir.Fold) -> None:
        """An iteration: its dimension is where it begins, and leaves so much to loops inside."""
        (left, most), own = self.place.left[fold.dim], self.name(fold.name)
        inside = str(fold.step)
        if fold.step > 1 and (left != str(most) or most % fold.step):
            inside = self.name(f"{fold.name}.left")
            self.line(f"const long {inside} = TCL_MIN(long, {fold.step}, {left} - {own});")
        folds = {**self.place.folds, fold.dim: (*self.place.folds[fold.dim], own)}
        self.place = replace(
            self.place, left={**self.place.left, fold.dim: (inside, fold.step)}, folds=folds
        )

    # Accumulators.

    def declare(self, declare: ir.Declare) -> None:
        self.over[declare.name] = declare.over
        own, type_ = self.name(declare.name), c_type(declare.type.compute)
        self.types[declare.name] = type_
        count = math.prod(f.count for f in declare.over)
        self.line(f"{type_} {own}[{count}];")
        if declare.start is not None:
            start = self.values.text(declare.start)
            self.line(f"for (long k = 0; k < {count}; ++k) {own}[k] = {start};")

    def variable(self, name: str) -> str:
        """A value, or the accumulator of this iteration."""
        if name not in self.over:
            return self.name(name)
        at, size = [], 1
        for fold in reversed(self.over[name]):
            number = self.name(fold.name) + f" / {fold.step}" * (fold.step > 1)
            at.append(number + f" * {size}" * (size > 1))
            size *= fold.count
        return f"{self.name(name)}[{' + '.join(at) or '0'}]"

    def combined(self, value: ir.Combined) -> str:
        start = self.values.text(identity(value.op, value.type.compute))
        type_ = c_type(value.type.compute)
        loops = "".join(
            f"for (long {own} = 0; {own} < {f.step * f.count}; {own} += {f.step}) "
            for f in value.folds
            for own in [self.name(f.name)]
        )
        step = binary(value.op, "_total", self.values.text(value.value), value.type.compute)
        return f"({{ {type_} _total = {start}; {loops}_total = {step}; _total; }})"

    def carry(self, carry: ir.Carry) -> None:
        """All accumulators to their totals; what rounding loses is made up for, unless it is not
        finite."""
        own, total = self.name(carry.name), self.name(carry.total)
        type_, count = self.types[carry.name], math.prod(f.count for f in self.over[carry.name])
        with self.braces(f"for (long k = 0; k < {count}; ++k)"):
            if carry.lost is None:
                self.line(f"{total}[k] += {own}[k];")
            else:
                lost = self.name(carry.lost)
                self.line(f"const {type_} part = {own}[k] - {lost}[k], sum = {total}[k] + part;")
                self.line(f"const {type_} off = (sum - {total}[k]) - part;")
                self.line(f"{lost}[k] = off - off == 0 ? off : 0;")
                self.line(f"{total}[k] = sum;")
            self.line(f"{own}[k] = 0;")

    # Memory.

    def index(self, index: ir.Affine) -> str:
        """An index expression. A dimension is where it begins, and the loops around it."""
        constant, terms = index.constant, dict[str, int]()
        for name, coefficient in index.terms:
            own: Sequence[str] = (self.name(name),)
            if name in self.dims:
                own = self.place.folds[name]
                constant += coefficient * self.dims[name].first
            for variable in own:
                terms[variable] = terms.get(variable, 0) + coefficient
        texts = [f"{v} * {c}" if c != 1 else v for v, c in terms.items() if c]
        return " + ".join([*texts, *([str(constant)] if constant or not texts else [])])

    def load(self, load: ir.Load) -> str:
        layout = self.program.tensor(load.ref.tensor).layout
        if 0 in layout.extents:  # only where a subscript that is checked fails
            site = self.site(load.ref.tensor, 0, 0, 0)
            return f"({c_type(layout.type)})(failed = {site}, 0)"
        return self.element(load.ref)

    def element(self, ref: ir.TensorRef) -> str:
        """An element of a tensor."""
        layout = self.program.tensor(ref.tensor).layout
        parts = []
        for axis, subscript in enumerate(ref.subscripts):
            stride, rest = divmod(layout.strides[axis], layout.itemsize)
            if rest:
                raise OptionsError(f"C reads whole elements; {ref.tensor} has strides between them")
            if isinstance(subscript, ir.Affine):
                within = subscript + ir.Affine((), -layout.origin[axis])
                parts.append(self.index(within.scaled(stride)))
                continue
            value, first = self.values.text(subscript.value), layout.origin[axis]
            if subscript.check:
                if subscript.value.type == UINT64:
                    value = f"TCL_MIN(unsigned long long, {value}, 0x7fffffffffffffffull)"
                extent = layout.extents[axis]
                site = self.site(ref.tensor, axis, first, extent)
                position = f"TCL_AT({value}, {first}ll, {extent}ll, {site})"
            else:
                position = f"({value} - {first})"
            parts.append(f"{position} * {stride}")
        kept = [p for p in parts if p != "0"]
        return f"{self.name(ref.tensor)}[{' + '.join(kept) or '0'}]"

    def site(self, tensor: str, axis: int, first: int, extent: int) -> int:
        """The number of a subscript that is checked."""
        self.sites.append(f"dimension {axis} of {tensor} has indices {first}:{first + extent}")
        return len(self.sites)
