"""Whether a work is large enough to wake other threads for, or for vectors that slow the clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from tcl.codegen.choose.cpu.lanes import lanes_of
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import gathers, operands, values_of, walk
from tcl.codegen.passes.scatter import side_by_side
from tcl.codegen.passes.vectorize import outputs
from tcl.grammar.sizes.varying import Size

WAKING = 20_000.0
"""Nanoseconds of work on one thread below which others are left asleep. To begin and end together
takes 1 µs while all are awake, as in a loop of calls, and 20 to 40 µs when they have to be woken.
Two threads save half of the time: in a loop from about 5 µs on, after a pause from about 60."""
AWAKE = 4_000.0
"""Likewise where they are awake already: to add up their sums takes a microsecond."""
_ONE_BY_ONE = 0.85
"""The part of a program's time that is updates of single elements, from which on vectors of 512
bits are not worth a lower clock ..."""
_CALLED = 0.05
"""... if built-in functions, which take half as long in them, take no more than this part."""

_PER_LANE = 8.0
"""Operations per nanosecond and lane of a vector register, in a good kernel of some 20 µs: 5 to 10
in nine of them on Zen 4, where 7 are the peak of products of 512 bits."""
_BYTES = 60.0
"""Bytes per nanosecond from or to the second cache: what takes so short a time lies there."""
_CALL = 48.0
"""Operations that a built-in function stands for."""
_APART = 16.0
"""Likewise an element that is no neighbour of the next lane's, or a quotient of integers."""
_UPDATE = 64.0
"""Likewise an update of an element that data select."""
_CLOCK = 3.5
"""Cycles per nanosecond."""
_AGAIN = 4
"""Times that elements may be read before they are copied."""


def worth_threads(program: ir.Program, device: CpuProfile) -> bool:
    """Whether a program that has just been lowered takes long enough on one thread."""
    return sum(_nanoseconds(program, nest, device) for nest in program.nests) >= WAKING


def worth_sharing(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> bool:
    """Whether a nest alone takes long enough for that. Where it reads what nests before it make,
    others are awake, and have a part of that in their caches."""
    before = takewhile(lambda other: other.name != nest.name, program.nests)
    made = {other.point.target.tensor for other in before}
    awake = any(load.ref.tensor in made for load in operands(nest.point))
    return _nanoseconds(program, nest, device) >= (AWAKE if awake else WAKING)


def with_threads_worth(program: ir.Program, device: CpuProfile) -> CpuProfile:
    """The device with as many threads as it has if they are worth waking, else with one."""
    if device.threads == 1 or worth_threads(program, device):
        return device
    return replace(device, threads=1)


def with_vectors_worth(program: ir.Program, device: CpuProfile) -> CpuProfile:
    """The device with vectors of 256 bits where nearly all of a program is updates of elements one
    by one, for which longer ones would lower the clock; else as it is. On Cascade Lake, 12 such
    defs take .86 to 1.1 of the time so, .94 in the mean, a histogram of logarithms 1.2."""
    alone = [n.point.scatters and not side_by_side(n) for n in program.nests]
    fixed = not any(isinstance(n.points, Size) for n in program.nests)
    if not (device.slows_for_wide_vectors and any(alone) and fixed):
        return device
    times = [_nanoseconds(program, nest, device) for nest in program.nests]
    updates = sum(each for each, one in zip(times, alone, strict=True) if one)
    called = sum(_CALL * _calls(n) * n.points / _rate(n, device) for n in program.nests)
    if updates < _ONE_BY_ONE * sum(times) or called > _CALLED * sum(times):
        return device
    return replace(device, vector_bits=256)


def cycles(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> float:
    """About what the nest takes on one thread."""
    return _CLOCK * _nanoseconds(program, nest, device)


def _nanoseconds(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> float:
    """About what the nest takes: its arithmetic or its memory, whichever takes longer. Nothing for
    one whose points have to run in order, which threads cannot share."""
    free = nest.point.scatters or (nest.running is not None and outputs(nest))
    if nest.sequential and not free:
        return 0.0
    points = nest.points
    operations = 1.0 if nest.point.op != "=" else 0.0
    for value in (v for whole in values_of(nest.point) for v in walk(whole)):
        if isinstance(value, ir.Unary | ir.Binary | ir.Select | ir.Cast):
            operations += _APART if _one_by_one(value) else 1
    operations += _CALL * _calls(nest) + _APART * _scattered(program, nest, device)
    if nest.point.scatters:
        operations += _UPDATE
    moved = 0
    for ref in (nest.point.target, *(load.ref for load in operands(nest.point))):
        layout = program.tensor(ref.tensor).layout
        moved += min(points, layout.elements) * layout.itemsize
    return max(points * operations / _rate(nest, device), moved / _BYTES)


def _one_by_one(value: ir.Value) -> bool:
    """Whether it is an integer quotient or remainder that no multiplication gives."""
    match value:
        case ir.Binary(op="/" | "%", right=divisor, type=type_):
            return not type_.is_float and not isinstance(divisor, ir.Const)
    return False


def _calls(nest: ir.Nest) -> int:
    """Built-in functions that a point calls."""
    values = (v for whole in values_of(nest.point) for v in walk(whole))
    return sum(isinstance(value, ir.Call) for value in values)


def _rate(nest: ir.Nest, device: CpuProfile) -> float:
    """Operations per nanosecond."""
    return _PER_LANE * lanes_of(nest.point, device)


def _scattered(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> int:
    """Operands whose elements are not neighbours, nor the same, in the lanes of a vector along the
    dimension that suits most of them, or that data select. What else is read again and again is
    copied, and does not count."""
    refs = [load.ref for load in operands(nest.point)]
    layouts = [(program.tensor(ref.tensor).layout, ref) for ref in refs if not gathers(ref)]
    once = [(y, ref) for y, ref in layouts if nest.points <= _AGAIN * y.elements]
    found = [
        sum(abs(layout.step(ref, dim.name)) > 1 for layout, ref in once)
        for dim in nest.dims
        if dim.extent >= lanes_of(nest.point, device)
    ]
    return min(found, default=0) + sum(map(gathers, refs))
