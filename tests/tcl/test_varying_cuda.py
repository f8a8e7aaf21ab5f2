"""``define(..., varying=...)`` for arrays on a GPU, which the emulator stands for."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_arrays import cupy_array, on_host
from cuda_modules import needs_nvrtc
from emulating_cuda import Emulating, driver

import tcl
from tcl import first_use
from tcl.backends.cuda_backend import EmulatedBackend
from tcl.backends.targets import CudaTarget, EmulatedTarget
from tcl.cli.kernels import Work
from tcl.cli.tuned import TuneSession
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.gpu import A100
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.executors.call_kernels import FirstCall
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.selection.suggested_options import DEFAULT
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.verdict import Outcome, Verdict

__all__ = ["driver"]
pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")
pytestmark = [needs_nvrtc, pytest.mark.skipif(bool(why_not()), reason=why_not() or "")]

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
RNG = np.random.default_rng(0)
B = RNG.standard_normal((20, 24), np.float32)


def product(t: Any, m: int, **layout: Any) -> None:
    """A call with so many rows is right."""
    a = RNG.standard_normal((m, 20), np.float32)
    found = on_host(t.mm(cupy_array(a, **layout), cupy_array(B)))
    np.testing.assert_allclose(found, a @ B, rtol=1e-4, atol=1e-5)


def test_many_sizes_share_a_kernel(driver: Emulating) -> None:
    t = tcl.define(MM, varying=("M",))
    for m in (17, 31, 33, 64, 17, 100, 112):
        product(t, m)
    assert len(driver.codes) == 2  # multiples of 16, and others
    product(t, 5)
    assert len(driver.codes) == 3


def test_no_point_at_all(driver: Emulating) -> None:
    t = tcl.define(MM, varying=("M",))
    assert t.mm(cupy_array(np.zeros((0, 20), np.float32)), cupy_array(B)).shape == (0, 24)
    product(t, 1)


def test_arrays_that_lie_otherwise(driver: Emulating) -> None:
    t = tcl.define(MM, varying=("M",))
    product(t, 17)
    product(t, 18, strides=(4, 72))  # a kernel of its own
    assert len(driver.codes) == 2
    product(t, 19, offset=4)  # a kernel for all sizes of arrays that begin so
    product(t, 21, offset=4)
    assert len(driver.codes) == 3


def test_what_cannot_be_for_all_sizes(driver: Emulating, caplog: pytest.LogCaptureFixture) -> None:
    source = "def last(float(N) A) -> (O) { O(i) = A(i + N - 3) where i in 0:3 }"
    t = tcl.define(source, varying=("N",))
    with caplog.at_level("INFO", "tcl"):
        for n in (5, 3, 16, 20):
            a = RNG.standard_normal(n, np.float32)
            np.testing.assert_array_equal(on_host(t.last(cupy_array(a))), a[-3:])
    assert "last: no kernel for all of N=2..3: " in caplog.text
    assert len(driver.codes) == 4  # from 4 to 7, 3 alone, multiples of 16, and others


def test_options_are_honoured(driver: Emulating) -> None:
    chosen = MappingOptions("mlp").with_nest(0, NestOptions(chunk=(8, 8), threads=(8, 8)))
    t = tcl.define(MM, chosen, varying=("M",))
    product(t, 17)
    product(t, 100)
    assert [x.blocks for x in driver.launched] == [3 * 3, 13 * 3]
    assert {x.threads for x in driver.launched} == {64}
    assert len(driver.codes) == 1


def test_options_of_the_class_are_found(driver: Emulating) -> None:
    chosen = MappingOptions("mlp").with_nest(0, NestOptions(chunk=(8, 8), threads=(8, 8)))
    shapes = {"A": (17, 20), "B": (20, 24)}
    arrays = [np.zeros(shape, np.float32) for shape in shapes.values()]
    sized = infer(check(MM)["mm"], shapes)
    query = CudaTarget(0, driver.profile).query(sized, arrays, ("M",))
    assert query.key.sizes == "float32[16..255,20] float32[20,24]"
    cache = TuningCache(default_path())
    outcome = Outcome(Verdict.CORRECT, (1e-6,))
    cache.store(query.key, chosen.to_json(), outcome, run="r", entry="mm")
    from_file = tcl.make_load_from_cache_options_factory(default_path())
    for t in (tcl.define(MM, from_file, varying=("M",)), tcl.define(MM, varying=("M",))):
        product(t, 100)  # another size than the one that was tuned
        product(t, 17)
        assert {x.threads for x in driver.launched} == {64}
    product(t, 32)  # another class, of which nothing is known
    assert driver.launched[-1].threads != 64


@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_is_for_the_class(tmp_path: Path) -> None:
    file, cache = tmp_path / "mm.tc", tmp_path / "own.db"
    file.write_text(MM)
    work = Work.load(file, "mm", "M=17,K=20,N=24", 0, ("M",))
    where = EmulatedTarget(0, A100)
    query = where.query(work.sized, work.inputs, ("M",))
    backend = where.backend(MM, "mm", work.inputs)
    assert "size_M" in backend.for_all(query.classes).module(DEFAULT).source
    assert "size_M" not in backend.module(DEFAULT).source
    config = TunerConfig().generations(1).population(2).threads(1).seed(1)
    session = TuneSession(
        *(work, where, config, cache, None), threads=1, fixed={}, resume=False, as_json=False
    )
    ended = session.run(None, default=False)
    assert ended.exit_code == 0 and not ended.problems
    (found,) = TuningCache(cache).list()
    assert found.key == query.key and found.key.sizes == "float32[16..255,20] float32[20,24]"


@pytest.mark.usefixtures("searches_in_threads")
def test_the_first_use_tunes_for_the_class(
    driver: Emulating, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[FirstCall] = []

    def target(call: FirstCall) -> EmulatedTarget:
        searched.append(call)
        return EmulatedTarget(call.number, driver.profile)

    monkeypatch.setattr(first_use, "_target", target)
    source = "def twice(float(N) A) -> (O) { O(n) = A(n) + A(n) }"
    for t in [tcl.define(source, tune_mode=["naive", "mlp"], varying=("N",)) for _ in range(2)]:
        for n in (17, 100, 18):
            a = RNG.standard_normal(n, np.float32)
            np.testing.assert_array_equal(on_host(t.twice(cupy_array(a))), a + a)
    (call,) = searched
    (found,) = TuningCache(default_path()).list()
    assert found.key == call.query.key and found.key.sizes == "float32[16..255]"
    assert len(driver.codes) == 2  # of a class for each of the two texts


def test_what_no_kernel_of_the_class_can_have_is_refused() -> None:
    arrays = [np.zeros(shape, np.float32) for shape in ((16, 100), (100, 24))]
    sized = infer(check(MM)["mm"], {"A": (16, 100), "B": (100, 24)})
    query = EmulatedTarget(0, A100).query(sized, arrays, ("K",))
    backend = EmulatedBackend.described(MM, "mm", arrays, A100).for_all(query.classes)
    rows = NestOptions(chunk=(16, 8), threads=(16, 8), stage=(1, 1))
    with pytest.raises(OptionsError) as refused:
        backend.compile(MappingOptions("naive").with_nest(0, rows))
    assert str(refused.value) == (
        "these options cannot be used for all of K=16..255: what a panel holds is known only when "
        "the kernel runs"
    )


def test_subscripts_are_checked_against_the_size_at_hand(driver: Emulating) -> None:
    source = "def rows(float(N, D) A, int32(M) I) -> (O) { O(m, d) = A(I(m), d) }"
    t = tcl.define(source, varying=("N",))
    places = np.array([0, 17, 3], np.int32)
    for n in (20, 18):
        a = RNG.standard_normal((n, 5), np.float32)
        found = on_host(t.rows(cupy_array(a), cupy_array(places)))
        np.testing.assert_array_equal(found, a[places])
    a = RNG.standard_normal((17, 5), np.float32)
    with pytest.raises(IndexError, match="which has indices 0 to 16"):
        t.rows(cupy_array(a), cupy_array(places))
    assert len(driver.codes) == 1


def test_copies_have_a_size_of_their_own(driver: Emulating) -> None:
    t = tcl.define(MM, varying=("M",))
    a = RNG.standard_normal((17, 20), np.float32)
    t.mm(cupy_array(a), cupy_array(B))
    made, _ = t._kernels.executor("mm", [cupy_array(a), cupy_array(B)])
    executor = pickle.loads(pickle.dumps(made))
    found = on_host(executor(cupy_array(a), cupy_array(B)))
    np.testing.assert_allclose(found, a @ B, rtol=1e-4, atol=1e-5)
