"""What peers that are libraries share: their forms come from a registry."""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tcl.bench.arrays import Array
from tcl.bench.task import Builder, Form, Registry, Task, as_tuple, values


class Library:
    """A contender whose forms are those of a registry."""

    def __init__(self, registry: Registry, threads: int) -> None:
        self.registry = registry
        self.threads = threads

    def own(self, array: Array) -> Any:
        """An input as the library has its arrays."""
        return array

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], Form]]]:
        """The registered forms."""
        arrays = {name: self.own(array) for name, array in inputs.items()}
        for name, builder in self.registry.builders(task.entry):
            yield name, partial(self.made, builder, arrays, task.sizes)

    def made(self, builder: Builder, arrays: dict[str, Any], sizes: Mapping[str, int]) -> Form:
        """The form that a builder makes of inputs."""
        return self.form(builder(values(arrays, sizes)))

    def form(self, run: Callable[[], Any]) -> Form:
        """The form that this function computes."""
        return Form(run, lambda: [np.asarray(r) for r in as_tuple(run())], self.threads)

    def facts(self, task: Task) -> dict[str, Any]:
        """Nothing."""
        return {}


def add_shared(forms: Registry, product: str) -> None:
    """Add the formulas that mean the same with the arrays of any library, which calls a matrix
    product ``product``."""
    formula = forms.formula
    formula("matmul", name=product)(lambda A, B: A @ B)
    formula("tmm", name=product)(lambda A, B: A @ B.T)
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
