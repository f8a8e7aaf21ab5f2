"""Names and texts of others do not control the terminal that they are shown on."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from command_line import MM, here
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tcl.cli import main
from tcl.common.terminal import Shown, escaped
from tcl.progress.console import Console
from tcl.progress.panel import Progress

EVIL = "\x1b]0;title\x07\x1b[31m\x9b2J\r\u202e"
"""A title, a colour, a cleared screen, the line anew, and letters from right to left."""
SHOWN = r"\x1b]0;title\x07\x1b[31m\x9b2J\r\u202e"
SIZES = ("-s", "M=4,N=4,K=4")
NO_TEXT = re.compile(r"[^\n\t -~\x80-\U0010ffff]|[\x7f-\x9f\u202a-\u202e]")
"""What a terminal may obey."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "cache"))
    Path("mm.tc").write_text(MM)
    Path(f"{EVIL}.tc").write_text(MM.replace("A(m", "Z(m"))
    for name, file in (("there", f"{EVIL}.tc"), ("missing", f"{EVIL}/none.tc")):
        table = f"[[tune]]\nfile = {json.dumps(file)}\nentry = {json.dumps(EVIL)}\n"
        Path(f"{name}.toml").write_text(table)


def test_what_is_written_out() -> None:
    assert escaped(EVIL) == SHOWN
    assert escaped("\x00\x7f\x85\u2028\udcff") == r"\x00\x7f\x85\u2028\udcff"
    kept = "a line\n\tand µ × ü\xa0字 🙂"
    assert escaped(kept) == kept


@pytest.mark.parametrize(
    "line",
    [
        ("check", f"{EVIL}.tc"),
        ("check", f"{EVIL}/none.tc"),
        ("check", "mm.tc", "--entry", EVIL),
        ("check", "mm.tc", "--sizes", EVIL),
        ("show", "mm.tc", *SIZES, "--device", EVIL),
        ("run", "mm.tc", "--sizes", f"M{EVIL}=4,N=4,K=4"),
        ("run", "mm.tc", *SIZES, "--options", EVIL),
        ("run", "mm.tc", *SIZES, "--options", json.dumps({EVIL: 1})),
        ("run", "mm.tc", *SIZES, "--cache", EVIL),
        ("run", "mm.tc", *SIZES, "--varying", EVIL),
        ("run", "mm.tc", *SIZES, "--threads", EVIL),
        ("tune", "mm.tc", *SIZES, "--cache", f"{EVIL}/t.db"),
        ("tune", "mm.tc", *SIZES, "--fix", f"{EVIL}=1"),
        ("tune", "mm.tc", *SIZES, "--report", f"{EVIL}/page.html"),
        ("tune", "--grid", EVIL),
        ("tune", "--grid", "there.toml"),
        ("tune", "--grid", "missing.toml"),
        ("cache", "list", "--cache", EVIL),
        ("cache", "merge", EVIL, "--cache", "t.db"),
        ("cache", "import", EVIL),
        ("docs", EVIL),
        (EVIL,),
        (f"--{EVIL}",),
        ("cache", EVIL),
    ],
    ids=lambda line: " ".join(line).encode("unicode_escape").decode()[:40],
)
def test_a_text_of_others_is_shown_and_not_obeyed(line: tuple[str, ...]) -> None:
    done = here(*line)
    assert done.returncode in (1, 2)
    assert "title" in done.stderr
    assert not NO_TEXT.search(done.stdout + done.stderr)


def test_tables_and_panels_obey_nothing() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system="standard")
    table = Table(EVIL)
    table.add_row(Text(EVIL))
    for each in (EVIL, table, Panel(EVIL, title=EVIL)):
        console.print(each, markup=False)
    with Progress(f"{EVIL} M=4", console=console) as progress:
        progress.say(EVIL)
    said = stream.getvalue()
    assert said.count(r"\x1b]0;title") > 5
    # What is left are the console's own colours, and how a panel is drawn over the last one.
    assert not NO_TEXT.search(re.sub(r"\x1b\[\??[0-9;]*[a-zA-Z]|\r", "", said))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_errors_and_warnings_are_of_one_style(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    taps = "float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k - 1) * W(k) where n in 0:N }"
    Path("warns.tc").write_text(f"# sizes small: N=7, K=3\ndef f({taps}\n")
    for line in (("check", "none.tc"), ("check", f"{EVIL}.tc"), ("chek",), ("check", "warns.tc")):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit):
            main([*line], prog_name="tcl")
        said = terminal.getvalue()
        assert "Error" not in said and re.search("error:|warning:", said)
        assert bool(re.search("\x1b\\[1;3[13]m(error|warning):\x1b\\[0m", said)) == coloured
        assert not NO_TEXT.search(re.sub("\x1b\\[1;3[13]m|\x1b\\[0m", "", said))


def test_a_live_display_reaches_the_terminal_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command writes through ``Shown``, and a display in it has escapes of its own."""
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", Shown(terminal))
    console = Console(force_terminal=True, width=40)
    with Live(Text("first", style="red"), console=console) as live:
        live.update(Text("second \u202e", style="red"), refresh=True)
    written = terminal.getvalue()
    assert "\x1b[31mfirst\x1b[0m" in written and "\x1b[31msecond \\u202e" in written
    assert r"\x1b" not in written
