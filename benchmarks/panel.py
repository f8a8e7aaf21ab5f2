"""Draws the terminal after ``tcl tune``: its panel, its tables, and the gain.

    python -m benchmarks.panel                                   # docs/pictures/tune.svg
    python -m benchmarks.panel --out one.svg tune examples/softmax.tc --entry softmax

It runs the command (by default README's first) on a separate terminal with a separate cache, and
draws the screen at its end. Nothing else should run during this time.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.text import Text

from benchmarks.common import command
from tcl.progress.console import Console

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/pictures/tune.svg"
COMMAND = re.compile(r"bin/tcl (tune .*)$", re.MULTILINE)
WIDTH, HEIGHT = 100, 60
_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def main() -> None:
    """Run, and draw."""
    parser = command("panel", __doc__, "the picture (SVG)")
    parser.set_defaults(out=PICTURE)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="arguments of tcl")
    given = parser.parse_args()
    words = given.command or _first_command()
    with tempfile.TemporaryDirectory() as cache:
        code, stream = on_terminal([sys.executable, "-m", "tcl", *words], cache)
    if code:
        sys.exit(f"tcl {' '.join(words)} failed:\n{stream}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(drawn(screen(stream), f"tcl {' '.join(words)}"), "utf-8")
    print(f"written: {given.out}")


def _first_command() -> list[str]:
    found = COMMAND.search((ROOT / "README.md").read_text("utf-8"))
    assert found is not None, "README.md has no tcl tune"
    return found[1].split()


def on_terminal(command: list[str], cache: str) -> tuple[int, str]:
    """The exit code of a command, and all that it writes to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "TCL_CACHE_DIR": cache}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        written += chunk
    os.close(ours)
    return process.wait(), written.decode("utf-8")


def screen(stream: str) -> list[str]:
    """The lines that a terminal shows in the end, with their colours.

    Of a terminal's controls it knows those of a live display: moving up, erasing a line.
    """
    lines, row, position = [""], 0, 0
    while position < len(stream):
        control = _CONTROL.match(stream, position)
        character = stream[position]
        position = control.end() if control else position + 1
        if control is None:
            if character == "\n":
                row += 1
                lines += [""] * (row - len(lines) + 1)
            elif character != "\r":
                lines[row] += character
        elif control[2] == "m":
            lines[row] += control[0]
        elif control[2] == "A":
            row = max(0, row - int(control[1] or 1))
        elif control[2] == "K":
            lines[row] = ""
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def drawn(lines: list[str], title: str) -> str:
    """The lines as a picture of a terminal (SVG), which fetches nothing."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=False)
    picture = console.export_svg(title=title, unique_id="tcl")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
