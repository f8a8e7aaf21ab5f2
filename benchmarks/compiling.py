"""Measures the steps before a kernel runs: scheduling, compiling, candidates of a search.

    python -m benchmarks.compiling scheduling    # a product: complete options, and the default
    python -m benchmarks.compiling defaults      # defaults of the suite and the strangers, by parts
    python -m benchmarks.compiling choosing      # defaults for a GPU: one size, and all sizes
    python -m benchmarks.compiling classes       # kernels for all sizes of a def, the slowest first
    python -m benchmarks.compiling search        # candidates that the tuner evaluates in a second
    python -m benchmarks.compiling search --threads 2 --repeats 5 --out FILE

Scheduling and compiling are measured in CPU time of this thread, so other work on the machine
counts for little. The benchmark of plans emits nothing, and its devices are data, so any machine
will do. ``benchmarks/README.md`` describes what is counted.
"""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.common import command, medians, write
from benchmarks.counters import EXTRA
from benchmarks.gpu.rows import GPU_ROWS
from benchmarks.tuned import PARTS, strangers
from tcl.arrays.annotations import read_annotations
from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.bench.rows import EXAMPLES, SUITE
from tcl.codegen.choose.cpu.register_tiles import searched
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.varying import scheduled_for_all
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import default_plan, plan, schedule
from tcl.codegen.schedule.gpu import plan as plan_gpu
from tcl.codegen.schedule.gpu import schedule as schedule_gpu
from tcl.common.errors import CompileError, OptionsError
from tcl.executors.size_classes import ForAll
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import classes_of
from tcl.grammar.sizes.varying import Undecided
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.config import TunerConfig
from tcl.tuner.run.events import CandidateDone, Event, GenerationStarted
from tcl.tuning import Tuner

MATMUL = "def matmul(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
CPU = CpuProfile(
    "skylake-avx512", "+avx2,+fma,+avx512f", "x86_64-unknown-linux-gnu", 512, 2, 32 << 10, 1 << 20,
    32 << 20,
)  # fmt: skip
DEFAULT = MappingOptions("mlp")
CANDIDATE = MappingOptions.from_json(
    '{"preset":"naive","nests":[{"tile":[0,64,256],"order":[1,2,0],"inner_order":[1,0,2],'
    '"vectorize":[1,16],"register":[6,4,4],"stage":[-1,2],"chunk":[96,0],"fuse":false,'
    '"stream":false,"prefetch":[]}]}'
)
SPLIT = MappingOptions.from_json(
    '{"preset":"mlp","nests":[{"tile":[0,0,16],"order":[],"inner_order":[],"vectorize":[-1,1],'
    '"register":[2,2,4],"stage":[2,2],"chunk":[32,32],"fuse":false,"stream":false,"prefetch":[],'
    '"threads":[16,16,1],"split":[0,0,8],"buffers":3,"mma":[]}]}'
)
NARROW = "def product_{0}({0}(M, K) A, {0}(K, N) B) -> (C) {{ C(m, n) +=! {1}(A(m, k)) * B(k, n) }}"
SUMS = {"int8": "int32", "bfloat16": "float", "float16": "float", "float": "float"}


def scheduling(given: Namespace) -> dict[str, Any]:
    """Milliseconds by what is timed. Scheduling begins with lowering."""
    checked = check(MATMUL)["matmul"]
    square = infer(checked, {"A": (512, 512), "B": (512, 512)})
    deep = infer(checked, {"A": (128, 8192), "B": (8192, 128)})
    lies, lies_deep = cpu_layouts(square), gpu_layouts(deep)

    def first_default() -> object:
        default_plan.cache_clear()
        searched.cache_clear()
        return schedule(square, DEFAULT, CPU, lies)

    cases = {
        "CPU, lowering alone": lambda: lower(square, lies),
        "CPU, complete candidate": lambda: schedule(square, CANDIDATE, CPU, lies),
        "CPU, default": first_default,
        "H200, lowering alone": lambda: lower(deep, lies_deep),
        "H200, complete candidate in two nests": lambda: schedule_gpu(deep, SPLIT, H200, lies_deep),
        "H200, default in two nests": lambda: schedule_gpu(deep, DEFAULT, H200, lies_deep),
    }
    gc.disable()
    times = medians(cases, given.repeats or 200, calls=1, clock=time.thread_time)
    for name, seconds in times.items():
        print(f"{1e3 * seconds:8.2f} ms  {name}")
    return {name: round(1e3 * seconds, 3) for name, seconds in times.items()}


