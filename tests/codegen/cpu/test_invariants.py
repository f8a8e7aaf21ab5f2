"""Kernels in whose innermost loops there is nothing that could be done before them."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import sized_of

from tcl.codegen.cpu.abi import TIGHT
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan

PRODUCT = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
ROWS = "def f(float(N, D) X, float(N) S) -> (O) { O(n, d) = X(n, d) * S(n) }"
OWN = "def f(float(N, D) X, float(N, D) S) -> (O) { O(n, d) = X(n, d) * S(n, d) }"
CHOSEN = "def f(float(N, D) X, int32(D) I) -> (O) { O(n, d) = X(n, I(d)) }"
ROOTS = "def f(float(N, D) X) -> (O) { O(n, d) = X(n, d) * sqrt(float(n)) }"
QUADS = "def f(float(N, 4) X, float(4, 4) R) -> (O) { O(n, i) +=! X(n, j) * R(j, i) }"


@pytest.mark.parametrize(
    ("text", "shapes", "tight"),
    [
        (PRODUCT, [(96, 480), (480, 96)], True),
        (OWN, [(64, 256), (64, 256)], True),
        (ROWS, [(64, 256), (64,)], False),
        (CHOSEN, [(64, 256), (256,)], False),
        (ROOTS, [(64, 256)], False),
        (QUADS, [(5000, 4), (4, 4)], False),
    ],
    ids=["product", "own", "rows", "chosen", "roots", "quads"],
)
def test_what_iterations_share(text: str, shapes: list[tuple[int, ...]], tight: bool) -> None:
    """Quads: all loops but the one over rows are written out, so that it shares the matrix."""
    device = find("Zen 4")
    assert device is not None
    sized = sized_of(text, *(np.empty(shape, "f") for shape in shapes))
    made = plan(sized, MappingOptions("mlp"), device)
    source = emit_program(made.scheduled(), made.target)
    assert (f'"{TIGHT}"' in source.text) == tight
