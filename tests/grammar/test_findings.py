"""What is legal and probably not meant: told with its place, once, with remedies that work."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from programs import unmark

import tcl
from tcl.cli import main
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.cut import range_warnings
from tcl.grammar.ranges.findings import findings, output_dims, size_finding, size_findings
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes import polynomials
from tcl.grammar.syntax.errors import Diagnostic, RangeInferenceError

_HEADER = (
    "def f(float(N) X, float(K) W, float(B, C, H, V) I, float(D, C, R, S) F, bool(N) t, "
    "int32(N) n8) -> ({}) {{\n    {}\n}}"
)
_SIZES = {"N": 7, "K": 3, "B": 2, "C": 2, "H": 9, "V": 8, "D": 2, "R": 3, "S": 3}
_TAPS = "Y(n) +=! «X(n + k - 1)» * W(k) where n in 0:N"
_CONV = (
    "Y(b, d, h, v) +=! «I(b, c, 2 * h + r - 1, 2 * v + s - 1)» * F(d, c, r, s) "
    "where h in 0:(H + 1) / 2, v in 0:(V + 1) / 2"
)


def _text(body: str) -> str:
    outputs, separator, rest = body.partition(" | ")
    return _HEADER.format(outputs, rest) if separator else _HEADER.format("Y", body)


def _found(text: str, sizes: Mapping[str, int] | None = None) -> list[Any]:
    return range_warnings(size_finding(check(text)["f"], sizes or _SIZES))


_CUT = (
    (_TAPS, "limits 'k' to 1:2 of the 0:3 of W(k)", "k in 0:K", "k in 1:2"),
    (_CONV, "'r' to 1:2 of the 0:3, 's' to 1:3", "r in 0:R, s in 0:S", "r in 1:2, s in 1:S"),
    ("Y(n) +=! «X(n + k - 1)» * X(k) where n in 0:N", "to 1:2 of the 0:7", "k in 0:N", "k in 1:2"),
    ("Y(n) +=! «X(n + k)» * W(k) where n in 0:N", "to 0:1 of the 0:3", "k in 0:K", "k in 0:1"),
    ("Y(n) +=! W(k) * «X(a)» where a = n - k, n in 0:N", "to 0:1 of", "k in 0:K", "k in 0:1"),
    ("Y(n) +=! «X(n - k)» * W(K-1-k) where n in 0:N", "of W(K-1-k)", "k in 0:K", "k in 0:1"),
    ("Y(n) max=! «X(n + k - 1)» + W(k) where n in 0:N", "to 1:2", "k in 0:K", "k in 1:2"),
    ("Y(n) += «X(n + k - 1)» * W(k) where n in 0:N", "to 1:2", "k in 0:K", "k in 1:2"),
    ("Y +=! W(k) * «X(k + 5)» * X(j) where j in 0:1", "0:2 of the 0:3", "k in 0:K", "k in 0:N - 5"),
)  # fmt: skip


@pytest.mark.parametrize(("body", "fragment", "whole", "smaller"), _CUT)
def test_lost_terms(body: str, fragment: str, whole: str, smaller: str) -> None:
    marked = unmark(_text(body))
    (warning,) = _found(marked.text)
    assert (warning.span.line, warning.span.column) == marked.places[0][:2]
    cut = marked.text[warning.span.start : warning.span.end]
    assert cut == marked.places[0][2]
    assert warning.message.startswith(f"{cut} limits ")
    assert fragment in warning.message
    assert warning.message.endswith(f"if you want the smaller range, where {smaller}")
    # Both remedies, typed: the warning is gone, the one range is whole, the other as it was.
    before = size_finding(check(marked.text)["f"], _SIZES).statements[0].ranges
    said = marked.text.replace("\n}", f", {smaller}\n}}")
    assert _found(said) == []
    assert size_finding(check(said)["f"], _SIZES).statements[0].ranges == before
    guard = re.search(
        r"; write (\(.* \? .* : .*?\)) instead, with where (.*); or, ", warning.message
    )
    assert guard is not None
    assert guard[2] == whole
    guarded = marked.text.replace(cut, guard[1]).replace("\n}", f", {whole}\n}}")
    assert _found(guarded) == []
    after = size_finding(check(guarded)["f"], _SIZES).statements[0].ranges
    for clause in whole.split(", "):
        index, _, end = clause.replace(" in 0:", " ").partition(" ")
        assert after[index] == (0, _SIZES[end])


def test_random_taps() -> None:
    """A warning just where taps are lost; its guard, typed, brings them back."""
    rng = random.Random(3)
    seen = {True: 0, False: 0}
    for _ in range(100):
        read = (
            f"X({rng.choice((1, 2))} * n + {rng.choice((1, 2, -1))} * k + ({rng.randint(-3, 3)}))"
        )
        text = _text(f"Y(n) +=! {read} * W(k) where n in 0:{rng.randint(1, 5)}")
        try:
            statement = size_finding(check(text)["f"], _SIZES).statements[0]
        except RangeInferenceError:
            continue
        lost = statement.ranges["k"] != (0, _SIZES["K"])
        found = _found(text)
        assert len(found) == lost
        seen[lost] += 1
        for warning in found:
            guard = re.search(r"; write (.*) instead, with", warning.message)
            assert guard is not None
            better = text.replace(read, guard[1])
            assert _found(better) == []
            assert size_finding(check(better)["f"], _SIZES).statements[0].ranges["k"] == (
                0,
                _SIZES["K"],
            )
    assert min(seen.values()) > 10


def test_every_read_that_cuts_is_named() -> None:
    (warning,) = _found(_text("Y(n) +=! X(n + k - 1) * X(n + k) * W(k) where n in 1:N"))
    assert warning.message.startswith("X(n + k - 1) limits 'k' to 0:1 of the 0:3")
    ((span, note),) = warning.notes
    assert note == "and (n + k < X.0 ? X(n + k) : 0) for this one"
    assert span.start > warning.span.start


_MEANT = (
    "Y(n) +=! X(n + k) * W(k)",
    "Y(n) +=! X(n + k - 1) * W(k) where n in 0:N, k in 1:2",
    "Y(n) +=! (n + k - 1 >= 0 && n + k - 1 < N ? X(n + k - 1) : 0) * W(k) where n in 0:N",
    "Y(n) +=! X(n + k) where n in 0:3",  # no dimension is read whole
    "Y +=! X(i) * X(i + 1)",  # the stencil reaches all of it
    "Y +=! fabs(X(i + 1) - 2 * X(i) + X(i - 1))",
    "Y +=! X(i + 1) * W(i)",  # W is read whole
    "Y +=! X(i) * X(N - 1 - i)",
    "Y +=! X(i + 1) * X(N - 1 - i) * X(i)",  # downwards all of it but the first
    "Y(n) +=! X(n + k) * W(K - 1 - k)",
    "Y(k) = X(k) - X(k + 1)",  # no reduction
    "Y(n) +=! k < 2 ? X(n + k) * W(k) : 0 where n in 0:N - 1",  # a condition says it
    "Y(n) +=! X(n + k) * W(k) where n in 0:0",  # nothing is computed
)


@pytest.mark.parametrize("body", _MEANT)
def test_nothing_is_lost_or_it_is_meant(body: str) -> None:
    assert _found(_text(body)) == []


def _convolved(image: Any, taps: Any) -> Any:
    """Stride 2, padding 1, in float64."""
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = (image.shape[2] + 1) // 2, (image.shape[3] + 1) // 2
    out = np.zeros((image.shape[0], taps.shape[0], height, width))
    for h in range(height):
        for v in range(width):
            window = padded[:, :, 2 * h : 2 * h + 3, 2 * v : 2 * v + 3]
            out[:, :, h, v] = np.einsum("bcrs,dcrs->bd", window, taps)
    return out


def test_the_guard_computes_the_padded_convolution() -> None:
    body = _CONV.replace("«", "").replace("»", "")
    text = f"def f(float(B, C, H, V) I, float(D, C, R, S) F) -> (Y) {{\n    {body}\n}}"
    rng = np.random.default_rng(0)
    image, taps = rng.random((2, 2, 9, 8), np.float32), rng.random((2, 2, 3, 3), np.float32)
    with pytest.warns(tcl.TclWarning) as caught:
        cut = tcl.define(text).f(image, taps)
    (message,) = [str(w.message) for w in caught]
    assert message.startswith(
        "<string>:2:23: warning: I(b, c, 2 * h + r - 1, 2 * v + s - 1) limits"
    )
    assert not np.allclose(cut, _convolved(image, taps))
    guard = re.search(r"write (\(.* : 0\)) instead", message)
    assert guard is not None
    good = text.replace("I(b, c, 2 * h + r - 1, 2 * v + s - 1)", guard[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(
            np.asarray(tcl.define(good, strict=True).f(image, taps)), _convolved(image, taps), 1e-5
        )


_SHIFTED = (
    ("«Y(i)» = X(i - 2)", "is Y(2)", "where i in 2:N + 2", {"i": 2}),
    ("«Y(i)» = X(i) - X(i - 1)", "because X(i - 1) lets 'i' start", "where i in 1:N", {"i": 1}),
    ("«Y(i)» = X(i + 1)", "is Y(-1)", "where i in -1:N - 1", {"i": -1}),
    ("«Y(b, h)» +=! I(b, c, h - 1, v)", "is Y(0, 1)", "where h in 1:H + 1", {"h": 1}),
    ("«Y(h, v)» = I(0, 0, h - 1, v + 1)",
     "is Y(1, -1)", "where h in 1:H + 1, v in -1:V - 1", {"h": 1, "v": -1}),
    ("«Y(i)» = X(2 * i - 3)", "is Y(2)", "where i in 2:5", {"i": 2}),
    ("T, Y | «T(i)» = X(i + 1) Y(i) = T(i - 1)", "is T(-1)", "where i in -1:N - 1", None),
)  # fmt: skip


@pytest.mark.parametrize(("body", "fragment", "clause", "first"), _SHIFTED)
def test_shifted_outputs(
    body: str, fragment: str, clause: str, first: dict[str, int] | None
) -> None:
    marked = unmark(_text(body))
    (warning,) = _found(marked.text)
    assert (warning.span.line, warning.span.column) == marked.places[0][:2]
    assert marked.text[warning.span.start : warning.span.end] == marked.places[0][2]
    assert fragment in warning.message
    assert f"; write {clause} if you want this, or " in warning.message
    if first is None:
        return
    before = size_finding(check(marked.text)["f"], _SIZES)
    said = marked.text.replace("\n}", f" {clause}\n}}")
    after = size_finding(check(said)["f"], _SIZES)
    assert _found(said) == []
    assert (after.shapes, after.origins) == (before.shapes, before.origins)
    at = re.search(r"\) \+?=!? ", marked.text)
    assert at is not None
    left, right = marked.text[: at.end()], marked.text[at.end() :]
    for index, start in first.items():
        moved = f"({index} {'-' if start < 0 else '+'} {abs(start)})"
        assert f"{moved} for {index}" in warning.message
        right = re.sub(rf"\b{index}\b", moved, right)
    moved_text = left + right
    assert _found(moved_text) == []
    moved_def = size_finding(check(moved_text)["f"], _SIZES)
    assert moved_def.shapes == before.shapes
    assert set(moved_def.origins["Y"]) == {0}


def test_an_error_shows_the_warnings_of_the_statements_before_it() -> None:
    text = _text("T, U, Y | T(i) = X(i + 1)  U(i) = X(i)  Y(i) = T(i) + U(i)")
    with pytest.raises(RangeInferenceError) as caught:
        size_finding(check(text)["f"], _SIZES)
    assert "note: element 0 of 'T' is T(-1), because X(i + 1) lets 'i' start at" in str(
        caught.value
    )
    assert "'i' runs over dimension 0 of 'T' (indices -1 to 5)" in caught.value.message
    text = _text("T, Y | T(i) +=! X(i - k) where k in 0:3  Y(i) = T(i) + X(i)")
    with pytest.raises(RangeInferenceError, match=r"or give it a range: where i in 2:N"):
        size_finding(check(text)["f"], _SIZES)


def test_outputs_that_are_written_again_are_told_once() -> None:
    assert len(_found(_text("Y | Y(i) = X(i + 1) Y(i) = Y(i) * 2"))) == 1
    assert _found(_text("Y | Y(i) = X(i) Y(i) = 0 where i in 1:3")) == []


def test_outputs_that_begin_where_what_they_read_does_are_told_of_once() -> None:
    written = "T, Y | T(i) = X(i) - X(i - 1) where i in 1:N Y(i) = 2 * T(i)"
    assert _found(_text(written)) == []
    (first,) = _found(_text(written.replace(" where i in 1:N", "")))
    assert first.message.startswith("element 0 of 'T' is T(1)")
    (later,) = _found(_text(written.replace("2 * T(i)", "T(i) - T(i - 1)")))
    assert "element 0 of 'Y' is Y(2)" in later.message
    assert "write where i in 2:N if you" in later.message
    (shorter,) = _found(_text("T, Y | T(i) = X(i) where i in 0:N - 1 Y(i) = T(i - 1)"))
    assert "write where i in 1:(N - 1) + 1 if you" in shorter.message


# --- without sizes ---


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        (_TAPS, True),
        (_CONV, True),
        ("Y(i) = X(i - 1) + X(i + 1)", True),
        ("Y(n) +=! X(n + k) * W(k)", False),
        ("Y(n) +=! X(n + k) * W(k) where n in 0:4", False),  # for some sizes only
        ("Y(i) = X(i) + W(i)", False),  # which fits where they are equal
        ("Y(k) +=! X(n + k) * W(k) where n in 0:200", False),  # larger than what is tried first
    ],
)
def test_what_holds_for_all_sizes_is_found_without_any(body: str, lost: bool) -> None:
    text = _text(body.replace("«", "").replace("»", ""))
    (definition,) = check(text).values()
    found = findings(definition)
    assert bool(found) == lost
    assert all("(seen with " in d.message for d in found)


def test_sizes_of_the_comments_come_first() -> None:
    """A def that names sizes is told what they lose, and nothing else."""
    text = _text("Y(n) +=! X(n + k) * W(k) where n in 0:4")
    (definition,) = check(text).values()
    assert findings(definition, [_SIZES]) == []
    (found,) = findings(definition, [_SIZES, {**_SIZES, "N": 5}])
    assert "'k' to 0:2 of the 0:3" in found.message
    assert "N=5, K=3" in found.message
    refused = "def f(float(N) X, int32(K) I) -> (Y) { Y(n) = X(n + K) where n in 0:4 }"
    assert tcl.define("# sizes a: N=7, K=3\n" + refused, strict=True).f
    with pytest.raises(RangeInferenceError, match="'X' is read at indices 4 to 7 of dimension 0"):
        tcl.define("# sizes a: N=7, K=3\n# sizes b: N=7, K=4\n" + refused, strict=True)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("float s) -> (O) { O(i) = X(i) }", ["nothing reads the input 's'; use it or remove it"]),
        (
            "float s) -> (O) { O(i) = X(i) where t = s * X(i), u = t }",
            ["nothing uses 'u'; remove it"],
        ),
        ("float(K) Scale) -> (O) { O(i) = X(i) where i in 0:K }", []),
        ("float s) -> (O) { O(i) +=! t where e = 2, k in 0:e, t = X(i) * s }", []),
        ("int32 s) -> (float(9) O) { O(at) +=! 1.0 where at = s * int32(X(i)) }", []),
    ],
)
def test_what_nothing_uses(text: str, messages: list[str]) -> None:
    found = findings(check(f"def f(float(N) X, {text}")["f"])
    assert all(m in d.message for m, d in zip(messages, found, strict=True))


def test_comments_that_are_not_directly_above_a_def(tmp_path: Path) -> None:
    file = tmp_path / "f.tc"
    text = "def f(float(N) X) -> (O) { O(i) = X(i) }"
    for comment, told in (
        ("# values X: 0.5", 1),
        ("# sizes a: N=4", 1),
        ("# values X: 0..1\n# of it", 1),
        ("# values are: what they are", 0),
        ("# sizes a: M=4", 0),
        ("def g(float(N) X) -> (O) { O(i) = X(i) }  # values X: 0.5", 0),
        ("# values X: 0..2\ndef g(float(N) X) -> (O) {\n    O(i) = Y(i)\n}", 0),
    ):
        file.write_text(f"{comment}\n\n# a def\n{text}")
        assert _tcl("check", file).output.count("is not directly above f") == told


def test_two_symbols_of_one_index() -> None:
    for body in ("Y(i) = X(i) + «W(i)»", "T, Y | T(i) = X(i) Y(i) = T(i) + «W(i)»"):
        marked = unmark(_text(body))
        (definition,) = check(marked.text).values()
        assert findings(definition) == []
        (found,) = findings(definition, strict=True)
        assert found.span.line == marked.places[0][0]
        assert "runs over K of 'W' and over N of" in found.message
    clear = "T, Y | T(i) = X(i + 1) Y(i) = T(i) + W(i) where i in 0:K - 1"
    (definition,) = check(_text(clear)).values()
    assert not [d for d in findings(definition, strict=True) if "runs over" in d.message]


# --- from Python ---

_SMALL = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k - 1) * W(k) where n in 0:N }"
_NARROW = "def g(int8(N) A) -> (int32(N) O) { O(i) = A(i) * A(i) }"


def _array(count: int) -> Any:
    return np.ones(count, np.float32)


def test_a_place_is_told_once_and_costs_nothing_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = []

    def looking(sized: SizedDef) -> list[Diagnostic]:
        looked.append(sized)
        return size_findings(sized)

    monkeypatch.setattr("tcl.grammar.ranges.findings.size_findings", looking)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        T = tcl.define(_SMALL + "\n" + _NARROW)
        (text,) = caught
        assert "<string>:2:43: warning: this product" in str(text.message)
        for _ in range(3):
            T.f(_array(6), _array(3))
        assert len(looked) == 1
        T.f(_array(7), _array(3))  # the same place, for other sizes
        T.g(np.ones(4, np.int8))
    _, ranges = caught
    assert ranges.category is tcl.TclWarning
    assert ranges.filename == __file__
    assert "<string>:1:49: warning: X(n + k - 1) limits 'k' to 1:2 of the 0:3" in str(
        ranges.message
    )
    assert "(seen with N=6, K=3)" in str(ranges.message)
    assert len(looked) == 3


def test_strict_is_an_error_where_the_text_is_read() -> None:
    for text, place in ((_SMALL, (1, 49)), (_NARROW, (1, 43))):
        with pytest.raises(tcl.TclSemanticError) as caught:
            tcl.define(text, strict=True)
        assert (caught.value.line, caught.value.column) == place
    with pytest.raises(tcl.ArgumentError, match="strict has to be True or False"):
        tcl.define(_SMALL, strict=1)  # type: ignore[arg-type]


def test_strict_knows_the_sizes_of_comments_as_the_command_does(tmp_path: Path) -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k) * W(k) where n in 0:4 }\n"
    fits, loses = tmp_path / "fits.tc", tmp_path / "loses.tc"
    fits.write_text("# sizes small: N=6, K=3\n" + text)
    loses.write_text("# sizes small: N=5, K=3\n" + text)
    assert _tcl("check", fits, "--strict").exit_code == 0
    assert _tcl("check", loses, "--strict").exit_code == 1
    for source in (fits, fits.read_text()):
        tcl.define(source, strict=True)
    for source in (loses, loses.read_text()):
        with pytest.raises(tcl.TclSemanticError, match="'k' to 0:2 of the 0:3"):
            tcl.define(source, strict=True)


def test_sizes_below_an_extent_that_is_a_number_are_not_all_that_is_tried(tmp_path: Path) -> None:
    text = "def f(float(N) X, float(28) D) -> (G) { G(k) +=! X(n + k) * D(n) where k in 0:3 }\n"
    file = tmp_path / "number.tc"
    file.write_text(text)
    assert _tcl("check", file, "--strict").exit_code == 0
    tcl.define(text, strict=True)


def test_strict_is_an_error_where_sizes_show_it() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k) * W(k) where n in 0:4 }"
    T = tcl.define(text, strict=True)
    assert np.shape(T.f(_array(6), _array(3))) == (4,)
    for _ in range(2):  # not only the first time
        with pytest.raises(tcl.RangeInferenceError, match="'k' to 0:2 of the 0:3") as caught:
            T.f(_array(5), _array(3))
        assert (caught.value.line, caught.value.column) == (1, 49)


# --- on the command line ---


def _tcl(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_check_warns_and_strict_refuses(tmp_path: Path) -> None:
    file = tmp_path / "taps.tc"
    file.write_text(
        f"{_SMALL}\n{_NARROW}\ndef h(float(N) A, float(K) B) -> (O) {{ O = f(A, B) }}\n"
    )
    done = _tcl("check", file)
    assert done.exit_code == 0
    assert f"{file}:1:49: warning: X(n + k - 1) limits" in done.output
    assert f"{file}:2:43: warning: this product" in done.output
    assert done.output.count("warning:") == 2  # what h calls was told
    assert "f(float32(N) X" in done.output
    done = _tcl("check", "--strict", file)
    assert done.exit_code == 1
    assert done.output.count(": error: ") == 2
    assert "warning" not in done.output


@pytest.mark.parametrize(
    ("head", "before"),
    [
        ("", "= P(i, 0)"),
        ("float(M) X, ", "= X(i) + P(i, 0)"),
        ("float(K) W, ", "+=! P(i + k, 0) * W(k)"),
    ],
)
def test_check_refuses_a_def_that_no_sizes_fit(tmp_path: Path, head: str, before: str) -> None:
    """The words of its error are the same at all sizes that get to its place."""
    file = tmp_path / "f.tc"
    file.write_text(
        f"def f({head}float(N, 3) P, float(N, 2) V) -> (A, O) {{\n"
        f"A(i) {before}\nO(n, c) = P(n, c) + V(n, c) }}"
    )
    done = _tcl("check", file)
    assert done.exit_code == 1
    assert ":3:21: error: the index 'c' runs over dimension 1 of 'P' (ind" in done.output
    body = "O(i) = X(i) + Y(i) where i in 0:(N < 4 ? N : 9)"
    file.write_text(f"def f(float(5) X, float(N) Y) -> (O) {{ {body} }}")
    assert _tcl("check", file).exit_code == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("O(n) = X(n) - X(«-1»)", "index -1 of dimension 0, but has indices from 0; guard"),
        ("O(i) = X(«i») where i in -1:2", "indices -1 to 1 of dimension 0, but has indices from 0"),
        ("O(n) = n > N ? X(-1) : X(n)", None),
        ("O(n) = X(n) - X(N - 40)", None),
    ],
)
def test_check_refuses_what_lies_before_a_dimension(
    body: str, message: str | None, tmp_path: Path
) -> None:
    """However many elements there are."""
    file = tmp_path / "f.tc"
    before, *more = f"def f(float(N) X) -> (O) {{ {body} }}".split("«")
    file.write_text("".join([before, *more]).replace("»", ""))
    done = _tcl("check", file)
    assert done.exit_code == (message is not None)
    if message is not None:
        assert f"f.tc:1:{len(before) + 1}: error: 'X' is read at {message}" in done.output


def test_check_does_not_refuse_a_def_that_only_large_sizes_fit(tmp_path: Path) -> None:
    file = tmp_path / "f.tc"
    file.write_text(
        "def f(float(N) X) -> (O, P) {\n"
        "O(i) = X(i) where i in 0:N / 64 / 64\nP(i) = O(i + 3) where i in 0:1 }"
    )
    assert _tcl("check", file).exit_code == 0


def test_check_shows_shapes_and_first_indices(tmp_path: Path) -> None:
    file = tmp_path / "two.tc"
    file.write_text(
        "# sizes small: N=5\n"
        "def f(float(N) X) -> (Y, S) { Y(i) = X(i - 1) + X(i + 1) S +=! X(i) }\n"
        "def g(float(M, N) A) -> (O) { O(m, n) = A(m, n + 1) where m in 1:M }\n"
    )
    done = _tcl("check", file, "--entry", "f", "--sizes", "small")
    assert done.exit_code == 0
    assert "Y: float32(3), first index 1\n  S: float32, one element\n" in done.output
    done = _tcl("check", file, "--entry", "g", "--sizes", "M=3,N=4")
    assert "O: float32(2, 4), first index (1, -1)" in done.output
    done = _tcl("check", file, "--sizes", "small")
    assert done.exit_code == 1
    assert "g has no comment '# sizes small'; write --sizes M=...,N=..." in done.output


def test_show_ranges(tmp_path: Path) -> None:
    file = tmp_path / "ranges.tc"
    file.write_text(
        "def f(float(N) X, float(K) W) -> (Y, float(5) Z) {\n"
        "    Y(n) +=! X(n + k - 1) * W(k) where n in 0:N\n"
        "    Y(n) = Y(n) * 2\n"
        "    Z(i) = 1\n"
        "}\n"
    )
    done = _tcl("show", file, "--stage", "ranges", "--sizes", "N=7,K=3")
    assert done.exit_code == 0
    table = done.output[done.output.index("f N=7") :]
    assert table == (
        "f N=7 K=3\n"
        "  X: float32(7)\n"
        "  W: float32(3)\n"
        "  Y: float32(7), first index 0\n"
        "  Z: float32(5), first index 0\n"
        "\n"
        "Y(n) +=! X(n + k - 1) * W(k) where n in 0:N\n"
        "  n  0:7  7 values                where n in 0:N\n"
        "  k  1:2  1 value   reduced over  X(n + k - 1)\n"
        "\n"
        "Y(n) = Y(n) * 2\n"
        "  n  0:7  7 values  Y(n)\n"
        "\n"
        "Z(i) = 1\n"
        "  i  0:5  5 values  Z as it is declared\n"
    )


def test_run_tells_what_its_sizes_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    file = tmp_path / "taps.tc"
    file.write_text(_SMALL)
    done = _tcl("run", file, "--sizes", "N=6,K=3")
    assert done.exit_code == 0
    assert done.output.count("limits 'k' to 1:2 of the 0:3") == 1


@pytest.mark.parametrize(
    ("body", "dims"),
    [
        ("O(b, d, h, v) +=! I(b, c, h + r, v + s) * F(d, c, r, s)", "B, D, H - R + 1, V - S + 1"),
        (
            "O(b, d, h, v) +=! I(b, c, 2 * h + r, v + 2 * s) * F(d, c, r, s)",
            "B, D, (H - R)/2 + 1, V - 2*S + 2",
        ),
        ("O(n, m) = X(n + 1) * W(m - 3) where m in 3:7, n in 0:N - 1", "N - 1, 4"),
        ("O() max=! X(n)", ""),
        ("O(i) = X(i) where i in 0:N * K", "N * K"),  # refused, unless K is 1
        ("O(i) = i < N ? X(i) : W(i - N) where i in 0:N + K", "N + K"),
        ("O(i) = X(i) * W(i)", "..."),  # the smaller one
        ("O(i) = X(i) where i in 0:40", "40"),
        ("O(i) = t(i) ? X(i) : -2000000", "N"),
        ("O(i) = X((i + N - 3) % N) where i in 0:N - 1", "N - 1"),
        ("O(i) = X(i * 3 / 4) where i in 0:N", "N"),
        ("O(i) = X(i) where i in 0:min(N, 40)", "min(N, 40)"),
        ("O(i) = X(i) where i in 0:min(N, 5000)", "min(N, 5000)"),
        ("O(i) = X(i) * W(i + 1)", "min(N, K - 1)"),
        ("O(i) = X(i) * W(i + 1) * I(0, 0, 0, 2 * i)", "min(min(N, K - 1), (V - 1)/2 + 1)"),
        ("O(i) = X(i) where i in 1:min(N, 5000)", "min(N - 1, 4999)"),
        ("O(i) = X(i) where m = min(N, 40), i in 0:m", "min(40, N)"),
        ("O(i) = X(i) where i in 0:min(min(N, 800), 60 - 20)", "min(40, N)"),  # else too long
        ("O(i) = X(i) where i in 0:(N < 40 ? N * K : 2 * N * K)", "..."),
        ("O(i) = X(i) where i in 0:max(N - 12, 1)", "max(N - 12, 1)"),
        ("O(i, k) = X(160 * i + k) * W(k)", "(N - K)/160 + 1, K"),
        ("O(i, k) = X(i) * W(k) where i in 0:min(N, 40)", "min(N, 40), K"),
        (
            "O(h) +=! X(16 * h + j) * W(16 * h + j + k) where j in 0:16, k in 0:9",
            "min(N/16, (K - 24)/16 + 1)",
        ),
        ("O(i, k, j) = X(i) * W(k) where i in 0:N / 3, k in 0:max(K, 9), j in 0:4", "N/3, K, 4"),
    ],
)
def test_dimensions_in_sizes(body: str, dims: str) -> None:
    checked = check(_HEADER.format("O", body))["f"]
    found = output_dims(checked)
    assert ", ".join(map(str, found["O"])) == dims


@pytest.mark.parametrize(
    ("first", "others", "dims"), [("min(A, 40)", "{}", "{}"), ("A - 1", "{} - 1", "{} - 1")]
)
def test_dimensions_of_many_indices(
    first: str, others: str, dims: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many elements 16 differences make has 65,536 terms; that of 16 sizes had as many, counted
    from the smallest sizes. They took 100 and 5 s."""

    def few(made: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*terms: Any) -> Any:
            found = made(*terms)
            assert len(found) < 100
            return found

        return checked

    for name in ("_multiplied", "_shifted"):
        monkeypatch.setattr(polynomials, name, few(getattr(polynomials, name)))
    sizes = [chr(ord("A") + k) for k in range(16)]
    ranges = [f"{s.lower()} in 0:{others.format(s)}" for s in sizes[1:]]
    element = f"({', '.join(sizes).lower()})"
    text = f"def f(float({', '.join(sizes)}) X) -> (Y) {{ Y{element} = X{element} "
    checked = check(f"{text} where a in 0:{first}, {', '.join(ranges)} }}")["f"]
    assert output_dims(checked) == {"Y": (first, *(dims.format(s) for s in sizes[1:]))}


