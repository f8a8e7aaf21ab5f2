"""Machine code of ours beside Triton's and what nvMatmulHeuristics would choose; no GPU is needed.

    python -m benchmarks.machine_code [--ours] [--out FILE]

Needs Triton, ``nvidia-cuda-nvdisasm`` and, for the second table, ``nvidia-matmul-heuristics``,
besides what NVRTC needs. The first table has, for sm_90: registers, blocks that a multiprocessor of
an H200 has at once, the share of the instructions of the inner loop (of all, where there is none)
that multiply and add (FFMA, HMMA, HGMMA), the time of its reads of shared memory over that of its
FFMAs (an LDS.128 without conflicts takes two cycles of a multiprocessor, a shorter one takes one,
four FFMAs take one), the cycles from one FFMA to the next that reading their registers takes, and
the KB that a multiprocessor has on their way from
memory at once: bytes that its threads ask for before the first wait. An HGMMA does the
work of many HMMAs, so that its share says little: float16 products are there for sm_80 and an A100
too, where both have HMMAs. Among ours are float32 products in all four layouts, with fixed sizes
and with one that varies, and the bytes that they spill. The second table: tile and split for the
same products. Counted in machine code, not measured.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import sass
from benchmarks.common import command, write
from benchmarks.counters import EXTRA
from benchmarks.gpu.rows import gpu_rows
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.counters.counts import count_program
from tcl.codegen.counters.prediction import SCHEDULERS, predict
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.gpu import A100, H200, GpuProfile
from tcl.codegen.devices.occupancy import fitting
from tcl.codegen.options.options import DEFAULT
from tcl.codegen.schedule.gpu import plan
from tcl.common.dataclass import dataclass
from tcl.executors.size_classes import ForAll, for_all
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef

_PRODUCTS = ("FFMA", "HMMA", "HGMMA")
_READ = re.compile(r"-?\|?R(\d+)")
_ROWS = (
    *("matmul 2048", "tmm 2048 NT", "matmul 4096 float16"),
    *("softmax 4096x1024", "layernorm 4096x1024"),
)


@dataclass(frozen=True, slots=True)
class Code:
    """The longest kernel of a CUBIN."""

    operations: tuple[str, ...]
    """Of the inner loop with most products, else of all of it."""
    around: tuple[str, ...]
    """Of the inner loop that copies, or where none does of all of it."""
    looped: bool
    banks: float
    """Cycles of an FFMA's reads of registers: registers lie in two banks, by odd and even numbers,
    and each cycle reads one of each. What is marked to be reused is not read again by the next
    instruction, in the same place. Nsight Compute counts as many cycles without an instruction on
    an H100: of a product of 2048 .747 have one where this says .753, of one of 1024 .695 and
    .690."""

    @staticmethod
    def from_cubin(cubin: bytes) -> Code:
        """Read by nvdisasm."""
        code = max(sass.kernels(cubin).values(), key=len)
        operations = [
            one.name + ("".join(f",{o}" for o in one.operands) if one.base == "DEPBAR" else "")
            for one in code
        ]
        loops = [
            (one.target, k)
            for k, one in enumerate(code)
            if one.base == "BRA" and one.target is not None and one.target < k
        ]

        def products(loop: tuple[int, int]) -> int:
            return sum(one.base in _PRODUCTS for one in code[loop[0] : loop[1] + 1])

        used = [loop for loop in loops if products(loop)] or loops
        inner = [
            (a, b)
            for a, b in used
            if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in used)
        ]
        best = max(inner, key=lambda loop: (products(loop), loop[1] - loop[0]), default=None)
        part = operations if best is None else operations[best[0] : best[1] + 1]
        copies = [k for k, one in enumerate(code) if one.base == "LDGSTS"]
        around = [(a, b) for a, b in loops if any(a <= k <= b for k in copies)]
        a, b = min(around, key=lambda loop: loop[1] - loop[0], default=(0, len(code)))
        inside = code if best is None else code[best[0] : best[1] + 1]
        return Code(
            tuple(part), tuple(operations[a : b + 1]), best is not None, bank_cycles(inside)
        )

    @property
    def share(self) -> float:
        """Of instructions that multiply and add."""
        counted = [o.split(".")[0] for o in self.operations if not o.startswith("NOP")]
        return sum(o in _PRODUCTS for o in counted) / len(counted)

    @property
    def reading(self) -> float:
        """Time of reads of shared memory over that of FFMAs; 0 where there are none."""
        names = [o.partition(",")[0].split(".") for o in self.operations]
        cycles = sum(2 if "128" in parts else 1 for base, *parts in names if base == "LDS")
        products = sum(base == "FFMA" for base, *_ in names)
        return cycles / (products / SCHEDULERS) if products else 0.0

    @property
    def heavy(self) -> int:
        """HGMMA and HMMA instructions."""
        return sum(o.split(".")[0] in _PRODUCTS[1:] for o in self.operations)

    @property
    def asked(self) -> int:
        """Bytes that a thread asks for before it waits: asynchronous copies of as many iterations
        as may be on their way, or the loads of the longest stretch without a barrier."""
        copies = sum(_bytes(o) for o in self.around if o.startswith("LDGSTS"))
        if copies:
            waits = [o for o in self.around if o.startswith("DEPBAR") and ",0x" in o]
            left = [int(o.split(",0x")[1], 16) for o in waits]
            groups = sum(o.startswith("LDGDEPBAR") for o in self.around) or 1
            return copies * (1 + max(left, default=0)) // groups
        longest = here = 0
        for o in self.operations if self.looped else self.around:
            here = 0 if o.startswith("BAR") else here + _bytes(o) * o.startswith("LDG.")
            longest = max(longest, here)
        return longest


def bank_cycles(code: Sequence[sass.Instruction]) -> float:
    """Cycles of an FFMA's reads of registers, in the mean; 0 without one."""
    kept: dict[int, int] = {}
    cycles, products = 0, 0
    for one in code:
        found = map(_READ.match, one.operands) if one.base == "FFMA" else ()
        own = {k: int(m[1]) for k, m in enumerate(found) if m and k}
        read = {r for k, r in own.items() if kept.get(k) != r}
        kept = {k: r for k, r in own.items() if k in one.reused}
        odd = sum(r % 2 for r in read)
        if own:
            cycles, products = cycles + max(1, odd, len(read) - odd), products + 1
    return cycles / products if products else 0.0


