"""The wheel, built from the source distribution and installed alone: it holds what the tree does,
and works.

What a wheel can lack is files. So its files are compared with the tree's, and what finds files,
starts processes and loads libraries is run; the tests of all else would find what they find in the
tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import of_brief_searches
from known_machine import known_machine
from places import ROOT

PACKAGES = {"tcl": "tcl", "grammar": "tcl/grammar", "codegen": "tcl/codegen", "tuner": "tcl/tuner"}
"""Folders of the tree, and where they are in the wheel."""
DATA = {"tcl/docs": "docs/**/*.md", "tcl/bench/examples": "examples/*.tc"}
"""Folders of data in the wheel, and what of the tree is in them."""
SIZES = ("-s", "M=16,K=16,N=16")
SMALL = ("--generations", "1", "--population", "2")
MATMUL = ("examples/matmul.tc", "-e", "matmul_double")
"""Not of the benchmark suite: torch, which would be compared with, takes seconds to import."""
COMMANDS = (
    (("--version",), "version"),
    (("check", "examples/matmul.tc"), "matmul("),
    (("show", *MATMUL, *SIZES, "--stage", "source"), "define"),
    (("show", *MATMUL, *SIZES, "--device", "h200", "--stage", "resources"), "registers"),
    (("run", *MATMUL, *SIZES, "--device", "cuda-emulated"), "agrees with the reference"),
    (("tune", *MATMUL, *SIZES, *SMALL, "--report", "page.html"), "saved in"),
    (("run", *MATMUL, *SIZES), "agrees with the reference"),
    (("docs", "ranges"), "ranges"),
    (("bench", "cpu", "--list"), "matmul"),
    (("devices",), "cpu"),
)

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.cfg").exists(), reason="needs the source tree to build a wheel"
)


def test_the_wheel_holds_what_the_tree_does_and_works(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    hidden = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=hidden)
    _run(sys.executable, "-m", "build", "--no-isolation", "-o", tmp_path, tree)
    shutil.rmtree(tree)
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == _files()

    # In front of all that this Python has installed, so that what the wheel needs is there.
    site = tmp_path / "site"
    command = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile")
    _run(*command, "--target", site, wheel)
    outside = tmp_path / "outside"
    shutil.copytree(ROOT / "examples", outside / "examples")
    code = "import tcl.grammar, tcl.codegen.cuda; print(tcl.grammar.__file__)"
    assert str(site) in _run(sys.executable, "-c", code, folder=outside, path=site)
    known_machine(site / "cache")
    for arguments, expected in COMMANDS:
        said = _run(sys.executable, site / "bin" / "tcl", *arguments, folder=outside, path=site)
        assert expected in said.lower(), (arguments, said)
    assert "<html" in (outside / "page.html").read_text("utf-8")


def _files() -> set[str]:
    """Every file of the packages, where the wheel has it."""
    found = {
        f"{place}/{file.relative_to(ROOT / folder)}"
        for folder, place in PACKAGES.items()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    for place, files in DATA.items():
        folder = ROOT / files.partition("/")[0]
        found |= {f"{place}/{file.relative_to(folder)}" for file in ROOT.glob(files)}
    return found


def _run(*command: str | Path, folder: Path | None = None, path: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if path is not None:
        environment = of_brief_searches(TCL_CACHE_DIR=str(path / "cache"))
        brief, *_ = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join([str(path), brief])
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
