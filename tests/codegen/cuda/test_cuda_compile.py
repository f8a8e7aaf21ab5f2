"""CUDA C++ to machine code by NVRTC, for every architecture, with no GPU."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from cuda_modules import ADDING, GATHERING, REVERSING, SPILL, needs_nvrtc

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run import compile as compiling
from tcl.codegen.cuda.run.compile import SIMPLER, _compile_source, compile_cubin, ptx
from tcl.codegen.devices import gpu
from tcl.codegen.devices.cupy_driver import cupy, nvrtc
from tcl.codegen.devices.gpu import A100, B200, H100, H200, PROFILES, T4, GpuProfile, of_device
from tcl.common.errors import ArgumentError, CompileError


@needs_nvrtc
@pytest.mark.parametrize("known", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("module", [ADDING, REVERSING, GATHERING], ids=["add", "reverse", "gather"])
def test_every_architecture(module: CudaModule, known: GpuProfile) -> None:
    cubin = compile_cubin(module, known)
    assert cubin.code.startswith(b"\x7fELF")
    assert [r.kernel for r in cubin.resources] == [launch.name for launch in module.launches]
    assert 4 <= cubin.resources[0].registers <= 64
    assert cubin.resources[0].spill_stores == cubin.resources[0].stack == 0


@needs_nvrtc
def test_the_same_source_gives_the_same_code() -> None:
    assert compile_cubin(ADDING, H200) == compile_cubin(ADDING, H200)
    assert compile_cubin(ADDING, H200).code != compile_cubin(ADDING, A100).code


@needs_nvrtc
def test_one_architecture_alone() -> None:
    """Only code for sm_90a may hold instructions of warp groups."""
    source = 'extern "C" __global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }'
    module = CudaModule(source, (replace(ADDING.launches[0], name="f"),), ())
    assert compile_cubin(module, replace(H100, specific=True)).resources[0].kernel == "f"
    with pytest.raises(CompileError, match="wgmma"):
        compile_cubin(module, H100)


@needs_nvrtc
@pytest.mark.parametrize(
    ("number", "uncached"), [((12, 8), False), ((12, 9), True), ((13, 0), True)]
)
def test_nvrtc_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, number: tuple[int, int], uncached: bool
) -> None:
    """What it finds in a cache of its own, it says nothing of: not even what the kernels take."""
    given: list[tuple[str, ...]] = []

    def noting(program: object, options: tuple[str, ...]) -> None:
        given.append(options)
        nvrtc().compileProgram(program, options)

    names = {name: getattr(nvrtc(), name) for name in dir(nvrtc())}
    noted = SimpleNamespace(**{**names, "compileProgram": noting})
    monkeypatch.setattr(compiling, "nvrtc", lambda: noted)
    monkeypatch.setattr(compiling, "version", lambda: number)
    compile_cubin(ADDING, H200)
    assert [("--no-cache" in options) for options in given] == [uncached]


@needs_nvrtc
def test_resources() -> None:
    """Static shared memory is the kernel's own; dynamic is not counted; spills are seen."""
    assert compile_cubin(REVERSING, T4).resources[0].shared == 256
    spilling = compile_cubin(SPILL, H200).resources[0]
    assert spilling.registers == 64
    assert min(spilling.spill_stores, spilling.spill_loads, spilling.stack) > 100


@needs_nvrtc
def test_resources_follow_the_launches() -> None:
    """The assembler takes kernels in an order of its own."""
    both = CudaModule(
        ADDING.source + REVERSING.source,
        REVERSING.launches + ADDING.launches,
        REVERSING.tensors + ADDING.tensors,
    )
    assert [r.kernel for r in compile_cubin(both, H200).resources] == ["reverse", "add"]


def changed(old: str, new: str) -> CudaModule:
    assert old in ADDING.source
    return replace(ADDING, source=ADDING.source.replace(old, new))


@needs_nvrtc
@pytest.mark.parametrize("device", [H200, B200], ids=["sm_90", "sm_100"])
def test_errors_show_the_line(device: GpuProfile) -> None:
    with pytest.raises(CompileError) as caught:
        compile_cubin(changed("+ B[i]", "+ D[i]"), device)
    assert str(caught.value) == (
        f'NVRTC does not compile this kernel for {device.architecture}: identifier "D" is '
        "undefined\n  line 6: C[i] = A[i] + D[i];"
    )


