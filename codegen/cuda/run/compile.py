"""CUDA C++ to machine code by NVRTC, on any machine: neither a driver nor a toolkit is needed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tcl.codegen.common.store import FolderStore
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.devices.cupy_driver import nvrtc
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import Occupancy, fitting
from tcl.common.errors import ArgumentError, CompileError
from tcl.grammar.sizes.varying import Size
from tcl.workers.pool import WorkerCrashedError, WorkerDiedError, WorkerPool

OPTIONS = (
    "--fmad=false",  # sums ask for fused operations where they want them
    "--minimal",  # without what is not used here, such as launches from kernels: 4 ms less
    "--ptxas-options=-v",  # says what kernels take
)
"""How everything is compiled, besides the architecture."""

CACHES = (12, 9)
"""From this version on, NVRTC keeps what it compiled where there is a driver, and says nothing of
what kernels take when it finds it there. We keep it ourselves."""

CRASHES = (10, 0)
"""From this capability on, NVRTC 13.5 crashes on some kernels, and takes its process along: on one
in 1,900 with random options."""
SIMPLER = "--Ofast-compile=min"
"""Leaves out the optimisations in which it does."""

FILE = "kernel.cu"
"""What messages call the source."""


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of a module for one architecture."""

    code: bytes
    resources: tuple[Resources, ...]
    """In the order of the module's launches."""


def version() -> tuple[int, int]:
    """NVRTC's version. Raises ``ArgumentError`` if it is missing."""
    major, minor = nvrtc().getVersion()
    return int(major), int(minor)


def compile_cubin(module: CudaModule, profile: GpuProfile) -> Cubin:
    """Machine code for the architecture of ``profile``.

    Raises ``CompileError`` for a source that NVRTC refuses, ``ArgumentError`` if CuPy or NVRTC is
    missing, or does not know the architecture.
    """
    found = _assembled(module, module.source, profile)
    bare = re.sub(r"(__launch_bounds__\(\d+), [2-9]\)", r"\1)", module.source)
    if bare != module.source and spills(found.resources):  # fewer blocks have to do
        found = min(found, _assembled(module, bare, profile), key=lambda x: spills(x.resources))
    source = fuller(module, found.resources, profile)
    if source is not None:
        other = _assembled(module, source, profile)
        if spills(other.resources) <= spills(found.resources):
            return other
    return found


def _assembled(module: CudaModule, source: str, profile: GpuProfile) -> Cubin:
    """Machine code of a module by this source."""
    code, log = _survived(source, profile, _architecture(source, profile), OPTIONS)
    found = {entry.kernel: entry for entry in read_resources(log)}
    missing = [launch.name for launch in module.launches if launch.name not in found]
    if missing:
        raise CompileError(f"the source has no kernel {missing[0]}, only {', '.join(found)}")
    return Cubin(code, tuple(found[launch.name] for launch in module.launches))


def ptx(source: str, profile: GpuProfile) -> str:
    """A source as PTX, the assembly language that comes before machine code.

    Raises what ``compile_cubin`` raises.
    """
    code, _ = _survived(source, profile, *_ahead(_architecture(source, profile)))
    return code.rstrip(b"\0").decode()


def _architecture(source: str, profile: GpuProfile) -> str:
    """What a source is compiled for: this architecture alone, where warpgroups multiply."""
    return replace(profile, specific=profile.specific or "wgmma_m64" in source).architecture


def _ahead(architecture: str) -> tuple[str, tuple[str, ...]]:
    """The architecture and the options that give PTX."""
    options = tuple(o for o in OPTIONS if not o.startswith("--ptxas"))
    return architecture.replace("sm", "compute"), options


