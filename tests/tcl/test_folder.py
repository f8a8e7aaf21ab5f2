"""A cache that has no place is done without: no call fails, and one warning says so."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcl
from tcl.common import folder, warn
from tcl.common.errors import TclWarning

posix = pytest.mark.skipif(os.name != "posix", reason="users are told apart as POSIX does")
PRODUCT = """
import warnings
import numpy as np
import os, sys
if sys.argv[1:] == ["nobody"]:
    os.environ.pop("HOME", None)
    import pwd
    def unknown(uid):
        raise KeyError("getpwuid(): uid not found")
    pwd.getpwuid = unknown
import tcl
A = np.eye(5, dtype="f")
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for text in ("A(m, k) * B(k, n)", "A(m, k) + B(k, n)"):
        head = "float(M, K) A, float(K, N) B) -> (C"
        for size in (4, 5):
            T = tcl.define("def mm(" + head + ") { C(m, n) +=! " + text + " }")
            C = T.mm(A[:size, :size].copy(), A[:size, :size].copy())
            assert C.shape == (size, size) and C[0, 0] in (1, 2)
for each in found:
    print(each.category.__name__, each.message, sep=": ")
"""


def _without_privileges() -> None:
    """Have root's next program ask permissions, as others do: it gets neither CAP_DAC_OVERRIDE nor
    CAP_DAC_READ_SEARCH."""
    drop_from_bounding_set = 24
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def said(program: str, *arguments: str, **environment: str) -> list[str]:
    """What a process prints, with nothing in its environment that it is not given."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "LANG")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**kept, "TCL_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_without_privileges,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@posix
def test_a_user_without_a_home() -> None:
    assert said(PRODUCT, "nobody") == [
        "TclWarning: nothing is saved between processes: this user has no home directory; "
        "set TCL_CACHE_DIR to a writable folder"
    ]


@posix
@pytest.mark.parametrize("mode", ["off", "auto", "predict"])
def test_a_home_that_may_not_be_searched(mode: str, tmp_path: Path) -> None:
    """As after ``sudo -E``, and in containers."""
    home = tmp_path / "home"
    home.mkdir(mode=0)
    try:
        lines = said(PRODUCT, HOME=str(home), TCL_TUNE_MODE=mode)
    finally:
        home.chmod(0o700)
    kept = [line for line in lines if "nothing is saved between processes" in line]
    assert len(kept) == 1 and f"{home}/.cache/tcl cannot be " in kept[0]
    assert all(line.startswith("TclWarning: ") for line in lines)


@posix
@pytest.mark.parametrize("variable", ["TCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
@pytest.mark.parametrize("place", ["file", "nowhere"])
def test_a_folder_that_cannot_be_made(variable: str, place: str, tmp_path: Path) -> None:
    """``/proc`` takes no folders, not even root's."""
    (tmp_path / "file").write_text("kept")
    where = str(tmp_path / "file") if place == "file" else "/proc/nowhere"
    (line,) = said(PRODUCT, **{variable: where})
    assert line.startswith(f"TclWarning: nothing is saved between processes: {where}")
    assert "cannot be written: " in line and line.endswith("set TCL_CACHE_DIR to a writable folder")
    assert (tmp_path / "file").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@posix
@pytest.mark.parametrize(
    "given", [{"TCL_CACHE_DIR": ""}, {"XDG_CACHE_HOME": "here"}, {"XDG_CACHE_HOME": ""}]
)
def test_what_says_nothing_of_a_folder(given: dict[str, str], tmp_path: Path) -> None:
    """An empty variable is none, and a relative one counts for nothing, as XDG has it."""
    assert said(PRODUCT, HOME=str(tmp_path), **given) == []
    assert (tmp_path / ".cache" / "tcl").is_dir()


@posix
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    (line,) = said(PRODUCT, TCL_CACHE_DIR=str(tmp_path))
    assert f"{tmp_path} cannot be written: Permission denied" in line


@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_that_keeps_nothing_needs_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Path:
        raise folder.NoPlaceError("this user has no home directory")

    monkeypatch.setattr("tcl.tuner.cache.tuning_cache.cache_place", nowhere)
    few = tcl.TunerConfig().generations(1).pop_size(2).threads(1)
    text, array = "def f(float(N) A) -> (B) { B(n) = 2 * A(n) }", np.ones(8, np.float32)
    assert tcl.autotune(text, "f", array, tuner_config=few, threads=1) is not None
    with pytest.raises(tcl.CacheError, match="no home directory; set TCL_CACHE_DIR to a folder"):
        tcl.autotune(text, "f", array, tuner_config=few, threads=1, store_to_cache=True)


def test_a_folder_that_may_not_be_written_by_root_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warn, "_told", set())
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.warns(TclWarning, match="cannot be written: Permission denied"):
        assert not folder.ensure_folder(tmp_path)
    assert not folder.ensure_folder(tmp_path)  # which is not said again


@posix
@pytest.mark.parametrize("named", [False, True])
def test_a_search_needs_a_place(named: bool, tmp_path: Path) -> None:
    """Said before the search, with what to do."""
    source = tmp_path / "double.tc"
    source.write_text("def f(float(N) A) -> (B) { B(n) = 2 * A(n) }")
    (tmp_path / "file").touch()
    program = (
        "import pwd, sys\n"
        "def unknown(uid):\n"
        "    raise KeyError(uid)\n"
        "pwd.getpwuid = unknown\n"
        "from tcl.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as done:\n"
        "    assert done.code == 1\n"
    )
    file = tmp_path / "file" / "x.db"
    cache = ("--cache", str(file)) if named else ()
    program = program.replace("import pwd, sys", "import pwd, sys\nsys.stderr = sys.stdout")
    found = said(program, "tune", str(source), "--sizes", "N=8", *cache)
    if named:
        assert found[-1:] == [
            f"error: the tuning cache {file} cannot be created: Not a directory; "
            "name another file with --cache"
        ]
    else:
        assert found[-1:] == [
            "error: the tuning cache has no folder: this user has no home directory; "
            "set TCL_CACHE_DIR to a folder, or name a file with --cache"
        ]
