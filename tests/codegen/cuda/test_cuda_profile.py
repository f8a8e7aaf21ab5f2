"""Profiles of GPUs: names, and their limits against the table that comes with CuPy."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tcl.backends.targets import target
from tcl.codegen.devices.gpu import (
    A100,
    H100,
    H200,
    L4,
    PROFILES,
    RTX_3090,
    RTX_4090,
    T4,
    GpuProfile,
    device_line,
    find,
)
from tcl.codegen.devices.named import device_named
from tcl.common.errors import ArgumentError

TRAITS = "_core/include/cupy/_cccl/libcudacxx/cuda/__device/arch_traits.h"


def traits() -> str:
    """NVIDIA's own limits per architecture, in the headers that CuPy brings."""
    spec = importlib.util.find_spec("cupy")
    folders = spec.submodule_search_locations if spec else None
    path = Path(next(iter(folders or ["."]))) / TRAITS
    if not path.exists():
        pytest.skip("CuPy's headers are not here: pip install '.[cuda]'")
    return path.read_text()


@pytest.mark.parametrize("known", PROFILES, ids=lambda p: p.name)
def test_limits_are_those_of_nvidias_headers(known: GpuProfile) -> None:
    text = traits()
    start = text.index(f"arch_traits<arch_id::{known.architecture}>() noexcept\n{{")
    body = text[start : text.index("return", start)]

    def field(name: str) -> int:
        found = re.search(rf"__traits\.{name}\s*=\s*([\d *]+);", body)
        assert found, name
        product = 1
        for factor in found[1].split("*"):
            product *= int(factor)
        return product

    assert field("max_shared_memory_per_multiprocessor") == known.shared_per_multiprocessor
    assert field("max_blocks_per_multiprocessor") == known.blocks_per_multiprocessor
    assert field("max_threads_per_multiprocessor") == known.threads_per_multiprocessor
    assert "(__cc >= compute_capability{80}) ? 1024 : 0" in text
    assert known.shared_reserved == (1024 if known.capability >= (8, 0) else 0)
    assert known.shared_per_block == known.shared_per_multiprocessor - known.shared_reserved


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("H200", H200),
        ("h200", H200),
        ("rtx 4090", RTX_4090),
        ("RTX-3090", RTX_3090),
        ("NVIDIA GeForce RTX 4090", RTX_4090),
        ("nvidia_a100", A100),
        ("sm_75", T4),
        ("sm_89", RTX_4090),
        ("SM90", H100),
        ("sm_90a", replace(H100, specific=True)),
    ],
)
def test_names(name: str, expected: GpuProfile) -> None:
    assert device_named(name) == expected


def test_architectures() -> None:
    assert [p.architecture for p in PROFILES] == [
        *("sm_75", "sm_80", "sm_86", "sm_89", "sm_89", "sm_90", "sm_90", "sm_100", "sm_120")
    ]
    assert device_named("sm_100a").architecture == "sm_100a"


@pytest.mark.parametrize(
    "name", ["H20", "sm_70", "sm_80a", "", "cuda:", "cuda:x", "cuda:-1", "H200 NVL 2"]
)
def test_unknown_names(name: str) -> None:
    assert find(name) is None


def attributes_of(known: GpuProfile, **others: int) -> dict[str, int]:
    return {
        "MultiProcessorCount": known.multiprocessors,
        "MaxThreadsPerMultiProcessor": known.threads_per_multiprocessor,
        "MaxBlocksPerMultiprocessor": known.blocks_per_multiprocessor,
        "MaxSharedMemoryPerMultiprocessor": known.shared_per_multiprocessor,
        "MaxSharedMemoryPerBlockOptin": known.shared_per_block,
        "L2CacheSize": known.l2_bytes,
        "MaxRegistersPerMultiprocessor": 65536,
        "MaxThreadsPerBlock": 1024,
        "WarpSize": 32,
        "ClockRate": 1_980_000,
        "GlobalMemoryBusWidth": 5120,
        "MemoryClockRate": 2_619_000,
    } | others


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("NVIDIA H200", H200),
        ("NVIDIA H100 80GB HBM3", H100),
        ("NVIDIA A100-SXM4-80GB", A100),
        ("Tesla T4", T4),
        ("NVIDIA GeForce RTX 4090", RTX_4090),
        ("NVIDIA L4", L4),
    ],
)
def test_known_devices(title: str, known: GpuProfile) -> None:
    """Peaks are the data sheet's, all else what the device says."""
    found = device_line(title, known.capability, attributes_of(known, L2CacheSize=60 << 20))
    assert found == replace(known, name=title, l2_bytes=60 << 20)


def test_other_devices() -> None:
    """An L40 is no L4, nor is a cut-down H100 an H100: peaks follow from clocks and widths."""
    other = attributes_of(L4, MultiProcessorCount=142, ClockRate=2_490_000)
    found = device_line("NVIDIA L40", (8, 9), other)
    assert found.float32_flops == pytest.approx(90.5e12, rel=0.01)
    assert found.tensor_flops == pytest.approx(181e12, rel=0.01)
    fewer = device_line("NVIDIA H100 PCIe", (9, 0), attributes_of(H100, MultiProcessorCount=114))
    assert fewer.float32_flops == pytest.approx(2 * 128 * 114 * 1.98e9)
    assert fewer.memory_bytes_per_second == pytest.approx(3.35e12, rel=0.01)
    later = device_line("NVIDIA Thor", (11, 0), attributes_of(H100, MultiProcessorCount=20))
    assert later.architecture == "sm_110"
    assert later.multiprocessors == 20


def test_too_old_a_device() -> None:
    with pytest.raises(ArgumentError, match=r"compute capability 7.0; 7.5 is the minimum"):
        device_line("Tesla V100-SXM2-16GB", (7, 0), attributes_of(A100))


def test_why_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is too old for CuPy says so, and is not taken for none."""

    def cupy_that(count: Callable[[], int]) -> Any:
        runtime = SimpleNamespace(getDeviceCount=count)
        return lambda what="": SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))

    def refuse() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    for count, reason in (
        (lambda: 0, r"no device cuda:1 here; CuPy finds no GPU"),
        (lambda: 1, r"no device cuda:1 here; the last is cuda:0"),
        (refuse, r"no device cuda:1 here; CuPy finds no driver for it: .*version is insufficient"),
    ):
        monkeypatch.setattr("tcl.codegen.devices.gpu.cupy", cupy_that(count))
        for asked in (lambda: device_named("cuda:1"), lambda: target("cuda:1", 1)):
            with pytest.raises(ArgumentError, match=reason):
                asked()
