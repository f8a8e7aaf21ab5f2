"""The memory that emulated kernels see: each tensor with a gap around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator.compiler import EmulationError
from tcl.codegen.loopir import ir

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

GAP = 64 << 10
"""Bytes between tensors, in which no access may fall."""
POISON = 0xFF
"""Of memory nobody has written: NaN in every float type."""
ERRORS = "the error record"
SCRATCH_ALIGNMENT = 256

_READABLE, _WRITABLE = 1, 2


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor lies, in bytes from the arena's start."""

    name: str
    start: int
    """Of the lowest byte."""
    end: int
    first: int
    """Of the first element, whose address kernels take."""
    layout: ir.Layout | None
    """None for the error record."""


@dataclass(slots=True)
class Arena:
    """Copies of arguments, and room for scratch."""

    memory: Bytes
    inside: Bytes
    """Per byte: whether it may be read and written."""
    places: dict[str, TensorPlace] = field(default_factory=dict)

    def address(self, name: str) -> int:
        """What a kernel takes."""
        return int(self.memory.ctypes.data) + self.places[name].first

    def elements(self, place: TensorPlace, dtype: np.dtype[Any]) -> Array:
        assert place.layout is not None
        first = self.memory[place.first : place.first + dtype.itemsize].view(dtype)
        return as_strided(first, place.layout.extents, place.layout.strides)

    def permit(self, place: TensorPlace, rights: int) -> None:
        """Lets the bytes of the tensor's elements be accessed like this."""
        assert place.layout is not None
        size, layout = place.layout.itemsize, place.layout
        shape, strides = (*layout.extents, size), (*layout.strides, 1)
        as_strided(self.inside[place.first :], shape, strides)[...] = rights

    def record_access(self) -> tuple[int, int]:
        """The error record: 0 or 1 + the site, and the value."""
        place = self.places[ERRORS]
        site, value = self.memory[place.start : place.end].view(np.int64)
        return int(site), int(value)

    def left_over(self, module: CudaModule) -> str | None:
        """A tensor of the module that should hold zeros after each launch, and does not."""
        places = (self.places[t.name] for t in module.tensors if t.zeroed)
        return next((p.name for p in places if self.memory[p.start : p.end].any()), None)

    def at(self, offset: int) -> TensorPlace | None:
        """The tensor nearest to this byte."""
        if not 0 <= offset < len(self.memory) or not self.places:
            return None
        return min(self.places.values(), key=lambda p: max(p.start - offset, offset - p.end + 1, 0))

    def overwritten(self) -> TensorPlace | None:
        """A tensor next to which something was written."""
        changed = np.flatnonzero((self.inside == 0) & (self.memory != POISON))
        return self.at(int(changed[0])) if changed.size else None


def arena_of(module: CudaModule, arrays: Mapping[str, Array]) -> Arena:
    """An arena that holds copies of these arrays; scratch and gaps are poisoned.

    The first elements of arguments lie at odd multiples of what their layouts promise, so that
    nothing can rely on more.
    """
    places, end = {}, GAP
    for tensor in module.tensors:
        low, high = reach(tensor.layout)
        step = max(tensor.layout.base, tensor.layout.alignment, tensor.layout.itemsize)
        if tensor.role is ir.Role.SCRATCH:
            step = SCRATCH_ALIGNMENT
        else:
            _check_array(tensor, arrays)
        first = -(-(end - low) // (2 * step)) * 2 * step + step
        places[tensor.name] = TensorPlace(
            tensor.name, first + low, first + high, first, tensor.layout
        )
        end = first + high + GAP
    if module.sites:
        first = -(-end // 16) * 16
        places[ERRORS] = TensorPlace(ERRORS, first, first + 16, first, None)
        end = first + 16 + GAP
    size = end + GAP
    memory = np.full(size + 512, POISON, np.uint8)
    skipped = -int(memory.ctypes.data) % 512
    arena = Arena(memory[skipped : skipped + size], np.zeros(size, np.uint8), places)
    _fill(arena, module, arrays)
    return arena


def reach(layout: ir.Layout) -> tuple[int, int]:
    """The bytes that a tensor takes, from its first element's."""
    if 0 in layout.extents:
        return 0, 0
    ends = [(e - 1) * s for e, s in zip(layout.extents, layout.strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + layout.itemsize


def _check_array(tensor: ir.Tensor, arrays: Mapping[str, Array]) -> None:
    layout, array = tensor.layout, arrays.get(tensor.name)
    if array is None:
        raise EmulationError(f"no array for tensor {tensor.name}")
    if array.shape != layout.extents or array.dtype.itemsize != layout.itemsize:
        raise EmulationError(
            f"the array for tensor {tensor.name} is {array.dtype} of shape {array.shape}, "
            f"but the kernel is for {layout.type} of shape {layout.extents}"
        )
    steps = zip(layout.extents, layout.strides, array.strides, strict=True)
    if 0 not in layout.extents and any(n > 1 and a != b for n, a, b in steps):
        raise EmulationError(
            f"the array for tensor {tensor.name} has strides {array.strides}, "
            f"but the kernel is for {layout.strides}"
        )


def _fill(arena: Arena, module: CudaModule, arrays: Mapping[str, Array]) -> None:
    for tensor in module.tensors:
        place = arena.places[tensor.name]
        rights = _READABLE if tensor.role is ir.Role.INPUT else _READABLE | _WRITABLE
        if place.end == place.start:
            continue
        arena.permit(place, rights)
        if tensor.role is not ir.Role.SCRATCH:
            array = arrays[tensor.name]
            arena.elements(place, array.dtype)[...] = array
        elif tensor.zeroed:
            arena.memory[place.start : place.end] = 0
    if module.sites:
        place = arena.places[ERRORS]
        arena.inside[place.start : place.end] = _READABLE | _WRITABLE
        arena.memory[place.start : place.end] = 0
