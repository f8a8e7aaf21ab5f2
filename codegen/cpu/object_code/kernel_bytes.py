"""What is kept of a kernel, in memory and as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tcl.codegen.common.store import seal, unseal
from tcl.codegen.cpu.thread_count import MOST

MAGIC = b"tcl object 2 "

Scratch: TypeAlias = tuple[tuple[int, ...], str, bool]
"""Shape and dtype's name of memory that a kernel needs, and whether each thread has its own."""


@dataclass(frozen=True, slots=True)
class KeptSite:
    """A checked subscript, as ``memory.Site``; the tensor is counted, as names are not part of
    what makes object code."""

    tensor: int
    """Position among inputs, then outputs."""
    axis: int
    first: int
    extent: int
    unsigned: bool


@dataclass(frozen=True, slots=True)
class KeptCode:
    """What a kernel needs to run."""

    object_code: bytes
    sites: tuple[KeptSite, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    """The arrays that follow the arguments."""
    regions: int = 0
    """Loops whose iterations threads share."""
    threads: int = 1
    """That the kernel is to run on."""


def encode(code: KeptCode, digest: str = "") -> bytes:
    """The object code, with the rest as its header."""
    header = {
        "name": digest,
        "sites": [[s.tensor, s.axis, s.first, s.extent, s.unsigned] for s in code.sites],
        "scratch": [[list(shape), dtype, private] for shape, dtype, private in code.scratch],
        "regions": code.regions,
        "threads": code.threads,
    }
    return seal(MAGIC, header, code.object_code)


def decode(content: bytes, digest: str = "") -> KeptCode | None:
    """The inverse of ``encode``; None for anything else."""
    found = unseal(MAGIC, content, digest)
    if found is None:
        return None
    header, object_code = found
    try:
        sites = tuple(_site(entry) for entry in header["sites"])
        scratch = tuple(_scratch(entry) for entry in header["scratch"])
        regions, threads = header["regions"], header["threads"]
        if type(regions) is not int or type(threads) is not int:
            return None
        if regions < 0 or not 1 <= threads <= MOST:
            return None
    except (ValueError, TypeError, KeyError):
        return None
    return KeptCode(object_code, sites, scratch, regions, threads)


def _site(entry: Any) -> KeptSite:
    tensor, axis, first, extent, unsigned = entry
    if not all(type(n) is int for n in (tensor, axis, first, extent)) or tensor < 0:
        raise ValueError
    if type(unsigned) is not bool:
        raise ValueError
    return KeptSite(tensor, axis, first, extent, unsigned)


def _scratch(entry: Any) -> Scratch:
    shape, dtype, private = entry
    if not all(type(n) is int and n >= 0 for n in shape) or type(dtype) is not str:
        raise ValueError
    if type(private) is not bool:
        raise ValueError
    return tuple(shape), dtype, private
