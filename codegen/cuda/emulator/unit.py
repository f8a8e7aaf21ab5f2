"""Many modules as one translation unit in plain C++."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcl.codegen.common.errors import CompileError
from tcl.codegen.cuda.emit.module import SHARED, Module

GUARD = 64 << 10
"""Bytes behind a block's shared memory in which an access is caught."""

_EXPORTED = 'extern "C" __attribute__((visibility("default")))'
_KERNEL = re.compile(r'\bextern\s+"C"\s+(?=__global__\b)')
_STATIC = re.compile(r"^(?!.*(?://|\bextern\b).*__shared__\b).*\b__shared__\b.*$", re.MULTILINE)
_ERROR = re.compile(r"^module(\d+)\.cu:(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_MENTION = re.compile(r"^module(\d+)\.cu:(\d+):()", re.MULTILINE)


def unit(modules: Sequence[Module]) -> str:
    """The text: each module's own source, in a namespace of its own."""
    parts = ['#include "intrinsics.h"\n#include "ptx.h"\n']
    parts += [_namespace(number, module) for number, module in enumerate(modules)]
    return "".join(parts)


def shared_room(module: Module) -> int:
    """Bytes of the array that stands for shared memory."""
    return max((launch.shared for launch in module.launches), default=0) + GUARD


def entry(number: int, position: int) -> str:
    """The symbol that runs a thread of a module's launch."""
    return f"emulated_{number}_{position}"


def shared_symbol(number: int) -> str:
    """The symbol of a module's shared memory's address."""
    return f"emulated_shared_{number}"


def _namespace(number: int, module: Module) -> str:
    if static := _STATIC.search(module.source):
        raise CompileError(f"only dynamic shared memory is emulated: {static[0].strip()}")
    entries = ""
    for position, launch in enumerate(module.launches):
        count = len(launch.tensors) + bool(module.sites)
        arguments = ", ".join(f"emulator::Argument{{arguments[{i}]}}" for i in range(count))
        head = f"void {entry(number, position)}(void* const* arguments)"
        entries += f"{_EXPORTED} EMULATOR {head} {{ {launch.name}({arguments}); }}\n"
    # With C linkage, kernels of one name would be one, whatever namespace they are in. A definition
    # of the shared memory in sight makes the kernel's own `extern` declaration mean this array.
    return (
        f"namespace device {{ namespace module_{number} {{ namespace {{\n"
        f"__align__(128) unsigned char {SHARED}[{shared_room(module)}];\n"
        f'#line 1 "module{number}.cu"\n{_KERNEL.sub("", module.source)}\n'
        f'}}\n#line 1 "entries.cu"\n{entries}'
        f"{_EXPORTED} unsigned char* const {shared_symbol(number)} = {SHARED};\n"
        f"}} }}\n"
    )


def refusal(said: str, modules: Sequence[Module]) -> CompileError:
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
