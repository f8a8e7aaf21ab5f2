"""Compares all emitted code with recorded hashes: it shows whether a change affected a kernel.

    python -m benchmarks.emitted                 # all: LLVM IR for the CPU, CUDA C++ for GPUs
    python -m benchmarks.emitted --sample 20     # every 20th, for a quick look
    python -m benchmarks.emitted --record        # after an intended change: record the hashes

Every def of the examples and of ``emitted.tc`` is emitted with all presets and with 20 random
options each for the CPU and for GPUs, at its ``test`` sizes and at larger ones, for tensors with
several layouts. A part of them is also emitted for known CPUs, among them AArch64 and CPUs with a
matrix unit. The devices are data, so the machine makes no difference.
``benchmarks/results/emitted.json.gz`` stores the hashes and the options. The options were drawn
once and stay the same, even if search spaces change. ``--record`` draws options for new defs.

Exit codes: 1 if anything differs from the recorded hashes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tcl.arrays.annotations import default_sizes, parse_sizes
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import A100, H200, T4, GpuProfile
from tcl.codegen.devices.known_cpus import PROFILES
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

HERE = Path(__file__).parent
TEXTS = {p.stem: p for p in (*(HERE.parent / "examples").glob("*.tc"), HERE / "emitted.tc")}
"""By name, all files with defs."""
KEPT = HERE / "results" / "emitted.json.gz"

RANDOM = 20
"""Random options of a def, for the CPU and for GPUs each."""
RANDOM_FOR_KNOWN = 4
"""For each known CPU."""
_AVX2 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma,+f16c"
_AVX512 = f"{_AVX2},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
_KIB, _MIB = 1 << 10, 1 << 20


def _cpu(name: str, features: str, bits: int, l2_bytes: int, threads: int) -> CpuProfile:
    triple, sizes = "x86_64-unknown-linux-gnu", (32 * _KIB, l2_bytes, 32 * _MIB)
    return CpuProfile(name, features, triple, bits, 2, *sizes, threads=threads)


CPUS = {
    "avx512": _cpu("skylake-avx512", _AVX512, 512, _MIB, 1),
    "avx512 2 threads": _cpu("skylake-avx512", _AVX512, 512, _MIB, 2),
    "avx2": _cpu("haswell", _AVX2, 256, 256 * _KIB, 1),
    "avx2 2 threads": _cpu("haswell", _AVX2, 256, 256 * _KIB, 2),
}
KNOWN = {p.title: p for p in PROFILES if p.title in ("Sapphire Rapids", "Graviton3")}
"""CPUs for which a part of the defs is emitted."""
EVERY_CPU = {**CPUS, **KNOWN}
GPUS = {profile.name: profile for profile in (H200, A100, T4)}
WAYS = ("plain", "unaligned", "strided", "unchecked")
"""How tensors lie in memory: row-major and aligned; row-major, and aligned to elements or not at
all; with gaps, or the last two axes exchanged. The last is as the first, with subscripts that are
not checked."""
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Case:
    """One def with options, for a device."""

    target: str
    """Among ``EVERY_CPU`` or ``GPUS``."""
    name: str
    """``file.def``."""
    sizes: str
    """``M=128,N=64``."""
    way: str
    """Among ``WAYS``."""
    options: str
    """As JSON."""

    @property
    def kind(self) -> str:
        """``cpu`` or ``cuda``."""
        return "cpu" if self.target in EVERY_CPU else "cuda"

    def __str__(self) -> str:
        return f"{self.target}: {self.name}({self.sizes}), {self.way}: {self.options}"


# How a def becomes code. All that has to follow when modules or functions get other names.


@cache
def definitions(file: str) -> Mapping[str, CheckedDef]:
    """The defs of a file."""
    return check(TEXTS[file].read_text("utf-8"), f"{file}.tc")


@cache
def sized(name: str, sizes: str) -> SizedDef:
    """A def for its sizes."""
    file, entry = name.split(".")
    checked = definitions(file)[entry]
    values = parse_sizes(sizes, checked)
    return infer(checked, {t.name: input_shape(t, values) for t in checked.inputs})


def on_cpu(at: SizedDef, options: MappingOptions, device: CpuProfile, way: str) -> list[str]:
    """The kernel as LLVM IR, and what else a run needs."""
    given = on_cpu_at(at, way)
    program = schedule(at, options, device, given)
    source = emit_program(program, device, unchecked=way == "unchecked")
    worth = with_threads_worth(lower(at, given), device).threads
    return [source.text, repr((astuple(kernel_code(program, source, b"", device)), worth))]


def on_gpu(at: SizedDef, options: MappingOptions, device: GpuProfile, way: str) -> list[str]:
    """The kernels as CUDA C++, and what else a run needs."""
    module = emit_module(at, options, device, on_gpu_at(at, way), way == "unchecked")
    launches = [(x.name, x.blocks, x.threads, x.shared, x.tensors) for x in module.launches]
    tensors = [
        (t.name, t.role.name, t.layout.type.name, t.layout.extents, t.layout.strides)
        for t in module.tensors
    ]
    return [module.source, repr((launches, tensors, [astuple(s) for s in module.sites]))]


def on_cpu_at(at: SizedDef, way: str) -> dict[str, ir.Layout]:
    """How the tensors lie, for a CPU."""
    found = cpu_layouts(at, _strides(at, way))
    if way in ("plain", "unchecked"):
        return found
    return {name: replace(layout, alignment=1) for name, layout in found.items()}


def on_gpu_at(at: SizedDef, way: str) -> dict[str, ir.Layout]:
    """How the tensors lie, for a GPU."""
    strides = _strides(at, way)
    wide = {"unaligned": [], "strided": [*strides][::2]}.get(way, [*strides])
    return gpu_layouts(at, strides, wide)


def _strides(at: SizedDef, way: str) -> dict[str, tuple[int, ...]]:
    """In bytes."""
    found = {}
    for number, t in enumerate(at.checked.inputs + at.checked.outputs):
        plain = ir.contiguous(t.type, at.shapes[t.name], at.origins[t.name])
        strides = plain.strides
        if way == "strided" and number % 2 and len(strides) > 1:
            strides = (*strides[:-2], plain.itemsize, plain.itemsize * plain.extents[-2])
        elif way == "strided" and strides:
            strides = tuple(3 * s for s in strides)
        found[t.name] = strides
    return found


def search_space(case: Case) -> GpuMappingSpace | MappingSpace:
    """What a search would draw options from."""
    at = sized(case.name, case.sizes)
    if case.target in GPUS:
        return GpuMappingSpace(lower(at, on_gpu_at(at, case.way)), GPUS[case.target])
    return MappingSpace(lower(at, on_cpu_at(at, case.way)), EVERY_CPU[case.target])


# What is compared.


def fingerprint(case: Case) -> str:
    """A hash of what is emitted, or ``REFUSED``, whatever the words."""
    at, options = sized(case.name, case.sizes), MappingOptions.from_json(case.options)
    try:
        if case.target in EVERY_CPU:
            texts = on_cpu(at, options, EVERY_CPU[case.target], case.way)
        else:
            texts = on_gpu(at, options, GPUS[case.target], case.way)
    except OptionsError:
        return REFUSED
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def fingerprints(cases: Sequence[Case]) -> list[str]:
    """Of some cases, in a process that warns of nothing."""
    warnings.simplefilter("ignore")
    found = []
    for case in cases:
        try:
            found.append(fingerprint(case))
        except Exception as error:  # the others are to be heard of, too
            found.append(f"failed: {type(error).__name__}: {error}".splitlines()[0])
    return found


def whole(found: Mapping[Case, str], kind: str) -> str:
    """One hash over all of a kind, in the order of the cases' texts."""
    lines = sorted(f"{case}: {said}\n" for case, said in found.items() if case.kind == kind)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# Which cases there are.


