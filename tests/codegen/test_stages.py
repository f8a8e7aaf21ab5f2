"""What ``tcl show`` prints of a handful of defs, for a CPU and a GPU that need not be there.

The files of ``tests/golden`` are written anew with
``pytest tests/codegen/test_stages.py --update-golden``.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from golden import Golden
from places import ROOT

from tcl.cli import main
from tcl.codegen.cpu.emit import emit as cpu_emit
from tcl.codegen.cuda.emit import emit as cuda_emit
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.printer import show

GOLDEN = ROOT / "tests" / "golden"

FEATURES = "+sse4.2,+avx,+avx2,+fma,+f16c"
CPU = CpuProfile(
    *("haswell", FEATURES, "x86_64-unknown-linux-gnu", 256, 2, 32 << 10, 256 << 10, 32 << 20)
)
"""Fixed, so that what is printed does not depend on the machine."""

DEFS = {
    "matmul": "matmul.tc --entry matmul",
    "matmul_half": "matmul.tc --entry matmul_half",  # on tensor cores
    "softmax": "softmax.tc --entry softmax",
    "convolution": "convolution.tc --entry convolution",
    "layernorm": "layernorm.tc --entry layernorm",
    "mlp1": "mlp1.tc",  # with an epilogue
}
UNROLLED = ("matmul_half", "softmax", "convolution", "layernorm")
"""Whose LLVM IR is shown for plain loops: that of register tiles is hundreds of lines."""


def commands(name: str, device: str) -> Iterator[str]:
    """The stages, at sizes for which much is chosen; LLVM IR at small ones, for it to be short."""
    for stage in ("ir", "plan", "schedule", "source"):
        where = "--threads 2" if device == "cpu" else f"--device {device}"
        sizes = "large"
        if device == "cpu" and stage == "source":
            sizes = "test --options naive" if name in UNROLLED else "test"
        yield f"tcl show examples/{DEFS[name]} --sizes {sizes} {where} --stage {stage}"


def printed(command: str) -> str:
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    return done.stdout.rstrip("\n") + "\n"


@pytest.fixture(autouse=True)
def _pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tcl.codegen.devices.named.host_cpu", lambda: CPU)
    monkeypatch.chdir(ROOT)


def needs_x86(device: str) -> None:
    if device == "cpu" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the kernel is compiled for the CPU that is shown")


@pytest.mark.parametrize("device", ["cpu", "h200"])
@pytest.mark.parametrize("name", DEFS)
def test_what_becomes_of_a_def(name: str, device: str, golden: Golden) -> None:
    needs_x86(device)
    blocks = (f"$ {command}\n{printed(command)}" for command in commands(name, device))
    golden(GOLDEN / f"{name}-{device}.txt", "\n".join(blocks))


@pytest.mark.parametrize("device", ["cpu", "h200"])
def test_the_schedule_shown_is_what_the_source_is_emitted_from(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_x86(device)
    emitted: list[ir.Program] = []
    module = cpu_emit if device == "cpu" else cuda_emit
    original = module.emit_program

    def noting(program: ir.Program, *given: Any, **named: Any) -> Any:
        emitted.append(program)
        return original(program, *given, **named)

    monkeypatch.setattr(module, "emit_program", noting)
    shown = []
    for name in DEFS:
        *_, source = commands(name, device)
        shown.append(printed(source.replace("--stage source", "--stage schedule")))
        printed(source)
    assert shown == [show(program).rstrip("\n") + "\n" for program in emitted]
