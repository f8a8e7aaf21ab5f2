"""Every def of the suite as CUBINs for four architectures: they compile, and presets spill
nothing."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from itertools import product

import pytest
from cuda_checks import DEVICES, example_sizes
from cuda_modules import needs_nvrtc
from cuda_options import random_gpu_options
from sampling import sampled, swept

from examples import NAMES, definitions, sized_for
from tcl.arrays.annotations import parse_sizes, read_annotations
from tcl.bench.rows import SUITE, Row
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.gpu import H100, T4, GpuProfile
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.ranges.sized import SizedDef

pytestmark = needs_nvrtc
PRESETS = ("naive", "pointwise", "mlp")
RANDOM = 20
each_file = pytest.mark.parametrize("file", NAMES)


def check(module: CudaModule, device: GpuProfile, what: str, *, spills: bool) -> float:
    """Compiles a module; how long it took."""
    start = time.perf_counter()
    cubin = compile_cubin(module, device)
    seconds = time.perf_counter() - start
    assert cubin.code[:4] == b"\x7fELF"
    for launch, used in zip(module.launches, cubin.resources, strict=True):
        what = f"{what} {launch.name} {device.architecture}: {used}"
        assert launch.shared <= device.shared_per_block, what
        if not spills:
            assert not used.spill_stores and not used.spill_loads, what
    return seconds


def predict_rows() -> Iterator[tuple[str, SizedDef]]:
    """The suite for the sizes at which it is measured, each def once for each."""
    seen: dict[tuple[str, str], Row] = {}
    for row in SUITE:
        seen.setdefault((row.entry, row.sizes), row)
    for row in seen.values():
        yield row.name, sized_for(row.checked, row.values)


@pytest.mark.parametrize(("file", "name"), sampled(product(NAMES, PRESETS), 5))
def test_presets_become_cubins(file: str, name: str) -> None:
    """For one architecture each, in turn, so that all are taken."""
    for number, (entry, checked) in enumerate(definitions(file).items()):
        device = DEVICES[(number + PRESETS.index(name) + NAMES.index(file)) % len(DEVICES)]
        sized = sized_for(checked, example_sizes(file, entry))
        module = emit_module(sized, MappingOptions(name), device)
        check(module, device, f"{file}.{entry} {name}", spills=False)


@pytest.mark.parametrize("turn", swept([0], [1, 2, 3]))
def test_what_is_measured_spills_nothing(turn: int) -> None:
    """Every other row for one of two architectures; all for both, in the full sweep."""
    rows = list(predict_rows())
    for number, (name, sized) in enumerate(rows[turn % 2 :: 2], turn // 2):
        device = (T4, H100)[number % 2]
        module = emit_module(sized, MappingOptions("mlp"), device)
        check(module, device, name, spills=False)


@pytest.mark.slow
@each_file
def test_all_become_cubins_for_all_architectures(file: str) -> None:
    seconds = []
    for entry, checked in definitions(file).items():
        sized = sized_for(checked, example_sizes(file, entry))
        for device in DEVICES:
            for name in PRESETS:
                module = emit_module(sized, MappingOptions(name), device)
                seconds.append(check(module, device, f"{entry} {name}", spills=False))
            for number in range(RANDOM):
                rng = random.Random(f"{file}.{entry} {number}")
                options = random_gpu_options(rng, sized, device)
                module = emit_module(sized, options, device)
                seconds.append(check(module, device, f"{entry} {options}", spills=True))
    print(
        f"\n{file}: {len(seconds)} CUBINs, median {statistics.median(seconds):.3f} s, "
        f"longest {max(seconds):.2f} s"
    )


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.architecture)
def test_all_sizes_of_the_examples_spill_nothing(device: GpuProfile) -> None:
    for file in NAMES:
        for entry, checked in definitions(file).items():
            for label in read_annotations(checked).sizes:
                sized = sized_for(checked, dict(parse_sizes(label, checked)))
                module = emit_module(sized, MappingOptions("mlp"), device)
                check(module, device, f"{file}.{entry} {label}", spills=False)
