"""What a def has to do: operations and bytes, counted from its program; ``test_bench.py`` compares
the suite's with a count point by point."""

from __future__ import annotations

import math

import pytest

from examples import DEFS, definitions, sized_for
from tcl.arrays.annotations import parse_sizes
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.loopir.lower import lower
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.tree.checked import Tensor


def cost(source: str, **shapes: tuple[int, ...]) -> Cost:
    (checked,) = check(source).values()
    return cost_of(lower(infer(checked, shapes)))


def test_equal_values_count_once() -> None:
    twice = "def f(float(N) A) -> (B, C) { B(i) = exp(A(i)) + 1\n C(i) = exp(A(i)) * exp(A(i)) }"
    assert cost(twice, A=(10,)).operations == 30  # exp, + and *
    other = "def f(float(N) A) -> (B, C) { B(i) = exp(A(i))\n C(i) = exp(B(i)) }"
    assert cost(other, A=(10,)).operations == 20


def test_rewritten_tensor_is_another_one() -> None:
    found = cost(
        "def f(float(N) A) -> (B) { B(i) = A(i)\n B(i) = B(i) * B(i)\n B(i) = B(i) * B(i) }",
        A=(10,),
    )
    assert found.operations == 20
    assert (found.read, found.written) == (40, 40)


def test_values_count_where_they_differ() -> None:
    found = cost(
        "def f(float(M) A, float(N) B) -> (C) { C(i, j) = (A(i) * 2) + B(j) }", A=(10,), B=(7,)
    )
    assert found.operations == 10 + 70
    window = "def f(float(N) A) -> (B) { B(i) +=! fabs(A(i + k)) where i in 0:8, k in 0:3 }"
    assert cost(window, A=(10,)).operations == 10 + 24


def test_guarded_values_count_where_they_are_chosen() -> None:
    guarded = "def f(float(N) A) -> (B) { B(i) = i >= 3 && i < 9 ? A(i) * 2 : A(i) + 1 }"
    assert cost(guarded, A=(10,)).operations == 10
    one = "def f(float(N) A) -> (B) { B(i) = i >= 3 ? A(i) * 2 : 0 }"
    assert cost(one, A=(10,)).operations == 7
    data = "def f(float(N) A) -> (B) { B(i) = A(i) > 0 ? A(i) * 2 : A(i) + 1 }"
    assert cost(data, A=(10,)).operations == 20


def test_old_contents_that_matter_are_read() -> None:
    added = cost("def f(float(N, M) A) -> (B) { B(i) += A(i, j) }", A=(10, 5))
    assert (added.operations, added.read, added.written) == (50, 240, 40)
    fresh = cost("def f(float(N, M) A) -> (B) { B(i) +=! A(i, j) }", A=(10, 5))
    assert (fresh.operations, fresh.read, fresh.written) == (50, 200, 40)


def test_elements_that_are_not_used_are_not_read() -> None:
    assert cost("def f(float(N) A) -> (B) { B(i) = A(2 * i) where i in 0:4 }", A=(100,)).read == 16
    assert cost("def f(float(N) A) -> (B) { B(i) = A(i + 3) where i in 0:4 }", A=(100,)).read == 16
    table = "def f(float(E, D) T, int32(B) I) -> (O) { O(b, d) = T(I(b), d) }"
    assert cost(table, T=(1000, 8), I=(5,)).read == 5 * 8 * 4 + 5 * 4
    assert cost(table, T=(3, 8), I=(5,)).read == 3 * 8 * 4 + 5 * 4


def test_wide_numbers_weigh_more() -> None:
    for name, weight in (("float", 1.0), ("double", 2.0), ("float16", 1.0)):
        found = cost(f"def f({name}(N) A) -> (B) {{ B(i) = A(i) * A(i) }}", A=(10,))
        assert (found.operations, found.single) == (10, 10 * weight)


def test_integers_and_constants_are_free() -> None:
    whole = cost("def f(int32(N) A) -> (B) { B(i) +=! A(j) * 2 where i in 0:3 }", A=(10,))
    assert (whole.operations, whole.bytes_moved) == (0, 52)
    assert (
        cost("def f(float(N) A) -> (B) { B(i) = 1.5 * 2.0 where i in 0:N }", A=(10,)).operations
        == 0
    )


def test_nothing_costs_nothing() -> None:
    found = cost("def f(float(N, M) A) -> (B) { B(i) +=! A(i, j) * 2 }", A=(0, 5))
    assert found == Cost(0, 0, 0, 0)
    zeros = cost("def f(float(N, M) A) -> (B) { B(i) +=! A(i, j) * 2 }", A=(5, 0))
    assert zeros == Cost(0, 0, 0, 20)


def test_long_chains_of_equal_values_are_counted_at_once() -> None:
    """Each value is used twice by the next: as a tree this would be 2 to the 200 values."""
    lets = "B(i) = v199 where v0 = A(i) + 1, " + ", ".join(
        f"v{k + 1} = v{k} * v{k}" for k in range(199)
    )
    found = cost(f"def f(float(N) A) -> (B) {{ {lets} }}", A=(10,))
    assert found.operations == 2000
    lets = "B(i) = v99 >= 0 && i < 4 ? A(i) * 2 : 0 where v0 = i % 1, " + ", ".join(
        f"v{k + 1} = v{k} + v{k}" for k in range(99)
    )
    assert cost(f"def f(float(N) A) -> (B) {{ {lets} }}", A=(10,)).operations == 4


@pytest.mark.parametrize(("file", "name"), DEFS)
def test_every_example_has_a_cost(file: str, name: str) -> None:
    checked = definitions(file)[name]
    sized = sized_for(checked, parse_sizes("test", checked))
    found = cost_of(lower(sized))

    def stored(tensors: tuple[Tensor, ...]) -> int:
        return sum(math.prod(sized.shapes[t.name]) * max(1, t.type.bits // 8) for t in tensors)

    assert found.written == stored(checked.outputs)
    assert 0 <= found.read <= stored(checked.inputs) + stored(checked.outputs)
    points = sum(math.prod(s.extent(i) for i in s.ranges) for s in sized.statements)
    assert 0 <= found.operations <= 100 * points