def _survived(
    source: str, profile: GpuProfile, architecture: str, options: tuple[str, ...]
) -> tuple[bytes, str]:
    """``_compile_source``, in another process where this one might not survive it."""
    if profile.capability < CRASHES:
        return _compile_source(source, architecture, options)
    elsewhere = _processes(os.getpid())
    try:
        try:
            return elsewhere.submit(_compile_source, source, architecture, options).result()
        except WorkerCrashedError:
            simpler = (*options, SIMPLER)
        try:
            return elsewhere.submit(_compile_source, source, architecture, simpler).result()
        except (WorkerCrashedError, CompileError):
            raise CompileError(
                f"NVRTC crashes on this kernel for {architecture}; use other options"
            ) from None
    except WorkerDiedError as error:  # not of itself: the simpler code would be kept for ever
        raise CompileError(
            f"NVRTC could not start to compile this kernel for {architecture}: {error}"
        ) from None


@cache
def _processes(parent: int) -> WorkerPool:
    """Where this process, ``parent``, compiles what it might not survive itself."""
    return WorkerPool(os.cpu_count() or 1)


def _compile_source(source: str, architecture: str, options: tuple[str, ...]) -> tuple[bytes, str]:
    """Code and log: machine code for ``sm_90``, PTX for ``compute_90``."""
    binding = nvrtc()
    program = binding.createProgram(source, FILE, (), ())
    try:
        try:
            uncached = ("--no-cache",) if version() >= CACHES else ()
            binding.compileProgram(program, (f"-arch={architecture}", *options, *uncached))
        except binding.NVRTCError as error:
            _check_architecture(binding, architecture)
            log = binding.getProgramLog(program).rstrip("\0\n ")
            why = _explained(log, source, architecture) or log or str(error)
            raise CompileError(
                f"NVRTC does not compile this kernel for {architecture}: {why}"
            ) from None
        ahead = architecture.startswith("compute")
        code = binding.getPTX(program) if ahead else binding.getCUBIN(program)
        return code, binding.getProgramLog(program)
    finally:
        binding.destroyProgram(program)


def _check_architecture(binding: Any, architecture: str) -> None:
    number = int(re.sub(r"\D", "", architecture))
    known = binding.getSupportedArchs()
    if number not in known:
        major, minor = binding.getVersion()
        raise ArgumentError(
            f"NVRTC {major}.{minor} does not compile for {architecture}, only for "
            f"sm_{min(known)} to sm_{max(known)}"
        )


_PLACE = re.compile(rf"{re.escape(FILE)}\((\d+)\): (?:error|catastrophic error)(?: #\S+)?: (.*)")
_ASSEMBLER = re.compile(r"ptxas .*\bline (\d+); error *: (.*)")
_WHOLE = re.compile(r"ptxas (?:error|fatal) *: (.*)")
_MOST = 5


def _explained(log: str, source: str, architecture: str) -> str:
    """The errors in a log, each with the line that it is about: of the source, or, where the
    assembler found it, of the PTX."""
    errors: list[str] = []
    lines: list[str] | None = None
    for line in log.splitlines():
        if found := _PLACE.match(line):
            errors.append(f"{found[2]}\n{_quoted('line', int(found[1]), source.splitlines())}")
        elif found := _ASSEMBLER.match(line):
            if lines is None:
                lines = _compile_source(source, *_ahead(architecture))[0].decode().splitlines()
            errors.append(f"{found[2]}\n{_quoted('line of PTX', int(found[1]), lines)}")
        elif (found := _WHOLE.match(line)) and not found[1].startswith("Ptx assembly aborted"):
            errors.append(found[1])
    more = [f"and {len(errors) - _MOST} more errors"] if len(errors) > _MOST else []
    return "\n".join((*errors[:_MOST], *more))


def _quoted(what: str, number: int, lines: list[str]) -> str:
    text = lines[number - 1].strip() if number <= len(lines) else ""
    return f"  {what} {number}: {text}"


_FEW = 16
"""A kernel can do without the 16th part of its registers, if so it has no spills."""
_MORE = 4
"""One whose sizes vary without the fourth: it takes so many more than one for known sizes."""
_ENOUGH = 512
"""Threads on a multiprocessor from which on it does with all that it takes: of the instructions of
a product's loop .80 multiply and add with 72 registers and 7 blocks of 128 threads, .84 with 96
and 5."""
_CROWDED = 2
"""Blocks on a multiprocessor from which on one more is no longer half as many again."""


