"""Lanes that take neighbours in memory, each any of them, as of ``X(i / 2)`` and ``X(i % 8)``:
these are loaded at once, and moved to their lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcl.codegen.cpu.emit.lane_parts import LaneParts
from tcl.codegen.cpu.emit.scope import At, Scope, add, i64, lane_values, leading, number, scale
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type
from tcl.codegen.cpu.llvm.permute import taken
from tcl.codegen.cpu.llvm.transpose import mixed
from tcl.codegen.devices.features import permuted
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.quotients import short_rows
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size


@dataclass(frozen=True, slots=True)
class ShortRow:
    """The neighbours in memory from the first of which on lanes take theirs."""

    offset: At
    """Where the first one lies: bytes from the tensor's first element."""
    places: tuple[int, ...] | Val
    """Which one each lane takes, as of ``LaneParts``; below 0 if it takes one of another row."""
    count: int
    """How many there are, at most."""
    begun: At | None
    """How many lie before them along their axis, if they lie along one."""
    extent: int
    """The elements of that."""


Near = tuple[At, int] | list[ShortRow] | None
"""What is known of where lanes lie, as of ``near``."""


def near(
    b: Builder,
    layout: ir.Layout,
    place: tuple[At, int],
    parts: Mapping[int, LaneParts],
    scope: Scope,
) -> Near:
    """Where lanes lie, as bytes of the first one and those that each further one adds, or in short
    rows; None if they are not known to. ``place``: the former without the axes that have
    ``parts``."""
    (first, step), size = place, layout.itemsize
    if any(isinstance(x, Size) for x in (step, *layout.strides, *layout.origin)):
        return None
    for axis, part in parts.items():
        shared, stride = part.shared + -layout.origin[axis], layout.strides[axis]
        base = add(b, first.base, scale(b, shared.base, stride))
        first = At(base, first.constant + shared.constant * stride)
    moving = [axis for axis, part in parts.items() if part.most]
    along = moving[0] if len(moving) == 1 and not step else -1
    begun, extent = None, 0
    if along >= 0 and layout.strides[along] == size:
        begun, extent = parts[along].shared + -layout.origin[along], layout.extents[along]
    known = [
        [k * layout.strides[axis] for k in part.known]
        for axis, part in parts.items()
        if part.known is not None
    ]
    if len(known) < len(parts):
        if begun is None or not permuted(b.features, size, parts[along].most + 1):
            return None
        return [ShortRow(first, parts[along].own, parts[along].most + 1, begun, extent)]
    apart = [step * k + sum(each) for k, each in enumerate(zip(*known, strict=True))]
    there = apart[: scope.active]
    each = there[1] - there[0] if len(there) > 1 else 0
    if all(x == there[0] + k * each for k, x in enumerate(there)):
        return first + there[0], each
    groups = short_rows(there, size, scope.lanes)
    if groups is None:
        return None
    rows = []
    for least, count in groups:
        places = [(x - least) // size if 0 <= x - least < count * size else -1 for x in there]
        places += [0] * (scope.lanes - len(there))
        if len(groups) > 1:
            begun = None
        elif begun is not None:
            begun += least // size
        rows.append(ShortRow(first + least, tuple(places), count, begun, extent))
    return rows


def load_lanes(
    b: Builder,
    tensor: str,
    pointers: Sequence[Val],
    rows: Sequence[ShortRow],
    layout: ir.Layout,
    whole: bool,
) -> Val | None:
    """The lanes of rows that begin at some pointers. ``whole``: all that lanes take is there. None
    if the machine cannot leave alone what lies outside of the tensor."""
    found: Val | None = None
    for pointer, row in zip(pointers, rows, strict=True):
        part = _load_row(b, tensor, pointer, row, layout, whole)
        if part is None:
            return None
        if isinstance(row.places, Val):
            return taken(b, part, b.convert("zext", row.places, "i64"))
        if part.lanes > 1:
            part = mixed(b, part, part, [max(0, k) for k in row.places])
        part = b.spread(part, len(row.places))
        if found is not None:
            own = ", ".join(f"i1 {'true' if k >= 0 else 'false'}" for k in row.places)
            part = b.select(Val(f"<{own}>", "i1", part.lanes), part, found)
        found = part
    return found


def _load_row(
    b: Builder, tensor: str, pointer: Val, row: ShortRow, layout: ir.Layout, whole: bool
) -> Val | None:
    """A row that begins at a pointer, as of ``load_lanes``."""
    type_, count, places = memory_type(layout.type), row.count, row.places
    size, inside = 1 << (count - 1).bit_length(), None
    masks = {"avx512bw", "avx512vl"} <= b.features
    if whole and not isinstance(places, Val):
        if size > count and masks:
            inside = leading(size, count)
        else:
            size = count
    elif row.begun is None or not (masks or ("avx2" in b.features and layout.itemsize >= 4)):
        return None
    else:
        points = lane_values(b, b.spread(i64(b, row.begun), size), 1, size)
        inside = b.compare("icmp ult", points, b.spread(number(row.extent), size))
        if size > count:
            inside = b.binary("and", inside, leading(size, count))
    return b.read(tensor, pointer, layout.alignment, type_, size, inside)
