"""Long sums in parts, so that their error does not grow with their length: see
``tcl.codegen.common.sums``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tcl.codegen.common import sums
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.terms import guard, product, terms
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, provably_at_least, representative
from tcl.grammar.syntax.types import BOOL, ScalarType


def most_points(points: Iterable[ir.Point]) -> int | None:
    """How many points of reductions an accumulator takes at most, one after the other; None if all
    of these may be taken, as none adds up floats, so that each term costs a rounding."""
    found = []
    for point in points:
        if point.op == "+" and point.type.is_float:
            parts = [guard("+", value)[1] for value in terms("+", point.value)]
            plain = any(product(value) is None for value in parts)
            most = sums.TERMS if plain else sums.PRODUCTS
            found.append(max(1, most // len(parts)))
    return min(found, default=None)


def iterations(loops: Iterable[ir.Loop]) -> int:
    return math.prod(x.fold.count for x in loops)


def parts_are_many(count: int) -> bool:
    """Whether a sum of so many parts keeps what rounding takes from it."""
    return not provably_at_least(sums.PARTS, count)


@dataclass(frozen=True, slots=True)
class Carried:
    """What is done besides, where accumulators would take more points than they may."""

    declared: tuple[ir.Statement, ...] = ()
    """Before the loops: the totals."""
    pauses: tuple[tuple[ir.Fold, ir.Pause], ...] = ()
    """In the loops."""
    last: tuple[ir.Statement, ...] = ()
    """After them: accumulators get their totals."""
    totals: tuple[str, ...] = ()

    @staticmethod
    def from_loops(
        loops: Sequence[ir.Loop],
        points: Mapping[str, ir.Point],
        over: tuple[ir.Fold, ...],
        around: tuple[tuple[ir.Statement, ...], tuple[ir.Statement, ...]] = ((), ()),
    ) -> Carried:
        """For accumulators, by name, that take a point in each iteration of ``loops``, outermost
        first. ``around``: what has to be done before they are read, and after."""
        most = most_points(points.values())
        found = None if most is None else _pause(loops, most)
        if found is None:
            return Carried()
        at, every = found
        fold = loops[at].fold
        parts = -(-fold.count // every) * iterations(loops[:at])
        exact = parts_are_many(parts)
        declared: list[ir.Statement] = []
        then: list[ir.Statement] = []
        last: list[ir.Statement] = []
        totals: list[str] = []
        for name, point in points.items():
            if most_points((point,)) is None:
                continue
            type_ = point.type.compute
            total, lost = f"{name}.total", f"{name}.lost" if exact else None
            totals.append(total)
            own = (total, lost) if lost else (total,)
            zero = identity("+", type_)
            declared += [ir.Declare(n, type_, over, zero, seldom=True) for n in own]
            then.append(ir.Carry(name, total, lost))
            last.append(ir.Carry(total, name, None))
        pause = ir.Pause(every, ir.Block((*around[0], *then, *around[1])), after_last=at > 0)
        return Carried(tuple(declared), ((fold, pause),), tuple(last), tuple(totals))


def running_store(nest: ir.Nest, held: str, carried: Carried) -> ir.Store:
    """Stores the result at a point of a running reduction, of which a variable or an accumulator
    holds what is not yet in the total."""
    point, type_ = nest.point, nest.point.type.compute
    value: ir.Value = ir.Variable(held, type_)
    if carried.totals:
        value = ir.Binary("+", ir.Variable(carried.totals[0], type_), value, type_)
    if not point.initialise:
        value = ir.Binary(point.op, ir.Load(point.target, point.type, total=True), value, type_)
    return ir.Store(point.target, value)


def _pause(loops: Sequence[ir.Loop], most: int) -> tuple[int, int] | None:
    """In which loop accumulators are to be handed on, and after how many iterations; None if they
    need not be."""
    taken = 1
    for k in range(len(loops) - 1, -1, -1):
        fold = loops[k].fold
        if not provably_at_least(most, taken * fold.count) and loops[k].kind is ir.Kind.SERIAL:
            every = max(1, most // taken)
            if isinstance(fold.count, Size):
                return k, every
            return k, -(-fold.count // -(-fold.count // every))
        taken *= representative(fold.count)
    return None


def carried_over(
    stored: ir.Value, new: ir.Value, lost: ir.TensorRef, type_: ScalarType
) -> tuple[tuple[ir.Statement, ...], ir.Value]:
    """What is stored, and one more part of a sum: statements that keep at ``lost`` what rounding
    takes, and the value."""
    names = "sum.part", "sum.before", "sum.after", "sum.off"
    part, before, after, off = (ir.Variable(n, type_) for n in names)
    less = ir.Binary("-", new, ir.Load(lost, type_, total=True), type_)
    taken = ir.Binary("-", ir.Binary("-", after, before, type_), part, type_)
    # Nothing is made up for once a sum is infinite.
    finite = ir.Binary("==", ir.Binary("-", off, off, type_), identity("+", type_), BOOL)
    return (
        ir.Let(part.name, less),
        ir.Let(before.name, stored),
        ir.Let(after.name, ir.Binary("+", before, part, type_)),
        ir.Let(off.name, taken),
        ir.Store(lost, ir.Select(finite, off, identity("+", type_), type_)),
    ), after
