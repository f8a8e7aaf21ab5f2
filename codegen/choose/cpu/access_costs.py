"""What a nest does at one point, for the model of a core: its accesses and its operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard, product, terms
from tcl.codegen.loopir.walk import children, indices, walk
from tcl.codegen.passes.cpu.stage import overlaps, why_not_copied
from tcl.codegen.passes.fusion.groups import SHORT
from tcl.common.dataclass import dataclass

SCALAR_LOAD = 0.5
_VECTOR_LOAD = 0.75
"""Cycles to load a vector: some of them cross cache lines."""
PAGE = 4096
_APART = 1.0
"""Cycles to copy an element whose neighbours in the panel are not its neighbours in memory."""
_TRANSPOSED = 0.5
"""Likewise, where it has neighbours in memory along another dimension."""
_IN_ORDER = 0.25
"""Likewise, where the neighbours are the same."""
_PUT_TOGETHER = 2.0
"""Cycles to make an element a part of a word."""
_FAR = 4.0
"""Times as long, where a few elements of each row at a time come from behind the second cache."""
_SHUFFLE = 1.0
"""Cycles to take the elements of one more vector that are a few apart into another."""
_DIVISION = 4.0
"""Cycles of a division of floats, of one or of a vector of them: the unit is not pipelined."""
_EXTREME = 1.5
"""Cycles of the smaller or larger of two floats: three instructions, as NaN has to stay NaN."""
_CALL = 16.0
"""Cycles of a built-in function."""


@dataclass(frozen=True, slots=True)
class Access:
    """An operand or the target, by what moving along each dimension does to its address."""

    tensor: str
    first: int
    """Bytes from the first element of the tensor to the one where all dimensions are 0."""
    strides: Mapping[str, int]
    """Bytes per point, of the dimensions that move it."""
    itemsize: int
    scattered: bool
    """Its place depends on data."""
    checked: frozenset[str] | None
    """The dimensions that decide which data that is, if the place has to be checked."""
    elements: int
    """Those that the nest touches."""
    span: int
    """Bytes from the first to the last one of them, where no data decides."""
    whole: int
    """Bytes of the tensor."""
    stageable: bool
    """It can be copied to a panel without becoming larger."""
    overlapping: bool = False
    """Neighbours are read through a window: a box of the tensor can be copied before all loops."""
    parts: int = 1
    """Elements that have to be put together to be read at once, as a word of a dot product is that
    does not lie so in memory."""

    def cycles(self, lane: str | None, lanes: int) -> float:
        """To read it once, in all lanes."""
        if self.parts > 1:
            element = replace(self, itemsize=self.itemsize // self.parts, parts=1)
            return self.parts * (element.cycles(lane, lanes) + _PUT_TOGETHER)
        stride = self.strides.get(lane or "", 0)
        if self.scattered and stride != self.itemsize:
            return float(lanes)
        if stride and stride != self.itemsize:
            # A few apart, they are taken out of the vectors that they lie in.
            apart = abs(stride) / self.itemsize
            return min(float(lanes), apart * (_VECTOR_LOAD + _SHUFFLE))
        return _VECTOR_LOAD if stride else SCALAR_LOAD

    def in_words(self, dim: str, depth: int, in_place: bool) -> Access:
        """The words of dot products along a dimension, each of so many elements. ``in_place``:
        they can be read as they lie in memory, where their elements are neighbours."""
        stride = self.strides.get(dim, 0)
        in_place = in_place and stride == self.itemsize
        return replace(
            self,
            strides={**self.strides, **({dim: stride * depth} if stride else {})},
            itemsize=self.itemsize * depth,
            elements=-(-self.elements // depth),
            parts=1 if in_place else depth,
        )

    def copying(self, lane: str | None, near: int) -> float:
        """Cycles to copy an element to a panel; ``near`` are the bytes of the second cache."""
        far = self.elements * self.itemsize > near
        if self.parts > 1 and lane not in self.strides:
            return _IN_ORDER
        if self.strides.get(lane or "") == self.itemsize:
            return _IN_ORDER * _FAR if far else _IN_ORDER
        neighbours = self.itemsize in self.strides.values()
        return _APART if far or not neighbours else _TRANSPOSED

    def in_tile(
        self, lane: str | None, lanes: int, sizes: Mapping[str, int], masked: bool = True
    ) -> float:
        """As ``cycles``, for each vector of a register tile: where lanes are apart and other points
        of the tile are neighbours in memory, these are transposed, and each lane's row of them is
        read or written, its rest in one piece if that can be ``masked``, else in powers of two."""
        cycles = self.cycles(lane, lanes)
        row = max((s for d, s in sizes.items() if self.transposed(d, lane, lanes)), default=1)
        if row == 1:
            return cycles
        size = min(lanes, 1 << (row - 1).bit_length())
        whole, rest = divmod(row, size)
        pieces = whole + (min(rest, 1) if masked else rest.bit_count())
        return min(cycles, math.log2(size) + lanes * pieces / row)

    def transposed(self, dim: str, lane: str | None, lanes: int) -> bool:
        """Whether lanes are far apart, and neighbours along ``dim`` lie side by side."""
        if lane is None or self.scattered or self.strides.get(dim) != self.itemsize:
            return False
        return self.cycles(lane, lanes) >= lanes

    @property
    def apart(self) -> bool:
        """Whether there is memory between what the nest touches that it does not."""
        return self.span > self.elements * self.itemsize

    def near(self, dim: str) -> bool:
        """Whether points next to each other lie in one page."""
        return abs(self.strides.get(dim, 0)) < PAGE

    def count(self, sizes: Mapping[str, int]) -> int:
        """Different elements, or vectors of them, in a register tile."""
        found = 1
        for dim, size in sizes.items():  # asked for so often that how it is written counts
            if self.scattered or dim in self.strides:
                found *= size
        return found


def access_of(program: ir.Program, nest: ir.Nest, load: ir.Load) -> Access:
    layout = program.tensor(load.ref.tensor).layout
    total = layout.place(load.ref)
    affine = [s for s in load.ref.subscripts if isinstance(s, ir.Affine)]
    scattered = len(affine) < len(load.ref.subscripts)
    # Where two dimensions move along one axis, a panel would hold elements more than once.
    copied, apart = why_not_copied(nest, load) is None, not overlaps(nest, load)
    elements = reach(layout, load.ref, {d.name: d.extent for d in nest.dims})
    whole = math.prod(layout.extents) * layout.itemsize
    span = layout.itemsize + sum(abs(c) * (nest.dim(d).extent - 1) for d, c in total.terms)
    strides = dict(total.terms)
    computed = [s.value for s in load.ref.subscripts if isinstance(s, ir.Computed) and s.check]
    checked = frozenset(name for v in computed for x in indices(v) for name, _ in x.terms)
    return Access(
        load.ref.tensor, total.constant, strides, layout.itemsize, scattered,
        checked if computed else None, elements, span, whole,
        stageable=copied and apart, overlapping=copied and not apart,
    )  # fmt: skip


def reach(layout: ir.Layout, ref: ir.TensorRef, points: Mapping[str, int]) -> int:
    """How many elements are touched by dimensions with so many points."""
    found = 1
    for subscript, extent in zip(ref.subscripts, layout.extents, strict=True):
        if isinstance(subscript, ir.Affine):
            span = 1 + sum(abs(c) * (points[name] - 1) for name, c in subscript.terms)
            extent = min(extent, span)
        found *= extent
    return found


def arithmetic(nest: ir.Nest) -> dict[frozenset[str], float]:
    """Cycles per point, by the dimensions that the operations depend on."""
    found: dict[frozenset[str], float] = {}
    variables: dict[str, frozenset[str]] = {}
    for let in nest.point.lets:
        variables[let.name] = _operations(let.value, variables, found)
    op, value = nest.point.op, nest.point.value
    if op == "=":
        _operations(value, variables, found)
        return found
    every = frozenset(d.name for d in nest.dims)
    for term in terms(op, value):
        # The accumulation is one instruction, with a product and a guard in it; a minimum or
        # maximum of floats is more.
        condition, added = guard(op, term)
        extreme = op in ("min", "max") and nest.point.type.is_float
        found[every] = found.get(every, 0.0) + (_EXTREME if extreme else 0.5)
        both = product(added) if op == "+" else None
        for part in (condition, *((added,) if both is None else (both.left, both.right))):
            if part is not None:
                _operations(part, variables, found)
    return found


def _operations(
    value: ir.Value, variables: Mapping[str, frozenset[str]], into: dict[frozenset[str], float]
) -> frozenset[str]:
    """Adds the cycles of a value; the dimensions that it depends on."""
    dims: dict[int, frozenset[str]] = {}
    for v in reversed(list(walk(value))):  # what is inside comes first
        own = frozenset[str]()
        match v:
            case ir.Variable(name=name):
                own = variables.get(name, own)
            case ir.Position(index=index):
                own = frozenset(name for name, _ in index.terms)
            case ir.Load(ref=ref):
                affine = (s for s in ref.subscripts if isinstance(s, ir.Affine))
                own = frozenset(name for s in affine for name, _ in s.terms)
        dims[id(v)] = own.union(*(dims[id(c)] for c in children(v)))
        cycles = _cycles(v)
        if cycles:
            into[dims[id(v)]] = into.get(dims[id(v)], 0.0) + cycles
    return dims[id(value)]


def _cycles(value: ir.Value) -> float:
    match value:
        case ir.Call(name=name):
            return 0.5 if name in SHORT else _CALL
        case ir.Binary(op="/", type=type_) if type_.is_float:
            return _DIVISION
        case ir.Binary(op="min" | "max", type=type_) if type_.is_float:
            return _EXTREME
        case ir.Unary() | ir.Binary() | ir.Select() | ir.Cast():
            return 0.5
    return 0.0


_WRITTEN = 0.5
"""Cycles more per element of a panel that does not stay in the second cache."""
_OWN = 0.1
"""Cycles per element to read a panel from a core's own second cache once more."""
_OTHER = 1.0
"""Likewise, from that of the core that has filled it."""
_BEHIND = 0.5
"""Likewise, from behind the second caches."""
_WAIT = 10_000.0
"""Cycles in which a thread waits for others before all of them read what they made together."""
LARGEST = 1 << 24
"""Elements of a panel that may be kept for the whole call."""


@dataclass(frozen=True, slots=True)
class PanelCost:
    """An operand of a nest with these lanes, in cycles of all threads together."""

    access: Access
    lane: str | None
    device: CpuProfile

    def inside(self, copies: int) -> float:
        """Every chunk copies its part; ``copies`` is how many chunks share an element."""
        each = self.access.copying(self.lane, self.device.l2_bytes)
        return copies * self.access.elements * each

    def before(self, copies: int) -> float:
        """All of it is copied before the chunks."""
        if self.access.elements > LARGEST:
            return math.inf
        near = self.access.elements * self.access.itemsize <= self.device.l2_bytes
        once = self.inside(1) + (0.0 if near else _WRITTEN) * self.access.elements
        threads = self.device.threads
        if near:
            again = _OWN if threads == 1 else min(copies, threads) * _OTHER
        else:
            again = copies * _BEHIND
        wait = _WAIT * threads if threads > 1 else 0.0
        return once + again * self.access.elements + wait

    def more(self, copies: int) -> float:
        """The cheaper of both, beyond a single copy."""
        return min(self.inside(copies), self.before(copies)) - self.inside(1)
