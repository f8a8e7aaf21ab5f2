"""What the cache knows of near sizes: which is nearest, what differs, who may use it."""

from __future__ import annotations

import math
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cpu_kernels import cache_key

import tcl
from tcl.arrays.arguments import Array
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.schedule.cpu import schedule
from tcl.executors.call_kernels import size
from tcl.tuner.cache.fingerprint import split_threads, with_threads
from tcl.tuner.cache.key import differences
from tcl.tuner.cache.nearby import distance, explain, nearby, seeds
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


def layout(*shape: int, dtype: str = "float32", transposed: bool = False) -> ArrayLayout:
    array = np.empty(shape[::-1] if transposed else shape, dtype)
    strides = (array.T if transposed else array).strides
    return ArrayLayout(shape, strides, dtype)


def key(*sizes: int, dtype: str = "float32") -> CacheKey:
    return CacheKey("def mm", "cpu", (layout(*sizes, dtype=dtype),), "a cpu; 2 threads", "14")


KEY = key(64, 64)


def correct(time: float) -> Outcome:
    return Outcome(Verdict.CORRECT, (time,))


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    return TuningCache(tmp_path / "t.db")


def test_distance_counts_doublings() -> None:
    assert distance(KEY, KEY) == 0
    assert distance(KEY, key(128, 32)) == 2
    assert distance(KEY, key(64, 96)) == pytest.approx(math.log2(1.5))
    assert distance(key(0, 4), key(1, 4)) == 0
    assert distance(KEY, key(64)) == math.inf
    assert distance(KEY, replace(KEY, inputs=())) == math.inf


def test_nearest_sizes_come_first_and_options_once(cache: TuningCache) -> None:
    for other, options in ((key(64, 256), "far"), (key(64, 60), "near"), (key(64, 128), "mid")):
        cache.store(other, options, correct(2.0), run="r")
        cache.store(other, "shared", correct(3.0), run="r")
        cache.store(other, "failed", Outcome(Verdict.TIMEOUT), run="r")
    cache.store(KEY, "own", correct(1.0), run="r")
    found = list(nearby(cache, KEY))
    assert [n.record.options for n in found] == ["near", "shared", "mid", "far"]
    assert [n.key.inputs[0].shape[1] for n in found] == [60, 60, 128, 256]
    assert [n.distance for n in found][2:] == [1.0, 2.0]
    assert [n.record.options for n in nearby(cache, KEY, each=1)] == ["near", "mid", "far"]


@pytest.mark.parametrize(
    "other",
    [
        replace(key(64, 60), definition="def other"),
        replace(key(64, 60), backend="cuda"),
        replace(key(64, 60), device="a cpu"),
        replace(key(64, 60), codegen_version="13"),
        key(64, 60, dtype="float64"),
        key(64, 60, 1),
    ],
    ids=["definition", "backend", "threads", "version", "dtype", "rank"],
)
def test_what_is_not_near(cache: TuningCache, other: CacheKey) -> None:
    cache.store(other, "x", correct(1.0), run="r")
    assert list(nearby(cache, KEY)) == []


def test_same_sizes_with_other_strides_are_near_but_like_strides_nearer(cache: TuningCache) -> None:
    cache.store(replace(KEY, inputs=(layout(64, 64, transposed=True),)), "t", correct(1.0), run="r")
    cache.store(key(64, 64, dtype="float64"), "d", correct(1.0), run="r")
    asked = replace(KEY, inputs=(layout(64, 128),))
    cache.store(KEY, "rows", correct(9.0), run="r")
    assert [n.record.options for n in nearby(cache, asked)] == ["rows", "t"]
    assert [n.record.options for n in nearby(cache, KEY)] == ["t"]


def test_seeds_are_ones_own_then_near_ones_then_those_of_other_versions(cache: TuningCache) -> None:
    for position in range(4):
        cache.store(KEY, f"own{position}", correct(1.0 + position), run="r")
    cache.store(key(64, 128), "near", correct(1.0), run="r")
    cache.store(key(64, 128), "own0", correct(0.5), run="r")
    cache.store(replace(KEY, codegen_version="13"), "old", correct(1.0), run="r")
    cache.store(replace(key(64, 128), codegen_version="13"), "old near", correct(1.0), run="r")
    found = list(seeds(cache, KEY, own=2))
    assert [n.record.options for n in found] == ["own0", "own1", "old", "near", "old near"]
    assert [n.key == KEY for n in found] == [True, True, False, False, False]
    assert list(seeds(TuningCache(cache.path.parent / "none.db"), KEY)) == []


