"""Every def of ``examples/`` against its formulation in NumPy, and the files' own rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from formulations import FORMULATIONS, Array, Arrays
from places import EXAMPLES
from sampling import sampled

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef, Tensor

# The comment lines that examples/README.md describes.
SIZES = re.compile(r"# sizes (\w+): *(\w+=\d+(?:, *\w+=\d+)*)")
VALUES = re.compile(r"# values (\w+): *(\S+?)\.\.(\S+)")

Runner = Callable[[Sequence[Array], Sequence[Array]], object]


@dataclass(frozen=True, slots=True)
class Example:
    """One def of one file, with what the comment lines above it say."""

    file: str
    name: str
    sizes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    """(label, ((symbol, extent), ...)) of each ``sizes`` line."""
    values: tuple[tuple[str, str, str], ...]
    """(input, start, stop) of each ``values`` line."""

    @property
    def checked(self) -> CheckedDef:
        return definitions(self.file)[self.name]

    @property
    def test_sizes(self) -> dict[str, int]:
        return dict(dict(self.sizes)["test"])

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


@cache
def definitions(file: str) -> dict[str, CheckedDef]:
    return check((EXAMPLES / f"{file}.tc").read_text(encoding="utf-8"), name=file)


def examples() -> Iterator[Example]:
    for path in sorted(EXAMPLES.glob("*.tc")):
        block: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                block.append(line.strip())
                continue
            if line.startswith("def "):
                yield example(path.stem, line[4 : line.index("(")].strip(), block)
            block = []


def example(file: str, name: str, block: list[str]) -> Example:
    sizes: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    values: list[tuple[str, str, str]] = []
    for line in block:
        if line.startswith("# sizes "):
            found = SIZES.fullmatch(line)
            assert found, f"{file}.{name}: {line}"
            pairs = (pair.split("=") for pair in found[2].split(","))
            sizes.append((found[1], tuple((s.strip(), int(n)) for s, n in pairs)))
        elif line.startswith("# values "):
            found = VALUES.fullmatch(line)
            assert found, f"{file}.{name}: {line}"
            values.append((found[1], found[2], found[3]))
    return Example(file, name, tuple(sizes), tuple(values))


ALL = tuple(examples())
each = pytest.mark.parametrize("one", ALL, ids=str)


def shape_of(tensor: Tensor, sizes: dict[str, int]) -> tuple[int, ...]:
    assert tensor.dims is not None
    return tuple(d if isinstance(d, int) else sizes[d] for d in tensor.dims)


def input_shapes(checked: CheckedDef, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    return {t.name: shape_of(t, sizes) for t in checked.inputs}


def random_inputs(one: Example, sizes: dict[str, int], seed: int = 0) -> Arrays:
    """Inputs of the def: normal floats, or as its ``values`` lines say."""
    rng = np.random.default_rng(seed)
    bounds = {name: (start, stop) for name, start, stop in one.values}

    def bound(text: str) -> float:
        return sizes[text] if text in sizes else float(text)

    inputs: Arrays = {}
    for t in one.checked.inputs:
        shape, dtype = shape_of(t, sizes), numpy_dtype(t.type)
        if t.name not in bounds:
            inputs[t.name] = np.asarray(rng.standard_normal(shape), dtype=dtype)
            continue
        start, stop = map(bound, bounds[t.name])
        if t.type.is_float:
            inputs[t.name] = np.asarray(rng.uniform(start, stop, shape), dtype=dtype)
        else:
            inputs[t.name] = np.asarray(rng.integers(int(start), int(stop), shape), dtype=dtype)
    return inputs


def poisoned(sized: SizedDef, byte: int) -> Arrays:
    """Outputs that hold NaN where they can, else the byte; bools alternate."""
    outputs: Arrays = {}
    for t in sized.checked.outputs:
        array = np.empty(sized.shapes[t.name], numpy_dtype(t.type))
        if t.type.is_float:
            array.fill(np.nan)
        elif t.type.is_bool:
            array.fill(byte % 2 == 0)
        else:
            array.view(np.uint8).fill(byte) if array.ndim else array.fill(byte)
        outputs[t.name] = array
    return outputs


def depth(sized: SizedDef) -> int:
    """How many roundings may pile up in an element: the reductions' lengths, one after another."""
    return sum(1 + math.prod(s.extent(r) for r in s.statement.reduction) for s in sized.statements)


