"""What searches found for other sizes is used where it promises more than the default, and said."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tcl
from tcl.backends.targets import CpuTarget
from tcl.cli import main
from tcl.codegen.compiler import Device, compiler_for
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.common import warn
from tcl.common.errors import CacheError
from tcl.executors.dispatch import Kernels, Settings
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.selection import near_sizes
from tcl.selection.best_options import Query
from tcl.selection.near_sizes import AdoptedOptions, fitted, judged
from tcl.tuner.cache.key import ArrayLayout
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.model import lookup
from tcl.tuner.run.brief import BriefSearch

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SIZES, NEAR, FAR = (120, 24, 64), (240, 24, 64), (480, 24, 64)
"""Of M, K, N. All of them have the same default but for what follows from M."""
OTHER = (2, 24, 3)
"""These have another one."""
CPU = replace(host_cpu(), threads=1)


@pytest.fixture(autouse=True)
def cache(own_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningCache:
    """The user's. Nobody has said anything, and there is no model."""
    monkeypatch.delenv("TCL_TUNE_MODE")
    monkeypatch.setattr(lookup, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(warn, "_told", set())
    return TuningCache(default_path())


def query(
    sizes: tuple[int, ...] = SIZES,
    text: str = MM,
    dtype: str = "float32",
    device: Device = CPU,
) -> Query:
    m, k, n = sizes
    sized = infer(check(text)["mm"], {"A": (m, k), "B": (k, n)})
    return Query.on_inputs(sized, [np.empty((m, k), dtype), np.empty((k, n), dtype)], device)


def found(
    order: tuple[int, ...] = (1, 0, 2), sizes: tuple[int, ...] = NEAR, device: Device = CPU
) -> MappingOptions:
    """As a search has it, that has changed one thing."""
    asked = query(sizes, device=device)
    (own,) = compiler_for(device).plan(asked.sized, DEFAULT, asked.layouts()).options.values()
    return MappingOptions().with_nest(0, replace(own, inner_order=order))


def raced(
    cache: TuningCache,
    key: CacheKey,
    options: MappingOptions,
    gain: float = 1.5,
    run: str = "r",
    default: float = 3e-6,
) -> None:
    """As if a search had timed options in turns with the default."""
    times = {options.to_json(): default / gain, DEFAULT.to_json(): default}
    for place, text in enumerate(sorted(times, key=lambda text: times[text]), 1):
        outcome = Outcome(Verdict.CORRECT, (times[text],), heat=0, place=place)
        cache.store(key, text, outcome, run=run, entry="mm")


def chosen(sizes: tuple[int, ...] = SIZES, **settings: object) -> MappingOptions:
    """By what a new text's def is mapped; its results are right, and nobody is warned."""
    m, k, n = sizes
    A, B = np.arange(m * k, dtype=np.float32).reshape(m, k) % 7, np.ones((k, n), np.float32)
    kernels = Kernels(MM, Settings(threads=1, **settings))  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor, _ = kernels.executor("mm", (A, B))
    np.testing.assert_array_equal(executor(A, B), A @ B)
    options: MappingOptions = executor.options
    return options


def no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object) -> Iterator[None]:
        raise AssertionError("near sizes are judged")

    monkeypatch.setattr(near_sizes, "judged", judge)


def test_a_miss_takes_the_nearest_and_says_from_where(
    cache: TuningCache, caplog: pytest.LogCaptureFixture
) -> None:
    assert chosen() == DEFAULT
    raced(cache, query(FAR).key, found((2, 0, 1), FAR))
    raced(cache, query(NEAR).key, found())
    with caplog.at_level(logging.DEBUG, "tcl.executors"):
        used = chosen()
    assert used.nests[0].inner_order == (1, 0, 2)
    assert (
        "mm on float32[120,24] float32[24,64]: not tuned; the options for float32[240,24] "
        "float32[24,64] are used" in caplog.messages
    )


def test_an_exact_hit_wins_and_asks_nobody(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(NEAR).key, found())
    raced(cache, query().key, found((2, 0, 1), SIZES), gain=1.01)
    monkeypatch.setattr(TuningCache, "standing", None)
    assert chosen() == found((2, 0, 1), SIZES)


