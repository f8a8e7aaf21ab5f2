"""Sizes that are known when a kernel runs: their arithmetic, and what is decided of them."""

import copy
import json
import math
import operator
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tcl.grammar.sizes.polynomials import Quotient, multiplied, plus, remembered
from tcl.grammar.sizes.varying import (
    Size,
    Undecided,
    calculator,
    common_divisor,
    formula,
    largest,
    limits,
    over,
    provably_at_least,
    representative,
    smallest,
    terms_of,
)


def value_of(found: object, sizes: dict[str, int]) -> int:
    return int(calculator(found)(sizes))


OPERATIONS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def sizes(least: int = 1, multiple: int = 1) -> tuple[int, int]:
    m = Size.named("M", least=least, most=9 * multiple, multiple=multiple, value=5 * multiple)
    return m, Size.named("N", least=2, most=7, value=3)


def expression(rng: random.Random, names: tuple[int, int], level: int = 3) -> int:
    """A random polynomial, with quotients and remainders."""
    if level == 0 or rng.random() < 0.2:
        return rng.choice([*names, rng.randint(0, 9)])
    left = expression(rng, names, level - 1)
    do = rng.choice(OPERATIONS)
    by_number = do in (operator.floordiv, operator.mod)
    right = rng.randint(1, 9) if by_number else expression(rng, names, level - 1)
    result: int = do(left, right)
    return result


