"""The checks that need no sizes, on the corpus and on what a checked definition says."""

from __future__ import annotations

import pytest
from programs import ACCEPTED, SEMANTIC, WARNED, in_def, unmark

from tcl.arrays.random_inputs import random_inputs
from tcl.common.errors import ArgumentError
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.errors import TclSemanticError
from tcl.grammar.tree import checked as c


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    defs = check(in_def(text))
    assert all(d.outputs for d in defs.values())


@pytest.mark.parametrize("case", SEMANTIC, ids=lambda case: str(case[0])[:60])
def test_rejected(case: tuple[str, ...]) -> None:
    marked = unmark(in_def(case[0]))
    with pytest.raises(TclSemanticError) as caught:
        check(marked.text, "file.tc")
    error = caught.value
    found = [
        (d.span.line, d.span.column, marked.text[d.span.start : d.span.end])
        for d in error.diagnostics
    ]
    assert found == list(marked.places)
    for diagnostic, fragment in zip(error.diagnostics, case[1:], strict=True):
        assert fragment in diagnostic.message
        assert diagnostic.section is not None
        assert diagnostic.section.pointer in str(error)
    assert (error.line, error.column) == marked.places[0][:2]
    assert f"file.tc:{error.line}:{error.column}: error: " in str(error)


@pytest.mark.parametrize(("text", "fragment"), WARNED)
def test_warned(text: str, fragment: str) -> None:
    marked = unmark(in_def(text))
    (definition,) = check(marked.text).values()
    (warning,) = definition.warnings
    place = (warning.span.line, warning.span.column)
    assert (*place, marked.text[warning.span.start : warning.span.end]) == marked.places[0]
    assert fragment in warning.message
    assert warning.section is not None
    assert definition.uninitialised


def test_caret_stands_below_the_mistake() -> None:
    with pytest.raises(TclSemanticError) as caught:
        check("def f(float(N) A) -> (O) {\n\tO(i) = A(i) + Bee(i)\n}")
    _, shown, carets = str(caught.value).split("\n")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "Bee"


def test_cycle_notes_name_each_statement() -> None:
    text = "def f(float(N) A) -> (P, Q) {\n  P(i) = A(i)\n  Q(i) = P(i)\n  P(i) = Q(i)\n}"
    with pytest.raises(TclSemanticError) as caught:
        check(text)
    (problem,) = caught.value.diagnostics
    assert [(span.line, note) for span, note in problem.notes] == [
        (3, "here Q depends on P"),
        (4, "here P depends on Q"),
    ]


def _only(text: str) -> c.CheckedDef:
    return list(check(in_def(text)).values())[-1]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("b(i)", "float32"),
        ("idx(i)", "int32"),
        ("c(i)", "bool"),
        ("c(i) + c(i)", "int32"),
        ("-c(i)", "int32"),
        ("min(c(i), c(i))", "bool"),
        ("idx(i) * 0.5", "float32"),
        ("idx(i) / 2", "int32"),
        ("b(i) * 0.1", "float32"),
        ("double(b(i)) * 0.1", "float64"),
        ("half(b(i)) * 0.1", "float16"),
        ("half(b(i)) + bfloat16(b(i))", "float32"),
        ("half(b(i)) + idx(i)", "float16"),
        ("uint8(b(i)) + 1", "uint8"),
        ("uint8(b(i)) + 256", "int32"),
        ("uint8(b(i)) - int8(b(i))", "int8"),
        ("uint64(b(i)) + int8(b(i))", "int64"),
        ("idx(i) + 4294967296", "int64"),
        ("3000000000", "int64"),
        ("18446744073709551615", "uint64"),
        ("1", "int32"),
        ("1.5", "float32"),
        ("c(i) ? 1 : 2.5", "float32"),
        ("c(i) ? 1 : idx(i)", "int32"),
        ("c(i) ? int64(1) : idx(i)", "int64"),
        ("b(i) < double(s)", "bool"),
        ("exp(idx(i))", "float32"),
        ("exp(half(b(i)))", "float16"),
        ("pow(b(i), double(s))", "float64"),
        ("int64(i)", "int64"),
        ("i + N", "int32"),
        ("b.0", "int32"),
        ("float(double(b(i)))", "float32"),
    ],
)
def test_types(value: str, type_: str) -> None:
    definition = _only(f"O(i) = {value} where exists b(i)")
    assert str(definition.outputs[0].type) == type_
    assert definition.statements[0].rhs.type == definition.outputs[0].type


@pytest.mark.parametrize(
    ("op", "type_"), [("+=!", "int32"), ("*=!", "int32"), ("min=!", "bool"), ("max=!", "bool")]
)
def test_reductions_of_booleans(op: str, type_: str) -> None:
    assert str(_only(f"O {op} c(i)").outputs[0].type) == type_


@pytest.mark.parametrize(
    ("value", "folded"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 % -4", 3),
        ("-7 % 4", -3),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("2 * 3 % 4", 2),
        ("- -3", 3),
        ("7 / 2.0", 3.5),
        ("-7.5 % 2", -1.5),
        ("min(3, 4.5)", 3.0),
        ("1.0 * 0 + 3e-3", 3e-3),
        ("1 < 2", True),
        ("1 + 1 == 2", True),
    ],
)
def test_literals_fold_as_in_c(value: str, folded: float) -> None:
    rhs = _only(f"O = {value}").statements[0].rhs
    assert isinstance(rhs, c.Const)
    assert (rhs.value, type(rhs.value)) == (folded, type(folded))