def test_what_was_decided_is_remembered_until_more_is_known(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(FAR).key, found((2, 0, 1), FAR))
    first = chosen()
    assert first.nests[0].inner_order == (2, 0, 1)
    with monkeypatch.context() as patch:
        no_judge(patch)
        assert chosen() == first
        assert chosen() == first
    raced(cache, query(NEAR).key, found())
    assert chosen().nests[0].inner_order == (1, 0, 2)


def test_that_nothing_is_used_is_remembered(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(NEAR).key, found(), gain=1.01)
    assert chosen() == DEFAULT
    no_judge(monkeypatch)
    assert chosen() == DEFAULT


def slower_elsewhere(cache: TuningCache) -> None:
    raced(cache, query(NEAR).key, found())
    raced(cache, query(FAR).key, found(), gain=0.9)


def best_elsewhere(cache: TuningCache) -> None:
    for k in range(20):
        raced(cache, query(NEAR).key, MappingOptions("naive").tile(k + 1), gain=0.9)
    raced(cache, query(FAR).key, found((2, 0, 1), FAR))


def never_raced(cache: TuningCache) -> None:
    outcome = Outcome(Verdict.CORRECT, (1e-6,))
    for options in (found(), DEFAULT):
        cache.store(query(NEAR).key, options.to_json(), outcome, run="r")


def for_another_default(cache: TuningCache) -> None:
    raced(cache, query(OTHER).key, found(sizes=OTHER))


def no_options(cache: TuningCache) -> None:
    raced(cache, query(NEAR).key, MappingOptions().with_nest(3, found().nests[0]))


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (lambda c: raced(c, query(NEAR).key, found(), gain=1.02), "1.02 times as fast"),
        (lambda c: raced(c, query(NEAR).key, found(), gain=0.8), "the default was the best"),
        (never_raced, "never timed in the"),
        (slower_elsewhere, r"slower than the default for float32\[480,24\]"),
        (best_elsewhere, "the default was the best"),
        (for_another_default, "the default is different there"),
        (no_options, "do not apply here"),
    ],
)
def test_a_bad_neighbour_is_refused(
    cache: TuningCache, stored: Callable[[TuningCache], None], reason: str
) -> None:
    asked = (3, 24, 64) if stored is for_another_default else SIZES
    stored(cache)
    first, *others = judged(cache, query(asked))
    assert re.search(reason, first.reason), first.reason
    assert not any(isinstance(each, AdoptedOptions) for each in (first, *others))
    assert chosen(asked) == DEFAULT


def test_the_nearest_that_speaks_against_it_counts(cache: TuningCache) -> None:
    best_elsewhere(cache)
    _, far = judged(cache, query())
    assert far.reason == (
        "for the nearer sizes float32[240,24] float32[24,64], the default was the best"
    )


def test_what_the_model_prices_higher_here_is_refused(cache: TuningCache) -> None:
    """Two chunks for two threads there, and one here."""
    two = replace(host_cpu(), threads=2)
    here, there = query((120, 512, 512), device=two), query((240, 512, 512), device=two)
    own = found(sizes=(240, 512, 512), device=two)
    halves = MappingOptions().with_nest(0, replace(own.nests[0], chunk=(120,)))
    raced(cache, there.key, halves)
    (one,) = judged(cache, here)
    assert not isinstance(one, AdoptedOptions) and "the model predicts" in one.reason
    quarters = MappingOptions().with_nest(0, replace(own.nests[0], chunk=(30,)))
    raced(cache, there.key, quarters, gain=2.0)
    (one,) = judged(cache, here)
    assert isinstance(one, AdoptedOptions) and one.options.nests[0].chunk == (30,)


@pytest.mark.parametrize(
    "other",
    [
        query(NEAR, MM.replace("* B", "+ B")).key,
        query(NEAR, MM.replace("float", "double"), dtype="float64").key,
        replace(query(NEAR).key, device="another cpu"),
        query(NEAR, device=replace(CPU, threads=2)).key,
        replace(query(NEAR).key, codegen_version="0"),
        query((120 << 9, 24, 64)).key,
        replace(
            query(NEAR).key,
            inputs=(ArrayLayout((240, 24), (4, 768), "float32"), query(NEAR).key.inputs[1]),
        ),
    ],
    ids=["def", "types", "device", "threads", "version", "far", "strides"],
)
def test_what_is_no_neighbour(cache: TuningCache, other: CacheKey) -> None:
    raced(cache, other, found())
    assert list(judged(cache, query())) == []
    assert chosen() == DEFAULT


