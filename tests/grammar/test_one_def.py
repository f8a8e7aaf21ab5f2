"""One def of a text in which others have errors."""

from __future__ import annotations

import pytest

from tcl.grammar.check.definitions import check
from tcl.grammar.check.one_def import check_for
from tcl.grammar.syntax.errors import SourceError

GOOD = "# sizes a: N=8\ndef good(float(N) X) -> (O) { O(i) = 2 * X(i) }  # def of good\n"
USER = "def user(float(N) X) -> (O) { O = good(X) }\n"
FAULTY = {
    "a rule": "def bad(float(N) X) -> (O) { O(i) = X(i, i) }\n",
    "two": "def bad(float(N) X) -> (O) { O(i) = X(i, i) O(i) = Y(i) }\n",
    "the grammar": "def bad(float(N) X) -> (O) { O(i) = X(i }\n",
    "the header": "def bad(float(N) X -> (O) { O(i) = X(i) }\n",
    "no end": "def bad(float(N) X) -> (O) { O(i) = X(i)\n",
    "an unknown sign": "def bad(float(N) X) -> (O) { O(i) = X[i] }\n",
    "one that calls it": "def bad(float(N) X) -> (O) { O(i) = X }\n"
    "def caller(float(N) X) -> (O) { O = bad(X) }\n",
}


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_has_errors_is_left_out(name: str, place: int) -> None:
    parts = [GOOD, USER]
    parts.insert(place, FAULTY[name])
    text = "".join(parts)
    for entry in ("good", "user"):
        rest, defs, left_out = check_for(text, "t.tc", entry)
        assert list(defs) == ["good", "user"]
        line = text[: text.index("def bad")].count("\n") + 1
        assert left_out == {"bad": line} | ({"caller": line + 1} if "caller" in text else {})
        assert len(rest) == len(text)
        assert [len(line) for line in rest.split("\n")] == [len(line) for line in text.split("\n")]
        assert defs == check(rest, "t.tc") == check(GOOD + USER)
        assert "# sizes a: N=8\ndef good" in rest
        assert "  # def of good\n" in rest


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("entry", ["bad", "needs", None])
def test_errors_that_concern_the_def_are_raised(name: str, entry: str | None) -> None:
    text = GOOD + FAULTY[name] + "def needs(float(N) X) -> (O) { O = bad(X) }\n"
    with pytest.raises(SourceError) as expected:
        check(text, "t.tc")
    with pytest.raises(SourceError) as caught:
        check_for(text, "t.tc", entry)
    assert str(caught.value) == str(expected.value)


def test_a_def_that_is_defined_twice() -> None:
    """The second of them has the error."""
    text = GOOD + USER + USER
    with pytest.raises(SourceError, match="defined twice"):
        check_for(text, "t.tc", "user")
    _, defs, left_out = check_for(text, "t.tc", "good")
    assert list(defs) == ["good", "user"]
    assert left_out == {"user": 4}


@pytest.mark.parametrize("text", ["", "x", "def", "def (", "}", "def f", "# def f\n"])
def test_texts_without_a_def_to_leave_out(text: str) -> None:
    with pytest.raises(SourceError):
        check_for(text, "t.tc", "f")
    with pytest.raises(SourceError):
        check_for(text, "t.tc", "g")
