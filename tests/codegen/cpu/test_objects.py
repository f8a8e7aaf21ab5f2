"""Object code kept between processes: found, trusted, bounded, and never in the way."""

from __future__ import annotations

import inspect
import os
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from at_once import at_once
from cpu_kernels import LANES, MATMUL, NAIVE, sized_of

from tcl.codegen.common import store
from tcl.codegen.common.store import FolderStore
from tcl.codegen.cpu.emit import emit
from tcl.codegen.cpu.object_code import ingredients
from tcl.codegen.cpu.object_code.kernel_code import KernelCode, NumberedSite
from tcl.codegen.cpu.run import ready
from tcl.codegen.cpu.run.launch import DIRECT, Launcher, _public, address_of
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu import stage
from tcl.common import warn
from tcl.common.errors import TclWarning
from tcl.executors.calls import contiguous
from tcl.executors.executor import Executor
from tcl.grammar.tree import canonical

posix = pytest.mark.skipif(os.name != "posix", reason="object code is kept on POSIX only")
pytestmark = posix

LUT = "def lut(float(R, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }"
SUM, ONES = "def total(float(N) A) -> (S) { S +=! A(n) }", np.ones(5, np.float32)
NAME = "5" * 64
CODE = KernelCode(
    b"not really\ncode\0", (NumberedSite(0, 1, -2, 9, True),), (((3, 4), "float32", True),), 3, 2
)


@pytest.fixture(scope="module", autouse=True)
def _what_all_calls_share() -> None:
    """Is loaded before, so that what tests find kept is a kernel's."""
    Executor(sized_of(SUM, ONES), NAIVE)(ONES)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warn, "_told", set())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "objects"


def mm(m: int = 4, options: Any = LANES, unchecked: bool = False) -> Executor:
    """A new executor that has run once, and rightly."""
    a, b = np.ones((m, 5), np.float32), np.full((5, 16), 2, np.float32)
    executor = Executor(sized_of(MATMUL, a, b), options)
    np.testing.assert_array_equal(executor(a, b, unchecked=unchecked), np.full((m, 16), 10))
    return executor


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tclo"))


def test_what_is_kept_comes_back(folder: Path) -> None:
    cache = FolderStore()
    assert cache.folder == folder
    assert cache.get(NAME, KernelCode) is None and not folder.exists()  # looking makes nothing
    cache.put(NAME, CODE)
    assert cache.get(NAME, KernelCode) == CODE
    assert cache.get("6" * 64, KernelCode) is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_second_executor_compiles_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mm()
    assert len(kept(folder)) == 1
    monkeypatch.setattr("tcl.codegen.cpu.run.kernel.compiled", None)
    mm()
    with pytest.raises(TypeError):
        mm(5)


def test_sites_and_messages_survive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, index = np.ones((10, 4), np.float32), np.array([0, 12], np.int32)
    renamed = LUT.replace("lut", "gather").replace("T", "Table").replace("I", "Rows")
    said = "index 12 is out of range for dimension 0 of tensor {}, which has indices 0 to 9"
    with pytest.raises(IndexError, match=said.format("T")):
        Executor(sized_of(LUT, table, index), NAIVE)(table, index)
    monkeypatch.setattr("tcl.codegen.cpu.run.kernel.compiled", None)
    executor = Executor(sized_of(renamed, table, index), NAIVE)
    good = np.array([3, 9], np.int32)
    for _ in range(3):  # an error leaves nothing behind
        with pytest.raises(IndexError, match=said.format("Table")):
            executor(table, index)
        np.testing.assert_array_equal(executor(table, good), table[good])


def test_scratch_memory_survives(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (70, 70)).astype(np.float32) for _ in range(2))
    staged = MappingOptions(nests=(NestOptions(tile=(16, 16, 16), stage=(2, 2)),))
    sized = sized_of(MATMUL, a, b)
    for _ in range(2):
        executor = Executor(sized, staged)
        np.testing.assert_array_equal(executor(a, b), a @ b)
        monkeypatch.setattr("tcl.codegen.cpu.run.kernel.compiled", None)
    (file,) = kept(folder)
    code = FolderStore().get(file.stem, KernelCode)
    assert code is not None and code.scratch


