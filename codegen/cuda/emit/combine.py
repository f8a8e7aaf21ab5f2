"""Sums of several threads, registers and lanes, as one."""

from __future__ import annotations

import math

from tcl.codegen.cuda.cpp.types import c_type
from tcl.codegen.cuda.emit.scope import Scope
from tcl.codegen.cuda.emit.writer import Writer, chain, iteration
from tcl.codegen.loopir import ir


def combines(statement: ir.Statement) -> bool:
    """Whether it combines what accumulators give in several iterations."""
    _, inner = chain(statement)
    return isinstance(inner, ir.Accumulate) and isinstance(inner.value, ir.Combined)


def write_combined(writer: Writer, statement: ir.Statement, scope: Scope) -> None:
    """All threads of the block take part, whether or not their points are there."""
    loops, body = chain(statement)
    if not isinstance(body, ir.Accumulate) or not isinstance(body.value, ir.Combined):
        raise ir.IRError("nothing is combined here")
    combined = body.value
    own = [x.fold for x in loops if x.kind is not ir.Kind.THREAD]
    with writer.unrolled(own, scope) as inner:
        kept = [f for f in combined.folds if f not in writer.geometry.threads]
        target = writer.accumulator(body.name, inner)
        first = inner
        for fold in kept:
            first = first.with_fold(fold, "0")
        writer.lines.add(f"{target} = {writer.text(combined.value, first)};")
        if kept:
            _rest(writer, target, combined, kept, inner)
        for fold in (f for f in combined.folds if f in writer.geometry.threads):
            _over_threads(writer, target, combined, fold, inner)


def _rest(
    writer: Writer, target: str, combined: ir.Combined, kept: list[ir.Fold], scope: Scope
) -> None:
    """The thread's own sums but the first one."""
    with writer.unrolled(kept, scope) as each:
        numbers = (iteration(f, each) for f in kept)
        later = " || ".join(f"{n} > 0" for n in numbers if n != "0")
        if not later:
            return  # the others have no points
        text = writer.text(combined.value, each)
        made = writer.expressions(each).merge(combined.op, target, text, combined.type)
        writer.lines.add(f"if ({later}) {target} = {made};")


def _over_threads(
    writer: Writer, target: str, combined: ir.Combined, fold: ir.Fold, scope: Scope
) -> None:
    """Those of the threads of one fold; all of them get the result."""
    folds = writer.geometry.space_of[fold.dim].threads
    apart = math.prod(f.count for f in folds[folds.index(fold) + 1 :])
    type_ = c_type(combined.type)
    both = writer.expressions(scope).merge(combined.op, "a", "b", combined.type)
    writer.used.add("over_threads")
    writer.lines.add(
        f"{target} = over_threads<{fold.count}, {apart}>({target}, "
        f"[]({type_} a, {type_} b) {{ return {both}; }}, ({type_} *)exchange);"
    )
