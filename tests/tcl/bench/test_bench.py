"""The benchmark suite: what rows cost, what peers compute, and how a run treats them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from click.testing import Result as Ended

from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.bench.arrays import aligned, load, save
from tcl.bench.ceilings import Ceilings, Meter
from tcl.bench.contender import OURS, PEERS, Contender, ContenderError, Spec
from tcl.bench.expected import expected
from tcl.bench.peers import numpy_peer
from tcl.bench.report import DEFAULT, TUNED, Entry, Report, Result, geometric_mean, summarise
from tcl.bench.rows import KINDS, ROWS, Row, select
from tcl.bench.run import Settings, run
from tcl.bench.task import Peer, Task
from tcl.bench.tuning import tune
from tcl.cli import main
from tcl.grammar import checked as c
from tcl.grammar.errors import ArgumentError
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef, SizedStatement

Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[object, ...]

# What rows cost, counted point by point.

SMALL = {
    "group_convolution": {"N": 2, "G": 2, "C": 2, "F": 3, "H": 5, "W": 4, "KH": 3, "KW": 2},
    "masked_convolution": {"B": 2, "C": 3, "H": 5, "W": 4, "F": 4, "K": 2},
}
DEFS = list({row.entry: row for row in ROWS}.values())
each_def = pytest.mark.parametrize("row", DEFS, ids=lambda r: r.entry)
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)


def small(row: Row) -> dict[str, int]:
    return SMALL.get(row.entry) or dict(replace(row, sizes="test").values)


@dataclass
class Counter:
    """Runs over every point of a def and notes each value that is computed, by what it is
    computed from: a value that comes up again is the same value."""

    sized: SizedDef
    inputs: Mapping[str, Array]
    values: set[Key] = field(default_factory=set)
    steps: int = 0
    touched: set[Key] = field(default_factory=set)
    written: set[Key] = field(default_factory=set)
    version: dict[str, int] = field(default_factory=dict)

    def count(self) -> None:
        for statement in self.sized.statements:
            for point in self.points(statement):
                self.lets: dict[str, Key] = {}
                for let in statement.statement.lets:
                    self.lets[let.name] = self.key(let.value, point)
                self.key(statement.statement.rhs, point)
                target = self.sized.checked.tensors[statement.statement.target]
                self.steps += statement.statement.op != "=" and target.type.is_float
                position = tuple(point[i] for i in statement.statement.indices)
                self.written.add((target.name, *position))
            name = statement.statement.target
            self.version[name] = self.version.get(name, 0) + 1

    def points(self, statement: SizedStatement) -> Iterator[dict[str, int]]:
        names = list(statement.ranges)
        for values in product(*(range(*statement.ranges[n]) for n in names)):
            yield dict(zip(names, values, strict=True))

    def key(self, e: c.Expr, point: Mapping[str, int]) -> Key:  # noqa: C901
        """What identifies the expression's value; ``("value", v)`` where it is known."""
        match e:
            case c.Const():
                return "value", e.value
            case c.Index():
                return "value", point[e.name]
            case c.Size():
                return "value", self.sized.sizes[e.name]
            case c.Dimension():
                return "value", self.sized.shapes[e.tensor][e.axis]
            case c.LetRef():
                return self.lets[e.name]
            case c.Cast():
                inner = self.key(e.operand, point)
                return inner if inner[0] == "value" else ("cast", inner)
            case c.Read():
                where: tuple[Any, ...] = tuple(self.key(s, point)[1] for s in e.subscripts)
                if e.tensor in self.inputs:
                    self.touched.add((e.tensor, *where))
                    if not e.type.is_float:
                        return "value", int(self.inputs[e.tensor][where])
                return "read", e.tensor, self.version.get(e.tensor, 0), *where
            case c.Select():
                condition = self.key(e.condition, point)
                if condition[0] == "value":
                    return self.key(e.then if condition[1] else e.otherwise, point)
                return "select", condition, self.key(e.then, point), self.key(e.otherwise, point)
            case c.Binary(op="&&" | "||"):
                left = self.key(e.left, point)
                if bool(left[1]) == (e.op == "||"):
                    return left
                return self.key(e.right, point)
            case c.Unary():
                return self.computed(e, e.op, self.key(e.operand, point))
            case c.Binary():
                return self.computed(e, e.op, self.key(e.left, point), self.key(e.right, point))
            case c.Call():
                return self.computed(e, e.name, *(self.key(a, point) for a in e.arguments))

    def computed(self, e: c.Expr, name: str, *operands: Key) -> Key:
        if all(o[0] == "value" for o in operands):
            if e.type.is_float:
                return "value", (name, operands)  # a constant: its value does not matter
            return "value", _evaluate(name, *(o[1] for o in operands))
        key = (name, *operands)
        if e.type.is_float:
            self.values.add(key)
        return key


