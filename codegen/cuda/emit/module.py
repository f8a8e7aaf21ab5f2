"""A def as CUDA C++: what is compiled, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.common.sites import Site
from tcl.codegen.loopir import ir

SHARED = "shared"
"""The name of a block's shared memory in the source: ``extern __shared__`` bytes, all of it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One ``extern "C" __global__`` function, and how it is run: blocks and threads lie along x.

    It takes the addresses of its tensors' first elements, then ``sizes``, and after them, if the
    module has ``sites``, the address of the error record: two ``unsigned long long``. The first is
    0 until a check fails, then 1 + the position of its site; the second is the value that was out
    of range.
    """

    name: str
    blocks: int
    threads: int
    """Per block."""
    shared: int
    """Bytes of shared memory per block."""
    tensors: tuple[str, ...]
    """Whose addresses it takes, in order."""
    sizes: tuple[int, ...] = ()
    """Numbers that it takes, of those that depend on sizes which vary."""


@dataclass(frozen=True, slots=True)
class CudaModule:
    """A translation unit for NVRTC, which needs no header."""

    source: str
    launches: tuple[Launch, ...]
    """In the order in which they run, each after the one before has ended."""
    tensors: tuple[ir.Tensor, ...]
    """Inputs, outputs, then scratch in global memory, whose contents are undefined before."""
    sites: tuple[Site, ...] = ()
    """Subscripts that are checked while the kernels run."""
