"""A module and what it was compiled to, as bytes that travel between processes."""

from __future__ import annotations

from dataclasses import asdict, astuple
from typing import Any

from tcl.codegen.common.store import seal, unseal
from tcl.codegen.cuda.emit.module import Launch, Module
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.sites import Site
from tcl.grammar.types import SCALAR_TYPES

MAGIC = b"tcl cuda 1 "


def encode(module: Module, code: bytes) -> bytes:
    """The code, with what a launch needs as its header: all of the module but its source."""
    header = {
        "name": "",
        "launches": [asdict(launch) for launch in module.launches],
        "tensors": [_tensor(t) for t in module.tensors],
        "sites": [astuple(site) for site in module.sites],
    }
    return seal(MAGIC, header, code)


def decode(content: bytes, source: str = "") -> tuple[Module, bytes] | None:
    """The inverse of ``encode``, for a module of that source; None for anything else."""
    found = unseal(MAGIC, content, "")
    if found is None:
        return None
    header, code = found
    try:
        launches = tuple(
            Launch(**{**entry, "tensors": tuple(entry["tensors"])}) for entry in header["launches"]
        )
        tensors = tuple(_tensor_of(entry) for entry in header["tensors"])
        sites = tuple(Site(*entry) for entry in header["sites"])
    except (ValueError, TypeError, KeyError):
        return None
    return Module(source, launches, tensors, sites), code


def _tensor(tensor: ir.Tensor) -> dict[str, Any]:
    layout = tensor.layout
    return {
        "name": tensor.name,
        "role": tensor.role.name,
        "type": layout.type.name,
        "layout": [layout.extents, layout.strides, layout.origin],
        "alignment": [layout.alignment, layout.base],
    }


def _tensor_of(entry: dict[str, Any]) -> ir.Tensor:
    extents, strides, origin = map(tuple, entry["layout"])
    layout = ir.Layout(SCALAR_TYPES[entry["type"]], extents, strides, origin, *entry["alignment"])
    return ir.Tensor(entry["name"], ir.Role[entry["role"]], layout)
