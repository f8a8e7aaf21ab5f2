"""Kernels for machines that are not here: what they compute, and what they need to be linked with.

AArch64 is run by QEMU; x86-64 with fewer features than this machine's is run as it is.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import foreign_kernels
import numpy as np
import pytest
from compiled_kernels import compile_cpu
from foreign_kernels import Program, build, declared, undefined
from machine_cases import CASES, Case, Work, work
from places import ROOT

from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import DEFAULT
from tcl.tuner.space.cpu.mapping import MappingSpace

NAMES = [c.name for c in CASES]
SAMPLE = [c for k, c in enumerate(CASES) if k % 7 == 5 or "gather" in c.name]
HOW_MANY = pytest.mark.parametrize(
    "cases",
    [pytest.param(SAMPLE, id="sample"), pytest.param(CASES, id="all", marks=pytest.mark.slow)],
)
"""A sample of types, formulas and threads in CI; the rest in the full sweep."""


GATHER = CASES[NAMES.index("checked gather")]


def known(name: str) -> CpuProfile:
    found = find(name)
    assert found is not None
    return found


def beyond(case: Case) -> Work:
    """A gather with an index that is out of range, in the place of the last one."""
    what = work(case)
    index = what.inputs[1].copy()
    index.flat[-1] = 77
    return replace(what, inputs=(what.inputs[0], index, *what.inputs[2:]))


# AArch64, by QEMU: a machine of 2012, and one with all that came since.


@pytest.mark.skipif(foreign_kernels.why_not() is not None, reason=str(foreign_kernels.why_not()))
@pytest.mark.parametrize(("name", "model"), [("AArch64", "cortex-a57"), ("Neoverse V1", "max")])
@HOW_MANY
def test_on_aarch64(name: str, model: str, cases: Sequence[Case], tmp_path: Path) -> None:
    program = Program(cases, known(name), tmp_path)
    calls = [(k, work(case)) for k, case in enumerate(cases)]
    gather = cases.index(GATHER)
    *answers, failed = program.run(model, [*calls, (gather, beyond(GATHER))])
    for case, answer in zip(cases, answers, strict=True):
        assert answer.result == 0 and answer.intact, case.name
        assert not work(case).wrong(answer.outputs), case.name
    sites = program.built[gather].code.sites
    assert failed.result == 1 and failed.intact
    assert failed.failed[1] == 77 and sites[failed.failed[0]].extent == 19


# x86-64 with fewer features.

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
_LONGER = {"x86-64": r"[xyz]mm\d+.*[xyz]mm\d+.*[xyz]mm\d+|[yz]mm|\bv\w", "x86-64-v2": r"[yz]mm"}
_LONGER["x86-64-v3"] = r"zmm|\{%?k\d\}|%[xy]mm(?:1[6-9]|[23]\d)"
"""What the assembly of a level may not name."""


@pytest.mark.parametrize("level", LEVELS)
@HOW_MANY
def test_on_x86_with_fewer_features(level: str, cases: Sequence[Case]) -> None:
    device = known(level)
    if not device.present <= host_cpu().present | {"64bit", "cmov"}:
        pytest.skip(f"this machine is no {level}")
    for case in cases:
        what = work(case)
        target = replace(device, threads=case.threads)
        kernel = compile_cpu(what.sized, case.options, device=target)
        outputs = what.poisoned()
        kernel(what.inputs, outputs)
        assert not what.wrong(outputs), case.name
        if level in _LONGER:
            found = re.search(rf"^\s+\w.*(?:{_LONGER[level]})", kernel.asm, re.MULTILINE)
            assert not found, f"{case.name}: {found and found[0]}"
    kernel = compile_cpu(work(GATHER).sized, GATHER.options, device=device)
    with pytest.raises(IndexError, match="77"):
        kernel(beyond(GATHER).inputs, work(GATHER).poisoned())


# Everything compiles, and calls nothing but what its source says.

_OF_C = {"memset", "_GLOBAL_OFFSET_TABLE_"}
_LIBRARY = {"fmod", "fmodf"}
"""Which LLVM calls for a remainder of floats on every machine."""
_WITHOUT_FMA = {"fma", "fmaf"}
"""The built-in function; no formula."""
MACHINES = ("AArch64", "Neoverse V2", "x86-64", "x86-64-v3")


def check_symbols(name: str, sized: SizedDef, options: MappingOptions, device: CpuProfile) -> None:
    built = build(sized, options, device)
    allowed = declared(built.text) | _OF_C
    if "frem" in built.text:
        allowed |= _LIBRARY
    if not device.fused and "fma(" in sized.checked.source.text:
        allowed |= _WITHOUT_FMA
    assert undefined(built.code.object_code) <= allowed, f"{name} on {device.name}"


@pytest.mark.parametrize("machine", MACHINES)
def test_objects_need_what_their_source_says(machine: str) -> None:
    for case in SAMPLE[::2]:
        check_symbols(case.name, work(case).sized, case.options, known(machine))


def test_a_call_of_the_library_would_be_found() -> None:
    case = CASES[NAMES.index("float32 functions")]
    built = build(work(case).sized, case.options, replace(known("x86-64"), features="+fma"))
    assert "llvm.fma" in built.text
    plain = build(work(case).sized, case.options, known("x86-64"))
    assert "llvm.fma" not in plain.text and undefined(plain.code.object_code) <= _OF_C


def all_defs() -> list[tuple[str, SizedDef]]:
    """Every def of the examples at its test sizes, and every row of the benchmark suite."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    from benchmarks import emitted
    from tcl.arrays.annotations import parse_sizes
    from tcl.arrays.random_inputs import input_shape
    from tcl.bench.rows import ROWS
    from tcl.grammar.ranges.inference import infer

    found = []
    for name in emitted.all_names():
        file, entry = name.split(".")
        checked = emitted.definitions(file)[entry]
        values = parse_sizes("test", checked)
        found.append((name, values, checked))
    found += [(row.name, row.values, row.checked) for row in ROWS]
    return [
        (name, infer(checked, {t.name: input_shape(t, values) for t in checked.inputs}))
        for name, values, checked in found
    ]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="benchmarks are in the source tree")
@pytest.mark.parametrize("machine", MACHINES)
def test_everything_compiles_for(machine: str) -> None:
    """Default options on one thread and several, and random ones."""
    warnings.simplefilter("ignore")
    rng = random.Random(machine)
    for name, sized in all_defs():
        for threads in (1, 2):
            device = replace(known(machine), threads=threads)
            check_symbols(name, sized, DEFAULT, device)
            space = MappingSpace(lower(sized), device)
            config = space.space.sample(rng)
            if config is not None:
                check_symbols(name, sized, space.to_options(config), device)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_shown_of_them(machine: str) -> None:
    device, case = known(machine), CASES[0]
    built = build(work(case).sized, case.options, device)
    text = assembly(built.text, device)
    register = r"fmla\s+v\d+" if device.architecture == "aarch64" else r"%?[xy]mm\d+"
    assert re.search(register, text)
    assert np.isfinite(work(case).expected[0]).all()