def _bytes(operation: str) -> int:
    found = re.search(r"\.(128|64)\b", operation)
    return int(found[1]) // 8 if found else 4


def ours(name: str, device: GpuProfile = H200) -> dict[str, Any]:
    """Of the first kernel of a row."""
    (row,) = gpu_rows(name, quick=False)
    return _first(_sized(row.checked, row.values), device)


def _first(sized: SizedDef, device: GpuProfile = H200) -> dict[str, Any]:
    """Of the first kernel of a def."""
    module = emit_module(sized, DEFAULT, device)
    cubin = compile_cubin(module, device)
    launch, taken = module.launches[0], cubin.resources[0]
    code = Code.from_cubin(cubin.code)
    line = _line(code, launch.threads, taken.registers, launch.shared, device)
    return {**line, "spills": taken.spill_stores + taken.spill_loads}


def layouts() -> Iterator[tuple[str, dict[str, Any]]]:
    """Our float32 products in all layouts, for fixed sizes; for each size that varies, of the class
    that it belongs to; and for the one that stands for that class."""
    for row in EXTRA:
        sizes = {*row.values.values()}
        if len(sizes) > 1:
            continue
        yield row.name, _first(_sized(row.checked, row.values))
        for varying in ("M", "N", "K") if sizes <= {1024, 2048, 4096} else ():  # as 4096
            found = for_all(row.checked, row.values, (varying,), H200)
            if isinstance(found, ForAll):
                yield f"{row.name}, {varying} varies", _first(found.symbolic)
                fixed = _sized(row.checked, found.sizes)
                yield f"{row.name}, {varying} {found.sizes[varying]}", _first(fixed)


