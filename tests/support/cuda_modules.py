"""Modules for NVRTC that were written by hand, and whether they can be compiled here."""

from __future__ import annotations

import pytest

from tcl.codegen.common.sites import Site
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.devices.cupy_driver import nvrtc
from tcl.codegen.loopir import ir
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import FLOAT32, INT32, ScalarType

ADD = """\
extern "C" __global__ void __launch_bounds__(256) add(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < 1000)
        C[i] = A[i] + B[i];
}
"""

REVERSE = """\
extern "C" __global__ void __launch_bounds__(64) reverse(
    const float* __restrict__ A, float* __restrict__ C)
{
    extern __shared__ __align__(128) unsigned char shared[];
    float* A_tile = reinterpret_cast<float*>(shared);
    __shared__ float own[64];
    A_tile[threadIdx.x] = A[threadIdx.x];
    own[threadIdx.x] = A[64 + threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = A_tile[63 - threadIdx.x] + own[threadIdx.x ^ 1];
}
"""

SPILLING = """\
extern "C" __global__ void __launch_bounds__(1024) spilling(
    const float* __restrict__ A, float* __restrict__ C)
{
    float values[128];
    #pragma unroll
    for (int i = 0; i < 128; ++i)
        values[i] = A[i * 1024 + threadIdx.x];
    #pragma unroll 1
    for (int round = 0; round < 10; ++round)
        #pragma unroll
        for (int i = 0; i < 128; ++i)
            values[i] = fmaf(values[i], values[(i * 7 + 3) % 128], 1.0f);
    #pragma unroll
    for (int i = 0; i < 128; ++i)
        C[i * 1024 + threadIdx.x] = values[i];
}
"""

GATHER = """\
extern "C" __global__ void __launch_bounds__(256) gather(
    const float* __restrict__ A, const int* __restrict__ I, float* __restrict__ C,
    unsigned long long* error)
{
    const int i = threadIdx.x;
    const int at = I[i];
    if (at < 0 || at >= 10) {
        if (atomicCAS(&error[0], 0ull, 1ull) == 0ull)
            error[1] = (unsigned long long)(long long)at;
    } else {
        C[i] = A[at];
    }
}
"""


def tensor(name: str, *shape: int, dtype: ScalarType = FLOAT32) -> ir.Tensor:
    """A tensor whose elements lie side by side: C is an output, others are inputs."""
    role = ir.Role.OUTPUT if name == "C" else ir.Role.INPUT
    return ir.Tensor(name, role, ir.contiguous(dtype, shape, (0,) * len(shape)))


ADDING = CudaModule(
    ADD,
    (Launch("add", 4, 256, 0, ("A", "B", "C")),),
    (tensor("A", 1000), tensor("B", 1000), tensor("C", 1000)),
)
REVERSING = CudaModule(
    REVERSE,
    (Launch("reverse", 1, 64, 256, ("A", "C")),),
    (tensor("A", 128), tensor("C", 64)),
)
SPILL = CudaModule(
    SPILLING,
    (Launch("spilling", 1, 1024, 0, ("A", "C")),),
    (tensor("A", 128, 1024), tensor("C", 128, 1024)),
)
GATHERING = CudaModule(
    GATHER,
    (Launch("gather", 1, 256, 0, ("A", "I", "C")),),
    (tensor("A", 10), tensor("I", 256, dtype=INT32), tensor("C", 256)),
    (Site("A", 0, 0, 10, False),),
)


def _missing() -> str:
    try:
        nvrtc()
    except ArgumentError as error:
        return str(error)
    return ""


needs_nvrtc = pytest.mark.skipif(bool(_missing()), reason=_missing() or "NVRTC is here")
