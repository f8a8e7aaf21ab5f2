"""What ``opt_einsum.contract(..., backend="tcl")`` wants of a backend beside ``einsum``.

opt_einsum imports the module of the backend's name, ``tcl``, and takes these functions from it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcl.common.errors import ArgumentError
from tcl.common.shown import shown
from tcl.einsums.einsum import einsum


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``numpy.tensordot``, by ``einsum``: the sum of products over some dimensions of both.

    ``axes``: a number N, for the last N dimensions of ``a`` and the first N of ``b``; or those of
    ``a`` and those of ``b``, each one or several, which go together in their order. The result
    has the others of ``a``, then those of ``b``. Raises ``ArgumentError``.
    """
    left, right = np.ndim(a), np.ndim(b)
    of_a, of_b = _axes(axes, left, right)
    first = list(range(left))
    second = list(range(left, left + right))
    for one, other in zip(of_a, of_b, strict=True):
        second[other] = one
    result = [n for n in first if n not in of_a] + [n for n in second if n >= left]
    return einsum(a, first, b, second, result)


def _axes(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    """The dimensions of both that are summed over, counted from the first."""
    refused = ArgumentError(
        f"tensordot: axes={shown(axes)} has to be how many dimensions are summed over, or which of "
        f"the {left} of a and, as many, which of the {right} of b"
    )
    try:
        if isinstance(axes, Sequence):
            one, other = (_axis_list(each) for each in axes)
        else:
            count = operator.index(axes)
            if not 0 <= count <= min(left, right):
                raise refused
            one, other = list(range(left - count, left)), list(range(count))
    except (TypeError, ValueError):
        raise refused from None
    for found, rank in ((one, left), (other, right)):
        if not all(-rank <= axis < rank for axis in found):
            raise refused
        found[:] = [axis % rank for axis in found]
        if len(set(found)) < len(found) or len(one) != len(other):
            raise refused
    return one, other


def _axis_list(axes: Any) -> list[int]:
    return [operator.index(axis) for axis in axes] if hasattr(axes, "__iter__") else [int(axes)]


def transpose(a: Any, axes: Sequence[int]) -> Any:
    """The array with its dimensions in this order, as its own library does it."""
    return (a.permute if hasattr(a, "permute") else a.transpose)(tuple(axes))
