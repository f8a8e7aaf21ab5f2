"""How the tensors of a def lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.loopir import ir
from tcl.grammar.sized import SizedDef


def layouts(
    sized: SizedDef, strides: Mapping[str, tuple[int, ...]], aligned: bool = False
) -> dict[str, ir.Layout]:
    """The layouts of all tensors; those without ``strides`` are row-major."""
    found = {}
    for tensor in sized.checked.inputs + sized.checked.outputs:
        shape, origin = sized.shapes[tensor.name], sized.origins[tensor.name]
        layout = ir.contiguous(tensor.type, shape, origin)
        if tensor.name in strides:
            given = tuple(strides[tensor.name])
            if len(given) != len(shape):
                raise ArgumentError(f"{tensor.name} has {len(shape)} dimensions: {given}")
            layout = replace(layout, strides=given)
        found[tensor.name] = replace(layout, alignment=layout.itemsize if aligned else 1)
    return found