def test_every_ingredient_counts() -> None:
    a, b = np.ones((4, 5), np.float32), np.ones((5, 16), np.float32)
    sized = sized_of(MATMUL, a, b)
    strides = (a.strides, b.strides, contiguous((4, 16), 4))
    base = ready.ingredients(sized, LANES, strides, False)
    assert base.digest == ready.ingredients(sized, LANES, strides, False).digest
    others = [
        replace(base, definition=base.definition.replace("*", "+")),
        replace(base, shapes=(*base.shapes[:-1], (4, 17))),
        replace(base, strides=(*base.strides[:-1], (68, 4))),
        replace(base, unchecked=True),
        replace(base, options=NAIVE.to_json()),
        replace(base, device=replace(base.device, name="other")),
        replace(base, device=replace(base.device, features="")),
        replace(base, device=replace(base.device, l2_bytes=1)),
        *(
            replace(base, versions=(*base.versions[:k], "new", *base.versions[k + 1 :]))
            for k in range(len(base.versions))
        ),
    ]
    assert len({base.digest, *(o.digest for o in others)}) == len(others) + 1


@pytest.mark.parametrize("where", ["emit.py", "cpu/emit.py", "cpu/run/deep/emit.py"])
def test_an_edit_of_the_compiler_is_seen(where: str, tmp_path: Path) -> None:
    source = tmp_path / where
    source.parent.mkdir(parents=True, exist_ok=True)
    found = {ingredients.state_of([str(tmp_path)])}
    source.write_text("a")
    found.add(ingredients.state_of([str(tmp_path)]))
    source.write_text("ab")
    found.add(ingredients.state_of([str(tmp_path)]))
    source.rename(source.with_name(f"other{source.suffix}"))
    found.add(ingredients.state_of([str(tmp_path)]))
    assert len(found) == 4


def test_all_that_decides_the_code_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def state_of(folders: Iterable[str]) -> str:
        seen.extend(Path(folder).resolve() for folder in folders)
        return ""

    monkeypatch.setattr(ingredients, "state_of", state_of)
    ingredients.versions.__wrapped__()
    for part in (emit, canonical, stage):
        assert any(Path(inspect.getfile(part)).resolve().is_relative_to(f) for f in seen)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "text", "renamed", "folder"])
def test_damage_is_passed_over_and_repaired(folder: Path, damage: str) -> None:
    mm()
    (file,) = kept(folder)
    whole = file.read_bytes()
    match damage:
        case "truncate":
            file.write_bytes(whole[:-100])
        case "flip":
            file.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
        case "empty":
            file.write_bytes(b"")
        case "text":
            file.write_bytes(b"no object\n" * 50)
        case "renamed":  # whole, but of another kernel
            mm(7)
            (other,) = set(kept(folder)) - {file}
            file.write_bytes(other.read_bytes())
        case _:
            file.unlink()
            file.mkdir(mode=0o700)
    assert FolderStore().get(file.stem, KernelCode) is None
    mm()
    if damage != "folder":
        assert file.read_bytes() == whole


def test_code_that_does_not_load_is_compiled_again(folder: Path) -> None:
    mm()
    (file,) = kept(folder)
    code = FolderStore().get(file.stem, KernelCode)
    assert code is not None
    whole = file.read_bytes()
    FolderStore().put(file.stem, replace(code, object_code=b"\x7fELF but no more"))
    mm()
    assert file.read_bytes() == whole


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_open_to_others_is_refused(folder: Path, mode: int) -> None:
    mm()
    (file,) = kept(folder)
    folder.chmod(mode)
    with pytest.warns(TclWarning, match=f"its mode is {mode:o}"):
        mm()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        mm()
        mm(9)
    assert kept(folder) == [file]  # nor written to


def test_a_file_open_to_others_is_refused(folder: Path) -> None:
    mm()
    (file,) = kept(folder)
    file.chmod(0o620)
    with pytest.warns(TclWarning, match="its mode is 620"):
        mm()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # replaced by what was compiled


