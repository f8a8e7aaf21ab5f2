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
from tcl.codegen.loopir.terms import factors, mma_type
from tcl.grammar.syntax.types import BFLOAT16, FLOAT32

_LANE = "threadIdx.x % 32"


@dataclass(frozen=True, slots=True)
class Factor:
    """The fragments of a factor that a thread has."""

    load: ir.Load
    dim: str
    """The rows' or the columns' dimension."""
    kept: ir.Fold | None
    """The registers along it."""
    count: int
    """Words of each fragment."""
    name: str
    """Their variable."""

    @property
    def pairs(self) -> bool:
        """Whether two of them are read at once."""
        even = self.kept is not None and self.kept.count % 2 == 0
        return self.count == 2 and even and self.load.type != FLOAT32


@dataclass(frozen=True, slots=True)
class TensorCores:
    """Writes the innermost part of a product: fragments of both factors, then the instructions."""

    writer: Writer
    loops: tuple[ir.Loop, ...]
    accumulate: ir.Accumulate

    def write(self, scope: CudaScope) -> None:
        if self._depth.by_warpgroup:
            both = self._factors(self._dims()[0])
            Warpgroups(self.writer, self.accumulate, self._depth, both).write()
            return
        factors = self.factors()
        for factor in factors:
            self.declare(factor)
            self.read(factor, scope)
        self.multiply(factors, scope)

    def factors(self) -> tuple[Factor, Factor]:
        """The one that has the rows, and the one that has the columns."""
        rows, columns = self._dims()
        by_row, by_column = self._factors(rows)
        return self._factor(by_row, rows, 4), self._factor(by_column, columns, 2)

    def _factor(self, load: ir.Load, dim: str, count: int) -> Factor:
        name = self.writer.memory.name(load.ref.tensor).removesuffix("_tile")
        kept = self._kept.get(dim)
        return Factor(load, dim, kept, count, self.writer.names.new(f"{name}_part"))

    @property
    def _kept(self) -> dict[str, ir.Fold]:
        """The registers along each dimension."""
        over = self.writer.accumulators[self.accumulate.name].over
        return {f.dim: f for f in over if f.level == "register"}

    @property
    def _depth(self) -> ir.Fold:
        return next(x.fold for x in self.loops if x.fold.level == "mma")

    def declare(self, factor: Factor, sets: int = 1) -> None:
        """The variable of its fragments, or of several sets of them."""
        sizes = "".join(f"[{n}]" for n in (sets,) if n > 1)
        sizes += f"[{factor.kept.count}]" if factor.kept is not None else ""
        self.writer.lines.add(f"unsigned int {factor.name}{sizes}[{factor.count}];")

    def read(self, factor: Factor, scope: CudaScope, at: str = "") -> None:
        """Reads its fragments. ``at``: the subscript of the set, if there are several."""
        kept, to = factor.kept, factor.name + at
        if factor.pairs:
            assert kept is not None
            self._pairs(factor.load, factor.dim, self._depth, kept, scope, to)
            return
        with self.writer.unrolled([kept] if kept is not None else [], scope) as inner:
            to += f"[{iteration(kept, inner)}]" if kept is not None else ""
            if factor.load.type == FLOAT32:
                self._singles(factor.load, factor.dim, self._depth, inner, to, factor.count)
            else:
                self._matrices(factor.load, factor.dim, self._depth, inner, to, factor.count)

    def multiply(self, factors: tuple[Factor, Factor], scope: CudaScope, at: str = "") -> None:
        """Adds up the products of fragments that were read."""
        writer, kept = self.writer, self._kept
        own = writer.accumulators[self.accumulate.name]
        type_ = mma_type(self.accumulate.value)
        with writer.unrolled([kept[f.dim] for f in factors if f.dim in kept], scope) as inner:
            sums = own.name + "".join(f"[{iteration(f, inner)}]" for f in own.over[:-2])
            a, b = (
                f.name + at + (f"[{iteration(f.kept, inner)}]" if f.kept is not None else "")
                for f in factors
            )
            name = _INSTRUCTIONS.get(type_.name if type_ else "", "mma_m16n8k8_tf32")
            writer.used.add(name)
            writer.lines.add(f"{name}((float (&)[4]){sums}, {a}, {b});")

    def _dims(self) -> tuple[str, str]:
        """The rows' and the columns' dimension."""
        rows = next(x.fold.dim for x in self.loops if x.fold.level == "half")
        columns = next(x.fold.dim for x in self.loops if x.kind is ir.Kind.VECTOR)
        return rows, columns

    def _factors(self, rows: str) -> tuple[ir.Load, ir.Load]:
        """The factor that has the rows, and the one that has the columns."""
        found = factors(self.accumulate.value)
        assert found is not None
        program = self.writer.geometry.program
        place = program.tensor(found[0].ref.tensor).layout.place(found[0].ref)
        first = any(self.writer.geometry.dim_of(n) == rows for n, _ in place.terms)
        return found if first else (found[1], found[0])

    def _pairs(
        self, load: ir.Load, dim: str, depth: ir.Fold, kept: ir.Fold, scope: CudaScope, name: str
    ) -> None:
        """Two fragments of columns at once."""
        writer = self.writer
        pairs = ir.Fold(dim, kept.level, 2 * kept.step, kept.count // 2)
        along_depth = self._along_depth(load, depth)
        columns = f"{_LANE} / 16 * 8 + {_LANE} % 8" if along_depth else f"{_LANE} / 16 * 8"
        points = f"{_LANE} / 8 % 2 * 8" if along_depth else f"{_LANE} % 16"
        load_pair = f"load_matrix_x4{'' if along_depth else '_trans'}"
        writer.used.add(load_pair)
        with writer.unrolled([pairs], scope) as inner:
            at = self._fragment_place(inner, dim, columns, depth, points)
            pair = iteration(pairs, inner)
            place = writer.memory.pointer(load.ref, at)
            to = f"(unsigned int (&)[4]){name}[{pair} * 2]"
            writer.lines.add(f"{load_pair}({to}, {place});")

    def _along_depth(self, load: ir.Load, depth: ir.Fold) -> bool:
        """Whether rows of the panel go along the reduction."""
        layout = self.writer.memory.layout(load.ref)
        return layout.step(load.ref, depth.name) == 1

    def _matrices(
        self, load: ir.Load, dim: str, depth: ir.Fold, scope: CudaScope, to: str, count: int
    ) -> None:
        """16-bit factors: matrices of 8 x 8, a row's address from each thread."""
        writer = self.writer
        along_depth, lane = self._along_depth(load, depth), _LANE
        if count == 4:  # rows 0-7, 8-15 of points 0-7, then of points 8-15
            rows = f"{lane} % 16" if along_depth else f"{lane} / 8 % 2 * 8"
            points = f"{lane} / 16 * 8" if along_depth else f"{lane} / 16 * 8 + {lane} % 8"
        else:  # points 0-7, 8-15 of the 8 columns
            rows = f"{lane} % 8" if along_depth else "0"
            points = f"{lane} / 8 % 2 * 8" if along_depth else f"{lane} % 16"
        at = self._fragment_place(scope, dim, rows, depth, points)
        name = f"load_matrix_x{count}{'' if along_depth else '_trans'}"
        writer.used.add(name)
        writer.lines.add(f"{name}({to}, {writer.memory.pointer(load.ref, at)});")

    def _singles(
        self,
        load: ir.Load,
        dim: str,
        depth: ir.Fold,
        scope: CudaScope,
        to: str,
        count: int,
    ) -> None:
        """float32 factors: one number after the other, rounded to tf32."""
        writer = self.writer
        writer.used.add("to_tf32")
        for k in range(count):
            row = f"{_LANE} / 4 + {8 * (k % 2)}" if count == 4 else f"{_LANE} / 4"
            point = f"{_LANE} % 4 + {4 * (k // 2 if count == 4 else k)}"
            at = self._fragment_place(scope, dim, row, depth, point)
            element = writer.memory.element(load.ref, at)
            writer.lines.add(f"{to}[{k}] = to_tf32({element});")

    def _fragment_place(
        self, scope: CudaScope, dim: str, row: str, depth: ir.Fold, point: str
    ) -> CudaScope:
        """The place with these texts for what a thread has of a dimension and of the reduction."""
        for fold in self.writer.geometry.folds[dim]:
            if fold.level in ("thread", "half", "lane"):
                scope = scope.with_fold(fold, row if fold.level == "thread" else "0")
        return scope.with_fold(depth, point)


_INSTRUCTIONS = {"float16": "mma_m16n8k16_f16", BFLOAT16.name: "mma_m16n8k16_bf16"}


def tensor_cores(
    writer: Writer, loops: Sequence[ir.Loop], body: ir.Statement
) -> TensorCores | None:
    """The innermost part of a nest as a product on tensor cores; None if it is none."""
    if not any(x.fold.level == "mma" for x in loops):
        return None
    parts = body.body if isinstance(body, ir.Block) else (body,)
    if len(parts) != 1 or not isinstance(parts[0], ir.Accumulate):
        raise ir.IRError("tensor cores do nothing but add up products")
    return TensorCores(writer, tuple(loops), parts[0])


_SLAB_BYTES = WARPGROUP_DEPTH * SLAB
"""Of 64 rows: what a warpgroup reads of a factor with 64 rows or columns."""


@dataclass(frozen=True, slots=True)
class Warpgroups:
    """Writes the innermost part of a product: where both factors are, then the instructions."""

    writer: Writer
    accumulate: ir.Accumulate
    depth: ir.Fold
    factors: tuple[ir.Load, ir.Load]
    """The one that has the rows, and the one that has the columns."""

    def write(self) -> None:
        """Begins the products, and waits until they are done, or only the earlier ones are."""
        writer, lines = self.writer, self.writer.lines
        own = writer.accumulators[self.accumulate.name]
        columns = MMA_COLUMNS * next(f.count for f in own.over if f.level == "register")
        type_ = mma_type(self.accumulate.value)
        kind = "bf16" if type_ == BFLOAT16 else "f16"
        name = f"wgmma_m64n{columns}k{MMA_DEPTH}_{kind}"
        writer.used |= {name, "begin_products", "commit_products", "panel_part"}
        parts = [self._part(load, k == 0) for k, load in enumerate(self.factors)]
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

    def _part(self, load: ir.Load, by_row: bool) -> tuple[str, int, bool]:
        """The variable that says where a factor is, what leads to its next points, and whether its
        rows go across the reduction."""
        writer, memory = self.writer, self.writer.memory
        layout, panel = memory.layout(load.ref), memory.name(load.ref.tensor)
        across = layout.step(load.ref, self.depth.name) != 1
        name = writer.names.new(f"{panel.removesuffix('_tile')}_part")
        at = [x for x in (memory.buffer.get(load.ref.tensor, "0"),) if x != "0"]
        if by_row and layout.bytes > _SLAB_BYTES:
            at.append(f"threadIdx.x / {WARPGROUP} * {_SLAB_BYTES // layout.itemsize}")
        bytes_ = f"{_SLAB_BYTES}, {SLAB_TURN}"
        text = f"panel_part<{bytes_}>(&{panel}[{' + '.join(at) or '0'}])"
        writer.lines.add(f"const unsigned long long {name} = {text};")
        step = MMA_DEPTH * (SLAB if across else layout.itemsize) // VECTOR
        return name, step, across
