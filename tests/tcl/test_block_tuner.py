"""``tcl.BlockTuner`` on C functions: Numba's and those of shared libraries."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from command_line import here
from numba import types

import tcl
from tcl.block_tuning import c_functions, sweep
from tcl.block_tuning.arguments import has_gaps
from tcl.block_tuning.candidates import default_chunks
from tcl.codegen.cpu.run.chunked import ChunkedCall, Word
from tcl.codegen.cuda.emulator.compiler import host_compiler
from tcl.tuner.cache.merge import merge
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict

needs_compiler = pytest.mark.skipif(not host_compiler(), reason="needs a C++ host_compiler")
pytestmark = pytest.mark.usefixtures("own_cache")
FLOATS = types.CPointer(types.float32)


@numba.cfunc(types.void(types.int64, types.int64, FLOATS, FLOATS, types.float32))  # type: ignore[untyped-decorator]
def scale(begin: int, end: int, x: Any, y: Any, factor: float) -> None:
    for i in range(begin, end):
        y[i] = x[i] * factor


@numba.cfunc(types.void(types.int64, types.int64, FLOATS))  # type: ignore[untyped-decorator]
def increase(begin: int, end: int, y: Any) -> None:
    for i in range(begin, end):
        y[i] += 1


@numba.cfunc(types.void(types.int64, types.int64, FLOATS, FLOATS))  # type: ignore[untyped-decorator]
def slow(begin: int, end: int, x: Any, y: Any) -> None:
    for i in range(begin, end):
        total = x[i]
        for _ in range(2000):
            total = total * np.float32(0.5) + np.float32(1)
        y[i] = total


@numba.cfunc(types.void(types.int64, types.int64, FLOATS))  # type: ignore[untyped-decorator]
def width(begin: int, end: int, y: Any) -> None:
    """Depends on how the range is cut, which no kernel should."""
    for i in range(begin, end):
        y[i] = end - begin


@numba.cfunc(types.void(types.int64, types.int64, FLOATS))  # type: ignore[untyped-decorator]
def endless(begin: int, end: int, y: Any) -> None:
    """Never ends on chunks of 64."""
    while end - begin == 64 and y[0] >= 0:
        y[1] += 1
    for i in range(begin, end):
        y[i] = 1


@numba.cfunc(types.void(types.int64, types.int64, FLOATS))  # type: ignore[untyped-decorator]
def wild(begin: int, end: int, y: Any) -> None:
    """Writes to where nothing is, on chunks of 64."""
    for i in range(begin, end):
        y[i + (end - begin == 64) * (1 << 50)] = 1


CPP = r"""
#include <cstdint>
extern "C" void twice(int begin, int end, const float* x, float* y) {
  for (int i = begin; i < end; ++i) y[i] = 2 * x[i];
}
extern "C" void all(int64_t begin, int64_t end, const void* x, double* y, int8_t a, uint16_t b,
                    float c, double d, int64_t e, bool f) {
  for (int64_t i = begin; i < end; ++i)
    y[i] = static_cast<const double*>(x)[i] + a + b + c + d + e + f;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("library")
    (folder / "own.cpp").write_text(CPP)
    command: list[str | Path] = [
        *host_compiler(),
        "-O2",
        "-shared",
        "-fPIC",
        folder / "own.cpp",
        "-o",
        folder / "own.so",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "own.so"))