def _evaluate(op: str, *x: Any) -> Any:
    match op:
        case "+":
            return x[0] + x[1]
        case "-":
            return x[0] - x[1] if len(x) == 2 else -x[0]
        case "*":
            return x[0] * x[1]
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return eval(f"a {op} b", {"a": x[0], "b": x[1]})
    raise AssertionError(op)


def counted(row: Row) -> Counter:
    sizes = small(row)
    checked = row.checked
    inputs = dict(zip((t.name for t in checked.inputs), random_inputs(checked, sizes), strict=True))
    if "Mask" in inputs:
        inputs["Mask"].fill(1)  # the cost is that of nothing masked
    if "I1" in inputs:
        index = inputs["I1"]
        index[...] = np.arange(index.size).reshape(index.shape) % sizes["E1"]  # all that can be
    shapes = {t.name: input_shape(t, sizes) for t in checked.inputs}
    counter = Counter(infer(checked, shapes), inputs)
    counter.count()
    return counter


@each_def
def test_costs_are_what_is_counted(row: Row) -> None:
    counter = counted(row)
    types = {n: t.type for n, t in row.checked.tensors.items()}
    sizes = small(row)
    cost = row.cost(sizes)
    assert cost.operations == len(counter.values) + counter.steps
    corners = 16 if row.entry == "stencil" else 0  # which are in no one's neighbourhood
    assert cost.read == sum(types[str(t)].bits // 8 for t, *_ in counter.touched) + corners
    written = [str(t) for t, *_ in counter.written if t in row.results]
    assert cost.written == sum(types[t].bits // 8 for t in written)


# The suite.


@each_row
def test_rows_are_consistent(row: Row) -> None:
    assert row.kind in KINDS
    outputs = {t.name for t in row.checked.outputs}
    assert set(row.results) <= outputs
    assert row.sizes != "test"
    cost = row.cost()
    assert min(cost.operations, cost.read, cost.written) > 0
    if row.batch:
        shapes = {t.name: input_shape(t, row.values) for t in row.checked.inputs}
        sized = infer(row.checked, shapes)
        assert all(sized.shapes[r][0] == row.values[row.batch] for r in row.results)


def test_rows_are_selected() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) == 29
    assert {row.kind for row in ROWS} == set(KINDS)
    assert select(None) == list(ROWS)
    assert [r.name for r in select("matmul 512")] == ["matmul 512"]
    assert {r.entry for r in select("matmul *,SOFTMAX")} == {"matmul", "softmax_twice"}
    assert [r.name for r in select("matmul 2048", quick=True)] == ["matmul 2048"]
    assert 0 < len(select(None, quick=True)) < len(ROWS)
    with pytest.raises(ArgumentError, match=r"no row fits 'nothing'; rows are: matmul 512"):
        select("nothing")


def test_expectations_of_a_sample_agree_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(r for r in ROWS if r.entry == "tmm")
    sizes = {"M": 9, "N": 5, "K": 4}
    arrays = random_inputs(row.checked, sizes)
    everything = expected(row, sizes, arrays)
    monkeypatch.setattr("tcl.bench.expected._POINTS", 60)
    sample = expected(row, sizes, arrays)
    assert everything.picked is None
    assert sample.picked is not None
    assert (sample.picked[0], sample.picked[-1]) == (0, 8)
    np.testing.assert_array_equal(sample.arrays[0], everything.arrays[0][list(sample.picked)])


@pytest.mark.parametrize("spoil", ["value", "shape", "nan", "missing"])
@pytest.mark.parametrize("sampled", [False, True])
def test_wrong_results_are_found(
    spoil: str, sampled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sampled:
        monkeypatch.setattr("tcl.bench.expected._POINTS", 60)
    row = next(r for r in ROWS if r.entry == "tmm")
    sizes = {"M": 9, "N": 5, "K": 4}
    a, b = random_inputs(row.checked, sizes)
    wanted = expected(row, sizes, (a, b))
    right = a @ b.T
    save(tmp_path, "result-0", right)
    assert wanted.problem(tmp_path) is None
    if spoil == "value":
        right[0, 0] += 1
    elif spoil == "shape":
        right = right[:-1]
    elif spoil == "nan":
        right[1, 1] = np.nan
    if spoil != "missing":
        save(tmp_path, "result-0", right)
    assert wanted.problem(tmp_path) is not None


# Peers.


def check_forms(peer: Peer, row: Row) -> int:
    """Compare every form that a peer has for a def with the reference; how many there are."""
    sizes = small(row)
    if row.entry == "masked_convolution":
        sizes = {**sizes, "K": 1}
    arrays = random_inputs(row.checked, sizes)
    names = tuple(t.name for t in row.checked.inputs)
    task = Task(row.text, row.entry, sizes, names, row.results)
    wanted = expected(row, sizes, arrays)
    count = 0
    for name, make in peer.forms(task, dict(zip(names, arrays, strict=True))):
        form = make()
        form.run()
        for array, right in zip(form.results(), wanted.arrays, strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-4, atol=1e-4, err_msg=name)
        count += 1
    return count


@each_def
def test_numpy_forms_are_right(row: Row) -> None:
    assert check_forms(numpy_peer.make(1), row) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "package", "complete"),
    [
        ("torch_peer", "torch", True),
        ("torch_compile", "torch", True),
        ("jax_peer", "jax", True),
        ("halide_peer", "halide", False),
    ],
)
def test_other_peers_are_right(module: str, package: str, complete: bool) -> None:
    """In a process of their own, as they change what a process is."""
    pytest.importorskip(package)
    code = (
        f"import test_bench as t; from tcl.bench.peers import {module} as m; "
        f"p = m.make(1); counts = [t.check_forms(p, r) for r in t.DEFS]; print(counts); "
        f"assert sum(counts) > 4 and (min(counts) > 0 or not {complete})"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_arrays_keep_values_and_are_aligned(tmp_path: Path) -> None:
    scalar: Array = np.array(3.5, np.float32)
    for array in (scalar, np.arange(7, dtype=np.uint8), np.ones((3, 0, 2))):
        save(tmp_path, "x", array)
        found = load(tmp_path, "x")
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert found.size == 0 or found.ctypes.data % 64 == 0
    assert aligned((5, 3), "float32").flags.c_contiguous


# Ceilings.


def test_ceilings_are_sane() -> None:
    meter = Meter((next(iter(os.sched_getaffinity(0))),), buffer=8 << 20)
    try:
        source, target = meter._parts[0]
        source[...] = np.arange(source.size, dtype=np.uint32).astype(np.uint8)
        found = meter.sample()
        assert meter._run("fma", meter._times) > 0.002  # long enough to start a thread unnoticed
        np.testing.assert_array_equal(target, source)
        ones = source.view(np.float32)
        ones.fill(1)
        total = meter._functions["read"](source.ctypes.data, target.ctypes.data, source.size)
        assert total == ones.size
    finally:
        meter.close()
    assert 1e8 < found.read < 1e13
    assert 1e8 < found.copy < 1e13
    assert 1e8 < found.flops < 1e13


def test_least_time() -> None:
    ceilings = Ceilings(read=10.0, copy=16.0, flops=100.0)
    assert ceilings.seconds(500, 10, 0) == 5.0  # arithmetic
    assert ceilings.seconds(1, 20, 0) == 2.0  # reading
    assert ceilings.seconds(1, 80, 80) == pytest.approx(10.0)  # a copy runs at the copy's rate


# Reports.


def result(name: str, kind: str = "sums", **seconds: float) -> Result:
    entries = {n: Entry("f", 1, (s, s * 3, s / 2)) for n, s in seconds.items()}
    named = {"default": DEFAULT, "tuned": TUNED}
    entries = {named.get(n, n): e for n, e in entries.items()}
    facts = {"compile_seconds": [0.3, 0.1, 0.2]}
    return Result(name, kind, "f", "d", {"N": 1}, 1, 100, 10, 10, entries, facts)


def report(*results: Result) -> Report:
    samples = (Ceilings(10.0, 12.0, 90.0), Ceilings(9.0, 16.0, 100.0))
    settings = {"cold": False, "rounds": 3}
    return Report("2020-01-01", {"cpu": "x"}, {"a": "1"}, settings, {1: samples}, results, {})


def test_ratios() -> None:
    one = result("a", slow=9.0, fast=2.0, default=4.0, tuned=1.0)
    assert one.best_peer == ("fast", 2.0)
    assert one.ours == (TUNED, 1.0)
    assert (one.ratio(), one.ratio(DEFAULT)) == (2.0, 0.5)
    untuned = result("b", fast=2.0, default=4.0)
    assert (untuned.ratio(), untuned.ours) == (0.5, (DEFAULT, 4.0))
    assert result("c", default=1.0).ratio() is None
    assert result("d", fast=1.0).ratio() is None
    assert one.share(2.0, Ceilings(10.0, 20.0, 100.0)) == 0.5
    assert one.compile_seconds == 0.2


def test_summaries() -> None:
    rows = [
        result("a", "sums", fast=2.0, default=4.0, tuned=1.0),
        result("b", "fused", fast=2.0, default=4.0),
        result("c", "fused", default=4.0),
    ]
    found = summarise(rows)
    assert found["ratio"] == pytest.approx({"fused": 0.5, "sums": 2.0, "all": 1.0})
    assert found["ratio_default"] == pytest.approx({"fused": 0.5, "sums": 0.5, "all": 0.5})
    assert found["default_over_tuned"] == pytest.approx(0.25)
    assert found["worst"] == {"row": "b", "ratio": 0.5}
    assert found["missing"] == ["c"]
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, None, 4.0]) == pytest.approx(2.0)


