"""Learning from candidates for GPUs, on times that a formula gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import DEFAULT
from tcl.common.errors import ModelError
from tcl.grammar.check.definitions import check
from tcl.grammar.tree.canonical import canonical_text
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.model.boosting import Boosting
from tcl.tuner.model.file import read, text_of
from tcl.tuner.model.gpu_subject import GpuSubject
from tcl.tuner.training.history import History, history, subject_of
from tcl.tuner.training.learn import importance, learn, manifest

FEW = Boosting(members=2, trees=15, depth=3, rate=0.3, ridge=0.5)
ROWS = "def rows(float(M, K) A) -> (C) { C(m) +=! A(m, k) }"


def measured(cache: TuningCache, m: int, seed: int) -> None:
    """Candidates that take the same time, but a third longer where warps share a result."""
    checked, identity = check(ROWS)["rows"], device_identity(H200)
    layout = ArrayLayout((m, 256), (1024, 4), "float32")
    key = CacheKey(canonical_text(checked), "cuda", (layout,), identity, CODEGEN_VERSION)
    subject = subject_of(key, checked, H200)
    space, rng = GpuSubject.space(subject.program, H200), Random(seed)
    drawn = [space.space.sample(rng) for _ in range(40)]
    options = [DEFAULT, *(space.to_options(c) for c in drawn if c is not None)]
    described = subject.describable(options)
    rows, _ = subject.extract([choices for _, choices in described])
    times = np.where(rows[:, GpuSubject.schema.names.index("shared memory.busy")] > -10, 4e-4, 3e-4)
    records = [
        Record.from_outcome(
            options[k].to_json(), Outcome(Verdict.CORRECT, (float(t),)), 1.0 + n, "run"
        )
        for n, ((k, _), t) in enumerate(zip(described, times, strict=True))
    ]
    cache.add(key, records, entry="rows")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> History:
    cache = TuningCache(tmp_path_factory.mktemp("learn") / "tuned.db")
    for seed, m in enumerate((64, 1000)):
        measured(cache, m, seed)
    return history(cache, [check(ROWS)["rows"]], {device_identity(H200): H200})


def test_what_was_put_into_the_times_is_learned(known: History) -> None:
    assert len(known.problems) == 2 and known.candidates > 12
    model = learn(known.problems, FEW)
    assert model.schema is GpuSubject.schema
    first = [*importance(model)][:5]
    assert {"shared memory.busy", "shared memory.busy.change"} & {*first}
    for problem in known.problems:
        logs = model.predict_rows(problem.rows).logs
        assert np.std(problem.gains) > 0.05
        assert np.std(logs - problem.gains) < 0.5 * np.std(problem.gains)
    assert '"backend": "cuda"' in manifest(known, FEW, model, [])


def test_a_model_is_of_one_kind_of_device(known: History, tmp_path: Path) -> None:
    model, path = learn(known.problems, FEW), tmp_path / "m.json"
    path.write_text(text_of(model))
    assert text_of(read(path, "cuda")) == text_of(model)
    with pytest.raises(ModelError, match=r"m\.json is for GPUs; a model for CPUs is needed here$"):
        read(path, "cpu")
