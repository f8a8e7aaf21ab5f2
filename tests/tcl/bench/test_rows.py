"""The rows of the benchmark suite: what they cost, and which are selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.bench.rows import KINDS, ROWS, SUITE, SUITE_KINDS, Row, retyped, select
from tcl.common.errors import ArgumentError
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.tree import checked as c

Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[object, ...]


# What rows cost, counted point by point.

SMALL = {
    "group_convolution": {"N": 2, "G": 2, "C": 2, "F": 3, "H": 5, "W": 4, "KH": 3, "KW": 2},
    "masked_convolution": {"B": 2, "C": 3, "H": 5, "W": 4, "F": 4, "K": 2},
}
DEFS = list({(row.entry, row.type): row for row in ROWS}.values())
each_def = pytest.mark.parametrize("row", DEFS, ids=lambda r: f"{r.entry}, {r.type}")
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)


def small(row: Row) -> dict[str, int]:
    return SMALL.get(row.entry) or dict(replace(row, sizes="test").values)


@dataclass
class Counter:
    """Runs over every point of a def and notes each value that is computed, by what it is
    computed from: a value that comes up again is the same value."""

    sized: SizedDef
    inputs: Mapping[str, Array]
    values: set[Key] = field(default_factory=set)
    steps: int = 0
    products: int = 0
    """Points of sums of products."""
    touched: set[Key] = field(default_factory=set)
    written: set[Key] = field(default_factory=set)
    version: dict[str, int] = field(default_factory=dict)

    def count(self) -> None:
        for statement in self.sized.statements:
            for point in self.points(statement):
                self.lets: dict[str, Key] = {}
                for let in statement.statement.lets:
                    self.lets[let.name] = self.key(let.value, point)
                self.key(statement.statement.rhs, point)
                target = self.sized.checked.tensors[statement.statement.target]
                self.steps += statement.statement.op != "=" and target.type.is_float
                right = statement.statement.rhs
                multiplied = isinstance(right, c.Binary) and right.op == "*"
                self.products += statement.statement.op == "+" and multiplied
                position = tuple(point[i] for i in statement.statement.indices)
                self.written.add((target.name, *position))
            name = statement.statement.target
            self.version[name] = self.version.get(name, 0) + 1

    def points(self, statement: SizedStatement) -> Iterator[dict[str, int]]:
        names = list(statement.ranges)
        for values in product(*(range(*statement.ranges[n]) for n in names)):
            yield dict(zip(names, values, strict=True))

    def key(self, e: c.Expr, point: Mapping[str, int]) -> Key:  # noqa: C901
        """What identifies the expression's value; ``("value", v)`` where it is known."""
        match e:
            case c.Const():
                return "value", e.value
            case c.Index():
                return "value", point[e.name]
            case c.Size():
                return "value", self.sized.sizes[e.name]
            case c.Dimension():
                return "value", self.sized.shapes[e.tensor][e.axis]
            case c.LetRef():
                return self.lets[e.name]
            case c.Cast():
                inner = self.key(e.operand, point)
                return inner if inner[0] == "value" else ("cast", inner)
            case c.Read():
                where: tuple[Any, ...] = tuple(self.key(s, point)[1] for s in e.subscripts)
                if e.tensor in self.inputs:
                    self.touched.add((e.tensor, *where))
                    if not e.type.is_float:
                        return "value", int(self.inputs[e.tensor][where])
                return "read", e.tensor, self.version.get(e.tensor, 0), *where
            case c.Select():
                condition = self.key(e.condition, point)
                if condition[0] == "value":
                    return self.key(e.then if condition[1] else e.otherwise, point)
                return "select", condition, self.key(e.then, point), self.key(e.otherwise, point)
            case c.Binary(op="&&" | "||"):
                left = self.key(e.left, point)
                if bool(left[1]) == (e.op == "||"):
                    return left
                return self.key(e.right, point)
            case c.Unary():
                return self.computed(e, e.op, self.key(e.operand, point))
            case c.Binary():
                return self.computed(e, e.op, self.key(e.left, point), self.key(e.right, point))
            case c.Call():
                return self.computed(e, e.name, *(self.key(a, point) for a in e.arguments))

    def computed(self, e: c.Expr, name: str, *operands: Key) -> Key:
        if all(o[0] == "value" for o in operands):
            if e.type.is_float:
                return "value", (name, operands)  # a constant: its value does not matter
            return "value", _evaluate(name, *(o[1] for o in operands))
        key = (name, *operands)
        if e.type.is_float:
            self.values.add(key)
        return key