def test_dimensions_of_some_outputs() -> None:
    text = "O(i) = X(i) where i in 0:min(N, 40) P(i) = X((i + N - 3) % N) * 2 where i in 0:N - 1"
    found = output_dims(check(_HEADER.format("O, P", text))["f"])
    assert found == {"O": ("min(N, 40)",), "P": ("N - 1",)}


def test_dimensions_where_one_size_is_many_times_another() -> None:
    text = (
        "def f(float(N, Q, K) W, float(N, M) X) -> (O) { O(o, q) +=! W(o, q, k) * X(o, 4 * q + k) }"
    )
    assert output_dims(check(text)["f"]) == {"O": ("N", "Q")}


def test_dimensions_beside_one_that_is_read_from_the_last_to_the_first() -> None:
    reads = "O(s, z) max=! A(Z - 1 - z, 5 * s + k) where k in 0:15"
    (checked,) = check(f"def f(int16(Z, Y) A) -> (O) {{ {reads} }}").values()
    assert output_dims(checked) == {"O": ("Y/5 - 2", "Z")}


def test_formulas_of_a_called_def_are_in_its_own_sizes() -> None:
    called = "def g(float(M) A) -> (O) { O(i) = A(i) where i in 0:min(M, 40) } "
    caller = "def f(float(N) X, float(M) Y) -> (O) { O = g(X) } "
    for text in (called + caller, caller + called):
        assert output_dims(check(text)["f"]) == {"O": ("min(40, N)",)}
