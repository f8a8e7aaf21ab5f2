"""CUBINs kept between processes, in the folder of kept object code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

from tcl.codegen.common.store import Store, seal, unseal
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.cuda.emit.module import Module
from tcl.codegen.cuda.run.compile import OPTIONS, Cubin, compile_cubin, version
from tcl.codegen.cuda.run.occupancy import Resources
from tcl.codegen.devices.gpu import GpuProfile

MAGIC = b"tcl cubin 1 "


def cubin(module: Module, profile: GpuProfile) -> Cubin:
    """Machine code for a module: what was kept, else compiled and kept.

    Raises what ``compile_cubin`` raises.
    """
    name = digest(module, profile)
    store = Store()
    content = store.read(name)
    found = None if content is None else decode(content, name)
    if found is None:
        found = compile_cubin(module, profile)
        store.write(name, encode(found, name))
    return found


def digest(module: Module, profile: GpuProfile) -> str:
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


def encode(found: Cubin, name: str) -> bytes:
    """The code, with what its kernels take as the header."""
    header = {"name": name, "resources": [asdict(r) for r in found.resources]}
    return seal(MAGIC, header, found.code)


def decode(content: bytes, name: str) -> Cubin | None:
    """The inverse of ``encode``; None for anything else."""
    found = unseal(MAGIC, content, name)
    if found is None:
        return None
    header, code = found
    try:
        return Cubin(code, tuple(_resources(entry) for entry in header["resources"]))
    except (ValueError, TypeError, KeyError):
        return None


def _resources(entry: dict[str, Any]) -> Resources:
    numbers = [entry[field.name] for field in fields(Resources) if field.name != "kernel"]
    if type(entry["kernel"]) is not str or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError
    return Resources(**entry)