def _evaluate(op: str, *x: Any) -> Any:
    match op:
        case "+":
            return x[0] + x[1]
        case "-":
            return x[0] - x[1] if len(x) == 2 else -x[0]
        case "*":
            return x[0] * x[1]
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return eval(f"a {op} b", {"a": x[0], "b": x[1]})
    raise AssertionError(op)


def counted(row: Row) -> Counter:
    sizes = small(row)
    checked = row.checked
    inputs = dict(zip((t.name for t in checked.inputs), random_inputs(checked, sizes), strict=True))
    if "Mask" in inputs:
        inputs["Mask"].fill(1)  # the cost is that of nothing masked
    if "I1" in inputs:
        index = inputs["I1"]
        index[...] = np.arange(index.size).reshape(index.shape) % sizes["E1"]  # all that can be
    shapes = {t.name: input_shape(t, sizes) for t in checked.inputs}
    counter = Counter(infer(checked, shapes), inputs)
    counter.count()
    return counter


@each_def
def test_costs_are_what_is_counted(row: Row) -> None:
    counter = counted(row)
    types = {n: t.type for n, t in row.checked.tensors.items()}
    sizes = small(row)
    cost = row.cost(sizes)
    integers = sum(n for kind, n in cost.products.items() if kind.startswith("int"))
    assert cost.operations - integers == len(counter.values) + counter.steps
    assert integers == (2 * counter.products if row.type in ("int8", "uint8") else 0)
    if row.type in ("bfloat16", "float16"):
        assert cost.products == {row.type: 2 * counter.products}
        assert cost.single == cost.operations - 2 * counter.products
    corners = 16 if row.entry == "stencil" else 0  # which are in no one's neighbourhood
    assert cost.read == sum(types[str(t)].bits // 8 for t, *_ in counter.touched) + corners
    written = [str(t) for t, *_ in counter.written if t in row.results]
    assert cost.written == sum(types[t].bits // 8 for t in written)


# The suite.


@each_row
def test_rows_are_consistent(row: Row) -> None:
    assert row.kind in KINDS
    outputs = {t.name for t in row.checked.outputs}
    assert set(row.results) <= outputs
    assert row.sizes != "test"
    cost = row.cost()
    assert min(cost.operations, cost.read, cost.written) > 0
    if row.batch:
        shapes = {t.name: input_shape(t, row.values) for t in row.checked.inputs}
        sized = infer(row.checked, shapes)
        assert all(sized.shapes[r][0] == row.values[row.batch] for r in row.results)


TYPES = ("float16", "bfloat16", "float64", "int8", "uint8")


def test_rows_are_selected() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) == 55
    assert {row.kind for row in ROWS} == set(KINDS)
    assert {row.kind for row in SUITE} == set(SUITE_KINDS)
    assert ROWS[: len(SUITE)] == SUITE
    assert select(None) == list(ROWS)
    assert [r.name for r in select("matmul 512")] == ["matmul 512"]
    found = {r.entry for r in select("matmul ????,SOFTMAX")}
    assert found == {"matmul", "softmax_twice"}
    assert {r.type for r in select("matmul 512*")} == {"float32", *TYPES}
    assert [r.name for r in select("matmul 2048", quick=True)] == ["matmul 2048"]
    assert 0 < len(select(None, quick=True)) < len(ROWS)
    for pattern in ("nothing", "softmax,nothing"):
        with pytest.raises(ArgumentError, match=r"no row matches 'nothing'; rows are: matmul 512"):
            select(pattern)
    with pytest.raises(ArgumentError, match="there is no pattern in ', '"):
        select(", ")


@pytest.mark.parametrize("type_", TYPES)
def test_rows_of_other_types(type_: str) -> None:
    rows = [row for row in ROWS if row.type == type_]
    extents = {row.values["M"] for row in rows if row.file == "matmul"}
    assert extents == {512, 1024, 2048}
    for row in rows:
        first, *_ = row.checked.inputs
        assert first.type.name == type_
        assert type_ in row.name
        (output,) = row.checked.outputs
        assert output.type.name == ("int32" if "int" in type_ else type_)


def test_a_text_in_another_type() -> None:
    assert retyped("float floats float64", "float16") == "float16 floats float64"
    assert retyped("float", "int8") == "float"
