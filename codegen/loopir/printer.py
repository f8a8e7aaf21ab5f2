"""Loop IR as readable text, for ``tcl show`` and golden tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from tcl.codegen.loopir import ir


def show(program: ir.Program | ir.Built) -> str:
    """The program as text, one loop or statement per line."""
    return "\n".join(_program_lines(program)) + "\n"


def _program_lines(program: ir.Program | ir.Built) -> Iterator[str]:
    yield f"program {program.name}"
    for tensor in program.tensors:
        layout = tensor.layout
        extents = ", ".join(map(str, layout.extents))
        strides = ", ".join(map(str, layout.strides))
        text = f"  {tensor.role.value} {tensor.name}: {layout.type}({extents}) strides ({strides})"
        if any(layout.origin):
            text += f" from ({', '.join(map(str, layout.origin))})"
        yield text
    if isinstance(program, ir.Program):
        for nest in program.nests:
            yield from _nest_lines(nest)
    else:
        for k, kernel in enumerate(program.kernels):
            yield from _kernel_lines(k, kernel)


def _nest_lines(nest: ir.Nest) -> Iterator[str]:
    yield f"nest {nest.name}" + (f"  # in order: {nest.sequential}" if nest.sequential else "")
    yield from map(_dim_text, nest.dims)
    for staged in nest.staged:
        place = f" inside {staged.inside.name}" if staged.inside else ""
        yield f"  stage {show_value(staged.value)} as {show_ref(staged.panel)}{place}"
    if nest.joined:
        yield "  shares the chunks of the nest before it"
    if nest.streamed:
        yield f"  writes {nest.streamed} bytes at once past the caches"
    depth = "  "
    for loop in nest.loops:
        yield depth + _loop_text(loop)
        depth += "  "
    for let in nest.point.lets:
        yield f"{depth}let {let.name} = {show_value(let.value)}"
    yield depth + show_point(nest.point)


def show_point(point: ir.Point) -> str:
    """What is computed at a point, as ``C(s0.m) +=! A(s0.m, s0.k)``."""
    mark = "!" if point.initialise else ""
    op = "=" if point.op == "=" else f"{point.op}={mark}"
    return f"{show_ref(point.target)} {op} {show_value(point.value)}"


def _kernel_lines(number: int, kernel: ir.Kernel) -> Iterator[str]:
    block = f"  # blocks of {kernel.threads} threads" if kernel.threads > 1 else ""
    yield f"kernel {number}{block}"
    for space in kernel.spaces:
        yield from map(_dim_text, space.dims)
    for panel in kernel.panels:
        yield f"  panel {panel.tensor} of {panel.source} at byte {panel.offset}"
    if kernel.exchange is not None:
        yield f"  sums are exchanged at byte {kernel.exchange}"
    depth = "  "
    for folds in kernel.grid:
        along = "".join(f" with {f.name}" for f in folds[1:])
        yield depth + _loop_text(ir.Loop(folds[0], ir.Kind.PARALLEL)) + along
        depth += "  "
    yield from _statement_lines(kernel.body, depth)


def _dim_text(dim: ir.Dim) -> str:
    kind = "reduction" if dim.reduction else "dim"
    return f"  {kind} {dim.name} in {dim.first}:{dim.first + dim.extent}"


def _loop_text(loop: ir.Loop) -> str:
    fold = loop.fold
    step = f" step {fold.step}" if fold.step != 1 else ""
    kind = "" if loop.kind is ir.Kind.SERIAL else f" {loop.kind.value}"
    note = ""
    if (at := loop.alignment) is not None:
        note = f"  # from where {at.ref.tensor} is at a multiple of {at.boundary} bytes"
    if loop.compacted is not None:
        note = (
            f"  # those {show_ref(loop.compacted.count)} listed in {loop.compacted.offset.tensor}"
        )
    if loop.cut is not None:
        apart = ", where all are apart" if loop.cut.apart else ""
        note = f"  # those with points of {_bounds_text(loop.cut.bounds)}{apart}"
    return f"for {fold.name} x {fold.count}{step}{kind}{note}"


def _sides_text(either: ir.First | ir.Within) -> tuple[str, str]:
    if isinstance(either, ir.First):
        which, others = ("last", "earlier") if either.last else ("first", "later")
        each = f"every {either.every} of " if either.every else ""
        return f"{which} of {each}{', '.join(f.name for f in either.folds)}", others
    return f"where all points have {_bounds_text(either.bounds)}", "elsewhere"


def _bounds_text(bounds: Iterable[tuple[ir.Affine, int]]) -> str:
    return " and ".join(f"{show_affine(index)} < {bound}" for index, bound in bounds)


def _statement_lines(statement: ir.Statement, depth: str) -> Iterator[str]:
    match statement:
        case ir.Block(body=body):
            for s in body:
                yield from _statement_lines(s, depth)
        case ir.For(loop=loop, body=inner):
            yield depth + _loop_text(loop)
            yield from _statement_lines(inner, depth + "  ")
            yield from _pause_lines(statement.pause, depth)
        case ir.Fill(body=inner) | ir.Last(body=inner):
            yield depth + _plain_line(statement)
            yield from _statement_lines(inner, depth + "  ")
        case ir.Pipeline(loop=loop, fills=fills, body=inner, buffers=buffers, ahead=ahead):
            if statement.meet:
                yield f"{depth}barrier"
            how = f"{buffers} buffers, filled ahead {ahead.value}"
            how += f", {statement.steps.name} read ahead" if statement.steps is not None else ""
            yield f"{depth}{_loop_text(loop)}  # {how}"
            for s in (*fills, inner):
                yield from _statement_lines(s, depth + "  ")
            yield from _pause_lines(statement.pause, depth)
        case ir.Let(name=name, value=value):
            yield f"{depth}let {name} = {show_value(value)}"
        case ir.First() | ir.Within():
            where, elsewhere = _sides_text(statement)
            yield depth + where
            yield from _statement_lines(statement.then, depth + "  ")
            yield depth + elsewhere
            yield from _statement_lines(statement.otherwise, depth + "  ")
        case ir.Declare(name=name, type=type_, over=over, start=start):
            each = f"[{', '.join(f.name for f in over)}]" if over else ""
            yield f"{depth}{type_} {name}{each}" + (f" = {show_value(start)}" if start else "")
        case ir.Accumulate(name=name, op=op, value=value):
            sign = "=" if op == "=" else f"{op}="
            yield f"{depth}{name} {sign} {show_value(value)}"
        case ir.Scan(name=name, op=op, value=value, result=result):
            yield f"{depth}{result} = {name} {op}= {show_value(value)}  # point by point"
        case ir.Carry(name=name, total=total, lost=lost):
            note = f"  # less {lost}, and what rounding takes is kept there" if lost else ""
            yield f"{depth}{total} += {name}{note}"
            yield f"{depth}{name} = 0.0"
        case ir.Store(ref=ref, value=value):
            note = "  # past the caches" if statement.streamed else ""
            note += "  # and 0 beyond" if statement.padded else ""
            yield f"{depth}{show_ref(ref)} = {show_value(value)}{note}"
        case ir.Update() | ir.Matrix() | ir.Prefetch() | ir.Barrier():
            yield depth + _plain_line(statement)
        case _:
            assert_never(statement)


def _plain_line(
    statement: ir.Update | ir.Matrix | ir.Prefetch | ir.Barrier | ir.Fill | ir.Last,
) -> str:
    match statement:
        case ir.Fill(panel=panel):
            return f"fill {panel}" + " asynchronously" * statement.asynchronous
        case ir.Last(among=among, arrived=arrived):
            return f"in the last block of those over {among.name}  # counted in {arrived}"
        case ir.Update(ref=ref, op=op, value=value):
            return f"{show_ref(ref)} {op}= {show_value(value)}"
        case ir.Matrix(name=name, action=action, at=at):
            place = f" at {show_ref(at)}" if at else ""
            return f"matrix unit: {action.value} {name}{place}"
        case ir.Prefetch(ref=ref, ahead=ahead, once=once):
            note = "  # to read it once" if once else ""
            after = f"{ahead} bytes after " if ahead else ""
            return f"prefetch {after}{show_ref(ref)}{note}"
    return "barrier"


def _pause_lines(pause: ir.Pause | None, depth: str) -> Iterator[str]:
    if pause is not None:
        yield f"{depth}after every {pause.every} iterations" + ", but the last" * (
            not pause.after_last
        )
        yield from _statement_lines(pause.then, depth + "  ")


def show_ref(ref: ir.TensorRef) -> str:
    """An element, as ``A(s0.m, s0.k + 1)``; checked subscripts end in ``?``."""
    return f"{ref.tensor}({', '.join(_subscript_text(s) for s in ref.subscripts)})"


def _subscript_text(subscript: ir.Subscript) -> str:
    if isinstance(subscript, ir.Affine):
        return show_affine(subscript)
    return show_value(subscript.value) + ("?" if subscript.check else "")


def show_affine(index: ir.Affine) -> str:
    """An index expression, as ``2*s0.i - s0.j + 1``."""
    text = ""
    for name, c in index.terms:
        sign = " - " if c < 0 else " + "
        text += (sign if text else sign.strip(" +")) + (f"{abs(c)}*" if abs(c) != 1 else "") + name
    if index.constant or not text:
        if not text:
            return str(index.constant)
        text += f" {'-' if index.constant < 0 else '+'} {abs(index.constant)}"
    return text


def show_value(value: ir.Value) -> str:
    """A value, fully parenthesised."""
    match value:
        case ir.Const(value=constant):
            return str(constant).lower() if isinstance(constant, bool) else repr(constant)
        case ir.Position(index=index):
            return show_affine(index)
        case ir.Variable(name=name):
            return name
        case ir.Combined(value=each, op=op, folds=folds):
            return f"{op} of {show_value(each)} over {', '.join(f.name for f in folds)}"
        case ir.Load(ref=ref):
            return show_ref(ref)
        case ir.Unary(op=op, operand=operand):
            return f"{op}{show_value(operand)}"
        case ir.Binary(op=op, left=left, right=right):
            if op in ("min", "max"):
                return f"{op}({show_value(left)}, {show_value(right)})"
            return f"({show_value(left)} {op} {show_value(right)})"
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            return f"({show_value(condition)} ? {show_value(then)} : {show_value(otherwise)})"
        case ir.Call(name=name, arguments=arguments):
            return f"{name}({', '.join(show_value(a) for a in arguments)})"
        case ir.Cast(operand=operand, type=type_):
            return f"{type_}({show_value(operand)})"
        case _:
            assert_never(value)