@needs_nvrtc
def test_errors_of_the_assembler_show_the_line_of_ptx() -> None:
    bad = changed("C[i] =", 'asm volatile("cp.async.commit_group;"); C[i] =')
    compile_cubin(bad, A100)
    with pytest.raises(CompileError) as caught:
        compile_cubin(bad, T4)
    message = str(caught.value)
    assert "for sm_75: Feature 'cp.async.commit_group' requires .target sm_80" in message
    assert message.endswith(": cp.async.commit_group;"), message


@needs_nvrtc
def test_too_much_shared_memory() -> None:
    bad = changed("const int i", "__shared__ float x[20000]; x[threadIdx.x] = A[0]; const int i")
    bad = replace(bad, source=bad.source.replace("+ B[i]", "+ x[(int)B[i]]"))
    with pytest.raises(CompileError, match="uses too much shared data"):
        compile_cubin(bad, H200)


@needs_nvrtc
def test_many_errors_are_cut_short() -> None:
    with pytest.raises(CompileError, match="and 5 more errors"):
        compile_cubin(
            changed("C[i] =", "".join(f"x{i} = 1;\n" for i in range(10)) + "C[i] ="), A100
        )


@needs_nvrtc
def test_a_kernel_that_is_not_there() -> None:
    module = replace(ADDING, launches=(replace(ADDING.launches[0], name="mul"),))
    with pytest.raises(CompileError, match="the source has no kernel mul, only add"):
        compile_cubin(module, H200)


@needs_nvrtc
def test_an_architecture_that_nvrtc_does_not_know() -> None:
    with pytest.raises(ArgumentError, match=r"NVRTC \d+\.\d does not compile for sm_20, only for"):
        compile_cubin(ADDING, replace(T4, capability=(2, 0)))


def dies(source: str, architecture: str, options: tuple[str, ...]) -> NoReturn:
    """In place of the compiler."""
    os.kill(os.getpid(), signal.SIGILL)
    raise AssertionError


def dies_unless_simpler(
    source: str, architecture: str, options: tuple[str, ...]
) -> tuple[bytes, str]:
    if SIMPLER not in options:
        dies(source, architecture, options)
    return _compile_source(source, architecture, options)


@needs_nvrtc
def test_a_crash_of_nvrtc_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.codegen.cuda.run.compile._compile_source", dies_unless_simpler)
    assert compile_cubin(ADDING, B200).code.startswith(b"\x7fELF")
    assert ".target sm_100" in ptx(ADDING.source, B200)
    monkeypatch.setattr("tcl.codegen.cuda.run.compile._compile_source", dies)
    with pytest.raises(CompileError, match="NVRTC crashes on this kernel for sm_100; use other"):
        compile_cubin(ADDING, B200)


def killed(source: str, architecture: str, options: tuple[str, ...]) -> NoReturn:
    """In place of the compiler: somebody, or the system for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@needs_nvrtc
def test_nvrtc_is_not_blamed_for_what_others_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.codegen.cuda.run.compile._compile_source", killed)
    with pytest.raises(CompileError, match=r"could not start to compile .* sm_100: .* by SIGKILL"):
        compile_cubin(ADDING, B200)


@needs_nvrtc
def test_ptx() -> None:
    text = ptx(ADDING.source, H200)
    assert ".target sm_90" in text
    assert ".entry add(" in text
    assert "\0" not in text


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    for use in (cupy, nvrtc, of_device):
        with pytest.raises(ArgumentError, match=r"needs the package CuPy.*'\.\[cuda\]'"):
            use()


def test_cupy_has_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It makes one where it is imported: a user of a container may have no home."""
    (tmp_path / "cupy.py").write_text("import os; os.makedirs('/dev/null/cupy')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert gpu.device_count() == 0
    with pytest.raises(ArgumentError, match=r"Not a directory.*; set CUPY_CACHE_DIR to a writable"):
        of_device()


@needs_nvrtc
def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import nvrtc as binding

    class Missing:
        @staticmethod
        def getVersion() -> None:  # noqa: N802
            raise RuntimeError("looked everywhere")

    monkeypatch.setattr(sys.modules["cupy"].cuda, "nvrtc", Missing)
    monkeypatch.setitem(sys.modules, binding.__name__, Missing)
    with pytest.raises(ArgumentError, match="needs the library NVRTC, which was not found"):
        nvrtc()


def test_wheels_are_of_one_minor_version() -> None:
    """CuPy's own kernels take headers of the one to the compiler of the other."""
    found = []
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        try:
            found.append(importlib.metadata.version(wheel).split(".")[:2])
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{wheel} is not here: pip install '.[cuda]'")
    assert found[0] == found[1]
