"""Sentences for what a newcomer types first: each names the place and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tcl
from tcl.cli import main
from tcl.cli.docs import pages, section_names, sections

TEXT = """
def norm(float(M, N) X, float(N) G, float eps) -> (Y) { Y(m, n) = eps + X(m, n) * G(n) }
def shifted(int32(N) X, int32 za) -> (Y) { Y(n) = X(n) - za }
def two(float(N) X) -> (Y, Z) { Y(n) = 2 * X(n)  Z(n) = X(n) + 1 }
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
"""
X, G = np.ones((3, 4), np.float32), np.ones(4, np.float32)
T = tcl.define(TEXT)


def _twice(count: int) -> str:
    """A def of many names, each of which stands for twice the one before."""
    names = ", ".join(f"t{k} = t{k - 1} + t{k - 1}" for k in range(1, count))
    return f"def f(float(N) A) -> (O) {{ O(i) = t{count - 1} where t0 = A(i), {names} }}"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: T.norm(X, G), r"\(X, G, eps\), but 2 arguments were given: eps is missing$"),
        (lambda: T.norm(X), r"1 argument was given: G and eps are missing$"),
        (lambda: T.norm(X, G, np.ones(())), r"array of float64 .*; convert .*'float32'\)$"),
        (lambda: T.shifted(np.ones(3, np.int32), za=3.0), r"3.0 is not a value of; pass int\(x\)$"),
        (lambda: T.shifted(np.ones(3, np.int32), np.float64(3)), r"of; pass int\(x\)$"),
        (
            lambda: tcl.define(TEXT, tcl.MappingOptions().nest(7).tile(8)).two(G),
            "there is no nest 7: two has ",
        ),
        (
            lambda: tcl.compile(TEXT, "mm", X, X),  # type: ignore[call-overload]
            "a preset's name or a factory, not ndarray; they come before the inputs$",
        ),
        (
            lambda: tcl.grad(_twice(13).replace("float", "half"), "f"),
            "the gradient of an expression is too long; store the names of its where clauses in",
        ),
        (
            lambda: T.mm(X, X),
            "dimension 0 of 'B' is 3, but K is 4 from dimension 1 of 'A'; mm needs them to be "
            "equal$",
        ),
    ],
)
def test_in_python(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(tcl.TclError, match=sentence):
        call()


def test_what_is_written_as_the_sentences_say() -> None:
    np.testing.assert_array_equal(T.norm(X, G, float(np.float64(1))), X + 1)
    np.testing.assert_array_equal(T.shifted(np.ones(3, np.int32), za=3), [-2] * 3)
    assert tcl.MappingOptions().tile(16, 32).default.tile == (16, 32)


def test_an_input_without_a_type_is_one_error() -> None:
    with pytest.raises(tcl.TclSemanticError) as caught:
        tcl.define("def f(X) -> (Y) { Y(i) = X(i) }")
    assert str(caught.value).count("error:") == 1
    assert "the input 'X' needs a type, such as float(N) X" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("f.tc -e norm -s M=5,N=7,eps=1e-5",
            "eps is an input of norm, which gets random values; it is not a size; the sizes "
            "are M, N"),
        ("f.tc -e norm -s M=5,N=-7", "the size N has to be 0 or more, not -7"),
        ("f.py -s N=3", "f.py is Python, and FILE is a text of defs"),
    ],
)  # fmt: skip
def test_on_the_command_line(
    arguments: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.tc").write_text(TEXT)
    Path("f.py").write_text("import tcl")
    done = CliRunner().invoke(main, ["run", *arguments.split()])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("-s M=99999999,K=9,N=99999999", "error: output 'C' of mm needs 40 PB of memory: it is "),
        ("-s M=9999999999,K=9,N=9999999999", ", which is too large for any memory; choose "),
        ("-s M=3,K=3,N=3 --seed x", "Invalid value for '--seed': 'x' is not a whole number."),
    ],
)
def test_before_random_inputs_are_made(
    arguments: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tcl.cli.kernels.random_inputs", None)
    Path("f.tc").write_text(TEXT)
    done = CliRunner().invoke(main, ["run", "f.tc", "-e", "mm", *arguments.split()])
    assert done.exit_code in (1, 2)
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "word", ["padding", "argmax", "softmax", "conv", "relu", "stride", "mask", "batch"]
)
def test_words_of_the_field_lead_to_sections(word: str) -> None:
    done = CliRunner().invoke(main, ["docs", word])
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    if not lines[0].startswith(f"'{word}' appears in these sections"):
        return  # a section is called so, and was printed
    assert len(lines) > 1
    for line in lines[1:]:
        page, _, name = line.strip().partition(": ")
        found = [t for h, t in sections(pages()[page]).items() if section_names(h)[0] == name]
        assert any(word in text.lower() for text in found)


def test_a_word_that_stands_nowhere() -> None:
    done = CliRunner().invoke(main, ["docs", "xylophone"])
    assert done.exit_code == 1 and "there is no page or section" in done.stderr
