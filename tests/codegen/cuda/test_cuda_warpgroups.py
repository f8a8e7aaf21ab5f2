"""Products that warpgroups of sm_90 multiply, both factors in shared memory."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import outputs_of
from cuda_checks import (
    Array,
    Case,
    Work,
    case_of,
    check_cases,
    emulator_only,
    why_not,
    work_of_text,
)
from cuda_modules import needs_nvrtc
from places import ROOT
from program_builder import numpy_type
from sampling import swept
from tensor_products import FORMS, accepted, work

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emulator import EmulationError, compile_modules
from tcl.codegen.cuda.run import compile as compiling
from tcl.codegen.devices.banks import in_slabs
from tcl.codegen.devices.gpu import A100, B200, H100, RTX_5090
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import plan, schedule
from tcl.common.errors import OptionsError

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

TYPES = ("float16", "bfloat16")


def by_warpgroups(groups: int, columns: int, buffers: int, **others: Any) -> NestOptions:
    """Blocks of so many warpgroups along rows, and so many columns."""
    own = NestOptions(
        chunk=(64 * groups, columns),
        threads=(32 * groups, 4),
        vectorize=(1, 2),
        register=(2, columns // 8, 64),
        tile=(0, 0, 64),
        stage=(2, 2),
        buffers=buffers,
        mma=(0, 1, 2),
    )
    return replace(own, **others)


def options(groups: int, columns: int, buffers: int, **others: Any) -> MappingOptions:
    return MappingOptions().with_nest(0, by_warpgroups(groups, columns, buffers, **others))


def cases(type_: str, seeds: range) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"{type_} {seed}")
        m, n, k = (rng.randint(1, 200) for _ in range(3))
        if rng.random() < 0.7:
            m, n, k = (-(-x // 8) * 8 for x in (m, n, k))
        one = work(rng.choice(list(FORMS)), type_, (m, n, k), epilogue=rng.random() < 0.3)
        own = options(rng.choice((1, 2)), rng.choice((64, 64, 128)), rng.choice((1, 2, 3, 4)))
        if accepted(one, own):
            yield case_of(one, own, title=f"{m}x{n}x{k} ")


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seeds", swept([range(4)], [range(100, 200)]), ids=str)
def test_products_of_warpgroups_agree_with_the_reference(type_: str, seeds: range) -> None:
    found = list(cases(type_, seeds))
    assert len(found) >= len(seeds) / 2
    assert all("wgmma_m64" in c.module.source for c in found)
    check_cases(found).none()


def test_wide_blocks_parts_of_sums_and_batches() -> None:
    """256 columns, whose rows are cut into four pieces; a split reduction; a third dimension."""
    wide = work("plain", "float16", (128, 256, 128))
    parts = work("second turned", "bfloat16", (64, 64, 512), epilogue=True)
    own = by_warpgroups(1, 64, 3, split=(0, 0, 2))
    batched = batches("float16", (2, 128, 72, 200))
    found = [
        case_of(wide, options(2, 256, 3)),
        case_of(parts, MappingOptions().with_nest(0, own)),
        case_of(batched, MappingOptions().with_nest(0, third(by_warpgroups(2, 64, 3)))),
    ]
    assert all("wgmma_m64" in c.module.source for c in found)
    check_cases(found).none()


def third(own: NestOptions) -> NestOptions:
    """The same for a nest with a dimension before these."""
    assert own.chunk and own.threads and own.register and own.tile
    return replace(
        own,
        chunk=(1, *own.chunk),
        threads=(1, *own.threads),
        register=(1, *own.register),
        tile=(0, *own.tile),
        vectorize=(2, 2),
        mma=(1, 2, 3),
    )


def batches(type_: str, sizes: tuple[int, int, int, int]) -> Work:
    b, m, n, k = sizes
    rng = np.random.default_rng(5)
    source = (
        f"def f({type_}(B, M, K) X, {type_}(B, N, K) Y) -> (C) {{\n"
        "    C(b, m, n) +=! float32(X(b, m, k)) * float32(Y(b, n, k))\n}"
    )
    arrays = (rng.integers(-4, 5, shape).astype(type_) for shape in ((b, m, k), (b, n, k)))
    return work_of_text(source, *arrays)


@pytest.mark.parametrize("type_", TYPES)
def test_pairs_of_threads_exchange_16_bit_results(type_: str) -> None:
    """Of whole blocks: a store of a warp fills its sectors then."""
    by_warps = NestOptions(
        chunk=(32, 64),
        threads=(16, 8),
        vectorize=(1, 2),
        register=(2, 4, 16),
        tile=(0, 0, 32),
        stage=(2, 2),
        buffers=3,
        mma=(0, 1, 2),
    )
    found = []
    for own in (by_warps, by_warpgroups(1, 64, 3)):
        for sizes, whole in (((64, 128, 128), True), ((64, 136, 128), False)):
            one = narrow_results(type_, sizes)
            found.append(case_of(one, MappingOptions().with_nest(0, own)))
            assert ("store_exchanged(" in found[-1].module.source) == whole
    check_cases(found).none()


def narrow_results(type_: str, sizes: tuple[int, int, int]) -> Work:
    m, n, k = sizes
    rng = np.random.default_rng(7)
    source = (
        f"def f({type_}(M, K) X, {type_}(K, N) Y) -> ({type_}(M, N) C) {{\n"
        "    C(m, n) +=! X(m, k) * Y(k, n)\n}"
    )
    arrays = (rng.integers(-4, 5, shape).astype(numpy_type(type_)) for shape in ((m, k), (k, n)))
    return work_of_text(source, *arrays)


@emulator_only
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (("fence_panels();", ""), "no fence: .* multiplies what another thread wrote"),
        (("begin_products();", ""), "no fence: .* begins products"),
        (("wait_copies<1>();", "wait_copies<2>();"), "asynchronous copy"),
    ],
)
def test_faults_are_found(wrong: tuple[str, str], problem: str) -> None:
    one = work("plain", "float16", (128, 64, 448))
    with pytest.raises(EmulationError, match=problem):
        run_changed(one, *wrong)


@emulator_only
def test_panels_are_multiplied_until_somebody_has_waited() -> None:
    """Whoever fills them before that changes the results."""
    one = work("plain", "float16", (128, 64, 448))
    np.testing.assert_array_equal(run_changed(one, "()", "()"), one.expected[0])
    found = run_changed(one, "wait_for_earlier_products();", "")
    assert (found != one.expected[0]).any()


def run_changed(one: Work, call: str, instead: str) -> Array:
    """The result of a kernel with other calls."""
    module = case_of(one, options(2, 64, 4)).module
    functions, kernel = module.source.split('extern "C"')
    assert call in kernel
    source = f'{functions}extern "C"{kernel.replace(call, instead)}'
    arrays = dict(zip(one.names, (*one.inputs, *outputs_of(one.sized)), strict=True))
    compile_modules([replace(module, source=source)])[0].run(arrays)
    return arrays["C"]


def test_vectors_of_panels_change_places_as_tensor_cores_read_them() -> None:
    """PTX ISA, "128-byte swizzle": of 8 rows of 128 bytes, in groups one after the other."""
    row, k, n = 512, np.arange(8)[:, None], np.arange(0, 512, 16)[None]
    found = in_slabs(k * row + n, row)
    np.testing.assert_array_equal(found, n // 128 * 1024 + k * 128 + (n % 128 ^ k * 16))
    assert sorted(found.ravel()) == list(range(0, 8 * row, 16))


def test_refusals() -> None:
    one = work("plain", "float16", (128, 128, 128))
    for device in (A100, B200, RTX_5090):
        with pytest.raises(OptionsError, match="has no warpgroups: 64 points need sm_90"):
            schedule(one.sized, options(2, 64, 3), device)
    for other in ({"threads": (16, 4), "chunk": (32, 64)}, {"register": (2, 4, 64)}):
        with pytest.raises(OptionsError, match=r"^mma: nest s0: warpgroups need threads"):
            schedule(one.sized, options(2, 64, 3, **other), H100)
    deep = work("plain", "float16", (128, 128, 256))
    with pytest.raises(OptionsError, match=r"^mma: nest s0: the panel of A does not have 64 point"):
        schedule(deep.sized, options(2, 64, 3, tile=(0, 0, 128)), H100)


def test_large_products_are_multiplied_by_warpgroups_by_default() -> None:
    """Of sm_90 alone: sm_100 and others have none."""
    one = work("plain", "float16", (1024, 1024, 1024))
    for device, depth in ((A100, 16), (H100, 64), (B200, 16)):
        own = next(iter(plan(one.sized, MappingOptions("mlp"), device).options.values()))
        assert own.mma and own.register and own.register[own.mma[2]] == depth


@needs_nvrtc
@pytest.mark.parametrize("form", FORMS)
def test_machine_code(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning of the assembler that products wait for each other (C75xx), none that is read
    before it is waited for, no spills."""
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("benchmarks are in the source tree only")
    from benchmarks.sass import kernels, nvdisasm

    if nvdisasm() is None:
        pytest.skip("needs nvidia-cuda-nvdisasm")

    said: list[str] = []
    compiled = compiling._compile_source

    def noting(*arguments: Any) -> tuple[bytes, str]:
        code, log = compiled(*arguments)
        said.append(log)
        return code, log

    monkeypatch.setattr(compiling, "_compile_source", noting)
    for epilogue in (False, True):
        one = work(form, "float16", (512, 512, 512), epilogue=epilogue)
        for groups, columns, buffers in ((2, 256, 4), (2, 128, 3)):
            module = emit_module(one.sized, options(groups, columns, buffers), H100)
            cubin = compiling.compile_cubin(module, H100)
            assert not any(used.spill_stores for used in cubin.resources)
            lines = kernels(cubin.code)["f_0"]
            products = [k for k, line in enumerate(lines) if line.base == "HGMMA"]
            wait = next(
                k
                for k, line in enumerate(lines)
                if line.name == "WARPGROUP.DEPBAR.LE" and line.operands[-1] == "0x0"
            )
            assert products and products[-1] < wait
            first = int(re.sub(r"\D", "", lines[products[0]].operands[0]))
            sums = {f"R{k}" for k in range(first, first + columns // 2)}
            between = [x for x in lines[products[0] : wait] if x.base != "HGMMA"]
            assert not [x for x in between if sums & set(x.operands)]
    assert not re.search(r"\(C75\d\d\)", "".join(said))
