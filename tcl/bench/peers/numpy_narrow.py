"""NumPy on types that BLAS does not know: made float32 in each call, where the sums are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tcl.bench.peers.library import NARROW_FLOATS, exact_blocks, largest_term
from tcl.bench.task import Array, Registry, Values

narrow = Registry()
form = narrow.form
F32 = np.float32


def widened(product: Callable[..., Any], *arrays: Array) -> Callable[..., Array]:
    """What calls ``product`` with the arrays in float32, into a float32 ``out``."""
    wide = [np.empty(a.shape, F32) for a in arrays]

    def run(out: Array) -> Array:
        for source, target in zip(arrays, wide, strict=True):
            np.copyto(target, source)
        return np.asarray(product(*wide, out=out))

    return run


def rounded(x: Values, a: Array, b: Array, *shape: int) -> Callable[[], Any]:
    """The product in float32, rounded once."""
    product, total, out = widened(np.matmul, a, b), np.empty(shape, F32), x.empty(*shape)

    def run() -> Any:
        np.copyto(out, product(total), casting="same_kind")
        return out

    return run


form("matmul", name="in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul", name="in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


def counted(x: Values, a: Array, b: Array, *shape: int) -> Callable[[], Any]:
    """The product of integers in blocks that float32 adds up without rounding."""
    cuts = exact_blocks(a.shape[-1], largest_term(a.dtype.name))
    parts = [widened(np.matmul, a[..., k], b[..., k, :]) for k in cuts]
    total, out = np.empty(shape, F32), x.empty(*shape, dtype="int32")

    def run() -> Any:
        np.copyto(out, parts[0](total), casting="unsafe")
        for part in parts[1:]:
            np.add(out, part(total), out=out, casting="unsafe")
        return out

    return run


form("matmul_int8", "matmul_uint8", name="in float32")(
    lambda x: counted(x, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul_int8", name="in float32")(
    lambda x: counted(x, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


@form("convolution", name="im2col in float32", types=NARROW_FLOATS)
@form("convolution_int8", name="im2col in float32")
def im2col_widened(x: Values) -> Iterator[Any]:
    s = x.sizes
    windows = sliding_window_view(x.I, (s.KH, s.KW), axis=(-2, -1))
    windows = np.moveaxis(windows, (-2, -1), (-4, -3))  # N, C, KH, KW, HO, WO
    height, width = windows.shape[-2:]
    columns = np.empty((s.C, s.KH, s.KW, height, width), F32)
    flat, total = columns.reshape(-1, height * width), np.empty((s.F, height * width), F32)
    filters = np.empty((s.F, flat.shape[0]), F32)
    exact = x.W1.dtype.name == "int8"
    out = x.empty(s.N, s.F, height, width, dtype="int32" if exact else None)
    cuts = exact_blocks(flat.shape[0], largest_term("int8")) if exact else [slice(None)]
    while True:
        np.copyto(filters, x.W1.reshape(filters.shape))
        for n in range(s.N):
            np.copyto(columns, windows[n])
            image = out[n].reshape(total.shape)
            for i, k in enumerate(cuts):
                np.matmul(filters[:, k], flat[k], out=total)
                if i:
                    np.add(image, total, out=image, casting="unsafe")
                elif exact:
                    np.copyto(image, total, casting="unsafe")
                else:
                    np.add(total, x.B.astype(F32)[:, None], out=total)
                    np.copyto(image, total, casting="same_kind")
        yield out
