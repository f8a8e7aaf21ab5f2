"""Search spaces and scheduling agree about what cannot be: a configuration meets all constraints
just where its options are scheduled, and where it does not, the reason is the same sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from random import Random

import pytest

import examples
from examples import definitions, sized_for
from tcl.arrays.annotations import default_sizes, parse_sizes
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import A100, H200, T4, GpuProfile
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule as schedule_on_cpu
from tcl.codegen.schedule.gpu import schedule as schedule_on_gpu
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.gpu.mapping import GpuMappingSpace
from tcl.tuner.space.program_space import ProgramSpace
from tcl.tuner.space.search_space import Config, SearchSpace

DEFS = {f"{file}.{name}": definitions(file)[name] for file, name in examples.DEFS}
GPUS = (H200, A100, T4)
_X86, _KIB, _MIB = "x86_64-unknown-linux-gnu", 1 << 10, 1 << 20
CPUS = (
    CpuProfile("avx512", "+avx512vnni", _X86, 512, 2, 32 * _KIB, _MIB, 32 * _MIB, threads=2),
    CpuProfile("avx2", "+avx2,+sse2", _X86, 256, 2, 32 * _KIB, 256 * _KIB, 8 * _MIB),
)


def sized(checked: CheckedDef, *, small: bool) -> SizedDef:
    return sized_for(checked, parse_sizes("test", checked) if small else default_sizes(checked))


def candidates(space: SearchSpace, rng: Random) -> Iterator[Config]:
    """For ever: one that meets what the space asks for, any, and three that are hardly legal."""
    while True:
        drawn = space.sample(rng)
        assert drawn is not None
        yield drawn
        yield anything(space, rng)
        for _ in range(3):
            # Of spaces that are all legal, the last.
            tries = (anything(space, rng) for _ in range(40))
            yield next((c for c in tries if _illegal(space, c)), drawn)


def _illegal(space: SearchSpace, config: Config) -> str | None:
    """Why a configuration cannot be scheduled; None when it can."""
    values = space.values(config)
    return next(filter(None, (constraint(values) for constraint in space.constraints)), None)


def anything(space: SearchSpace, rng: Random) -> Config:
    """Any values, those of some knobs at an end more often than not."""
    ends = rng.random() < 0.5
    return tuple(
        rng.choice((k.choices[0], k.choices[-1])) if ends and rng.random() < 0.3 else k.sample(rng)
        for k in space.knobs
    )


def agreed(
    made: ProgramSpace, scheduled: Callable[[MappingOptions], object], config: Config
) -> bool:
    """Whether options are refused, by the space and by scheduling, with the same words."""
    space, refused = made.space, None
    try:
        scheduled(made.to_options(config))
    except OptionsError as error:
        refused = str(error)
    values = space.values(config)
    reasons = [reason for c in space.constraints if (reason := c(values)) is not None]
    told = f"{values}: the space says {reasons}, scheduling {refused}"
    assert bool(reasons) == (refused is not None), told
    assert refused is None or refused in reasons, told
    return bool(reasons)


def on_gpu(name: str, small: bool, profile: GpuProfile, count: int) -> Counter[bool]:
    """How many candidates were refused, and how many not."""
    definition = sized(DEFS[name], small=small)
    layouts = gpu_layouts(definition)
    space = GpuMappingSpace(lower(definition, layouts), profile)
    rng = Random(f"{name} {small} {profile.name}")
    scheduled = partial(_on_gpu, definition, profile)
    drawn = islice(candidates(space.space, rng), count)
    return Counter(agreed(space, scheduled, config) for config in drawn)


def _on_gpu(definition: SizedDef, profile: GpuProfile, options: MappingOptions) -> object:
    return schedule_on_gpu(definition, options, profile, gpu_layouts(definition))


def test_gpus() -> None:
    """Of every fourth example, five candidates at larger sizes."""
    refused: Counter[bool] = Counter()
    for name, profile in zip([*DEFS][::4], cycle(GPUS), strict=False):
        refused += on_gpu(name, False, profile, 5)
    assert 3 * refused[True] >= refused.total()


@pytest.mark.slow
def test_gpus_in_full() -> None:
    """More than 10,000 candidates."""
    refused: Counter[bool] = Counter()
    for name in DEFS:
        for profile in GPUS:
            for small, count in ((True, 5), (False, 45)):
                refused += on_gpu(name, small, profile, count)
    print(f"{refused.total()} candidates for GPUs, {refused[True]} of them refused")
    assert refused.total() > 10_000
    assert 3 * refused[True] >= refused.total()


AMX = replace(CPUS[0], name="amx", features="+amx-tile,+amx-int8,+amx-bf16,+avx512vnni")
PRODUCTS = {
    "sums of int8": "int8(M, K) A, int8(K, N) B) -> (int32(M, N) C)"
    "{ C(m, n) +=! int32(A(m, k)) * B(k, n) \n C(m, n) = C(m, n) * 2 }",
    "sums of bfloat16": "bfloat16(B, M, K) A, bfloat16(B, K, N) D) -> (C)"
    "{ C(b, m, n) +=! A(b, m, k) * D(b, k, n) }",
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_matrix_unit(name: str) -> None:
    (checked,) = check(f"def f({PRODUCTS[name]}").values()
    definition = infer(checked, {t.name: (200,) * t.rank for t in checked.inputs})
    refused = _on_cpu_of(definition, AMX, name, 20)
    assert refused[True] and refused[False]
    space = MappingSpace(lower(definition), AMX)
    chosen = space.from_options(MappingOptions("mlp"))
    assert chosen is not None
    assert space.to_options(chosen).nests[0].mma


def test_points_left_out() -> None:
    """A nest that may share chunks with the one that writes what its condition reads."""
    text = """def f(float(M, K) A, float(K, N) B) -> (S, C) {
        S(m, k) = A(m, k) + 1
        C(m, n) +=! S(m, k) > 0 ? A(m, k) * B(k, n) : 0
    }"""
    definition = infer(check(text)["f"], {"A": (64, 64), "B": (64, 512)})
    names = {k.name for k in MappingSpace(lower(definition), CPUS[1]).space.knobs}
    assert {"s1.skip", "s1.fuse"} <= names
    refused = _on_cpu_of(definition, CPUS[1], "skip", 60)
    assert refused[True] and refused[False]


def on_cpu(name: str, small: bool, device: CpuProfile, count: int) -> Counter[bool]:
    """How many candidates were refused, and how many not."""
    return _on_cpu_of(sized(DEFS[name], small=small), device, f"{name} {small}", count)


def _on_cpu_of(definition: SizedDef, device: CpuProfile, name: str, count: int) -> Counter[bool]:
    space = MappingSpace(lower(definition, cpu_layouts(definition)), device)
    rng = Random(f"{name} {device.name}")
    scheduled = partial(_on_cpu, definition, device)
    drawn = islice(candidates(space.space, rng), count)
    return Counter(agreed(space, scheduled, config) for config in drawn)


def _on_cpu(definition: SizedDef, device: CpuProfile, options: MappingOptions) -> object:
    return schedule_on_cpu(definition, options, device, cpu_layouts(definition))


def test_cpus() -> None:
    """Of every other example, five candidates, at larger sizes more often than not."""
    refused: Counter[bool] = Counter()
    for k, (name, device) in enumerate(zip([*DEFS][::2], cycle(CPUS), strict=False)):
        refused += on_cpu(name, k % 3 == 0, device, 5)
    assert 3 * refused[True] >= refused.total()


@pytest.mark.slow
def test_cpus_in_full() -> None:
    """More than 10,000 candidates."""
    refused: Counter[bool] = Counter()
    for name in DEFS:
        for device in CPUS:
            for small, count in ((True, 25), (False, 40)):
                refused += on_cpu(name, small, device, count)
    print(f"{refused.total()} candidates for CPUs, {refused[True]} of them refused")
    assert refused.total() > 10_000
    assert 3 * refused[True] >= refused.total()
