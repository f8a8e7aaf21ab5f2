"""A program for a GPU as CUDA C++."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.codegen.common.sites import Site
from tcl.codegen.cuda.cpp.types import memory_type
from tcl.codegen.cuda.emit.accesses import AccessWriter
from tcl.codegen.cuda.emit.block import BlockWriter
from tcl.codegen.cuda.emit.module import SHARED, CudaModule, Launch
from tcl.codegen.cuda.emit.names import RESERVED, CudaScope, Names
from tcl.codegen.cuda.emit.sizes import SizeParameters, symbols
from tcl.codegen.cuda.emit.threads import Threads
from tcl.codegen.cuda.emit.writer import Writer
from tcl.codegen.cuda.prelude.prelude import prelude
from tcl.codegen.devices.gpu import SHARED_LINE, GpuProfile
from tcl.codegen.devices.occupancy import promised
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.printer import show_point
from tcl.codegen.loopir.walk import loads, statements, values_in, walk
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.common.recursion import with_room
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import Size, provably

_COMMENT = 260
_WIDE = 2**30


def emit_module(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    unchecked: bool = False,
) -> CudaModule:
    """The kernels of a def. ``layouts``: of all tensors, where it is not
    ``gpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be applied.
    """
    seen = layouts or gpu_layouts(sized)
    program = schedule(sized, options, profile, seen)
    module = with_room(lambda: emit_program(program, profile, unchecked))
    # As callers see them: dimensions may have been merged.
    tensors = (replace(t, layout=seen.get(t.name, t.layout)) for t in module.tensors)
    return replace(module, tensors=tuple(tensors))


def emit_program(program: ir.Built, profile: GpuProfile, unchecked: bool = False) -> CudaModule:
    module, names = _Module.of(program, profile.idle_sums, unchecked), Names()
    found: list[tuple[Launch, list[str], list[str]]] = []
    for k, kernel in enumerate(program.kernels):
        found.append(_kernel(module, kernel, names.new(f"{program.name}_{k}")))
    texts, sites = [], module.sites
    for launch, parameters, lines in found:
        parameters = [*parameters, *(["unsigned long long *error"] if sites else [])]
        number = None if isinstance(launch.blocks, Size) else launch.blocks
        blocks = promised(launch.threads, number, launch.shared, profile)
        bounds = f"{launch.threads}, {blocks}" if blocks else f"{launch.threads}"
        head = f'extern "C" __global__ void __launch_bounds__({bounds})\n{launch.name}('
        texts.append(f"{head}{_wrapped(parameters)})\n{{\n" + "\n".join(lines) + "\n}\n")
    source = "\n".join([prelude(module.used), *texts]).lstrip()
    kept = tuple(t for t in program.tensors if not t.shared)
    return CudaModule(source, tuple(x for x, _, _ in found), kept, tuple(sites))


def _wrapped(parameters: Sequence[str]) -> str:
    text = ", ".join(parameters)
    return text if len(text) < 80 else "\n    " + ",\n    ".join(parameters)


@dataclass(frozen=True, slots=True)
class _Module:
    """What the kernels of a module have in common."""

    program: ir.Built
    idle_sums: bool
    unchecked: bool
    reserved: frozenset[str]
    """Names that mean something else in all of them."""
    wide: bool
    """Whether offsets of elements may need 64 bits."""
    sites: list[Site]
    used: set[str]
    """Helper functions that are called."""

    @staticmethod
    def of(program: ir.Built, idle_sums: bool, unchecked: bool) -> _Module:
        reserved = frozenset(RESERVED | symbols(program))
        wide = not all(_near(t.layout) for t in program.tensors)
        return _Module(program, idle_sums, unchecked, reserved, wide, [], set())


def _kernel(module: _Module, kernel: ir.Kernel, name: str) -> tuple[Launch, list[str], list[str]]:
    """How a kernel is launched, its parameters, and the lines of its body."""
    touched, written = _touched(kernel.body), _written(kernel.body)
    tensors = [t for t in module.program.tensors if t.name in touched and not t.shared]
    names = Names(module.reserved)
    for tensor in tensors:
        names.name_of(f"tensor {tensor.name}", tensor.name)
    for panel in kernel.panels:
        names.name_of(f"tensor {panel.tensor}", f"{panel.source}_tile")
    writer = _writer(module, kernel, names)
    for point in kernel.points:
        for part in _comment(show_point(point)):
            writer.lines.add(f"// {part}")
    _declare_shared(writer, kernel)
    threads = Threads(writer, kernel, idle_sums=module.idle_sums)
    BlockWriter(writer, threads).together(kernel.body, threads.bind())
    module.used.update(writer.used | writer.memory.used)
    parameters = [
        f"{'' if t.name in written else 'const '}{memory_type(t.layout.type)} "
        f"*__restrict__ {writer.memory.name(t.name)}"
        for t in tensors
    ]
    sizes = writer.sizes
    blocks = math.prod(folds[0].count for folds in kernel.grid)
    taken = tuple(t.name for t in tensors)
    launch = Launch(name, blocks, kernel.threads, kernel.shared, taken, sizes.values)
    return launch, [*parameters, *sizes.parameters], writer.lines.lines


def _declare_shared(writer: Writer, kernel: ir.Kernel) -> None:
    """Where panels lie in the memory of a block, and what threads exchange."""
    if kernel.shared:
        bases = (writer.geometry.program.tensor(p.tensor).layout.base for p in kernel.panels)
        align = max(SHARED_LINE, *bases, 0)
        writer.lines.add(f"extern __shared__ __align__({align}) unsigned char {SHARED}[];")
    for panel in kernel.panels:
        name, type_ = (f(panel.tensor) for f in (writer.memory.name, writer.memory.element_type))
        writer.lines.add(f"{type_} *{name} = ({type_} *)({SHARED} + {panel.offset});")
    if kernel.exchange is not None:
        writer.lines.add(f"unsigned char *exchange = {SHARED} + {kernel.exchange};")


def _writer(module: _Module, kernel: ir.Kernel, names: Names) -> Writer:
    """What writes values and memory accesses, which hold each other."""

    def value(one: ir.Value, scope: CudaScope) -> str:
        return writer.text(one, scope)

    geometry, integer = Geometry(module.program, kernel), "long long" if module.wide else "int"
    sizes = SizeParameters(names, integer)
    memory = AccessWriter(geometry, names, module.sites, module.unchecked, sizes, value)
    writer = Writer(geometry, memory, names, sizes, integer)
    return writer


def _comment(text: str) -> list[str]:
    """Lines of a comment, in which nothing ends it or goes on after it."""
    text = "".join(c if c.isascii() and c.isprintable() and c != "\\" else "?" for c in text)
    return textwrap.wrap(text if len(text) <= _COMMENT else f"{text[:_COMMENT]} ...", 90)


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
    stored = {s.ref.tensor for s in statements(body) if isinstance(s, ir.Store | ir.Update)}
    return stored | {s.arrived for s in statements(body) if isinstance(s, ir.Last)}


def _near(layout: ir.Layout) -> bool:
    """Whether offsets of elements, and the points that go through them, are known to be small."""
    reach = sum(
        abs(s) // layout.itemsize * n for s, n in zip(layout.strides, layout.extents, strict=True)
    )
    return all(provably(lambda n=n: n < _WIDE) for n in (reach, *layout.extents))
