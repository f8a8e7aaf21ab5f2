"""Timing and verifying kernels."""

from __future__ import annotations

import ctypes
import pickle
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import pytest

from tcl.codegen.devices.cpu import LINE
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.tuner.measure.correctness import accumulation_depths, mismatch, tolerance
from tcl.tuner.measure.harness import Bench, Guarded, fingerprint
from tcl.tuner.measure.placement import ALIGNED, NUMPY, Placement
from tcl.tuner.measure.timing import MeasureSettings, measure, spread, together

Array = np.ndarray[Any, Any]


# Measuring.


class Clock:
    """Time that passes only while a kernel runs."""

    def __init__(self, durations: Iterator[float]) -> None:
        self.now = 0.0
        self.calls = 0
        self._durations = durations

    def __call__(self) -> float:
        return self.now

    def run(self) -> None:
        self.calls += 1
        self.now += next(self._durations)


def steady(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


def jittery(seconds: float) -> Iterator[float]:
    while True:
        yield seconds
        yield seconds * 1.5
        yield seconds * 0.7


def test_short_kernels_are_batched_to_a_millisecond() -> None:
    clock = Clock(steady(1e-5))
    measured = measure(clock.run, clock=clock)
    assert measured.median == pytest.approx(1e-5)
    assert len(measured.times) == 9
    assert not measured.dropped
    assert clock.calls == pytest.approx(2 + (2 + 9) * 100, abs=11)


def test_cold_first_call_neither_counts_nor_spoils_the_batches() -> None:
    def durations() -> Iterator[float]:
        yield 1.0
        yield 2e-3
        yield from steady(1e-5)

    clock = Clock(durations())
    measured = measure(clock.run, clock=clock)
    assert measured.times == pytest.approx((1e-5,) * 9)
    assert clock.calls > 9 * 100


def test_noisy_kernels_are_sampled_until_the_budget_is_spent() -> None:
    clock = Clock(jittery(2e-3))
    measured = measure(clock.run, clock=clock)
    assert len(measured.times) > 50
    assert clock.now == pytest.approx(0.2, rel=0.2)


def test_kernels_of_some_length_are_sampled_as_often_as_the_budget_allows() -> None:
    clock = Clock(steady(0.049))
    settings = MeasureSettings().for_each_of(2)
    assert len(measure(clock.run, clock=clock, settings=settings).times) == 4
    assert clock.calls == 5  # the first does not count, the others all do


@pytest.mark.parametrize(
    ("first", "second", "calls", "dropped"),
    [
        (0.5, 0.4, 2, False),
        (0.5, 0.24, 2, False),
        (0.39, 0.26, 2, True),  # a quarter slower than the best
        (0.41, 0.2, 1, True),  # not even worth a second call
    ],
)
def test_long_calls_are_few(first: float, second: float, calls: int, dropped: bool) -> None:
    """Of the one that counts, the finals will make more if it is fast enough."""
    clock = Clock(iter([first, second]))
    measured = measure(clock.run, best=None if second == 0.4 or first == 0.5 else 0.2, clock=clock)
    assert (clock.calls, measured.dropped) == (calls, dropped)
    assert measured.times == ((second,) if calls == 2 else (first,))


@pytest.mark.parametrize("first", [6e-5, 4e-4])
@pytest.mark.parametrize("single", [True, False])
def test_a_call_alone_may_tell_too_little_to_be_dropped_by(single: bool, first: float) -> None:
    """As on a GPU, where it takes longer by the events around it, and by a launch that is late."""

    def timer(run: Callable[[], object], calls: int) -> float:
        return 2e-6 + 1e-5 / calls

    settings = MeasureSettings(sample=2e-4, slow=3.0, single=single)
    measured = measure(lambda: None, first=first, best=3e-6, settings=settings, timer=timer)
    assert measured.dropped == single


@pytest.mark.parametrize(
    ("each", "samples", "calls"),
    [
        (1.04e-3, 9, 13),
        (1.19e-3, 3, 7),
        (1.21e-3, 2, 6),
        (1.99e-3, 2, 6),
        (2.01e-3, 1, 3),
        (4e-3, 1, 3),
    ],
)
def test_what_is_behind_is_sampled_less_the_further_it_is(
    each: float, samples: int, calls: int
) -> None:
    """And says so: what has few samples never counts as one of those near the best."""
    clock = Clock(steady(each))
    measured = measure(clock.run, best=1e-3, clock=clock)
    assert (len(measured.times), clock.calls) == (samples, calls)
    assert measured.dropped == (samples < 3)


def test_one_slow_moment_is_not_clearly_behind() -> None:
    clock = Clock(iter([1e-3, 1e-3, 5e-3, 1e-3, 5e-3, *[1e-3] * 8]))
    measured = measure(clock.run, best=1e-3, clock=clock)
    assert len(measured.times) == 9
    assert not measured.dropped


def test_placements_share_the_time_of_one() -> None:
    settings = MeasureSettings().for_each_of(2)
    clock = Clock(jittery(2e-3))
    measure(clock.run, clock=clock, settings=settings)
    assert clock.now == pytest.approx(0.1, rel=0.2)
    assert MeasureSettings().for_each_of(1) == MeasureSettings()


def test_a_kernel_is_as_fast_as_it_is_in_the_mean_ratio_of_its_placements() -> None:
    placed = (("here", (1.0, 2.0)), ("there", (4.0, 8.0, 9.0)))
    assert together(placed) == pytest.approx((2.0, 4.0))
    assert together((("here", (1.0, 3.0)),)) == pytest.approx((1.0, 3.0))


@pytest.mark.parametrize(("first", "calls"), [(0.2, 1), (0.02, 2), (0.0011, 2)])
def test_hopeless_kernels_are_dropped(first: float, calls: int) -> None:
    clock = Clock(iter([first, 0.0051, *[0.004] * 10_000]))
    measured = measure(clock.run, best=0.001, clock=clock)
    assert measured.dropped
    assert clock.calls == calls
    assert len(measured.times) == 1


def test_kernels_within_reach_of_the_best_are_not_dropped() -> None:
    clock = Clock(iter([0.09, *[0.00115] * 10_000]))
    assert not measure(clock.run, best=0.001, clock=clock).dropped


@pytest.mark.parametrize(("best", "many"), [(1.3e-3, False), (1.9e-3, True), (None, True)])
def test_precision_is_spent_on_those_that_may_win(best: float | None, many: bool) -> None:
    clock = Clock(jittery(2e-3))
    measured = measure(clock.run, best=best, clock=clock)
    assert (len(measured.times) > 9) == many
    assert many or len(measured.times) == 3


def test_outputs_are_reset_before_every_sample_and_not_timed() -> None:
    clock = Clock(steady(1e-3))
    resets: list[int] = []

    def reset() -> None:
        resets.append(clock.calls)
        clock.now += 100.0 if len(resets) < 3 else 0.0

    measured = measure(clock.run, clock=clock, reset=reset)
    assert measured.median == pytest.approx(1e-3)
    assert resets == list(range(clock.calls))


def test_measuring_a_real_function() -> None:
    begin = time.perf_counter()
    measured = measure(lambda: time.sleep(2e-3), settings=MeasureSettings(budget=0.05))
    together = time.perf_counter() - begin
    assert 2e-3 <= measured.median <= together


def test_median_and_spread() -> None:
    assert median((3.0, 1.0, 2.0)) == 2.0
    assert median((4.0, 1.0, 2.0, 3.0)) == 2.5
    assert spread((1.0, 1.0, 1.0)) == 0.0
    assert spread((1.0, 2.0, 3.0)) == 0.5
    with pytest.raises(ValueError, match="no median"):
        median(())


# Verifying.


def test_equal_and_rounded_results_are_right() -> None:
    expected = np.linspace(-1, 1, 101, dtype=np.float32)
    assert mismatch("O", expected.copy(), expected, 1) is None
    rounded = np.nextafter(expected, np.float32(2))
    assert mismatch("O", rounded, expected, 1) is None


def test_first_wrong_element_is_named() -> None:
    expected = np.ones((4, 5), np.float32)
    actual = expected.copy()
    actual[2, 3] = 1.001
    actual[3, 0] = np.nan
    sentence = mismatch("O", actual, expected, 1)
    assert sentence == (
        "output O differs from the reference at (2, 3): 1.0010000467300415 instead of 1.0 "
        "(2 of 20 elements differ; rounding explains 9.5e-07 there)"
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tolerance_grows_with_depth_and_still_finds_a_missing_term(dtype: str) -> None:
    terms = 256
    data = np.random.default_rng(0).uniform(1, 2, (50, terms))
    expected = data.sum(1).astype(dtype)
    if dtype != "float16":
        forth = np.cumsum(data.astype(dtype), axis=1, dtype=dtype)[:, -1]
        back = np.cumsum(data[:, ::-1].astype(dtype), axis=1, dtype=dtype)[:, -1]
        assert mismatch("O", forth, back, terms) is None
        assert mismatch("O", (data.sum(1) - data[:, 0]).astype(dtype), expected, terms)
    assert tolerance(dtype, terms) == 16 * tolerance(dtype, 1)


def test_cancelled_elements_are_judged_by_the_size_of_the_others() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((64, 512)).astype(np.float32)
    b = rng.standard_normal((512, 64)).astype(np.float32)
    sequential = np.zeros((64, 64), np.float32)
    for k in range(512):
        sequential += a[:, k : k + 1] * b[k : k + 1]
    assert mismatch("C", a @ b, sequential, 512) is None
    wrong = a[:, 1:] @ b[1:]
    assert mismatch("C", wrong, sequential, 512) is not None


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, 3e38, False),
        (1.0, np.inf, False),
        (0.0, -0.0, True),
        (0.0, 1e-30, False),
    ],
)
def test_values_that_are_not_finite(expected: float, actual: float, same: bool) -> None:
    pair = np.array([expected], np.float32), np.array([actual], np.float32)
    assert (mismatch("O", pair[1], pair[0], 1) is None) == same