def arrays(count: int) -> tuple[Any, Any]:
    x = np.arange(count, dtype=np.float32)
    return x, np.zeros_like(x)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_chunk_is_found_and_the_arguments_are_as_after_one_run(threads: int) -> None:
    x, y = arrays(300)
    tuner = tcl.BlockTuner(slow, 300, threads=threads)
    result = tuner.tune(x, y)
    expected = [2 + (v - 2) * 0.5**2000 for v in x]
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert {t.verdict for t in result.timings} == {Verdict.CORRECT}
    assert {t.block for t in result.timings} == set(default_chunks(300, threads))
    assert result.grid == (-(-300 // result.block[0]),) and not result.launch_bound
    y[:] = 0
    tuner.run(x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    with pytest.raises(tcl.ArgumentError, match=r"^slow was not tuned; call tune\(\.\.\.\) first$"):
        tcl.BlockTuner(slow, 300).run(x, y)


def test_it_is_tuned_once_and_caches_are_merged(tmp_path: Path) -> None:
    x, y = arrays(1 << 16)
    first = tcl.BlockTuner(scale, 1 << 16, threads=1).tune(x, y, 2.0, candidates=[1 << 12, 1 << 14])
    again = tcl.BlockTuner(scale, 1 << 16, threads=1).tune(x, y, 3.0, candidates=[1 << 12, 1 << 14])
    assert again.cached and not first.cached and again.timings == first.timings
    np.testing.assert_array_equal(y, 3 * x)
    other = tmp_path / "other.db"
    settings: dict[str, Any] = {"threads": 1, "cache_filename": other}
    merge(TuningCache(other), tmp_path / "tuning.db")
    merged = tcl.BlockTuner(scale, 1 << 16, **settings)
    assert merged.tune(x, y, 2.0, candidates=[1 << 12, 1 << 14]).cached
    assert (
        not tcl.BlockTuner(scale, 1 << 16, threads=2)
        .tune(x, y, 2.0, candidates=[1 << 12, 1 << 14])
        .cached
    )
    assert TuningCache(tmp_path / "tuning.db").list() == ()  # no def's result among them
    heading, columns, *rows, last = here("cache", "list", "--cache", str(other)).stdout.splitlines()
    assert heading.startswith("launch shapes: ") and columns.split()[:2] == ["kernel", "global"]
    assert [row.split()[:3] for row in rows] == [["scale", "65536", str(first.block[0])]]
    assert last == f"0 keys and 1 launch shape in {other}"
    written = here("cache", "export", str(tmp_path / "r.json"), "--cache", str(other))
    assert written.stderr == (
        "1 launch shape of your own kernels were not written: T4 has no format for them; tcl "
        "cache merge copies them\n"
    )
    pruned = here("cache", "prune", "--older-than", "0", "--cache", str(other))
    assert pruned.stdout.splitlines()[-1] == "1 launch shape removed"


def test_a_result_that_cannot_be_read_is_measured_again(tmp_path: Path) -> None:
    x, y = arrays(1 << 16)
    tcl.BlockTuner(scale, 1 << 16, threads=1).tune(x, y, 2.0, candidates=[1 << 12])
    cache = TuningCache(tmp_path / "tuning.db")
    spoil = "UPDATE notes SET value = json_set(value, '$.result', '{}')"
    cache.transaction(lambda db: db.execute(spoil))
    with pytest.warns(tcl.TclWarning, match="^the saved launch shape for scale is not us"):
        found = tcl.BlockTuner(scale, 1 << 16, threads=1).tune(x, y, 2.0, candidates=[1 << 12])
    assert not found.cached
    cache.transaction(lambda db: db.execute(spoil))
    assert here("cache", "list").stdout.splitlines()[2].split()[:3] == ["scale", "65536", "?"]


def test_what_accumulates_and_what_depends_on_the_chunk() -> None:
    _, y = arrays(1 << 16)
    tcl.BlockTuner(increase, 1 << 16, threads=1).tune(y, candidates=[1 << 12, 1 << 13])
    assert (y == 1).all()
    result = tcl.BlockTuner(width, 4096, threads=1).tune(y, candidates=[1024, 2048])
    if not result.launch_bound:
        assert result.timings[1].verdict is Verdict.CORRECTNESS
    assert result.block == (1024,) and (y[:4096] == 1024).all()


@pytest.mark.parametrize("blocks", [[128, 64, 256], [64, 128, 256]])
@pytest.mark.parametrize(
    ("kernel", "verdict", "message"),
    [
        (endless, Verdict.TIMEOUT, "it did not end within 1.00 s"),
        (wild, Verdict.RUNTIME, "it crashed its process by SIGSEGV"),
    ],
)
def test_what_never_ends_and_what_ends_the_process(
    kernel: Any, verdict: Verdict, message: str, blocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_LIMIT", 1.0)
    monkeypatch.setattr(sweep, "_LAUNCH_BOUND", 0.0)
    y = np.zeros(1024, np.float32)
    result = tcl.BlockTuner(kernel, 1024, threads=1).tune(y, candidates=blocks)
    ended = {t.block: (t.verdict, t.message) for t in result.timings}
    assert ended[64,] == (verdict, message)
    assert ended[128,][0] is ended[256,][0] is Verdict.CORRECT
    assert (y == 1).all()


def test_a_function_that_ends_in_no_copy_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_LIMIT", 1.0)
    monkeypatch.setattr(sweep, "_LAUNCH_BOUND", 0.0)
    here = os.getpid()

    def body(begin: int, end: int, y: int) -> None:
        if os.getpid() != here:
            time.sleep(60)
        (ctypes.c_float * 1024).from_address(y)[begin:end] = [1.0] * (end - begin)

    at_home = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(body)
    y = np.zeros(1024, np.float32)
    with pytest.warns(tcl.TclWarning) as caught:
        result = tcl.BlockTuner(at_home, 1024, threads=1, source="at home").tune(
            y, candidates=[128, 64, 256]
        )
    assert str(caught[0].message).endswith(
        "with block 128 and block 64 did not end within 1.00 s in a separate process, so all "
        "candidates now run in this process, where a candidate that hangs cannot be stopped"
    )
    assert {t.verdict for t in result.timings} == {Verdict.CORRECT} and (y == 1).all()


@needs_compiler
def test_a_function_of_a_shared_library(library: Any) -> None:
    x, y = arrays(1 << 16)
    library.twice.argtypes = (
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_void_p,
        np.ctypeslib.ndpointer(np.float32),
    )
    tuner = tcl.BlockTuner(library.twice, len(x), threads=1)
    assert not tuner.tune(x, y, candidates=[1 << 12]).cached
    assert tcl.BlockTuner(library.twice, len(x), threads=1).tune(x, y, candidates=[1 << 12]).cached
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(library.twice, 1 << 31)
    assert str(error.value) == "global_size 2147483648 does not fit in c_int"


@needs_compiler
@pytest.mark.parametrize("declared", [True, False])
def test_arguments_of_all_kinds(library: Any, declared: bool) -> None:
    function = library["all"]  # a new object each time
    values: tuple[Any, ...] = (-3, 65535, 1.5, 0.25, -(1 << 40), True)
    if declared:
        function.argtypes = (
            *(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)),
            *(ctypes.c_int8, ctypes.c_uint16, ctypes.c_float, ctypes.c_double, ctypes.c_int64),
            ctypes.c_bool,
        )
    else:
        kinds = (np.int8, np.uint16, np.float32, np.float64, np.int64, np.bool_)
        values = tuple(kind(v) for kind, v in zip(kinds, values, strict=True))
    x, y = np.arange(1000.0), np.zeros(1000)
    tcl.BlockTuner(function, 1000, threads=2).tune(x, y, *values, candidates=[10, 300])
    np.testing.assert_array_equal(y, x - 3 + 65535 + 1.5 + 0.25 - (1 << 40) + 1)


def test_every_number_is_run_once_whatever_the_chunk() -> None:
    _, y = arrays(1000)
    call = ChunkedCall(increase.address, Word("i64"), [Word("ptr")], threads=2)
    for runs, (total, chunk) in enumerate([(1000, 1), (1000, 7), (1000, 999), (1000, 5000)], 1):
        call(total, chunk, (y.ctypes.data,))
        assert (y == runs).all()
    call(0, 1, (y.ctypes.data,))
    assert (y == 4).all()


def test_what_cannot_be_told_from_others_is_not_kept() -> None:
    x, y = arrays(1 << 16)
    given: dict[str, Any] = {"threads": 1, "source": "version 1"}
    with pytest.warns(tcl.TclWarning) as caught:
        tcl.BlockTuner(scale.ctypes, 1 << 16, threads=1).tune(x, y, 2.0, candidates=[1 << 12])
    assert [str(w.message) for w in caught if "saved" in str(w.message)] == [
        "the result for function is not saved, because its code cannot be identified; pass "
        "source=, a text that changes when the function changes"
    ]
    tcl.BlockTuner(scale.ctypes, 1 << 16, **given).tune(x, y, 2.0, candidates=[1 << 12])
    again = tcl.BlockTuner(scale.ctypes, 1 << 16, **given).tune(x, y, 2.0, candidates=[1 << 12])
    assert again.cached


def test_the_text_that_numba_compiled_is_the_same_in_another_function() -> None:
    signature = types.void(types.int64, types.int64, FLOATS)
    sources = []
    for step in (1, 1, 2):

        def more(begin: int, end: int, y: Any) -> None:
            for i in range(begin, end):
                y[i] += step  # noqa: B023 - compiled in this turn

        sources.append(c_functions.CFunction(numba.cfunc(signature)(more), (9,), 1, None).source)
    assert sources[0] == sources[1] != sources[2]


def test_default_chunks() -> None:
    even, powers = (250, 1000, 500, 125, 63), (16, 32, 64, 128, 256, 512)
    assert default_chunks(1000, 1) == tuple((n,) for n in (*even, *powers))
    assert default_chunks(10, 2)[0] == (2,)
    assert default_chunks(1, 4) == ((1,),)
    assert min(default_chunks(1 << 30, 1))[0] == 1 << 14


@pytest.mark.parametrize(
    ("kernel", "size", "settings", "message"),
    [
        (
            scale,
            (8, 8),
            {},
            "a C function runs over one range, and global_size has 2 sizes; pass their "
            "product, and split its numbers in the function",
        ),
        (
            scale,
            8,
            {"defines": {"A": [1]}},
            "defines= has no meaning for a C function; leave it out",
        ),
        (scale, 8, {"name": "f"}, "name= has no meaning for a C function; leave it out"),
        (scale, 8, {"guarded": False}, "guarded= has no meaning for a C function; leave it out"),
        (scale, 8, {"threads": 0}, "threads must be a whole number from 1 to 1024, not 0"),
        (
            print,
            8,
            {},
            "a kernel is a CuPy RawKernel or RawModule, a function of ctypes, or a cfunc of "
            "Numba, not builtin_function_or_method",
        ),
        (
            numba.njit(lambda i: i),
            8,
            {},
            "a function of numba.jit has no address that C can call; compile it with "
            "numba.cfunc and its signature",
        ),
        (
            numba.cfunc(types.void(types.float32, types.int64))(lambda b, e: None),
            8,
            {},
            "<lambda> must begin with two whole numbers of one type, the begin and the end of "
            "its part of the range, not c_float and c_long",
        ),
        (
            numba.cfunc(types.void(types.int64))(lambda b: None),
            8,
            {},
            "<lambda> takes 1 argument, but must begin with two whole numbers: the begin and "
            "the end of its part of the range",
        ),
    ],
)
def test_what_a_tuner_cannot_be(kernel: Any, size: Any, settings: Any, message: str) -> None:
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(kernel, size, **settings)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (0, "scale takes 3 arguments after its range, not 0"),
        (1, "argument 0 of scale cannot be an array of float64, which is declared as LP_c_float"),
        (2, "argument 2 of scale cannot be 'two', which is declared as c_float"),
        (3, "argument 1 of scale cannot be None, which is declared as LP_c_float"),
    ],
)
def test_what_a_function_does_not_take(arguments: int, message: str) -> None:
    x, y = arrays(8)
    given = [(), (x.astype(np.float64), y, 2.0), (x, y, "two"), (x, None, 2.0)][arguments]
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(scale, 8).tune(*given)
    assert str(error.value) == message


def test_a_float_of_python_needs_a_type() -> None:
    function = ctypes.CDLL(None).abs
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.BlockTuner(function, 8).tune(2.0)
    assert str(error.value) == ("argument 0 of abs cannot be 2.0; declare the function's argtypes")


@pytest.mark.parametrize(
    ("array", "gaps"),
    [
        (np.zeros((4, 6))[:, ::2], True),
        (np.zeros((4, 6))[:, :5], True),
        (np.zeros(8)[::-1], True),
        (np.broadcast_to(np.zeros(3), (4, 3)), True),
        (np.zeros((4, 6)).T, False),
        (np.zeros((4, 1, 6))[:, ::2], False),
        (np.zeros((4, 0))[::2], False),
    ],
)
def test_memory_between_elements(array: Any, gaps: bool) -> None:
    assert has_gaps(array.__array_interface__) == gaps


def test_arrays_with_gaps_are_refused() -> None:
    y = np.zeros(600, np.float32)
    message = "argument 0 has gaps between its elements, .* pass a copy"
    with pytest.raises(tcl.ArgumentError, match=message):
        tcl.BlockTuner(increase, 300).tune(y[::2])
    assert not y.any()
