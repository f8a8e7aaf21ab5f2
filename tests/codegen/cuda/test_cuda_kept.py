"""CUBINs kept between processes."""

from __future__ import annotations

import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cuda_modules import ADDING, REVERSING, needs_nvrtc
from places import ROOT

from tcl.codegen.common.envelope import seal
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cuda.run import compile as kept
from tcl.codegen.cuda.run.compile import OPTIONS, Cubin, Resources
from tcl.codegen.devices.gpu import A100, H100, H200
from tcl.common import warn

NAME = "7" * 64
CUBIN = Cubin(
    b"not\0really\ncode", (Resources("f", 32, 0, 8, 4, 16), Resources("g", 9, 1, 0, 0, 0))
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warn, "_told", set())
    return tmp_path / "objects"


@needs_nvrtc
def test_it_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept.cubin(ADDING, H200)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.setattr(kept, "compile_cubin", None)
    assert kept.cubin(ADDING, H200) == first
    assert kept.cubin(ADDING, H100) == first  # the same architecture
    with pytest.raises(TypeError):
        kept.cubin(ADDING, A100)


@needs_nvrtc
@pytest.mark.parametrize("damage", ["truncate", "flip", "object"])
def test_damage_is_repaired(folder: Path, damage: str) -> None:
    first = kept.cubin(ADDING, H200)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    if damage == "truncate":
        file.write_bytes(whole[:-1])
    elif damage == "flip":
        file.write_bytes(whole[:-10] + bytes([whole[-10] ^ 1]) + whole[-9:])
    else:
        file.write_bytes(seal(KernelCode(b"code"), file.stem))
    assert kept.cubin(ADDING, H200) == first
    assert file.read_bytes() == whole


@needs_nvrtc
def test_every_ingredient_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        kept.cubin_digest(ADDING, H200),
        kept.cubin_digest(ADDING, A100),
        kept.cubin_digest(ADDING, replace(H200, specific=True)),
        kept.cubin_digest(REVERSING, H200),
        kept.cubin_digest(replace(ADDING, source=ADDING.source + "\n"), H200),
        kept.cubin_digest(replace(ADDING, launches=ADDING.launches * 2), H200),
    }
    monkeypatch.setattr(kept, "OPTIONS", (*OPTIONS, "--use_fast_math"))
    found.add(kept.cubin_digest(ADDING, H200))
    monkeypatch.setattr(kept, "version", lambda: (13, 99))
    found.add(kept.cubin_digest(ADDING, H200))
    assert len(found) == 8


SECOND = """
import sys
sys.path.insert(0, "tests/support")
from cuda_modules import ADDING
from tcl.codegen.cuda.run import compile as kept
from tcl.codegen.devices.gpu import H200
kept.compile_cubin = None
print(kept.cubin(ADDING, H200).resources[0].kernel)
"""


@needs_nvrtc
def test_a_second_process_compiles_nothing() -> None:
    def run() -> subprocess.CompletedProcess[str]:
        root = ROOT
        return subprocess.run(
            [sys.executable, "-c", SECOND], cwd=root, capture_output=True, text=True, check=False
        )

    assert "'NoneType' object is not callable" in run().stderr
    kept.cubin(ADDING, H200)
    assert run().stdout == "add\n"