def _of_two_sizes(name: str) -> tuple[str, str]:
    """The ``test`` sizes of a def, and larger ones, in a process that warns of nothing."""
    warnings.simplefilter("ignore")
    file, entry = name.split(".")
    checked = definitions(file)[entry]
    both = [parse_sizes("test", checked), default_sizes(checked)]
    small, large = (",".join(f"{k}={v}" for k, v in sizes.items()) for sizes in both)
    return small, large


def drawn(name: str) -> list[Case]:
    """The cases of a def: presets, and random options."""
    small, large = _of_two_sizes(name)
    cases = []
    for target in (*CPUS, *GPUS):
        for preset in PRESETS:
            for sizes, way in ((small, "plain"), (large, "plain"), (large, "strided")):
                if way == "plain" or preset != "conv":
                    cases.append(Case(target, name, sizes, way, _preset(preset)))
    for targets in (CPUS, GPUS):
        rng = random.Random(f"{name} {next(iter(targets))}")
        for number in range(RANDOM):
            sizes = large if number % 2 else small
            case = Case(rng.choice([*targets]), name, sizes, rng.choice(WAYS), "")
            cases.append(replace(case, options=_random(rng, case, partly=number % 5 > 2)))
    return list(dict.fromkeys(cases))


def drawn_for_known(name: str) -> list[Case]:
    """The cases of a def for known CPUs: the default, and random options."""
    small, large = _of_two_sizes(name)
    cases = []
    for target in KNOWN:
        cases += [Case(target, name, sizes, "plain", _preset("mlp")) for sizes in (small, large)]
        rng = random.Random(f"{name} {target}")
        for number in range(RANDOM_FOR_KNOWN):
            case = Case(target, name, large if number % 2 else small, rng.choice(WAYS), "")
            cases.append(replace(case, options=_random(rng, case, partly=False)))
    return list(dict.fromkeys(cases))


