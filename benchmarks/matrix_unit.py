"""Counts what products ask of a matrix unit (AMX) and of the caches; no such unit is needed.

    python -m benchmarks.matrix_unit [--sizes 256,512,1024,2048,4096] [--out FILE]

For Sapphire Rapids and one thread, the loops of the built kernels are counted: products of
fragments, fragments loaded and stored, and cache lines that each level has to hand over. A line is
taken to be in a cache of which one iteration of the loop that comes back to it touches no more than
fits (least recently used first out, all ways alike); kernels are called again and again. The floor
is the products alone: 16 cycles each. The predicted time is the longest of products, fragments and
lines of a level, which run side by side, and the vectors that fill panels (and wait for their lines
themselves) and hand over sums, which do not.

Sources: Intel's optimisation manual, "Intel AMX" (a product every 16 cycles, a load of 16 lines
every 8, a store every 16) and its table of caches (48 bytes a cycle from the second one); what
follows it and vectors: ``codegen/choose/cpu/costs.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.common import command, write
from tcl.codegen.choose.cpu.costs import (
    CACHE_BYTES_PER_CYCLE,
    COPY_TRANSPOSED_CYCLES,
    FRAGMENT_BYTES_PER_CYCLE,
    FRAGMENT_LINE_CYCLES,
    FRAGMENT_PRODUCT_CYCLES,
    INTERLEAVED_LINE_CYCLES,
    MEMORY_BYTES_PER_CYCLE,
    SUMS_ROW_CYCLES,
)
from tcl.codegen.choose.cpu.footprints import cached_bytes
from tcl.codegen.devices.cpu_profile import LINE, CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, values_in
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

TYPES = ("bfloat16", "int8")
SIZES = "256,512,1024,2048,4096"
ROWS = 16
"""Of a fragment; each is a cache line."""
LOAD_CYCLES, STORE_CYCLES = 8, 16


@dataclass(frozen=True, slots=True)
class Access:
    """A tensor that is read or written in loops, the outermost first."""

    tensor: str
    folds: tuple[ir.Fold, ...]
    moving: frozenset[str]
    """The names of folds that decide where."""
    itemsize: int
    share: float
    """Of the iterations of these loops, in which that happens."""

    def lines(self, outside: int) -> int:
        """Different lines that the loops touch which are inside of so many."""
        points = math.prod(f.count for f in self.folds[outside:] if f.name in self.moving)
        return -(-points * self.itemsize // LINE)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of a whole kernel."""

    products: int
    loads: int
    """Of fragments."""
    stores: int
    lines: tuple[int, ...]
    """From the first cache (of fragments alone), the second, the last, and memory."""
    stored: int
    """Lines of results."""
    floor: int
    """Cycles."""
    predicted: int
    """Cycles."""

    @property
    def share(self) -> float:
        """Of the floor, that is reached."""
        return self.floor / self.predicted


