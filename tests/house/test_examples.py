"""Every def of ``examples/`` against its formulation in NumPy, and the files' own rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from formulations import FORMULATIONS, Array, Arrays
from places import EXAMPLES
from sampling import sampled

from examples import DEFS, FILES, definitions, sized_for
from tcl.arrays.annotations import read_annotations
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef

Runner = Callable[[Sequence[Array], Sequence[Array]], object]
each = pytest.mark.parametrize(("file", "name"), DEFS)


def at_test_sizes(file: str, name: str) -> tuple[SizedDef, Arrays, Arrays]:
    """The def, inputs, and what it has to make of them."""
    checked = definitions(file)[name]
    sizes = dict(read_annotations(checked).sizes["test"])
    names = [t.name for t in checked.inputs]
    inputs = dict(zip(names, random_inputs(checked, sizes), strict=True))
    return sized_for(checked, sizes), inputs, FORMULATIONS[file, name](inputs, sizes)


def poisoned(sized: SizedDef, byte: int) -> Arrays:
    """Outputs that hold NaN where they can, else the byte; bools alternate."""
    outputs: Arrays = {}
    for t in sized.checked.outputs:
        value = np.nan if t.type.is_float else byte % 2 == 0 if t.type.is_bool else byte
        outputs[t.name] = np.full(sized.shapes[t.name], value).astype(numpy_dtype(t.type))
    return outputs


def check_close(actual: Array, expected: Array, roundings: int) -> None:
    """Integers and bools must be equal. A float may be off by half a unit of the type for the
    store, and by a unit of the type that it was computed in for each rounding, in proportion to the
    largest expected element (sums lose their accuracy to the largest partial sums)."""
    assert actual.shape == np.shape(expected)
    rtol = atol = 0.0
    if actual.dtype.kind == "f":
        unit = np.finfo(np.promote_types(actual.dtype, np.float32)).eps * roundings
        atol = float(unit * max(1.0, float(np.max(np.abs(expected), initial=0.0))))
        rtol = float(np.finfo(actual.dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def compiled_reference(sized: SizedDef) -> Runner:
    return compile_reference(sized, jit=True)


def naive_cpu(sized: SizedDef) -> Runner:
    return compile_cpu(sized, MappingOptions.naive())


def verify(file: str, name: str, compiler: Callable[[SizedDef], Runner]) -> None:
    sized, inputs, expected = at_test_sizes(file, name)
    kept = {k: v.copy() for k, v in inputs.items()}
    kernel, results = compiler(sized), []
    # How many roundings may pile up: the reductions' lengths, one after another.
    depth = sum(1 + math.prod(s.extent(r) for r in s.statement.reduction) for s in sized.statements)
    for byte in (0x55, 0xAA):
        outputs = poisoned(sized, byte)
        kernel(list(inputs.values()), list(outputs.values()))
        results.append(outputs)
        for output, array in outputs.items():
            assert np.isfinite(expected[output]).all()
            check_close(array, expected[output], depth)
    for output, array in results[0].items():  # what outputs held before must not matter
        np.testing.assert_array_equal(array, results[1][output])
    for input_, array in kept.items():
        np.testing.assert_array_equal(array, inputs[input_])


@each
def test_reference_agrees_with_numpy(file: str, name: str) -> None:
    verify(file, name, compile_reference)


@pytest.mark.parametrize(("file", "name"), sampled(DEFS, 8))
def test_reference_agrees_with_numpy_when_compiled(file: str, name: str) -> None:
    verify(file, name, compiled_reference)


@each
def test_naive_cpu_agrees_with_numpy(file: str, name: str) -> None:
    verify(file, name, naive_cpu)


def test_every_def_has_a_formulation_and_the_other_way_round() -> None:
    assert sorted(DEFS) == sorted(FORMULATIONS)


def annotated(checked: CheckedDef) -> list[str]:
    """The lines above the def that begin as those of sizes and values do."""
    above = checked.source.text.partition(f"def {checked.name}(")[0].split("\n\n")[-1]
    return [line for line in above.splitlines() if re.match("# (sizes|values) ", line)]


@each
def test_the_comments_of_a_def(file: str, name: str) -> None:
    checked = definitions(file)[name]
    assert not checked.warnings and not checked.uninitialised
    said = read_annotations(checked)
    assert len(annotated(checked)) == len(said.sizes) + len(said.values)
    assert "test" in list(said.sizes)[1:]  # the first line is what `tcl run` takes
    for sizes in said.sizes.values():
        assert sorted(sizes) == sorted(checked.sizes)
        for s in sized_for(checked, sizes).statements:
            assert all(s.extent(i) > 0 for i in s.statement.all_indices)
    extents = list(said.sizes["test"].values())
    assert len(set(extents)) == len(extents), "test sizes should all differ"
    assert max(extents) <= 128
    inputs = {t.name: t.type.is_float for t in checked.inputs}
    assert {n for n, is_float in inputs.items() if not is_float} <= set(said.values) <= set(inputs)


def test_files_begin_with_an_explanation_and_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    for path in FILES:
        head = path.read_text("utf-8").split("\n\n")[0].splitlines()
        assert len(head) >= 2, path.name
        assert all(re.match(r"# (?!sizes |values )", line) for line in head), path.name
        assert sum(line.count(".") + line.count(":") for line in head) >= 2, path.name
        row = re.search(rf"^\| `{path.name}` \|(.*)\|$", listed, re.MULTILINE)
        assert row and set(definitions(path.stem)) <= set(row[1].replace(",", " ").split()), path


@pytest.mark.parametrize("compiler", [compiled_reference, naive_cpu])
@pytest.mark.parametrize(
    ("file", "name", "index", "table", "axis"),
    [
        ("lut", "one_lut", "I1", "LUT1", 0),
        ("lut", "two_lut", "I2", "LUT2", 0),
        ("layers", "indexing", "index", "I", 0),
        ("layers", "lut_columns", "I", "LUT", 1),
    ],
)
@pytest.mark.parametrize("offset", [-1, 0, 2**31 - 1])
def test_bad_subscripts_are_index_errors(
    compiler: Callable[[SizedDef], Runner],
    file: str,
    name: str,
    index: str,
    table: str,
    axis: int,
    offset: int,
) -> None:
    sized, inputs, _ = at_test_sizes(file, name)
    bad = inputs[table].shape[axis] if offset == 0 else offset
    inputs[index].reshape(-1)[-1] = bad
    with pytest.raises(IndexError, match=f"index {bad} .* dimension {axis} of tensor {table},"):
        compiler(sized)(list(inputs.values()), list(poisoned(sized, 0x55).values()))
