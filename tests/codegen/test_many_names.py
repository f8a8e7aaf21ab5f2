"""Names of a ``where`` that each stand for two of the one before: written out, 40 of them are 2**40
operations, and a pass that does so never ends."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import reference, run, sized_of

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import common_guard
from tcl.codegen.options.options import DEFAULT
from tcl.grammar.syntax.types import BOOL, FLOAT32, INDEX

CASES = (
    ("O(i) = t", "A(i)", "{0} + {0}"),
    ("O(i) = A(t % 8)", "uint32(I(i))", "{0} + {0}"),
    ("O(i) = A(min(t, 7))", "i", "min({0}, {0})"),
    ("O(i) = A(t % 8)", "i", "{0} / 2 + {0} % 3"),
    ("O(i) = t >= 0 && t < N ? A(t) : 0", "i - 1", "max({0}, {0})"),
    ("O(i) = A(min(t, 7))", "i", "{0} % 2 == 0 ? {0} : {0} / 2"),
    ("O(t % 8) +=! A(n)", "uint32(I(n))", "{0} + {0}"),
    ("O(i) +=! t > 3 ? A(n) : 0", "A(n)", "{0} * {0}"),
    ("O(i) +=! t % 2 == 0 ? A(n) : 0", "n", "{0} / 2 + {0} % 3"),
    ("O(i) +=! t ? A(n) : 0", "A(n) > 0", "{0} && !{0}"),
)


@pytest.mark.parametrize(("statement", "first", "step"), CASES)
def test_names_that_are_used_twice(statement: str, first: str, step: str) -> None:
    names = [*(f"t{k}" for k in range(39)), "t"]
    made = zip(names[1:], [step.format(name) for name in names], strict=False)
    lets = [f"t0 = {first}", *(f"{name} = {value}" for name, value in made)]
    indices = "i in 0:8, " if "(i)" in statement else ""
    text = f"def f(float(N) A, int32(N) I) -> (float(8) O) {{ {statement}"
    text = f"{text} where {indices}{', '.join(lets)} }}"
    inputs = np.linspace(0, 1, 8, dtype=np.float32), np.arange(8, dtype=np.int32)
    (made_here,), (expected,) = run(text, *inputs, options=DEFAULT), reference(text, *inputs)
    np.testing.assert_allclose(made_here, expected, rtol=1e-6)
    assert emit_module(sized_of(text, *inputs), DEFAULT, H200).source


@pytest.mark.parametrize("long", [False, True])
def test_a_name_that_two_nests_of_a_loop_give_other_values(long: bool) -> None:
    row, two, zero = (
        ir.Position(ir.Affine.variable("r"), INDEX),
        *(ir.Const(k, INDEX) for k in (2, 0)),
    )
    even = ir.Binary("==", ir.Binary("%", row, two, INDEX), zero, BOOL)
    many: ir.Value = row
    for _ in range(40):
        many = ir.Binary("/", many, two, INDEX)
    one, none = (ir.Const(k, FLOAT32) for k in (1.0, 0.0))
    added = ir.Accumulate("a", "+", ir.Select(ir.Variable("n", BOOL), one, none, FLOAT32))
    second = ir.Binary("==", many, zero, BOOL) if long else even
    body = ir.Block((ir.Let("n", even), added, ir.Let("n", second), added))
    found = common_guard(ir.For(ir.Loop(ir.Fold("k", "point", 1, 8)), body))
    assert found == (None if long else even)
