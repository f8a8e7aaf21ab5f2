"""Random values of index tensors: those that fit are chosen, and where none are known, it is said
what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tcl.api import define
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import fitting, index_tensors, random_inputs
from tcl.cli import main
from tcl.grammar.check.definitions import check

BLOCKS = """
def f(float(R, S, BK) V, int32(R, S) Column, float(K, N) B) -> (C) {
    C(r, n) +=! V(r, s, k) * B(BK * Column(r, s) + k, n)
}
"""
FLIPPED = "def f(float(N) X, int64(M) I) -> (Y) { Y(m) = X(7 - 2 * I(m)) }"
SCATTERED = """
def f(float(N) X, int32(M) I) -> (Y) { Y(m) = X(I(m) * I(m) + 3) }
"""
GUARDED = "def f(float(N) X, int32(M) I) -> (Y) { Y(m) = I(m) < N ? X(I(m)) : 0.0 }"
SHIFTED = """
def f(float(N) X, int32(M) I) -> (Y, T) {
    T(i) = X(i - 2) where i in 2:N + 2
    Y(m) = T(I(m))
}
"""


@pytest.mark.parametrize(
    ("text", "sizes", "name", "bounds"),
    [
        (BLOCKS, "R=4,S=3,BK=5,K=30,N=8", "Column", (0, 5)),
        (BLOCKS, "R=4,S=3,BK=5,K=33,N=8", "Column", (0, 5)),
        (FLIPPED, "N=6,M=9", "I", (1, 3)),
        (SHIFTED, "N=4,M=9", "I", (2, 5)),
    ],
)
def test_what_fits_is_chosen(text: str, sizes: str, name: str, bounds: tuple[int, int]) -> None:
    """All of it, and nothing else: every value runs, and one more at either end does not."""
    checked = check(text)["f"]
    inputs = random_inputs(checked, parse_sizes(sizes, checked), 1)
    shapes = {t.name: a.shape for t, a in zip(checked.inputs, inputs, strict=True)}
    assert fitting(checked, shapes) == {name: bounds}
    position = [t.name for t in checked.inputs].index(name)
    chosen = inputs[position]
    assert bounds[0] <= chosen.min() < chosen.max() <= bounds[1]
    T = define(text)
    T.f(*inputs)
    for wrong in (bounds[0] - 1, bounds[1] + 1):
        changed = list(inputs)
        changed[position] = np.full_like(chosen, wrong)
        with pytest.raises(IndexError):
            T.f(*changed)


@pytest.mark.parametrize("text", [SCATTERED, GUARDED])
def test_what_is_not_known_is_left_alone(text: str) -> None:
    checked = check(text)["f"]
    assert fitting(checked, {"X": (4,), "I": (100,)}) == {}
    assert index_tensors(checked) == ("I",)
    _, chosen = random_inputs(checked, {"N": 4, "M": 100})
    assert (chosen.min(), chosen.max()) == (0, 7)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(float(V) X, float(N) P) -> (O) { O(n) = X(int32(5 * P(n)) - 3) }", ("P",)),
        ("def f(float(V) X, float(N) P) -> (O) { O(n) = X(l) where l = int32(P(n)) }", ("X", "P")),
    ],
)
def test_floats_that_decide_subscripts_are_named(text: str, names: tuple[str, ...]) -> None:
    assert index_tensors(check(text)["f"]) == names


@pytest.mark.parametrize("command", ["run", "tune"])
def test_values_that_do_not_fit(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tcl.cli.tuned.failed_lately", lambda threads: True)
    file = tmp_path / "f.tc"
    file.write_text(SCATTERED)
    arguments = [command, str(file), "-s", "N=10,M=50", "-t", "1"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1
    assert "is out of range for dimension 0 of tensor X, which has indices 0 to 9; " in done.stderr
    assert "the values of I were chosen at random" in done.stderr
    remedy = "# values I: 0..3"
    assert "`# values I: FIRST..STOP`" in done.stderr and "Python" in done.stderr
    assert f"\n{file}:2:49: note: it is this subscript of f\n" in done.stderr
    file.write_text(SCATTERED.replace("\ndef", "\n# values I: 0..9\ndef"))
    done = CliRunner().invoke(main, arguments)
    assert "`# values` comments and do not fit: correct `# values I: 0..9`, or " in done.stderr
    file.write_text(SCATTERED.replace("\ndef", f"\n{remedy}\ndef"))
    if command == "run":
        assert CliRunner().invoke(main, arguments).exit_code == 0


POOLED = """
def f(uint8(H, W) X, int32(H) I) -> (Low, Back) {
    Low(p, q) min=! X(4 * p + i, 4 * q + j) where i in 0:4, j in 0:4
    Back(y, x) = X(I(y), x) - Low(y / 4, b) where y in 0:H, x in 0:W, b = x / 4
}
"""


@pytest.mark.parametrize("text", [POOLED, POOLED.replace(" b)", " x / 4)").replace(", b =", "#")])
def test_sizes_that_do_not_fit(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values decide a subscript of another tensor only."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    file = tmp_path / "f.tc"
    arguments = ["run", str(file), "-t", "1", "-s"]
    file.write_text(text)
    done = CliRunner().invoke(main, [*arguments, "H=8,W=13"])
    assert done.exit_code == 1
    assert "f.tc:4:42: error: index 3 is out of range for dimension 1 of tensor Low" in done.stderr
    assert "the sizes of f H=8 W=13 do not fit: choose others, or guard the read" in done.stderr
    assert "# values" not in done.stderr
    assert CliRunner().invoke(main, [*arguments, "H=8,W=12"]).exit_code == 0


def test_a_let_of_data_in_a_subscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    file = tmp_path / "f.tc"
    file.write_text(POOLED.replace("b = x / 4", "b = x / 4 + I(y)"))
    done = CliRunner().invoke(main, ["run", str(file), "-t", "1", "-s", "H=8,W=13"])
    assert "of tensor Low" in done.stderr
    assert "the values of I were chosen at random" in done.stderr
