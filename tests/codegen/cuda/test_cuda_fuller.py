"""Kernels that are told how many blocks have to fit, where that takes a few registers less."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.run import compile as compiler
from tcl.codegen.cuda.run.compile import Resources, compile_cubin, fuller
from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.devices.occupancy import promised
from tcl.grammar.sizes.varying import Size

KERNEL = 'extern "C" __global__ void __launch_bounds__({})\n{}(float *C)\n{{\n}}\n'


def module(
    bounds: str = "256", threads: int = 256, blocks: int = 1024, shared: int = 0
) -> CudaModule:
    """Two kernels, of which the second is a small one."""
    source = KERNEL.format(bounds, "f_1") + KERNEL.format("256", "f_10")
    launches = (Launch("f_1", blocks, threads, shared, ()), Launch("f_10", 1, 256, 0, ()))
    return CudaModule(source, launches, ())


def taken(registers: int, spilled: int = 0) -> tuple[Resources, ...]:
    first = Resources("f_1", registers, 0, spilled, 0, 0)
    return first, Resources("f_10", 32, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("given", "registers", "bounds"),
    [
        (module(), 128, None),  # two fit
        (module(), 129, "256, 2"),
        (module(), 136, "256, 2"),
        (module(), 137, None),  # too many to do without
        (module(), 82, "256, 3"),
        (module(), 66, None),  # three fit: one more is not much
        (module(), 255, None),
        (module(blocks=132), 129, None),  # one each for the multiprocessors is all there are
        (module(shared=120 << 10), 129, None),  # nor would shared memory let another one in
        (module("128, 1", 128), 170, "128, 3"),
        (module("128, 1", 128), 204, None),
    ],
)
def test_bounds(given: CudaModule, registers: int, bounds: str | None) -> None:
    found = fuller(given, taken(registers), H200)
    if bounds is None:
        assert found is None
    else:
        wanted = KERNEL.format(bounds, "f_1") + KERNEL.format("256", "f_10")
        assert found == wanted


@pytest.mark.parametrize(
    ("registers", "threads", "blocks", "bounds"),
    [
        (163, 256, 1024, "256, 2"),  # as many as for known sizes
        (167, 64, 1024, "64, 8"),
        (171, 256, 1024, None),
        (128, 256, 1024, None),
        (96, 128, 1024, None),  # enough threads as it is
        (204, 64, 528, None),  # all of them fit
        (204, 64, Size.named("M", least=1, most=4095, value=528), "64, 6"),  # not of all sizes
    ],
)
def test_bounds_where_sizes_vary(
    registers: int, threads: int, blocks: int, bounds: str | None
) -> None:
    given = module(str(threads), threads, blocks)
    varying = replace(given.launches[0], sizes=(3,))
    found = fuller(replace(given, launches=(varying, given.launches[1])), taken(registers), H200)
    assert (None if found is None else re.findall(r"\(([^()]*)\)\nf_1\(", found)) == (
        None if bounds is None else [bounds]
    )


@pytest.mark.parametrize(("spilled", "better"), [(0, True), (8, False)])
def test_what_would_spill_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, spilled: int, better: bool
) -> None:
    """129 registers at first, 128 when asked for, with or without spills."""

    def survived(source: str, profile: GpuProfile, *_: object) -> tuple[bytes, str]:
        asked = "(256, 2)\nf_1" in source
        lines = []
        for name, registers in (("f_1", 128 if asked else 129), ("f_10", 32)):
            stores = spilled if asked else 0
            lines += [
                f"ptxas info    : Compiling entry function '{name}' for 'sm_90'",
                f"ptxas info    : Function properties for {name}",
                f"    0 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads",
                f"ptxas info    : Used {registers} registers, used 0 barriers",
            ]
        return re.sub(r"\s", "", source).encode(), "\n".join(lines)

    monkeypatch.setattr(compiler, "_survived", survived)
    found = compile_cubin(module(), H200)
    assert found.resources[0].registers == (128 if better else 129)
    assert (b"(256,2)f_1" in found.code) is better


@pytest.mark.parametrize(
    ("threads", "blocks", "shared", "told"),
    [
        (128, 10_000, 0, 1),
        (192, 132, 0, 1),  # one for each multiprocessor
        (256, 250, 0, 2),
        (256, 10_000, 100 << 10, 2),  # shared memory lets no third one in
        (224, 352, 64 << 10, 0),  # three may be there: they need the registers
        (256, None, 0, 0),
    ],
)
def test_what_compilers_are_told(threads: int, blocks: int | None, shared: int, told: int) -> None:
    assert promised(threads, blocks, shared, H200) == told


def test_blocks_that_spill_together_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def survived(source: str, *_: object) -> tuple[bytes, str]:
        stores = 16 if "(256, 2)" in source else 0
        lines = [
            line
            for name in ("f_1", "f_10")
            for line in (
                f"ptxas info    : Compiling entry function '{name}' for 'sm_90'",
                f"ptxas info    : Function properties for {name}",
                f"    0 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads",
                "ptxas info    : Used 128 registers, used 0 barriers",
            )
        ]
        return source.encode(), "\n".join(lines)

    monkeypatch.setattr(compiler, "_survived", survived)
    found = compile_cubin(module("256, 2", blocks=264), H200)
    assert b"__launch_bounds__(256)\nf_1(" in found.code
