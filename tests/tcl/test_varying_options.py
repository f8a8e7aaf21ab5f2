"""Options of sizes that vary: one notion of a class, in caches, searches and executors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl
from tcl import first_use
from tcl.backends.targets import CpuTarget
from tcl.executors.call_kernels import FirstCall
from tcl.executors.varying import VaryingExecutor
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.sizes.size_classes import SizeClass, class_of, classes_of, kind_of
from tcl.selection.best_options import Query
from tcl.tuner.cache.key import ArrayLayout
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import Note

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
GRADIENT = """
def mm_grad(float(M, K) A, float(K, N) B, float(M, N) dC) -> (dA) {
    dA(m, k) +=! dC(m, n) * B(k, n)
}
"""
NAIVE, POINTWISE = (tcl.MappingOptions(name) for name in ("naive", "pointwise"))


def query(varying: tuple[str, ...] = ("M",), **sizes: int) -> Query:
    """Of ``mm`` on one thread."""
    sizes = {"M": 20, "K": 8, "N": 24, **sizes}
    arrays = operands(sizes)
    sized = infer(check(MM)["mm"], {"A": arrays[0].shape, "B": arrays[1].shape})
    return CpuTarget(1).query(sized, arrays, varying)


def operands(sizes: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = (sizes["M"], sizes["K"]), (sizes["K"], sizes["N"])
    return rng.standard_normal(shapes[0], np.float32), rng.standard_normal(shapes[1], np.float32)


def stored(path: Path, found: Query, options: tcl.MappingOptions, time: float = 1e-6) -> None:
    outcome = Outcome(Verdict.CORRECT, (time,))
    TuningCache(path).store(found.key, options.to_json(), outcome, run="r", entry=found.name)


def used(path: Path, m: int, varying: tuple[str, ...] = ("M",)) -> tcl.MappingOptions:
    """The options that ``mm`` runs with on ``m`` rows, from a cache file."""
    factory = tcl.make_load_from_cache_options_factory(path, threads=1)
    t = tcl.define(MM, factory, varying=varying, threads=1)
    a, b = operands({"M": m, "K": 8, "N": 24})
    np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    (executor,) = t._kernels.executors.values()
    return executor.options


@pytest.mark.parametrize(
    ("size", "wide", "narrow"),
    [
        (0, None, None),
        (1, SizeClass(1, 1, 1), SizeClass(1, 1, 1)),
        (3, SizeClass(1, 2, 3), SizeClass(1, 2, 3)),
        (4, SizeClass(1, 4, 7), SizeClass(1, 4, 7)),
        (15, SizeClass(1, 8, 15), SizeClass(1, 8, 15)),
        (16, SizeClass(16, 16, 255), SizeClass(16, 16, 31)),
        (17, SizeClass(1, 16, 255), SizeClass(1, 16, 31)),
        (255, SizeClass(1, 16, 255), SizeClass(1, 128, 255)),
        (256, SizeClass(16, 256, 4095), SizeClass(16, 256, 511)),
        (2**31 - 1, SizeClass(1, 2**20, 2**31 - 1), SizeClass(1, 2**30, 2**31 - 1)),
        (2**31, None, None),
    ],
)
def test_classes(size: int, wide: SizeClass | None, narrow: SizeClass | None) -> None:
    assert (class_of(size), class_of(size, narrow=True)) == (wide, narrow)
    assert wide is None or (size in wide and wide.representative in wide)
    found = [] if wide is None else [{"N": wide}, {"N": narrow}]
    assert list(classes_of({"N": size, "M": 0}, ["N"])) == found


@pytest.mark.parametrize(
    ("size", "usual"),
    [(1, 1), (2, 3), (5, 7), (8, 15), (17, 65), (16, 80), (257, 1025), (256, 1040)],
)
def test_the_size_that_options_are_chosen_for(size: int, usual: int) -> None:
    # In the middle; below 16 the largest, whose tile holds all others.
    found = class_of(size)
    assert found is not None
    assert found.representative == usual


def test_sizes_of_a_kind_are_in_the_same_classes() -> None:
    found: dict[int, set[tuple[SizeClass | None, SizeClass | None]]] = {}
    for size in (*range(5000), *(1 << k for k in range(33)), 2**31 - 1, 2**31 + 1):
        classes = class_of(size), class_of(size, narrow=True)
        found.setdefault(kind_of(size), set()).add(classes)
    assert all(len(classes) == 1 for classes in found.values())


def test_a_class_knows_the_kinds_of_its_sizes() -> None:
    for size in (*range(1, 5000), *(1 << k for k in range(31)), 2**31 - 1):
        for narrow in (False, True):
            found = class_of(size, narrow=narrow)
            assert found is not None and kind_of(size) in found.kinds
    kinds = [kind for each in {*map(class_of, range(1, 5000))} if each for kind in each.kinds]
    assert len(kinds) == len({*kinds})


def test_a_class_holds_its_multiples_alone() -> None:
    assert str(SizeClass(16, 16, 255)) == "16*(1..15)"
    assert str(SizeClass(1, 16, 255)) == "16..255"
    assert 240 in SizeClass(16, 16, 255)
    assert 241 not in SizeClass(16, 16, 255)
    assert 256 not in SizeClass(16, 16, 255)


def test_sizes_of_a_class_have_one_key() -> None:
    one = query(M=20)
    assert one.key == query(M=255).key != query(M=256).key
    assert one.key != query(M=32).key  # a multiple of 16
    assert one.key.sizes == "float32[16..255,8] float32[8,24]"
    assert query(M=32).key.sizes == "float32[16*(1..15),8] float32[8,24]"
    assert query((), M=20).key.sizes == "float32[20,8] float32[8,24]"
    assert query(M=0).key == query((), M=0).key  # in no class
    assert query(("K", "M"), M=20).key != one.key
    # The size by which options are chosen stands for a class, and its own key is another one.
    usual = query((), M=one.key.inputs[0].shape[0])
    assert usual.key != one.key
    assert usual.key.inputs[0].shape == one.key.inputs[0].shape


def test_exact_keys_are_what_they_were() -> None:
    key = replace(
        query((), M=20).key, definition="def", device="a cpu", codegen_version="1", backend="cpu"
    )
    assert key.digest == "f5a20076ffba68102c6eb348d1b77398914fd8a30c2aa51f94f1241e9fd13d94"


def test_options_of_a_class_are_found_for_all_of_its_sizes(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    stored(path, query(M=100), NAIVE)
    stored(path, query(M=32), POINTWISE)
    assert [used(path, m) for m in (17, 255, 16, 240)] == [NAIVE, NAIVE, POINTWISE, POINTWISE]
    message = (
        f"{path} has no options for mm on float32[256..4095,8] float32[8,24], so the default is "
        "used (the nearest is for mm on float32[16*(1..15),8] float32[8,24]); to use its "
        f"options: make_load_from_cache_options_factory({str(path)!r}, nearest=True); or tune "
        "these sizes into this file with --varying M"
    )
    with pytest.warns(tcl.TclWarning) as told:
        assert used(path, 257) == tcl.MappingOptions("mlp")
    assert [str(w.message) for w in told] == [message]


def test_exact_options_are_for_exact_kernels(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    stored(path, query(M=100), NAIVE)
    stored(path, query((), M=20), POINTWISE)
    assert used(path, 20, ()) == POINTWISE
    assert used(path, 20) == NAIVE
    with pytest.warns(tcl.TclWarning, match="has no options for mm on float32"):
        assert used(path, 100, ()) == tcl.MappingOptions("mlp")


def test_options_of_single_sizes_are_used_where_a_class_has_none(tmp_path: Path) -> None:
    # As a cache has them that was made before; whichever size comes up first.
    path = tmp_path / "own.db"
    stored(path, query((), M=20), POINTWISE)
    stored(path, query((), M=64), NAIVE)  # the nearest to the middle of the class
    stored(path, query((), M=300), POINTWISE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [used(path, m) for m in (20, 60, 250)] == [NAIVE] * 3


def test_options_that_a_size_of_the_class_cannot_have_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    wrong = tcl.MappingOptions.from_json('{"preset":"mlp","nests":[{"tile":[7]},{"tile":[7]}]}')
    stored(path, query(M=100), wrong, 1e-7)
    stored(path, query(M=100), NAIVE)
    with pytest.warns(tcl.TclWarning, match="cached options do not apply: rank 1 for mm"):
        assert used(path, 30) == NAIVE


def test_options_that_peel_are_for_sizes_alone(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    peeled = tcl.MappingOptions.from_json('{"preset":"mlp","default":{"peel":true}}')
    stored(path, query(M=100), peeled)
    t = tcl.define(MM, tcl.make_load_from_cache_options_factory(path, threads=1),
                   varying=("M",), threads=1)  # fmt: skip
    for m in (17, 100, 255):
        a, b = operands({"M": m, "K": 8, "N": 24})
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert all(isinstance(e, VaryingExecutor) for e in t._kernels.executors.values())


def test_forward_and_backward_never_share(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    stored(path, query(M=100), NAIVE)
    factory = tcl.make_load_from_cache_options_factory(path, threads=1)
    t = tcl.define(MM + GRADIENT, factory, varying=("M",), threads=1)
    a, b = operands({"M": 20, "K": 8, "N": 24})
    t.mm(a, b)
    with pytest.warns(tcl.TclWarning, match="has no options for mm_grad"):
        t.mm_grad(a, b, np.ones((20, 24), np.float32))
    assert {e.sized.checked.name: e.options for e in t._kernels.executors.values()} == {
        "mm": NAIVE,
        "mm_grad": tcl.MappingOptions("mlp"),
    }


@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_tunes_the_kernel_of_the_class(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    tuner = tcl.Tuner(MM, path, threads=1, varying=("M",))
    config = tcl.TunerConfig(strategy="random", generations=1, population=2, threads=1)
    result = tuner.tune("mm", operands({"M": 50, "K": 8, "N": 24}), config=config)
    (summary,) = TuningCache(path).list()
    assert summary.key == query(M=50).key
    assert result.options is not None
    assert used(path, 251) == result.options
    a, b = operands({"M": 30, "K": 8, "N": 24})
    known = tcl.MappingOptionsCache(path)
    assert known.load(MM, "mm", (a, b), threads=1, varying=("M",)) == known.load(
        MM, "mm", operands({"M": 60, "K": 8, "N": 24}), threads=1, varying=["M"], count=1
    )
    assert known.load(MM, "mm", (a, b), threads=1) == []


@pytest.mark.usefixtures("searches_in_threads")
def test_what_has_no_class_is_tuned_for_itself(tmp_path: Path) -> None:
    text = "def f(float(N) A) -> (O) { O(i) = A(i) where i in 0:min(N, 50) }"
    told: list[object] = []
    tuner = tcl.Tuner(text, tmp_path / "own.db", threads=1, varying=("N",))
    config = tcl.TunerConfig(strategy="random", generations=1, population=2, threads=1)
    tuner.tune("f", (np.ones(40, np.float32),), config=config, report=told.append)
    notes = [each.message for each in told if isinstance(each, Note)]
    assert notes[0] == (
        "no kernel of f can be for a class of N=40: whether N >= 51 is known only when the kernel "
        "runs (line 1); a kernel for these sizes only is tuned"
    )
    (summary,) = TuningCache(tmp_path / "own.db").list()
    assert summary.key.sizes == "float32[40]"


def test_arrays_that_are_not_row_major_are_refused_by_a_search() -> None:
    a, b = operands({"M": 20, "K": 8, "N": 24})
    with pytest.raises(tcl.ArgumentError) as refused:
        tcl.Tuner(MM, threads=1, varying=("M",)).tune("mm", (np.asfortranarray(a), b))
    assert str(refused.value) == (
        "kernels for varying sizes need row-major arrays, but input 'A' of mm is not "
        "row-major; leave out varying, or pass a copy (numpy.ascontiguousarray)"
    )


def test_keys_of_classes_go_through_files(tmp_path: Path) -> None:
    from tcl.tuner.cache.merge import add, merge, results
    from tcl.tuner.cache.t4_format import from_t4, to_t4

    path = tmp_path / "own.db"
    stored(path, query(M=100), NAIVE)
    stored(path, query((), M=100), POINTWISE)
    found = results(TuningCache(path))
    assert {each.key for each in found} == {query(M=100).key, query((), M=100).key}
    merged = TuningCache(tmp_path / "merged.db")
    merge(merged, path)
    assert results(merged) == found
    text = to_t4(found)
    added = TuningCache(tmp_path / "added.db")
    add(added, from_t4(text, "file", lambda key, options: options))
    assert {each.key for each in results(added)} == {each.key for each in found}
    data = json.loads(text)
    data["tcl"]["problems"][0]["inputs"][0]["classes"] = [[16, 0, 255], None]
    with pytest.raises(tcl.TclError) as refused:
        from_t4(json.dumps(data), "file", lambda key, options: options)
    assert str(refused.value) == (
        "file: problem 0: a class of sizes has a divisor, a minimum and a maximum"
    )


def test_layouts_know_what_they_serve() -> None:
    of = SizeClass(16, 16, 255)
    layout = ArrayLayout((80, 8), (32, 4), "float32", (of, None))
    assert layout.has(ArrayLayout((240, 8), (32, 4), "float32"))
    assert not layout.has(ArrayLayout((241, 8), (32, 4), "float32"))
    assert not layout.has(ArrayLayout((240, 9), (36, 4), "float32"))
    assert not layout.has(ArrayLayout((240, 8), (4, 960), "float32"))
    assert not layout.has(ArrayLayout((240, 8), (32, 4), "int32"))
    assert not layout.has(layout)


@pytest.mark.usefixtures("searches_in_threads")
def test_a_class_is_tuned_once_when_it_is_needed_first(
    own_cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    searched = first_use._searched

    def counted(cache: TuningCache, call: FirstCall, *arguments: Any) -> Any:
        keys.append(call.query.key.sizes)
        return searched(cache, call, *arguments)

    monkeypatch.setattr(first_use, "_searched", counted)
    t = tcl.define(MM, varying=("M",), threads=1, tune_mode=["naive", "pointwise"])
    for m in (20, 250, 33, 48):
        a, b = operands({"M": m, "K": 8, "N": 24})
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert keys == ["float32[16..255,8] float32[8,24]", "float32[16*(1..15),8] float32[8,24]"]