def test_json_keeps_everything() -> None:
    first = report(result("a", fast=2.0, default=4.0), result("b", default=1.0))
    data = json.loads(first.text())
    assert Report.from_json(data) == first
    assert data["schema"] == 1
    row = data["results"][0]
    assert row["entries"]["fast"]["samples"] == [2.0, 6.0, 1.0]
    assert row["summary"]["ratio"] == 0.5
    assert row["summary"]["medians"] == {"fast": 2.0, DEFAULT: 4.0}
    assert set(data["summary"]["1"]) >= {"ratio", "ratio_default", "worst", "compile_seconds"}
    assert data["ceilings"]["1"][0] == {"read": 10.0, "copy": 12.0, "flops": 90.0}
    with pytest.raises(ArgumentError, match="no report of schema"):
        Report.from_json({"schema": 99})
    with pytest.raises(ArgumentError, match="damaged"):
        Report.from_json({"schema": 1})


def test_ceiling_is_the_best_of_each() -> None:
    assert report().ceiling(1) == Ceilings(10.0, 16.0, 100.0)


# Runs, with a peer that misbehaves on demand.

FAKE = """
import os, sys, time
import numpy as np
from tcl.bench.task import Form
class Fake:
    def versions(self): return {"fake": "7"}
    def facts(self, task): return {}
    def forms(self, task, inputs):
        kind = KIND
        out = np.zeros((task.sizes["M"], task.sizes["N"]), np.float32)
        print("noise on stdout")
        def run(delay):
            time.sleep(delay)
            np.matmul(inputs["A"], inputs["B"], out=out)
            out[0, 0] += kind == "wrong"
        def later():
            run(0)
            if later.calls > 8 and kind == "dies": os._exit(3)
            later.calls += 1
        later.calls = 0
        def form(f): return lambda: Form(f, lambda: (f(), [out])[1], 1)
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
QUICK = Settings(rounds=3, sample=0.0005)


def fakes(folder: Path, *kinds: str) -> tuple[Spec, ...]:
    specs = []
    for kind in kinds:
        module = "bench_fake_" + kind.replace(" ", "_")
        (folder / f"{module}.py").write_text(FAKE.replace("KIND", repr(kind)))
        specs.append(Spec(kind, module))
    return tuple(specs)


def tiny() -> Row:
    return replace(next(r for r in ROWS if r.entry == "matmul"), sizes="test")


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    peers = fakes(tmp_path, "right", "wrong", "nothing", "no start")
    peers = (*peers, Spec("missing", "nowhere", "no_such_package"))
    seen: list[Result] = []
    found = run(
        [tiny()], QUICK, lambda text: None, peers=peers, finished=lambda r, _: seen.append(r)
    )
    (one,) = found.results
    assert seen == [one]
    entries = one.entries
    assert set(entries) == {DEFAULT, "right", "wrong", "nothing"}
    assert entries["right"].form == "quick"
    assert len(entries["right"].samples) == 3
    assert entries["right"].other_forms["refused"] == "RuntimeError: not today"
    assert "output C differs from the reference at (0, 0)" in entries["wrong"].error
    assert entries["wrong"].samples == ()
    assert entries["nothing"].error == "RuntimeError: not today"
    assert entries[DEFAULT].error == ""
    assert one.best_peer is not None
    assert one.best_peer[0] == "right"
    assert one.ratio() == one.ratio(DEFAULT) is not None
    assert one.compile_seconds is not None
    assert "no way" in found.absent["no start"]
    assert found.absent["missing"] == "no_such_package is not installed"
    assert found.versions["fake"] == "7"
    assert found.ceilings[1]
    assert Report.from_json(json.loads(found.text())).as_json() == found.as_json()


def test_tuned_options_compete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.bench.tuning._GENERATIONS", 1)
    cache = tmp_path / "tuned.db"
    assert tune([tiny()], 120, cache, 0, lambda text: None) == {}
    (one,) = run([tiny()], QUICK, lambda text: None, peers=(), cache=cache).results
    assert {n: len(e.samples) for n, e in one.entries.items()} == {DEFAULT: 3, TUNED: 3}
    assert one.ours is not None
    assert one.ours[0] == TUNED
    assert len(one.facts["options"]) == 2


def test_a_peer_that_dies_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (peer,) = fakes(tmp_path, "dies")
    rows = [tiny(), replace(tiny(), name="again")]
    found = run(rows, QUICK, lambda text: None, peers=(peer,), ours=fakes(tmp_path, "right")[0])
    for one in found.results:
        assert "the process ended" in one.entries["dies"].error
        assert one.entries["right"].samples


def test_a_process_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (spec,) = fakes(tmp_path, "right")
    contender = Contender(spec, 1, (), tmp_path)
    contender.start()
    with pytest.raises(ContenderError, match="there is no request 'dance'"):
        contender.ask(10, do="dance")
    os.kill(contender._process.pid, signal.SIGSTOP)
    with pytest.raises(ContenderError, match="no answer in 0 s"):
        contender.ask(0.1, do="hello")
    assert not contender.alive
    contender.start()
    assert contender.versions == {"fake": "7"}
    contender.stop()


def test_too_many_threads() -> None:
    with pytest.raises(ArgumentError, match="100000 threads need as many cores"):
        run([tiny()], replace(QUICK, threads=(100_000,)), lambda text: None, peers=())


def test_specs_name_modules_that_exist() -> None:
    for spec in (OURS, *PEERS):
        folder = Path(numpy_peer.__file__).parent
        assert (folder / f"{spec.module.rpartition('.')[2]}.py").exists()


# The command.


def tcl(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tcl", "bench", "cpu", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_command_lists_and_refuses() -> None:
    def done(*arguments: str) -> Ended:
        return CliRunner().invoke(main, ["bench", "cpu", *arguments])

    listed = done("--list", "--rows", "conv*")
    assert listed.exit_code == 0
    assert listed.stdout.split("\n")[0].split()[:2] == ["conv", "3x3"]
    for wrong in (("--rows", "nothing"), ("--threads", "none"), ("--peers", "abacus")):
        assert done(*wrong).exit_code == 2


@pytest.mark.parametrize("cold", [False, True])
def test_command_measures(tmp_path: Path, cold: bool) -> None:
    more = ("--cold",) if cold else ()
    done = tcl(
        "--rows", "MLP3", "--peers", "numpy", "--quick", "--rounds", "2", "--cache",
        tmp_path / "none.db", "--out", tmp_path / "out", *more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cold cache" in done.stdout if cold else "warm cache" in done.stdout
    data = json.loads((tmp_path / "out" / "bench.json").read_text())
    found = Report.from_json(data)
    assert [r.name for r in found.results] == ["MLP3"]
    assert set(found.results[0].entries) == {DEFAULT, "NumPy"}
    assert found.settings["cold"] is cold
    assert "numpy" in found.versions
