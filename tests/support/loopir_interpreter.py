"""Runs any stage of the loop IR on NumPy arrays, slowly and plainly.

It is the meaning of the IR in Python: integers are Python's, wrapped by hand; floats are NumPy
scalars. Tests run every stage of a schedule through it. Lanes run one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, assert_never

import numpy as np

from tcl.codegen.common.dtypes import storage_dtype
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import inside
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16, INT32, Kind, ScalarType
from tcl.grammar.tree.size_expressions import OPERATIONS, wrapped

Array = np.ndarray[Any, np.dtype[Any]]
Scalar = Any
"""A bool, an int, or a NumPy float."""
Functions = Mapping[str, Callable[..., Any]]
"""Built-in → a function of Python floats."""

MATH: Functions = {
    "exp": math.exp, "fabs": abs, "floor": math.floor, "ceil": math.ceil, "tanh": math.tanh,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan, "fmax": max, "fmin": min,
}  # fmt: skip
"""Enough for most defs; callers may pass more."""


def interpret(
    program: ir.Program | ir.Built, arrays: Mapping[str, Array], functions: Functions = MATH
) -> None:
    """Run ``program`` on arrays by tensor name, writing the outputs in place.

    16-bit floats are given as their NumPy type or as uint16 bits. Layouts' strides are not
    looked at: element ``i`` is ``array[i - origin]``. Raises ``IndexError`` for a subscript
    outside of its tensor, checked or not.
    """
    memory = {t.name: _view(arrays[t.name], t) for t in program.tensors if t.name in arrays}
    for tensor in program.tensors:
        if tensor.role is ir.Role.SCRATCH:
            layout = tensor.layout
            memory[tensor.name] = np.zeros(layout.extents, storage_dtype(layout.type))
    with np.errstate(all="ignore"):
        run = _Run(program, memory, functions)
        if isinstance(program, ir.Program):
            for nest in program.nests:
                run.nest(nest)
        else:
            for kernel in program.kernels:
                run.kernel(kernel)


def _view(array: Array, tensor: ir.Tensor) -> Array:
    """The array with the axes that the program has made of its own."""
    view = array.view()
    view.shape = tensor.layout.extents  # refused where it would need a copy
    return view.view(np.uint16) if view.dtype.itemsize == 2 and _is_float16(view) else view


def _is_float16(array: Array) -> bool:
    return array.dtype.name in ("float16", "bfloat16")


@dataclass(slots=True)
class _Run:
    program: ir.Program | ir.Built
    memory: Mapping[str, Array]
    functions: Functions
    at: dict[str, int] = field(default_factory=dict)
    """Value of every dim, offset of every fold."""
    dims: dict[str, ir.Dim] = field(default_factory=dict)
    around: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Step and offset of the folds of a dim that are looped over here."""
    variables: dict[str, Scalar] = field(default_factory=dict)
    over: dict[str, tuple[ir.Fold, ...]] = field(default_factory=dict)
    """Accumulator → the folds that have one each."""
    chunks: tuple[str, ...] = ()
    """The first loops of the kernel's grid."""
    arrived: dict[tuple[object, ...], int] = field(default_factory=dict)
    types: dict[str, ScalarType] = field(default_factory=dict)
    accumulators: dict[tuple[object, ...], Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for space in self.program.spaces:
            for dim in space.dims:
                self.at[dim.name], self.dims[dim.name] = dim.first, dim
                self.around[dim.name] = []

    def nest(self, nest: ir.Nest) -> None:
        """A nest whose loops are a list."""
        if nest.point.scatters:
            self.scatter(nest)
        elif nest.point.op == "=":
            for _ in self.points(nest.loops):
                self.lets(nest.point)
                self.store(nest.point.target, self.value(nest.point.value))
        elif nest.running is not None:
            self.scan(nest)
        else:
            self.reduce(nest)

    def scan(self, nest: ir.Nest) -> None:
        """A running reduction before its loops are built: an accumulator per combination of the
        results that do not run."""
        point = nest.point
        fixed = [d.name for d in nest.dims if not d.reduction]
        sums: dict[tuple[int, ...], Scalar] = {}
        found: dict[tuple[int, ...], Scalar] = {}
        start = self.typed(identity(point.op, point.type).value, point.type)
        for _ in self.points(nest.loops):
            at, place = tuple(self.at[name] for name in fixed), self.place(point.target)
            before = sums.get(at, start)
            sums[at] = _arithmetic(point.op, before, self.value(point.value), point.type)
            found[place] = sums[at]
        for _ in self.points(nest.loops):
            place = self.place(point.target)
            if place in found:
                value = found.pop(place)
                if not point.initialise:
                    stored = self.value(ir.Load(point.target, point.type, total=True))
                    value = _arithmetic(point.op, stored, value, point.type)
                self.write(point.target.tensor, place, value)

    def kernel(self, kernel: ir.Kernel, depth: int = 0) -> None:
        """A kernel's chunks one after the other, from so many loops over them."""
        if depth == len(kernel.grid):
            self.chunks = tuple(folds[0].name for folds in kernel.grid)
            self.statement(kernel.body)
            return
        for _ in zip(*map(self.iterations, kernel.grid[depth]), strict=True):
            self.kernel(kernel, depth + 1)

    def points(self, loops: Sequence[ir.Loop]) -> Iterator[None]:
        """Every point of these loops, outermost loop slowest."""
        if not loops:
            yield
            return
        for _ in self.iterations(loops[0].fold):
            yield from self.points(loops[1:])

    def iterations(self, fold: ir.Fold, some: Sequence[int] | None = None) -> Iterator[None]:
        start, around = self.at[fold.dim], self.around[fold.dim]
        for offset in range(0, fold.step * fold.count, fold.step) if some is None else some:
            around.append((fold.step, offset))
            if self.there(fold.dim):
                self.at[fold.dim], self.at[fold.name] = start + offset, offset
                yield
            around.pop()
        self.at[fold.dim] = start

    def there(self, dim: str) -> bool:
        """Whether the folds around this place are at points of the dimension."""
        around, begin = self.around[dim], 0
        for k, (span, offset) in enumerate(around, 1):
            begin += offset
            # A plain loop: interpreters spend a quarter of their time here.
            inner = 0
            for step, more in around[k:]:
                inner += more if step <= span else 0
            if inner >= span:
                return False
        return begin < self.dims[dim].extent

    def reduce(self, nest: ir.Nest) -> None:
        """A reduction before its loops are built: one accumulator per element of the target."""
        point = nest.point
        results = [x for x in nest.loops if not nest.dim(x.fold.dim).reduction]
        sums: dict[tuple[int, ...], Scalar] = {}
        start = identity(point.op, point.type).value
        for _ in self.points(results):
            stored = ir.Load(point.target, point.type, total=True)
            first = start if point.initialise else self.value(stored)
            sums[self.place(point.target)] = self.typed(first, point.type)
        for _ in self.points(nest.loops):
            self.lets(point)
            place = self.place(point.target)
            sums[place] = _arithmetic(point.op, sums[place], self.value(point.value), point.type)
        for place, value in sums.items():
            self.write(point.target.tensor, place, value)

    def scatter(self, nest: ir.Nest) -> None:
        """A scatter before its loops are built, point after point."""
        point, layout = nest.point, self.program.tensor(nest.point.target.tensor).layout
        start = self.typed(identity(point.op, point.type).value, point.type)
        sums: dict[tuple[int, ...], Scalar] = {}
        box = [range(a, a + n) for a, n in zip(layout.origin, layout.extents, strict=True)]
        for axis, s in enumerate(point.target.subscripts):
            if isinstance(s, ir.Affine):
                begin, extent = s.constant, 1
                for name, _ in s.terms:
                    begin, extent = begin + self.dims[name].first, self.dims[name].extent
                box[axis] = range(begin, begin + extent)
        for each in product(*box):
            ref = ir.TensorRef(point.target.tensor, tuple(ir.Affine((), n) for n in each))
            sums[self.place(ref)] = start if point.initialise else self.read(ref)
        for _ in self.points(nest.loops):
            self.lets(point)
            condition, value = guard(point.op, point.value)
            if condition is None or self.value(condition):
                at = self.place(point.target)
                sums[at] = _arithmetic(point.op, sums[at], self.value(value), point.type)
        for at, total in sums.items():
            self.write(point.target.tensor, at, total)

    def lets(self, point: ir.Point) -> None:
        for let in point.lets:
            self.variables[let.name] = self.value(let.value)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Block() | ir.Fill():
                self.all_inside(statement)
            case ir.For(loop=loop) | ir.Pipeline(loop=loop):
                pause = statement.pause
                for k, _ in enumerate(self.taken(loop), 1):
                    self.all_inside(statement)
                    if pause is not None and k % pause.every == 0:
                        self.statement(pause.then)
            case ir.First() | ir.Within():
                self.statement(statement.then if self.first(statement) else statement.otherwise)
            case ir.Let(name=name, value=value):
                self.variables[name] = self.value(value)
            case ir.Declare():
                self.declare(statement)
            case ir.Accumulate(name=name, op=op, value=value):
                new, own = self.value(value), self.own(name)
                if op != "=":
                    new = _arithmetic(op, self.accumulators[own], new, value.type)
                self.accumulators[own] = new
            case ir.Scan(name=name, op=op, value=value, result=result):
                own = self.own(name)
                new = _arithmetic(op, self.accumulators[own], self.value(value), value.type)
                self.accumulators[own] = self.variables[result] = new
            case ir.Carry():
                self.carry(statement)
            case ir.Matrix():
                self.matrix(statement)
            case ir.Store() | ir.Update():
                self.write_element(statement)
            case ir.Prefetch() | ir.Barrier() | ir.Last():
                self.meet(statement)
            case _:
                assert_never(statement)

    def meet(self, statement: ir.Prefetch | ir.Barrier | ir.Last) -> None:
        if isinstance(statement, ir.Last):
            among = statement.among
            group = (statement.arrived, *(self.at[n] for n in self.chunks if n != among.name))
            self.arrived[group] = self.arrived.get(group, 0) + 1
            if self.arrived[group] == among.count:
                self.statement(statement.body)

    def write_element(self, write: ir.Store | ir.Update) -> None:
        ref = write.ref
        if isinstance(write, ir.Store):
            self.store(ref, self.value(write.value))
            return
        op = write.op
        condition, value = guard(op, write.value)
        if condition is None or self.value(condition):
            self.store(ref, _arithmetic(op, self.read(ref), self.value(value), value.type))

    def offsets(self, compacted: ir.Compacted) -> list[int]:
        """Those of the iterations in a list."""
        found = []
        for turn in range(self.value(ir.Load(compacted.count, INT32, total=True))):
            self.variables[ir.TURN] = turn
            found.append(self.value(ir.Load(compacted.offset, INT32, total=True)))
        return found

    def taken(self, loop: ir.Loop) -> Iterator[None]:
        """The iterations of a loop that are not left out."""
        some = None if loop.compacted is None else self.offsets(loop.compacted)
        for _ in self.iterations(loop.fold, some):
            if loop.cut is None or self.hold(loop.cut.bounds, everywhere=False):
                yield

    def first(self, either: ir.First | ir.Within) -> bool:
        """Whether it is the first of two statements that is run here."""
        if isinstance(either, ir.First) and either.every:
            (fold,) = either.folds
            turn = self.at[fold.name] // fold.step + either.last
            return turn % either.every == 0 or (either.last and turn == fold.count)
        if isinstance(either, ir.First):
            ended = self.behind if either.last else lambda f: self.at[f.name]
            return all(ended(f) <= 0 for f in either.folds)
        return self.hold(either.bounds, everywhere=True)

    def hold(self, bounds: Sequence[tuple[ir.Affine, int]], *, everywhere: bool) -> bool:
        """Whether all of these bounds hold at all points of the loops that are still inside, or,
        as far as each tells, at some."""
        furthest = max if everywhere else min
        for index, bound in bounds:
            least = index.constant
            for name, factor in index.terms:
                dim, steps = self.dims[name], [step for step, _ in self.around[name]]
                span = min(min(steps, default=dim.extent), dim.first + dim.extent - self.at[name])
                least += factor * self.at[name] + furthest(0, factor * (span - 1))
            if least >= bound:
                return False
        return True

    def all_inside(self, statement: ir.Statement) -> None:
        for s in inside(statement):
            self.statement(s)

    def own(self, accumulator: str) -> tuple[object, ...]:
        """Which accumulator a name means at this place."""
        return accumulator, *(self.at[f.name] for f in self.over[accumulator])

    def declare(self, declare: ir.Declare) -> None:
        name, over = declare.name, declare.over
        self.over[name], self.types[name] = over, declare.type
        self.accumulators = {k: v for k, v in self.accumulators.items() if k[0] != name}
        for each in product(*(range(0, f.step * f.count, f.step) for f in over)):
            if declare.start is not None:
                self.accumulators[name, *each] = self.value(declare.start)

    def carry(self, carry: ir.Carry) -> None:
        """Accumulators to their totals, exactly: what is lost is 0."""
        type_ = self.types[carry.name]
        for name, *at in [key for key in self.accumulators if key[0] == carry.name]:
            total = carry.total, *at
            held = self.accumulators[name, *at]
            old = self.accumulators.get(total, self.typed(0, type_))
            self.accumulators[total] = _arithmetic("+", old, held, type_)
            self.accumulators[name, *at] = self.typed(0, type_)

    def behind(self, fold: ir.Fold) -> int:
        """The points of a dimension that come after those of the loops around this place."""
        begin, end = 0, self.dims[fold.dim].extent
        for step, offset in self.around[fold.dim]:
            begin += offset
            end = min(end, begin + step)
        return self.dims[fold.dim].extent - end

    def matrix(self, matrix: ir.Matrix) -> None:
        """A matrix of accumulators, at this iteration of unrolled loops."""
        name, over, ref = matrix.name, self.over[matrix.name], matrix.at
        loops = (x for space in self.program.spaces for x in space.loops)
        here = {x.fold for x in loops if x.kind is ir.Kind.UNROLL}
        offsets = [
            (self.at[f.name],) if f in here else range(0, f.step * f.count, f.step) for f in over
        ]
        around = dict(self.at)
        for each in product(*offsets):
            for fold, own in zip(over, each, strict=True):
                self.at[fold.name] = own
                self.at[fold.dim] += 0 if fold in here else own
            if matrix.action is ir.Action.CLEAR:
                self.accumulators[name, *each] = self.typed(0, self.types[name])
            elif ref is not None and matrix.action is ir.Action.TAKE:
                self.accumulators[name, *each] = self.read(ref)
            elif ref is not None and (name, *each) in self.accumulators:
                self.write(ref.tensor, self.place(ref), self.accumulators[name, *each])
            self.at.update(around)

    def combined(self, value: ir.Combined) -> Scalar:
        total = identity(value.op, value.type).value
        for each in product(*(range(0, f.step * f.count, f.step) for f in value.folds)):
            self.at.update(zip((f.name for f in value.folds), each, strict=True))
            total = _arithmetic(value.op, total, self.value(value.value), value.type)
        return self.typed(total, value.type)

    # Memory.

    def index(self, index: ir.Affine) -> int:
        found, at = index.constant, self.at
        for name, factor in index.terms:
            found += factor * at[name]
        return found

    def place(self, ref: ir.TensorRef) -> tuple[int, ...]:
        """Position in the array; ``IndexError`` outside of it."""
        layout = self.program.tensor(ref.tensor).layout
        place = []
        for axis, s in enumerate(ref.subscripts):
            value = self.index(s) if isinstance(s, ir.Affine) else self.value(s.value)
            position = value - layout.origin[axis]
            if not 0 <= position < layout.extents[axis]:
                raise IndexError(f"index {value} of {ref.tensor}, dimension {axis}")
            place.append(position)
        return tuple(place)

    def store(self, ref: ir.TensorRef, value: Scalar) -> None:
        self.write(ref.tensor, self.place(ref), value)

    def write(self, tensor: str, place: tuple[int, ...], value: Scalar) -> None:
        type_ = self.program.tensor(tensor).layout.type
        bits = type_.is_float and type_.bits == 16
        self.memory[tensor][place] = _bits16(value, type_) if bits else value

    def read(self, ref: ir.TensorRef) -> Scalar:
        type_ = self.program.tensor(ref.tensor).layout.type
        raw = self.memory[ref.tensor][self.place(ref)]
        if type_ == FLOAT16:
            return np.float32(np.uint16(raw).view(np.float16))
        if type_ == BFLOAT16:
            return np.uint32(int(raw) << 16).view(np.float32)
        return self.typed(raw, type_)

    # Values.

    def typed(self, value: Scalar, type_: ScalarType) -> Scalar:
        """A value in the representation of its type."""
        match type_.kind:
            case Kind.BOOL:
                return bool(value)
            case Kind.FLOAT:
                return np.float64(value) if type_.bits == 64 else np.float32(value)
            case Kind.INT | Kind.UINT:
                return wrapped(int(value), type_)
            case _:
                assert_never(type_.kind)

    def value(self, value: ir.Value) -> Scalar:
        match value:
            case ir.Const(value=constant, type=type_):
                return self.typed(constant, type_)
            case ir.Position(index=index, type=type_):
                return wrapped(self.index(index), type_)
            case ir.Variable(name=name):
                if name in self.over:
                    return self.accumulators[self.own(name)]
                return self.variables[name]
            case ir.Combined():
                return self.combined(value)
            case ir.Load(ref=ref):
                return self.read(ref)
            case ir.Unary(op=op, operand=operand, type=type_):
                inner = self.value(operand)
                return not inner if op == "!" else self.typed(-inner, type_)
            case ir.Binary():
                return self.binary(value)
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case ir.Call(name=name, arguments=arguments, type=type_):
                found = self.functions[name](*(float(self.value(a)) for a in arguments))
                return self.typed(found, type_.compute)
            case ir.Cast(operand=operand, type=type_):
                return _cast(self.value(operand), operand.type, type_)
            case _:
                assert_never(value)

    def binary(self, value: ir.Binary) -> Scalar:
        op, left = value.op, self.value(value.left)
        if op == "&&":
            return left and self.value(value.right)
        if op == "||":
            return left or self.value(value.right)
        right = self.value(value.right)
        if op in _COMPARE:
            return bool(_COMPARE[op](left, right))
        return _arithmetic(op, left, right, value.type)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _arithmetic(op: str, a: Scalar, b: Scalar, type_: ScalarType) -> Scalar:
    if type_.is_bool:
        return (a or b) if op in ("+", "max") else (a and b)
    if op in ("min", "max"):
        if a != a:
            return a
        return b if b != b or (b < a if op == "min" else b > a) else a
    if type_.is_float:
        if op == "%":
            return np.fmod(a, b)
        return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](a, b)
    return wrapped(OPERATIONS[op](a, b), type_)


