"""Scatters: data say where a reduction writes. Beside NumPy's ``ufunc.at``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_kernels import plain, poisoned, sized_of
from cuda_checks import Work, case_of, check_cases
from loopir_interpreter import interpret
from scatters import Scattered, random_scatter

from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import whole_array
from tcl.codegen.schedule.cpu import stages
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import SCALAR_TYPES

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT = MappingOptions("mlp")
TYPES = pytest.mark.parametrize("name", SCALAR_TYPES)


def check_close(case: Scattered, made: Array, note: str) -> None:
    got, want = plain(made).astype(np.float64), plain(case.expected).astype(np.float64)
    with np.errstate(invalid="ignore"):
        wrong = ~((got == want) | (np.abs(got - want) <= case.error))
    assert not wrong.any(), f"{note}\n{case.text}\n{made}\n{case.expected}"


def check_backends(case: Scattered) -> SizedDef:
    """The reference, compiled or not, NumPy's formulation, and the CPU's kernels."""
    sized = sized_of(case.text, *case.inputs)
    for jit in (False, True):
        made = poisoned(sized)
        compile_reference(sized, jit=jit)(case.inputs, made)
        check_close(case, made[0], f"reference, jit {jit}")
    made = poisoned(sized)
    whole_array(sized)(case.inputs, made)
    check_close(case, made[0], "whole arrays")
    for options in (DEFAULT, MappingOptions("naive"), MappingOptions("pointwise")):
        made = poisoned(sized)
        compile_cpu(sized, options, device=replace(host_cpu(), threads=2))(case.inputs, made)
        check_close(case, made[0], f"CPU, {options}")
    return sized


def check_stages(case: Scattered) -> None:
    sized = sized_of(case.text, *case.inputs)
    names = [t.name for t in sized.checked.inputs]
    for name, stage in stages(sized, DEFAULT, replace(host_cpu(), threads=2)):
        made = poisoned(sized)
        arrays = dict(zip(names, case.inputs, strict=True))
        interpret(stage, {**arrays, "H": made[0]}, {})
        check_close(case, made[0], f"{name}\n{show(stage)}")


@pytest.mark.parametrize("seed", range(24))
def test_random_scatters(seed: int) -> None:
    check_backends(random_scatter(seed))


@pytest.mark.parametrize("seed", range(24))
def test_stages_of_random_scatters(seed: int) -> None:
    check_stages(random_scatter(seed, points=15))


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_on_a_gpu() -> None:
    cases = [random_scatter(seed) for seed in range(16)]
    works = []
    for case in cases:
        sized = sized_of(case.text, *case.inputs)
        works.append(Work(case.text, sized, case.inputs, (case.expected,)))
    check_cases(case_of(w, DEFAULT) for w in works).none()
