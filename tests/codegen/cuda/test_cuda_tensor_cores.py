"""Products on tensor cores: float16 and bfloat16, and float32 that is rounded to tf32."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from cuda_checks import DEVICES, Case, case_of, check_cases, why_not
from cuda_modules import needs_nvrtc
from sampling import swept
from tensor_products import FORMS, accepted, work

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.banks import matrix_wavefronts, swizzled
from tcl.codegen.devices.gpu import A100, H200
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import plan, schedule
from tcl.common.errors import OptionsError

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

DEPTH = {"float16": 16, "bfloat16": 16, "float32": 8}


def drawn(rng: random.Random, type_: str) -> NestOptions:
    """What tensor cores can be fed with."""
    depth = DEPTH[type_]
    rows, columns = 8 * rng.choice((1, 1, 2)), 4 * rng.choice((1, 2, 4))
    held = (2 * rng.choice((1, 1, 2)), rng.choice((1, 2, 3, 4)), depth)
    chunk = (rows * held[0], 2 * columns * held[1])
    return NestOptions(
        chunk=tuple(c * rng.choice((1, 1, 2)) for c in chunk),
        threads=(rows, columns),
        vectorize=(1, 2),
        register=held,
        tile=(0, 0, depth * rng.choice((1, 2, 3))),
        stage=(2, 2),
        buffers=rng.choice((1, 2, 3)),
        mma=(0, 1, 2),
    )


def cases(type_: str, seeds: range) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"{type_} {seed}")
        m, n, k = (rng.randint(1, 70) for _ in range(3))
        if rng.random() < 0.5:
            m, n, k = (-(-x // 8) * 8 for x in (m, n, k))
        one = work(rng.choice(list(FORMS)), type_, (m, n, k), epilogue=rng.random() < 0.3)
        tries = (MappingOptions().with_nest(0, drawn(rng, type_)) for _ in range(20))
        options = next((o for o in tries if accepted(one, o)), None)
        if options is not None:
            yield case_of(one, options, title=f"{m}x{n}x{k} ")


@pytest.mark.parametrize("type_", DEPTH)
@pytest.mark.parametrize("seeds", swept([range(6)], [range(100, 300)]), ids=str)
def test_products_on_tensor_cores_agree_with_the_reference(type_: str, seeds: range) -> None:
    found = list(cases(type_, seeds))
    assert len(found) >= len(seeds) / 2
    assert all("mma" in c.module.source for c in found)
    check_cases(found).none()


@pytest.mark.parametrize("type_", DEPTH)
def test_parts_of_sums_are_added_up_on_tensor_cores(type_: str) -> None:
    """Where the loops over a part go no further than it; else tensor cores are refused."""
    found = []
    for number, form in enumerate(FORMS):
        one = work(form, type_, (32 + number, 48, 192), epilogue=number == 2)
        own = drawn(random.Random(number), type_)
        own = replace(own, split=(0, 0, 2 + number % 2), tile=(0, 0, 32))
        options = MappingOptions().with_nest(0, own)
        if accepted(one, options):
            found.append(case_of(one, options, title=form))
    assert len(found) >= 3
    assert all("mma" in c.module.source for c in found)
    check_cases(found).none()
    ragged = work("plain", type_, (40, 48, 376))
    own = replace(drawn(random.Random(1), type_), split=(0, 0, 2), tile=(0, 0, 32))
    assert not accepted(ragged, MappingOptions().with_nest(0, own))


@needs_nvrtc
@pytest.mark.parametrize("type_", DEPTH)
def test_products_on_tensor_cores_become_cubins(type_: str) -> None:
    one = next(cases(type_, range(8)))
    for device in DEVICES:
        if device.capability < (8, 0):
            with pytest.raises(
                OptionsError, match=r"^mma: nest s0: T4 has no tensor cores for these"
            ):
                emit_module(one.work.sized, one.options, device)
            continue
        module = emit_module(one.work.sized, one.options, device)
        assert not any(used.spill_stores for used in compile_cubin(module, device).resources)


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_sixteen_bit_products_use_tensor_cores_by_default(type_: str) -> None:
    found = []
    for number, form in enumerate(FORMS):
        one = work(form, type_, (70, 90, 50), epilogue=number % 2 == (type_ == "float16"))
        found.append(case_of(one, MappingOptions("mlp"), title=form))
    assert all("mma" in c.module.source for c in found)
    check_cases(found).none()


def test_split_products_use_tensor_cores_by_default() -> None:
    one = work("plain", "bfloat16", (128, 4096, 4096))
    (options, _) = plan(one.sized, MappingOptions("mlp"), A100).options.values()
    assert options.mma == (1, 2, 3)


def test_float32_is_not_rounded_unless_asked_for() -> None:
    one = work("plain", "float32", (64, 64, 64))
    assert "mma" not in case_of(one, MappingOptions("mlp")).module.source


def pipelines(options: NestOptions, type_: str = "float16") -> list[ir.Pipeline]:
    sized = work("plain", type_, (256, 256, 256)).sized
    built = schedule(sized, MappingOptions().with_nest(0, options), H200)
    each = (s for kernel in built.kernels for s in statements(kernel.body))
    return [s for s in each if isinstance(s, ir.Pipeline)]


LARGE = NestOptions(
    chunk=(128, 256),
    threads=(16, 16),
    vectorize=(1, 2),
    register=(8, 8, 16),
    tile=(0, 0, 64),
    stage=(2, 2),
    buffers=3,
    mma=(0, 1, 2),
)


def test_fragments_are_read_a_step_ahead() -> None:
    (pipeline,) = pipelines(LARGE)
    assert pipeline.steps is not None and pipeline.steps.count == 4


@pytest.mark.parametrize(
    "options",
    [
        replace(LARGE, tile=(0, 0, 48)),  # which set a step has is not known
        replace(LARGE, tile=(0, 0, 16)),
        replace(LARGE, register=(16, 8, 16), chunk=(256, 256), buffers=2),  # too many registers
        replace(LARGE, threads=(32, 32), chunk=(256, 512), buffers=2),
    ],
)
def test_fragments_are_read_when_they_are_needed(options: NestOptions) -> None:
    (pipeline,) = pipelines(options)
    assert pipeline.steps is None


@pytest.mark.parametrize("row", [32, 64, 128, 256, 512])
def test_vectors_change_places_so_that_matrices_are_read_without_conflicts(row: int) -> None:
    places = np.arange(16 * row)
    changed = swizzled(places[None], row)[0]
    assert sorted(changed) == list(places)
    assert (changed // 16 * 16 + places % 16 == changed).all()
    assert (changed // 128 == places // 128).all()  # copies write whole lines
    for first in range(0, row, 16):
        rows = swizzled(first + row * np.arange(8)[None], row)
        assert matrix_wavefronts(rows, rows >= 0, 1) == 1
