"""Hand-written modules for the emulator's tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tcl.codegen.common.sites import Site
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import scalar_type

INPUT, OUTPUT, SCRATCH = ir.Role.INPUT, ir.Role.OUTPUT, ir.Role.SCRATCH
SHARED = "extern __shared__ __align__(128) unsigned char shared[];"


def tensor(
    name: str,
    role: ir.Role,
    shape: Iterable[int],
    type_: str = "float32",
    strides: tuple[int, ...] | None = None,
) -> ir.Tensor:
    shape = tuple(shape)
    layout = ir.contiguous(scalar_type(type_), shape, (0,) * len(shape))
    strides = layout.strides if strides is None else strides
    return ir.Tensor(name, role, replace(layout, strides=strides, base=16))


def module(
    source: str,
    tensors: Iterable[ir.Tensor],
    *,
    blocks: int = 1,
    threads: int = 32,
    shared: int = 0,
    sites: tuple[Site, ...] = (),
) -> CudaModule:
    """A module of one kernel named ``kernel``, which takes all tensors."""
    tensors = tuple(tensors)
    launch = Launch("kernel", blocks, threads, shared, tuple(t.name for t in tensors))
    return CudaModule(source, (launch,), tensors, sites)


M, N, K, TILE = 37, 21, 19, 16
MATMUL = f"""
__device__ __forceinline__ float padded(const float* p, int row, int rows, int col, int cols) {{
  return row < rows && col < cols ? p[row * cols + col] : 0.0f;
}}
extern "C" __global__ void __launch_bounds__(256)
kernel(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {{
  {SHARED}
  float* A_tile = reinterpret_cast<float*>(shared);
  float* B_tile = reinterpret_cast<float*>(shared + 2048);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int row = blockIdx.x / 2 * 16 + ty, col = blockIdx.x % 2 * 16 + tx;
  float sum = 0.0f;
  A_tile[ty * 16 + tx] = padded(A, row, {M}, tx, {K});
  B_tile[ty * 16 + tx] = padded(B, ty, {K}, col, {N});
  __syncthreads();
  for (int k = 0; k < {K}; k += 16) {{
    const int now = k / 16 % 2 * 256, next = 256 - now;
    if (k + 16 < {K}) {{
      A_tile[next + ty * 16 + tx] = padded(A, row, {M}, k + 16 + tx, {K});
      B_tile[next + ty * 16 + tx] = padded(B, k + 16 + ty, {K}, col, {N});
    }}
#pragma unroll
    for (int i = 0; i < 16; ++i)
      sum = fmaf(A_tile[now + ty * 16 + i], B_tile[now + i * 16 + tx], sum);
    __syncthreads();
  }}
  if (row < {M} && col < {N}) C[row * {N} + col] = sum;
}}
"""


def matmul(source: str = MATMUL, shared: int = 4096) -> CudaModule:
    """Tiled, with double buffers in shared memory."""
    tensors = (tensor("A", INPUT, (M, K)), tensor("B", INPUT, (K, N)), tensor("C", OUTPUT, (M, N)))
    return module(source, tensors, blocks=6, threads=256, shared=shared)


ROWS, COLUMNS = 5, 640
REDUCE = f"""
struct alignas(16) float4 {{ float x, y, z, w; }};
extern "C" __global__ void __launch_bounds__(128)
kernel(const float* __restrict__ X, float* __restrict__ Y, float* __restrict__ total) {{
  {SHARED}
  float* parts = reinterpret_cast<float*>(shared);
  const float4* row = reinterpret_cast<const float4*>(X + blockIdx.x * {COLUMNS});
  float sum = 0.0f;
  for (int i = threadIdx.x; i < {COLUMNS // 4}; i += 128) {{
    float4 v = row[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }}
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {{
    sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    Y[blockIdx.x] = sum;
    atomicAdd(total, sum);
  }}
}}
"""


def reduction(source: str = REDUCE) -> CudaModule:
    """Row sums by shuffles and shared memory, and their total by an atomic addition."""
    tensors = (
        tensor("X", INPUT, (ROWS, COLUMNS)),
        tensor("Y", OUTPUT, (ROWS,)),
        tensor("total", OUTPUT, (1,)),
    )
    return module(source, tensors, blocks=ROWS, threads=128, shared=16)


STEPS = 7
PIPELINE = f"""
extern "C" __global__ void __launch_bounds__(64)
kernel(const float* __restrict__ X, float* __restrict__ Y) {{
  {SHARED}
  float* stages = reinterpret_cast<float*>(shared);
  const int t = threadIdx.x;
#pragma unroll
  for (int s = 0; s < 2; ++s) {{
    copy_async<16>(stages + s * 256 + 4 * t, X + s * 256 + 4 * t, true);
    commit_copies();
  }}
  float sum = 0.0f;
  for (int s = 0; s < {STEPS}; ++s) {{
    wait_copies<1>();
    __syncthreads();
    if (s + 2 < {STEPS})
      copy_async<16>(stages + (s + 2) % 3 * 256 + 4 * t, X + (s + 2) * 256 + 4 * t, s != 3);
    commit_copies();
    for (int i = 0; i < 4; ++i) sum += stages[s % 3 * 256 + (t + i * 64 + 1) % 256];
  }}
  Y[t] = sum;
}}
"""


def pipeline(source: str = PIPELINE) -> CudaModule:
    """Sums through three buffers that are filled asynchronously; step 5 is zeros."""
    tensors = (tensor("X", INPUT, (STEPS, 256)), tensor("Y", OUTPUT, (64,)))
    return module(source, tensors, threads=64, shared=3 * 1024)


MMA_HALF = f"""
extern "C" __global__ void __launch_bounds__(32)
kernel(const unsigned short* __restrict__ A, const unsigned short* __restrict__ B,
       float* __restrict__ C) {{
  {SHARED}
  unsigned short* A_tile = reinterpret_cast<unsigned short*>(shared);
  unsigned short* B_tile = reinterpret_cast<unsigned short*>(shared + 512);
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  for (int i = lane; i < 256; i += 32) A_tile[i] = A[i];
  for (int i = lane; i < 128; i += 32) B_tile[i] = B[i];
  __syncthreads();
  unsigned a[4], b[2];
  load_matrix_x4(a, A_tile + (lane % 16) * 16 + lane / 16 * 8);
  load_matrix_x2_trans(b, B_tile + (lane % 16) * 8);
  float d[4] = {{0.0f, 1.0f, 2.0f, 3.0f}};
  mma_m16n8k16_f16(d, a, b);
  C[g * 8 + 2 * t] = d[0];
  C[g * 8 + 2 * t + 1] = d[1];
  C[(g + 8) * 8 + 2 * t] = d[2];
  C[(g + 8) * 8 + 2 * t + 1] = d[3];
}}
"""


def mma_half(type_: str = "float16", source: str = MMA_HALF) -> CudaModule:
    """One product of 16-bit floats, with its fragments taken from shared memory."""
    name = "mma_m16n8k16_bf16" if type_ == "bfloat16" else "mma_m16n8k16_f16"
    tensors = (
        tensor("A", INPUT, (16, 16), type_),
        tensor("B", INPUT, (16, 8), type_),
        tensor("C", OUTPUT, (16, 8)),
    )
    return module(source.replace("mma_m16n8k16_f16", name), tensors, shared=768)


MMA_TF32 = """
extern "C" __global__ void __launch_bounds__(32)
kernel(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = __float_as_uint(A[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
  for (int i = 0; i < 2; ++i) b[i] = __float_as_uint(B[(t + i * 4) * 8 + g]);
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  mma_m16n8k8_tf32(d, a, b);
  for (int i = 0; i < 4; ++i) C[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}
"""


def mma_tf32() -> CudaModule:
    """One product of float32 as tf32, with its fragments taken from global memory."""
    tensors = (
        tensor("A", INPUT, (16, 8)),
        tensor("B", INPUT, (8, 8)),
        tensor("C", OUTPUT, (16, 8)),
    )
    return module(MMA_TF32, tensors)
