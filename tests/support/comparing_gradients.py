"""Derived gradients beside the adjoints of the def itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from adjoint_interpreter import Interpreted
from places import EXAMPLES

from tcl.arrays.annotations import read_annotations
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import NoFormulationError, whole_array
from tcl.gradients.grad import gradient_text, prefix_of
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.tree.checked import CheckedDef

NO_GRADIENT = {  # of integers
    *("batch_matmul_int8", "convolution_int8", "cast", "row_facts", "matmul_int8", "matmul_uint8"),
}
"""Defs of the examples."""

STEPWISE = {
    "absolute value": "O(e, d) = fabs(X(e, d))",
    "column": "O(e) = X(e, 1)",
    "gathered": "O(n, d) = X(At(n), d)",
    "gated": "O(e, d) = X(e, d) > 0 ? W(e, d) * W(e, d) * X(e, d) : 0",
    "largest": "O(e) max=! X(e, d) * W(e, d)",
    "ramp": "O(e, d) = fmax(X(e, d), 0)",
    "select": "O(e, d) = X(e, d) > 0 ? X(e, d) : W(e, d)",
}
"""Statements of ``stepwise`` defs, whose derived gradients take an input for a comparison or for
its sizes alone."""


def stepwise(name: str) -> str:
    """The text of a def ``f`` with this statement of ``STEPWISE``."""
    inputs = {"At(": "int32(N) At", "W(": "double(E, D) W"}
    more = [declared for read, declared in inputs.items() if read in STEPWISE[name]]
    return f"def f({', '.join(['double(E, D) X', *more])}) -> (O) {{ {STEPWISE[name]} }}"


def stepwise_inputs(name: str) -> list[Any]:
    """Inputs of that def, away from its kinks."""
    X, W = np.random.default_rng(1).permuted(np.linspace(-1, 2, 24)).reshape(2, 4, 3)
    at = np.array([1, 0, 3, 1], np.int32)
    return [X, *([at] if "At(" in STEPWISE[name] else [W] if "W(" in STEPWISE[name] else [])]


def differentiable_examples() -> list[tuple[str, str]]:
    """File and name of each def of the examples that has a gradient."""
    return [
        (path.stem, name)
        for path in sorted(EXAMPLES.glob("*.tc"))
        for name in check(path.read_text(encoding="utf-8"))
        if name not in NO_GRADIENT
    ]


def in_double(text: str) -> str:
    """The text with all floats in float64."""
    return re.sub(r"\b(float|half)(?=[ (])", "double", text)


def example_inputs(source: str, name: str) -> dict[str, Any]:
    """Inputs of a def of the examples, of its test sizes, as ``in_double`` has it."""
    checked, said = check(in_double(source))[name], read_annotations(check(source)[name])
    sizes = dict(said.sizes["test"])
    rng = np.random.default_rng(1)
    arrays = {}
    for tensor in checked.inputs:
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in tensor.dims or ())
        default = ("-1", "1") if tensor.type.is_float else ("0", "5")
        low, high = (float(sizes.get(b, b)) for b in said.values.get(tensor.name, default))
        values = rng.uniform(low, high, shape)
        arrays[tensor.name] = np.asarray(np.floor(values) if not tensor.type.is_float else values)
        arrays[tensor.name] = arrays[tensor.name].astype(tensor.type.name)
    return arrays


@dataclass(frozen=True)
class Derived:
    """A derived def that was compared."""

    text: str
    exact: bool
    """Whether it had to be equal to the last bit."""
    seeds: Mapping[str, Any]
    gradients: Mapping[str, Any]


class InfiniteError(Exception):
    """An output that is infinite or NaN: its gradient depends on how products are grouped."""


def called(checked: CheckedDef, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a def, by NumPy where it has everything, else by the reference."""
    inputs = [np.asarray(arrays[t.name], order="C") for t in checked.inputs]
    shapes = {t.name: a.shape for t, a in zip(checked.inputs, inputs, strict=True)}
    sized = infer(checked, shapes)
    outputs = [np.zeros(sized.shapes[t.name], np.dtype(t.type.name)) for t in checked.outputs]
    try:
        whole_array(sized)(inputs, outputs)
    except (NoFormulationError, IndexError):  # which it raises of reads at no point, too
        compile_reference(sized, jit=False)(inputs, outputs)
    return {t.name: o for t, o in zip(checked.outputs, outputs, strict=True)}


def check_gradients(
    text: str,
    entry: str,
    arrays: Mapping[str, Any],
    tolerance: float = 1e-9,
    seed: int = 0,
    *,
    finite: bool = False,
    **options: Any,
) -> Derived:
    """Assert that the derived def and the adjoints say the same of each input, exactly where all
    numbers are whole ones; the derived text. ``finite``: raise ``InfiniteError`` for outputs that
    are not."""
    checked = check(text)[entry]
    sized = infer(checked, {t.name: np.shape(arrays[t.name]) for t in checked.inputs})
    derived_text = gradient_text(checked, **options)
    (derived,) = check(derived_text).values()
    prefix = prefix_of(checked)
    taken, made = ([t.name for t in side] for side in (derived.inputs, derived.outputs))
    ran = Interpreted(sized, {t.name: arrays[t.name] for t in checked.inputs})
    rng, seeds = np.random.default_rng(seed), {}
    for tensor in checked.outputs:
        if tensor.type.is_float and prefix + tensor.name in taken:
            if finite and not np.isfinite(ran.tensors[tensor.name]).all():
                raise InfiniteError(tensor.name)
            shape = sized.shapes[tensor.name]
            values = rng.integers(-3, 4, shape) if ran.whole else rng.uniform(-1, 1, shape)
            seeds[tensor.name] = np.asarray(values).astype(tensor.type.name)
    known = {**ran.tensors, **{prefix + name: each for name, each in seeds.items()}}
    outputs, expected = called(derived, known), ran.gradients(seeds)
    ours = {t.name: outputs[prefix + t.name] for t in checked.inputs if prefix + t.name in made}
    for name, found in ours.items():
        scale = 0 if ran.whole else max(1.0, float(np.nanmax(np.abs(expected[name]), initial=0)))
        np.testing.assert_allclose(
            found,
            expected[name],
            rtol=0,
            atol=tolerance * scale,
            err_msg=f"{name}\n{text}\n{derived_text}",
        )
    return Derived(derived_text, ran.whole, seeds, ours)


def check_direction(text: str, entry: str, arrays: Mapping[str, Any], derived: Derived) -> None:
    """Assert that the outputs change in a random direction as the derived gradients say:
    (J v) w = v (J^T w), with J v as a difference of two runs of the def itself, in float64."""
    checked, rng, step = check(text)[entry], np.random.default_rng(1), 1e-6
    direction = {n: rng.uniform(-1, 1, g.shape) for n, g in derived.gradients.items()}
    ends = [
        called(checked, {**arrays, **{n: arrays[n] + s * v for n, v in direction.items()}})
        for s in (step, -step)
    ]
    there, scale = 0.0, 1.0
    for name, seed in derived.seeds.items():
        there += float((seed * (ends[0][name] - ends[1][name])).sum()) / (2 * step)
        scale += float(np.abs(seed * ends[0][name]).sum())
    ours = sum(float((v * derived.gradients[n]).sum()) for n, v in direction.items())
    scale += sum(float(np.abs(v * derived.gradients[n]).sum()) for n, v in direction.items())
    assert abs(there - ours) <= 1e-6 * scale, (there, ours, scale, text, derived.text)
