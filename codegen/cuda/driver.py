"""CuPy, which is imported when CUDA is first asked for."""

from __future__ import annotations

from typing import Any

from tcl.codegen.errors import ArgumentError


def cupy(what: str = "CUDA") -> Any:
    """The package ``cupy``. Raises ``ArgumentError`` for ``what`` if it is not there."""
    try:
        import cupy as package
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "cupy"
        why = "which is not installed" if missing else f"which cannot be imported: {error}"
        raise ArgumentError(
            f"{what} needs the package CuPy, {why}; install it with pip install 'tcl[cuda]'"
        ) from None
    return package


def nvrtc() -> Any:
    """CuPy's binding of NVRTC. Needs no driver. Raises ``ArgumentError`` if either is missing."""
    cupy("compiling for CUDA")
    from cupy.cuda import nvrtc as binding

    try:
        binding.getVersion()
    except (RuntimeError, ImportError, OSError):  # of cuda-pathfinder: it looked everywhere
        raise ArgumentError(
            "compiling for CUDA needs the library NVRTC, which was not found; "
            "install it with pip install 'tcl[cuda]'"
        ) from None
    return binding
