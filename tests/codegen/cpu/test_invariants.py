"""Kernels in whose innermost loops there is nothing that could be done before them."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import sized_of

from tcl.codegen.cpu.abi import TIGHT
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan

PRODUCT = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
ROWS = "def f(float(N, D) X, float(N) S) -> (O) { O(n, d) = X(n, d) * S(n) }"
OWN = "def f(float(N, D) X, float(N, D) S) -> (O) { O(n, d) = X(n, d) * S(n, d) }"
CHOSEN = "def f(float(N, D) X, int32(D) I) -> (O) { O(n, d) = X(n, I(d)) }"
ROOTS = "def f(float(N, D) X) -> (O) { O(n, d) = X(n, d) * sqrt(float(n)) }"
SUMS = "def f(float(N, D) X) -> (O) { O(n) +=! X(n, d) }"
WINDOWS = "def f(float(H, W) X) -> (O) { O(h, w) +=! X(h + i, w) where i in 0:3 }"
SOFTMAX = """def f(float(N, D) I) -> (O, Most, Total) {
    Most(n) max=! I(n, d) Total(n) +=! exp(I(n, d) - Most(n))
    O(n, d) = exp(I(n, d) - Most(n)) / Total(n) }"""
QUADS = "def f(float(N, 4) X, float(4, 4) R) -> (O) { O(n, i) +=! X(n, j) * R(j, i) }"


@pytest.mark.parametrize(
    ("text", "shapes", "tight"),
    [
        (PRODUCT, [(96, 480), (480, 96)], True),
        (OWN, [(64, 256), (64, 256)], True),
        (ROWS, [(64, 256), (64,)], False),
        (CHOSEN, [(64, 256), (256,)], False),
        (ROOTS, [(64, 256)], False),
        (SUMS, [(64, 256)], True),
        (WINDOWS, [(64, 256)], True),
        (QUADS, [(5000, 4), (4, 4)], False),
    ],
    ids=["product", "own", "rows", "chosen", "roots", "sums", "windows", "quads"],
)
def test_what_iterations_share(text: str, shapes: list[tuple[int, ...]], tight: bool) -> None:
    """Quads: all loops but the one over rows are written out, so that it shares the matrix."""
    assert (f'"{TIGHT}"' in _emitted(text, shapes)[0]) == tight


def test_constants_are_loaded_before_loops() -> None:
    """Also where few of LLVM's passes run: it puts them before loops that end with their
    condition. The innermost loops here compute exponentials of rows of nine."""
    text, device = _emitted(SOFTMAX, [(20000, 9)])
    assert f'"{TIGHT}"' in text
    lines = assembly(text, device).splitlines()
    labels = {line.partition(":")[0]: k for k, line in enumerate(lines) if line[:1] == "."}
    jumps = [(k, line.split()[1]) for k, line in enumerate(lines) if line.startswith("\tj")]
    loops = [lines[labels[to] : k] for k, to in jumps if labels.get(to, k) < k]
    inner = [
        loop for loop in loops if not any(other != loop and other[0] in loop for other in loops)
    ]
    assert any("vfmadd" in line for loop in inner for line in loop)
    assert not any("LCPI" in line for loop in inner for line in loop)


def _emitted(text: str, shapes: list[tuple[int, ...]]) -> tuple[str, CpuProfile]:
    """A def's default as LLVM IR, on a machine with AVX-512."""
    device = find("Zen 4")
    assert device is not None
    sized = sized_of(text, *(np.empty(shape, "f") for shape in shapes))
    made = plan(sized, MappingOptions("mlp"), device)
    return emit_program(made.scheduled(), made.target).text, made.target
