"""``tcl.BlockTuner`` on raw kernels, with the emulator in the place of a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_arrays import cupy_array, on_host
from raw_kernels import Device, Kernel, cupy
from raw_kernels import device as device

import tcl
from tcl.block_tuning.candidates import default_blocks
from tcl.codegen.cuda.emulator import why_not
from tcl.tuner.measure.verdict import Verdict

needs_emulator = pytest.mark.skipif(why_not() is not None, reason=why_not() or "it runs here")

SCALE = r"""
#ifndef TILE
#define TILE 1
#endif
extern "C" __global__ void scale(const float* x, float* y) {
  for (int k = 0; k < TILE; ++k) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * TILE + k;
    if (i < 1000) y[i] = 2 * x[i];
  }
}
"""
FIXED = r"""
extern "C" __global__ void fixed(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < 1000 && threadIdx.x < 256) y[i] = 2 * x[i];
}
"""


def arrays(count: int = 1000) -> tuple[Any, Any]:
    x = np.arange(count, dtype=np.float32)
    return cupy_array(x), cupy_array(np.zeros_like(x))


def doubling(grid: Any, block: Any, x: Any, y: Any) -> None:
    np.multiply(x, 2, out=y)


@pytest.fixture
def quick(device: Device) -> Device:
    """Kernels double, whatever their source says."""
    Kernel.effect = staticmethod(doubling)
    return device


@needs_emulator
def test_the_fastest_block_is_found_and_the_arguments_are_as_after_one_run(device: Device) -> None:
    device.seconds = lambda block, macros: 0.1 + 0.01 * abs(math.log2(block[0] / 128.1))
    x, y = arrays()
    tuner = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000)
    result = tuner.tune(x, y, candidates=[256, 128, 64])
    assert (result.block, result.grid, result.defines) == ((128,), (8,), {})
    assert result.runtime_us == pytest.approx(1e5, rel=0.01)
    assert not (result.cached or result.launch_bound or result.notes)
    assert [t.block[0] for t in result.timings] == [128, 256, 64]
    assert {t.verdict for t in result.timings} == {Verdict.CORRECT}
    np.testing.assert_array_equal(on_host(y), 2 * on_host(x))
    assert str(result) == f"block 128: {result.runtime_us:.4g} µs"
    on_host(y)[:] = 0
    tuner.run(x, y)
    np.testing.assert_array_equal(on_host(y), 2 * on_host(x))


@needs_emulator
def test_a_kernel_that_is_right_for_one_block_alone(device: Device) -> None:
    """Faster, and wrong: blocks of other sizes leave elements out, which poison shows though the
    array held the right ones before."""
    x, y = arrays()
    tuner = tcl.BlockTuner(Kernel(FIXED, "fixed"), 1000, outputs=1)
    for before in (0.0, 2.0):
        on_host(y)[:] = before * on_host(x)
        result = tuner.tune(x, y, again=True)
        assert result.block == (256,)
        found = {t.block[0]: t for t in result.timings}
        assert [b for b, t in found.items() if t.verdict is Verdict.CORRECT] == [256]
        assert found[128].verdict is Verdict.CORRECTNESS and found[128].time_us is None
        assert found[128].message == (
            "output argument 1 differs from the first run at (128): nan instead of 256.0 (488 of "
            "1000 elements differ; rounding explains 0.011 there)"
        )
        np.testing.assert_array_equal(on_host(y), 2 * on_host(x))


@needs_emulator
def test_macros_and_a_grid_that_depends_on_them(device: Device) -> None:
    device.seconds = lambda block, macros: (
        0.1 * (1 + abs(int(macros["TILE"]) - 4) + abs(math.log2(block[0] / 64)))
    )
    x, y = arrays()
    tuner = tcl.BlockTuner(
        Kernel(SCALE, "scale"),
        1000,
        defines={"TILE": [1, 4]},
        grid=lambda block, macros: -(-1000 // (block[0] * macros["TILE"])),
    )
    result = tuner.tune(x, y, candidates=[64, 128])
    assert (result.block, result.defines, result.grid) == ((64,), {"TILE": 4}, (4,))
    assert len(result.timings) == 4 and result.timings[0].candidate == result.candidate
    assert str(result) == "block 64 TILE=4: 1e+05 µs"
    np.testing.assert_array_equal(on_host(y), 2 * on_host(x))


def test_a_macro_may_stand_for_the_block(quick: Device) -> None:
    seen = set()

    def seconds(block: tuple[int, ...], macros: dict[str, str]) -> float:
        seen.add((block, macros["WIDTH"], macros["T"]))
        return 1e-4

    quick.seconds = seconds
    tuner = tcl.BlockTuner(
        Kernel(SCALE, "scale"), (100, 10), defines={"WIDTH": ["block.x"], "T": ["float"]}
    )
    tuner.tune(*arrays(), candidates=[(32, 8), (16, 16)])
    assert seen == {((32, 8), "32", "float"), ((16, 16), "16", "float")}


def test_it_is_tuned_once(quick: Device) -> None:
    x, y = arrays()
    first = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y)
    count = len(quick.launched)
    on_host(y)[:] = 0
    again = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y)
    assert again.cached and str(again).endswith(", cached")
    assert (again.block, again.timings) == (first.block, first.timings)
    assert len(quick.launched) == count  # nothing is measured
    np.testing.assert_array_equal(on_host(y), 2 * on_host(x))
    others: list[Callable[[], tcl.BlockTuningResult]] = [
        lambda: tcl.BlockTuner(Kernel(SCALE + " ", "scale"), 1000).tune(x, y),
        lambda: tcl.BlockTuner(Kernel(SCALE, "scale", ("-DN",)), 1000).tune(x, y),
        lambda: tcl.BlockTuner(Kernel(SCALE, "scale"), 999).tune(x, y),
        lambda: tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays(500)),
        lambda: tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y, candidates=[64, 128]),
        lambda: tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y, again=True),
    ]
    assert [each().cached for each in others] == [False] * 6
    assert [each().cached for each in others] == [True] * 5 + [False]


def test_the_device_is_waited_for_and_the_first_run_is_not_timed(quick: Device) -> None:
    """The first run compiles: it takes a second here."""
    quick.seconds = lambda block, macros: 1e-4 if len(quick.launched) > 1 else 1.0
    result = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays())
    assert quick.done.index("synchronise") < quick.done.index("launch")
    assert all(max(t.times) < 1e-3 for t in result.timings)


def test_the_device_profile_caps_candidates_before_anything_runs(quick: Device) -> None:
    tuner = tcl.BlockTuner(Kernel(SCALE, "scale"), 4096)
    result = tuner.tune(*arrays(), candidates=[64, 2048, 64])
    assert [(t.block, t.verdict) for t in result.timings] == [
        ((64,), Verdict.CORRECT),
        ((2048,), Verdict.CONSTRAINTS),
    ]
    assert result.timings[1].message == "2048 threads are more than a block of A100 can have (1024)"
    assert {block for _, block in quick.launched} == {(64,)}
    deep = tcl.BlockTuner(Kernel(SCALE, "scale"), (8, 8, 256))
    assert deep.tune(*arrays(), candidates=[(1, 1, 64), (1, 1, 128)]).timings[1].message == (
        "128 threads along z are more than CUDA allows (64)"
    )
    Kernel.taken = {"max_threads_per_block": 256, "num_regs": 255}
    found = tcl.BlockTuner(Kernel(SCALE, "scale"), 4096, cache_filename=None).tune(
        *arrays(), again=True
    )
    refused = {t.block[0]: t.message for t in found.timings if t.verdict is not Verdict.CORRECT}
    assert refused == {
        b: f"{b} threads are more than this kernel can have (256) with 255 registers each"
        for b in (512, 1024)
    }


def test_shared_memory_caps_candidates(quick: Device) -> None:
    tuner = tcl.BlockTuner(
        Kernel(SCALE, "scale"), 4096, shared_bytes=lambda block, macros: 512 * block[0]
    )
    result = tuner.tune(*arrays(), candidates=[32, 256, 512])
    assert [t.message for t in result.timings][2:] == [
        "262144 bytes of shared memory are more than a block of A100 can have (166912)"
    ]
    Kernel.taken = {"shared_size_bytes": 100_000}
    with pytest.raises(tcl.OptionsError) as error:
        tuner.tune(*arrays(), candidates=[256])
    assert str(error.value) == (
        "no candidate can be launched: 256: no block fits a multiprocessor of A100: too much of "
        "its shared memory"
    )


def test_a_grid_that_is_no_multiple_of_the_block(quick: Device) -> None:
    tuner = tcl.BlockTuner(Kernel(SCALE, "scale"), 96, guarded=False)
    result = tuner.tune(*arrays(), candidates=[32, 64, 96])
    assert [t.verdict.value for t in result.timings] == ["correct", "correct", "constraints"]
    assert result.timings[2].message == (
        "the global size 96 is not a multiple of it, and with guarded=False the kernel would "
        "run beyond the end"
    )
    assert {block for _, block in quick.launched} == {(32,), (96,)}
    rounded = tcl.BlockTuner(Kernel(SCALE, "scale"), 96).tune(*arrays(), candidates=[64])
    assert rounded.grid == (2,)


def test_default_candidates() -> None:
    limits = (1024, 1024, 64)
    assert default_blocks((1000,), limits, 1024, 32) == (
        (32,),
        (64,),
        (128,),
        (256,),
        (512,),
        (1024,),
    )
    assert default_blocks((3,), limits, 1024, 32) == ((4,),)
    plane = default_blocks((64, 64), limits, 1024, 32)
    assert len(plane) == len(set(plane)) == 31
    assert all(32 <= x * y <= 1024 and x <= 64 and y <= 64 for x, y in plane)
    deep = default_blocks((512, 512, 512), limits, 512, 32)
    assert all(32 <= math.prod(b) <= 512 and b[2] <= 64 for b in deep)


@pytest.mark.parametrize(("size", "block"), [(1000, (256,)), ((640, 480), (32, 8)), (5, (8,))])
def test_a_launch_bound_kernel_has_a_fixed_default(quick: Device, size: Any, block: Any) -> None:
    quick.seconds = lambda block, macros: 1.5e-6 if block[0] != 64 else 1e-6
    result = tcl.BlockTuner(Kernel(SCALE, "scale"), size).tune(*arrays())
    assert result.launch_bound and result.block == block and len(result.timings) == 1
    assert str(result).endswith("1.5 µs, launch-bound")


def test_what_accumulates_is_restored_before_each_run(quick: Device) -> None:
    seen = []

    def adding(grid: Any, block: Any, x: Any, y: Any) -> None:
        seen.append(float(y[1]))
        y += x

    Kernel.effect = staticmethod(adding)
    x, y = arrays()
    on_host(y)[:] = 7
    result = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y)
    np.testing.assert_array_equal(on_host(y), 7 + on_host(x))
    assert {t.verdict for t in result.timings} == {Verdict.CORRECT}
    assert {v for v in seen if not math.isnan(v)} == {7.0}


def test_many_candidates_are_searched_genetically(quick: Device) -> None:
    quick.seconds = lambda block, macros: (
        1e-4
        * (
            1
            + abs(math.log2(block[0] / 64))
            + abs(int(macros["A"]) - 5)
            + abs(int(macros["B"]) - 3)
        )
    )
    tuner = tcl.BlockTuner(
        Kernel(SCALE, "scale"),
        1 << 20,
        defines={"A": list(range(10)), "B": list(range(10))},
    )
    result = tuner.tune(*arrays(), evaluations=90)
    assert len(result.timings) <= 90
    assert result.runtime_us <= 200  # the best of 600 takes 100, the median one 700
    assert tuner.tune(*arrays(), evaluations=90, again=True).candidate == result.candidate
    with pytest.raises(AssertionError):
        assert tuner.tune(*arrays(), evaluations=1000, again=True).runtime_us > 101


def test_a_candidate_that_fails_is_a_verdict(quick: Device) -> None:
    def failing(grid: Any, block: Any, x: Any, y: Any) -> None:
        if block == (64,):
            raise RuntimeError("cudaErrorLaunchOutOfResources:\n too many")
        doubling(grid, block, x, y)

    Kernel.effect = staticmethod(failing)
    result = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays(), candidates=[64, 32])
    assert result.block == (32,)
    assert (result.timings[1].verdict, result.timings[1].message) == (
        Verdict.RUNTIME,
        "cudaErrorLaunchOutOfResources: too many",
    )


def test_a_lost_device(quick: Device) -> None:
    def breaking(grid: Any, block: Any, x: Any, y: Any) -> None:
        doubling(grid, block, x, y)
        if block == (32,):
            quick.broken = "an illegal memory access was encountered"

    Kernel.effect = staticmethod(breaking)
    with pytest.raises(tcl.TclError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays(), candidates=[64, 32])
    assert str(error.value) == (
        "scale failed with block 32; this process can no longer use the device, so restart "
        "it: an illegal memory access was encountered"
    )


def test_a_busy_device_is_one_warning(quick: Device) -> None:
    quick.seconds = lambda block, macros: 0.1 * (1 + (len(quick.launched) > 8))
    with pytest.warns(tcl.TclWarning) as caught:
        result = tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays(), candidates=[64, 32])
    (said,) = (str(w.message) for w in caught)
    assert said == f"scale: {result.notes[0]}"
    assert said == (
        "scale: the device seems busy: at the end kernels were 2 times as slow as before; "
        "check what else runs, and tune once more with again=True"
    )


def test_arguments_are_restored_if_it_fails(quick: Device) -> None:
    def interrupted(grid: Any, block: Any, x: Any, y: Any) -> None:
        doubling(grid, block, x, y)
        if block == (32,):
            raise KeyboardInterrupt

    Kernel.effect = staticmethod(interrupted)
    x, y = arrays()
    on_host(y)[:] = 5
    with pytest.raises(KeyboardInterrupt):
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y, candidates=[64, 32])
    assert (on_host(y) == 5).all()


def test_while_a_graph_is_captured(quick: Device) -> None:
    quick.captures = True
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays())
    assert str(error.value) == (
        "scale cannot be tuned while a CUDA graph is captured; tune it before"
    )
    assert not quick.launched


def test_arrays_of_another_device(quick: Device) -> None:
    x = np.zeros(1000, np.float32)
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(cupy_array(x), cupy_array(x, 1))
    assert str(error.value) == (
        "argument 1 of scale is on cuda:1, but cuda:0 was the current device when the tuner was "
        "created"
    )


def test_a_module(quick: Device) -> None:
    module = cupy.RawModule(code=SCALE)
    with pytest.raises(tcl.ArgumentError, match=r"^a RawModule has several kernels; .*name=$"):
        tcl.BlockTuner(module, 1000)
    kernel = Kernel(SCALE, "scale")
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(kernel, 1000, name="other")
    assert str(error.value) == (
        "name= selects a kernel of a RawModule, but this is the RawKernel scale"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"global_size": 0}, "global_size has to be 1 to 3 whole numbers above 0, not 0"),
        (
            {"global_size": (1, 2, 3, 4)},
            "global_size has to be 1 to 3 whole numbers above 0, not (1, 2, 3, 4)",
        ),
        ({"defines": [1]}, 'defines has to be a dict such as {"TILE": [1, 2, 4]}, not [1]'),
        ({"defines": {"a b": [1]}}, "a macro needs a valid C++ name, not 'a b'"),
        ({"defines": {"A": 1}}, "defines: A has to have a list of values to try, not 1"),
        ({"defines": {"A": [1.5]}}, "defines: A can be whole numbers and strings, not 1.5"),
        (
            {"grid": 3},
            "grid must be a function of the block and the macros' values that returns the "
            "blocks along x, y and z, not 3",
        ),
        (
            {"shared_bytes": -1},
            "shared_bytes must be a whole number, or a function of the block and the macros' "
            "values that returns one, not -1",
        ),
        ({"tolerance": 2}, "tolerance has to be a relative difference from 0 to 1, not 2"),
        ({"threads": 2}, "threads= has no meaning for a raw kernel; leave it out"),
        ({"guarded": 1}, "guarded has to be True or False, not 1"),
    ],
)
def test_what_a_tuner_cannot_be(quick: Device, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), **{"global_size": 1000, **settings})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"candidates": []},
            "candidates has to be a list of blocks, such as [64, 128, 256], not []",
        ),
        ({"candidates": [0]}, "a block has to be 1 to 3 whole numbers above 0, not 0"),
        (
            {"candidates": [(8, 8)]},
            "a block must have as many sizes as the global size (1), not 2 as in (8, 8)",
        ),
        ({"evaluations": 0}, "evaluations has to be a whole number, not 0"),
        ({"again": "yes"}, "again has to be True or False, not 'yes'"),
    ],
)
def test_what_a_tuning_cannot_be(quick: Device, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(*arrays(), **settings)
    assert str(error.value) == message


def test_outputs_that_are_none(quick: Device) -> None:
    x, y = arrays()
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000, outputs=2).tune(x, y)
    assert str(error.value) == (
        "outputs must be positions among the 2 arguments, counted from 0, not 2"
    )
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000, outputs=[0]).tune(x, y)
    assert str(error.value) == (
        "the first run changed argument 1, which is not among outputs=(0,); name all arrays that "
        "the kernel writes"
    )
    assert not on_host(y).any()
    x, y = (cupy_array(on_host(a).astype(np.int32)) for a in (x, y))
    on_host(y)[:] = 2 * on_host(x)
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(Kernel(SCALE, "scale"), 1000).tune(x, y)
    assert str(error.value) == (
        "the first run changed none of the arguments, so the results of other candidates "
        "cannot be checked; name the arguments that the kernel writes, as outputs=(1,)"
    )
