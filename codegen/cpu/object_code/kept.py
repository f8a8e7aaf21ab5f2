"""Code that is the same for all kernels: compiled once on a machine, and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tcl.codegen.common.store import FolderStore
from tcl.codegen.cpu.object_code.ingredients import versions
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.object_code.load import LoadedCode
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import CompileError


def load_kept(text: str, symbols: Sequence[str]) -> LoadedCode:
    """A module of LLVM IR in this process, with variables of its own; compiled if that was not
    kept. Raises ``CompileError`` if that, or loading it, fails."""
    device = host_cpu()
    made_of = repr((text, device.name, device.features, versions()))
    digest = hashlib.sha256(made_of.encode()).hexdigest()
    store = FolderStore()
    kept = store.get(digest, KernelCode)
    if kept is not None:
        try:
            return LoadedCode(kept.object_code, symbols)
        except CompileError:
            pass
    from tcl.codegen.cpu.object_code.compile import compile_object

    code = compile_object(text, device)
    loaded = LoadedCode(code, symbols)
    store.put(digest, KernelCode(code))
    return loaded
