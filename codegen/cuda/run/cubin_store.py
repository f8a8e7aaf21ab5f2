"""CUBINs kept between processes, in the folder of kept object code."""

from __future__ import annotations

import hashlib
import json

from tcl.codegen.common.store import FolderStore
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run.compile import OPTIONS, Cubin, compile_cubin, version
from tcl.codegen.devices.gpu import GpuProfile


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
