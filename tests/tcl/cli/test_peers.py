"""What ``tune`` compares a winner with, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from places import EXAMPLES

from tcl.arrays.arguments import Array
from tcl.bench.ceilings import Ceilings
from tcl.bench.peers import numpy_peer
from tcl.bench.roofline import Roofline
from tcl.cli import peers as module
from tcl.cli.kernels import Work
from tcl.cli.peers import peers, won
from tcl.codegen.loopir.cost import Cost
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.definitions import check

FAST = Ceilings(read=10e9, copy=10e9, flops=100e9)
STREAM = Cost(operations=1_000_000, single=1e6, read=8_000_000, written=8_000_000)


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)


def layernorm() -> Work:
    return Work.load(EXAMPLES / "layernorm.tc", "layernorm", "N=7,D=33", 0)


def right(work: Work) -> dict[str, Array]:
    outputs = work.outputs()
    compile_reference(work.sized)(work.inputs, outputs)
    return dict(zip((t.name for t in work.checked.outputs), outputs, strict=True))


def test_a_def_of_the_suite_has_the_suites_formulation(monkeypatch: pytest.MonkeyPatch) -> None:
    work, made = layernorm(), list[str]()
    builders = numpy_peer.forms.builders("layernorm")

    def noted(*given: str) -> object:
        made.append(given[0])
        return builders

    monkeypatch.setattr(numpy_peer.forms, "builders", noted)
    found = peers(work, right(work), 1, pytest.fail)
    assert [name.split(" (")[0] for name in found] == ["NumPy"]
    assert made == ["layernorm"]


def test_another_def_of_that_name_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def layernorm(float(N) I) -> (O) { O(n) = 2 * I(n) }"
    monkeypatch.setattr(numpy_peer.forms, "builders", lambda *given: pytest.fail(given[0]))
    work = Work.from_def(text, check(text)["layernorm"], {"N": 5}, 0)
    (run,) = peers(work, right(work), 1, pytest.fail).values()
    run()


def test_sums_that_go_on_are_compared_from_zero() -> None:
    text = "def add(float(N, K) A) -> (O) { O(n) += A(n, k) }"
    work = Work.from_def(text, check(text)["add"], {"N": 5, "K": 3}, 0)
    assert len(peers(work, right(work), 1, pytest.fail)) == 1


def test_a_peer_may_round_otherwise_what_cancels() -> None:
    text = """
# values A: 9..9.01
# values B: 1..1.01
def f(float(M, K) A, float(K, N) B) -> (S, Mean, O) {
    S(m, n) +=! A(m, k) * B(k, n)
    Mean(n) +=! S(m, n) / 64
    O(m, n) = S(m, n) - Mean(n)
}
"""
    work, said = Work.from_def(text, check(text)["f"], {"M": 64, "K": 200, "N": 40}, 0), list[str]()
    expected = right(work)
    assert len(peers(work, expected, 1, pytest.fail)) == 1
    expected["O"][3, 4] *= 2
    assert peers(work, expected, 1, said.append) == {}
    assert "(3, 4)" in said[0]


def test_a_wrong_peer_is_left_out_and_said() -> None:
    work, said = layernorm(), list[str]()
    expected = right(work)
    expected["O"][3, 4] += 1
    assert peers(work, expected, 1, said.append) == {}
    assert len(said) == 1
    assert said[0].startswith("no comparison with NumPy: output O differs")
    assert "(3, 4)" in said[0]


def test_a_peer_that_raises_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    work, said = layernorm(), list[str]()

    def builder(given: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(numpy_peer.forms, "builders", lambda *given: [("it", builder)])
    assert peers(work, right(work), 1, said.append) == {}
    assert said == ["no comparison with NumPy: RuntimeError: no such thing"]


def test_what_memory_limits_is_told_in_passes() -> None:
    # 16 MB at 10 GB/s take 1.6 ms: in 2 ms, 1.25 passes.
    yardstick = Roofline(STREAM, FAST, cached=0)
    beside = {"naive options": 30.0, "NumPy (2 threads)": 6.0, "torch (2 threads)": 1.6}
    assert won(yardstick, 2e-3, beside) == (
        "6.00 × as fast as NumPy, 1.60 × as fast as torch; "
        "counted in passes over the 16 MB that must be moved: NumPy 7.5, torch 2.0, the winner 1.2"
    )


def test_without_the_speed_of_memory_it_is_told_in_rates() -> None:
    said = won(Roofline(STREAM, None, cached=0), 2e-3, {"NumPy (1 thread)": 4.0})
    assert said == (
        "4.00 × as fast as NumPy; of the necessary memory traffic: NumPy 2 GB/s, the winner 8 GB/s"
    )


def test_what_arithmetic_limits_is_told_in_operations() -> None:
    product = Cost(operations=100_000_000, single=1e8, read=10_000, written=10_000)
    said = won(Roofline(product, FAST, cached=1_000_000), 2e-3, {"NumPy (1 thread)": 2.0})
    assert said is not None
    assert said.endswith("of the necessary operations: NumPy 25 GFLOP/s, the winner 50 GFLOP/s")


def test_beside_no_peer_nothing_is_won() -> None:
    assert won(Roofline(STREAM, FAST, 0), 2e-3, {"naive options": 30.0}) is None


def test_numpy_is_as_fast_as_its_best_form(monkeypatch: pytest.MonkeyPatch) -> None:
    work, calls = layernorm(), list[int]()
    (name, form), *_ = numpy_peer.forms.builders("layernorm")

    def slow(given: object) -> Callable[[], object]:
        run = form(given)

        def repeated() -> object:
            calls.append(0)
            return [run() for _ in range(50)][-1]

        return repeated

    monkeypatch.setattr(numpy_peer.forms, "builders", lambda *given: [("slow", slow), (name, form)])
    (run,) = peers(work, right(work), 1, pytest.fail).values()
    calls.clear()
    assert isinstance(run(), np.ndarray)
    assert not calls


def test_a_torch_that_cannot_be_imported_costs_the_comparison_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, said = layernorm(), list[str]()

    def broken(name: str) -> object:
        if "torch" in name:
            raise OSError("libtorch.so: not found")
        return numpy_peer

    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "import_module", broken)
    assert len(peers(work, right(work), 1, said.append)) == 1
    assert said == ["no comparison with torch: OSError: libtorch.so: not found"]


def test_torch_is_compared_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    work = layernorm()
    found = peers(work, right(work), 1, pytest.fail)
    assert [name.split(" (")[0] for name in found] == ["NumPy", "torch"]
