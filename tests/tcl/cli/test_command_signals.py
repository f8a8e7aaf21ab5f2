"""Ctrl+C and SIGTERM in the command, from its first moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


def begun(tmp_path: Path, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    """The command, whose modules are looked for in ``before`` first."""
    path = [before, *(p or os.getcwd() for p in sys.path)]
    return subprocess.Popen(
        [sys.executable, "-m", "tcl", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "TCL_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join(path),
        },
        # A test run in the background of a shell has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_the_command_is_loaded(tmp_path: Path, number: int) -> None:
    """It is killed as other programs are, of which a shell says 130 and 143."""
    waits = "import signal, sys\nprint('loading', flush=True)\nsys.stdin.read()\n"
    (tmp_path / "click.py").write_text(waits)
    process = begun(tmp_path, "check", "x.tc", before=str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=600)
    assert (out, err) == ("", "")
    assert process.returncode == -number


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.parametrize(
    "command",
    [("check", "-"), ("show", "-"), ("tune", "-"), ("cache", "import", "-"), ("run", "-")],
    ids=lambda command: command[0],
)
def test_while_a_command_waits(
    tmp_path: Path, command: tuple[str, ...], number: int, code: int
) -> None:
    """Each ends with its code and without a traceback. It reads a text that never ends."""
    (tmp_path / "sitecustomize.py").write_text(
        "import io, sys, time\n"
        "class Endless(io.RawIOBase):\n"
        "    def readable(self): return True\n"
        "    def readinto(self, b):\n"
        "        print('reading', flush=True)\n"
        "        time.sleep(1000)\n"
        "sys.stdin = io.TextIOWrapper(io.BufferedReader(Endless()))\n"
    )
    process = begun(tmp_path, *command, before=str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert err.count("\n") <= 1
    assert "Traceback" not in err
    assert process.returncode in ((-number,) if command[0] == "run" else (code,))