def differs(actual: Array, expected: Array, roundings: int) -> str | None:
    """What is wrong with ``actual``; None if it is as close as its type and depth allow.

    Integers and bools must be equal. A float may be off by half a unit of the type for the store,
    and by a unit of the type that it was computed in for each rounding, in proportion to the
    largest expected element (sums lose their accuracy to the largest partial sums).
    """
    if actual.shape != np.shape(expected):
        return f"shape {actual.shape} instead of {np.shape(expected)}"
    if actual.dtype.kind != "f":
        wrong = actual != expected
    else:
        unit = np.finfo(np.promote_types(actual.dtype, np.float32)).eps * roundings
        scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        allowed = scale * unit + np.finfo(actual.dtype).eps * np.abs(expected)
        wrong = ~(np.abs(actual.astype(np.float64) - expected) <= allowed)  # NaN counts as wrong
    if not np.any(wrong):
        return None
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    got, want = np.atleast_1d(actual)[first], np.atleast_1d(expected)[first]
    return f"{np.count_nonzero(wrong)} of {wrong.size} differ; at {first} {got} instead of {want}"


def compiled_reference(sized: SizedDef) -> Runner:
    return compile_reference(sized, jit=True)


def naive_cpu(sized: SizedDef) -> Runner:
    return compile_cpu(sized, MappingOptions.naive())


def verify(one: Example, compiler: Callable[[SizedDef], Runner]) -> None:
    sizes = one.test_sizes
    inputs = random_inputs(one, sizes)
    kept = {k: v.copy() for k, v in inputs.items()}
    sized = infer(one.checked, input_shapes(one.checked, sizes))
    kernel = compiler(sized)
    expected = FORMULATIONS[one.file, one.name](kept, sizes)
    results = []
    for byte in (0x55, 0xAA):
        outputs = poisoned(sized, byte)
        kernel(list(inputs.values()), list(outputs.values()))
        results.append(outputs)
        for name, array in outputs.items():
            wrong = differs(array, expected[name], depth(sized))
            assert wrong is None, f"{one}: {name}: {wrong}"
    for name, array in results[0].items():  # what outputs held before must not matter
        np.testing.assert_array_equal(array, results[1][name])
    for name, array in kept.items():
        np.testing.assert_array_equal(array, inputs[name])


@each
def test_reference_agrees_with_numpy(one: Example) -> None:
    verify(one, compile_reference)


@pytest.mark.parametrize("one", sampled(ALL, 8), ids=str)
def test_reference_agrees_with_numpy_when_compiled(one: Example) -> None:
    verify(one, compiled_reference)


@each
def test_naive_cpu_agrees_with_numpy(one: Example) -> None:
    verify(one, naive_cpu)


def test_every_def_has_a_formulation_and_the_other_way_round() -> None:
    found = [(one.file, one.name) for one in ALL]
    written = [
        (path.stem, name) for path in EXAMPLES.glob("*.tc") for name in definitions(path.stem)
    ]
    assert sorted(found) == sorted(written) == sorted(FORMULATIONS)


@each
def test_formulation_gives_every_output(one: Example) -> None:
    inputs = random_inputs(one, one.test_sizes)
    expected = FORMULATIONS[one.file, one.name](inputs, one.test_sizes)
    sized = infer(one.checked, input_shapes(one.checked, one.test_sizes))
    for t in one.checked.outputs:
        assert np.shape(expected[t.name]) == sized.shapes[t.name], t.name
        assert np.isfinite(expected[t.name]).all(), t.name


