"""Memory of our own: where it begins, when it is used again, and that nobody sees that."""

from __future__ import annotations

import errno
import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tcl
from tcl.codegen.cpu.run import memory
from tcl.codegen.cpu.run.memory import HUGE, POOLED, empty, maker

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="memory of our own needs private mappings"
)
LARGE = (POOLED // 4 + 100,)
COPY = "def copy(float(N) A) -> (O) { O(i) = A(i) }"


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """Each test begins and ends without memory that waits."""
    gc.collect()
    memory.release_memory()
    yield
    gc.collect()
    memory.release_memory()


def waiting() -> int:
    """Bytes that wait to be used again."""
    return memory._pool().held()


def test_large_arrays_begin_on_pages_and_are_like_any_other() -> None:
    for count in (*LARGE, HUGE // 4, HUGE):
        array = empty((2, count), np.float32)
        assert array.ctypes.data % 4096 == 0
        assert array.nbytes < HUGE or array.ctypes.data % HUGE == 0
        assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
        array[...] = 3
        assert (array.T.copy() == 3).all() and array.shape == (2, count)
    short = empty((3, 4), np.int8)
    assert short.flags.owndata and short.shape == (3, 4)
    assert empty((0, 10**6), np.float64).size == 0


def test_memory_is_used_again_once_no_view_is_left() -> None:
    make = maker(LARGE, np.float32)
    first = make()
    at = first.ctypes.data
    part, whole = first[7:].reshape(-1, 1)[3:], memoryview(first)  # type: ignore[arg-type]
    del first
    second = make()
    assert second.ctypes.data != at and waiting() == 0
    part[...] = 5
    del part
    assert make().ctypes.data != at
    assert np.frombuffer(whole, np.float32)[20] == 5
    whole.release()
    gc.collect()
    assert waiting()
    assert at in {a.ctypes.data for a in [make() for _ in range(2)]}


def test_arrays_of_about_the_same_size_find_memory_that_waits() -> None:
    for least, most in ((POOLED + 1, 2 * POOLED), (HUGE + 1, 2 * HUGE), (33 << 20, 48 << 20)):
        places = {
            empty((size,), np.uint8).ctypes.data for size in (most, least, (least + most) // 2)
        }
        assert len(places) == 1
    gc.collect()
    assert waiting() == 2 * POOLED + 2 * HUGE + (48 << 20)


def test_outputs_are_the_callers_own() -> None:
    definitions = tcl.define(COPY, threads=1)
    a = np.arange(LARGE[0], dtype=np.float32)
    kept = [np.asarray(definitions.copy(a + k)) for k in range(5)]
    for k, each in enumerate(kept):
        np.testing.assert_array_equal(each, a + k)
    places = {each.ctypes.data for each in kept}
    assert len(places) == 5
    del kept, each
    assert np.asarray(definitions.copy(a)).ctypes.data in places
    assert tcl.release_memory() > 0 and waiting() == 0


def test_no_more_is_kept_than_is_allowed() -> None:
    """Of one size at any time, of all sizes once a new piece is made."""
    code = (
        "from tcl.codegen.cpu.run import memory as m\n"
        "arrays = [m.empty((k * m.POOLED,), 'u1') for k in (1, 1, 2, 2, 2, 4, 6)]\n"
        "held = []\n"
        "while arrays: arrays.pop(0); held.append(m._pool().held() // m.POOLED)\n"
        "kept = m.empty((3 * m.POOLED,), 'u1')\n"
        "print(held, m._pool().held() // m.POOLED <= 5)\n"
    )
    for most, expected in ((5, "[1, 2, 4, 6, 6, 10, 10] True"), (0, f"{[0] * 7} True")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, memory.VARIABLE: str(most * POOLED)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == expected


def test_what_may_just_be_kept_is_kept() -> None:
    code = (
        "from tcl.codegen.cpu.run import memory as m\n"
        "m.empty((9 * m.HUGE,), 'u1'); print(m._pool().held() // m.HUGE)\n"
        "m.empty((10 * m.HUGE,), 'u1'); print(m._pool().held() // m.HUGE)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, memory.VARIABLE: str(9 * memory.HUGE)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["9", "9"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_what_a_signals_handler_raises_is_not_lost() -> None:
    """Where an array becomes garbage, too: Ctrl+C has to end a program there."""
    make, lost = maker(LARGE, np.float32), 0

    def ring(number: int, frame: object) -> None:
        nonlocal lost
        lost += 1
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for turn in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + turn % 7), 0.01)
                while True:
                    make()
            except InterruptedError:
                lost -= 1
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert lost == 0


@pytest.mark.parametrize("call", ["mmap", "madvise"])
def test_a_signals_handler_may_raise_what_the_system_does(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``TimeoutError`` is an ``OSError``, and no want of memory."""

    class Interrupted(mmap.mmap):
        def __new__(cls, *args: int, **flags: int) -> Interrupted:
            if call == "mmap":
                raise TimeoutError("too late")
            return super().__new__(cls, *args, **flags)

        def madvise(self, *_: int) -> None:
            raise TimeoutError("too late")

    monkeypatch.setattr(mmap, "mmap", Interrupted)
    with pytest.raises(TimeoutError, match="too late"):
        memory._Piece(4 * HUGE)


def test_threads_never_share_memory() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        make = maker(LARGE, np.float32)
        for turn in range(200):
            array = make()
            array[::512] = number + turn
            other = make()
            other[::512] = -1
            if not (array[::512] == number + turn).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_forked_process_has_memory_of_its_own() -> None:
    make = maker(LARGE, np.float32)
    held = make()
    held[...] = 1
    make()[...] = 2  # waits
    child = os.fork()
    if child == 0:  # an exception here must not reach pytest
        good = False
        try:
            own = [make() for _ in range(3)]
            for each in own:
                each[...] = 9
            held[...] = 9
            good = len({each.ctypes.data for each in own}) == 3
        finally:
            os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert (held == 1).all()
    assert make()[5] == 2  # as it was left


@pytest.mark.parametrize(("said", "words"), [("0", "0"), ("123", "123"), (" ", str(1 << 20))])
def test_the_variable_says_how_much_is_kept(said: str, words: str) -> None:
    code = "from tcl.codegen.cpu.run import memory as m; print(m._pool().most)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, memory.VARIABLE: said},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) == int(words) if said != " " else int(done.stdout) > int(words)


def test_a_variable_that_is_no_number_is_refused() -> None:
    code = (
        "import numpy as np, tcl\n"
        f"T = tcl.define({COPY!r})\n"
        "try: T.copy(np.zeros(1 << 20, np.float32))\n"
        "except tcl.ArgumentError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, memory.VARIABLE: "1GB"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "TCL_KEPT_MEMORY must be a whole number of bytes, not '1GB'\n"


def test_a_search_refuses_it_before_kernels_fail_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "1GB")
    with pytest.raises(tcl.ArgumentError, match="must be a whole number of bytes, not '1GB'"):
        tcl.autotune(COPY, "copy", np.zeros(9, np.float32), progress=False)


def test_an_array_may_fit_where_its_piece_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mmap.mmap

    def limited(number: int, length: int, **flags: int) -> mmap.mmap:
        if length > 9 * HUGE:  # as a limit on the address space
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return whole(number, length, **flags)

    monkeypatch.setattr(mmap, "mmap", limited)
    array = empty((8 * HUGE + 1,), np.uint8)
    array[:] = 7
    assert array.nbytes == 8 * HUGE + 1 and array[-1] == 7


def test_what_the_system_has_no_room_for_is_an_error() -> None:
    with pytest.raises(MemoryError, match=r"less than .* bytes of free memory"):
        empty((1 << 60,), np.uint8)


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_keeps_a_part_of_what_it_may_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    free = memory._limit()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("max\n")
    assert memory._limit() == free
    (tmp_path / name).write_text(f"{80 << 20}\n")
    assert memory._limit() == 10 << 20 < free
