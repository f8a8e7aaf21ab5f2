"""Every reduction of every element type, by default options, on both targets."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import Array, random_options
from cuda_checks import Work, case_of, check_cases, why_not, work_of_text
from cuda_options import random_gpu_options
from strategies import numpy_type

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.grammar.syntax.types import SCALAR_TYPES
from tcl.selection.best_options import DEFAULT

TYPES = pytest.mark.parametrize("name", SCALAR_TYPES)
OPERATORS = ("+=", "*=", "min=", "max=")


def test_a_product_of_bools() -> None:
    """One element of a bool takes a byte in memory, though it has one bit."""
    text = "def f(bool(M,K) A, bool(N,K) B) -> (C) { C(m,n) max=! A(m,k) && B(n,k) }"
    rng = np.random.default_rng(0)
    a, b = rng.random((33, 300)) < 0.1, rng.random((21, 300)) < 0.1
    work = work_of_text(text, a, b)
    np.testing.assert_array_equal(work.expected[0], (a[:, None] & b).any(-1))
    check_cpu(work.sized, work.inputs, DEFAULT, expected=work.expected)


def values(name: str, *shape: int) -> Array:
    """Numbers of which products do not get out of hand."""
    rng = np.random.default_rng(len(shape) + shape[0])
    if SCALAR_TYPES[name].is_float:
        found: Any = rng.random(shape) + 0.5
    else:
        found = rng.integers(0 if name == "bool" else 1, 2 if name == "bool" else 4, shape)
    return np.asarray(found, numpy_type(name))


def work_of_type(name: str, m: int, n: int, k: int) -> Work:
    """A product and sums along rows, columns and both, by every operator: with ``!``, and one
    without."""
    times = "&&" if name == "bool" else "*"
    forms = {
        "P": f"(m, n) {{}} A(m, k) {times} B(n, k)",
        "Q": f"(m, n) {{}} A(m, k) {times} D(k, n)",
        "R": "(m) {} A(m, k)",
        "S": "(k) {} A(m, k)",
        "T": " {} A(m, k)",
    }
    body = [
        f"{letter}{i}{form.format(op + ('' if (i + j) % 5 == 0 else '!'))}"
        for i, op in enumerate(OPERATORS)
        for j, (letter, form) in enumerate(forms.items())
    ]
    outputs = ", ".join(f"{letter}{i}" for i in range(len(OPERATORS)) for letter in forms)
    head = f"{name}(M, K) A, {name}(N, K) B, {name}(K, N) D"
    text = f"def f({head}) -> ({outputs}) {{ {chr(10).join(body)} }}"
    return work_of_text(text, values(name, m, k), values(name, n, k), values(name, k, n))


@TYPES
def test_on_the_cpu(name: str) -> None:
    work = work_of_type(name, 9, 17, 35)
    check_cpu(work.sized, work.inputs, DEFAULT, expected=work.expected)


@pytest.mark.parametrize("name", ["bool", "int8"])
def test_random_options(name: str) -> None:
    work = work_of_type(name, 9, 17, 35)
    options = random_options(random.Random(name), work.sized)
    check_cpu(work.sized, work.inputs, options, replace(host_cpu(), threads=2), work.expected)


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
@TYPES
def test_on_a_gpu(name: str) -> None:
    work = work_of_type(name, 3, 17, 35)
    check_cases([case_of(work, DEFAULT)], orders=("forward",)).none()


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
@pytest.mark.parametrize("name", ["bool", "int8"])
def test_random_options_on_a_gpu(name: str) -> None:
    work = work_of_type(name, 3, 17, 35)
    options = random_gpu_options(random.Random(name), work.sized, H200)
    check_cases([case_of(work, options)], orders=("forward",)).none()
