"""Kernels as C functions: called through ctypes here, which lets go of the GIL, as their users."""

from __future__ import annotations

import gc
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import team_kernels as bodies
from compiled_kernels import compile_cpu
from cpu_kernels import LANES, MATMUL, sized_of
from team_kernels import Caller, kernel

from tcl.codegen.cpu.abi import PAGE
from tcl.codegen.cpu.run.native import returning
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import DEFAULT

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX memory and threads")

Array = np.ndarray[Any, np.dtype[Any]]
GATHER = "def f(float(M) T, int64(N) I) -> (O) { O(n) = T(I(n)) }"
SLOTS = 8
"""As ``entry.c`` has it."""
SOFTMAX = """def f(float(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}"""


@pytest.fixture(autouse=True)
def _together() -> Iterator[None]:
    bodies.keep_together()
    yield
    bodies.keep_together(False)


def words(*values: int) -> Array:
    return np.array(values, np.int64)


def test_a_def() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((4, 5), (5, 16)))
    call = Caller(compile_cpu(sized_of(MATMUL, a, b), LANES).launcher)
    for _ in range(3):
        out = np.full((4, 16), np.nan, np.float32)
        call([a, b, out])
        np.testing.assert_array_equal(out, a @ b)


def test_outputs_that_no_caller_passes_have_memory_of_their_own() -> None:
    a = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    sized = sized_of(SOFTMAX, a)
    launcher = compile_cpu(sized, LANES).launcher
    whole = Caller(launcher)
    expected = [np.empty(s, np.float32) for s in ((5, 70), (5,), (5,))]
    whole([a, *expected])
    for places in ((0,), (2,), (2, 0), (1, 2)):
        call = Caller(launcher, returning(launcher, sized, places))
        for _ in range(3):
            found = [np.full_like(expected[k], np.nan) for k in places]
            call([a, *found])
            for k, each in zip(places, found, strict=True):
                np.testing.assert_array_equal(each, expected[k])


def test_several_kernels_keep_apart() -> None:
    """The code is one; what each loaded copy calls is its own."""
    calls = [Caller(kernel(bodies.WHO, 1, threads=k)) for k in (1, 3, 2)]
    for _ in range(2):
        for call, threads in zip(calls, (1, 3, 2), strict=True):
            out = np.zeros(4, np.int64)
            call([out])
            assert out.tolist() == [threads] * threads + [0] * (4 - threads)


ADDRESSES = """
  %out = load ptr, ptr %tensors, align 8
  %one.at = getelementptr i64, ptr %tensors, i64 1
  %one = load i64, ptr %one.at, align 8
  %two.at = getelementptr i64, ptr %tensors, i64 2
  %two = load i64, ptr %two.at, align 8
  %second = getelementptr i64, ptr %out, i64 1
  %third = getelementptr i64, ptr %out, i64 2
  %team.word = ptrtoint ptr %team to i64
  store i64 %one, ptr %out, align 8
  store i64 %two, ptr %second, align 8
  store i64 %team.word, ptr %third, align 8
  ret i32 0
"""


