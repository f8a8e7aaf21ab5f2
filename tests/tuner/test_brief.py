"""The search of about a second: what it tries, what it takes for an answer, what it survives."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuner_fakes import (
    KEY,
    FakeBackend,
    FakeOptions,
    FakeSpace,
    as_recorded,
    in_threads,
    race_recorded,
)

from tcl.backends.program_backend import CpuBackend
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference.sample import ComputedElements, compute_briefly
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.run.brief import BriefSearch
from tcl.tuner.run.events import Event, Interrupted, Raced
from tcl.tuner.run.result import TuningResult

SOURCE = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def look(float(V, D) Table, int32(B) Word) -> (O) { O(b, d) = Table(Word(b), d) }
"""


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing depends on processes, or on the clock."""
    in_threads(monkeypatch)
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    monkeypatch.setattr("tcl.tuner.run.pipeline.race_candidates", race_recorded)


def found(
    start: Sequence[int],
    *kinds: str,
    micros: Sequence[int] = tuple(range(50, 1000, 25)),
    promising: Sequence[int] = (),
    backend: FakeBackend | None = None,
    **settings: Any,
) -> tuple[TuningResult[FakeOptions], list[Event[FakeOptions]]]:
    space = FakeSpace(*kinds, micros=micros, promising=promising)
    search = BriefSearch(backend or FakeBackend(), space, seconds=100.0, **settings)
    events: list[Event[FakeOptions]] = []
    return search.tune([FakeOptions(each) for each in start], events.append), events


@pytest.mark.usefixtures("recorded")
def test_the_default_and_what_is_near_it(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    result, events = found([500], cache=cache, key=KEY)
    tried = [c.options.micros for c in result.history]
    assert tried[:5] == [500, 475, 525, 450, 550] and len(tried) == 38
    assert result.options == FakeOptions(50) and not result.interrupted
    assert result.decision.start is not None
    assert result.decision.start.options == FakeOptions(500)
    (raced,) = (e for e in events if isinstance(e, Raced))
    assert [c.options.micros for c in raced.candidates] == [50, 75, 500]
    assert cache.top(KEY, 1)[0].options == FakeSpace().to_json(FakeOptions(50))


@pytest.mark.usefixtures("recorded")
def test_what_a_model_promises_comes_before_what_is_near() -> None:
    result, _ = found([500], promising=(100, 475, 900))
    assert [c.options.micros for c in result.history][:5] == [500, 100, 475, 900, 525]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("near", "winner"), [(960, 1000), (920, 920)])
def test_the_default_stays_unless_another_is_clearly_faster(near: int, winner: int) -> None:
    result, _ = found([1000], micros=(near, 1000))
    assert result.options == FakeOptions(winner)


@pytest.mark.usefixtures("recorded")
def test_a_list_and_nothing_else() -> None:
    result, _ = found([300, 200], neighbours=False)
    assert [c.options.micros for c in result.history] == [300, 200]
    assert result.options == FakeOptions(200)


def test_wrong_neighbours_never_win(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)
    result, _ = found([100], "right", "wrong", "partial", "raises", "constraints", micros=(100,))
    verdicts = {c.options.kind: c.outcome.verdict for c in result.history}
    assert verdicts == {
        "right": Verdict.CORRECT,
        "wrong": Verdict.CORRECTNESS,
        "partial": Verdict.CORRECTNESS,
        "raises": Verdict.RUNTIME,
        "constraints": Verdict.CONSTRAINTS,
    }
    assert result.options == FakeOptions(100)


def test_a_crash_ends_its_candidate_alone() -> None:
    result, _ = found([900], "right", "segfault", micros=(100, 900))
    verdicts = [(c.options, c.outcome.verdict) for c in result.history]
    assert (FakeOptions(900, "segfault"), Verdict.RUNTIME) in verdicts
    assert result.options == FakeOptions(100)  # measured by another process, that knows as much


def test_errors_of_the_reference_are_raised() -> None:
    with pytest.raises(IndexError, match=r"^index 12 is out of range for dimension 0 of"):
        found([100], backend=FakeBackend(reference_kind="raises"))


def test_a_time_limit_leaves_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)
    search = BriefSearch(FakeBackend(), FakeSpace(), seconds=1e-9)
    events: list[Event[FakeOptions]] = []
    result = search.tune([FakeOptions(75)], events.append)
    assert result.options is not None and result.interrupted
    assert [e.reason for e in events if isinstance(e, Interrupted)] == ["time limit"]
    assert len(result.history) < 20


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 4, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(("size", "whole"), [(8, True), (128, False)])
def test_a_brief_reference(size: int, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)  # it cannot be imported
    a, b = arrays((size, size), (size, size))
    output = np.full((size, size), np.nan, np.float32)
    sized = infer(check(SOURCE)["mm"], {"A": a.shape, "B": b.shape})
    computed = compute_briefly(sized, (a, b), (output,))
    assert isinstance(computed, ComputedElements)
    (places,) = computed.positions
    assert (places is None, computed.share == 1.0) == (whole, whole)
    known = np.arange(size * size) if places is None else places
    assert len(known) >= size
    np.testing.assert_array_equal(output.ravel()[known], (a @ b).ravel()[known])


def test_no_brief_reference_where_the_data_say_what_is_read() -> None:
    words = np.zeros(1000, np.int32)
    sized = infer(check(SOURCE)["look"], {"Table": (50, 1000), "Word": words.shape})
    output = np.full((1000, 1000), np.nan, np.float32)
    assert compute_briefly(sized, (*arrays((50, 1000)), words), (output,)) is None
    assert np.isnan(output).all()


def test_what_runs_kernels_loads_no_compiler(tmp_path: Path) -> None:
    a, b = arrays((6, 5), (5, 7))
    inputs = [a.T.copy().T, b]
    backend = CpuBackend.described(SOURCE, "mm", inputs).holding(inputs, str(tmp_path))
    code = backend.compile(MappingOptions("naive"))
    (tmp_path / "sent").write_bytes(pickle.dumps((backend.runner(), code)))
    script = (
        "import pickle, sys; import tcl.tuner.measure.evaluate; "
        "runner, code = pickle.load(open(sys.argv[1], 'rb')); p = runner.problem(); "
        "runner.load(code)(p.inputs, p.outputs); print(p.outputs[0].tolist()); "
        "print([m for m in ('tcl.grammar.check.definitions', 'tcl.codegen.schedule.cpu', "
        "'tcl.codegen.cpu.emit.emit', 'tcl.tuner.strategies') if m in sys.modules])"
    )
    run = [sys.executable, "-c", script, str(tmp_path / "sent")]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [str((a @ b).tolist()), "[]"]
    problem = replace(backend, folder=str(tmp_path)).problem()
    assert [x.strides for x in problem.inputs] == [(4, 24), (28, 4)]
