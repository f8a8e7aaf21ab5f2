"""When calls run alone as others have the cores: the pool's own code, by a clock that tests set.

A machine with other things to do loses cores at any time, so that nothing could be said about a
rule that real time decides.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable

import pytest
from runtime_sources import SUPPORT, compile_c

from tcl.codegen.cpu.abi import LINE, OWN, WORDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool is for Linux")

MICRO, MILLI = 1000, 1_000_000


class Calls:
    """Calls on a pool with one worker, and the time that they take. Those that are equally long
    are of the same kernel."""

    def __init__(self, pool: ctypes.CDLL) -> None:
        self._pool = pool
        pool.tcl_pool_bytes.restype = pool.slice.restype = ctypes.c_int64
        self.slice = pool.slice()
        self._memory = (ctypes.c_char * (pool.tcl_pool_bytes(2) + LINE))()
        self._at = ctypes.c_void_p(-(-ctypes.addressof(self._memory) // LINE) * LINE)
        self._records: dict[int, ctypes.Array[ctypes.c_int64]] = {}
        pool.tcl_pool_reset(self._at, ctypes.c_int64(2))
        self.time = self._used = self._ended = 10**9
        self._move(0, 0)
        pool.begin(self._at)

    def _move(self, wall: int, used: int) -> None:
        self.time, self._used = self.time + wall, self._used + used
        self._pool.set_clock(ctypes.c_int64(self.time), ctypes.c_int64(self._used))

    def call(self, busy: int, lost: int = 0, rest: int = 0) -> bool:
        """A call after some rest, whether on both threads: these are busy, the worker after it
        lost its core. One thread takes twice as long."""
        self._move(rest, 0)
        record = self._records.setdefault(busy, (ctypes.c_int64 * WORDS)())
        if self._pool.should_run_alone(self._at, record):
            self._move(2 * busy, 0)
            record[OWN] = 2 * busy
            return False
        begun = self.time
        self._pool.begin(self._at)  # as a worker does that waits
        self._move(busy + lost, busy)
        self._pool.job_ended(self._at, ctypes.c_int64(begun))
        self._ended = self.time
        return True

    def wait(self, lost: int) -> None:
        """The caller does something else meanwhile, the worker wants to wait awake but cannot."""
        self._move(lost, 0)
        self._ended = self.time

    def cores_after(self, ran: int) -> int:
        """The cores of a worker that ran for so long of the microsecond in which it was watched."""
        return int(self._pool.cores_after(self._at, ctypes.c_int64(ran)))


def share(together: Iterable[bool]) -> float:
    found = list(together)
    return sum(found) / len(found)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    out = tmp_path_factory.mktemp("pool") / "pool.so"
    return ctypes.CDLL(str(compile_c(SUPPORT / "pool_clock.c", out)))


@pytest.fixture
def calls(pool: ctypes.CDLL) -> Calls:
    return Calls(pool)


@pytest.mark.parametrize("busy", [30 * MICRO, 250 * MICRO, 5 * MILLI])
def test_calls_stay_together_while_nothing_is_lost(calls: Calls, busy: int) -> None:
    for rest in (0, 10 * MICRO, 10 * MILLI):
        assert all(calls.call(busy, rest=rest) for _ in range(300))


@pytest.mark.parametrize("busy", [30 * MICRO, 250 * MICRO])
@pytest.mark.parametrize("gone", [MILLI, 4 * MILLI, 8 * MILLI])
def test_a_core_that_is_gone_now_and_then(calls: Calls, busy: int, gone: int) -> None:
    """A third of the time: calls in between gain more than that."""
    often = 2 * gone // busy
    assert share(calls.call(busy, gone * (k % often == often - 1)) for k in range(5000)) > 0.98


@pytest.mark.parametrize("lost", [2, 20, 200])
def test_cores_that_are_taken(calls: Calls, lost: int) -> None:
    """Calls take not much longer than on one thread, however long they would together."""
    busy, count = 250 * MICRO, 5000
    for _ in range(1000):
        assert calls.call(busy)
    begin = calls.time
    for _ in range(count):
        calls.call(busy, lost * busy)
    once = 32 * MILLI + 10 * lost * busy  # to find out
    assert calls.time - begin < 1.1 * count * 2 * busy + once


@pytest.mark.parametrize("free", [1, 4, 8])
def test_cores_that_are_taken_in_turns(calls: Calls, free: int) -> None:
    """Of each stretch of 12 milliseconds, so many are the worker's."""
    busy, count = 250 * MICRO, 10_000
    begin = calls.time
    for _ in range(count):
        gone = calls.time % (12 * MILLI) - free * MILLI
        calls.call(busy, 12 * MILLI - free * MILLI - gone if gone > 0 else 0)
    together = busy * 12 // free
    assert calls.time - begin < 1.12 * count * min(2 * busy, together)


def test_calls_come_together_again(calls: Calls) -> None:
    """When the cores are free again, after no more than some calls' time."""
    busy, lost = 250 * MICRO, 4 * MILLI
    for _ in range(5000):
        calls.call(busy, lost)
    begin = calls.time
    while not calls.call(busy):
        pass
    assert calls.time - begin <= 34 * (busy + lost)
    assert all(calls.call(busy) for _ in range(1000))


@pytest.mark.parametrize("busy", [30 * MICRO, 250 * MICRO, 2 * MILLI])
def test_short_calls_need_not_wait_as_long_ones(calls: Calls, busy: int) -> None:
    """A long kernel was crowded. The cores are free again when a short one begins."""
    for _ in range(200):
        calls.call(30 * MILLI, 40 * MILLI)
    while not calls.call(30 * MILLI, 40 * MILLI):
        pass
    while calls.call(30 * MILLI, 40 * MILLI):
        pass
    begin = calls.time
    while not calls.call(busy):
        pass
    assert calls.time - begin <= 32 * (2 * busy + calls.slice) + 2 * busy
    assert all(calls.call(busy) for _ in range(1000))


@pytest.mark.parametrize("lost", [4, 20])
def test_short_and_long_calls_on_cores_that_are_taken(calls: Calls, lost: int) -> None:
    """They take not much longer than on one thread, whichever found out that cores are taken."""
    short, long, each = 250 * MICRO, 20 * MILLI, 400
    for _ in range(200):
        calls.call(long, long)
    begin = calls.time
    for _ in range(each):
        calls.call(long, long)
        for _ in range(8):
            calls.call(short, lost * MILLI)
    assert calls.time - begin < 1.15 * each * 2 * (long + 8 * short)


def test_what_is_lost_between_calls_harms_none(calls: Calls) -> None:
    """The worker's core was taken while it waited for the next call."""
    busy, found = 250 * MICRO, []
    for k in range(1000):
        found.append(calls.call(busy))
        if found[-1] and k % 10 == 9:
            calls.wait(4 * MILLI)
    assert share(found) > 0.98


def test_a_worker_that_lost_its_core_in_its_part(calls: Calls) -> None:
    """It goes on where the caller waits for it; one that runs is left where it is."""
    usable = len(os.sched_getaffinity(0))
    assert calls.cores_after(ran=900) == usable
    assert calls.cores_after(ran=100) == 1
