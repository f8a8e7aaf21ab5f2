"""Cycles of the arithmetic of one point of a nest, or of one vector of points, for the model of a
core: by the dimensions that operations depend on, as points that differ in others share them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from tcl.codegen.choose.cpu.costs import (
    CALL_CYCLES,
    DIVISION_CYCLES,
    EXTREME_CYCLES,
    OPERATION_CYCLES,
)
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import decided, deciding_dims
from tcl.codegen.loopir.terms import guard, product, terms
from tcl.codegen.loopir.walk import children, values_of, walk
from tcl.codegen.passes.fusion.groups import SHORT
from tcl.grammar.sizes.varying import provably_at_least

_DIVIDING = frozenset("sqrt rsqrt fdivide hypot rhypot norm3d norm4d rnorm3d rnorm4d".split())
"""Built-in functions in which a core divides, and does little else."""


def arithmetic_cycles(nest: ir.Nest, call: float = CALL_CYCLES) -> dict[frozenset[str], float]:
    """Cycles per point, by the dimensions that the operations depend on; ``call``: of a built-in
    function that is more than an instruction."""
    found: dict[frozenset[str], float] = {}
    variables: dict[str, frozenset[str]] = {}
    for let in nest.point.lets:
        variables[let.name] = _operations(let.value, variables, found, call)
    op, value = nest.point.op, nest.point.value
    if op == "=":
        _operations(value, variables, found, call)
        return found
    every = frozenset(d.name for d in nest.dims)
    for term in terms(op, value):
        # The accumulation is one instruction, with a product and a guard in it; a minimum or
        # maximum of floats is more.
        condition, added = guard(op, term)
        extreme = op in ("min", "max") and nest.point.type.is_float
        found[every] = found.get(every, 0.0) + (EXTREME_CYCLES if extreme else OPERATION_CYCLES)
        both = product(added) if op == "+" else None
        for part in (condition, *((added,) if both is None else (both.left, both.right))):
            if part is not None:
                _operations(part, variables, found, call)
    return found


def calling_dims(nest: ir.Nest) -> frozenset[frozenset[str]]:
    """Those dimensions of ``arithmetic_cycles`` on whose values built-in functions are called that
    are many instructions, each of which waits for the one before."""
    others = arithmetic_cycles(nest, 0.0)
    every = arithmetic_cycles(nest).items()
    return frozenset(dims for dims, cycles in every if cycles != others.get(dims))


def _operations(
    value: ir.Value,
    variables: Mapping[str, frozenset[str]],
    into: dict[frozenset[str], float],
    call: float,
) -> frozenset[str]:
    """Adds the cycles of a value; the dimensions that it depends on."""
    dims: dict[int, frozenset[str]] = {}
    for v in reversed(list(walk(value))):  # what is inside comes first
        own = _own_dims(v)
        if isinstance(v, ir.Variable):
            own = variables.get(v.name, own)
        dims[id(v)] = own.union(*(dims[id(c)] for c in children(v)))
        cycles = _cycles(v, call)
        if cycles:
            into[dims[id(v)]] = into.get(dims[id(v)], 0.0) + cycles
    return dims[id(value)]


def _own_dims(value: ir.Value) -> frozenset[str]:
    """The dimensions that a value names, without what it is made of."""
    match value:
        case ir.Position(index=index):
            return frozenset(name for name, _ in index.terms)
        case ir.Load(ref=ref):
            affine = (s for s in ref.subscripts if isinstance(s, ir.Affine))
            return frozenset(name for s in affine for name, _ in s.terms)
    return frozenset()


def calls_functions(point: ir.Point) -> bool:
    """Whether a point calls functions that are more than an instruction."""
    values = (v for value in values_of(point) for v in walk(value))
    return any(isinstance(v, ir.Call) and v.name not in SHORT for v in values)


def _cycles(value: ir.Value, call: float = CALL_CYCLES) -> float:
    match value:
        case ir.Call(name=name) if name in _DIVIDING:
            return CALL_CYCLES
        case ir.Call(name=name):
            return OPERATION_CYCLES if name in SHORT else call
        case ir.Binary(op="/", type=type_) if type_.is_float:
            return DIVISION_CYCLES
        case ir.Binary(op="/" | "%", right=right) if any(
            isinstance(v, ir.Load) for v in walk(right)
        ):
            return CALL_CYCLES  # of integers by data, or a remainder of floats by them
        case ir.Binary(op="min" | "max", type=type_) if type_.is_float:
            return EXTREME_CYCLES
        case ir.Unary() | ir.Binary() | ir.Select() | ir.Cast():
            return OPERATION_CYCLES
    return 0.0


DECIDED = 16
"""Points of the dimensions of conditions up to which all of them may be written out."""


def deciding_sizes(nest: ir.Nest) -> dict[str, int]:
    """The extents of the few dimensions that decide conditions of what is chosen, and nothing
    besides; empty if there are none, or too many points of them."""
    lets = {let.name: let.value for let in nest.point.lets}
    found: dict[str, int] = {}
    for value in (nest.point.value, *lets.values()):
        for v in walk(value):
            names = deciding_dims(v.condition, lets) if isinstance(v, ir.Select) else None
            sizes = {name: nest.dim(name).extent for name in names or ()}
            if all(provably_at_least(DECIDED, size) for size in sizes.values()):
                found |= sizes
    return found if 1 < math.prod(found.values()) <= DECIDED else {}


def decided_cycles(nest: ir.Nest, sizes: Mapping[str, int]) -> dict[frozenset[str], float]:
    """As ``arithmetic_cycles``, where all points of some dimensions are written out: the conditions
    that they decide are known, and what several of these points compute is computed once."""
    lets = {let.name: let.value for let in nest.point.lets}
    found: dict[frozenset[str], float] = {}
    counted = set[tuple[int, ...]]()
    each = math.prod(sizes.values())

    def of_point(at: Mapping[str, int]) -> Callable[[ir.Value], frozenset[str]]:
        known: dict[int, frozenset[str]] = {}

        def visit(value: ir.Value) -> frozenset[str]:
            if id(value) not in known:
                known[id(value)] = visited(value)
            return known[id(value)]

        def visited(value: ir.Value) -> frozenset[str]:
            if isinstance(value, ir.Variable) and value.name in lets:
                return visit(lets[value.name])
            if isinstance(value, ir.Select):
                names = deciding_dims(value.condition, lets)
                if names and names <= at.keys():
                    holds = decided(value.condition, at, lets)
                    if holds is not None:
                        return visit(value.then if holds else value.otherwise) | names
            own = _own_dims(value).union(*map(visit, children(value)))
            place = (id(value), *(at[d] for d in at if d in own))
            if (cycles := _cycles(value)) and place not in counted:
                counted.add(place)
                dims = own.union(at)
                found[dims] = found.get(dims, 0.0) + cycles / each
            return own

        return visit

    ranges = (range(d.first, d.first + d.extent) for d in map(nest.dim, sizes))
    for place in itertools.product(*ranges):
        of_point(dict(zip(sizes, place, strict=True)))(nest.point.value)
    return found
