"""Modules that run on this machine's CPU."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tcl.codegen.cuda.emit.module import SHARED, CudaModule
from tcl.codegen.cuda.emulator.arena import ERRORS, Arena, Array, arena_of
from tcl.codegen.cuda.emulator.compiler import CompilerError, EmulationError, build_library
from tcl.codegen.cuda.emulator.findings import describe
from tcl.codegen.cuda.emulator.native import KindTraffic, LaunchRequest, NativeLibrary, Origin
from tcl.codegen.loopir import ir
from tcl.common.errors import CompileError

Order: TypeAlias = Literal["forward", "reverse", "random"]
ORDERS: tuple[Order, ...] = ("forward", "reverse", "random")
"""In which a block's threads, and the blocks, take their turns."""

TRACED = (
    *("global reads", "global writes", "global copies"),
    *("shared reads", "shared writes", "shared copies", "matrix reads"),
)
"""Kinds of requests for memory, in the order of ``Traced`` in trace.h."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What warps asked for by one kind of request."""

    requests: int
    units: int
    """Sectors of global memory, wavefronts of shared memory."""
    bytes: int


Requests: TypeAlias = Mapping[str, Asked]
"""By kind; empty where nobody traced them."""


def compile_modules(
    modules: Sequence[CudaModule], *, checked: bool = True, traced: bool = False
) -> list[Emulated]:
    """The modules, compiled together: 20 to 50 at once take a fraction of the time that each
    takes alone.

    With ``checked`` every access is watched, which takes five to ten times longer to run.
    Without, an access outside all tensors or of a vector that is not aligned can end the process.
    With ``traced``, too, runs say what warps asked of memory, which takes several times longer.
    Raises ``CompileError`` with the place among ``modules`` and the line if one does not compile,
    ``EmulationError`` if nothing can be emulated on this machine.
    """
    if not modules:
        return []
    try:
        library = NativeLibrary(
            build_library(emulated_unit(modules, traced=traced), checked=checked)
        )
    except CompilerError as error:
        raise refusal(str(error), modules) from None
    lock = threading.Lock()
    return [
        Emulated(module, number, library, checked, traced, lock)
        for number, module in enumerate(modules)
    ]


@dataclass(frozen=True, slots=True)
class Emulated:
    """A module, compiled for the CPU."""

    module: CudaModule
    number: int
    """Among those it was compiled with."""
    library: NativeLibrary
    checked: bool
    traced: bool
    lock: threading.Lock
    """The library runs one launch at a time."""

    def run(
        self,
        arrays: Mapping[str, Array],
        order: Order = "forward",
        *,
        seed: int = 1,
    ) -> tuple[Requests, ...]:
        """Runs all launches on copies of the arrays, and copies outputs back. Where they are
        traced: what their warps asked of memory, launch by launch.

        Arrays have the shapes and strides of the module's layouts; their copies lie as aligned
        as the layouts promise and no more. Outputs are not cleared before.
        Raises ``IndexError`` if a checked subscript was out of range, ``EmulationError`` if a
        kernel made an access it may not make, raced or did not end; nothing is copied back then.
        """
        arena = arena_of(self.module, arrays)
        problems: list[str] = []
        asked: list[Requests] = []
        for position in range(len(self.module.launches)):
            traffic = (KindTraffic * len(TRACED))() if self.traced else None
            problems += self._launch(position, arena, order, seed, traffic)
            kinds = zip(TRACED, traffic or (), strict=self.traced)
            asked.append({kind: Asked(t.requests, t.units, t.bytes) for kind, t in kinds})
            if problems:
                break
        if not problems and (place := arena.overwritten()) is not None:
            problems.append(f"memory beside tensor {place.name} was overwritten")
        if problems:
            raise EmulationError("\n".join(problems))
        if self.module.sites:
            site, value = arena.record_access()
            if site:
                raise IndexError(self.module.sites[site - 1].message(value))
        for tensor in self.module.tensors:
            if tensor.role is ir.Role.OUTPUT and 0 not in tensor.layout.extents:
                array, place = arrays[tensor.name], arena.places[tensor.name]
                array[...] = arena.elements(place, array.dtype)
        return tuple(asked)

    def _launch(
        self,
        position: int,
        arena: Arena,
        order: Order,
        seed: int,
        traffic: ctypes.Array[KindTraffic] | None,
    ) -> list[str]:
        launch = self.module.launches[position]
        if not 1 <= launch.threads <= 1024 or launch.blocks < 0:
            raise EmulationError(
                f"{launch.name} cannot be launched with {launch.blocks} blocks "
                f"of {launch.threads} threads"
            )
        words = [*map(arena.address, launch.tensors), *launch.sizes]
        words += [arena.address(ERRORS)] if self.module.sites else []
        arguments = (ctypes.c_void_p * max(1, len(words)))(*words)
        begins = sorted((p.start, p.first) for p in arena.places.values())
        origins = (Origin * len(begins))(*(Origin(*b) for b in begins))
        request = LaunchRequest(
            kernel=self.library.function(entry(self.number, position)),
            arguments=ctypes.cast(arguments, ctypes.c_void_p),
            arena=arena.memory.ctypes.data,
            inside=arena.inside.ctypes.data,
            shared=self.library.pointer(shared_symbol(self.number)),
            traffic=None if traffic is None else ctypes.addressof(traffic),
            origins=ctypes.addressof(origins),
            number_of_origins=len(begins),
            arena_size=len(arena.memory),
            blocks=launch.blocks,
            threads=launch.threads,
            shared_size=launch.shared,
            shared_room=shared_room(self.module),
            order=ORDERS.index(order),
            seed=seed,
            checked=self.checked,
        )
        with self.lock:
            found = self.library.run(request)
        if self.checked and not request.checked:
            raise EmulationError("there is no memory to watch accesses in")
        return describe(found, self.module, self.number, launch, arena, self.library.path)