def test_infinities_do_not_hide_errors_of_others() -> None:
    expected = np.array([np.inf, 1.0, 3e38], np.float32)
    assert mismatch("O", np.array([np.inf, 1.0, 3e38], np.float32), expected, 1) is None
    assert mismatch("O", np.array([np.inf, 1.0, 2e38], np.float32), expected, 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_integers_and_bools_have_to_be_equal(dtype: str) -> None:
    expected = np.array([0, 1, 1, 0]).astype(dtype)
    assert mismatch("O", expected.copy(), expected, 1000) is None
    actual = expected.copy()
    actual[2] = 0
    assert "at (2)" in (mismatch("O", actual, expected, 1000) or "")


def test_large_integers_are_compared_exactly() -> None:
    expected = np.array([2**62 + 1], np.int64)
    assert mismatch("O", expected - 1, expected, 1) is not None


def test_outputs_of_rank_0_and_empty_ones() -> None:
    assert mismatch("O", np.float32(1.0) * np.ones(()), np.ones(()), 1) is None
    assert mismatch("O", np.zeros(()), np.ones(()), 1) == (
        "output O differs from the reference: 0.0 instead of 1.0 (1 of 1 elements differ; "
        "rounding explains 1.8e-15 there)"
    )
    assert mismatch("O", np.ones((0, 3)), np.ones((0, 3)), 1) is None


def test_bfloat16_is_compared_as_a_float() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    expected = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert mismatch("O", np.array([1.0078125, 2.0], ml_dtypes.bfloat16), expected, 1) is None
    assert mismatch("O", np.array([1.25, 2.0], ml_dtypes.bfloat16), expected, 1) is not None
    guarded = Guarded(expected)
    guarded.poison()
    assert np.isnan(guarded.array.astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("value", [0, 1])
def test_elements_that_are_not_written_are_found(dtype: str, value: int) -> None:
    expected = np.full((3, 4), value, dtype)
    guarded = Guarded(expected)
    guarded.poison()
    guarded.array[:2] = expected[:2]
    assert "at (2, 0)" in (mismatch("O", guarded.array, expected, 1) or "")
    guarded.array[2] = expected[2]
    assert mismatch("O", guarded.array, expected, 1) is None


LAYOUTS = pytest.mark.parametrize(
    "like",
    [
        np.empty((3, 4), np.float32),
        np.empty((3, 4), np.float64).T,
        np.empty(10, np.int16)[::-2],
        np.empty((), np.float32),
        np.empty((0, 3), np.float32),
        np.empty(100, np.uint8)[1:],
    ],
    ids=["plain", "transposed", "reversed", "scalar", "empty", "bytes"],
)


@LAYOUTS
@pytest.mark.parametrize("placement", [ALIGNED, NUMPY], ids=["aligned", "numpy"])
def test_guarded_memory_is_laid_out_alike_and_lies_where_it_is_said_to(
    like: Array, placement: Placement
) -> None:
    guarded = Guarded(like, placement)
    assert guarded.array.shape == like.shape
    assert guarded.array.dtype == like.dtype
    assert guarded.array.strides == like.strides
    if like.size:
        assert _ends(guarded.array)[0] % LINE == placement.past


@LAYOUTS
@pytest.mark.parametrize("second", [False, True])
def test_guarded_memory_notices_stray_writes(like: Array, second: bool) -> None:
    guarded = Guarded(like, NUMPY)
    guarded.poison(second=second)
    guarded.array[...] = 0
    assert guarded.intact()
    first, stop = _ends(guarded.array)
    for address in (first - 1, stop):
        guarded.poison(second=second)
        ctypes.memset(address, 0, 1)
        assert not guarded.intact()


def _ends(array: Array) -> tuple[int, int]:
    """Addresses of an array's first byte and of that after its last."""
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if n > 1]
    data = array.ctypes.data
    first, last = data + sum(r for r in reach if r < 0), data + sum(r for r in reach if r > 0)
    return first, last + array.itemsize


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_two_poisons_have_no_element_in_common(dtype: str) -> None:
    guarded = Guarded(np.zeros(10, dtype))
    guarded.poison()
    one = guarded.array.view(np.uint8).copy()
    guarded.poison(second=True)
    both = np.stack([one, guarded.array.view(np.uint8)]).reshape(2, 10, -1)
    assert (both[0] != both[1]).any(axis=1).all()


def test_every_changed_byte_changes_the_fingerprint() -> None:
    raw = np.random.default_rng(0).integers(0, 255, 600_001).astype(np.uint8)
    found = {fingerprint(raw)}
    places = [0, 1, 32767, 32768, 524_287, 524_288, 589_823, 589_824, 600_000]
    for at in places:
        raw[at] += 1
        found.add(fingerprint(raw))
    assert len(found) == len(places) + 1
    rows = raw[: 2 << 15].reshape(2, -1)
    before = fingerprint(raw)
    rows[:] = rows[::-1].copy()  # whole rows in another order
    assert fingerprint(raw) != before


def test_depths_follow_what_is_read() -> None:
    text = """
    def f(float(N, K) I) -> (S, E, T, O, X) {
        S(n) +=! I(n, k)
        E(n, k) = exp(I(n, k) - S(n))
        T(n) +=! E(n, k)
        O(n, k) = E(n, k) / T(n)
        X(n) max=! I(n, k)
        X(n) max= O(n, k)
    }
    """
    depths = accumulation_depths(infer(check(text)["f"], {"I": (3, 10)}))
    assert depths == {"I": 0, "S": 10, "E": 11, "T": 21, "O": 22, "X": 32}


def test_each_operation_of_a_formula_of_doubles_counts() -> None:
    text = """
    def f(double(N) X, float(N) Y, int32(N) I) -> (O, P, Q, R) {
        O(n) = exp(0.5 * d * d - X(n)) where v = 2 + X(n), d = (X(n) + 1) / v
        P(n) = exp(0.5 * Y(n) * Y(n) - 1)
        Q(n) = X(I(n + 2 * n - 2 * n)) + 1 where n in 0:N
        R() +=! X(n) * X(n) * O(n)
    }
    """
    depths = accumulation_depths(infer(check(text)["f"], {"X": (3,), "Y": (3,), "I": (3,)}))
    assert depths == {"X": 0, "Y": 0, "I": 0, "O": 6, "P": 1, "Q": 1, "R": 10}


@pytest.mark.parametrize(
    ("switches", "seconds"),
    [((0, 0), 0.5), ((0, 3), 0.2), ((1, 3), 0.5)],
    ids=["undisturbed", "preempted", "waited"],
)
def test_what_the_system_takes_from_one_thread_does_not_count(
    switches: tuple[int, int], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call in which .5 s pass, and its thread runs for .2 s of them."""
    looks = iter([(5, 5), (5 + switches[0], 5 + switches[1])])
    passed, used = iter([1.0, 2.0]), iter([1.0, 1.4])
    monkeypatch.setattr("tcl.tuner.measure.harness._switches", lambda: next(looks))
    monkeypatch.setattr("time.perf_counter", lambda: next(passed))
    monkeypatch.setattr("time.thread_time", lambda: next(used))
    bench = pickle.loads(pickle.dumps(Bench(one_thread=True)))  # it goes to other processes
    found = bench.seconds(lambda: None, 2)
    monkeypatch.undo()
    assert found == pytest.approx(seconds)
