"""Every def of ``examples/`` under ``tcl run``, which compares it with the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from places import EXAMPLES

from tcl.cli import main
from tcl.grammar.check.definitions import check

DEFS = [
    pytest.param(file, name, id=f"{file.stem}-{name}")
    for file in sorted(EXAMPLES.glob("*.tc"))
    for name in check(file.read_text(), str(file))
]


@pytest.mark.parametrize(("file", "name"), DEFS)
def test_run(file: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    done = CliRunner().invoke(main, ["run", str(file), "--entry", name, "--sizes", "test"])
    assert done.exit_code == 0, done.output
    assert "agrees with the reference" in done.output
    assert done.output.startswith(name)


def test_check_all() -> None:
    files = sorted(map(str, EXAMPLES.glob("*.tc")))
    done = CliRunner().invoke(main, ["check", "--strict", *files])
    assert done.exit_code == 0, done.output
