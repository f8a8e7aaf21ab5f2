"""The wheel, built from the tree and installed alone: the tests pass against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_AGAIN = (
    "test_wheel.py", "test_builtins.py", "test_fuzz.py", "test_backends.py", "test_beside.py",
    "test_contractions.py", "test_cpu.py", "test_cpu_types.py", "test_crowded.py",
    "test_cuda_values.py", "test_fuse.py",
    "test_merge.py", "test_parallel.py", "test_results.py", "test_staged_values.py",
    "test_transpose.py", "test_vector_math.py", "test_cache_cli.py", "test_importance.py",
    "test_search_model.py", "test_strategies.py", "test_resume.py", "test_faults.py",
)  # fmt: skip
"""Long tests of code that is the same in a wheel."""

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.cfg").exists(), reason="needs the source tree to build a wheel"
)


def test_tests_pass_against_the_wheel(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    hidden = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=hidden)
    _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, tree)
    wheel = next(tmp_path.glob("*.whl"))

    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    _run(python, "-m", "pip", "install", "-q", f"{wheel}[test]")

    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copytree(ROOT / "examples", outside / "examples")
    ignored = shutil.ignore_patterns("__pycache__", *NOT_AGAIN)
    shutil.copytree(ROOT / "tests", outside / "tests", ignore=ignored)
    (outside / "pytest.ini").write_text(
        "[pytest]\npythonpath = tests\naddopts = --import-mode=importlib -m 'not slow'\n"
        "markers = slow: part of the full sweep\n"
    )
    where = _run(python, "-c", "import tcl.grammar; print(tcl.grammar.__file__)", folder=outside)
    assert str(tmp_path / "venv") in where
    print(_run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=outside)[-300:])


def _run(*command: str | Path, folder: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
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
