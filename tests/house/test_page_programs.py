"""The blocks of code on the pages run, and print what stands below them.

A page is one program: its blocks run in order, in one folder, with the same names and cache.

    python          runs; what it prints, or the error that ends it, is the block ``text`` below
    sh              its ``tcl`` commands run
    console         the same, and what each prints follows it
    tc              is accepted (``test_docs.py`` compiles those of ``docs/language.md``)
    toml, yaml, tc  are a file if their first line names one: ``# layer.tc``

Searches are cut short. A block below a comment ``<!-- not run: REASON -->`` is parsed alone.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from golden import Golden
from known_machine import known_machine
from places import ROOT

import tcl
from benchmarks.gallery import PROGRAMS as GALLERY
from tcl.cli import main
from tcl.grammar.check.definitions import check

if not (ROOT / "README.md").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*) -->\n)?^```(?P<kind>.*)\n(?P<code>(?:.*\n)*?)```\n"
    r"(?P<below>\n```text\n(?:.*\n)*?```\n)?",
    re.MULTILINE,
)
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for pages in ("*.md", "docs/**/*.md", "benchmarks/**/*.md")
    for path in sorted(ROOT.glob(pages))
}
NAMED = [(page, block) for page, text in PAGES.items() for block in BLOCK.finditer(text)]
PROGRAMS = sorted({page for page, block in NAMED if block["kind"] != "text"})
RUN = ("python", "sh", "console", "tc", "toml", "yaml")
NOT_RUN = {
    "needs a GPU": {"docs/blocks.md", "docs/guides/launch-shapes.md"},
    "needs a cluster": {"docs/guides/dask.md"},
    "installs": {"README.md"},
    "takes minutes": {"benchmarks/README.md"},
    "needs a machine with nothing else to do": {"docs/performance.md"},
    "a transcript": {"docs/first-minutes.md"},
    "a program of examples/": {f"docs/gallery/{name}.md" for name in GALLERY},
}
"""Where blocks are not run, and why."""


class Page:
    """The program of a page."""

    def __init__(self, printed: Callable[[], str]) -> None:
        self._printed = printed
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: re.Match[str]) -> str:
        """Run a block, and return it with what it prints."""
        kind, code = block["kind"], block["code"]
        if file := re.match(r"# ([\w./-]+\.\w+)\n", code):
            path = Path(file[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(shorter(code), "utf-8")
        if kind == "python" and block["reason"]:
            compile(code, "page", "exec")
        elif kind == "python":
            return f"```python\n{code}```\n{self._shown(code)}"
        elif kind == "tc":
            check(code)
        elif kind == "console":
            said = "".join(f"$ {command}\n{output(command)}" for command in commands(code))
            return f"```console\n{said}```\n"
        elif kind in ("sh", "yaml"):
            for command in commands(code):
                parsed(command) if block["reason"] else output(command)
        return block[0]

    def _shown(self, program: str) -> str:
        try:
            exec(compile(shorter(program), "page", "exec"), self._names)
        except tcl.TclError as error:
            print(error)
        printed = self._printed()
        return f"\n```text\n{printed}```\n" if printed else ""


def shorter(text: str) -> str:
    """Searches of two candidates."""
    text = re.sub(r"--time-limit \d+", "--generations 1 --population 2", text)
    text = re.sub(r"^time_limit = \d+", "generations = 1\npopulation = 2", text, flags=re.MULTILINE)
    return re.sub(r"time_limit=\d+", "generations=1, population=2", text)


def commands(code: str) -> Iterator[str]:
    """The ``tcl`` commands of lines such as ``$ tcl ...``, ``a && .venv/bin/tcl ...``."""
    for line in code.splitlines():
        for command in line.split(" && "):
            if found := re.match(r"(?:\$ |- run: )?(?:\S*/)?(tcl .*)", command.strip()):
                yield found[1]


def parsed(command: str) -> list[str]:
    """The words of a command whose names, options and values are right."""
    _, *words = shlex.split(command.partition(" | ")[0], comments=True)
    command_: click.Command = main
    context, arguments = click.Context(main), words
    while isinstance(command_, click.Group):
        found = command_.get_command(context, arguments[0])
        assert found is not None
        command_, arguments = found, arguments[1:]
    command_.make_context("tcl", list(arguments))
    return words


def output(command: str) -> str:
    """What ``tcl ... | filter`` prints; after ``tcl ... > FILE``, it is in the file."""
    command, _, file = command.partition(" > ")
    done = CliRunner().invoke(main, parsed(shorter(command)))
    assert done.exit_code == 0, f"{command}\n{done.output}"
    printed = done.output
    for each in command.split(" | ")[1:]:
        printed = subprocess.run(
            shlex.split(each), input=printed, capture_output=True, text=True, check=True
        ).stdout
    if file:
        Path(file).write_text(done.stdout, "utf-8")
    return printed.rstrip("\n") + "\n"


@pytest.fixture
def short_searches(
    own_cache: None, searches_in_threads: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches measure neither the machine nor NumPy."""
    known_machine(tmp_path)
    monkeypatch.setattr("tcl.cli.tuned.TuneSession._beside", lambda self, decision: {})


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """What a page tells its logging is forgotten at its end."""
    logs = [logging.getLogger(name) for name in (None, "tcl", "tcl.tuning", "tcl.executors")]
    before = [(log, log.level, log.handlers[:]) for log in logs]
    yield
    for log, level, handlers in before:
        log.setLevel(level)
        log.handlers[:] = handlers


@pytest.mark.usefixtures("short_searches", "logging_as_before")
@pytest.mark.parametrize("page", PROGRAMS)
def test_the_program_of_a_page(
    page: str,
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TCL_TUNE_MODE")  # as it is for users
    Path("examples").symlink_to(ROOT / "examples")
    program = Page(lambda: capsys.readouterr().out)
    golden(ROOT / page, BLOCK.sub(program.run, PAGES[page]))


def test_what_is_not_run() -> None:
    assert {block["kind"] for _, block in NAMED} <= {*RUN, "tc refused", "text"}
    found = defaultdict(set)
    for page, block in NAMED:
        if block["reason"]:
            found[block["reason"]].add(page)
    assert found == NOT_RUN
