"""``tcl.reference``, and the text that ``tcl show --stage reference`` prints of it."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import random_program

import tcl
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.compiled import bound
from tcl.codegen.reference.runtime import namespace
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
BOTH = """def both(float(N) X, int32(N) I) -> (Y, float(3) H) {
    Y(i) = exp(X(i)) / 3
    H(I(i)) +=! X(i)
}"""


def test_it_takes_what_a_call_takes() -> None:
    a, b = np.random.default_rng(0).random((2, 4, 4), np.float32)
    made = tcl.reference(MM, "mm", a, b)
    np.testing.assert_allclose(made, a @ b, rtol=1e-5)
    np.testing.assert_array_equal(tcl.reference(MM, "mm", a, B=b), made)
    into = np.zeros((4, 4), np.float32)
    assert tcl.reference(MM, "mm", a, b, outputs=into) is into
    np.testing.assert_array_equal(into, made)
    added = np.ones((4, 4), np.float32)
    tcl.reference(MM.replace("!", ""), "mm", a, b, outputs=(added,))
    np.testing.assert_allclose(added, 1 + a @ b, rtol=1e-5)


def test_several_outputs_are_named(tmp_path: Path) -> None:
    file = tmp_path / "both.tc"
    file.write_text(BOTH)
    x, places = np.arange(4, dtype=np.float32), np.array([0, 2, 2, 1], np.int32)
    made = tcl.reference(file, "both", x, places)
    np.testing.assert_allclose(made.Y, np.exp(x) / 3, rtol=1e-6)
    np.testing.assert_array_equal(made.H, [0, 3, 3])


def test_what_is_wrong_is_said_as_calls_say_it() -> None:
    x, places = np.ones(4, np.float32), np.zeros(4, np.int32)
    functions = tcl.define(BOTH).both, lambda *a, **k: tcl.reference(BOTH, "both", *a, **k)
    cases: list[tuple[Any, Any, type[Exception]]] = [
        ((x,), {}, tcl.ArgumentError),
        ((x, x), {}, tcl.ArgumentError),
        ((x, places[:3]), {}, tcl.ArgumentError),
        ((x, places + 3), {}, IndexError),
        ((x, places), {"outputs": x}, tcl.ArgumentError),
        ((x,), {"J": places}, tcl.ArgumentError),
    ]
    for inputs, named, error in cases:
        told = []
        for function in functions:
            with pytest.raises(error) as caught:
                function(*inputs, **named)
            told.append(str(caught.value))
        assert told[0] == told[1]
    with pytest.raises(tcl.ArgumentError, match="did you mean 'both'"):
        tcl.reference(BOTH, "bot", x, places)
    with pytest.raises(tcl.ArgumentError, match="a def is selected by its name, a string, not"):
        tcl.reference(BOTH, x, places)  # type: ignore[arg-type]
    with pytest.raises(tcl.ArgumentError, match="pass outputs="):
        tcl.reference("def f(float(N) X) -> (S) { S += X(i) }", "f", x)


@pytest.mark.filterwarnings("ignore::tcl.TclWarning")
@pytest.mark.parametrize("seed", range(12))
def test_the_names_of_the_text_are_where_it_says(seed: int) -> None:
    """It runs with these names and no others."""
    program = random_program(seed)
    checked = check(program.source)[program.entry]
    sized = infer(checked, program.shapes)
    inputs = tuple(program.inputs(seed).values())
    text = compile_reference(sized, jit=False).explained()
    said = re.search(r"^# (.*): in namespace", text, re.MULTILINE)
    names = said[1].split(", ") if said else []
    module: dict[str, Any] = {name: namespace(False)[name] for name in names}
    exec(text, module)
    outputs = [np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in checked.outputs]
    arrays = bound(sized, inputs, outputs)
    error = np.zeros(2, np.int64)
    with np.errstate(all="ignore"):
        for number in range(len(sized.statements)):
            function = module[f"statement_{number}"]
            tensors = [name.removeprefix("t_") for name in signature(function).parameters][:-1]
            function(*(arrays[name] for name in tensors), error)
        expected = tcl.reference(program.source, program.entry, *inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert [a.tobytes() for a in outputs] == [a.tobytes() for a in expected]