def test_what_is_left_of_a_quotient() -> None:
    n, m = Size.named("N", least=1, most=255, value=65), Size.named("M", least=1, most=9, value=3)
    assert n >= n // 2 * 2 and n < n // 2 * 2 + 2
    assert limits(n - n // 3 * 3) == limits(n % 3) == (0, 2)
    assert n // 2 // 3 * 6 <= n
    assert n * m >= n // 4 * m * 4 and not n * m < n // 4 * (m // 2) * 8
    # The last of the windows of 3 points, 2 apart, that fit.
    assert 2 * ((n + 6 - 3) // 2) + 3 <= n + 6


@pytest.mark.parametrize("seed", range(100))
def test_what_is_decided_holds_for_all_values(seed: int) -> None:
    rng = random.Random(seed)
    multiple = rng.choice([1, 2, 4])
    names = sizes(multiple=multiple)
    one, other = expression(rng, names), expression(rng, names)
    values = [
        {"M": m, "N": n} for m in range(multiple, 9 * multiple + 1, multiple) for n in range(2, 8)
    ]
    low, high = limits(one)
    for at in values:
        assert low <= value_of(formula(one), at) <= high
    for compare in COMPARISONS:
        try:
            answer = compare(one, other)
        except Undecided:
            continue
        found = {compare(value_of(formula(one), v), value_of(formula(other), v)) for v in values}
        assert found == {answer}


@pytest.mark.parametrize("seed", range(50))
def test_arithmetic_is_that_of_integers(seed: int) -> None:
    # The same operations, on polynomials and on one of the values.
    at = {"M": 6, "N": 5}
    symbolic = expression(random.Random(seed), sizes())
    plain = expression(random.Random(seed), (6, 5))
    assert value_of(formula(symbolic), at) == plain
    assert representative(expression(random.Random(seed), sizes())) == expression(
        random.Random(seed), (5, 3)
    )


def test_quotients_of_multiples_are_known() -> None:
    m, _ = sizes(multiple=4)
    assert m % 4 == 0
    assert m // 4 * 4 == m
    assert -(-m // 2) == m // 2
    eighths = -(-m // 8)
    assert -(-eighths // 3) == -(-m // 24)
    assert (8 * m) // (4 * m) == 2


def test_a_question_whose_answer_depends_is_refused_in_words() -> None:
    m, n = sizes()
    with pytest.raises(Undecided, match=r"^whether M >= 4 is known only when the kernel runs$"):
        assert m > 3
    with pytest.raises(Undecided, match=r"^whether M is 3 is known only when the kernel runs$"):
        assert m == 3
    with pytest.raises(
        Undecided, match=r"^the largest or smallest of M, N is known only when the kernel runs$"
    ):
        largest(m, n)
    for use in (float, int, lambda x: 2**x, lambda x: x << 1, lambda x: x / 2):
        with pytest.raises(Undecided, match=r"^M is known only when the kernel runs$"):
            use(m)


def test_what_is_infinite_stays_so() -> None:
    m, _ = sizes()
    assert math.inf - m == m + math.inf == 2 * m - -math.inf == math.inf
    assert m - math.inf == -math.inf - m == -math.inf


def test_largest_and_smallest_where_they_are_known() -> None:
    m, _ = sizes()
    assert largest(0, m - 1) == m - 1
    assert smallest(1, m) == 1
    assert largest(m, 2 * m, m + 1) is not m
    assert provably_at_least(9, m)
    assert not provably_at_least(8, m)


def test_a_copy_is_the_same() -> None:
    m, n = sizes()
    size = (m * n + 3) // 7 + m
    assert copy.deepcopy(size) == size
    assert str(copy.copy(size)) == str(size) == "M + (M*N + 3)/7"


def test_quotients_of_what_may_be_negative() -> None:
    m, n = sizes()
    for numerator in (m - 5, 2 * n - m, m - n - 3):
        quotient = numerator // 4
        for at in ({"M": i, "N": k} for i in range(1, 10) for k in range(2, 8)):
            assert value_of(formula(quotient), at) == value_of(formula(numerator), at) // 4
        # Code that divides takes what it divides for positive.
        for monomial, _ in terms_of(quotient):
            for atom in monomial:
                assert (
                    not isinstance(atom, Quotient)
                    or limits(Size.from_terms(dict(atom.terms)))[0] >= 0
                )


def test_no_value_slips_out() -> None:
    m, _ = sizes()
    for use in (round, math.floor, math.ceil, math.trunc, lambda x: divmod(7, x)):
        with pytest.raises(Undecided):
            use(m)
    with pytest.raises(Undecided):
        assert m == 5.0
    assert m != 0.5
    assert m != math.inf


@pytest.mark.parametrize(
    "use",
    [
        lambda m: [0] * m,
        lambda m: "x" * m,
        lambda m: 2.0 * m,
        lambda m: m + 0.5,
        lambda m: m // 2.0,
        range,
        bytes,
        hex,
        math.log2,
        math.sqrt,
        lambda m: math.gcd(m, 4),
        lambda m: [1, 2, 3][m],
        lambda m: f"{[0, 1][m]}",
        np.zeros,
        operator.index,
    ],
)
def test_what_is_written_in_c_takes_no_value_either(use: Callable[[int], object]) -> None:
    m, _ = sizes()
    assert not isinstance(m, int)
    with pytest.raises(Undecided, match=r"^M is known only when the kernel runs$"):
        use(m)


def test_a_size_is_no_number_of_json() -> None:
    with pytest.raises(TypeError, match="Size is not JSON serializable"):
        json.dumps(sizes()[0])
    assert json.loads(json.dumps(formula(sizes()[0] + 1))) == ["+", "M", 1]


def test_questions_that_were_asked_are_not_worked_out_again() -> None:
    m, n = sizes()
    known = plus, multiplied, remembered, over

    def asked() -> None:
        assert m * n + 3 >= m // 2 * n
        assert (16 * m * n + 5) % 16 == 5

    asked()
    before = [function.cache_info().misses for function in known]
    asked()
    assert [function.cache_info().misses for function in known] == before


def test_a_copy_in_another_process_is_the_same() -> None:
    # Hashes of text differ from process to process.
    m, n = sizes()
    size = (m * n + 3) // 7 + m
    code = "import pickle, sys; x = pickle.loads(bytes.fromhex(sys.argv[1]));"
    code += "print(x - x, {x: 1}[x + 0])"
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", code, pickle.dumps(size).hex()]
    assert subprocess.run(command, env=env, capture_output=True, text=True).stdout == "0 1\n"


def test_common_divisors() -> None:
    m, _ = sizes()
    assert common_divisor([4, 6]) == 2
    assert common_divisor([m, 1]) == 1
    assert common_divisor([-m]) == m
    with pytest.raises(Undecided, match="the common divisor of 4, M is known only at run time"):
        common_divisor([4, m])