def test_threads_are_part_of_a_device() -> None:
    assert with_threads("a cpu", 1) == "a cpu"
    for threads in (1, 2, 64):
        assert split_threads(with_threads("a; b", threads)) == ("a; b", threads)


def test_every_ingredient_that_differs_is_named() -> None:
    other = CacheKey(
        "def mm\nline", "cuda", (layout(32, 64, dtype="float64", transposed=True),), "gpu", "13"
    )
    found = {d.ingredient: (d.here, d.there) for d in differences(KEY, other)}
    assert found == {
        "def text": ("(nothing)", "line"),
        "backend": ("cpu", "cuda"),
        "dtypes": ("float32", "float64"),
        "model": ("a cpu", "gpu"),
        "shapes": ("[64,64]", "[32,64]"),
        "threads": ("2", "1"),
        "strides": ("row-major", "(8, 256)"),
        "codegen version": ("14", "13"),
    }
    assert differences(KEY, KEY) == ()
    assert [d.ingredient for d in differences(KEY, key(32, 64))] == ["shapes"]  # strides follow


def test_the_nearest_key_differs_the_least(cache: TuningCache) -> None:
    assert explain(cache, KEY, "mm").nearest is None
    edited = replace(KEY, definition="def edited")
    cache.store(edited, "x", correct(1.0), run="r", entry="mm")
    cache.store(replace(KEY, definition="def g"), "x", correct(1.0), run="r", entry="g")
    answer = explain(cache, KEY, "mm")
    assert answer.nearest is not None and answer.nearest.key == edited
    assert [d.ingredient for d in answer.differences] == ["def text"]
    cache.store(replace(key(64, 65), device="b"), "x", correct(1.0), run="r", entry="mm")
    cache.store(key(64, 128), "x", correct(1.0), run="r", entry="mm")
    cache.store(key(64, 96), "x", correct(1.0), run="r", entry="mm")
    answer = explain(cache, KEY, "mm")
    assert answer.nearest is not None and answer.nearest.key == key(64, 96)
    assert answer.exact is None
    cache.store(KEY, "x", correct(1.0), run="r", entry="mm")
    answer = explain(cache, KEY, "mm")
    assert answer.exact is not None and answer.exact.key == KEY


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningCache:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    return TuningCache(default_path())


def rand(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, np.float32)


def tuned(cache: TuningCache, options: tcl.MappingOptions, *shape: int) -> None:
    """As if the def had been tuned for square matrices of these sizes."""
    m, k, n = shape
    arrays = (rand(m, k), rand(k, n))
    sized = size(tcl.define(MM).definition("mm"), arrays)
    time = Outcome(Verdict.CORRECT, (1e-6,))
    cache.store(cache_key(sized, arrays), options.to_json(), time, run="r", entry="mm")


FITS_ALL = tcl.MappingOptions("naive").tile(8, 8, 8)
REFUSED = tcl.MappingOptions("naive").nest(1).tile(4)
"""For a nest that the def has not."""


