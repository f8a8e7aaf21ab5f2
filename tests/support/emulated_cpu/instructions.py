"""How a kernel's text comes to call functions instead of instructions."""

from __future__ import annotations

import re

from emulated_cpu import dots, tiles
from emulated_cpu.flushed import flushed
from tcl.common.errors import CompileError

FEATURES = ("amx-tile", *tiles.PRODUCTS, *dots.FEATURES)
"""LLVM's names of what can be emulated."""

_DECLARED = re.compile(r"^declare [^@]+@(llvm\.x86\.[\w.]+)\(.*\n", re.MULTILINE)


def emulating(text: str, features: str) -> str:
    """A module of LLVM IR with functions in the place of the intrinsics of these features (as of
    ``CpuProfile.emulated``). Raises ``CompileError`` for a feature that cannot be emulated."""
    for name in filter(None, (part.strip().lstrip("+") for part in features.split(","))):
        if name not in FEATURES:
            raise CompileError(f"{name} cannot be emulated: {', '.join(FEATURES)} can be")
    made = {
        name: definition for name in _DECLARED.findall(text) if (definition := _definition_of(name))
    }
    if not made:
        return text
    text = _DECLARED.sub(lambda found: "" if found[1] in made else found[0], text)
    for name in made:
        text = text.replace(f"@{name}(", f"@{_function_name(name)}(")
    if any(name in tiles.NAMES for name in made):
        text = tiles.with_state(text, _PREFIX)
        made[""] = tiles.STATE
    return flushed("\n".join((text, *made.values())))


_PREFIX = "tcl_emulated."


def _function_name(name: str) -> str:
    """What the function is called that stands for an intrinsic."""
    return name.replace("llvm.x86.", _PREFIX)


def _definition_of(name: str) -> str | None:
    """The function that stands for an intrinsic; None for one that is no instruction of ours."""
    if name in tiles.NAMES:
        return tiles.tile_definition(name, _function_name(name))
    return dots.dot_definition(name, _function_name(name))
