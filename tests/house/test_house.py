"""The house itself: layers, types, style, import time, packaging."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from places import ROOT

from tcl.common.extras import Extra

SOURCE_TREE = (ROOT / "setup.cfg").exists() and (ROOT / "grammar").is_dir()
needs_source = pytest.mark.skipif(not SOURCE_TREE, reason="runs in the source tree only")

HEAVY = ("numba", "llvmlite", "cupy", "torch", "lightgbm", "dask", "scipy", "rich")


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_source
def test_the_test_command_lints_first() -> None:
    """Once, by commands of their own; pytest does not do it again. Beside mypy it collects the
    tests, and runs them after both."""
    readme = (ROOT / "README.md").read_text("utf-8")
    command = readme.partition("<!-- test command -->")[2].split("```")[1]
    steps = re.findall(r"(?<=\.venv/bin/)(?:python -m )?[\w-]+(?: check| format --check)?", command)
    assert steps == [
        *("pip", "ruff check", "ruff format --check", "lint-imports"),
        *("python -m pytest", "mypy", "python -m pytest"),
    ]
    assert command.count("&&") == len(steps)  # each runs only if the one before went well
    assert re.search(r"--collect-only > /dev/null & \S+/mypy; } && wait &&", command)


ROOT_HOLDS = {
    *("grammar", "codegen", "tuner", "tcl", "tests", "examples", "benchmarks", "docs", "website"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"),
    *("setup.cfg", "pyproject.toml", ".ci", ".gitignore"),
}


@needs_source
def test_the_root_holds_nothing_else() -> None:
    """A redirect of a shell that goes wrong leaves a file, which is easily committed."""
    tracked = run("git", "ls-files").splitlines()
    assert {name.partition("/")[0] for name in tracked} == ROOT_HOLDS


@needs_source
def test_every_package_is_listed() -> None:
    """A subpackage missing from setup.cfg works in editable mode and is absent from the wheel."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {"tcl"}
    for folder in ("tcl", "grammar", "codegen", "tuner"):
        prefix = "tcl" if folder == "tcl" else f"tcl.{folder}"
        for init in (ROOT / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / folder).parts
            if folder == "tcl" and parts and parts[0] in ("grammar", "codegen", "tuner"):
                continue  # the same folders, by their links
            found.add(".".join((prefix, *parts)))
    assert listed == found


@needs_source
def test_the_distribution_is_ours_and_nothing_points_to_the_other_one() -> None:
    """``tcl`` on the package index is a stranger's: no page or message may install it."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["name"] == "tensorcomp"
    assert set(config["options.extras_require"]) == set(get_args(Extra))
    tracked = run("git", "ls-files", "*.py", "*.md", "*.cfg", "*.toml", ".ci/run").split()
    theirs = re.compile(
        r"pip install[^\n]*\btcl\b(?!\.)|\btcl\[(?:" + "|".join(get_args(Extra)) + ")"
    )
    found = [
        f"{name}: {line.strip()}"
        for name in tracked
        for line in (ROOT / name).read_text("utf-8").splitlines()
        if theirs.search(line.partition("&&")[0])
    ]
    assert found == []


@needs_source
def test_ci_runs_the_readme_with_no_environment_that_users_lack(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "README.md").write_text("<!-- test command -->\n```sh\nenv\n```\n")
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_NO_COLOR": "1"}
    hidden = ("PYTHONUNBUFFERED", "LANG", "LC_ALL", "TERM", "CI", "TCL_NUM_THREADS")
    command = ["bash", script]
    environment = {**given, **dict.fromkeys(hidden, "1")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    of_the_shell = {"PWD", "SHLVL", "_"}
    found = dict(line.split("=", 1) for line in done.stdout.splitlines()[1:])
    assert {n: v for n, v in found.items() if n not in of_the_shell} == given


def test_import_is_light() -> None:
    """``import tcl`` loads nothing heavy."""
    code = f"import sys, tcl; print([m for m in {HEAVY} if m in sys.modules])"
    assert run(sys.executable, "-c", code).strip() == "[]"


def test_import_adds_little_to_numpy() -> None:
    """What an import takes is the modules that it loads: those of ``tcl`` come when used."""
    code = "import sys, numpy; n = len(sys.modules); import tcl; print(len(sys.modules) - n)"
    assert int(run(sys.executable, "-c", code)) <= 3


def test_define_loads_what_checks_a_def() -> None:
    """What calls, ranges and pages need is loaded when there is one."""
    text = "def f(float(N) A) -> (B) { B(i) = A(i) }"
    code = f"import sys, tcl; tcl.define({text!r}).f; print(*sys.modules)"
    loaded = [name for name in run(sys.executable, "-c", code).split() if name.startswith("tcl.")]
    others = ("tcl.executors.call", "tcl.tuner.measure", "tcl.codegen.devices", "tcl.html")
    assert not [name for name in loaded if name.startswith(others)]
    assert len(loaded) < 75


def test_a_call_loads_no_masked_arrays() -> None:
    code = (
        "import sys, numpy as np, tcl\n"
        "T = tcl.define('def f(float(N) A) -> (B) { B(i) = 2 * A(i) }')\n"
        "T.f(np.ones(3, 'f'), outputs=np.empty(3, 'f'))\n"
        "print('numpy.ma' in sys.modules)"
    )
    assert run(sys.executable, "-c", code).strip() == "False"


@pytest.mark.parametrize("name", ["define", "compile", "autotune", "MappingOptions", "TclError"])
def test_public_names(name: str) -> None:
    import tcl

    assert name in dir(tcl)
    assert getattr(tcl, name).__doc__


def test_unknown_name() -> None:
    import tcl

    with pytest.raises(AttributeError, match="no attribute 'defin'"):
        tcl.defin  # noqa: B018