@each
def test_sizes_lines_name_the_size_symbols(one: Example) -> None:
    labels = [label for label, _ in one.sizes]
    assert len(set(labels)) == len(labels) >= 2
    assert "test" in labels
    assert labels[0] != "test"  # the first line is what `tcl run` takes
    for label, pairs in one.sizes:
        symbols = [s for s, _ in pairs]
        assert sorted(symbols) == sorted(one.checked.sizes), label
        assert all(n > 0 for _, n in pairs)
    extents = list(one.test_sizes.values())
    assert len(set(extents)) == len(extents), "test sizes should all differ"
    assert max(extents) <= 128


@each
def test_every_sizes_line_gives_ranges(one: Example) -> None:
    for _, pairs in one.sizes:
        sized = infer(one.checked, input_shapes(one.checked, dict(pairs)))
        for s in sized.statements:
            assert all(s.extent(i) > 0 for i in s.statement.all_indices)


@each
def test_values_lines_name_inputs(one: Example) -> None:
    inputs = {t.name: t for t in one.checked.inputs}
    named = [name for name, _, _ in one.values]
    assert len(set(named)) == len(named)
    assert set(named) <= set(inputs)
    assert {n for n, t in inputs.items() if not t.type.is_float} <= set(named)
    for name, start, stop in one.values:
        for bound in (start, stop):
            if bound not in one.checked.sizes:
                float(bound) if inputs[name].type.is_float else int(bound)


@each
def test_examples_check_without_warnings(one: Example) -> None:
    assert not one.checked.warnings
    assert not one.checked.uninitialised


def test_files_begin_with_an_explanation() -> None:
    for path in EXAMPLES.glob("*.tc"):
        head = path.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        assert len(head) >= 2, path.name
        assert all(re.match(r"# (?!sizes |values )", line) for line in head), path.name
        assert sum(line.count(".") + line.count(":") for line in head) >= 2, path.name


def test_readme_lists_every_file() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for one in ALL:
        row = re.search(rf"^\| `{one.file}\.tc` \|(.*)\|$", text, re.MULTILINE)
        assert row, one.file
        assert one.name in row[1].replace(",", " ").split(), one


@each
def test_comparison_notices_small_errors(one: Example) -> None:
    """One element off by a part in a hundred (an integer by one) is found in every output."""
    sized = infer(one.checked, input_shapes(one.checked, one.test_sizes))
    inputs = random_inputs(one, one.test_sizes)
    expected = FORMULATIONS[one.file, one.name](inputs, one.test_sizes)
    for t in one.checked.outputs:
        right = np.asarray(expected[t.name]).astype(numpy_dtype(t.type))
        assert differs(right, expected[t.name], depth(sized)) is None
        wrong = right.copy().reshape(-1)
        at = int(np.argmax(np.abs(wrong.astype(np.float64))))
        if t.type.is_float:
            wrong[at] *= 1.01
        else:
            wrong[at] = not wrong[at] if t.type.is_bool else wrong[at] + 1
        assert differs(wrong.reshape(right.shape), expected[t.name], depth(sized)) is not None
        if t.type.is_float:
            wrong[at] = np.nan
            assert differs(wrong.reshape(right.shape), expected[t.name], depth(sized)) is not None


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
    one = next(e for e in ALL if (e.file, e.name) == (file, name))
    inputs = random_inputs(one, one.test_sizes)
    extent = inputs[table].shape[axis]
    bad = extent if offset == 0 else offset
    inputs[index].reshape(-1)[-1] = bad
    sized = infer(one.checked, input_shapes(one.checked, one.test_sizes))
    outputs = poisoned(sized, 0x55)
    with pytest.raises(IndexError) as caught:
        compiler(sized)(list(inputs.values()), list(outputs.values()))
    for part in (table, f"dimension {axis}", str(bad)):
        assert re.search(rf"(?<![\w-]){re.escape(part)}(?!\w)", str(caught.value)), caught.value
