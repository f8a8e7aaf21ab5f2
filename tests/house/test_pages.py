"""The pages of ``docs/`` print what the commands in them print, to the letter."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from golden import Golden
from places import ROOT

from tcl.cli import main
from tcl.codegen.options.nest_options import NestOptions

BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<printed>.*?)```", re.DOTALL)
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if BLOCK.search(p.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_is_printed(
    page: Path, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    text = page.read_text("utf-8")
    golden(
        page,
        BLOCK.sub(lambda m: f"```console\n$ {m['command']}\n{_printed(m['command'])}```", text),
    )


SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)
LINES = sorted(
    {
        line
        for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        for block in SHELL.findall(page.read_text("utf-8"))
        for line in block.splitlines()
        if line.startswith("tcl ")
    }
)


@pytest.mark.parametrize("line", LINES)
def test_commands_are_written_as_the_command_takes_them(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, options and their values are checked, and nothing is run."""
    monkeypatch.chdir(ROOT)
    line = line.replace(" FILE", " examples/matmul.tc").replace(" STAGE", " plan")
    name, *arguments = shlex.split(line, comments=True)
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found is not None
        command = found
    command.make_context(name, arguments)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_a_page_names_is_there(page: str) -> None:
    folders = "|".join(
        ("benchmarks", "codegen", "docs", "examples", "grammar", "tcl", "tests", "tuner")
    )
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", (ROOT / page).read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == [] and named


def test_every_environment_variable_is_explained() -> None:
    read = {
        name
        for folder in ("tcl", "grammar", "codegen", "tuner")
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\"(TCL_[A-Z_]+)\"", file.read_text("utf-8"))
    }
    table = re.findall(
        r"^\| `(TCL_\w+)`", (ROOT / "docs/tuning.md").read_text("utf-8"), re.MULTILINE
    )
    assert read == set(table) and read


def _printed(command: str) -> str:
    """What ``tcl ... | filter`` prints."""
    first, *filters = command.split(" | ")
    name, *arguments = shlex.split(first)
    assert name == "tcl"
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    output = done.output
    for each in filters:
        output = subprocess.run(
            shlex.split(each), input=output, capture_output=True, text=True, check=True
        ).stdout
    return output.rstrip("\n") + "\n"


def test_every_option_has_its_picture() -> None:
    headings = re.findall(
        r"^### (.*)$", (ROOT / "docs/options.md").read_text("utf-8"), re.MULTILINE
    )
    explained = {name for heading in headings for name in re.findall(r"`(\w+)`", heading)}
    options = {f.name for f in fields(NestOptions)} | {"merge"}
    assert explained == options