def test_options_for_near_sizes_are_used_when_asked_and_never_silently(
    own_cache: TuningCache,
) -> None:
    tuned(own_cache, FITS_ALL, 16, 16, 16)
    A, B = rand(16, 16), rand(16, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor, _ = tcl.define(MM, threads=1).executor("mm", (A, B))
        assert executor.options != FITS_ALL
        exact, _ = tcl.define(MM, threads=1, nearest=True).executor("mm", (A, rand(16, 16)))
        assert exact.options == FITS_ALL
    function = tcl.define(MM, threads=1, nearest=True)
    with pytest.warns(
        tcl.TclWarning,
        match=r"mm was not tuned for float32\[16,16\] float32\[16,20\]; the options for "
        r"float32\[16,16\] float32\[16,16\] are used",
    ):
        result = function.mm(A, B)
    np.testing.assert_allclose(result, A @ B, rtol=1e-5)
    assert function.executor("mm", (A, B))[0].options == FITS_ALL
    copy = pickle.loads(pickle.dumps(function))
    with pytest.warns(tcl.TclWarning, match="was not tuned for"):
        copy.mm(A, B)
    again = pickle.loads(pickle.dumps(function.mm))
    with pytest.warns(tcl.TclWarning, match="was not tuned for"):
        again(A, B)


def test_options_that_do_not_fit_are_skipped_for_the_next_nearest(own_cache: TuningCache) -> None:
    A, B = rand(16, 16), rand(16, 16)
    sized = size(tcl.define(MM).definition("mm"), (A, B))
    with pytest.raises(tcl.OptionsError):
        schedule(sized, REFUSED, host_cpu())
    tuned(own_cache, REFUSED, 16, 16, 17)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing, _ = tcl.define(MM, threads=1, nearest=True).executor("mm", (A, B))
    assert nothing.options == tcl.define(MM, threads=1).executor("mm", (A, B))[0].options
    tuned(own_cache, FITS_ALL, 16, 16, 64)
    with pytest.warns(tcl.TclWarning, match=r"options for float32\[16,16\] float32\[16,64\]"):
        executor, _ = tcl.define(MM, threads=1, nearest=True).executor("mm", (A, B))
    assert executor.options == FITS_ALL


def test_the_factory_uses_near_sizes_when_asked(cache: TuningCache) -> None:
    tuned(cache, FITS_ALL, 16, 16, 16)
    A, B = rand(16, 16), rand(16, 20)
    exact = tcl.make_load_from_cache_options_factory(cache.path, threads=1)
    assert exact(MM, "mm", A, B) is None
    near = tcl.make_load_from_cache_options_factory(cache.path, threads=1, nearest=True)
    with pytest.warns(tcl.TclWarning, match="was not tuned for"):
        assert near(MM, "mm", A, B) == FITS_ALL
    with pytest.warns(tcl.TclWarning, match="was not tuned for"):
        np.testing.assert_allclose(tcl.define(MM, near, threads=1).mm(A, B), A @ B, rtol=1e-5)
    nothing = tcl.make_load_from_cache_options_factory(cache.path.parent / "none.db", nearest=True)
    assert nothing(MM, "mm", A, B) is None


def test_near_sizes_with_several_threads_and_other_strides(own_cache: TuningCache) -> None:
    A, B = rand(64, 64), rand(64, 64)
    sized = size(tcl.define(MM).definition("mm"), (A, B))
    options = tcl.MappingOptions("mlp")
    own_cache.store(cache_key(sized, (A, B), 2), options.to_json(), correct(1e-6), run="r")
    with pytest.warns(tcl.TclWarning, match="was not tuned for"):
        function = tcl.define(MM, threads=2, nearest=True)
        np.testing.assert_allclose(function.mm(A.T, B[:, :48]), A.T @ B[:, :48], rtol=1e-4)


def test_other_strides_are_said_to_be_what_differs(own_cache: TuningCache) -> None:
    tuned(own_cache, FITS_ALL, 16, 16, 16)
    with pytest.warns(tcl.TclWarning, match=r"\[16,16\] with these strides; the options for oth"):
        tcl.define(MM, threads=1, nearest=True).mm(rand(16, 16).T, rand(16, 16))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"options": "naive"}, "user.s own tuning cache, and options were given"),
        ({}, "has to be True or False"),
    ],
)
def test_nearest_is_honoured_or_refused(arguments: dict[str, str], sentence: str) -> None:
    nearest = True if arguments else "yes"
    with pytest.raises(tcl.ArgumentError, match=sentence):
        tcl.define(MM, nearest=nearest, **arguments)  # type: ignore[arg-type]


def test_cached_options_that_are_none_are_passed_over(own_cache: TuningCache) -> None:
    A, B = rand(16, 16), rand(16, 16)
    sized = size(tcl.define(MM).definition("mm"), (A, B))
    own_cache.store(cache_key(sized, (A, B)), '{"who":"knows"}', correct(1e-9), run="r")
    with pytest.warns(tcl.TclWarning, match="do not apply: rank 1 for mm .*who.*the default is"):
        tcl.define(MM, threads=1).mm(A, B)
    tuned(own_cache, FITS_ALL, 16, 16, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor, _ = tcl.define(MM, threads=1).executor("mm", (A, B))
    assert executor.options == FITS_ALL