def test_what_belongs_to_others_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mm()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(TclWarning, match="it belongs to another"):
        assert FolderStore().get(kept(folder)[0].stem, KernelCode) is None


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    mm()
    (file,) = kept(folder)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert FolderStore().get(file.stem, KernelCode) is None
    mm()
    assert not file.is_symlink()
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert FolderStore().get(file.stem, KernelCode) is None
    mm()


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    FolderStore().put(NAME, CODE)
    (file,) = kept(folder)
    file.unlink()
    os.mkfifo(file, 0o600)
    assert FolderStore().get(NAME, KernelCode) is None


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in ("file", "file/deeper", "x" * 300):
        monkeypatch.setattr(store, "default_folder", lambda path=path: tmp_path / path / "objects")
        mm()


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = store._write

    def full(folder: int, name: str, content: bytes) -> None:
        real(folder, name, content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_write", full)
    mm()
    assert list(folder.iterdir()) == []


def test_the_least_recently_used_go_first(folder: Path) -> None:
    cache = FolderStore(limit=40_000)
    names = [f"{k:02x}" * 32 for k in range(1, 13)]
    big = replace(CODE, object_code=b"x" * 5_000)
    for k, name in enumerate(names[:10]):
        cache.put(name, big)
        os.utime(folder / f"{name}.tclo", (1_000 + k, 1_000 + k))
    assert cache.get(names[0], KernelCode) is not None  # used now
    old, new = folder / ".a.part", folder / ".b.part"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    stranger = folder / "readme.txt"
    stranger.touch()
    with cache._opened(create=False) as opened:
        assert opened is not None
        cache._prune(opened)
    left = {p.stem for p in kept(folder)}
    assert left == {names[0], *names[6:10]}
    assert sum(p.stat().st_size for p in kept(folder)) <= 30_000
    assert not old.exists() and new.exists() and stranger.exists()


def test_the_folder_stays_bounded(folder: Path) -> None:
    cache = FolderStore(limit=100_000)
    big = replace(CODE, object_code=b"x" * 5_000)
    for k in range(256):
        cache.put(f"{k:02x}" * 32, big)
    assert sum(p.stat().st_size for p in kept(folder)) <= 100_000 + 16 * 6_000
    cache.put(NAME, replace(CODE, object_code=b"x" * 100_001))  # would push out all else
    assert cache.get(NAME, KernelCode) is None


def test_many_threads_write_and_read_one_name(folder: Path) -> None:
    codes = [replace(CODE, object_code=bytes([k]) * 300_000) for k in range(4)]
    wrong: list[object] = []

    def work(code: KernelCode) -> None:
        for _ in range(50):
            FolderStore().put(NAME, code)
            if FolderStore().get(NAME, KernelCode) not in codes:
                wrong.append(code)

    at_once(work, codes)
    assert not wrong
    assert [p.name for p in folder.iterdir()] == [f"{NAME}.tclo"]


SECOND = """
import sys, numpy as np, tcl
a = np.ones((33, 17), np.float32)
T = tcl.define("def f(float(M, K) A) -> (C) { C(m) +=! A(m, k) }")
assert (T.f(a) == 17).all()
print(sorted(m for m in ("tcl.codegen.cpu.emit.emit", "tcl.codegen.schedule.cpu", "numba")
             if m in sys.modules))
"""


def test_a_second_process_imports_no_compiler() -> None:
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", SECOND], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert "tcl.codegen.cpu.emit.emit" in run()
    assert run() == "[]"


def test_processes_at_once(folder: Path) -> None:
    """All are right, whoever keeps it first, and nothing is left but what one process keeps."""

    def run(processes: int) -> list[str]:
        children = [
            subprocess.Popen([sys.executable, "-c", SECOND], stdout=subprocess.DEVNULL)
            for _ in range(processes)
        ]
        assert [c.wait() for c in children] == [0] * processes
        return sorted(path.name for path in folder.iterdir())

    together = run(3)
    assert together == sorted(path.name for path in kept(folder))
    for path in kept(folder):
        path.unlink()
    assert run(1) == together


def test_addresses() -> None:
    base = np.zeros((7, 9), np.float64)
    for array in (base, base[3:, 2:], base[::-1], base.T, np.zeros(0), np.array(1)):
        assert address_of(array) == _public(array) == array.ctypes.data
    assert DIRECT or sys.implementation.name != "cpython"


def test_calls_in_a_handler_get_a_frame_of_their_own() -> None:
    launcher = mm().kernel(((20, 4), (64, 4), (64, 4)))
    assert isinstance(launcher, Launcher)
    one, two = launcher.frame(), launcher.frame()
    assert one.at != two.at
