"""Outputs to compare, and their comparison, for tests of backends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from compiled_kernels import CpuKernel, compile_cpu
from loopir_interpreter import interpret
from program_builder import Program

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference, roundings
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

Array = npt.NDArray[Any]


def sized_of(program: Program) -> SizedDef:
    return infer(check(program.source)[program.entry], program.shapes)


def outputs_of(sized: SizedDef) -> list[Array]:
    """Poisoned outputs; those that the def adds to hold ones."""
    arrays = []
    for tensor in sized.checked.outputs:
        array = np.empty(sized.shapes[tensor.name], numpy_dtype(tensor.type))
        array.reshape(-1).view(np.uint8)[...] = 0xAB
        if tensor.name in sized.checked.uninitialised:
            array[...] = 1
        arrays.append(array)
    return arrays


_RESULTS: OrderedDict[object, list[Array]] = OrderedDict()
"""The last results of the reference: a test compares several kernels with them in turn."""


def expected_of(sized: SizedDef, inputs: Sequence[Array]) -> list[Array]:
    """What the reference makes of the inputs."""
    kernel, expected = compile_reference(sized), outputs_of(sized)
    key = (
        kernel.source,
        tuple((a.shape, a.tobytes()) for a in inputs),
        tuple((a.dtype, a.shape, a.tobytes()) for a in expected),
        sized.checked.inputs,
    )
    if key not in _RESULTS:
        with np.errstate(all="ignore"):
            kernel(inputs, expected)
        _RESULTS[key] = expected
        if len(_RESULTS) > 4:
            _RESULTS.popitem(last=False)
    return [a.copy() for a in _RESULTS[key]]


def check_cpu(
    sized: SizedDef,
    inputs: Sequence[Array],
    options: MappingOptions,
    device: CpuProfile | None = None,
    expected: Sequence[Array] | None = None,
) -> CpuKernel:
    """The kernel for a CPU, or for this one, whose outputs are those of the reference."""
    expected = expected_of(sized, inputs) if expected is None else expected
    kernel, actual = compile_cpu(sized, options, device=device), outputs_of(sized)
    kernel(inputs, actual)
    check_equal(sized, actual, expected, f"{options}", inputs)
    return kernel


def check_interpreted(
    sized: SizedDef, inputs: Sequence[Array], program: ir.Program | ir.Built, what: str
) -> None:
    """The loops, run one by one, give what the reference does."""
    actual = outputs_of(sized)
    names = [t.name for t in (*sized.checked.inputs, *sized.checked.outputs)]
    interpret(program, dict(zip(names, [*inputs, *actual], strict=True)))
    check_equal(sized, actual, expected_of(sized, inputs), f"interpreted: {what}", inputs)


def check_equal(
    sized: SizedDef,
    actual: Sequence[Array],
    expected: Sequence[Array],
    what: str,
    inputs: Sequence[Array] | None = None,
) -> None:
    """``inputs``: where they are given, what seems wrong is compared again by the reference's own
    rounding, as a search does: of a sum whose terms cancel, nothing else tells how far off it is.
    """
    depths = accumulation_depths(sized)
    pairs = [*zip(sized.checked.outputs, actual, expected, strict=True)]
    wrong = [mismatch(t.name, a, e, depths[t.name]) for t, a, e in pairs]
    if any(wrong) and inputs is not None:
        errors = roundings(sized, inputs, outputs_of(sized))
        pairs_and_errors = zip(pairs, errors, strict=True)
        wrong = [mismatch(t.name, a, e, depths[t.name], r) for (t, a, e), r in pairs_and_errors]
    said = next(filter(None, wrong), None)
    assert said is None, f"{what}: {said}\n{sized.checked.source.text}"
