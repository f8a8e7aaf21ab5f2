"""What notebooks show: HTML that is well formed and escaped, in the notebook's own colours."""

from __future__ import annotations

import re
import sys
import traceback
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import pytest
from fake_search import INPUTS, MM, search

import tcl
from tcl.tuner.run.events import CandidateDone, Decision, Finished
from tcl.tuner.run.result import TuningResult

SVG = "{http://www.w3.org/2000/svg}"


def shown(thing: Any) -> ElementTree.Element:
    """The tree: what is not well formed raises."""
    text = thing._repr_html_()
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    # Whatever is not a line's or a dot's takes the notebook's colour.
    assert all(rule.startswith((" .tcl-shown", ".tcl-shown")) for rule in rules(style[1]))
    assert not re.search(r"[^-]color: #(?:fff|000)|background: #", style[1])
    return ElementTree.fromstring(text)


def rules(style: str) -> list[str]:
    return [rule.replace("\n", "") for rule in style.split("}") if rule.strip()]


def words(tree: ElementTree.Element) -> str:
    return " ".join(" ".join(piece.split()) for piece in tree.itertext() if piece.strip())


def cells(tree: ElementTree.Element) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def test_defs_are_their_text_and_a_table() -> None:
    text = """# a < b & c
def f(float(N, 3) X, uint8 s) -> (O, int32 P) {
    O(i) = X(i, 0) < 1 ? 1 : 0
    P +=! int32(s) * O(i)
}"""
    definitions = tcl.define(text)
    tree = shown(definitions)
    assert "".join(tree.find("pre").itertext()) == text  # type: ignore[union-attr]
    marked = {span.get("class"): span.text for span in tree.iter("span")}
    assert marked == {"comment": "# a < b & c", "keyword": "def", "type": "int32"}
    assert cells(tree) == [
        ["f", "", "type"],
        ["X", "input", "float32(N, 3)"],
        ["s", "input", "uint8"],
        ["O", "output", "int32(N)"],
        ["P", "output", "int32"],
    ]
    one = shown(definitions.f)
    assert cells(one) == cells(tree)
    assert "a < b" not in words(one) and "X(i, 0) < 1" in words(one)


def test_options_are_a_table_of_what_is_set() -> None:
    options = tcl.MappingOptions("mlp").tile(8, 16).nest(1).vectorize(4).merged(False)
    assert cells(shown(options)) == [
        ["option", "value", "of"],
        ["preset", "mlp", ""],
        ["merge", "False", ""],
        ["tile", "(8, 16)", "every nest"],
        ["vectorize", "(-1, 4)", "nest 1"],
    ]
    assert cells(shown(tcl.MappingOptions()))[1:] == [["preset", "naive", ""]]


def result() -> TuningResult[tcl.MappingOptions]:
    events = list(search(2, 8))
    history = tuple(e.candidate for e in events if isinstance(e, CandidateDone))
    (finished,) = (e for e in events if isinstance(e, Finished))
    return TuningResult(finished.decision, history, False, 12.0, "run", 0)


def test_a_search_is_a_table_and_its_curve() -> None:
    found = result()
    tree = shown(found)
    facts, options = tree.iter("table")
    told = dict(cells(facts))
    assert found.options is not None
    assert cells(options) == cells(shown(found.options))
    assert told["candidates"].startswith(f"{len(found.history)}: ")
    assert told["took"] == "12 s"
    (curve,) = tree.iter(f"{SVG}svg")
    kinds = [each.get("class") for each in curve.iter(f"{SVG}circle")]
    assert len(kinds) == sum(c.time is not None for c in found.history)
    assert kinds.count("winner") == 1


def test_a_search_that_found_nothing_says_so() -> None:
    tree = shown(TuningResult(Decision(None, None), (), True, 3.0, "run", 0))
    assert dict(cells(tree)) == {
        "winner": "none: no candidate worked", "candidates": "none", "took": "3 s, ended early"
    }  # fmt: skip
    assert tree.find(f"{SVG}svg") is None


@pytest.mark.parametrize(("mode", "frames"), [("Context", 3), ("Verbose", 10)])
def test_errors_are_the_users_lines_and_what_they_called(
    monkeypatch: pytest.MonkeyPatch, mode: str, frames: int
) -> None:
    """As IPython shows them, which asks the error first."""
    shown_by = SimpleNamespace(mode=mode, structured_traceback=traceback.format_exception)
    shell = SimpleNamespace(InteractiveTB=shown_by)
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    mm = tcl.define(MM).mm

    def cell() -> None:
        mm(INPUTS[0], INPUTS[0])

    with pytest.raises(tcl.ArgumentError) as caught:
        cell()
    lines = caught.value._render_traceback_()
    named = [line.splitlines()[0] for line in lines if line.startswith("  File")]
    assert len(named) == frames if mode == "Context" else len(named) >= frames
    for line, name in zip(named, ("test_errors_are", "cell", "__call__"), strict=False):
        assert f"in {name}" in line
    assert lines[-1].endswith("needs them to be equal\n")


def test_they_are_small() -> None:
    assert len(tcl.define(MM)._repr_html_()) < 4000
    assert len(result()._repr_html_()) < 20_000
    assert len(INPUTS) == 2
