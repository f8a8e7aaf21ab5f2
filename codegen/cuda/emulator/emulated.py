"""Modules that run on this machine's CPU."""

from __future__ import annotations

import _ctypes
import ctypes
import re
import shutil
import subprocess
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tcl.codegen.common.warps import SLAB_TURN
from tcl.codegen.cuda.emit.module import SHARED, CudaModule, Launch
from tcl.codegen.cuda.emulator.arena import ERRORS, Arena, Array, arena_of
from tcl.codegen.cuda.emulator.compiler import CompilerError, EmulationError, build_library
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
        if not problems and (name := arena.left_over(self.module)) is not None:
            problems.append(f"tensor {name} does not hold zeros after the launch")
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
            raise EmulationError("there is not enough memory to check accesses")
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
        f"__align__({SLAB_TURN}) unsigned char {SHARED}[{shared_room(module)}];\n"
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
        problems.setdefault(number, f"{which} cannot be emulated: {message}\n  line {line}: {text}")
    return CompileError("\n".join(problems.values()) or f"the C++ compiler refused: {said}")


MOST_FINDINGS = 16


class Finding(ctypes.Structure):
    """What is wrong; see ``findings``."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("problem", "thread", "block", "other_thread")),
        *((name, ctypes.c_uint) for name in ("other_block", "size", "shared", "place")),
        *((name, ctypes.c_uint) for name in ("other_place", "line", "other_line")),
        ("offset", ctypes.c_int64),
    )


class KindTraffic(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("requests", "units", "bytes"))


class Origin(ctypes.Structure):
    """Where a tensor's bytes begin, and its first element."""

    _fields_ = (("begin", ctypes.c_int64), ("first", ctypes.c_int64))


class LaunchRequest(ctypes.Structure):
    """A launch, and the room for what is found."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("kernel", "arguments", "arena", "inside")),
        *((name, ctypes.c_void_p) for name in ("shared", "findings", "traffic", "origins")),
        *((name, ctypes.c_size_t) for name in ("number_of_origins", "arena_size")),
        *((name, ctypes.c_uint) for name in ("blocks", "threads", "shared_size", "shared_room")),
        *((name, ctypes.c_uint) for name in ("order", "seed", "checked")),
        *((name, ctypes.c_uint) for name in ("most_findings", "number_of_findings")),
    )


class NativeLibrary:
    """A loaded library, removed with its folder when nothing uses it any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        weakref.finalize(self, _unload, self._library._handle, path.parent)
        self._run = self._library.emulator_run
        self._run.argtypes = [ctypes.POINTER(LaunchRequest)]

    def run(self, request: LaunchRequest) -> list[Any]:
        """Runs a launch; what was found."""
        room = (Finding * MOST_FINDINGS)()
        request.findings = ctypes.cast(room, ctypes.c_void_p)
        request.most_findings = MOST_FINDINGS
        if self._run(ctypes.byref(request)):
            raise MemoryError("there is not enough memory for the stacks of the emulated threads")
        return list(room[: request.number_of_findings])

    def function(self, name: str) -> int:
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def pointer(self, name: str) -> int:
        return ctypes.c_void_p.in_dll(self._library, name).value or 0


def _unload(handle: int, folder: Path) -> None:
    _ctypes.dlclose(handle)
    shutil.rmtree(folder, ignore_errors=True)


_RACE = "race: {who} {does} {what} that {other} {did}, without synchronisation between the two"
SENTENCES = (
    _RACE.replace("{does}", "writes").replace("{did}", "wrote"),
    _RACE.replace("{does}", "reads").replace("{did}", "wrote"),
    _RACE.replace("{does}", "writes").replace("{did}", "read"),
    _RACE.replace("{does}", "accesses").replace("{did}", "accesses, one of both atomically"),
    "race: {who} accesses {what} while an asynchronous copy of {other} writes there",
    "out of bounds: {who} accesses {what}",
    "input written: {who} writes {what}",
    "misaligned: {who} accesses {what}, but not at a multiple of {size}",
    "wild access: {who} accesses {size} bytes that belong to no tensor",
    "out of bounds: {who} accesses element {offset} of an array in registers",
    "undefined arithmetic: {who} overflows a signed integer, or divides, shifts or converts an "
    "invalid value",
    "divergent barrier: {who} waits at a barrier that {other} does not reach",
    "divergent warp: {who} waits for its warp, but {other} does not come",
    "deadlock: {who} waits forever, because {other} waits elsewhere or has ended",
    "wrong memory: {who} uses an address outside of shared memory as one of shared memory",
    "stack overflow: {who} needs more than 64 KiB of local memory",
    "no fence: {who} multiplies what {other} wrote to shared memory without a fence after it",
    "no fence: {who} begins products before its sums are known to be where they belong",
)
"""In the order of ``Problem`` in state.h."""
_UNFINISHED = 4


def describe(
    findings: Iterable[Finding],
    module: CudaModule,
    number: int,
    launch: Launch,
    arena: Arena,
    library: Path,
) -> list[str]:
    """One text for each finding, without repetitions."""
    findings = list(findings)
    places = {place for f in findings for place in (f.place, f.other_place) if place}
    lines = _lines(library, places, f"module{number}.cu")
    described: dict[str, None] = {}
    for found in findings:
        text = f"{launch.name}: {_sentence(found, launch, arena)}"
        at = found.line or lines.get(found.place, 0)
        other = found.other_line or lines.get(found.other_place, 0)
        source = module.source.splitlines()
        for which, line in (("", at), ("the other: ", other if other != at else 0)):
            if 0 < line <= len(source):
                text += f"\n  {which}line {line}: {source[line - 1].strip()}"
        described[text] = None
    if len(findings) == MOST_FINDINGS:
        described["there may be more"] = None
    return list(described)


def _sentence(found: Finding, launch: Launch, arena: Arena) -> str:
    who = f"thread {found.thread} of block {found.block}"
    if found.other_block != found.block:
        other = f"thread {found.other_thread} of block {found.other_block}"
    elif found.other_thread != found.thread:
        other = f"thread {found.other_thread}"
    else:
        other = "the thread itself" if found.problem == _UNFINISHED else "another thread"
    return SENTENCES[found.problem].format(
        who=who,
        other=other,
        what=_what(found, launch, arena),
        size=found.size,
        offset=found.offset,
    )


def _what(found: Finding, launch: Launch, arena: Arena) -> str:
    size = f"{found.size} byte{'s' * (found.size != 1)}"
    if found.shared:
        return f"{size} at {found.offset} of its {launch.shared} bytes of shared memory"
    place = arena.at(found.offset)
    if place is None:
        return size
    inside = place.start <= found.offset <= place.end - found.size
    last = place.end - place.first - 1
    bounds = "" if inside else f", whose bytes are {place.start - place.first} to {last}"
    return f"{size} at {found.offset - place.first} of {place.name}{bounds}"


def _lines(library: Path, places: Iterable[int], file: str) -> dict[int, int]:
    """Where in the file these places of the code lie; empty where no tool can say."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    addresses = sorted(places)
    if not tool or not addresses:
        return {}
    # A place is where a call returns to; the byte before is the call's.
    asked = [hex(address - 1) for address in addresses]
    command = [tool, "-a", "-i", "-e", str(library), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[int, int] = {}
    current = 0
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            current = int(line, 16) + 1
        elif match := re.search(rf"\b{re.escape(file)}:(\d+)", line):
            found.setdefault(current, int(match[1]))
    return found
