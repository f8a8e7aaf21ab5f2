"""Places in memory as C++, and the elements that lie there."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field

from tcl.codegen.common.sites import Site
from tcl.codegen.common.warps import SLAB, SLAB_TURN
from tcl.codegen.cuda.cpp.types import constant, memory_type
from tcl.codegen.cuda.emit.names import CudaScope, Names
from tcl.codegen.cuda.emit.sizes import SizeParameters
from tcl.codegen.devices.banks import VECTOR, swizzling
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.grammar.sizes.varying import Size, provably_divides, provably_equal
from tcl.grammar.syntax.types import INT64, UINT64, ScalarType


@dataclass(slots=True, eq=False)
class AccessWriter:
    """Writes index expressions and elements of tensors."""

    geometry: Geometry
    names: Names
    sites: list[Site]
    unchecked: bool
    sizes: SizeParameters
    value: Callable[[ir.Value, CudaScope], str]
    used: set[str] = field(default_factory=set)
    """Helper functions."""
    buffer: dict[str, str] = field(default_factory=dict)
    """Panel → the offset of the copy of it that is read here."""

    def layout(self, ref: ir.TensorRef) -> ir.Layout:
        return self.geometry.program.tensor(ref.tensor).layout

    def layout_of(self, tensor: str) -> ir.Layout:
        return self.geometry.program.tensor(tensor).layout

    def name(self, tensor: str) -> str:
        """The pointer to the first element."""
        return self.names.name_of(f"tensor {tensor}")

    def index(self, index: ir.Affine, scope: CudaScope) -> str:
        """An index expression; ``int``, or ``long long`` where offsets are."""
        number = index.constant + self._constant_part(index, scope)
        return self._sum(self._terms(index, scope), number)

    def _sum(self, terms: Iterable[tuple[str, int]], number: int) -> str:
        """These variables times their factors, and a number; "0" for none."""
        text = ""
        for name, c in terms:
            if not name:
                number += c
                continue
            factor = (
                name if provably_equal(abs(c), 1) else f"{name} * {self.sizes.index_number(abs(c))}"
            )
            if not text:
                text = f"-{factor}" if c < 0 else factor
            else:
                text += f" - {factor}" if c < 0 else f" + {factor}"
        if not text:
            return self.sizes.index_number(number)
        if isinstance(number, Size):
            return f"{text} + {self.sizes.index_number(number)}"
        return text + (f" + {number}" if number > 0 else f" - {-number}" if number else "")

    def _swizzled(self, index: ir.Affine, layout: ir.Layout, scope: CudaScope) -> str:
        """The index of an element of a panel in which vectors change places. What moves by whole
        turns of these changes does not need to go through them."""
        size = layout.itemsize
        line, ways = swizzling(layout.swizzle)
        number = index.constant + self._constant_part(index, scope)
        terms = [*self._terms(index, scope), ("", number)]
        turn = line * ways // size
        if layout.slabs:
            turn = SLAB_TURN // SLAB * layout.swizzle // size
        turns = [(x, c) for x, c in terms if c % turn == 0]
        inner = self._sum((x for x in terms if x[1] % turn), 0)
        if layout.slabs:
            row, of_slab = layout.swizzle // size, SLAB // size
            turns = [(x, c // row * of_slab) for x, c in turns]
            self.used.add("in_slabs")
            changed = f"in_slabs<{row}, {layout.elements // row}>({inner})"
        else:
            self.used.add("swizzled")
            changed = f"swizzled<{line // size}, {ways}, {VECTOR // size}>({inner})"
        whole = self._sum(turns, 0)
        return changed if whole == "0" else f"{whole} + {changed}"

    def _terms(self, index: ir.Affine, scope: CudaScope) -> list[tuple[str, int]]:
        """Variables and their factors."""
        found: dict[str, int] = {}
        for name, c in index.terms:
            for text, factor in self._summands(name, scope):
                found[text] = found.get(text, 0) + c * factor
        return [(text, c) for text, c in found.items() if c]

    def _summands(self, name: str, scope: CudaScope) -> list[tuple[str, int]]:
        """What a dimension or a fold is the sum of."""
        if name in scope.dims:
            return [(scope.dims[name], 1)]
        folds = [self.geometry.fold[name]] if name in self.geometry.fold else None
        if folds is None:
            folds = [f for f in self.geometry.folds[name] if f.name in scope.folds]
        texts = (scope.folds[f.name] for f in folds)
        return [part for text in texts for part in _parts_of(text)]

    def _constant_part(self, index: ir.Affine, scope: CudaScope) -> int:
        """The constant part of dimensions that have no variable yet."""
        dims = self.geometry.dims
        return sum(
            c * dims[name].first
            for name, c in index.terms
            if name in dims and name not in scope.dims
        )

    def element(self, ref: ir.TensorRef, scope: CudaScope, constant: Container[str] = ()) -> str:
        """An element, as a place in memory. ``constant``: variables that are numbers once loops are
        written out: these are added to an address, so that machine code has them in its reads."""
        layout, name = self.layout(ref), self.name(ref.tensor)
        place = layout.place(ref)
        size = layout.itemsize
        extra = [
            f"({self._checked(s, ref, axis, scope)}) * "
            f"{self.sizes.wide(layout.strides[axis] // size)}"
            for axis, s in enumerate(ref.subscripts)
            if isinstance(s, ir.Computed)
        ]
        lies = zip(ref.subscripts, layout.origin, layout.strides, strict=True)
        shift = sum(-o * stride for s, o, stride in lies if isinstance(s, ir.Computed))
        place = place + ir.Affine((), shift)
        whole = ir.Affine(tuple((n, c // size) for n, c in place.terms), place.constant // size)
        if not all(
            provably_divides(size, c) for c in (place.constant, *(c for _, c in place.terms))
        ):
            raise ir.IRError(f"elements of {ref.tensor} lie between others")
        texts = extra
        if layout.swizzle:
            texts.append(self._swizzled(whole, layout, scope))
        elif constant and not texts:
            number = whole.constant + self._constant_part(whole, scope)
            terms = [*self._terms(whole, scope), ("", number)]
            apart = self._sum((x for x in terms if not x[0] or x[0] in constant), 0)
            rest = self._sum((x for x in terms if x[0] and x[0] not in constant), 0)
            return f"(&{name}[{rest}])[{apart}]" if apart != "0" else f"{name}[{rest}]"
        elif not provably_equal(whole, ir.Affine()):
            texts.append(self.index(whole, scope))
        if self.buffer.get(ref.tensor, "0") != "0":
            texts.insert(0, self.buffer[ref.tensor])
        return f"{name}[{' + '.join(texts) or '0'}]".replace("+ -", "- ")

    def _checked(self, s: ir.Computed, ref: ir.TensorRef, axis: int, scope: CudaScope) -> str:
        """A subscript that depends on data."""
        text = self.value(s.value, scope)
        layout = self.layout(ref)
        if not s.check or self.unchecked:
            return text
        first, extent = layout.origin[axis], layout.extents[axis]
        site = Site(*(s.of or (ref.tensor, axis)), first, extent, s.value.type == UINT64)
        if site not in self.sites:
            self.sites.append(site)
        self.used.add("checked")
        ends = (
            self.sizes.wide(n) if isinstance(n, Size) else constant(n, INT64)
            for n in (first, extent)
        )
        bounds = ", ".join(ends)
        return f"checked({text}, {bounds}, {self.sites.index(site) + 1}ull, error)"

    def pointer(self, ref: ir.TensorRef, scope: CudaScope) -> str:
        """The address of an element."""
        return f"&{self.element(ref, scope)}"

    def element_type(self, tensor: str) -> str:
        """The C++ type of its elements."""
        return memory_type(self.type(tensor))

    def type(self, tensor: str) -> ScalarType:
        return self.geometry.program.tensor(tensor).layout.type

    def bounds_test(self, dims: Iterable[str], scope: CudaScope) -> str:
        """The condition that these dimensions are at points that they have."""
        tests = []
        for name in dims:
            dim = self.geometry.dims[name]
            text = self.index(ir.Affine.variable(name), scope)
            tests.append(f"{text} < {self.sizes.index_number(dim.first + dim.extent)}")
        return " && ".join(tests)


def _parts_of(text: str) -> list[tuple[str, int]]:
    """``x * 16 + 8`` as variables and their factors; constants are factors of nothing."""
    found = []
    for part in text.split(" + "):
        name, star, factor = part.rpartition(" * ")
        if part.isdigit():
            found.append(("", int(part)))
        elif star and factor.isdigit():
            found.append((name if name.isidentifier() else f"({name})", int(factor)))
        else:
            found.append((part if part.isidentifier() else f"({part})", 1))
    return found
