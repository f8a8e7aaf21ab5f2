"""Tensor cores: what a warp multiplies at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.common.warps import (
    MMA_COLUMNS,
    MMA_DEPTH,
    SLAB,
    SLAB_TURN,
    WARPGROUP,
    WARPGROUP_DEPTH,
)
from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.writer import Writer, iteration
from tcl.codegen.devices.banks import VECTOR
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.mma import Factor, Product
from tcl.codegen.loopir.terms import mma_type
from tcl.grammar.syntax.types import BFLOAT16, FLOAT32


@dataclass(frozen=True, slots=True)
class _Text:
    """An expression of C++, made from left to right."""

    text: str

    def __floordiv__(self, number: int) -> _Text:
        return _Text(f"{self.text} / {number}")

    def __mod__(self, number: int) -> _Text:
        return _Text(f"{self.text} % {number}")

    def __mul__(self, number: int) -> _Text:
        return _Text(f"{self.text} * {number}" if number else "0")

    def __add__(self, other: int | _Text) -> _Text:
        return _Text(f"{self.text} + {other.text if isinstance(other, _Text) else other}")


_LANE = _Text("threadIdx.x % 32")


@dataclass(frozen=True, slots=True)
class TensorCores:
    """Writes the innermost part of a product: fragments of both factors, then the instructions."""

    writer: Writer
    product: Product
    names: tuple[str, ...]
    """The variables of the fragments of each factor."""

    def write(self, scope: CudaScope) -> None:
        for number in range(2):
            self.declare(number)
            self.read(number, scope)
        self.multiply(scope)

    def declare(self, number: int, sets: int = 1) -> None:
        """The variable of a factor's fragments, or of several sets of them."""
        factor = self.product.factors[number]
        sizes = "".join(f"[{n}]" for n in (sets,) if n > 1)
        sizes += f"[{factor.kept.count}]" if factor.kept is not None else ""
        self.writer.lines.add(f"unsigned int {self.names[number]}{sizes}[{factor.words}];")

    def read(self, number: int, scope: CudaScope, at: str = "") -> None:
        """Reads a factor's fragments. ``at``: the subscript of the set, if there are several."""
        writer, factor = self.writer, self.product.factors[number]
        ref, to = factor.load.ref, self.names[number] + at
        with writer.unrolled([factor.read] if factor.read is not None else [], scope) as inner:
            position = iteration(factor.read, inner) if factor.read is not None else ""
            if factor.pairs:
                to = f"(unsigned int (&)[4]){to}[{position} * 2]"
            elif position:
                to += f"[{position}]"
            if factor.load.type == FLOAT32:  # one number after the other, rounded
                writer.used.add("to_tf32")
                for k, (row, point) in enumerate(factor.singles(_LANE)):
                    element = writer.memory.element(
                        ref, self._place(inner, factor, row.text, point.text)
                    )
                    writer.lines.add(f"{to}[{k}] = to_tf32({element});")
                return
            row, point = factor.matrices(_LANE)
            at_row = self._place(inner, factor, row.text, point.text)
            words = 4 if factor.pairs else factor.words
            name = f"load_matrix_x{words}{'' if factor.along_depth else '_trans'}"
            writer.used.add(name)
            writer.lines.add(f"{name}({to}, {writer.memory.pointer(ref, at_row)});")

    def multiply(self, scope: CudaScope, at: str = "") -> None:
        """Adds up the products of fragments that were read."""
        writer, accumulate = self.writer, self.product.accumulate
        own, type_ = writer.accumulators[accumulate.name], mma_type(accumulate.value)
        kept = [f.kept for f in self.product.factors]
        with writer.unrolled([f for f in kept if f is not None], scope) as inner:
            sums = own.name + "".join(f"[{iteration(f, inner)}]" for f in own.over[:-2])
            a, b = (
                name + at + (f"[{iteration(f, inner)}]" if f is not None else "")
                for name, f in zip(self.names, kept, strict=True)
            )
            name = _INSTRUCTIONS.get(type_.name if type_ else "", "mma_m16n8k8_tf32")
            writer.used.add(name)
            writer.lines.add(f"{name}((float (&)[4]){sums}, {a}, {b});")

    def _place(self, scope: CudaScope, factor: Factor, row: str, point: str) -> CudaScope:
        """The place with these texts for what a thread has of a dimension and of the reduction."""
        for fold in self.writer.geometry.folds[factor.dim]:
            if fold.level in ("thread", "half", "lane"):
                scope = scope.with_fold(fold, row if fold.level == "thread" else "0")
        return scope.with_fold(self.product.depth, point)


