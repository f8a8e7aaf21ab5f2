"""Reductions in parts that blocks or threads share: what becomes of a nest's choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tcl.codegen.choose.scatters import Copies, scattered
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest
from tcl.codegen.passes.split import Split, shifted
from tcl.codegen.schedule.plan import NestPlan, OptionSource, Plan

UNSPLIT = NestOptions(split=())


def with_parts(
    program: ir.Program, nests: Mapping[str, NestPlan]
) -> tuple[ir.Program, dict[str, NestPlan]]:
    """The program and the choices for it, with the reductions split for which that was chosen."""
    found = dict(nests)
    for nest in program.nests:
        parts = nests[nest.name].options.split
        if parts:
            reason = nests[nest.name].reason("split")
            program, found = split_nest(program, found, nest.name, parts, reason)
    return program, found


def with_scatters(
    program: ir.Program,
    nests: Mapping[str, NestPlan],
    copies: Copies,
    loops: Callable[[ir.Program, ir.Nest], ir.Nest],
) -> tuple[ir.Program, dict[str, NestPlan]]:
    """The program and the choices for it, with scatters taken apart. ``loops``: gives what updates
    its loops, which no option decides."""
    found = dict(nests)
    for nest in program.nests:
        if nest.point.scatters:
            made = scattered(program, nest, copies)(program)
            program = map_nest(made, nest.name, partial(loops, made))
    plain = {
        n.name: NestPlan(UNSPLIT, (OptionSource(f"for {n.name.rpartition('.')[0]}", UNSPLIT),))
        for n in program.nests
        if n.name not in found
    }
    return program, {n.name: (found | plain)[n.name] for n in program.nests}


def split_nest(
    program: ir.Program,
    nests: dict[str, NestPlan],
    name: str,
    parts: tuple[int, ...],
    reason: str,
) -> tuple[ir.Program, dict[str, NestPlan]]:
    """The program and the choices for it, with a reduction split."""
    divided = Split(name, parts)(program)
    if divided is program:
        return program, nests
    whole = f"{name}.whole"
    own = nests[name]
    of_parts = NestPlan(
        shifted(own.options),
        tuple(OptionSource(s.name, shifted(s.options)) for s in own.sources),
        {"split": f"done: into {max(parts)} parts, {reason}"},
        own.left_off,
    )
    of_whole = NestPlan(UNSPLIT, (OptionSource(f"reduces the parts of {name}", UNSPLIT),))
    return divided, {**nests, name: of_parts, whole: of_whole}


def unsplit(program: ir.Program, plan: Plan[Any]) -> dict[str, NestOptions]:
    """The choices of a plan for the nests of its program before any was split, as if they were for
    all of it."""
    return {n.name: _unsplit(n, plan.program.nest(n.name), plan.options) for n in program.nests}


def _unsplit(nest: ir.Nest, parts: ir.Nest, chosen: Mapping[str, NestOptions]) -> NestOptions:
    """The choices for a nest that may have been split, as if they were for all of it."""
    own = chosen[nest.name]
    if len(parts.dims) == len(nest.dims) or nest.point.scatters:
        return own
    pairs = zip(nest.dims, parts.dims[1:], strict=True)
    count = parts.dims[0].extent
    split = tuple(count if a.extent != b.extent else 0 for a, b in pairs)
    return replace(own.without_leading(), split=split)