def names_for_known() -> list[str]:
    """The defs that are emitted for known CPUs: those on narrow numbers, and every fourth."""

    def narrow(name: str) -> bool:
        file, entry = name.split(".")
        return any(t.type.itemsize < 4 for t in definitions(file)[entry].inputs)

    names = all_names()
    return [name for k, name in enumerate(names) if k % 4 == 0 or narrow(name)]


def _preset(name: str) -> str:
    return MappingOptions(name).to_json()


def _random(rng: random.Random, case: Case, *, partly: bool) -> str:
    """Options as a search draws them; ``partly``: such that some choices are left to a preset."""
    space = search_space(case)
    config = space.space.sample(rng)
    if config is None:
        return _preset(rng.choice(PRESETS))
    data = space.to_options(config).as_dict()
    if partly:
        nests = [
            {k: v for k, v in nest.items() if rng.random() < 0.5} if rng.random() < 0.8 else {}
            for nest in data.get("nests", [])
        ]
        data = {"preset": rng.choice(PRESETS), "nests": nests}
        if nests and rng.random() < 0.3:
            data["default"] = nests.pop(rng.randrange(len(nests)))
        if rng.random() < 0.3:
            data["merge"] = rng.random() < 0.5
    return MappingOptions.from_dict(data).to_json()


def all_names() -> list[str]:
    """Of all defs."""
    return [f"{file}.{entry}" for file in sorted(TEXTS) for entry in definitions(file)]


# What is kept.


def read() -> dict[Case, str]:
    """The cases and what was emitted for each."""
    if not KEPT.exists():
        return {}
    data = json.loads(gzip.decompress(KEPT.read_bytes()))
    return {
        Case(target, name, sizes, way, _json(options)): said
        for name, by_sizes in data.items()
        for sizes, rows in by_sizes.items()
        for target, way, options, said in rows
    }


def _json(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def write(found: Mapping[Case, str]) -> None:
    """Keep this. The same cases give the same bytes."""
    data: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for case, said in found.items():
        row = [case.target, case.way, json.loads(case.options), said]
        data[case.name][case.sizes].append(row)
    text = json.dumps(data, separators=(",", ":"))
    KEPT.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emitted", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every Nth case")
    parser.add_argument("--record", action="store_true", help="record the results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.record and given.sample != 1:
        parser.error("--record takes all cases, and no sample")
    start, kept = time.perf_counter(), read()
    # Workers begin alike, and with other hash seeds than each other's.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
        cases = list(kept)[:: given.sample]
        if given.record:
            known = {case.name for case in kept if case.target not in KNOWN}
            new = [name for name in all_names() if name not in known]
            cases += [case for found in pool.map(drawn, new) for case in found]
            known = {case.name for case in kept if case.target in KNOWN}
            new = [name for name in names_for_known() if name not in known]
            cases += [case for found in pool.map(drawn_for_known, new) for case in found]
        groups = _grouped(cases)
        made = zip(groups, pool.map(fingerprints, groups), strict=True)
        found = {case: said for group, all_ in made for case, said in zip(group, all_, strict=True)}
    for line in said_of(found):
        print(line)
    different = [case for case in cases if case in kept and found[case] != kept[case]]
    for case in different[:20]:
        print(f"{case}: {kept[case]} was kept, {found[case]} is found")
    if len(different) > 20:
        print(f"... and {len(different) - 20} more")
    print(f"{len(different)} of {len(cases)} differ, {time.perf_counter() - start:.0f} s")
    if given.record:
        write({case: found[case] for case in cases})
        return 0
    return 1 if different or not kept else 0


def _grouped(cases: Iterable[Case]) -> list[list[Case]]:
    """Those of a def for a kind of device together."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.name, case.kind].append(case)
    return list(groups.values())


def said_of(found: Mapping[Case, str]) -> Iterator[str]:
    """Counts, and the hash over all, for each kind of device."""
    for kind in ("cpu", "cuda"):
        said = Counter(_sort(s) for case, s in found.items() if case.kind == kind)
        defs = {case.name for case in found if case.kind == kind}
        counts = ", ".join(f"{count} {what}" for what, count in sorted(said.items()))
        yield f"{kind}: {len(defs)} defs, {counts}: {whole(found, kind)}"


def _sort(said: str) -> str:
    return said if said == REFUSED else "failed" if said.startswith("failed") else "emitted"


if __name__ == "__main__":
    sys.exit(main())