_INSTRUCTIONS = {"float16": "mma_m16n8k16_f16", BFLOAT16.name: "mma_m16n8k16_bf16"}


def tensor_cores(
    writer: Writer, loops: Sequence[ir.Loop], parts: Sequence[ir.Statement]
) -> TensorCores | Warpgroups | None:
    """What writes the innermost part of a nest as a product on tensor cores; None if it is none."""
    if not any(x.fold.level == "mma" for x in loops):
        return None
    product = Product.of(writer.geometry, loops, parts)
    if product.depth.by_warpgroup:
        return Warpgroups(writer, product)
    panels = (writer.memory.name(f.load.ref.tensor) for f in product.factors)
    names = tuple(writer.names.new(f"{panel.removesuffix('_tile')}_part") for panel in panels)
    return TensorCores(writer, product, names)


_SLAB_BYTES = WARPGROUP_DEPTH * SLAB
"""Of 64 rows: what a warpgroup reads of a factor with 64 rows or columns."""


@dataclass(frozen=True, slots=True)
class Warpgroups:
    """Writes the innermost part of a product: where both factors are, then the instructions."""

    writer: Writer
    product: Product

    def write(self, _: CudaScope) -> None:
        """Begins the products, and waits until they are done, or only the earlier ones are."""
        writer, lines = self.writer, self.writer.lines
        accumulate = self.product.accumulate
        own, type_ = writer.accumulators[accumulate.name], mma_type(accumulate.value)
        columns = MMA_COLUMNS * next(f.count for f in own.over if f.level == "register")
        kind = "bf16" if type_ == BFLOAT16 else "f16"
        name = f"wgmma_m64n{columns}k{MMA_DEPTH}_{kind}"
        writer.used |= {name, "begin_products", "commit_products", "panel_part"}
        parts = [self._part(factor) for factor in self.product.factors]
        lines.add("begin_products();")
        lines.add("#pragma unroll", margin=True)
        with lines.block(f"for (int k = 0; k < {WARPGROUP_DEPTH // MMA_DEPTH}; ++k) {{"):
            places = ", ".join(f"{part} + {step} * k" for part, step, _ in parts)
            turned = ", ".join(str(int(across)) for *_, across in parts)
            sums = f"(float (&)[{columns // 2}]){own.name}"
            lines.add(f"{name}<{turned}>({sums}, {places});")
        lines.add("commit_products();")
        wait = "end_products" if writer.unfinished is None else "wait_for_earlier_products"
        writer.used |= {wait, "end_products"}
        if writer.unfinished is None:
            lines.add(f"end_products({sums});")
        else:
            lines.add("wait_for_earlier_products();")
            writer.unfinished = sums

    def _part(self, factor: Factor) -> tuple[str, int, bool]:
        """The variable that says where a factor is, what leads to its next points, and whether its
        rows go across the reduction."""
        writer, memory, ref = self.writer, self.writer.memory, factor.load.ref
        layout, panel = memory.layout(ref), memory.name(ref.tensor)
        name = writer.names.new(f"{panel.removesuffix('_tile')}_part")
        at = [x for x in (memory.buffer.get(ref.tensor, "0"),) if x != "0"]
        if factor == self.product.factors[0] and layout.bytes > _SLAB_BYTES:
            at.append(f"threadIdx.x / {WARPGROUP} * {_SLAB_BYTES // layout.itemsize}")
        bytes_ = f"{_SLAB_BYTES}, {SLAB_TURN}"
        text = f"panel_part<{bytes_}>(&{panel}[{' + '.join(at) or '0'}])"
        writer.lines.add(f"const unsigned long long {name} = {text};")
        step = MMA_DEPTH * (layout.itemsize if factor.along_depth else SLAB) // VECTOR
        return name, step, not factor.along_depth