def test_arrays_that_are_not_row_major_have_no_near_ones(cache: TuningCache) -> None:
    raced(cache, query(NEAR).key, found())
    kernels = Kernels(MM, Settings(threads=1))
    A, B = np.ones((24, 120), np.float32).T, np.ones((24, 64), np.float32)
    assert kernels.executor("mm", (A, B))[0].options == DEFAULT


def test_sizes_that_vary_are_left_alone(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(NEAR).key, found())
    no_judge(monkeypatch)
    kernels = Kernels(MM, Settings(threads=1, varying=("M",)))
    A, B = np.ones((120, 24), np.float32), np.ones((24, 64), np.float32)
    executor, _ = kernels.executor("mm", (A, B))
    np.testing.assert_array_equal(executor(A, B), A @ B)


def test_results_for_a_class_of_sizes_are_none_for_single_ones(cache: TuningCache) -> None:
    class_ = CpuTarget(1).query(query().sized, query().key.inputs, ("M",)).key
    assert class_.varies
    raced(cache, class_, found())
    assert list(judged(cache, query())) == []


def test_how_it_is_switched_off(cache: TuningCache, monkeypatch: pytest.MonkeyPatch) -> None:
    raced(cache, query(NEAR).key, found())
    with monkeypatch.context() as patch:
        no_judge(patch)
        assert chosen(tune_mode="off") == DEFAULT
        patch.setenv("TCL_TUNE_MODE", "off")
        assert chosen() == DEFAULT
    assert chosen(tune_mode={"mm": "predict"}) != DEFAULT


