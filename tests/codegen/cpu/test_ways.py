"""Which calls run alone as that is faster: the pool's own rule, by a clock that tests set."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

import pytest
from runtime_sources import SUPPORT, compile_c

from tcl.codegen.cpu.abi import THREADS, VARIES, WORDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool is for Linux")

MICRO, MILLI = 1000, 1_000_000
SECOND = 1000 * MILLI


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    out = tmp_path_factory.mktemp("pool") / "pool.so"
    return ctypes.CDLL(str(compile_c(SUPPORT / "pool_clock.c", out)))


class Calls:
    """Calls of one kernel, one after the other."""

    def __init__(self, pool: ctypes.CDLL) -> None:
        self._pool = pool
        self.record = (ctypes.c_int64 * WORDS)()
        self.record[THREADS] = 2
        self.time = 10**9

    def alone(self, together: int, alone: int) -> bool:
        """Whether a call that takes so many nanoseconds runs alone."""
        found = bool(self._pool.goes_alone(self.record))
        took = alone if found else together
        self._pool.call_took(self.record, ctypes.c_int64(took))
        self.time += took
        return found

    def for_a_while(self, length: int, together: int, alone: int) -> Iterator[bool]:
        until = self.time + length
        while self.time < until:
            yield self.alone(together, alone)


@pytest.fixture
def calls(pool: ctypes.CDLL) -> Calls:
    return Calls(pool)


@pytest.mark.parametrize("together", [2 * MICRO, 30 * MICRO, 900 * MICRO])
@pytest.mark.parametrize("times", [0.1, 0.5, 0.8, 1.1, 2, 4, 64])
def test_nothing_is_lost_against_the_faster_way(calls: Calls, together: int, times: float) -> None:
    """But for what the trials take: a part in so many, and the first two of them."""
    alone = round(times * together)
    begin, count = calls.time, min(50_000, 20 * SECOND // min(together, alone))
    for _ in range(count):
        calls.alone(together, alone)
    first = 16 * together + 16 * alone
    assert calls.time - begin < 1.03 * count * min(together, alone) + first


def test_no_way_is_better_by_little(calls: Calls) -> None:
    """Calls stay together, whose lines then stay where they are."""
    found = list(calls.for_a_while(2 * SECOND, 50 * MICRO, 48 * MICRO))
    assert sum(found) < 0.003 * len(found)


def test_calls_that_would_take_much_longer_are_few(calls: Calls) -> None:
    """However many threads they gain by."""
    for together, alone in [(100 * MICRO, MILLI), (50 * MICRO, 90 * MICRO)]:
        list(calls.for_a_while(2 * SECOND, together, alone))
        found = list(calls.for_a_while(2 * SECOND, together, alone))
        assert sum(found) < 0.008 * len(found)


@pytest.mark.parametrize(("threads", "together"), [(2, 3 * MILLI), (64, 100 * MICRO)])
def test_long_calls_never_try(calls: Calls, threads: int, together: int) -> None:
    calls.record[THREADS] = threads
    assert not any(calls.for_a_while(5 * SECOND, together, MILLI))


def test_calls_of_sizes_that_vary_never_try(calls: Calls) -> None:
    calls.record[VARIES] = 1
    assert not any(calls.for_a_while(SECOND, 50 * MICRO, 10 * MICRO))


@pytest.mark.parametrize("times", [5, 12])
def test_the_first_call_finds_its_lines_elsewhere(calls: Calls, times: int) -> None:
    before = False
    for _ in range(2000):
        moved = bool(calls._pool.goes_alone(calls.record)) != before
        before = calls.alone(*((times if moved else 1) * t for t in (100 * MICRO, 60 * MICRO)))
    assert calls.alone(100 * MICRO, 60 * MICRO)


def test_memory_that_is_new(calls: Calls) -> None:
    """The first calls take many times as long, whichever way they go."""
    for _ in range(8):
        calls.alone(200 * MICRO, 190 * MICRO)
    list(calls.for_a_while(10 * MILLI, 40 * MICRO, 20 * MICRO))
    assert calls.alone(40 * MICRO, 20 * MICRO)


def test_what_is_faster_may_change(calls: Calls) -> None:
    """As a hypervisor moves cores apart, and back."""
    for _ in range(3):
        list(calls.for_a_while(2 * SECOND, 100 * MICRO, 180 * MICRO))
        assert not calls.alone(100 * MICRO, 180 * MICRO)
        list(calls.for_a_while(SECOND + 100 * MILLI, 500 * MICRO, 180 * MICRO))
        assert calls.alone(500 * MICRO, 180 * MICRO)
        list(calls.for_a_while(SECOND + 100 * MILLI, 100 * MICRO, 180 * MICRO))
        assert not calls.alone(100 * MICRO, 180 * MICRO)


def test_every_fourth_call_is_a_long_one(calls: Calls) -> None:
    """As data have it: alone, the others are faster, but all of them take five times as long."""
    for _ in range(1000):
        for together, alone in [(20 * MICRO, 10 * MICRO)] * 3 + [(400 * MICRO, 2600 * MICRO)]:
            calls.alone(together, alone)
    assert calls.time < 10**9 + 1.1 * 1000 * 460 * MICRO


def test_a_call_that_was_held_up_changes_nothing(calls: Calls) -> None:
    list(calls.for_a_while(100 * MILLI, 20 * MICRO, 10 * MICRO))
    calls.alone(10 * MILLI, 10 * MILLI)
    found = [calls.alone(20 * MICRO, 10 * MICRO) for _ in range(1000)]
    assert sum(found) > 0.98 * len(found)
