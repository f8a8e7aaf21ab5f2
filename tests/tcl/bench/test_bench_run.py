"""How a run treats its contenders."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tuner_fakes import in_threads

from tcl.bench import contender
from tcl.bench.ceilings import Meter
from tcl.bench.contender import PEERS, Contender, ContenderError, Spec
from tcl.bench.peers import numpy_peer
from tcl.bench.report import Report
from tcl.bench.rows import ROWS, Row
from tcl.bench.run import BenchSettings, run, tune
from tcl.bench.task import DEFAULT, OURS, TUNED
from tcl.common.errors import ArgumentError
from tcl.tuner.config import TunerConfig

# Runs, with a peer that misbehaves on demand.

FAKE = """
import os, sys, time
import numpy as np
from tcl.bench.task import PeerForm
class Fake:
    def versions(self): return {"fake": "7"}
    def facts(self, task): return {}
    def forms(self, task, inputs):
        kind = KIND
        out = np.zeros((task.sizes["M"], task.sizes["N"]), np.float32)
        print("noise on stdout")
        def run(delay):
            assert task.past in (0, 16)
            assert all(a.ctypes.data % 64 == task.past for a in inputs.values())
            time.sleep(delay)
            np.matmul(inputs["A"], inputs["B"], out=out)
            out[0, 0] += kind == "wrong"
        def later():
            run(0)
            if later.calls > 8 and kind == "dies": os._exit(3)
            later.calls += 1
        later.calls = 0
        def form(f): return lambda: PeerForm(f, lambda: (f(), [out])[1], 1)
        def refuse(): raise RuntimeError("not today")
        if kind != "nothing":
            yield "slow", form(lambda: run(0.01))
            yield "quick", form(later if kind == "dies" else lambda: run(0))
        yield "refused", refuse
def make(threads):
    assert os.environ["OMP_NUM_THREADS"] == str(threads)
    if KIND == "no start": raise RuntimeError("no way")
    return Fake()
"""
QUICK = BenchSettings(rounds=3, sample=0.0005)


def fakes(folder: Path, *kinds: str) -> tuple[Spec, ...]:
    specs = []
    for kind in kinds:
        module = "bench_fake_" + kind.replace(" ", "_")
        (folder / f"{module}.py").write_text(FAKE.replace("KIND", repr(kind)))
        specs.append(Spec(kind, module))
    return tuple(specs)


def tiny() -> Row:
    return replace(next(r for r in ROWS if r.entry == "matmul"), sizes="test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where peers can be imported from, in this process and in those of contenders."""
    path = tmp_path_factory.mktemp("peers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcl.bench.run.Meter", partial(Meter, buffer=1 << 20))  # its speed is nothing
        patch.syspath_prepend(str(path))
        yield path


@dataclass
class Shared:
    """A run, and what it was called with."""

    report: Report
    seen: list[Report]
    arguments: dict[str, Any]


@pytest.fixture(scope="module")
def shared(folder: Path) -> Shared:
    """One run of all that can be: tuned options, both placements, peers of every kind, a row that
    cannot be measured."""
    peers = fakes(folder, "right", "wrong", "nothing", "no start")
    peers = (*peers, Spec("missing", "nowhere", "no_such_package"))
    cache, seen = folder / "tuned.db", list[Report]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcl.bench.run._GENERATIONS", 1)
        config = partial(TunerConfig, population=4, elites=1)
        patch.setattr("tcl.bench.run.TunerConfig", config)
        in_threads(patch)
        assert tune([tiny()], 120, cache, 0, lambda text: None) == {}
    settings = replace(QUICK, placements=("aligned", "numpy"))
    huge = replace(tiny(), name="huge", sizes=f"M={1 << 40},N=1,K=1")
    arguments: dict[str, Any] = {"peers": peers, "cache": cache}
    report = run([huge, tiny()], settings, lambda text: None, finished=seen.append, **arguments)
    return Shared(report, seen, arguments)


def test_a_run_has_all_contenders_and_says_what_is_wrong(shared: Shared) -> None:
    found = shared.report
    one, _ = found.results
    entries = one.entries
    assert set(entries) == {DEFAULT, TUNED, "right", "wrong", "nothing"}
    assert entries["right"].form == "quick"
    assert len(entries["right"].samples) == 3
    assert entries["right"].other_forms["refused"] == "RuntimeError: not today"
    assert "output C differs from the reference at (0, 0)" in entries["wrong"].error
    assert entries["wrong"].samples == ()
    assert entries["nothing"].error == "RuntimeError: not today"
    assert one.best_peer is not None
    assert one.best_peer[0] == "right"
    assert "no way" in found.absent["no start"]
    assert found.absent["missing"] == "no_such_package is not installed"
    assert found.versions["fake"] == "7"
    assert found.ceilings[1]