def _cast(value: Scalar, source: ScalarType, target: ScalarType) -> Scalar:
    if target.is_bool:
        return bool(value != 0)
    if target.is_float:
        if target.bits == 64:
            return np.float64(value)
        if target.bits == 32:
            return _single(value)
        bits = _bits16(value, target)
        if target == FLOAT16:
            return np.float32(bits.view(np.float16))
        return np.uint32(int(bits) << 16).view(np.float32)
    if not source.is_float:
        return wrapped(int(value), target)
    low, high = target.limits
    if value != value:
        return 0
    return int(min(max(value, low), high)) if not math.isinf(value) else high if value > 0 else low


def _single(value: Scalar) -> Scalar:
    """float32, rounded once: large integers must not pass through float64."""
    if isinstance(value, int) and abs(value) > 2**53:
        return np.float32(_sticky(value))
    return np.float32(value)


def _sticky(value: int) -> int:
    """An integer of at most 53 significant bits that rounds to fewer bits as ``value`` does."""
    shift = max(0, abs(value).bit_length() - 53)
    kept = abs(value) >> shift
    if kept << shift != abs(value):
        kept |= 1
    return (kept << shift) * (1 if value >= 0 else -1)


def _bits16(value: Scalar, type_: ScalarType) -> np.uint16:
    """A 16-bit float's bits, rounded once to nearest, ties to even."""
    if isinstance(value, int):
        value = np.float64(_sticky(int(value)))
    if type_ == FLOAT16:
        return np.uint16(np.float16(value).view(np.uint16))
    wide = np.float64(value)
    if math.isnan(wide):
        return np.uint16(0x7FC0)
    if math.isinf(wide) or wide == 0:
        return np.uint16(int(np.float32(wide).view(np.uint32)) >> 16)
    # Round to a multiple of the spacing of bfloat16 at this size (8 bits, least exponent -133).
    _, exponent = math.frexp(float(wide))
    unit = max(exponent - 8, -133)
    rounded = math.ldexp(round(math.ldexp(float(wide), -unit)), unit)
    return np.uint16(int(np.float32(rounded).view(np.uint32)) >> 16)
