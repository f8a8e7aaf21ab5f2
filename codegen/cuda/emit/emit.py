"""A program for a GPU as CUDA C++."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tcl.codegen.common.recursion import with_room
from tcl.codegen.cuda.cpp.types import memory_type
from tcl.codegen.cuda.emit.accesses import Memory
from tcl.codegen.cuda.emit.block import Kernel, chunks_of, with_fills
from tcl.codegen.cuda.emit.module import SHARED, Launch, Module
from tcl.codegen.cuda.emit.names import Names
from tcl.codegen.cuda.emit.scope import Geometry, Scope
from tcl.codegen.cuda.emit.writer import Writer
from tcl.codegen.cuda.prelude.prelude import prelude
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.printer import show_ref, show_value
from tcl.codegen.loopir.sites import Site
from tcl.codegen.loopir.walk import loads, statements, values_in, walk
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.gpu.bind import thread_count
from tcl.codegen.passes.gpu.build_blocks import kernels
from tcl.codegen.passes.gpu.limits import exchange_bytes
from tcl.codegen.passes.gpu.panel import LINE, panel_bytes
from tcl.codegen.schedule.gpu import schedule
from tcl.grammar.sized import SizedDef

WARP = 32
FEW = 128
"""Threads of a block that is a small one."""
_COMMENT = 260
_WIDE = 2**30


def emit_module(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    unchecked: bool = False,
) -> Module:
    """The kernels of a def. ``layouts``: of all tensors, where it is not
    ``gpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be applied.
    """
    seen = layouts or gpu_layouts(sized)
    program = schedule(sized, options, profile, seen)
    module = with_room(lambda: emit(program, profile, unchecked))
    # As callers see them: dimensions may have been merged.
    tensors = (replace(t, layout=seen.get(t.name, t.layout)) for t in module.tensors)
    return replace(module, tensors=tuple(tensors))


def emit(program: ir.Program, profile: GpuProfile, unchecked: bool = False) -> Module:
    """A program that is built, as a module."""
    if not isinstance(program.body, ir.Block):
        raise ir.IRError(f"program {program.name} has no body yet")
    sites: list[Site] = []
    used: set[str] = set()
    found: list[tuple[Launch, list[str], list[str]]] = []
    names = Names()
    for own, body in zip(kernels(program), program.body.body, strict=True):
        group = _nests(program, own)
        if any(f.count == 0 for f in group[0].chunks):
            continue  # there is no result to compute
        name = names.new(f"{program.name}_{len(found)}")
        found.append(_kernel(program, group, body, profile, name, sites, used, unchecked))
    texts = []
    for launch, parameters, lines in found:
        parameters = [*parameters, *(["unsigned long long *error"] if sites else [])]
        # Few threads may have all registers that a thread can have: two such blocks still fit.
        bounds = f"{launch.threads}, 1" if launch.threads <= FEW else f"{launch.threads}"
        head = f'extern "C" __global__ void __launch_bounds__({bounds})\n{launch.name}('
        texts.append(f"{head}{_wrapped(parameters)})\n{{\n" + "\n".join(lines) + "\n}\n")
    source = "\n".join([prelude(used), *texts]).lstrip()
    kept = tuple(t for t in program.tensors if not t.shared)
    return Module(source, tuple(x for x, _, _ in found), kept, tuple(sites))


def _nests(program: ir.Program, own: Sequence[FusionGroup]) -> list[ir.Nest]:
    """The nests of a kernel, in order."""
    names = set[str]().union(*(u.names for u in own))
    return [n for n in program.nests if n.name in names]


def _wrapped(parameters: Sequence[str]) -> str:
    text = ", ".join(parameters)
    return text if len(text) < 80 else "\n    " + ",\n    ".join(parameters)


def _kernel(
    program: ir.Program,
    group: Sequence[ir.Nest],
    body: ir.Statement,
    profile: GpuProfile,
    name: str,
    sites: list[Site],
    used: set[str],
    unchecked: bool,
) -> tuple[Launch, list[str], list[str]]:
    nests, touched, written = with_fills(group), _touched(body), _written(body)
    tensors = [t for t in program.tensors if t.name in touched and not t.shared]
    panels = [t for t in program.tensors if t.name in touched and t.shared]
    staged = {c.panel.tensor: c for n in group for c in n.staged}
    names = Names()
    for tensor in tensors:
        names.of(f"tensor {tensor.name}", tensor.name)
    for panel in panels:
        names.of(f"tensor {panel.name}", f"{staged[panel.name].source.ref.tensor}_tile")
    writer = _writer(program, names, sites, unchecked)
    threads = _threads(nests)
    kernel = Kernel(writer, threads, profile)
    kernel.written = frozenset(written)
    for nest in group:
        for part in _comment(_said(nest.point)):
            kernel.lines.add(f"// {part}")
    buffers = {k: c.buffers for k, c in staged.items()}
    shared = _panels(panels, buffers, exchange_bytes(group), writer.memory, kernel.lines.add)
    chunks, inside = chunks_of(body)
    kernel.together(inside, kernel.bind(chunks, nests))
    used |= writer.used | writer.memory.used
    parameters = [
        f"{'' if t.name in written else 'const '}{memory_type(t.layout.type)} "
        f"*__restrict__ {writer.memory.name(t.name)}"
        for t in tensors
    ]
    blocks = math.prod(folds[0].count for folds in chunks)
    launch = Launch(name, blocks, threads, shared, tuple(t.name for t in tensors))
    return launch, parameters, kernel.lines.lines


def _writer(program: ir.Program, names: Names, sites: list[Site], unchecked: bool) -> Writer:
    """What writes values and memory accesses, which hold each other."""

    def value(one: ir.Value, scope: Scope) -> str:
        return writer.text(one, scope)

    geometry = Geometry(program)
    memory = Memory(geometry, names, sites, unchecked, value)
    wide = any(_reach(t.layout) >= _WIDE for t in program.tensors)
    writer = Writer(geometry, memory, names, wide=wide)
    return writer


def _threads(nests: Sequence[ir.Nest]) -> int:
    """Of a block: one, or whole warps."""
    threads = max(map(thread_count, nests))
    return 1 if threads == 1 else -(-threads // WARP) * WARP


def _said(point: ir.Point) -> str:
    """A statement, for people."""
    mark = "!" if point.initialise else ""
    op = "=" if point.op == "=" else f"{point.op}={mark}"
    return f"{show_ref(point.target)} {op} {show_value(point.value)}"


def _comment(text: str) -> list[str]:
    """Lines of a comment, in which nothing ends it or goes on after it."""
    text = "".join(c if c.isascii() and c.isprintable() and c != "\\" else "?" for c in text)
    return textwrap.wrap(text if len(text) <= _COMMENT else f"{text[:_COMMENT]} ...", 90)


def _panels(
    panels: Sequence[ir.Tensor],
    buffers: Mapping[str, int],
    exchange: int,
    memory: Memory,
    add: Callable[[str], None],
) -> int:
    """Declares where panels lie in shared memory; returns how much there is."""
    lines: list[str] = []
    size = 0
    for panel in panels:
        type_ = memory_type(panel.layout.type)
        lines.append(f"{type_} *{memory.name(panel.name)} = ({type_} *)({SHARED} + {size});")
        size += panel_bytes(panel.layout) * buffers[panel.name]
    if exchange:
        lines.append(f"unsigned char *exchange = {SHARED} + {size};")
        size += exchange
    if lines:
        lines.insert(0, f"extern __shared__ __align__({LINE}) unsigned char {SHARED}[];")
    for line in lines:
        add(line)
    return size


def _touched(body: ir.Statement) -> set[str]:
    """The tensors that a kernel reads or writes."""
    found = _written(body)
    for s in statements(body):
        for value in values_in(s):
            found |= {load.ref.tensor for load in loads(value)}
            found |= _combined(value)
    return found


def _combined(value: ir.Value) -> set[str]:
    inner = (v.value for v in walk(value) if isinstance(v, ir.Combined))
    return {load.ref.tensor for v in inner for load in loads(v)}


def _written(body: ir.Statement) -> set[str]:
    return {s.ref.tensor for s in statements(body) if isinstance(s, ir.Store)}


def _reach(layout: ir.Layout) -> int:
    """An upper bound of the offsets of elements, and of the points that go through them."""
    reach = sum(
        abs(s) // layout.itemsize * n for s, n in zip(layout.strides, layout.extents, strict=True)
    )
    return max(reach, *layout.extents, 0) if layout.extents else reach
