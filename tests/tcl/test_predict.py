"""Options that a model chooses where nobody has tuned: when, and that they are remembered."""

from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from liking_models import FAR, likes

import tcl
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, TclWarning
from tcl.executors.dispatch import Kernels, Settings
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.selection import predicted_options
from tcl.selection.best_options import Query
from tcl.selection.suggested_options import DEFAULT
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.model import lookup

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A, B = np.arange(40 * 24, dtype=np.float32).reshape(40, 24), np.ones((24, 36), np.float32)


@pytest.fixture(autouse=True)
def folder(own_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For the user's models; nobody has said anything, and none comes with tcl."""
    monkeypatch.delenv("TCL_TUNE_MODE")
    monkeypatch.setattr(lookup, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


TILES = likes("tiles", 0.5)
"""It thinks that tiles pay; 40 × 36 results have none by default."""


def chosen(options: object = None, **settings: object) -> MappingOptions:
    """By what a new text's def is mapped; its results are right."""
    kernels = Kernels(MM, Settings(options, 1, **settings))  # type: ignore[arg-type]
    executor, _ = kernels.executor("mm", (A, B))
    np.testing.assert_array_equal(executor(A, B), A @ B)
    found: MappingOptions = executor.options
    return found


def no_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(query: object) -> None:
        raise AssertionError("candidates are ranked")

    monkeypatch.setattr(predicted_options, "rank_candidates", rank)


@pytest.mark.parametrize("said", ["nothing", "options", "argument", "environment"])
def test_what_the_model_likes_is_used_and_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    (folder / "cpu.json").write_text(TILES)
    settings: dict[str, object] = {}
    if said == "options":
        settings["options"] = "predict"
    if said == "argument":
        settings["tune_mode"] = {"mm": "predict"}
    if said == "environment":
        monkeypatch.setenv("TCL_TUNE_MODE", "predict")
    first = chosen(**settings)
    assert first.nests[0].tile
    no_ranking(monkeypatch)
    assert chosen(**settings) == first


def test_another_process_has_the_same_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cpu.json").write_text(TILES)
    code = (
        "import sys, numpy as np, tcl\n"
        f"T = tcl.compile({MM!r}, 'mm', 'predict', np.ones((40, 24), np.float32), "
        "np.ones((24, 36), np.float32), threads=1)\n"
        "print(T.options.to_json())"
    )
    made = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in "ab"]
    texts = {process.communicate(timeout=600)[0] for process in made}
    assert texts == {chosen().to_json().encode() + b"\n"}


def test_another_model_is_asked_anew(folder: Path) -> None:
    (folder / "cpu.json").write_text(TILES)
    assert chosen() != DEFAULT
    (folder / "cpu.json").write_text(likes("tiles", 0.5, 2.0))
    other = chosen()
    assert other == DEFAULT or not other.nests[0].tile
    own = lookup.file_name("device", host_cpu())
    (folder / own).write_text(TILES)
    assert chosen().nests[0].tile


def test_nothing_is_asked_where_it_is_off_or_tuned(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cpu.json").write_text(TILES)
    no_ranking(monkeypatch)
    assert chosen(tune_mode="off") == DEFAULT
    assert chosen("pointwise") == MappingOptions("pointwise")
    sized = infer(check(MM)["mm"], {"A": A.shape, "B": B.shape})
    key = Query.on_inputs(sized, (A, B), replace(host_cpu(), threads=1)).key
    outcome = Outcome(Verdict.CORRECT, (1e-6,))
    tuned = MappingOptions("pointwise").tile(8, 8)
    TuningCache(default_path()).store(key, tuned.to_json(), outcome, run="r")
    assert chosen() == tuned


@pytest.mark.parametrize("model", [likes("tiles", 0.5, -0.02), likes("tiles", 0.5, low=FAR)])
def test_the_default_stands_where_little_is_promised_or_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (folder / "cpu.json").write_text(model)
    assert chosen() == DEFAULT
    no_ranking(monkeypatch)
    assert chosen() == DEFAULT


def set_winner(options: str, db: sqlite3.Connection) -> None:
    db.execute("UPDATE notes SET value = json_set(value, '$.winner', ?)", (options,))


def test_a_remembered_answer_that_does_not_apply_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cpu.json").write_text(TILES)
    first = chosen()
    for wrong in ('{"nests":[{"tile":[1,2,3,4,5]}]}', "[]", '{"preset":"mlp"'):
        change = partial(set_winner, wrong)
        TuningCache(default_path()).transaction(change)
        assert chosen() == first
        with monkeypatch.context() as patch:
            no_ranking(patch)
            assert chosen() == first


def test_without_a_model_it_is_said_if_somebody_asked(recwarn: pytest.WarningsRecorder) -> None:
    assert chosen() == DEFAULT
    assert not [w for w in recwarn if issubclass(w.category, TclWarning)]  # others' may be there
    sentence = (
        "mm uses the default options, because nothing can be predicted: there is no model; train "
        "one with `tcl model train`"
    )
    with pytest.warns(TclWarning, match=f"^{sentence}$"):
        assert chosen("predict") == DEFAULT


def test_files_that_are_no_models_are_passed_over_with_a_sentence(folder: Path) -> None:
    own = folder / lookup.file_name("architecture", host_cpu())
    own.write_text(TILES.replace('"names":["', '"names":["new","'))
    (folder / "cpu.json").write_text(TILES)
    sentence = f"the model {own} does not fit this version of tcl: .*removed since: new"
    with pytest.warns(TclWarning, match=sentence) as found:
        assert chosen().nests[0].tile
    assert str(found[0].message).endswith(f"; {folder / 'cpu.json'} is used instead")
    own.unlink()
    (folder / "cpu.json").write_text(TILES[:-99])
    with pytest.warns(TclWarning, match=f"nothing is predicted: the model {folder}.* is damaged: "):
        assert chosen() == DEFAULT


def test_a_cache_that_cannot_be_written_costs_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cpu.json").write_text(TILES)
    (folder.parent / "tuning.db").mkdir()
    with pytest.warns(TclWarning, match="cached options are not used|cannot be saved"):
        assert chosen().nests[0].tile


def test_what_leaves_it_without_a_meaning_is_refused() -> None:
    with pytest.raises(ArgumentError, match="leave out tune_mode or options"):
        tcl.define(MM, "predict", tune_mode="auto")
    with pytest.raises(ValueError, match="names the unknown tune mode 'predikt'"):
        tcl.define(MM, tune_mode="predikt")
    with pytest.raises(ArgumentError, match="options were given"):
        tcl.define(MM, "predict", nearest=True)


def test_a_copy_in_another_process_does_the_same(folder: Path) -> None:
    (folder / "cpu.json").write_text(TILES)
    kernels = Kernels(MM, Settings("predict", 1))
    again = Kernels(MM, pickle.loads(pickle.dumps(kernels.settings)))
    assert again.modes.mode_of("mm").name == "predict"
    assert again.modes.mode_of("mm").asked
    executor, _ = kernels.executor("mm", (A, B))
    copy = pickle.loads(pickle.dumps(executor))
    np.testing.assert_array_equal(copy(A, B), A @ B)
    assert copy.options == executor.options


def test_sizes_that_vary_have_the_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cpu.json").write_text(TILES)
    no_ranking(monkeypatch)
    T = tcl.define(MM, "predict", threads=1, varying=("M",))
    np.testing.assert_array_equal(T.mm(A, B), A @ B)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (1, 1, 1), (1, 7, 0), (5, 1, 3)])
def test_sizes_at_the_edge(folder: Path, sizes: tuple[int, int, int]) -> None:
    (folder / "cpu.json").write_text(TILES)
    m, k, n = sizes
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TclWarning)  # of sizes that are empty
        got = tcl.define(MM, "predict", threads=1).mm(a, b)
    np.testing.assert_array_equal(got, a @ b)