GUARD = 64 << 10
"""Bytes behind a block's shared memory in which an access is caught."""

_EXPORTED = 'extern "C" __attribute__((visibility("default")))'
_KERNEL = re.compile(r'\bextern\s+"C"\s+(?=__global__\b)')
_STATIC = re.compile(r"^(?!.*(?://|\bextern\b).*__shared__\b).*\b__shared__\b.*$", re.MULTILINE)
_LOOP = re.compile(r"\bfor \((?:int|long long) (\w+) = [^;]*;[^;]*;[^;{]*\) \{$", re.MULTILINE)
_ERROR = re.compile(r"^module(\d+)\.cu:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_MENTION = re.compile(r"^module(\d+)\.cu:(\d+):()", re.MULTILINE)


def emulated_unit(modules: Sequence[CudaModule], *, traced: bool = False) -> str:
    """The text: each module's own source, in a namespace of its own. ``traced``: loops say which
    iteration they are in."""
    parts = ['#include "functions.h"\n#include "ptx.h"\n']
    parts += [_namespace(number, module, traced) for number, module in enumerate(modules)]
    return "".join(parts)


def shared_room(module: CudaModule) -> int:
    """Bytes of the array that stands for shared memory."""
    return max((launch.shared for launch in module.launches), default=0) + GUARD


def entry(number: int, position: int) -> str:
    """The symbol that runs a thread of a module's launch."""
    return f"emulated_{number}_{position}"


def shared_symbol(number: int) -> str:
    """The symbol of a module's shared memory's address."""
    return f"emulated_shared_{number}"


def _namespace(number: int, module: CudaModule, traced: bool) -> str:
    if static := _STATIC.search(module.source):
        raise CompileError(f"only dynamic shared memory is emulated: {static[0].strip()}")
    entries = ""
    for position, launch in enumerate(module.launches):
        count = len(launch.tensors) + len(launch.sizes) + bool(module.sites)
        arguments = ", ".join(f"emulator::Argument{{arguments[{i}]}}" for i in range(count))
        head = f"void {entry(number, position)}(void* const* arguments)"
        entries += f"{_EXPORTED} EMULATOR {head} {{ {launch.name}({arguments}); }}\n"
    # With C linkage, kernels of one name would be one, whatever namespace they are in. A definition
    # of the shared memory in sight makes the kernel's own `extern` declaration mean this array.
    source = _KERNEL.sub("", module.source)
    if traced:
        source = _LOOP.sub(r"\g<0> emulator::Iteration iteration_(__LINE__, \g<1>);", source)
    return (
        f"namespace device {{ namespace module_{number} {{ namespace {{\n"
        f"__align__(128) unsigned char {SHARED}[{shared_room(module)}];\n"
        f'#line 1 "module{number}.cu"\n{source}\n'
        f'}}\n#line 1 "entries.cu"\n{entries}'
        f"{_EXPORTED} unsigned char* const {shared_symbol(number)} = {SHARED};\n"
        f"}} }}\n"
    )


def refusal(said: str, modules: Sequence[CudaModule]) -> CompileError:
    """The compiler's message, with the line of the source it is about."""
    problems: dict[int, str] = {}
    # Where the mistake shows inside a macro, the line that uses it is only mentioned.
    for found in list(_ERROR.finditer(said)) or list(_MENTION.finditer(said))[:1]:
        number, line, message = int(found[1]), int(found[2]), found[3] or said
        lines = modules[number].source.splitlines()
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        which = f"module {number} of {len(modules)}" if len(modules) > 1 else "the module"
        problems.setdefault(
            number, f"{which} is no C++ that can be emulated: {message}\n  line {line}: {text}"
        )
    return CompileError("\n".join(problems.values()) or f"the C++ compiler refused: {said}")
