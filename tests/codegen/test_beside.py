"""Reductions that are fused with the one before them: over the points that have its extreme value.

What they find is compared with the reference bit by bit, except for the sign of an extreme 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compiled_kernels import compile_cpu
from loopir_interpreter import interpret
from sampling import sampled

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.printer import show
from tcl.codegen.loopir.walk import statements
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.schedule.cpu import schedule
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

Array = npt.NDArray[Any]

ALONG = {
    "argmin": "L min=! A(n); B min=! (A(n) == L) ? n : N",
    "argmax": "L max=! A(n); B min=! (L == A(n)) ? n : N",
    "last": "L min=! A(n); B max=! (A(n) == L) ? n : -1",
    "both ends": "L min=! A(n); B min=! (A(n) == L) ? n : N; E max=! (A(n) == L) ? n : -1",
    "ties": "L max=! A(n); B +=! (A(n) == L) ? 1 : 0",
    "product": "L max=! A(n); B *=! (A(n) == L) ? 2 : 1",
    "constant": "L min=! A(n); B min=! (A(n) == L) ? 3 : 3",
    "resumed": "L min= A(n); B min= (A(n) == L) ? n : N",
    "half resumed": "L min= A(n); B +=! (A(n) == L) ? n : 0",
    "expression": "L max=! A(n) * A(n); B min=! (A(n) * A(n) == L) ? n : N",
    "mapped": "L min=! A(n); B max=! (A(n) == L) ? V(n) : -2147483648",
    "table": "L min=! A(I(n)); B min=! (A(I(n)) == L) ? n : N",
}
APART = {
    "value may be worse than the constant": "L min=! A(n); B min=! (A(n) == L) ? n : 7",
    "constant counts for each point": "L min=! A(n); B +=! (A(n) == L) ? n : 1",
    "other comparison": "L min=! A(n); B min=! (A(n) <= L) ? n : N",
    "other value": "L min=! A(n); B min=! (A(n) + 1 == L) ? n : N",
    "sum": "L +=! A(n); B min=! (A(n) == L) ? n : N",
    "value needs the extreme": "L min=! A(n); B +=! (A(n) == L) ? L : 0",
    "zeros of other signs": "L min=! A(n) * 0.0; B min=! (A(n) * -0.0 == L) ? n : N",
}


def sized_of(body: str, type_: str, n: int, rows: int | None) -> SizedDef:
    """The def, for one row or several."""
    outs = ", ".join(dict.fromkeys(s.split()[0] for s in body.split("; ")))
    row = "" if rows is None else "M, "
    if rows is not None:
        for name in outs.split(", "):
            body = body.replace(f"{name} ", f"{name}(m) ").replace(f"== {name})", f"== {name}(m))")
        body = body.replace("(L ==", "(L(m) ==").replace("A(", "A(m, ").replace("L(m) :", "L(m) :")
        body = body.replace("? L :", "? L(m) :")
    inputs = f"{type_}({row}N) A"
    if "V(" in body:
        inputs += ", int32(N) V"
    if "I(" in body:
        inputs += ", int32(N) I"
    source = f"def f({inputs}) -> ({outs}) {{\n" + body.replace("; ", "\n") + "\n}"
    shapes = {"A": (n,) if rows is None else (rows, n), "V": (n,), "I": (n,)}
    checked = check(source)["f"]
    return infer(checked, {t.name: shapes[t.name] for t in checked.inputs})


def values(rng: random.Random, type_: str, shape: tuple[int, ...]) -> Array:
    """Few different values, so that there are ties."""
    choices: list[Any] = [0, 1, 2, 3, 100, 77]
    if type_.startswith("float"):
        choices = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, *([math.nan] * rng.randint(0, 1))]
    some = rng.sample(choices, rng.randint(1, len(choices)))
    size = math.prod(shape)
    array = np.array(rng.choices(some, k=size), numpy_dtype_of(type_)).reshape(shape)
    if type_.startswith("float") and size and rng.random() < 0.4:
        place = rng.choice([0, size // 2, size - 1])
        array.reshape(-1)[place] = math.nan
    return array


def numpy_dtype_of(type_: str) -> Any:
    return np.dtype({"float": "float32", "double": "float64"}.get(type_, type_))


def inputs_of(sized: SizedDef, rng: random.Random) -> list[Array]:
    arrays = []
    for tensor in sized.checked.inputs:
        shape = sized.shapes[tensor.name]
        if tensor.name == "I":
            arrays.append(np.array(rng.choices(range(max(1, *shape)), k=shape[0]), np.int32))
        elif tensor.name == "V":
            arrays.append(np.array(rng.choices(range(-9, 9), k=shape[0]), np.int32))
        else:
            arrays.append(values(rng, str(numpy_dtype(tensor.type)), shape))
    return arrays


def outputs_of(sized: SizedDef) -> list[Array]:
    return [np.full(sized.shapes[t.name], 1, numpy_dtype(t.type)) for t in sized.checked.outputs]


def same(actual: Array, expected: Array) -> bool:
    """Equal, a NaN to a NaN and any 0 to another."""
    return bool(np.array_equal(actual, expected, equal_nan=actual.dtype.kind == "f"))


def joined(program: ir.Built) -> int:
    """How many reductions are fused with another one."""
    inside = (s for k in program.kernels for s in statements(k.body))
    found = (s for s in inside if isinstance(s, ir.Declare))
    return len({s.name for s in found} - {"accumulator", "accumulator.nan"})


def some_options(rng: random.Random, rows: int | None) -> Iterator[MappingOptions]:
    yield MappingOptions()
    yield MappingOptions("mlp")
    base = MappingOptions()
    if rows is not None:
        base = base.chunk(rng.choice([1, 2, rows])).fuse()
    reduced = 0 if rows is None else 1
    lanes = rng.choice([1, 2, 4, 16, 32])
    sizes = [0] * reduced + [rng.choice([0, 2, 3, 5])]
    yield base.vectorize(lanes, reduced).register(*sizes)
    if rows is not None:
        yield base.vectorize(rng.choice([2, 4, 8]), 0).register(rng.choice([0, 2]), 3)
        yield base.vectorize(4, 1).register(2, 2)
        yield base.tile(2, 8)


@pytest.mark.parametrize(("name", "rows"), sampled(product(ALONG, [None, 1, 5]), 2))
def test_results_are_those_of_two_passes(name: str, rows: int | None) -> None:
    rng = random.Random(f"{name} {rows}")
    type_ = rng.choice(["float", "float", "double", "int32", "uint8"])
    n = rng.choice([1, 2, 15, 16, 17, 33, 64, 200])
    sized = sized_of(ALONG[name], type_, n, rows)
    reference = compile_reference(sized)
    for options in some_options(rng, rows):
        device = replace(host_cpu(), threads=rng.choice([1, 1, 2, 3]))
        kernel = compile_cpu(sized, options, device=device)
        for _ in range(12):
            arrays = inputs_of(sized, rng)
            expected, actual = outputs_of(sized), outputs_of(sized)
            reference(arrays, expected)
            kernel(arrays, actual)
            for a, e in zip(actual, expected, strict=True):
                assert same(a, e), (options, type_, n, arrays, actual, expected)


@pytest.mark.parametrize("place", [0, 1, 24, 48, None])
@pytest.mark.parametrize("name", ["argmin", "argmax", "last", "ties", "both ends"])
def test_a_nan_is_equal_to_nothing(name: str, place: int | None) -> None:
    sized = sized_of(ALONG[name], "float", 49, None)
    array = np.arange(49, dtype=np.float32) % 5
    array[slice(None) if place is None else place] = np.nan
    expected, actual = outputs_of(sized), outputs_of(sized)
    compile_reference(sized)([array], expected)
    kernel = compile_cpu(sized, MappingOptions("mlp").vectorize(8, 0).register(3))
    assert joined(kernel.program) == len(actual) - 1
    kernel([array], actual)
    assert np.isnan(actual[0])
    assert all(map(same, actual, expected))


def test_points_that_are_combined_share_whether_one_was_nan() -> None:
    device = find("cascade lake")
    assert device is not None

    def masks(options: MappingOptions) -> list[tuple[str, ...]]:
        program = schedule(sized_of(ALONG["argmin"], "float", 320, 8), options, device)
        inside = [s for k in program.kernels for s in statements(k.body)]
        found = (s for s in inside if isinstance(s, ir.Declare) and s.name == "accumulator.nan")
        return [tuple(fold.name for fold in s.over) for s in found]

    along = MappingOptions().vectorize(16, 1)
    assert masks(along.register(1, 4)) == [("s0.n.lane",)]
    assert masks(along.register(2, 4)) == [("s0.m.register", "s0.n.lane")]
    # Each would have one of its own.
    assert masks(along.register(8)) == masks(MappingOptions().vectorize(8, 0).register(1, 4)) == []


@pytest.mark.parametrize("name", ALONG)
def test_the_interpreter_agrees(name: str) -> None:
    rng = random.Random(name)
    for rows in (None, 3):
        sized = sized_of(ALONG[name], "float", 21, rows)
        for options in some_options(rng, rows):
            program = schedule(sized, options, host_cpu())
            arrays = inputs_of(sized, rng)
            expected, actual = outputs_of(sized), outputs_of(sized)
            compile_reference(sized)(arrays, expected)
            names = [t.name for t in (*sized.checked.inputs, *sized.checked.outputs)]
            interpret(program, dict(zip(names, [*arrays, *actual], strict=True)))
            assert all(map(same, actual, expected)), (options, arrays, actual, expected)


@pytest.mark.parametrize("name", ALONG)
def test_which_go_along(name: str) -> None:
    others = len(ALONG[name].split("; ")) - 1
    one = schedule(sized_of(ALONG[name], "float", 40, None), MappingOptions(), host_cpu())
    assert joined(one) == others
    several = sized_of(ALONG[name], "float", 40, 6)
    assert joined(schedule(several, MappingOptions().chunk(2).fuse(), host_cpu())) == others
    # Other chunks were asked for, or none to be shared, or other loops.
    assert joined(schedule(several, MappingOptions().chunk(2).fuse(False), host_cpu())) == 0
    apart = MappingOptions().nest(0).vectorize(8, 1)
    assert joined(schedule(several, apart, host_cpu())) == others
    apart = apart.nest(1).vectorize(1)
    assert joined(schedule(several, apart, host_cpu())) <= others - 1


@pytest.mark.parametrize("rows", [None, 5])
def test_where_the_first_of_equal_points_decides(rows: int | None) -> None:
    """It takes one comparison a point, but only where later ones are known to be worse, and no
    value from before may be equal to that of a point."""
    deciding = {"argmin", "argmax", "expression", "table"}
    for name in ALONG:
        made = schedule(sized_of(ALONG[name], "float", 40, rows), MappingOptions(), host_cpu())
        inside = (s for k in made.kernels for s in statements(k.body))
        updates = [
            s.value
            for s in inside
            if isinstance(s, ir.Accumulate) and s.name == "accumulator.s1" and s.op == "="
        ]
        first = all(
            isinstance(v, ir.Select) and isinstance(v.otherwise, ir.Variable) for v in updates
        )
        assert (bool(updates) and first) == (name in deciding | {"both ends"}), name


@pytest.mark.parametrize("reason", APART)
def test_which_do_not(reason: str) -> None:
    rng = random.Random(reason)
    sized = sized_of(APART[reason], "float", 40, None)
    for options in (MappingOptions(), MappingOptions("mlp")):
        kernel = compile_cpu(sized, options)
        assert joined(kernel.program) == 0
        arrays = inputs_of(sized, rng)
        if "sum" not in reason:
            expected, actual = outputs_of(sized), outputs_of(sized)
            compile_reference(sized)(arrays, expected)
            kernel(arrays, actual)
            assert all(map(same, actual, expected))


def test_nothing_to_reduce() -> None:
    for rows in (None, 4):
        sized = sized_of(ALONG["argmin"], "float", 0, rows)
        expected, actual = outputs_of(sized), outputs_of(sized)
        array = np.zeros(sized.shapes["A"], np.float32)
        compile_reference(sized)([array], expected)
        compile_cpu(sized, MappingOptions("mlp"))([array], actual)
        assert all(map(same, actual, expected))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("lines", "passes"),
    [
        ("S(m) +=! A(m, n)\n Q(m) +=! A(m, n) * A(m, n)", 1),
        ("S(m) max=! A(m, n)\n Q(m) min=! A(m, n)", 1),
        ("S(m) +=! A(m, n)\n Q(m) += A(m, n) * 2", 1),
        ("S(n) +=! A(m, n)\n Q(n) +=! A(m, n) * A(m, n)", 1),
        # It needs the other's result, or reads something else, or in another order.
        ("S(m) max=! A(m, n)\n Q(m) +=! exp(A(m, n) - S(m))", 2),
        ("S(m) +=! A(m, n)\n Q(m) +=! B(m, n)", 2),
        ("S(m) +=! A(m, n)\n Q(n) +=! A(m, n)", 2),
    ],
)
def test_reductions_that_read_the_same_go_together(lines: str, passes: int, threads: int) -> None:
    text = f"def f(float(M, N) A, float(M, N) B) -> (S, Q) {{ {lines} }}"
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (7, 7), (37, 100), (37, 37)):
        if "Q(n)" in lines and "S(m)" in lines and rows != columns:
            continue
        a, b = (rng.random((rows, columns)).astype(np.float32) for _ in "AB")
        definition = check(text)["f"]
        sized = infer(definition, {"A": a.shape, "B": b.shape})
        shape = (columns,) if "S(n)" in lines else (rows,)
        for options in (MappingOptions("naive"), MappingOptions("mlp")):
            device = replace(host_cpu(), threads=threads)
            program = schedule(sized, options, device)
            if rows == 37 and options.preset == "naive":
                assert ("accumulator.s1" in show(program)) == (passes == 1)
            second = shape if passes == 1 or "Q(m)" in lines else (columns,)
            expected = [np.ones(s, np.float32) for s in (shape, second)]
            actual = [e.copy() for e in expected]
            compile_reference(sized)((a, b), expected)
            compile_cpu(sized, options, device=device)((a, b), actual)
            for e, found in zip(expected, actual, strict=True):
                np.testing.assert_allclose(found, e, rtol=1e-5)
