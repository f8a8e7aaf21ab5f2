"""The C++ compiler, and what it makes of modules: one shared library for many."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, fields
from pathlib import Path

from tcl.codegen.common.store import FolderStore
from tcl.common.errors import TclError
from tcl.common.scratch_folder import workspace

HERE = Path(__file__).parent

_LANGUAGE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w")
_RUNTIME = ("-O2", "-fno-strict-aliasing")
_KERNELS = (
    "-g1",  # lines
    "-gdwarf-4",  # the assembler mixes up names of files that `#line` gives in version 5
    "-march=native",  # for fma
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",  # panels of all types lie in one array of bytes
)
_CHECKED = (
    "-O0",  # more costs compile time and gains nothing, as every access is a call
    # Accesses, and vectors that the compiler takes apart.
    "-fsanitize=thread,alignment,bounds",
    # Arithmetic that C++ does not define, and so neither does NVRTC.
    "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift-exponent,float-cast-overflow",
)


_lock = threading.Lock()


class EmulationError(TclError):
    """A kernel did what no kernel may do, or kernels cannot be emulated here."""


@functools.cache
def host_compiler() -> tuple[str, ...]:
    """The command that compiles C++; empty if there is none."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        words = tuple(name.split())
        if words and shutil.which(words[0]):
            return words
    return ()


@functools.cache
def _linker() -> tuple[str, ...]:
    """The option that chooses gold, if it is here: the usual linker reads all names of the C++
    library, and takes three times as long."""
    known = Path(host_compiler()[0]).name.startswith(("c++", "g++", "clang++"))
    return ("-fuse-ld=gold",) if known and shutil.which("ld.gold") else ()


def why_not() -> str | None:
    """Why kernels cannot be emulated on this machine, in one sentence; None if they can."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"):
        return "CUDA kernels are emulated on Linux for x86-64 and aarch64 only"
    if not host_compiler():
        return "emulating CUDA kernels needs a C++ compiler: $CXX, c++, g++ or clang++"
    return None


class CompilerError(Exception):
    """What the compiler said."""


def run_compiler(*arguments: str | Path) -> None:
    """Raises ``CompilerError`` if it fails."""
    command = [*host_compiler(), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise CompilerError(done.stderr or f"{command[0]} failed with {done.returncode}")


@functools.cache
def _folder() -> Path:
    """Holds what was compiled, as long as this process lives."""
    held = contextlib.ExitStack()
    atexit.register(held.close)
    return Path(held.enter_context(workspace()))


@dataclass(frozen=True, slots=True)
class Runtime:
    """The emulator's own object files, as they are kept between processes."""

    scheduler: bytes
    memory: bytes
    callbacks: bytes
    trace: bytes


@functools.cache
def _runtime() -> tuple[Path, ...]:
    """The emulator's own object files, compiled once: to be called under the lock."""
    if reason := why_not():
        raise EmulationError(reason)
    folder, name, store = _folder(), _made_of(), FolderStore()
    names = [f.name for f in fields(Runtime)]
    objects = tuple(folder / f"{each}.o" for each in names)
    kept = store.get(name, Runtime)
    if kept is None:
        for each, target in zip(names, objects, strict=True):
            try:
                run_compiler(*_LANGUAGE, *_RUNTIME, "-c", HERE / f"{each}.cpp", "-o", target)
            except CompilerError as error:
                raise EmulationError(f"the emulator itself does not compile: {error}") from None
        store.put(name, Runtime(*(target.read_bytes() for target in objects)))
    else:
        for each, target in zip(names, objects, strict=True):
            target.write_bytes(getattr(kept, each))
    return objects


def _made_of() -> str:
    """SHA-256 of everything that the emulator's object files depend on, in hex."""
    said = subprocess.run([*host_compiler(), "--version"], capture_output=True, check=False)
    digest = hashlib.sha256(said.stdout)
    digest.update(" ".join((*host_compiler(), *_LANGUAGE, *_RUNTIME, platform.machine())).encode())
    for file in sorted(HERE.glob("*.[hc]*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def build_library(source: str, *, checked: bool) -> Path:
    """A shared library of this translation unit and the runtime."""
    with _lock:
        runtime = _runtime()
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    (folder / "kernels.cpp").write_text(source)
    checks = _CHECKED if checked else ("-Og",)
    unit = (folder / "kernels.cpp", "-o", folder / "kernels.o")
    run_compiler(*_LANGUAGE, *_KERNELS, *checks, "-I", HERE, "-c", *unit)
    library = folder / "kernels.so"
    # Linked without the sanitisers' own run time: what they call is part of the emulator. All
    # names are found now, as finding them later would take more stack than threads have.
    links = (*_linker(), "-shared", "-Wl,-z,now", "-lm")
    try:
        run_compiler(folder / "kernels.o", *runtime, *links, "-o", library)
    except CompilerError as error:
        raise EmulationError(f"emulated kernels do not link: {error}") from None
    return library