def test_scratch_and_team_begin_apart() -> None:
    scratch = (((3, 5), "float32", False), ((7,), "uint8", True))
    out = words(0, 0, 0)
    Caller(kernel(ADDRESSES, 1, threads=1, regions=2, scratch=scratch))([out])
    shared, private, team = out.tolist()
    assert team % 64 == 0 and private > shared > team
    assert (shared % PAGE, private % PAGE) == (PAGE // 2, PAGE // 4)


def test_the_error_is_the_one_of_calls_from_python() -> None:
    table, index = np.arange(5, dtype=np.float32), np.array([0, 4, -3], np.int64)
    launcher = compile_cpu(sized_of(GATHER, table, index), LANES).launcher
    out = np.zeros(3, np.float32)
    with pytest.raises(IndexError) as expected:
        launcher((table, index, out))
    with pytest.raises(IndexError) as found:
        Caller(launcher)([table, index, out])
    assert str(found.value) == str(expected.value)
    assert "index -3 is out of range for dimension 0 of tensor T" in str(found.value)


def test_the_error_is_the_first_in_the_program() -> None:
    """Sixteen threads need not wait for each other between the two statements."""
    text = """def f(int32(N) I) -> (int32(4) C, int32(4) G) {
        C(r) +=! 1 where r = I(n)
        G(r) +=! 1 where r = I(n) - 4
    }"""
    index = np.random.default_rng(2).integers(0, 4, 40_009).astype(np.int32)
    index[20_004] = -1
    sized = sized_of(text, index)
    launcher = compile_cpu(sized, DEFAULT, device=replace(host_cpu(), threads=16)).launcher
    made = [np.zeros(4, np.int32) for _ in range(2)]
    for _ in range(100):
        for call in (launcher, Caller(launcher)):
            with pytest.raises(IndexError) as found:
                call([index, *made])
            assert "index -1 is out of range for dimension 0 of tensor C" in str(found.value)


@pytest.mark.parametrize("threads", [1, 2])
def test_eight_python_threads_at_once(threads: int) -> None:
    """Every call has scratch memory of its own, and its own errors; more run than are slots."""
    private = Caller(kernel(bodies.PRIVATE, 2, threads=threads, scratch=(((640,), "u1", True),)))
    fail = Caller(kernel(bodies.FAIL, 1, threads=threads))
    wrong: list[object] = []
    barrier = threading.Barrier(SLOTS + 2)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            out = np.zeros(threads, np.int64)
            private([words(640), out])  # beside another call on one thread, so [1] or [1, 2]
            if out.tolist() not in ([1, 2][:threads], [1, 0][:threads]):
                wrong.append(out)
            try:
                fail([words(0)])
                wrong.append("no error")
            except IndexError:
                pass
            fail([words(threads)])

    workers = [threading.Thread(target=work) for _ in range(SLOTS + 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_call_within_more_calls_than_slots() -> None:
    """Frames beyond the slots are made, and freed: each of these calls is in flight at once."""
    wait = Caller(kernel(bodies.WAIT, 2, threads=1))
    go_on, outs = words(0), np.zeros(SLOTS + 3, np.int64)
    workers = [
        threading.Thread(target=wait, args=([go_on, outs[k : k + 1]],)) for k in range(len(outs))
    ]
    for worker in workers:
        worker.start()
    while not outs.all():
        pass
    go_on[0] = 1
    for worker in workers:
        worker.join()
    assert outs.tolist() == [1] * len(outs)


def test_no_memory_is_an_error() -> None:
    huge = Caller(kernel(bodies.WHO, 1, threads=1, scratch=(((1 << 60,), "float32", False),)))
    out = words(0, 0)
    with pytest.raises(MemoryError, match="intermediate results"):
        huge([out])
    assert out.tolist() == [0, 0]


def test_the_launcher_lives_as_long_as_the_entry() -> None:
    launcher = kernel(bodies.WHO, 1, threads=1)
    entry = Caller(launcher)
    del launcher
    gc.collect()
    out = words(0, 0)
    entry([out])
    assert out.tolist() == [1, 0]
    gone = weakref.ref(entry.entry)
    del entry
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_entries_that_are_gone_keep_no_memory() -> None:
    launcher = kernel(bodies.WHO, 1, threads=1, scratch=(((1 << 20,), "uint8", False),))
    fail = Caller(kernel(bodies.FAIL, 1, threads=1, scratch=(((1 << 20,), "uint8", False),)))

    def use(times: int) -> int:
        for _ in range(times):
            Caller(launcher)([words(0, 0)])
            with pytest.raises(IndexError):
                fail([words(0)])
        gc.collect()
        with open("/proc/self/statm") as file:  # address space: nobody touches the scratch
            return int(file.read().split()[0]) * mmap.PAGESIZE

    before = use(50)
    assert use(200) - before < 64 << 20