def test_tuned_options_compete_with_the_default(shared: Shared) -> None:
    for one in shared.report.results:
        assert {n: len(one.entries[n].samples) for n in OURS} == {DEFAULT: 3, TUNED: 3}
        assert one.ours is not None
        assert one.ours[0] == TUNED
        assert one.gain() is not None
        assert set(one.facts) >= {"compile_seconds", "default", "tuned"}


def test_a_run_has_all_placements(shared: Shared) -> None:
    """The fake looks where its inputs begin."""
    found = shared.report
    assert [r.placement for r in found.results] == ["aligned", "numpy"]
    assert found.placements == ["aligned", "numpy"]
    assert set(found.as_json()["summary"]["1"]) == {"aligned", "numpy", "numpy over aligned"}


def test_rows_that_cannot_be_measured_are_left_out(shared: Shared) -> None:
    assert set(shared.report.left_out) == {"huge"}
    assert "memory" in shared.report.left_out["huge"]


def test_what_is_there_can_be_kept_at_any_time(shared: Shared) -> None:
    """A report comes after each row, and is as good as one of the end."""
    (early,) = shared.seen
    assert early.interrupted
    assert not shared.report.interrupted
    assert early.results == shared.report.results
    for report in (early, shared.report):
        assert Report.from_json(json.loads(report.text())).as_json() == report.as_json()


def test_a_run_goes_on_where_another_stopped(shared: Shared) -> None:
    settings = replace(QUICK, placements=("aligned", "numpy"))
    before = Report.from_json(json.loads(shared.seen[0].text()))
    said: list[str] = []
    again = run([tiny()], settings, said.append, before=before, **shared.arguments)
    assert again.results == shared.report.results
    assert said == []
    other = replace(settings, cold=True)
    with pytest.raises(ArgumentError, match="has other settings: cold False, not True"):
        run([tiny()], other, said.append, before=before, **shared.arguments)
    foreign = replace(before, machine={**before.machine, "cpu": "abacus"})
    with pytest.raises(ArgumentError, match="another machine: cpu is not abacus"):
        run([tiny()], settings, said.append, before=foreign, **shared.arguments)
    for name, missing in (("python", tiny()), ("fake", replace(tiny(), name="more"))):
        older = replace(before, versions={**before.versions, name: "2.7"})
        with pytest.raises(ArgumentError, match=f"made with {name} 2.7, not"):
            run([missing], settings, said.append, before=older, **shared.arguments)


def test_runs_and_cold_caches(folder: Path) -> None:
    (peer,) = fakes(folder, "right")
    settings = replace(QUICK, runs=2, cold=True, rounds=1)
    found = run([tiny()], settings, lambda text: None, peers=(), ours=(peer,))
    assert [r.run for r in found.results] == [1, 2]
    assert all(len(r.entries["right"].samples) == 1 for r in found.results)


def test_a_peer_that_dies_is_started_again(folder: Path) -> None:
    (peer,) = fakes(folder, "dies")
    rows = [tiny(), replace(tiny(), name="again")]
    found = run(rows, QUICK, lambda text: None, peers=(peer,), ours=fakes(folder, "right"))
    for one in found.results:
        assert "the process ended" in one.entries["dies"].error
        assert one.entries["right"].samples


def test_a_process_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (spec,) = fakes(tmp_path, "right")
    one = Contender(spec, 1, ())
    one.start()
    with pytest.raises(ContenderError, match="there is no request 'dance'"):
        one.request(10, do="dance")
    assert one._process.pid is not None
    os.kill(one._process.pid, signal.SIGSTOP)
    with pytest.raises(ContenderError, match="no answer in 0 s"):
        one.request(0.1, do="hello")
    assert not one.alive
    one.start()
    assert one.versions == {"fake": "7"}
    one.stop()


def test_too_many_threads() -> None:
    with pytest.raises(ArgumentError, match="100000 threads need as many cores"):
        run([tiny()], replace(QUICK, threads=(100_000,)), lambda text: None, peers=())


def test_specs_name_modules_that_exist() -> None:
    for spec in (*contender.OURS, *PEERS):
        folder = Path(numpy_peer.__file__).parent
        assert (folder / f"{spec.module.rpartition('.')[2]}.py").exists()
