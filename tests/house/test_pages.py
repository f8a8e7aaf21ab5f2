"""What the pages name is there, and they explain every option and environment variable."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from places import ROOT

from tcl.codegen.options.nest_options import NestOptions


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


def test_every_option_has_its_picture() -> None:
    headings = re.findall(
        r"^### (.*)$", (ROOT / "docs/options.md").read_text("utf-8"), re.MULTILINE
    )
    explained = {name for heading in headings for name in re.findall(r"`(\w+)`", heading)}
    options = {f.name for f in fields(NestOptions)} | {"merge"}
    assert explained == options