def test_nearest_means_what_it_did(cache: TuningCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever speaks against it, as it is, with a warning."""
    raced(cache, query(NEAR).key, found(), gain=1.01)
    no_judge(monkeypatch)
    A, B = np.ones((120, 24), np.float32), np.ones((24, 64), np.float32)
    with pytest.warns(tcl.TclWarning, match="are used, the nearest tuned ones"):
        executor, _ = Kernels(MM, Settings(threads=1, nearest=True)).executor("mm", (A, B))
    assert executor.options == found()


def test_a_cache_that_cannot_be_written_serves_too(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(NEAR).key, found())

    def refuse(*_: object) -> None:
        raise CacheError("it is read-only")

    monkeypatch.setattr(TuningCache, "transaction", refuse)
    assert chosen().nests[0].inner_order == (1, 0, 2)
    assert chosen().nests[0].inner_order == (1, 0, 2)


def test_a_broken_cache_costs_its_warning_alone(cache: TuningCache) -> None:
    cache.path.write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    A, B = np.ones((120, 24), np.float32), np.ones((24, 64), np.float32)
    with pytest.warns(tcl.TclWarning, match="cannot be used") as caught:
        executor, _ = Kernels(MM, Settings(threads=1)).executor("mm", (A, B))
    assert executor.options == DEFAULT and len(caught) == 1


def test_rows_of_others_that_cannot_be_read_are_passed_over(cache: TuningCache) -> None:
    raced(cache, query(NEAR).key, found())
    cache.transaction(lambda db: db.execute("UPDATE results SET samples = 'x'"))
    assert chosen() == DEFAULT
    cache.transaction(lambda db: db.execute("UPDATE problems SET inputs = 'x'"))
    assert chosen() == DEFAULT


def test_sizes_that_contradict_each_other_are_passed_over(cache: TuningCache) -> None:
    wrong = replace(
        query(NEAR).key, inputs=(query(NEAR).key.inputs[0], query((120, 25, 64)).key.inputs[1])
    )
    raced(cache, wrong, found())
    (one,) = judged(cache, query())
    assert "do not apply here" in one.reason
    assert chosen() == DEFAULT


@pytest.mark.parametrize("text", ['{"nests":[{"tile":[1,2,3,4,5]}]}', "[]", '{"preset":"mlp"'])
def test_a_remembered_answer_that_does_not_apply_is_passed_over(
    cache: TuningCache, text: str
) -> None:
    raced(cache, query(NEAR).key, found())
    assert chosen() != DEFAULT
    change = "UPDATE notes SET value = json_set(value, '$.winner', ?)"
    cache.transaction(lambda db: db.execute(change, (text,)))
    assert chosen() == DEFAULT


def test_options_are_fitted(cache: TuningCache) -> None:
    """What the search left alone is as in the default here; its own choices stay."""
    there, here = (
        compiler_for(CPU).plan(query(sizes).sized, DEFAULT) for sizes in ((512,) * 3, (40, 24, 36))
    )
    (own,), (usual,) = there.options.values(), here.options.values()
    changed = MappingOptions().with_nest(0, replace(own, inner_order=(2, 1, 0)))
    new = fitted(changed, there, here)
    assert new.nests == (replace(usual, inner_order=(2, 1, 0)),)
    assert new.merges
    assert fitted(MappingOptions("pointwise"), there, here) == MappingOptions("pointwise")


def test_prefetches_of_the_next_plane_are_of_the_next_one_here() -> None:
    text = "def f(float(X, Y, Z) I) -> (O) { O(x, y, z) = I(x, y, z) + I(x, y + 1, z) }"
    plans = []
    for y in (66, 120):
        sized = infer(check(text)["f"], {"I": (60, y, 64)})
        plans.append(compiler_for(CPU).plan(sized, MappingOptions().vectorize(4)))
    (own,) = plans[0].options.values()
    found_ = MappingOptions().with_nest(0, replace(own, prefetch=(66 * 64 * 4, 1024)))
    assert fitted(found_, *plans).nests[0].prefetch == (120 * 64 * 4, 1024)
    none = MappingOptions().with_nest(0, replace(own, prefetch=(0, 1024)))
    assert fitted(none, *plans).nests[0].prefetch == (0, 1024)


def test_a_batch_of_one_tells_a_batch_of_several(cache: TuningCache) -> None:
    """Whose dimensions are merged: options for it have to merge them, too."""
    text = "def f(float(N, C, H) I) -> (O) { O(n, c, h) = 2 * I(n, 0, h) + I(n, c, h) }"
    plans = []
    for n in (1, 4):
        sized = infer(check(text)["f"], {"I": (n, 16, 120)})
        plans.append(compiler_for(CPU).plan(sized, DEFAULT))
    assert fitted(MappingOptions().with_nest(0, plans[0].options["s0"]), *plans).merges


def test_gpus_have_near_sizes_as_well(cache: TuningCache) -> None:
    here, there = query((8192, 512, 1024), device=H200), query((4096, 512, 1024), device=H200)
    own = compiler_for(H200).plan(there.sized, DEFAULT).options
    (nest,) = own.values()
    options = MappingOptions().with_nest(0, replace(nest, buffers=2 if nest.buffers != 2 else 1))
    raced(cache, there.key, options)
    (one,) = judged(cache, here)
    assert isinstance(one, AdoptedOptions), one.reason


def test_why_tells_of_near_sizes(
    cache: TuningCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCL_NUM_THREADS", "1")
    (tmp_path / "mm.tc").write_text(MM)
    raced(cache, query(NEAR).key, found())
    line = ["cache", "why", str(tmp_path / "mm.tc"), "-s", "M=120,K=24,N=64"]
    said = "options for float32[240,24] float32[24,64] are used: they were 1.50 times as fast"
    assert said in CliRunner().invoke(main, line).output
    assert said not in CliRunner().invoke(main, [*line, "--cache", str(cache.path)]).output
    monkeypatch.setenv("TCL_TUNE_MODE", "off")
    assert said not in CliRunner().invoke(main, line).output


def test_a_search_on_first_use_begins_with_it_too(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced(cache, query(NEAR).key, found())
    starts: list[tuple[MappingOptions, ...]] = []

    def tune(_: object, start: Sequence[MappingOptions]) -> Any:
        starts.append(tuple(start))
        return SimpleNamespace(options=start[-1], history=[])

    monkeypatch.setattr(BriefSearch, "tune", tune)
    A, B = np.ones((120, 24), np.float32), np.ones((24, 64), np.float32)
    T = tcl.define(MM, threads=1, tune_mode="auto")
    np.testing.assert_array_equal(T.mm(A, B), A @ B)
    ((default, near),) = starts
    assert default == DEFAULT and near.nests[0].inner_order == (1, 0, 2)