def defaults(given: Namespace) -> dict[str, Any]:
    """Milliseconds of each part by def, in a process that has compiled it before: the least of some
    rounds over all defs, and the mean of these."""
    strange = [row for part in PARTS for row in strangers(part)]
    groups = {"suite": [*SUITE], "strangers": strange[:: given.every]}
    device, found = replace(host_cpu(), threads=1), dict[str, dict[str, dict[str, float]]]()
    for group, rows in groups.items():
        least: dict[str, dict[str, float]] = {}
        for _ in range(given.repeats or 5):
            for row in rows:
                checked, sizes = row.checked, row.values
                shapes = {t.name: input_shape(t, sizes) for t in checked.inputs}
                parts = compiled_default(infer(checked, shapes), device)
                least[row.name] = {
                    p: min(s, least.get(row.name, parts)[p]) for p, s in parts.items()
                }
        found[group] = {
            name: {
                part: round(1e3 * s, 2)
                for part, s in (*parts.items(), ("all", sum(parts.values())))
            }
            for name, parts in least.items()
        }
        slowest = sorted(found[group].items(), key=lambda each: -each[1]["all"])
        means = {part: fmean([p[part] for p in found[group].values()]) for part in slowest[0][1]}
        for name, ms in (*slowest[:12], (f"mean of {len(rows)} ({group})", means)):
            print(f"{name:36}", *(f"{part} {value:6.1f}" for part, value in ms.items()), flush=True)
    return {"defs": found}


def compiled_default(sized: SizedDef, device: CpuProfile) -> dict[str, float]:
    """Seconds of choosing the default (with lowering), of its passes, of writing it, of LLVM."""
    default_plan.cache_clear()
    searched.cache_clear()
    gc.collect()
    times = [time.thread_time()]
    made = plan(sized, DEFAULT, device)
    times.append(time.thread_time())
    built = made.scheduled()
    times.append(time.thread_time())
    text = emit_program(built, made.target).text
    times.append(time.thread_time())
    compile_object(text, made.target)
    times.append(time.thread_time())
    parts = ("chosen", "passes", "written", "llvm")
    return {part: b - a for part, (a, b) in zip(parts, pairwise(times), strict=True)}


def choosing(given: Namespace) -> dict[str, Any]:
    """Milliseconds of choosing options for an H200, the least of some times, by row of
    ``benchmarks.counters``: for its sizes, and for the first class of all sizes that can share a
    kernel."""
    kinds: dict[str, dict[str, float]] = {"one size": {}, "all sizes": {}}
    for row in (*GPU_ROWS, *EXTRA):
        shapes = {t.name: input_shape(t, row.values) for t in row.checked.inputs}
        kinds["one size"][row.name] = chosen(infer(row.checked, shapes), given.repeats or 5)
        for classes in classes_of(row.values, row.checked.sizes):
            try:
                at = ForAll.for_sizes(row.checked, row.values, classes).symbolic
                kinds["all sizes"][row.name] = chosen(at, given.repeats or 5)
            except (Undecided, SourceError):
                continue
            break
    for kind, found in kinds.items():
        for name, ms in sorted(found.items(), key=lambda each: -each[1])[:12]:
            print(f"{kind}: {name:36} {ms:6.1f} ms")
        print(f"{kind}: mean of {len(found)} {fmean(found.values()):.1f} ms")
    return kinds


def chosen(sized: SizedDef, times: int) -> float:
    """Milliseconds of choosing options for an H200, the least of some times."""
    found = []
    for _ in range(times):
        start = time.thread_time()
        plan_gpu(sized, DEFAULT, H200)
        found.append(time.thread_time() - start)
    return round(1e3 * min(found), 1)


def classes(given: Namespace) -> dict[str, Any]:
    """Seconds of each part by def, the slowest first."""
    warnings.simplefilter("ignore")
    found = {d.name: compiled(d, sizes) for d, sizes in defs(given.label)}
    slowest = sorted(found.items(), key=lambda each: -each[1]["all"])
    for name, parts in slowest[:12]:
        print(f"{name:32}", *(f"{part} {value:6.2f}" for part, value in parts.items()))
    print(f"{len(found)} defs: {sum(parts['all'] for parts in found.values()):.1f} s")
    return {"defs": found}