def _sized(checked: CheckedDef, sizes: Mapping[str, int]) -> SizedDef:
    return infer(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})


def _line(
    code: Code, threads: int, registers: int, shared: int, device: GpuProfile
) -> dict[str, Any]:
    blocks = fitting(threads, registers, shared, device).blocks
    return {
        "registers": registers,
        "blocks": blocks,
        "threads": threads,
        "share": code.share,
        "reading": code.reading,
        "banks": code.banks,
        "products": code.heavy,
        "loop": len(code.operations) if code.looped else 0,
        "in_flight": code.asked * threads * blocks / 1024,
    }


def triton() -> Iterator[tuple[str, dict[str, Any]]]:
    """The kernels of the peer, as its users write them, with the same settings, for sm_90; and
    for sm_80, where it has HMMAs as we do."""
    package: Any = import_module("triton")  # before the peer: it would interpret kernels here
    compiled, jit = package.compile, import_module("triton.runtime.jit").JITFunction
    targets = import_module("triton.backends.compiler").GPUTarget
    source = import_module("triton.compiler").ASTSource
    peer: Any = import_module("benchmarks.gpu.peers.triton_peer")
    tools = Path(package.__path__[0]) / "backends" / "nvidia" / "bin"

    def line(
        function: Any,
        pointers: str,
        constants: dict[str, int],
        warps: int,
        stages: int,
        device: GpuProfile = H200,
    ) -> Any:
        made = jit(function)
        names = list(made.arg_names)
        free = [n for n in names if n not in constants]
        types = dict.fromkeys(names, "constexpr") | dict.fromkeys(free, "i32")
        arrays = free[: len(pointers.split())]
        types |= dict(zip(arrays, (f"*{p}" for p in pointers.split()), strict=True))
        aligned = {(names.index(n),): [["tt.divisibility", 16]] for n in free}
        fixed = {(names.index(n),): v for n, v in constants.items()}
        options = {"num_warps": warps, "num_stages": stages}
        target = targets("cuda", int(device.architecture.removeprefix("sm_")), 32)
        kernel = compiled(source(made, types, fixed, aligned), target=target, options=options)
        code = kernel.asm["cubin"]
        registers = _registers(tools / "cuobjdump", code)
        return _line(Code.from_cubin(code), 32 * warps, registers, kernel.metadata.shared, device)

    for name, type_, across, device in (
        *(("NN", "fp32", "bn", H200), ("NT", "fp32", "bk", H200)),
        *(("NN", "fp16", "bn", H200), ("NN", "fp16", "bn", A100)),
    ):
        for m, n, k, warps, stages in peer._BLOCKS["float32" if type_ == "fp32" else "16 bits"]:
            sizes = {"M": m, "N": n, "K": k, "GROUP": 8, "STEPS": 4096 // k, "ak": 1, across: 1}
            about = f"{name} {type_} {m}x{n}x{k}, {warps} warps{_for(device)}"
            made = line(peer._product_kernel, " ".join([type_] * 3), sizes, warps, stages, device)
            yield about, {**made, "chunk": (m, n), "tile": (0, 0, k)}
    for warps in peer._WARPS:
        made = line(peer._softmax_kernel, "fp32 fp32", {"BLOCK": 1024}, warps, 3)
        yield f"softmax 1024, {warps} warps", made
        made = line(peer._layernorm_kernel, " ".join(["fp32"] * 7), {"BLOCK": 1024}, warps, 3)
        yield f"layernorm 1024, {warps} warps", made


def _for(device: GpuProfile) -> str:
    return "" if device is H200 else f", {device.architecture}"


def _registers(tool: Path, code: bytes) -> int:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        )
    return max(map(int, re.findall(r"REG:(\d+)", done.stdout)))


