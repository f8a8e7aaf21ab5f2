"""Triton: products of matrices, softmax and layer norm, as its users write them by hand, each with
a few settings of which the fastest counts. In a rehearsal its interpreter runs them."""

# Compile-time constants of kernels are in capitals, as Triton's users have them.
# ruff: noqa: N803
# Triton would look up whatever types their other parameters had.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.peers.torch_eager import TorchBase, torch
from tcl.bench.task import Array, Task

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when functions are decorated
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")

_PRODUCTS = ("matmul", "tmm", "mtm", "c3")
_GROUP = 8
"""Rows of blocks that are worked on together, so that their operands stay in the L2."""
_BLOCKS = {
    "float32": ((128, 128, 16, 8, 3), (64, 128, 16, 4, 3), (64, 64, 16, 4, 3)),
    "16 bits": ((128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 4)),
}
"""Rows, columns and depth of a block, warps and stages."""
_WARPS = (4, 8)


def _product_kernel(
    a, b, c, m, n, k, am, ak, bk, bn,
    STEPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    group = program // (GROUP * across)
    first = group * GROUP
    rows_of_group = tl.minimum(down - first, GROUP)
    within = program % (GROUP * across)
    rows = (first + within % rows_of_group) * M + tl.arange(0, M)
    columns = (within // rows_of_group) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    left = a + (rows % m)[:, None] * am + depth[None, :] * ak
    right = b + depth[:, None] * bk + (columns % n)[None, :] * bn
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(STEPS):
        inside = depth < k - step * K
        x = tl.load(left, mask=inside[None, :], other=0.0)
        y = tl.load(right, mask=inside[:, None], other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        left += K * ak
        right += K * bk
    where = c + rows[:, None] * n + columns[None, :]
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(where, total.to(c.dtype.element_ty), mask=mask)


def _softmax_kernel(source, target, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(source + row * width + columns, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(target + row * width + columns, powers / tl.sum(powers, axis=0), mask=mask)


def _layernorm_kernel(
    source, gamma, beta, epsilon, target, means, variances, width, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(source + row * width + columns, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / width
    apart = tl.where(mask, values - mean, 0.0)
    variance = tl.sum(apart * apart, axis=0) / width
    scaled = apart / tl.sqrt(variance + tl.load(epsilon))
    weight = tl.load(gamma + columns, mask=mask)
    made = scaled * weight + tl.load(beta + columns, mask=mask)
    tl.store(target + row * width + columns, made, mask=mask)
    tl.store(means + row, mean)
    tl.store(variances + row, variance)


_product = triton.jit(_product_kernel)
_softmax = triton.jit(_softmax_kernel)
_layernorm = triton.jit(_layernorm_kernel)


class Triton(TorchBase):
    """The contender."""

    def versions(self) -> dict[str, str]:
        """Of Triton."""
        return {"triton": str(triton.__version__)}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """One per setting."""
        tensors = self.all_own(inputs)
        kind = next(iter(tensors.values())).dtype
        if kind == torch.bfloat16 and self.setting.device == "cpu":
            return  # the interpreter multiplies their bits
        if task.entry in _PRODUCTS:
            short = kind != torch.float32
            for block in _BLOCKS["16 bits" if short else "float32"]:
                label = "block {}x{}x{}, {} warps, {} stages".format(*block)
                yield label, partial(self.form, tensors, partial(_matrices, task.entry, block))
        elif task.entry in _ROWS:
            for warps in _WARPS:
                label = f"a row per block, {warps} warps"
                yield label, partial(self.form, tensors, partial(_ROWS[task.entry], warps))


def _matrices(entry: str, block: tuple[int, ...], given: dict[str, Any]) -> Run:
    a, b = (given["A"], given["B"]) if entry != "c3" else (given["I"], given["W"])
    a = a.T if entry == "mtm" else a
    b = b if entry in ("matmul", "mtm") else b.T
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    rows, columns, depth, warps, stages = block
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
    strides, steps = (*a.stride(), *b.stride()), triton.cdiv(k, depth)

    def run() -> Any:
        _product[grid](
            a, b, out, m, n, k, *strides, steps, rows, columns, depth, _GROUP,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    return run


def _softmax_rows(warps: int, given: dict[str, Any]) -> Run:
    source = given["I"]
    out = torch.empty_like(source)
    count, width = source.shape
    block = triton.next_power_of_2(width)

    def run() -> Any:
        _softmax[(count,)](source, out, width, block, num_warps=warps)
        return out

    return run


def _layernorm_rows(warps: int, given: dict[str, Any]) -> Run:
    source = given["I"]
    out, (count, width) = torch.empty_like(source), source.shape
    means, variances = (torch.empty(count, device=source.device) for _ in range(2))
    block = triton.next_power_of_2(width)
    weights = given["gamma"], given["beta"], given["eps"]

    def run() -> Any:
        _layernorm[(count,)](source, *weights, out, means, variances, width, block, num_warps=warps)
        return out

    return run


_ROWS = {"softmax_twice": _softmax_rows, "layernorm": _layernorm_rows}
make = Triton
