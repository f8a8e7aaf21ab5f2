"""Tuning from Python, and loading what was tuned, for arrays on a GPU (see ``emulating_cuda``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_arrays import STREAM, HostTorch, cupy_array, on_host, torch_tensor
from cuda_modules import needs_nvrtc
from emulating_cuda import Emulating
from emulating_cuda import driver as driver

import tcl
from tcl.arrays import torch_tensors
from tcl.backends.targets import EmulatedTarget
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.gpu import H200
from tcl.executors.call_inputs import inputs_of
from tcl.executors.call_kernels import size
from tcl.selection.best_options import array_layouts, layout_key
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict

pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")
pytestmark = [needs_nvrtc, pytest.mark.skipif(bool(why_not()), reason=why_not() or "")]

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
NAIVE = tcl.MappingOptions("naive").threads(1, 32)
FEW = tcl.TunerConfig(strategy="random").generations(1).pop_size(3).threads(1).seed(0)


def rand(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(3).integers(-4, 5, shape).astype(np.float32)


def tuned(path: Path, *arrays: np.ndarray[Any, np.dtype[Any]]) -> None:
    """As if the def had been tuned for such arrays."""
    sized = size(tcl.define(MM).definition("mm"), arrays)
    key = layout_key(sized, array_layouts(arrays), H200)
    TuningCache(path).store(key, NAIVE.to_json(), Outcome(Verdict.CORRECT, (1e-6,)), run="r")


@pytest.mark.usefixtures("searches_in_threads")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_search_on_the_device_of_the_inputs(
    library: str, driver: Emulating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcl.backends.targets.CudaTarget", EmulatedTarget)
    make: Any = cupy_array
    if library == "torch":
        pytest.importorskip("torch")
        tensors = HostTorch()
        monkeypatch.setattr(torch_tensors, "torch_tensors", lambda: tensors)
        make = torch_tensor
    a, b = rand(20, 33), rand(33, 12)
    path = tmp_path / "tuned.db"
    settings: dict[str, Any] = {"tuner_config": FEW, "cache_filename": path}
    run = tcl.autotune_and_compile(MM, "mm", make(a), make(b), store_to_cache=True, **settings)
    assert run is not None
    np.testing.assert_array_equal(on_host(run(make(a), make(b))), a @ b)
    known = tcl.MappingOptionsCache(path).load(MM, "mm", (make(a), make(b)))
    assert known == [run.options]
    (summary,) = TuningCache(path).list()
    assert summary.key.backend == "cuda-emulated" and "H200" in summary.key.device
    again = tcl.autotune(MM, "mm", make(a), make(b), load_from_cache=True, **settings)
    assert again is not None


def test_a_device_that_the_inputs_do_not_lie_on(driver: Emulating) -> None:
    a, b = cupy_array(rand(4, 4)), cupy_array(rand(4, 4))
    with pytest.raises(tcl.ArgumentError, match="the inputs are on cuda:0, but device= selects"):
        tcl.autotune(MM, "mm", a, b, device="cpu")
    with pytest.raises(tcl.ArgumentError, match="selects cuda-emulated; leave out device=, or"):
        tcl.MappingOptionsCache("none.db").load(MM, "mm", (a, b), device="cuda-emulated")
    for call in (tcl.autotune_and_compile, tcl.make_autotuned_options_factory):
        given = (MM, "mm", a, b) if call is tcl.autotune_and_compile else ()
        with pytest.raises(tcl.ArgumentError, match="runs on the device of its inputs; leave out"):
            call(*given, device="cuda:0")


def test_what_was_tuned_is_loaded(driver: Emulating, tmp_path: Path) -> None:
    a, b = rand(16, 24), rand(24, 40)
    path = tmp_path / "production.db"
    tuned(path, a, b)
    on_gpu = cupy_array(a), cupy_array(b)
    factory = tcl.make_load_from_cache_options_factory(path)
    assert factory(MM, "mm", *on_gpu) == NAIVE
    assert factory(MM, "mm", a, b) is None  # the CPU was not tuned
    executor = tcl.compile(MM, "mm", factory, *on_gpu)
    assert executor.options == NAIVE
    np.testing.assert_array_equal(on_host(tcl.define(MM, factory).mm(*on_gpu)), a @ b)


def test_cached_options_that_do_not_apply(driver: Emulating, tmp_path: Path) -> None:
    """They are passed over for what does, and said once."""
    a, b = rand(16, 24), rand(24, 40)
    sized = size(tcl.define(MM).definition("mm"), (a, b))
    key = layout_key(sized, array_layouts((a, b)), H200)
    for rank, bad in enumerate(('{"nests":[{"tile":[1,2,3,4,5,6,7,8]}]}', '{"who":1}')):
        found = Outcome(Verdict.CORRECT, (1e-9 * (rank + 1),))
        TuningCache(default_path()).store(key, bad, found, run="r")
    on_gpu = cupy_array(a), cupy_array(b)
    out = cupy_array(np.zeros((16, 43), np.float32)[:, :40])
    with pytest.warns(tcl.TclWarning, match=r"rank 1 for mm .* the default is used") as caught:
        tcl.define(MM).mm(*on_gpu, outputs=(out,))
        tcl.define(MM).mm(*on_gpu)
    assert len(caught) == 1
    np.testing.assert_array_equal(on_host(out), a @ b)
    tuned(default_path(), a, b)
    function = tcl.define(MM)
    np.testing.assert_array_equal(on_host(function.mm(*on_gpu)), a @ b)
    assert function.executor("mm", on_gpu)[0].options == NAIVE


def test_near_sizes(driver: Emulating, tmp_path: Path) -> None:
    tuned(tmp_path / "named.db", rand(16, 24), rand(24, 40))
    tuned(default_path(), rand(16, 24), rand(24, 40))
    a, b = cupy_array(rand(17, 24)), cupy_array(rand(24, 40))
    factory = tcl.make_load_from_cache_options_factory(tmp_path / "named.db", nearest=True)
    for function in (tcl.define(MM, factory), tcl.define(MM, nearest=True)):
        with pytest.warns(tcl.TclWarning, match="mm was not tuned for .*17.* the options for"):
            found = function.mm(a, b)
        np.testing.assert_array_equal(on_host(found), on_host(a) @ on_host(b))
        executor, _ = function.executor("mm", (a, b))
        assert executor.options == NAIVE
    with pytest.warns(tcl.TclWarning, match="not tuned") as caught:
        assert tcl.define(MM).executor("mm", (a, b))[0].options != NAIVE
        tcl.define(MM, nearest=True).mm(a, b)
    assert len(caught) == 1  # only where it was asked for


@pytest.mark.parametrize("strides", [None, (4, 40), (-80, 4), (0, 4), (160, 8)])
def test_values_come_to_the_host_as_they_lie(
    strides: tuple[int, int] | None, driver: Emulating
) -> None:
    values = rand(10, 20)
    if strides == (0, 4):
        values[:] = values[0]
    if strides == (-80, 4):
        import cupy

        whole = cupy_array(values)
        last = cupy.cuda.MemoryPointer(whole.data.mem, 9 * 80)
        array: Any = cupy.ndarray(values.shape, values.dtype, last, strides)
        values = values[::-1]
    else:
        array = cupy_array(values, strides=strides)
    checked = tcl.define("def f(float(M, N) A, float s) -> (B) { B(m, n) = A(m, n) * s }")
    found = inputs_of(checked.definition("f"), (array, 2.0))
    assert found.gpu is not None
    (host, number) = found.values()
    np.testing.assert_array_equal(host, values)
    assert host.strides == array.strides and float(number) == 2.0
    assert set(driver.waits) == {STREAM}


def test_nothing_comes_from_nothing(driver: Emulating) -> None:
    checked = tcl.define("def f(float(M, N) A) -> (B) { B(m) +=! A(m, n) }").definition("f")
    (host,) = inputs_of(checked, (cupy_array(rand(0, 7)),)).values()
    assert host.shape == (0, 7) and not driver.waits
