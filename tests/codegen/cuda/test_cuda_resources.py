"""What kernels take, and occupancy: against the CUDA toolkit's own calculation."""

from __future__ import annotations

import importlib.metadata
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.compile import Resources, occupancy, read_resources
from tcl.codegen.devices.gpu import A100, H200, PROFILES, T4, GpuProfile
from tcl.codegen.devices.occupancy import Occupancy

ORACLE = """\
#include <cstddef>
#include <cstring>
#include "cuda_occupancy.h"
#include <cstdio>
int main() {
    cudaOccDeviceProp device;
    cudaOccFuncAttributes kernel;
    cudaOccDeviceState state;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.numBlockBarriers = 1;
    device.numSms = 1;
    device.warpSize = 32;
    device.maxThreadsPerBlock = kernel.maxThreadsPerBlock = 1024;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.sharedMemPerBlock = 48 * 1024;
    int threads, fixed;
    size_t dynamic;
    while (scanf("%d %d %d %zu %zu %zu %d %d %d %zu", &device.computeMajor, &device.computeMinor,
                 &device.maxThreadsPerMultiprocessor, &device.sharedMemPerMultiprocessor,
                 &device.sharedMemPerBlockOptin, &device.reservedSharedMemPerBlock,
                 &threads, &kernel.numRegs, &fixed, &dynamic) == 10) {
        kernel.sharedSizeBytes = fixed;
        kernel.maxDynamicSharedSizeBytes = dynamic;
        cudaOccResult found;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
            &found, &device, &kernel, &state, threads, dynamic);
        unsigned limits = found.limitingFactors;
        if (error) printf("error %d\\n", error);
        else printf("%d %u\\n", found.activeBlocksPerMultiprocessor, limits & 15);
    }
}
"""
FACTORS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8}


def header() -> Path:
    """NVIDIA's calculation, in the headers of a wheel."""
    try:
        files = importlib.metadata.files("nvidia-cuda-runtime") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "cuda_occupancy.h":
            return Path(str(file.locate()))
    pytest.skip("cuda_occupancy.h is not here: pip install nvidia-cuda-runtime")


def launch_of(threads: int, shared: int) -> Launch:
    return Launch("kernel", 1, threads, shared, ())


def taking(registers: int, shared: int = 0) -> Resources:
    return Resources("kernel", registers, shared, 0, 0, 0)


def test_occupancy_is_nvidias(tmp_path: Path) -> None:
    """On 4,000 random kernels: blocks, and what limits them."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "oracle.cpp").write_text(ORACLE)
    program = str(tmp_path / "oracle")
    include = f"-I{header().parent}"
    subprocess.run([compiler, "-w", include, "oracle.cpp", "-o", program], cwd=tmp_path, check=True)
    rng = random.Random(5)
    cases: list[tuple[GpuProfile, int, int, int, int]] = []
    for _ in range(4000):
        known = rng.choice(PROFILES)
        threads = rng.choice([rng.randint(1, 1100), 32 * rng.randint(1, 32)])
        registers = rng.choice([rng.randint(1, 255), rng.randint(16, 64)])
        fixed = rng.choice([0, 0, rng.randint(1, 4096)])
        dynamic = rng.choice([0, rng.randint(1, 240 << 10), rng.randint(1, 16 << 10)])
        cases.append((known, threads, registers, fixed, dynamic))
    lines = [
        f"{p.capability[0]} {p.capability[1]} {p.threads_per_multiprocessor} "
        f"{p.shared_per_multiprocessor} {p.shared_per_block} {p.shared_reserved} "
        f"{threads} {registers} {fixed} {dynamic}\n"
        for p, threads, registers, fixed, dynamic in cases
    ]
    done = subprocess.run(
        [program], input="".join(lines), capture_output=True, text=True, check=True
    )
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        known, threads, registers, fixed, dynamic = case
        found = occupancy(taking(registers, fixed), launch_of(threads, dynamic), known)
        assert f"{found.blocks} {sum(FACTORS[name] for name in found.limits)}" == line, case


def test_examples() -> None:
    """By hand: 64 warps of 32 registers fill an A100; 100 KB twice do not fit its 164 KB."""
    assert occupancy(taking(32), launch_of(256, 0), A100) == Occupancy(
        8, 64, 1.0, ("warps", "registers")
    )
    assert occupancy(taking(32), launch_of(256, 100 << 10), A100) == Occupancy(
        1, 8, 0.125, ("shared memory",)
    )
    assert occupancy(taking(128), launch_of(256, 0), H200).limits == ("registers",)
    assert occupancy(taking(16), launch_of(32, 0), T4) == Occupancy(16, 16, 0.5, ("blocks",))


def test_what_cannot_be_launched() -> None:
    assert occupancy(taking(255), launch_of(512, 0), H200).blocks == 0
    assert occupancy(taking(32), launch_of(256, 228 << 10), H200).limits == ("shared memory",)
    assert occupancy(taking(32), launch_of(1025, 0), H200) == Occupancy(0, 0, 0.0, ("warps",))


LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
ptxas         .     504 bytes stack frame, 988 bytes spill stores, 996 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 520 bytes cumulative stack size
ptxas info    : Compile time = 74.914 ms
ptxas info    : Function properties for _Z6helperf
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 103 registers, used 1 barriers, 256 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 63.380 ms
"""


def test_a_log_is_read() -> None:
    assert list(read_resources(LOG)) == [
        Resources("second", 64, 0, 988, 996, 520),
        Resources("first", 103, 256, 0, 0, 0),
    ]