_SIZES = ((512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (128, 1024, 1024), (128, 16384, 4096))
_PRECISIONS = {"float32": "SSS", "float16": "HSH"}
_ASK = """
import sys, nvMatmulHeuristics as h
layout = h.NvMatmulHeuristicsMatmulLayout.NN_ROW_MAJOR
found = h.NvMatmulHeuristicsInterface(
    backend=h.NvMatmulHeuristicsTarget.GENERIC, precision=sys.argv[1]
)
device = found.createHardwareDescriptor()
found.setHardwarePredefinedGpu(device, h.NvMatmulHeuristicsNvidiaGpu.H200_SXM)
found.loadInternalDiscoverySet(layout, device)
for product in sys.argv[2:]:
    for each in found.get_with_mnk(*map(int, product.split("x")), layout, 1, device):
        print(f"{product}: {each['kernel']}, {1e6 * each['runtime']:.1f} us", flush=True)
"""


def heuristics() -> Iterator[tuple[str, str]]:
    """(product, kernel) that nvMatmulHeuristics chooses first for an H200, of NN products. A
    process that has asked for one precision ends when it asks for another."""
    products = ["x".join(map(str, sizes)) for sizes in _SIZES]
    for type_, precision in _PRECISIONS.items():
        words = [sys.executable, "-c", _ASK, precision, *products]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            product, _, kernel = line.partition(": ")
            yield f"{type_} {product}", kernel


def ours_for(type_: str, m: int, n: int, k: int) -> str:
    """Our tile and split for a product, and what counts predict."""
    text = (
        f"def f({type_}(M, K) A, {type_}(K, N) B) -> ({type_}(M, N) C) "
        "{ C(m, n) +=! A(m, k) * B(k, n) }"
    )
    (checked,) = check(text).values()
    sizes = {"M": m, "N": n, "K": k}
    sized = infer(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})
    made = plan(sized, DEFAULT, H200)
    first, *rest = made.options.values()
    chunk, tile = (first.chunk or ())[-2:], (first.tile or ())[-1:]
    parts = math.prod(made.program.nests[0].dims[0].extent for _ in rest)
    seconds = sum(predict(c).seconds for c in count_program(made.scheduled(), H200))
    depth = tile[0] if tile else k
    return f"block {chunk[0]} {chunk[1]} {depth}, split {parts}, {1e6 * seconds:.1f} us"


def main() -> None:
    """The command line."""
    parser = command("machine_code", __doc__)
    parser.add_argument("--ours", action="store_true", help="neither Triton nor heuristics")
    given = parser.parse_args()
    print(
        f"{'kernel':<44}{'registers':>10}{'blocks':>7}{'loop':>6}{'share':>7}{'reading':>8}{'banks':>7}"
        f"{'KB in flight':>13}{'spills':>7}"
    )
    pairs = [*((name, H200) for name in _ROWS), ("matmul 4096 float16", A100)]
    table = {f"tcl {name}{_for(device)}": ours(name, device) for name, device in pairs}
    table |= dict(layouts())
    if not given.ours:
        table |= {f"Triton {n}": x for n, x in triton()}
    for name, line in table.items():
        print(
            f"{name:<44}{line['registers']:>10}{line['blocks']:>7}{line['loop']:>6}"
            f"{line['share']:>7.3f}{line['reading']:>8.3f}{line['banks']:>7.3f}"
            f"{line['in_flight']:>13.0f}{line.get('spills', 0):>7}"
        )
    beside = []
    for product, kernel in () if given.ours else heuristics():
        type_, shape = product.split()
        own = ours_for(type_, *map(int, shape.split("x")))
        beside.append({"product": product, "nvMatmulHeuristics": kernel, "tcl": own})
        print(f"{product}\n    nvMatmulHeuristics: {kernel}\n    tcl: {own}")
    write(given.out, {"kernels": table, "products": beside})


if __name__ == "__main__":
    main()
