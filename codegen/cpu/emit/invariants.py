"""What an iteration of a loop shares with the next one, so that it is better done before."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children, inside, statements, walk

_FEW = 64
"""Iterations of a loop beside which work before or after it takes no time. Products with loops of
33 iterations take up to 1.1 times as long when what their stores share is loaded again (Zen 4)."""


def loops_share_nothing(program: ir.Built) -> bool:
    """Whether in all innermost loops of a program, and in those around loops of few iterations,
    every element is another one in each iteration, and every operation has another result, but for
    those of what was computed before the loop."""
    return all(
        _shares_nothing(s)
        for kernel in program.kernels
        for s in statements(kernel.body)
        if isinstance(s, ir.For) and _repeats(s, 1)
    )


def _repeats(statement: ir.Statement, few: int) -> bool:
    """Whether it is a loop of more than ``few`` iterations when the kernel runs."""
    if not isinstance(statement, ir.For):
        return False
    loop = statement.loop
    return loop.kind is ir.Kind.SERIAL and loop.fold.count > few


def _own(statement: ir.Statement) -> Iterator[ir.Statement]:
    """What is in a statement, but not in loops inside of it."""
    for s in inside(statement):
        if not _repeats(s, 1):
            yield s
            yield from _own(s)


def _shares_nothing(loop: ir.For) -> bool:
    if any(_repeats(s, _FEW) for part in inside(loop) for s in statements(part)):
        return True
    if loop.loop.compacted is not None:
        return False
    moving = {loop.loop.fold.name, loop.loop.fold.dim}
    for s in _own(loop):
        match s:
            case ir.Let(name=name, value=value) | ir.Accumulate(name=name, value=value):
                moving.add(name)
                parts = [value]
            case ir.Store(ref=ref, value=value):
                parts = [ir.Load(ref, value.type, total=True), value]
            case ir.Declare(name=name):
                moving.add(name)
                parts = []
            case ir.Block() | ir.For() | ir.Prefetch() | ir.Carry():
                parts = []
            case _:
                return False
        if not all(_changes(part, moving) for part in parts):
            return False
    return True


def _changes(value: ir.Value, moving: Collection[str]) -> bool:
    """Whether everything in a value does, but for numbers and variables."""
    found: dict[int, bool] = {}
    for v in reversed(list(walk(value))):  # what is inside comes first
        own = False
        match v:
            case ir.Const() | ir.Variable():
                found[id(v)] = isinstance(v, ir.Variable) and v.name in moving
                continue
            case ir.Load(ref=ref):
                if not all(isinstance(s, ir.Affine) for s in ref.subscripts):
                    return False  # a place that data decides is checked
                own = any(_moves(s, moving) for s in ref.subscripts if isinstance(s, ir.Affine))
            case ir.Position(index=index):
                own = _moves(index, moving)
            case ir.Combined(value=combined):
                own = any(isinstance(x, ir.Variable) and x.name in moving for x in walk(combined))
        found[id(v)] = own or any(found[id(c)] for c in children(v))
        if not found[id(v)]:
            return False
    return True


def _moves(index: ir.Affine, moving: Collection[str]) -> bool:
    return any(name in moving for name, _ in index.terms)