def defs(label: str) -> Iterator[tuple[CheckedDef, Mapping[str, int]]]:
    """Products of narrow numbers and the defs of the examples, and sizes for classes."""
    for type_, sum_ in SUMS.items():
        for definition in check(NARROW.format(type_, sum_)).values():
            yield definition, dict.fromkeys(definition.sizes, 300)
    for path in sorted(EXAMPLES.glob("*.tc")):
        for definition in check(path.read_text(encoding="utf-8"), path.name).values():
            known = read_annotations(definition).sizes
            if definition.sizes and known:
                yield definition, known.get(label) or next(iter(known.values()))


def compiled(definition: CheckedDef, sizes: Mapping[str, int]) -> dict[str, float]:
    """Seconds of what comes before code is written (choices by a model of the machine, for the most
    part), of writing it, and of LLVM, and lines; what fails for wide classes is counted, too."""
    device, start = replace(host_cpu(), threads=1), time.thread_time()
    for classes in classes_of(sizes, definition.sizes):
        try:
            all_ = ForAll.for_sizes(definition, sizes, classes)
            made, built = scheduled_for_all(all_.symbolic, DEFAULT, device, asked=False)
            scheduled = time.thread_time()
            text = emit_program(built, made.target).text
        except (Undecided, SourceError, OptionsError, CompileError):
            continue
        written = time.thread_time()
        compile_object(text, made.target)
        ended = time.thread_time()
        parts = {"before": scheduled - start, "written": written - scheduled}
        parts |= {"llvm": ended - written, "lines": text.count("\n")}
        return {"all": ended - start, **parts}
    return {"all": time.thread_time() - start}


def search(given: Namespace) -> dict[str, Any]:
    """Searches for a product that takes .2 ms: how many candidates, and how long. ``search``:
    seconds from the first one's start to the last one's verdict; ``whole``: with the reference
    before, and the finals after."""
    found = []
    for seed in range(1, 1 + (given.repeats or 1)):
        moments: list[float] = []

        def hear(event: Event[MappingOptions], moments: list[float] = moments) -> None:
            if isinstance(event, GenerationStarted | CandidateDone):
                moments.append(time.perf_counter())

        inputs = random_inputs(check(MATMUL)["matmul"], dict.fromkeys("MNK", 256), 0)
        with tempfile.TemporaryDirectory() as folder:
            tuner = Tuner(MATMUL, Path(folder) / "tuning.db", threads=given.threads)
            config = TunerConfig().seed(seed)
            result = tuner.tune("matmul", inputs, None, config, progress=False, report=hear)
        verdicts = Counter(c.outcome.verdict.value for c in result.history)
        count, took = verdicts.total(), moments[-1] - moments[0]
        print(
            f"seed {seed}: {count} candidates in {took:.1f} s, best {1e3 * (result.time or 0):.3f} "
            f"ms\n  {count / took:.1f} candidates per second ({verdicts['correct'] / took:.1f} of "
            f"them correct); {count / result.seconds:.1f} with the reference and the finals, "
            f"{result.seconds:.1f} s in all",
            flush=True,
        )
        about = {"seed": seed, "best": result.time, "verdicts": dict(verdicts)}
        found.append({**about, "search": took, "whole": result.seconds})
    return {"threads": given.threads, "searches": found}


def main() -> None:
    """The command line."""
    parser = command("compiling", __doc__)
    kinds = {"scheduling": scheduling, "defaults": defaults, "choosing": choosing}
    kinds |= {"classes": classes, "search": search}
    parser.add_argument("what", choices=kinds)
    parser.add_argument(
        "--label", default="large", help="classes: label of the sizes in the defs' comments"
    )
    parser.add_argument("--threads", type=int, default=1, help="search: threads of the kernels")
    parser.add_argument(
        "--repeats", type=int, help="default: 200 for scheduling, 1 for search, 5 for others"
    )
    parser.add_argument("--every", type=int, default=1, help="defaults: of the strangers")
    given = parser.parse_args()
    write(given.out, kinds[given.what](given))


if __name__ == "__main__":
    main()
