"""Random inputs of a def for given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tcl.arrays.annotations import read_annotations
from tcl.arrays.arguments import Array, allocated
from tcl.arrays.index_values import fitting
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import FLOAT64
from tcl.grammar.tree.checked import CheckedDef, Tensor


def random_inputs(
    checked: CheckedDef, sizes: Mapping[str, int], seed: int = 0
) -> tuple[Array, ...]:
    """One array per input: floats from the standard normal distribution, integers from 0 to 7
    (those of them that fit, of an index tensor), bools by coin, or what the def's ``# values``
    comments say. Equal seeds give equal arrays."""
    rng = np.random.default_rng(seed)
    values = dict(read_annotations(checked).values)
    if any(t.type.is_integral and t.name not in values for t in checked.inputs):
        fit = fitting(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})
        for name, (low, high) in fit.items():
            if low <= 7 and high >= 0:
                values.setdefault(name, (str(max(low, 0)), str(min(high, 7) + 1)))

    def made(tensor: Tensor) -> Array:
        what, limits = f"input '{tensor.name}' of {checked.name}", values.get(tensor.name)
        shape = input_shape(tensor, sizes)
        fill = partial(_array, rng, tensor, limits, sizes)
        return allocated(what, tensor, shape, sizes, fill)

    return tuple(map(made, checked.inputs))


def input_shape(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input for these sizes."""
    return tuple(sizes[d] if isinstance(d, str) else d for d in tensor.dims or ())


def _array(
    rng: np.random.Generator,
    tensor: Tensor,
    limits: tuple[str, str] | None,
    sizes: Mapping[str, int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    if tensor.type.is_float:
        return _floats(rng, tensor, shape, limits, sizes).astype(dtype, copy=False)
    if tensor.type.is_bool and limits is None:
        return rng.integers(0, 2, shape, dtype=np.uint8).astype(np.bool_)
    low, high = (0, 8)
    if limits is not None:
        low, high = (int(_limit(tensor, text, sizes)) for text in limits)
    if high <= low:
        raise ArgumentError(
            f"there is no value for '{tensor.name}' from {low} up to, and not including, {high}; "
            f"choose other sizes, or mend its comment '# values {tensor.name}: ...'"
        )
    return rng.integers(low, high, shape, dtype=np.int64).astype(dtype)


def _floats(
    rng: np.random.Generator,
    tensor: Tensor,
    shape: tuple[int, ...],
    limits: tuple[str, str] | None,
    sizes: Mapping[str, int],
) -> Array:
    dtype: type[np.float32] | type[np.float64]
    dtype = np.float64 if tensor.type == FLOAT64 else np.float32
    if limits is None:
        return np.asarray(rng.standard_normal(shape, dtype))
    low, high = (_limit(tensor, text, sizes) for text in limits)
    return np.asarray(low + (high - low) * rng.random(shape, dtype), dtype)


def _limit(tensor: Tensor, text: str, sizes: Mapping[str, int]) -> float:
    if text in sizes:
        return sizes[text]
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(
            f"the comment '# values {tensor.name}' names {text}, which is no number and no size"
        ) from None