class Kernel:
    """The loops of a built program, to be counted."""

    def __init__(self, program: ir.Built, device: CpuProfile, transposed: bool) -> None:
        self.program, self.device, self.transposed = program, device, transposed
        self.accesses: list[Access] = []
        self.over: dict[str, tuple[ir.Fold, ...]] = {}
        """Those of accumulators."""
        self.products, self.loads, self.stores, self.handed = 0, 0.0, 0.0, 0.0
        for kernel in program.kernels:
            self._walk(kernel.body, ())

    def _walk(self, at: ir.Statement, folds: tuple[ir.Fold, ...], share: float = 1.0) -> None:
        match at:
            case ir.Block():
                for each in at.body:
                    self._walk(each, folds, share)
            case ir.For():
                self._walk(at.body, (*folds, at.loop.fold), share)
            case ir.First():
                then = share / math.prod(f.count for f in at.folds)
                self._walk(at.then, folds, then)
                self._walk(at.otherwise, folds, share - then)
            case ir.Declare():
                self.over[at.name] = at.over
            case ir.Matrix():
                times = share * math.prod(f.count for f in folds)
                self.stores += times * (at.action is ir.Action.GIVE)
                self.loads += times * (at.action is ir.Action.TAKE)
                if at.at is not None:
                    inner = (f for f in self.over[at.name] if f not in folds)
                    self.accesses.append(self._access(at.at, (*folds, *inner), share))
                elif at.action is not ir.Action.CLEAR:
                    self.handed += times
            case ir.Accumulate() | ir.Store():
                refs = [x.ref for value in values_in(at) for x in loads(value)]
                refs += [at.ref] if isinstance(at, ir.Store) else []
                found = [self._access(ref, folds, share) for ref in refs]
                self.accesses += found
                if isinstance(at, ir.Accumulate) and sum(f.level == "mma" for f in folds) == 2:
                    self._multiplied(found, folds)

    def _multiplied(self, factors: Sequence[Access], folds: tuple[ir.Fold, ...]) -> None:
        """Products of fragments: a factor stays in its register where unrolled loops use it
        again."""
        turns = [f for f in folds if f.level not in ("mma", "lane", "dot")]
        self.products += math.prod(f.count for f in turns)
        for factor in factors:
            kept = [f for f in turns if f.level == "register" and f.name not in factor.moving]
            self.loads += math.prod(f.count for f in turns if f not in kept)

    def _access(self, ref: ir.TensorRef, folds: tuple[ir.Fold, ...], share: float) -> Access:
        layout = self.program.tensor(ref.tensor).layout
        place = layout.place(ref)
        moving = (f.name for f in folds if place.coefficient(f.name) + place.coefficient(f.dim))
        return Access(ref.tensor, folds, frozenset(moving), layout.itemsize, share)

    def missed(self, capacity: int, accesses: Sequence[Access] | None = None) -> int:
        """Lines that come from behind a cache of so many bytes; ``accesses``: for some of them."""
        asked = self.accesses if accesses is None else accesses
        return round(sum(x.share * self._missed(x, capacity) for x in asked))

    def _filling(self) -> float:
        """Cycles in which vectors fill panels."""
        total = 0.0
        for fill in (a for a in self.accesses if ".panel" in a.tensor and self._fills(a)):
            points = math.prod(f.count for f in fill.folds)
            names = {f.level for f in fill.folds if f.name in fill.moving}
            if "lane" not in names:  # of rows, which are copied as they are
                total += points * fill.itemsize / LINE * FRAGMENT_LINE_CYCLES
            elif self.transposed:
                total += points * fill.itemsize / 4 * COPY_TRANSPOSED_CYCLES
            else:
                total += points * fill.itemsize / LINE * INTERLEAVED_LINE_CYCLES
        return total

    def _fills(self, access: Access) -> bool:
        """Whether it writes a panel: it is not in the loops of both sides."""
        return sum(f.level == "mma" for f in access.folds) == 1

    def _missed(self, access: Access, capacity: int) -> int:
        again = 1 if self._touched(()) * LINE > capacity else 0
        for k, fold in enumerate(access.folds):
            if fold.name not in access.moving:
                between = self._touched(access.folds[: k + 1])
                again *= fold.count if between * LINE > capacity else 1
        return access.lines(0) * again

    def _touched(self, outside: tuple[ir.Fold, ...]) -> int:
        """Lines that are touched in one iteration of the innermost of these loops."""
        found: dict[str, int] = {}
        for access in self.accesses:
            if access.folds[: len(outside)] == outside:
                lines = access.lines(len(outside))
                found[access.tensor] = max(lines, found.get(access.tensor, 0))
        return sum(found.values())

    def counts(self, least: float) -> Counts:
        """All of it; ``least``: products of fragments that no padding adds to."""
        device = self.device
        vectors = self._filling() + self.handed * ROWS * SUMS_ROW_CYCLES
        caches = (device.l1_bytes, device.l2_bytes, cached_bytes(device))
        behind = [self.missed(capacity) for capacity in caches]
        rates = (FRAGMENT_BYTES_PER_CYCLE, CACHE_BYTES_PER_CYCLE, MEMORY_BYTES_PER_CYCLE)
        # What fills panels waits for its lines itself.
        beside = [x for x in self.accesses if not self._fills(x)]
        asked = [self.missed(capacity, beside) for capacity in caches]
        longest = max(
            self.products * FRAGMENT_PRODUCT_CYCLES,
            self.loads * LOAD_CYCLES + self.stores * STORE_CYCLES,
            *(lines * LINE / rate for lines, rate in zip(asked, rates, strict=True)),
        )
        loads, stores = round(self.loads), round(self.stores)
        lines = ((loads + stores) * ROWS, *behind)
        stored = sum(a.lines(0) for a in self.accesses if a.tensor == "C")
        floor = math.ceil(least * FRAGMENT_PRODUCT_CYCLES)
        return Counts(self.products, loads, stores, lines, stored, floor, round(longest + vectors))


def sized(text: str, size: int) -> SizedDef:
    """A def of square matrices."""
    (checked,) = check(text).values()
    return infer(checked, {tensor.name: (size, size) for tensor in checked.inputs})


def texts(type_: str) -> Iterator[tuple[str, str]]:
    """Names and defs."""
    wide = "float" if type_ == "bfloat16" else "int32"
    for name, right, ref in (("NN", "K, N", "B(k, n)"), ("NT", "N, K", "B(n, k)")):
        for after in ("", " C(m, n) = C(m, n) * 2 + 1"):
            body = f"C(m, n) +=! {wide}(A(m, k)) * {wide}({ref}){after}"
            inputs = f"{type_}(M, K) A, {type_}({right}) B"
            yield name + (" and epilogue" if after else ""), f"def f({inputs}) -> (C) {{ {body} }}"


def counted(type_: str, size: int, name: str, text: str, device: CpuProfile) -> Counts:
    """Of one def, as it is computed by default."""
    given = sized(text, size)
    fragment = 16 * 16 * (64 if type_ == "int8" else 32)
    program = plan(given, MappingOptions("mlp"), device).scheduled()
    return Kernel(program, device, "NT" in name).counts(size**3 / fragment)


def main() -> None:
    parser = command("matrix_unit", __doc__)
    parser.add_argument("--sizes", default=SIZES)
    given = parser.parse_args()
    device = find("Sapphire Rapids")
    assert device is not None
    device = replace(device, threads=1)
    rows = []
    for type_ in TYPES:
        for size in map(int, given.sizes.split(",")):
            for name, text in texts(type_):
                found = counted(type_, size, name, text, device)
                about = {"type": type_, "size": size, "def": name}
                rows.append({**about, **asdict(found), "share": round(found.share, 3)})
                millions = " ".join(f"{n / 1e6:9.3f}" for n in found.lines)
                print(
                    f"{type_:9}{size:5} {name:17}products {found.products:9,} loads "
                    f"{found.loads:9,} stores {found.stores:8,} lines 1e6 {millions}  results "
                    f"{found.stored:9,}  share {found.share:.3f}",
                    flush=True,
                )
    write(given.out, {"rows": rows})


if __name__ == "__main__":
    main()
