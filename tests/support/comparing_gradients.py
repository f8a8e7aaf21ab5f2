"""Derived gradients beside those of autograd on the def itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from places import EXAMPLES
from torch_interpreter import run

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


def gradients(
    text: str,
    entry: str,
    arrays: Mapping[str, Any],
    seed: int = 0,
    *,
    finite: bool = False,
    **options: Any,
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What the derived def and what autograd says, by input; and the derived text. ``finite``:
    raise ``InfiniteError`` for outputs that are not."""
    checked = check(text)[entry]
    shapes = {t.name: np.shape(arrays[t.name]) for t in checked.inputs}
    sized = infer(checked, shapes)
    derived_text = gradient_text(checked, **options)
    (derived,) = check(derived_text).values()
    prefix, wanted = prefix_of(checked), [t.name for t in derived.outputs]
    asked = [t for t in checked.inputs if t.type.is_float and prefix + t.name in wanted]
    inputs = {t.name: torch.tensor(arrays[t.name]) for t in checked.inputs}
    for tensor in asked:
        inputs[tensor.name].requires_grad_(True)
    tensors = run(sized, inputs)
    rng = np.random.default_rng(seed)
    loss: Any = sum((0 * inputs[t.name]).sum() for t in asked)  # an output may depend on none
    known: dict[str, Any] = {n: v.detach().numpy() for n, v in tensors.items()}
    for tensor in checked.outputs:
        if not tensor.type.is_float or prefix + tensor.name not in [t.name for t in derived.inputs]:
            continue
        shape = sized.shapes[tensor.name]
        if finite and not np.isfinite(known[tensor.name]).all():
            raise InfiniteError(tensor.name)
        known[prefix + tensor.name] = np.asarray(rng.uniform(-1, 1, shape)).astype(tensor.type.name)
        loss = loss + (tensors[tensor.name] * torch.tensor(known[prefix + tensor.name])).sum()
    found = torch.autograd.grad(loss, [inputs[t.name] for t in asked], allow_unused=True)
    expected = {
        t.name: np.zeros(shapes[t.name]) if g is None else g.numpy()
        for t, g in zip(asked, found, strict=True)
    }
    outputs = called(derived, known)
    return {t.name: outputs[prefix + t.name] for t in asked}, expected, derived_text


def check_gradients(
    text: str, entry: str, arrays: Mapping[str, Any], tolerance: float = 1e-9, **options: Any
) -> str:
    """Assert that the two agree; the derived text."""
    ours, theirs, derived = gradients(text, entry, arrays, **options)
    for name in ours:
        scale = max(1.0, float(np.nanmax(np.abs(theirs[name]), initial=0)))
        np.testing.assert_allclose(
            ours[name], theirs[name], rtol=0, atol=tolerance * scale, err_msg=f"{name}\n{derived}"
        )
    return derived
