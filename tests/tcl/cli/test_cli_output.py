"""What a command prints is written, or it says that it could not be.

The commands get no environment but PATH, HOME, the cache, and where Python finds modules: what they
need must not depend on what the tests happen to be run with (PYTHONUNBUFFERED, for one, hides all
that is about buffers).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest
from command_line import of_brief_searches
from known_machine import known_machine

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
SIZES = ("-s", "M=8,N=8,K=8")
SEARCH = (*SIZES, "--generations", "1", "--population", "2", "--jobs", "1", "-t", "1")
COMMANDS = {
    "help": ("--help",),
    "check": ("check", "mm.tc"),
    "show": ("show", "mm.tc", *SIZES, "--stage", "source"),
    "run": ("run", "mm.tc", *SIZES),
    "tune": ("tune", "mm.tc", *SEARCH),
    "tune in JSON": ("tune", "mm.tc", *SEARCH, "--json"),
    "cache": ("cache", "list"),
    "devices": ("devices",),
}

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mm.tc").write_text(MM)
    return known_machine(tmp_path)


def tcl(
    folder: Path,
    *arguments: str,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] = subprocess.PIPE,
    closed: str = "",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """``closed``: how a shell closes streams, such as ``>&-``."""
    given = of_brief_searches(TCL_CACHE_DIR=str(folder), **environment)
    names = {"PATH", "HOME", "PYTHONPATH", "TCL_CACHE_DIR", *environment}
    line = f'exec "$0" -m tcl "$@" {closed}'
    return subprocess.run(
        ["/bin/sh", "-c", line, sys.executable, *arguments],
        cwd=folder,
        env={name: text for name, text in given.items() if name in names},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_output_that_cannot_be_written(folder: Path, name: str) -> None:
    with open("/dev/full", "w") as full:
        done = tcl(folder, *COMMANDS[name], stdout=full)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "error: the output, or a temporary file, cannot be used: No space left on device",
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["help", "check", "tune", "cache"])
def test_an_output_that_is_closed(folder: Path, name: str) -> None:
    done = tcl(folder, *COMMANDS[name], closed=">&-")
    assert (done.returncode, done.stderr) == (
        1,
        "error: the output, or a temporary file, cannot be used: Bad file descriptor\n",
    )


@pytest.mark.parametrize("name", ["help", "check", "show", "cache"])
def test_a_reader_that_has_had_enough(folder: Path, name: str) -> None:
    """As ``tcl ... | head -1``, when head ends first."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = tcl(folder, *COMMANDS[name], stdout=pipe)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("file", "code"), [("mm.tc", 0), ("none.tc", 1)], ids=["nothing to say", "something to say"]
)
def test_errors_that_nobody_can_read(folder: Path, file: str, code: int) -> None:
    """The exit code is left."""
    with open("/dev/full", "w") as full:
        assert tcl(folder, "check", file, stderr=full).returncode == code
    done = tcl(folder, "check", file, closed="2>&-")
    assert done.returncode == code
    assert done.stdout == ("" if code else tcl(folder, "check", file).stdout)


def test_an_input_that_is_closed(folder: Path) -> None:
    done = tcl(folder, "check", "-", closed="<&-")
    assert (done.returncode, done.stderr) == (
        1,
        "error: standard input is closed; name a file\n",
    )


def test_closed_streams_are_not_taken_for_the_cache(folder: Path) -> None:
    """The first file that is opened would get the number of a stream that is closed, and what a
    worker or a library prints would be written into it."""
    done = tcl(folder, *COMMANDS["tune"], stdout=subprocess.DEVNULL, closed="<&- 2>&-")
    assert done.returncode == 0
    listed = tcl(folder, "cache", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "mm" in listed.stdout


@pytest.mark.parametrize("name", ["check", "tune", "cache", "devices"])
def test_a_terminal_that_knows_ascii_alone(folder: Path, name: str) -> None:
    """Nothing that a command has to say itself needs more, nor is it replaced by question marks."""
    done = tcl(folder, *COMMANDS[name], LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii() and "?" not in done.stdout


def test_a_text_that_ascii_cannot_show(folder: Path) -> None:
    (folder / "f.tc").write_text("def f(float(N) A) -> (B) { B(i) = A(i, i) } # µ ü", "utf-8")
    done = tcl(folder, "check", "f.tc", PYTHONIOENCODING="ascii")
    _, shown, carets = done.stderr.splitlines()
    assert done.returncode == 1
    assert shown[carets.index("^")] == "A"
