"""The instructions of kernels as counted from their schedules, beside those that warps execute in
machine code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from benchmarks import sass
from benchmarks.gpu.counted import scheduled_of
from tcl.bench.rows import Row
from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.requests import Memory
from tcl.codegen.cuda.emit.emit import emit_program
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile

NEAR, EXACT = 0.05, 0.03
"""How far apart all instructions may be, and those of a class that decides."""
_REQUESTS = {
    **{Memory.SHARED_READ: "LDS", Memory.MATRIX_READ: "LDSM", Memory.SHARED_WRITE: "STS"},
    **{Memory.GLOBAL_READ: "LDG", Memory.GLOBAL_WRITE: "STG", Memory.SHARED_COPY: "LDGSTS"},
}
_FAMILIES = {
    **{"fma": "FFMA", "float": "FADD FMUL FMNMX FSEL FSETP FSET FCHK", "mma": "HMMA"},
    **{"double": "DFMA DADD DMUL DSETP", "mufu": "MUFU", "convert": "F2F F2I I2F F2FP FRND"},
    **{"shuffle": "SHFL", "barrier": "BAR", "local": "LDL STL"},
    **{"branch": "BRA EXIT BSSY BSYNC CALL RET WARPSYNC"},
    **{name: name for name in _REQUESTS.values()},
}
_CLASSES = {name: kind for kind, names in _FAMILIES.items() for name in names.split()}
DECIDING = (
    *("fma", "float", "double", "mma", "mufu", "shuffle", "barrier"),
    *_REQUESTS.values(),
)
"""Classes that decide the predicted time; the others are ``convert``, ``local``, ``integer`` and
``branch``."""


def read(executed: Mapping[str, float]) -> dict[str, float]:
    """The classes of machine code. What has no thread takes a turn of integer instructions."""
    found: dict[str, float] = defaultdict(float)
    for name, n in executed.items():
        found[_CLASSES.get(name.split(".")[0], "integer")] += n
    return dict(found)


def counted(counts: KernelCounts) -> dict[str, float]:
    """The same classes as counters have them."""
    found = {kind: n for kind, n in counts.instructions.items() if kind != "memory"}
    found |= {name: counts.traffic[kind].requests for kind, name in _REQUESTS.items()}
    for name, n in counted(counts.last).items() if counts.last is not None else ():
        found[name] = found.get(name, 0) + n
    return found


def compared(rows: Iterable[Row], device: GpuProfile) -> Iterator[dict[str, Any]]:
    """A line for each kernel that differs from those before: instructions of a warp by class, ours
    and those of machine code."""
    seen = set[tuple[tuple[str, float], ...]]()
    for row in rows:
        program = scheduled_of(row, device)
        module = emit_program(program, device, unchecked=True)
        code = sass.kernels(compile_cubin(module, device).code)
        for counts, launch in zip(count_program(program, device), module.launches, strict=True):
            instructions, arrays = code[launch.name], len(launch.tensors)
            last = counts.last.blocks / counts.blocks if counts.last is not None else 0.0
            shape = launch.blocks, launch.threads, arrays
            found = read(sass.executed(instructions, *shape, last=last))
            key = tuple(sorted(found.items()))
            if key in seen:
                continue
            seen.add(key)
            warps = launch.blocks * -(-launch.threads // WARP)
            ours = counted(counts)
            classes = sorted({k for k in (*ours, *found) if ours.get(k) or found.get(k)})
            yield {
                "kernel": f"{row.name} {launch.name.rpartition('_')[2]}",
                "ours": {k: ours.get(k, 0) / warps for k in classes},
                "sass": {k: found.get(k, 0) / warps for k in classes},
            }


def error(line: Mapping[str, Any]) -> float:
    """Of all instructions, relative to those of machine code."""
    ours, found = (sum(line[key].values()) for key in ("ours", "sass"))
    return float(ours / found - 1)


def apart(line: Mapping[str, Any]) -> list[str]:
    """The classes that decide and are not the same."""
    ours, found = line["ours"], line["sass"]
    return [k for k in DECIDING if abs(ours.get(k, 0) - found.get(k, 0)) > EXACT * found.get(k, 0)]


def summary(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """How many kernels are near, in all instructions and in every class that decides, and the
    errors of all and of integer instructions, the latter relative to all."""
    lines = list(lines)
    errors = sorted(abs(error(line)) for line in lines)
    integers = sorted(
        abs(line["ours"].get("integer", 0) - line["sass"].get("integer", 0))
        / sum(line["sass"].values())
        for line in lines
    )
    last = int(0.9 * (len(lines) - 1))
    return {
        "kernels": len(lines),
        "near": sum(e <= NEAR for e in errors),
        "exact": sum(not apart(line) for line in lines),
        "mean": fmean(errors),
        "p90": errors[last],
        "integer mean": fmean(integers),
        "integer p90": integers[last],
    }


def table(rows: Iterable[Row], device: GpuProfile) -> dict[str, Any]:
    """Prints a line for each kernel, and what they come to."""
    lines = []
    for line in compared(rows, device):
        ours, found, marked = line["ours"], line["sass"], apart(line)
        classes = (f"{k} {ours[k]:.4g}/{found[k]:.4g}{'!' * (k in marked)}" for k in found)
        print(f"{line['kernel']:<32}{error(line):>+7.1%}  {'  '.join(classes)}", flush=True)
        lines.append(line)
    total = summary(lines)
    print(
        "{near} of {kernels} kernels within 5 % in all instructions (mean error {mean:.1%}, 90th "
        "percentile {p90:.1%}), {exact} in every class that decides within 3 %; integer "
        "instructions off by {integer mean:.1%} of all in the mean, {integer p90:.1%} at the 90th "
        "percentile".format_map(total)
    )
    return {"summary": total, "kernels": lines}
