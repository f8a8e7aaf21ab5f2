"""``tcl show`` for GPUs that are not here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import here
from cuda_modules import needs_nvrtc

from tcl.codegen.cuda.emulator import why_not

MM = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def lut(float(R) T, int32(N) I) -> (C) { C(i) = T(I(i)) }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "mm.tc"
    found.write_text(MM)
    return found


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("ast", "C(m, n) +=!"),
        ("ir", "C(s0.m, s0.n)"),
        ("schedule", "thread"),
        ("source", 'extern "C" __global__'),
        ("reference", "for "),
    ],
)
def test_stages(file: Path, stage: str, expected: str) -> None:
    done = here(
        *("show", file, "-e", "mm", "-s", "M=100,K=70,N=50", "--device", "sm_80"),
        *("--stage", stage),
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@needs_nvrtc
def test_assembly(file: Path) -> None:
    for name, target in (("rtx 4090", "sm_89"), ("sm_90a", "sm_90a")):
        done = here(
            *("show", file, "-e", "mm", "-s", "M=9,K=9,N=9", "--device", name, "--stage", "asm")
        )
        assert f".target {target}\n" in done.stdout, done.stderr


@needs_nvrtc
@pytest.mark.parametrize("entry", ["mm", "lut"])
def test_resources(file: Path, tmp_path: Path, entry: str) -> None:
    sizes = {"mm": "M=256,K=256,N=256", "lut": "R=10,N=5000"}[entry]
    done = here(
        *("show", file, "-e", entry, "-s", sizes, "--device", "h200", "--stage", "resources"),
        cache=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    title, heads, *rows = done.stdout.splitlines()
    assert title.startswith(f"{entry} on H200 (sm_90, NVRTC ")
    assert heads.split() == (
        "kernel blocks threads registers shared spills stack occupancy".split()
    )
    assert rows and all(row.startswith(f"{entry}_") and "% of warps" in row for row in rows)
    assert len(list((tmp_path / "objects").iterdir())) == 1  # kept


@pytest.mark.parametrize("entry", ["mm", "lut"])
def test_counters(file: Path, entry: str) -> None:
    """What a GPU is asked for, with no GPU and no NVRTC."""
    sizes = {"mm": "M=256,K=256,N=256", "lut": "R=10,N=5000"}[entry]
    done = here(
        *("show", file, "-e", entry, "-s", sizes, "--device", "h200", "--stage", "counters"),
    )
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert title == f"{entry} on H200 (sm_90)"
    said = [row for row in rows if row.startswith("  ")]
    assert all(row.endswith("  counted, not measured") for row in said)
    words = {row.split()[0] for row in said}
    assert {"blocks", "occupancy", "waves", "global", "in", "pipe:", "share"} <= words
    assert sum("which binds" in row for row in said) == 1
    fma = [row.split()[1] for row in said if row.split()[0] == "FFMA"]
    blocks = next(int(row.split()[1]) for row in said if row.split()[0] == "blocks")
    assert fma == ([f"{256**3 // 32 // blocks:,}"] if entry == "mm" else [])
    assert any("data decides" in row for row in said) == (entry == "lut")


def test_counters_of_sizes_that_vary(file: Path) -> None:
    sizes = ("-s", "M=100,K=70,N=50", "--varying", "M")
    done = here("show", file, "-e", "mm", *sizes, "--device", "h200", "--stage", "counters")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("as for M=")


def test_counters_of_empty_outputs(file: Path) -> None:
    done = here(
        *("show", file, "-e", "mm", "-s", "M=0,K=7,N=5", "--device", "h200"),
        *("--stage", "counters"),
    )
    assert done.returncode == 0, done.stderr
    assert "predicted  0.00 us" in done.stdout


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
def test_counters_beside_the_emulator(file: Path) -> None:
    done = here(
        *("run", file, "-e", "mm", "-s", "M=40,K=24,N=50", "--device", "cuda-emulated"),
        *("--counters", "--json"),
    )
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)["counters"]
    assert all(own["counted"] == own["emulated"] for own in kernel.values())
    assert kernel["shared reads"]["emulated"][0] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--device", "h2000"), "there is no device profile h2000; did you mean H200?"),
        (("--device", "cuda:99"), "there is no device cuda:99 here"),
        (("--device", "t4", "-o", '{"vectorize": 3}'), "error: "),
        (("--device", "cuda-emulated"), "name a GPU, such as"),
        (("--device", ""), "there is no device profile ''; known are"),
        (("--device", "h200", "-o", __file__), f"error: {__file__}: options: not valid JSON"),
    ],
)
def test_mistakes(file: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = here("show", file, "-e", "mm", "-s", "M=9,K=9,N=9", *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert not done.stdout
