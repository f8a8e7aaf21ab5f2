"""The parser's tables, kept between processes: the same parser, and nothing that can go wrong."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lark
import pytest

from tcl.bench.rows import EXAMPLES
from tcl.common.errors import TclWarning
from tcl.grammar.syntax import parser, tables
from tcl.grammar.syntax.errors import TclSyntaxError

TEXT = "def f(float(M) A) -> (B) { B(m) = A(m) + 1 }"
WRONG = (TEXT[:-1], TEXT + " }", TEXT.replace("=", "!"), "def", "def f(float(M A) -> (B) {}", "§")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def fresh() -> lark.Lark:
    """The parser as a new process gets it."""
    return parser._lark.__wrapped__()


def test_kept_tables_give_the_same_parser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh()
    (kept,) = folder.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(lark.Lark, "__init__", None)  # nothing is made once more
    again = fresh()
    for example in EXAMPLES.glob("*.tc"):
        text = example.read_text("utf-8")
        one, other = made.parse(text), again.parse(text)
        assert one == other
        assert [(t.data, vars(t.meta)) for t in one.iter_subtrees()] == [
            (t.data, vars(t.meta)) for t in other.iter_subtrees()
        ]


@pytest.mark.parametrize("text", WRONG)
def test_errors_are_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for each in (fresh(), fresh()):
        monkeypatch.setattr(parser, "_lark", lambda each=each: each)
        with pytest.raises(TclSyntaxError) as caught:
            parser.parse(text)
        said.append(str(caught.value))
    assert said[0] == said[1]


def with_checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[: len(b) // 2],
        lambda b: b[:-10] + b"x" + b[-9:],
        lambda b: with_checksum(b"not JSON"),
        lambda b: with_checksum(b"[1, 2]"),
        lambda b: with_checksum(b.partition(b"\n")[2].replace(b'"states"', b'"stat"')),
    ],
    ids=["empty", "cut", "changed", "no JSON", "other JSON", "other tables"],
)
def test_a_damaged_file_is_made_anew(
    folder: Path, damage: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh()
    (kept,) = folder.iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    assert fresh().parse(TEXT)
    monkeypatch.setattr(lark.Lark, "__init__", None)  # what was made is kept
    assert fresh().parse(TEXT)


@pytest.mark.parametrize("way", ["others may write", "link", "pipe"])
def test_only_a_file_of_ones_own_is_read(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh()
    (kept,) = folder.iterdir()
    if way == "others may write":
        kept.chmod(0o622)
    elif way == "link":
        kept.rename(folder / "elsewhere")
        kept.symlink_to(folder / "elsewhere")
    else:
        kept.unlink()
        os.mkfifo(kept)
    made: list[lark.Lark] = []
    make = lark.Lark.__init__

    def noted(self: lark.Lark, *arguments: Any, **options: Any) -> None:
        made.append(self)
        make(self, *arguments, **options)

    monkeypatch.setattr(lark.Lark, "__init__", noted)
    assert fresh().parse(TEXT)
    assert made
    assert kept.is_file() and not kept.is_symlink()  # replaced by one's own


def test_a_folder_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "file" / "kept"))
    with pytest.warns(TclWarning, match="nothing is kept between processes"):
        assert fresh().parse(TEXT)


def test_the_name_says_what_the_tables_were_made_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.parser('start: "a"+', parser="lalr")
    tables.parser('start: "b"+', parser="lalr")
    tables.parser('start: "b"+', parser="lalr", propagate_positions=True)
    monkeypatch.setattr(lark, "__version__", "0")
    tables.parser('start: "b"+', parser="lalr")
    assert len(list(folder.iterdir())) == 4
