"""Sums of several threads, made one."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.cuda.cpp.types import c_type
from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.cuda.emit.writer import Writer, iteration
from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import (
    combined_of,
    exchange_stride,
    thread_bits,
    together,
    warps_apart,
)
from tcl.codegen.loopir.walk import chain


def write_combined(writer: Writer, statement: ir.Statement, scope: CudaScope, asking: str) -> None:
    """All threads of the block take part, whether or not their points are there. ``asking``: the
    test of those that need what other warps have; empty for all threads."""
    loops, _ = chain(statement)
    parts, geometry, lines = combined_of(statement), writer.geometry, writer.lines
    own = [x.fold for x in loops if x.kind is not ir.Kind.THREAD]
    folds = parts[0][1].folds
    bits = thread_bits(geometry.space_of[folds[0].dim].threads, folds)
    turn, several = parts[0][1].turn, warps_apart(bits)
    if not several:
        with writer.unrolled(own, scope) as inner:
            _own_sums(writer, parts, bits, inner)
        return
    width = min(together(own, combined) for _, combined in parts)
    rest = own[turn:]
    with writer.unrolled(own[:turn], scope) as outer:
        with writer.unrolled(rest, outer) as inner:
            _own_sums(writer, parts, bits, inner)
        with writer.unrolled(rest, outer, width) as inner:
            for name, combined in parts:
                _hand_over(writer, name, combined, rest, width, inner)
        lines.add("__syncthreads();")
        with lines.under(asking), writer.unrolled(rest, outer, width) as inner:
            for name, combined in parts:
                place, first = _exchanged(writer, combined, rest, inner)
                there = " + ".join(filter(None, (place, first)))
                how = f"over_warps<{several}{f', {width}' if width > 1 else ''}>"
                _reduce(writer, name, combined, how, there, inner, width)
        if turn:  # the next ones are written there
            lines.add("__syncthreads();")


def _own_sums(
    writer: Writer, parts: Sequence[tuple[str, ir.Combined]], bits: int, scope: CudaScope
) -> None:
    """What a thread and its warp have."""
    for name, combined in parts:
        _own_sum(writer, name, combined, scope)
        _over_warp(writer, name, combined, bits % WARP, scope)


def _hand_over(
    writer: Writer,
    name: str,
    combined: ir.Combined,
    rest: Sequence[ir.Fold],
    width: int,
    scope: CudaScope,
) -> None:
    """Writes a thread's value, or so many neighbours at once, to where others read it."""
    place, first = _exchanged(writer, combined, rest, scope)
    own = writer.accumulator(name, scope)
    if width == 1:
        number = " + ".join(filter(None, (first, "threadIdx.x")))
        writer.lines.add(f"({place})[{number}] = {own};")
        return
    writer.used.add("store")
    there = " + ".join(filter(None, (place, first, f"threadIdx.x * {width}")))
    writer.lines.add(f"store<{width}>({there}, &{own});")


def _own_sum(writer: Writer, name: str, combined: ir.Combined, scope: CudaScope) -> None:
    """What a thread has itself."""
    kept = [f for f in combined.folds if f not in writer.geometry.threads]
    target, first = writer.accumulator(name, scope), scope
    for fold in kept:
        first = first.with_fold(fold, "0")
    writer.lines.add(f"{target} = {writer.text(combined.value, first)};")
    if kept:
        _rest(writer, target, combined, kept, scope)


def _rest(
    writer: Writer, target: str, combined: ir.Combined, kept: list[ir.Fold], scope: CudaScope
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


def _over_warp(
    writer: Writer, name: str, combined: ir.Combined, bits: int, scope: CudaScope
) -> None:
    """The sums of the threads of a warp."""
    if bits:
        own = writer.accumulator(name, scope)
        _reduce(writer, name, combined, f"over_warp<{bits}>", own, scope)


def _reduce(
    writer: Writer,
    name: str,
    combined: ir.Combined,
    how: str,
    value: str,
    scope: CudaScope,
    width: int = 1,
) -> None:
    """A call of a helper function for the sum of one result, or of so many neighbours."""
    type_ = c_type(combined.type)
    both = writer.expressions(scope).merge(combined.op, "a", "b", combined.type)
    how = f"vectors_{how}" if width > 1 else how
    writer.used.add(how.partition("<")[0])
    target, op = writer.accumulator(name, scope), f"[]({type_} a, {type_} b) {{ return {both}; }}"
    if width > 1:
        writer.lines.add(f"{how}(&{target}, {value}, {op});")
    else:
        writer.lines.add(f"{target} = {how}({value}, {op});")


def _exchanged(
    writer: Writer, combined: ir.Combined, at_once: Sequence[ir.Fold], scope: CudaScope
) -> tuple[str, str]:
    """Where threads hand over the sums of one nest, and of these the first one of this result."""
    number = ""
    for fold in at_once:
        own = iteration(fold, scope)
        before = f"{number} * {fold.count}" if number not in ("", "0") else ""
        number = f"({before} + {own})" if before and own != "0" else before or own
    place = f"(exchange + {combined.place})" if combined.place else "exchange"
    stride = exchange_stride(writer.geometry.kernel.threads)
    first = f"{number} * {stride}" if number not in ("", "0") else ""
    return f"({c_type(combined.type)} *){place}", first