def fuller(module: CudaModule, taken: Sequence[Resources], profile: GpuProfile) -> str | None:
    """The source, with bounds for the kernels that are short of a few registers; None if none
    is.

    How many registers a kernel takes changes by a few from one version of the compiler to the
    next, and with 129 instead of 128 half as many blocks of 256 threads fit. The compiler is told,
    then, how many have to.
    """
    source = module.source
    for launch, resources in zip(module.launches, taken, strict=True):
        blocks = _wanted(launch, resources, profile)
        if blocks:
            bounds = rf"(__launch_bounds__\({launch.threads})(?:, \d+)?(\)\s+{launch.name}\()"
            source = re.sub(bounds, rf"\g<1>, {blocks}\g<2>", source)
    return None if source == module.source else source


def _wanted(launch: Launch, taken: Resources, profile: GpuProfile) -> int:
    """The blocks that fit with a few registers less, if that is worth it; else 0."""
    now = occupancy(taken, launch, profile).blocks
    known = not isinstance(launch.blocks, Size)  # else some sizes have more than there is room for
    if not now > 0 or (known and launch.blocks <= now * profile.multiprocessors):
        return 0
    if launch.sizes:
        if now * launch.threads > _ENOUGH:
            return 0
        least = replace(taken, registers=taken.registers - taken.registers // _MORE)
        most = occupancy(least, launch, profile).blocks
        return most if most > now else 0
    if now > _CROWDED:
        return 0
    least = replace(taken, registers=taken.registers - taken.registers // _FEW)
    return now + 1 if occupancy(least, launch, profile).blocks > now else 0


def spills(taken: Sequence[Resources]) -> int:
    """Bytes that threads of all kernels move to and from memory for want of registers."""
    return sum(each.spill_loads + each.spill_stores for each in taken)


def cubin(module: CudaModule, profile: GpuProfile) -> Cubin:
    """Machine code for a module: what was kept, else compiled and kept.

    Raises what ``compile_cubin`` raises.
    """
    name = cubin_digest(module, profile)
    store = FolderStore()
    found = store.get(name, Cubin)
    if found is None:
        found = compile_cubin(module, profile)
        store.put(name, found)
    return found


def cubin_digest(module: CudaModule, profile: GpuProfile) -> str:
    """SHA-256 of everything that the code and its description depend on, in hex."""
    made_of = {
        "source": module.source,
        "kernels": [launch.name for launch in module.launches],
        "architecture": profile.architecture,
        "options": OPTIONS,
        "version": version(),
        "ours": CODEGEN_VERSION,  # of what is done with the source, besides
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as the assembler says."""

    kernel: str
    registers: int
    """Per thread."""
    shared: int
    """Bytes per block that the kernel has in itself; those of ``Launch.shared`` come on top."""
    spill_stores: int
    """Bytes per thread that are written to memory for want of registers."""
    spill_loads: int
    stack: int
    """Bytes per thread."""


def occupancy(resources: Resources, launch: Launch, profile: GpuProfile) -> Occupancy:
    """How full a multiprocessor is of a kernel that was compiled."""
    shared = resources.shared + launch.shared
    return fitting(launch.threads, resources.registers, shared, profile)


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")


def read_resources(log: str) -> Iterator[Resources]:
    """What the assembler says of each kernel in its log, with ``-v``."""
    kernel = function = ""
    frames: dict[str, tuple[int, int, int]] = {}
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            kernel = found[1]
        elif found := _PROPERTIES.search(line):
            function = found[1]
        elif found := _FRAME.search(line):
            frames[function] = int(found[1]), int(found[2]), int(found[3])
        elif kernel and (found := _USED.search(line)):
            stack, stores, loads = frames.get(kernel, (0, 0, 0))
            shared, whole = _SHARED.search(line), _STACK.search(line)
            yield Resources(
                kernel=kernel,
                registers=int(found[1]),
                shared=int(shared[1]) if shared else 0,
                spill_stores=stores,
                spill_loads=loads,
                stack=int(whole[1]) if whole else stack,
            )
            kernel = ""
