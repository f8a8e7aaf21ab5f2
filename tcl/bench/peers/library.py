"""What peers that are libraries share: their forms come from a registry."""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tcl.bench.task import Array, Builder, PeerForm, Registry, Task, Values, as_tuple, values
from tcl.tuner.measure.placement import aligned

NARROW_FLOATS = ("float16", "bfloat16")
IN_FLOAT32 = "in float32"
"""The name of forms that make narrow numbers wider in each call, and do the work in float32."""


class PeerLibrary:
    """A contender whose forms are those of a registry."""

    def __init__(self, registry: Registry, threads: int) -> None:
        self.registry = registry
        self.threads = threads

    def own(self, array: Array) -> Any:
        """An input as the library has its arrays."""
        return array

    def array(self, found: Any) -> Array:
        """A result as NumPy has its arrays."""
        return np.asarray(found)

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        arrays = {name: self.own(array) for name, array in inputs.items()}
        given = values(arrays, task.sizes, self.maker(task, inputs))
        for name, builder in self.registry.builders(task.entry, element_type(inputs)):
            yield name, partial(self.made, builder, arrays, given)

    def maker(self, task: Task, inputs: Mapping[str, Array]) -> Callable[..., Any]:
        """``empty`` of ``Values``."""
        kinds = (a.dtype for a in inputs.values() if a.dtype.name in ("float64", *NARROW_FLOATS))
        kind = next(kinds, np.dtype(np.float32))

        def empty(*shape: int, dtype: str | None = None) -> Any:
            return self.own(aligned(shape, dtype or kind, task.past))

        return empty

    def made(self, builder: Builder, arrays: dict[str, Any], given: Values) -> PeerForm:
        """The form that a builder makes of inputs."""
        return self.form(builder(given))

    def form(self, run: Callable[[], Any]) -> PeerForm:
        """The form that this function computes."""
        return PeerForm(run, lambda: [self.array(r) for r in as_tuple(run())], self.threads)

    def facts(self, task: Task) -> dict[str, Any]:
        """Nothing."""
        return {}


def element_type(inputs: Mapping[str, Array]) -> str:
    """The name of the type of the first input."""
    return next(iter(inputs.values())).dtype.name


def exact_blocks(depth: int, largest: int) -> list[slice]:
    """Ranges of a sum's ``depth`` terms, each so short that float32 adds it up without rounding,
    if no term is larger than ``largest``."""
    step = max(1, (1 << 24) // largest)
    return [slice(k, min(depth, k + step)) for k in range(0, depth, step)]


def largest_term(type_: str) -> int:
    """The largest product of a number of this type, of 8 bits, and a signed one of 8 bits."""
    return (255 if "uint8" in type_ else 128) * 128


def add_shared(forms: Registry, product: str) -> None:
    """Add the formulas that mean the same with the arrays of any library, which calls a matrix
    product ``product``."""
    formula = forms.formula
    formula("matmul", name=product)(lambda A, B: A @ B)
    formula("tmm", name=product)(lambda A, B: A @ B.T)
    formula("mtm", name=product)(lambda A, B: A.T @ B)
    formula("c3", name=product)(lambda I, W: I @ W.T)
    formula("kronecker3_1", name=product)(lambda W2, X: X @ W2.T)
    formula("row_sum", name="sum")(lambda I: I.sum(1))
    formula("column_sum", name="sum")(lambda I: I.sum(0))

    @formula("moments", name="sums")
    def moments(I: Any) -> Any:
        mean = I.sum(1) / I.shape[1]
        return mean, (I * I).sum(1) / I.shape[1] - mean * mean

    @formula("stencil", name="slices")
    def stencil(I: Any) -> Any:
        mid = I[1:-1, 1:-1] + I[:-2, 1:-1] + I[2:, 1:-1]
        return 0.2 * (mid + I[1:-1, :-2] + I[1:-1, 2:])


def add_products_of_integers(forms: Registry, wide: Any, total: Any, cast: Any) -> None:
    """Add the products of integers as products of floating-point numbers that are exact.

    ``wide`` and ``total`` are the library's float32 and int32, ``cast(array, type)`` converts.
    """

    def product(a: Any, b: Any) -> Any:
        parts = [
            cast(cast(a[..., k], wide) @ cast(b[..., k, :], wide), total)
            for k in exact_blocks(a.shape[-1], largest_term(str(a.dtype)))
        ]
        return sum(parts[1:], parts[0])

    forms.formula("matmul_int8", "matmul_uint8", name=IN_FLOAT32)(lambda A, B: product(A, B))
    forms.formula("batch_matmul_int8", name=IN_FLOAT32)(lambda X, Y: product(X, Y))
