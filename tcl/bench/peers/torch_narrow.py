"""PyTorch on narrow types: natively where the machine has instructions for them, and as float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from tcl.bench.peers.library import NARROW_FLOATS, exact_blocks, largest_term
from tcl.bench.task import Registry, Values

torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")

narrow = Registry()
form = narrow.form
_PROBED = 192
_HOPELESS = 8.0
"""Times as long as float32, from which on a type is not worth trying: seconds a call, on large
rows."""


def native(tensor: Any) -> Any:
    """The tensor, if torch multiplies its type about as fast as float32 or faster; ``RuntimeError``
    where it does so in plain loops."""
    if tensor.device.type == "cpu" and (ratio := _slowness(tensor.dtype)) > _HOPELESS:
        raise RuntimeError(f"{ratio:.0f} times as slow as float32 here: not tried")
    return tensor


@cache
def _slowness(type_: Any) -> float:
    """A small product's time over that of the same in float32; 1 for types that BLAS knows."""
    if type_ in (torch.float32, torch.float64):
        return 1.0
    multiply = torch.mm if type_.is_floating_point else torch._int_mm
    times = []
    for kind, product in ((type_, multiply), (torch.float32, torch.mm)):
        a = torch.ones(_PROBED, _PROBED, dtype=kind)
        product(a, a)
        begin = time.perf_counter()
        product(a, a)
        times.append(time.perf_counter() - begin)
    return times[0] / times[1]


def rounded(x: Values, product: Callable[..., Any], a: Any, b: Any, *shape: int) -> Any:
    """The product in float32, rounded once."""
    total, out = torch.empty(shape), x.empty(*shape)
    wide = torch.empty(a.shape), torch.empty(b.shape)

    def run() -> Any:
        return out.copy_(product(wide[0].copy_(a), wide[1].copy_(b), out=total))

    return run


form("matmul", name="mm in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, torch.mm, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul", name="bmm in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, torch.bmm, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


@form("convolution", name="conv2d in float32", types=NARROW_FLOATS)
def conv2d_rounded(x: Values) -> Callable[[], Any]:
    return lambda: F.conv2d(x.I.float(), x.W1.float(), x.B.float()).to(x.I.dtype)


# Products of integers, exact.


@form("matmul_int8", name="_int_mm")
def int_mm(x: Values) -> Callable[[], Any]:
    a, b, out = native(x.A), x.B, x.empty(x.sizes.M, x.sizes.N, dtype="int32")
    return lambda: torch._int_mm(a, b, out=out)


@form("matmul_uint8", name="_int_mm, shifted")
def int_mm_shifted(x: Values) -> Iterator[Any]:
    """A - 128 is signed, and 128 times the sums of B's columns are missing then."""
    b, out = native(x.B), x.empty(x.sizes.M, x.sizes.N, dtype="int32")
    while True:
        shifted = x.A.bitwise_xor(128).view(torch.int8)
        torch._int_mm(shifted, b, out=out)
        yield out.add_(b.sum(0, dtype=torch.int32), alpha=128)


@form("batch_matmul_int8", name="_int_mm, one by one")
def int_mm_one_by_one(x: Values) -> Iterator[Any]:
    s = x.sizes
    a, b, out = native(x.X), x.Y, x.empty(s.B, s.N, s.K, dtype="int32")
    while True:
        for i in range(s.B):
            torch._int_mm(a[i], b[i], out=out[i])
        yield out


def counted(x: Values, product: Callable[..., Any], a: Any, b: Any, *shape: int) -> Any:
    """The product of integers in blocks that float32 adds up without rounding."""
    cuts = exact_blocks(a.shape[-1], largest_term(str(a.dtype)))
    total, out = torch.empty(shape), x.empty(*shape, dtype="int32")
    first, *others = [(a[..., k], b[..., k, :]) for k in cuts]

    def run() -> Any:
        out.copy_(product(first[0].float(), first[1].float(), out=total))
        for left, right in others:
            out.add_(product(left.float(), right.float(), out=total).to(torch.int32))
        return out

    return run


form("matmul_int8", "matmul_uint8", name="mm in float32")(
    lambda x: counted(x, torch.mm, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul_int8", name="bmm in float32")(
    lambda x: counted(x, torch.bmm, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


@form("convolution_int8", name="conv2d in float32")
def conv2d_counted(x: Values) -> Iterator[Any]:
    s = x.sizes
    cuts = exact_blocks(s.C, s.KH * s.KW * largest_term("int8"))
    out = x.empty(s.N, s.F, s.H - s.KH + 1, s.W - s.KW + 1, dtype="int32")

    def part(c: slice) -> Any:
        return F.conv2d(x.I[:, c].float(), x.W1[:, c].float())

    while True:
        out.copy_(part(cuts[0]))
        for c in cuts[1:]:
            out.add_(part(c).to(torch.int32))
        yield out


@form("convolution_int8", name="unfold, _int_mm")
def unfold(x: Values) -> Iterator[Any]:
    s = x.sizes
    images = native(x.I)
    height, width = s.H - s.KH + 1, s.W - s.KW + 1
    windows = images.unfold(2, s.KH, 1).unfold(3, s.KW, 1).permute(0, 1, 4, 5, 2, 3)
    columns = torch.empty(s.C * s.KH * s.KW, height * width, dtype=torch.int8)
    into, filters = columns.view(windows.shape[1:]), x.W1.reshape(s.F, -1)
    out = x.empty(s.N, s.F, height * width, dtype="int32")
    while True:
        for n in range(s.N):
            into.copy_(windows[n])
            torch._int_mm(filters, columns, out=out[n])
        yield out.view(s.N, s.F, height, width)
