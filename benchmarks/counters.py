"""What the suite's kernels ask of a GPU, counted: no GPU is needed, and nothing is measured.

    python -m benchmarks.counters [--device h200] [--rows PATTERN] [--out FILE]
    python -m benchmarks.counters --sass FOLDER

A row for each kernel that the default options make. With ``--sass``, the folder of ``nvdisasm``
(``pip install nvidia-cuda-nvdisasm``), instructions beside those of the machine code that NVRTC
makes: of the innermost loop that multiplies most, or of all of a kernel that has no loop.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import geometric_mean

from benchmarks.gpu.rows import GPU_ROWS
from tcl.arrays.random_inputs import input_shape
from tcl.bench.rows import Row
from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.prediction import predict, roofline, share
from tcl.codegen.cuda.emit.emit import emit_program
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.gpu import GpuProfile, find
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import DEFAULT
from tcl.codegen.schedule.gpu import schedule
from tcl.grammar.ranges.inference import infer

LONG = 3e-6
"""Seconds of a row's roofline from which on its share counts for the second mean."""


@dataclass(frozen=True, slots=True)
class CountedKernel:
    """A line of the table."""

    row: str
    kernel: int
    share: float
    """Of the row's roofline, of all of its kernels."""
    roofline: float
    """Seconds, of the row."""
    seconds: float
    """Predicted."""
    binding: str
    shared: float
    """Seconds of the shared memory's pipe."""
    arithmetic: float
    """Seconds of float32 units, or tensor cores."""
    wavefronts: float
    """A request of shared memory."""
    in_flight: float
    """Bytes a multiprocessor."""
    read: int
    written: int
    """Bytes of memory."""
    registers: int
    blocks: int
    """A multiprocessor at once."""
    waves: float


def program_of(row: Row, device: GpuProfile) -> ir.Built:
    """A row's kernels, by default."""
    values, checked = row.values, row.checked
    sized = infer(checked, {t.name: input_shape(t, values) for t in checked.inputs})
    return schedule(sized, DEFAULT, device)


def counted(row: Row, device: GpuProfile) -> list[CountedKernel]:
    """The lines of a row."""
    counts = count_program(program_of(row, device), device)
    predictions = [predict(c) for c in counts]
    whole, least = share(row.cost(), predictions, device), roofline(row.cost(), device)
    found = []
    for k, (own, prediction) in enumerate(zip(counts, predictions, strict=True)):
        pipes = prediction.pipes
        requests = sum(t.requests for kind, t in own.traffic.items() if not kind.is_global)
        found.append(
            CountedKernel(
                *(row.name, k, whole, least, prediction.seconds, prediction.binding),
                shared=pipes.get("shared memory", 0.0),
                arithmetic=max(pipes.get("float32", 0.0), pipes.get("tensor cores", 0.0)),
                wavefronts=own.shared_wavefronts / max(1, requests),
                in_flight=own.in_flight,
                read=own.dram_read,
                written=own.dram_written,
                registers=own.registers,
                blocks=own.occupancy.blocks,
                waves=own.waves,
            )
        )
    return found


def _line(own: CountedKernel) -> str:
    first = f"{own.share:5.2f} {1e6 * own.roofline:9.1f}" if own.kernel == 0 else " " * 15
    ratio = own.shared / own.arithmetic if own.arithmetic else 0.0
    return (
        f"{own.row if own.kernel == 0 else '':32} {first} {1e6 * own.seconds:9.1f} "
        f"{own.binding:14} {ratio:6.2f} {own.wavefronts:5.2f} {own.in_flight / 1024:6.0f} "
        f"{own.read / 1e6:7.1f} {own.written / 1e6:7.1f} {own.registers:4} {own.blocks:3} "
        f"{own.waves:7.2f}"
    )


_HEADS = (
    f"{'counted, not measured':32} share  roofline predicted binds          shared/ waves  "
    "in      MB      MB    regi blocks\n"
    f"{'':32}        us        us                       FMA    /req.  flight read    writ. "
    "sters an SM  waves"
)


def _print_table(rows: Sequence[Row], device: GpuProfile) -> list[CountedKernel]:
    print(f"{device.name}, default options\n{_HEADS}")
    found, shares = [], []
    for row in rows:
        lines = counted(row, device)
        found += lines
        shares.append((lines[0].roofline, lines[0].share))
        print(*map(_line, lines), sep="\n", flush=True)
    long = [own for least, own in shares if least > LONG]
    print(f"geometric mean of the shares: {geometric_mean(own for _, own in shares):.3f}")
    if long:
        text = f"{geometric_mean(long):.3f}, the least {min(long):.2f}"
        print(f"of the {len(long)} with a roofline above {1e6 * LONG:.0f} us: {text}")
    return found


