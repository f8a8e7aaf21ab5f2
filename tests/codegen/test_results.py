"""Nests that work on the results of another one while these are in registers: when they do, and
that what comes out is what comes out of one nest after the other."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import accepted
from loopir_interpreter import interpret
from nests import WIDE
from sampling import sampled

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import loads, statements
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.reference import compile_reference
from tcl.codegen.schedule.cpu import plan_cpu, schedule
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

Array = npt.NDArray[Any]

PRODUCT = "X(m, n) +=! A(m, k) * B(k, n)"
ALONG = {
    "bias": f"{PRODUCT}; X(m, n) = X(m, n) + V(n)",
    "bias and activation": f"{PRODUCT}; X(m, n) = X(m, n) + V(n); X(m, n) = max(X(m, n), 0)",
    "another tensor": f"{PRODUCT}; Y(m, n) = X(m, n) * A(n, m)",
    "both": f"{PRODUCT}; Y(m, n) = X(m, n) * 2; X(m, n) = X(m, n) + V(n)",
    "unrelated": f"{PRODUCT}; Y(m, n) = A(n, m)",
    "in place": f"{PRODUCT}; X(m, n) *= A(m, n)",
    "cleared and added": f"{PRODUCT}; Y(m, n) +=! X(m, n)",
    "of a sum that goes on": "X(m, n) = 3 * V(n); X(m, n) += A(m, k); X(m, n) = X(m, n) + V(n)",
    "start": "X(m, n) = V(n); X(m, n) += A(m, k) * B(k, n)",
    "start by other names": "X(n, m) = V(n); X(m, n) += A(m, k) * B(k, n)",
    "start and end": "X(m, n) = V(n); X(m, n) max= A(m, k) * B(k, n); Y(m, n) = X(m, n) - V(m)",
    "start of other points": "X(m, n) = A(n, m) * 2; X(m, n) += A(m, k) * B(k, n)",
    "points": "X(m, n) = A(m, n) + 1; Y(m, n) = X(m, n) * X(m, n); Z(m, n) = Y(m, n) - X(m, n)",
    "results of two sums": "S(m) +=! A(m, k); T(m) +=! A(m, k) * A(m, k); S(m) = T(m) - S(m)",
    "mean": "S(m) +=! A(m, k); S(m) = S(m) / 3; T(m) = S(m) * S(m)",
    "of lanes in the data": f"{PRODUCT}; Y(m, n) = V(n) > 2 ? X(m, n) : A(m, n)",
}
"""Statements of which all but one are fused with that one."""
APART = {
    "other point": f"{PRODUCT}; Y(m, n) = X(n, m)",
    "another point besides": f"{PRODUCT}; Y(m, n) = X(m, n) + X(0, n)",
    "place in the data": f"{PRODUCT}; Y(m, n) = A(m, n) + B(0, 0) * X(W(n), n)",
    "place in the results": "X(m, n) min=! W(k) + W(n) * 0; Y(m, n) = A(m, X(m, n))",
    "an operand of the sum": "Y(m, n) +=! A(m, k); X(m, n) +=! Y(k, n); Y(m, n) = A(m, n)",
    "an operand of what is between": (
        f"Z(m, n) +=! A(m, k); {PRODUCT}; Y(m, n) = Z(n, m) + X(m, n); Z(m, n) = A(m, n)"
    ),
    "other dimensions": f"{PRODUCT}; S(m) = X(m, 0)",
    "a sum beside one that starts from its tensor": (
        "S(m) = V(m); T(m) = S(0); T(m) += A(m, k); S(m) +=! A(m, k)"
    ),
}
"""Statements of which at least two have loops of their own."""
M = 11


def ranges(line: str, size: int) -> str:
    return ", ".join(f"{i} in 0:{size}" for i in "mnk" if re.search(rf"\b{i}\b", line))


def sized_of(body: str, type_: str = "int32", size: int = M) -> SizedDef:
    outs = ", ".join(dict.fromkeys(s.split("(")[0].strip() for s in body.split("; ")))
    # Indices of data are of a type of their own, whatever the values are of.
    source = (
        f"def f({type_}(M, M) A, {type_}(M, M) B, {type_}(M) V, int32(M) W) -> ({outs}) {{\n"
        + "\n".join(f"{line} where {ranges(line, size)}" for line in body.split("; "))
        + "\n}"
    )
    shapes = {"A": (size, size), "B": (size, size), "V": (size,), "W": (size,)}
    return infer(check(source)["f"], shapes)


def inputs_of(sized: SizedDef, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, M, sized.shapes[t.name]).astype(numpy_dtype(t.type))
        for t in sized.checked.inputs
    ]


def outputs_of(sized: SizedDef) -> list[Array]:
    """What was there before is part of what some statements compute."""
    rng = np.random.default_rng(1)
    return [
        rng.integers(0, M, sized.shapes[t.name]).astype(numpy_dtype(t.type))
        for t in sized.checked.outputs
    ]


def all_options(rng: random.Random) -> list[MappingOptions]:
    lanes, rows = rng.choice([2, 4, 16]), rng.choice([2, 3])
    chunks = (rng.choice([1, 2, 0]), rng.choice([0, 3]))
    return [
        MappingOptions(),
        MappingOptions("mlp"),
        MappingOptions("mlp").chunk(*chunks).fuse(),
        MappingOptions().vectorize(lanes, rng.choice([0, 1])).register(rows, 2),
        MappingOptions().chunk(*chunks).fuse().vectorize(lanes, 1).register(0, 2),
        # Reductions in lanes; reductions outside of results; one nest that wants it otherwise.
        MappingOptions("mlp").nest(0).vectorize(lanes, 2),
        MappingOptions("mlp").nest(0).tile(0, 0, 2).nest(0).order(2, 0, 1),
        MappingOptions("mlp").nest(1).vectorize(rng.choice([1, 2, 4]), 0),
    ]


def check_all(body: str, type_: str, rng: random.Random) -> None:
    sized = sized_of(body, type_)
    arrays, expected = inputs_of(sized, rng.randrange(1000)), outputs_of(sized)
    compile_reference(sized)(arrays, expected)
    for options in all_options(rng):
        device = replace(host_cpu(), threads=rng.choice([1, 2]))
        if not accepted(sized, options, device):
            continue
        kernel = compile_cpu(sized, options, device=device)
        actual = outputs_of(sized)
        kernel(arrays, actual)
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, e, err_msg=f"{body} {type_} {options}")


def loops(program: ir.Built) -> int:
    """Nests that have loops of their own."""
    return len(program.spaces)


@pytest.mark.parametrize("name", [*ALONG, *APART])
def test_results_are_those_of_one_nest_after_the_other(name: str) -> None:
    rng = random.Random(name)
    type_ = rng.choice(["int32", "float", "double", "half", "int8"])
    check_all({**ALONG, **APART}[name], type_, rng)


@pytest.mark.parametrize("name", [*ALONG, *APART])
def test_the_interpreter_agrees(name: str) -> None:
    sized = sized_of({**ALONG, **APART}[name])
    for options in (MappingOptions(), MappingOptions("mlp")):
        arrays, expected, actual = inputs_of(sized, 3), outputs_of(sized), outputs_of(sized)
        compile_reference(sized)(arrays, expected)
        names = [t.name for t in (*sized.checked.inputs, *sized.checked.outputs)]
        program = schedule(sized, options, host_cpu())
        interpret(program, dict(zip(names, [*arrays, *actual], strict=True)))
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("options", [MappingOptions(), MappingOptions("mlp")])
def test_which_go_along(options: MappingOptions) -> None:
    for name, body in ALONG.items():  # with lanes: without, two sums take two passes
        assert loops(schedule(sized_of(body, size=48), options, WIDE)) == 1, name
    for name, body in APART.items():
        assert loops(schedule(sized_of(body, size=48), options, WIDE)) > 1, name


def test_what_is_overwritten_at_once_is_not_stored() -> None:
    one = schedule(sized_of(ALONG["bias and activation"]), MappingOptions(), host_cpu()).kernels[0]
    stores = [s for s in statements(one.body) if isinstance(s, ir.Store)]
    assert [s.ref.tensor for s in stores] == ["X"]
    assert not [x for s in stores for x in loads(s.value)]


def test_half_precision_is_rounded_where_it_is_stored() -> None:
    sized = sized_of(ALONG["bias"], "half")
    assert loops(schedule(sized, MappingOptions(), host_cpu())) == 2


def test_a_nest_with_choices_of_its_own_has_loops_of_its_own() -> None:
    sized = sized_of(ALONG["bias"])
    along = MappingOptions("mlp").nest(0).register(2, 1)
    assert loops(schedule(sized, along, host_cpu())) == 1
    chosen = plan_cpu(lower(sized), along, host_cpu()).options
    assert chosen["s1"].register == chosen["s0"].register
    assert loops(schedule(sized, along.nest(1).register(3, 1), host_cpu())) == 2
    chunked = MappingOptions("mlp").chunk(2).nest(1).fuse(False)
    assert loops(schedule(sized, chunked, host_cpu())) == 2


def test_partial_sums_are_finished_first() -> None:
    sized = sized_of(ALONG["bias"])
    tiled = MappingOptions().nest(0).tile(0, 0, 2).nest(0).order(2, 0, 1)
    assert loops(schedule(sized, tiled, host_cpu())) == 2


def test_a_value_that_an_epilogue_changes_is_not_kept() -> None:
    # What Y's nest computes must not be kept for S: X, which is fused with Y, is another by then.
    body = "X(m, n) = A(m, n); T(m) +=! X(m, n); Y(m, n) = exp(X(m, n)); "
    body += "X(m, n) = X(m, n) + V(n); S(m) +=! exp(X(m, n))"
    sized = sized_of(body, "float")
    arrays, expected = inputs_of(sized, 5), outputs_of(sized)
    compile_reference(sized)(arrays, expected)
    for options in (MappingOptions("mlp").chunk(2).fuse(), MappingOptions().chunk(1).fuse()):
        actual = outputs_of(sized)
        compile_cpu(sized, options)(arrays, actual)
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-5)


def test_many_calls_are_not_written_out_among_results() -> None:
    text = "X(m, n) +=! A(m, k) * B(k, n); X(m, n) = %s"
    short = sized_of(text % "tanh(X(m, n))", "float")
    deep = "X(m, n)"
    for name in ("tanh", "exp", "sin", "cos", "erf", "log") * 4:
        deep = f"{name}({deep})"
    options = MappingOptions("mlp").nest(0).vectorize(4, 1).nest(0).register(4, 1)
    assert loops(schedule(short, options, host_cpu())) == 1
    assert loops(schedule(sized_of(text % deep, "float"), options, host_cpu())) == 2


def random_body(rng: random.Random) -> str:
    """Statements over three tensors, each of which may depend on those before it and itself."""
    tensors = ["X", "Y", "Z"]
    lines = [f"{t}(m, n) {rng.choice(['= A(n, m)', '+=! B(m, k)'])}" for t in tensors]
    for _ in range(rng.randint(2, 6)):
        position = rng.randrange(3)
        reduced = rng.random() < 0.4
        # A statement may not read what it reduces into.
        place = rng.choice(["m, n", "m, n", "m, n", "n, m", "m, 0", "2, n", "m, m"])
        known = tensors[: position + (not reduced and place == "m, n")]
        value = f"{rng.choice(['A', 'B', *known])}({place}) {rng.choice('+-*')} "
        value += rng.choice(["V(n)", "V(m)", "3"])
        if rng.random() < 0.2:
            value = f"{rng.choice(['A', *known])}(m, n) > 2 ? {value} : B(m, n)"
        op = rng.choice(["=", "=", "=", "+=", "*=", "max=", "+=!"])
        if reduced:
            op = rng.choice(["+=", "+=!", "max=", "min=!"])
            value = f"({value}) + {rng.choice(['A', *known])}({rng.choice(['m, k', 'k, n'])})"
        elif op != "=":
            value = re.sub(rf"\b{tensors[position]}\b", "A", value)
        lines.append(f"{tensors[position]}(m, n) {op} {value}")
    return "; ".join(lines)


@pytest.mark.parametrize("seed", sampled(range(40), 7))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    check_all(random_body(rng), rng.choice(["int32", "int32", "int8", "uint16"]), rng)


def test_random_programs_have_nests_that_go_along() -> None:
    """Else the test above would show nothing."""
    along = 0
    for seed in range(40):
        program = lower(sized_of(random_body(random.Random(seed))))
        along += sum(len(u.followers) for u in fusion_groups(program.nests))
    assert along > 80
