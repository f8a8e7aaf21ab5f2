"""The wheel, built from the tree and unpacked alone: tests pass against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AGAIN = (
    "test_api.py", "test_bench.py", "test_call_path.py", "test_check.py", "test_cli.py",
    "test_cuda_whole.py", "test_docs.py", "test_emulator.py", "test_report.py", "test_tables.py",
)  # fmt: skip
"""Tests of what a wheel can lack: data files, packages, commands, processes that import it."""
ELSEWHERE = "not interrupt and not ctrl_c and not compete"
"""Long ones that show nothing more of that are run in the tree alone."""

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.cfg").exists(), reason="needs the source tree to build a wheel"
)


def test_tests_pass_against_the_wheel(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    hidden = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=hidden)
    _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, tree)
    wheel = next(tmp_path.glob("*.whl"))

    # In front of all that this Python has installed, so that what the wheel needs is there.
    site = tmp_path / "site"
    _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, wheel)

    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copytree(ROOT / "examples", outside / "examples")

    def others(folder: str, names: list[str]) -> list[str]:
        return [
            n for n in names if n == "__pycache__" or (n.startswith("test_") and n not in AGAIN)
        ]

    shutil.copytree(ROOT / "tests", outside / "tests", ignore=others)
    (outside / "pytest.ini").write_text(
        "[pytest]\npythonpath = tests\naddopts = --import-mode=importlib -m 'not slow'\n"
        "markers = slow: part of the full sweep\n"
    )
    python = sys.executable
    code = "import tcl.grammar, tcl.codegen.cuda; print(tcl.grammar.__file__)"
    assert str(site) in _run(python, "-c", code, folder=outside, path=site)
    command = (
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not interrupt and not ctrl",
    )
    print(_run(*command, folder=outside, path=site)[-300:])


def _run(*command: str | Path, folder: Path | None = None, path: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [str(c) for c in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout
