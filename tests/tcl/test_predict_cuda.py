"""Options that a model chooses for arrays on a GPU, which the emulator stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_arrays import cupy_array, on_host
from cuda_modules import needs_nvrtc
from emulating_cuda import Emulating, driver
from liking_models import FAR, likes
from nests import sized

import tcl
from tcl.backends.targets import EmulatedTarget
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.gpu import A100, H200, T4
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.selection import predicted_options
from tcl.selection.suggested_options import DEFAULT
from tcl.tuner.model import lookup
from tcl.tuner.run.events import Note

__all__ = ["driver"]
pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")
pytestmark = [needs_nvrtc, pytest.mark.skipif(bool(why_not()), reason=why_not() or "")]

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A = np.arange(40 * 24, dtype=np.float32).reshape(40, 24)
B = np.ones((24, 36), np.float32)
LITTLE = likes("shared", 10.5, 2.0, backend="cuda")
"""It thinks that up to 1448 bytes of shared memory pay; by default there are 2304."""


def is_little(options: MappingOptions) -> bool:
    definition = sized(MM, A.shape, B.shape)
    return all(k.shared < 1448 for k in schedule(definition, options, H200).kernels)


@pytest.fixture
def folder(driver: Emulating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For the user's models; nobody has said anything, and none comes with tcl."""
    monkeypatch.delenv("TCL_TUNE_MODE", raising=False)
    monkeypatch.setattr(lookup, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def chosen(options: object = None) -> MappingOptions:
    """By what a new text's def is mapped; its results are right."""
    inputs = cupy_array(A), cupy_array(B)
    function = tcl.define(MM, options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(on_host(function.mm(*inputs)), A @ B)
    found: MappingOptions = function.executor("mm", inputs)[0].options
    return found


def test_what_the_model_likes_is_used_and_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cuda.json").write_text(LITTLE)
    first = chosen("predict")
    assert is_little(first) and not is_little(DEFAULT)

    def rank(query: object) -> None:
        raise AssertionError("candidates are ranked")

    monkeypatch.setattr(predicted_options, "rank_candidates", rank)
    assert chosen() == first


def test_models_of_cpus_are_not_for_gpus(folder: Path) -> None:
    path = folder / "cuda.json"
    path.write_text(likes("tiles", 0.5))
    message = f"nothing is predicted: the model {path} is for CPUs; a model for GPUs is needed here"
    with pytest.warns(tcl.TclWarning) as caught:
        assert chosen("predict") == DEFAULT
    assert [str(w.message) for w in caught] == [message]


def test_the_default_stands_for_what_was_never_seen(folder: Path) -> None:
    (folder / "cuda.json").write_text(likes("shared", 11.5, 2.0, low=FAR, backend="cuda"))
    assert chosen() == DEFAULT


def test_files_of_gpus_have_their_names() -> None:
    names = {lookup.file_name(scope, gpu) for scope in lookup.SCOPES for gpu in (H200, A100, T4)}
    assert len(names) == 3 + 3 + 1
    assert {"cuda.json", "cuda-sm_75.json", "cuda-sm_80.json"} <= names


@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_starts_from_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.backends.targets.CudaTarget", EmulatedTarget)
    (folder / "cuda.json").write_text(LITTLE)
    said: list[Any] = []
    config = tcl.TunerConfig(generations=1, population=4, seed=1, threads=1)
    inputs = cupy_array(A), cupy_array(B)
    result = tcl.Tuner(MM).tune("mm", inputs, None, config, report=said.append)
    notes = [e.message for e in said if isinstance(e, Note)]
    assert "the search starts from the model cuda.json" in notes
    first = [c.options for c in result.history if c.generation == 1]
    first = first[: len(first) // 2]  # which the model is put to the test by
    assert first and all(map(is_little, first))
