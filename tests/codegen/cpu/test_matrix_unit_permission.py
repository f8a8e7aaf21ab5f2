"""The matrix unit is there where the system lets the process use it, and only there."""

from __future__ import annotations

import multiprocessing
import platform
import subprocess
import sys

import pytest

from tcl.codegen.devices import matrix_unit_permission
from tcl.codegen.devices.matrix_unit_permission import may_use_tiles, permitted

FOUND = {"avx2": True, "amx-tile": True, "amx-int8": True, "amx-bf16": True, "amx-fp16": False}


@pytest.mark.parametrize("allowed", [True, False])
def test_features_of_the_matrix_unit(allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_unit_permission, "may_use_tiles", lambda: allowed)
    assert permitted(FOUND) == {**FOUND, **dict.fromkeys(list(FOUND)[1:4], allowed)}


def test_a_processor_without_one_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_unit_permission, "may_use_tiles", lambda: pytest.fail("asked"))
    features = {"avx2": True, "amx-tile": False}
    assert permitted(features) == features


def test_only_linux_on_x86_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    may_use_tiles.cache_clear()
    try:
        assert not may_use_tiles()
    finally:
        may_use_tiles.cache_clear()


ASKED = """
import ctypes, platform, sys
from types import SimpleNamespace
asked = []
class Syscall:
    def __call__(self, *arguments):
        asked.append([a.value for a in arguments])
        return ANSWER
import llvmlite.binding as llvm
from tcl.codegen.devices.cpu import host_cpu
platform.machine = lambda: "x86_64"
ctypes.CDLL = lambda *a, **k: SimpleNamespace(syscall=Syscall())
features = llvm.get_host_cpu_features()
for name in ("amx-tile", "amx-int8", "amx-bf16"):
    features[name] = True
llvm.get_host_cpu_features = lambda: features
sys.platform = "linux"
for _ in range(3):
    profile = host_cpu()
print(asked, profile.has("amx-tile"), "-amx-tile" in profile.features)
"""


@pytest.mark.parametrize(("answer", "there"), [(0, True), (-1, False)])
def test_a_process_asks_once_and_goes_by_the_answer(answer: int, there: bool) -> None:
    """158 is arch_prctl, 0x1023 ARCH_REQ_XCOMP_PERM, 18 the tiles' data (Linux's headers)."""
    text = ASKED.replace("ANSWER", str(answer))
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"{[[158, 0x1023, 18]]} {there} {not there}"


def _features() -> str:
    from tcl.codegen.devices.cpu import host_cpu

    return host_cpu().features


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_find_the_same(method: str) -> None:
    """What a worker compiles for is what this process loads."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(_features) == _features()