# Beside machine code.

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", re.MULTILINE)
_CLASSES = {
    "fma": ("FFMA",),
    "mma": ("HMMA",),
    "mufu": ("MUFU",),
    "float": ("FADD", "FMUL", "FMNMX", "FSEL", "FSETP", "FCHK"),
    "memory": ("LDS", "STS", "LDSM", "LDG", "STG", "LDGSTS"),
    "barrier": ("BAR",),
    "shuffle": ("SHFL",),
}
_OF = {name: kind for kind, names in _CLASSES.items() for name in names}


@dataclass(frozen=True, slots=True)
class Assembled:
    """The instructions of one kernel's machine code, with the loops among them."""

    operations: tuple[str, ...]
    loops: tuple[tuple[int, int], ...]
    """First and last instruction."""

    @staticmethod
    def read(text: str) -> Assembled:
        """Of ``nvdisasm -c``, one function's part."""
        operations: list[str] = []
        labels: dict[str, int] = {}
        loops = []
        for line in text.splitlines():
            if label := re.match(r"^(\.L_\w+):", line):
                labels[label[1]] = len(operations)
            elif found := _INSTRUCTION.match(line):
                words = re.sub(r"^@!?U?P[T0-9]+\s+", "", found[1].strip())
                target = re.search(r"\bBRA(?:\.\S+)?\s.*?`\((\.L_\w+)\)", words)
                begin = labels.get(target[1]) if target else None
                if begin is not None and begin < len(operations):
                    loops.append((begin, len(operations)))
                operations.append(words.split()[0].split(".")[0])
        return Assembled(tuple(operations), tuple(loops))

    def counts(self, span: tuple[int, int] | None = None) -> Counter[str]:
        """By kind; all others are ``other``."""
        first, last = span or (0, len(self.operations) - 1)
        part = self.operations[first : last + 1]
        return Counter(_OF.get(o, "other") for o in part if o not in ("NOP", "EXIT"))

    def main(self, kind: str) -> Counter[str] | None:
        """Of the innermost loop with the most of a kind; None where there is no loop, or none of
        these in it."""
        long = [x for x in self.loops if x[1] - x[0] > 8]
        inner = [x for x in long if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in long)]
        best = max((self.counts(x) for x in inner), key=lambda c: c[kind], default=None)
        return best if best is not None and best[kind] else None


def disassembled(code: bytes, folder: Path) -> dict[str, Assembled]:
    """Each kernel of a CUBIN."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code + b"\0")
        file.flush()
        command = [str(folder / "nvdisasm"), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^\.text\.(\w+):$", text, flags=re.MULTILINE)[1:]
    return {name: Assembled.read(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def beside_sass(row: Row, device: GpuProfile, folder: Path) -> Iterator[str]:
    """Instructions of a row's kernels beside those of their machine code, as lines."""
    program = program_of(row, device)
    module = emit_program(program, device, unchecked=True)
    code = disassembled(compile_cubin(module, device).code, folder)
    for launch, own in zip(module.launches, count_program(program, device), strict=True):
        yield _beside(row.name, own, code[launch.name])


def _beside(name: str, own: KernelCounts, code: Assembled) -> str:
    kind = "mma" if own.instructions.get("mma") else "fma"
    loop = code.main(kind)
    if loop is None and code.loops:
        return f"{name:32} no loop that multiplies"
    found = loop if loop is not None else code.counts()
    scale = (
        found[kind] / own.instructions[kind]
        if loop is not None
        else 1 / (own.blocks * max(1, own.threads // 32))
    )
    total, asked = found.total(), sum(own.instructions.values()) * scale
    parts = ", ".join(
        f"{k} {found[k]} {own.instructions.get(k, 0) * scale:.1f}" for k in _CLASSES if found[k]
    )
    where = "loop" if loop is not None else "all"
    return f"{name:32} {where:4} {total:5} {asked:7.1f} {asked / total - 1:+6.1%}  {parts}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="h200")
    parser.add_argument("--rows", default="*", help="a pattern of names")
    parser.add_argument("--out", type=Path, help="a JSON file for the table")
    parser.add_argument("--sass", type=Path, help="the folder of nvdisasm")
    given = parser.parse_args()
    device = find(given.device)
    if device is None:
        parser.error(f"there is no device profile {given.device}")
    rows = [row for row in GPU_ROWS if fnmatch(row.name, given.rows)]
    if given.sass:
        print("kernel, of a thread's instructions: machine code's, counted; by kind likewise")
        for row in rows:
            print(*beside_sass(row, device, given.sass), sep="\n", flush=True)
        return
    found = _print_table(rows, device)
    if given.out:
        given.out.write_text(json.dumps([asdict(own) for own in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
