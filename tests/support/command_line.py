"""The command, in a process of its own, or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner

from tcl.cli import main
from tcl.common import warn

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"


Done: TypeAlias = subprocess.CompletedProcess[str]


def here(*arguments: str | Path, cache: Path | None = None, stdin: str | None = None) -> Done:
    """Run a command in this process, which takes a fiftieth of the time: for what it says, where
    no other process is part of it."""
    line = [*map(str, arguments)]
    environment = {"COLUMNS": "120"}
    if cache is not None:
        environment["TCL_CACHE_DIR"] = str(cache)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(warn, "_told", set())
        done = CliRunner().invoke(main, line, input=stdin, env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(line, done.exit_code, done.stdout, done.stderr)


def of_brief_searches(**more: str) -> dict[str, str]:
    """The environment of a process whose searches have brief finals and tables, see
    ``faulty/sitecustomize.py``: where nothing that is tested depends on what they find."""
    folder = str(Path(__file__).with_name("faulty"))
    path = os.pathsep.join([folder, *(p or os.getcwd() for p in sys.path)])
    return {**os.environ, "PYTHONPATH": path, **more}


def tcl(*arguments: str | Path, cache: Path | None = None, stdin: str | None = None) -> Done:
    """Run a command in a process of its own, as a user does, but for brief finals of searches."""
    environment = of_brief_searches(COLUMNS="120")
    if cache is not None:
        environment["TCL_CACHE_DIR"] = str(cache)
    return subprocess.run(
        [sys.executable, "-m", "tcl", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        input=stdin,
        timeout=300,
        check=False,
    )