def test_statement_of_a_reduction() -> None:
    definition = _only("O(m) +=! A(m, n + k) * b(k) where k in 0:3, x = s, exists A(m, n)")
    (statement,) = definition.statements
    assert (statement.target, statement.indices, statement.op) == ("O", ("m",), "+")
    assert statement.initialise
    assert statement.reduction == ("n", "k")
    assert [let.name for let in statement.lets] == ["x"]
    assert [r.index for r in statement.ranges] == ["k"]
    assert len(statement.exists) == 1
    assert definition.uninitialised == frozenset()
    assert definition.sizes == ("M", "N")


def test_calls_are_expanded_over_the_callers_tensors() -> None:
    definition = _only(
        "def g(float(P, Q) X) -> (Y, Z) { Y(i) +=! X(i, j) Z(j) +=! X(i, j) }\n"
        "def f(float(M, N) A) -> (R, S) { S, R = g(A) }"
    )
    first, second = definition.statements
    assert (first.target, second.target) == ("S", "R")
    assert all(isinstance(s.rhs, c.Read) and s.rhs.tensor == "A" for s in (first, second))
    assert [t.name for t in definition.outputs] == ["R", "S"]
    assert definition.sizes == ("M", "N")


def test_a_tensor_that_is_faulty_can_be_passed() -> None:
    text = (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\n"
        "def f(float(N) A) -> (O, P) { O(i) = B(i) P = g(O) }"
    )
    with pytest.raises(TclSemanticError, match="undefined tensor or function 'B'") as caught:
        check(text)
    assert len(caught.value.diagnostics) == 1


def test_calls_nest_only_so_deep_in_any_order() -> None:
    first = "def f0(float(N) A) -> (O) { O(i) = A(i) }"
    for depth, legal in ((32, True), (33, False)):
        chain = [f"def f{k}(float(N) A) -> (O) {{ O = f{k - 1}(A) }}" for k in range(1, depth + 1)]
        for text in ("\n".join([first, *chain]), "\n".join([*reversed(chain), first])):
            if legal:
                assert len(check(text)) == depth + 1
            else:
                with pytest.raises(TclSemanticError, match="nested deeper than 32") as caught:
                    check(text)
                assert len(caught.value.diagnostics) == 1


def test_a_faulty_callee_is_reported_once() -> None:
    text = (
        "def g(float(N) X) -> (Y, Z) { Y(i) = X(i) Z(i) = W(i) }\n"
        "def h(float(N) A) -> (O, P) { O, P = g(A) }\n"
        "def f(float(N) A) -> (O, P) { O, P = h(A) }"
    )
    with pytest.raises(TclSemanticError) as caught:
        check(text)
    assert [d.message.split(";")[0] for d in caught.value.diagnostics] == [
        "undefined tensor or function 'W'"
    ]


def test_random_inputs_with_no_value_to_choose_say_so() -> None:
    text = "# values I: 0..N\ndef f(int32(M) I, float(N) A) -> (O) { O(m) = A(I(m)) }\n"
    with pytest.raises(ArgumentError, match="no value for 'I' from 0 up to, and not including, 0;"):
        random_inputs(check(text)["f"], {"M": 2, "N": 0})


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            "uint8",
            "0..1000",
            "of f names 0..1000, but uint8 goes from 0 to 255",
        ),
        ("uint8", "-3..3", "of f names -3..3, but uint8 goes from 0 to 255"),
        ("int8", "0..N", "goes from 0 to 299, but int8 from -128 to 127; choose other values or "),
        ("int32", "0..1e30", "of f names 0..1e30, but int32 goes from -2147483648 to "),
        ("int32", "0..inf", "of f names 0..inf, which are not two finite numbers or sizes"),
        ("half", "0..1e5", "goes from 0 to 100000, which float16 cannot hold; choose other "),
        ("float", "nan..1", "of f names nan..1, which are not two finite numbers or sizes"),
        ("float", "0..N-1", "of f names 0..N-1, which are not two finite numbers or sizes"),
        ("int8", "0.5..2", "of f names 0.5..2, but values of int8 are whole numbers"),
        ("bool", "0..3", "of f names 0..3, but bool goes from 0 to 1"),
        ("int8", "3..3", "of f leaves no value from 3 up to, and not including, 3"),
        ("float", "1..-1", "of f leaves no value from 1 up to, and not including, -1"),
    ],
)
def test_random_values_that_a_type_lacks_are_refused(kind: str, values: str, message: str) -> None:
    text = f"# values X: {values}\ndef f({kind}(N) X) -> (O) {{ O(n) = X(n) }}\n"
    with pytest.raises(ArgumentError, match=f"the comment '# values X' {message}"):
        random_inputs(check(text)["f"], {"N": 300})


def test_random_values_reach_the_ends_of_a_type() -> None:
    text = f"# values X: 0..{2**64}\ndef f(uint64(N) X) -> (O) {{ O(n) = X(n) }}\n"
    (values,) = random_inputs(check(text)["f"], {"N": 300})
    assert values.max() > 2**63 > values.min()


def test_a_def_knows_its_text_and_that_of_defs_it_calls() -> None:
    first = "def # undefined\n f(float(N) A) -> (B) { B(n) = A(n) }  # of f\n"
    other = "def other(float(N) A) -> (B) { B(n) = A(n) + 1.0 }\n"
    calls = "def g(float(N) A) -> (C) { C = f(A) }\ndef h(float(N) A) -> (D) { D = g(A) }"
    defs = check("# about both\n" + first + other + calls)
    texts = {name: checked.text for name, checked in defs.items()}
    own = calls.split("\n")[0] + "\n"
    assert texts == {"f": first, "other": other, "g": first + own, "h": first + calls}
    for name, checked in defs.items():
        assert check(checked.text)[name] == checked
