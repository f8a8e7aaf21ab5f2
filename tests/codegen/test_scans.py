"""Running reductions take one pass, whatever they run along, and give what all pairs would."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import loopir_interpreter
import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import (
    LANES,
    NAIVE,
    Array,
    fenced_copy,
    random_options,
    reference,
    run,
    same_bits,
    sized_of,
)
from cuda_checks import case_of, check_cases, work_of_text
from cuda_options import random_gpu_options
from interpreted_stages import stages
from loopir_interpreter import interpret
from sampling import swept
from triangles import Triangle, random_triangle

import tcl
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import branches, statements
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.types import scalar_type
from tcl.selection.best_options import DEFAULT

CUMSUM = "def f(float(N) X) -> (O) { O(i) +=! (j <= i) ? X(j) : 0 where i in 0:N }"
SUMS = 2e-6
"""Relative error in float32 that ``docs/language.md`` states."""


def nest_of(text: str, *inputs: Array) -> ir.Nest:
    return lower(sized_of(text, *inputs)).nests[0]


def check_on_cpu(each: Triangle, rng: random.Random, what: object) -> None:
    sized = sized_of(each.text, *each.inputs)
    found = []
    for threads in (1, 2, 4):
        device = replace(host_cpu(), threads=threads)
        found += run(each.text, *each.inputs, options=DEFAULT, device=device)
    each.check(found[0], what)
    assert all(same_bits(found[0], other) for other in found[1:]), (each.text, what)
    for options in (NAIVE, random_options(rng, sized), random_options(rng, sized)):
        each.check(run(each.text, *each.inputs, options=options)[0], (what, options))


@pytest.mark.parametrize("part", swept(range(2), range(2, 6)))
def test_random_triangles(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        rng = random.Random(f"triangle {seed}")
        each = random_triangle(rng)
        check_on_cpu(each, rng, seed)
        if seed % 3 == 0:
            each.check(reference(each.text, *each.inputs)[0], seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_many_random_triangles(part: int) -> None:
    for seed in range(100 + 30 * part, 130 + 30 * part):
        rng = random.Random(f"triangle {seed}")
        check_on_cpu(random_triangle(rng, most=rng.choice([40, 200])), rng, seed)


@pytest.mark.parametrize("part", swept([0], [1]))
def test_stages(part: int) -> None:
    for seed in range(8 * part, 8 * part + 8):
        rng = random.Random(f"stages {seed}")
        each = random_triangle(rng, most=20)
        sized = sized_of(each.text, *each.inputs)
        names = [t.name for t in sized.checked.inputs]
        of_all = (
            stages(sized, DEFAULT, host_cpu()),
            stages(sized, random_options(rng, sized), host_cpu()),
            stages(sized, DEFAULT, H200),
        )
        for found in of_all:
            for stage, program in found:
                made = np.full(sized.shapes["O"], 7).astype(
                    numpy_dtype(sized.checked.outputs[0].type)
                )
                interpret(program, {**dict(zip(names, each.inputs, strict=True)), "O": made})
                each.check(made, (seed, stage))


def test_emulated() -> None:
    cases = []
    for seed in range(12):
        rng = random.Random(f"emulated {seed}")
        each = random_triangle(rng, most=20)
        work = work_of_text(each.text, *each.inputs)
        cases += [
            case_of(work, options, H200)
            for options in (DEFAULT, random_gpu_options(rng, work.sized, H200))
        ]
    check_cases(cases).none()


@pytest.mark.parametrize(
    ("value", "runs"),
    [
        ("(j <= i) ? X(j) : 0", True),
        ("!(j > i) ? X(j) * X(j) : 0", True),
        ("(i - j >= 0) ? exp(X(j)) : 0.0", True),
        ("(j < i && X(j) > 0) ? X(j) : 0", True),
        ("(j <= i) ? ((X(j) > 0) ? X(j) : 0) : 0", True),
        ("(int64(j) <= i) ? X(j) : 0", True),
        ("(j > i) ? 0 : X(j)", True),
        ("double((j <= i) ? X(j) : 0)", True),  # as the type of a wider output is written
        ("j <= i && X(j) > 0", True),
        ("float(X(j) > 0 && (X(j) < 1 && j <= i))", True),
        ("j <= i && X(j) > X(i)", False),
        ("(j <= i) ? X(j) * X(i) : 0", False),  # its terms depend on i
        ("(j <= i + 1) ? X(j) : 0", False),  # the first result has two terms
        ("(2 * j <= i) ? X(j) : 0", False),
        ("(j <= i) ? X(j) : 1", False),  # this changes sums
        ("(j == i) ? X(j) : 0", False),
        ("(j <= i || X(j) > 0) ? X(j) : 0", False),
    ],
)
def test_what_runs(value: str, runs: bool) -> None:
    x = np.linspace(-1, 2, 37, dtype=np.float32)
    text = f"def f(float(N) X) -> (O) {{ O(i) +=! {value} where i in 0:N, j in 0:N }}"
    nest = nest_of(text, x)
    assert (nest.running is not None) == runs
    assert nest.points == (37 if runs else 37 * 37)
    np.testing.assert_allclose(
        run(text, x, options=DEFAULT)[0], reference(text, x)[0], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("op", "type_", "runs"), [("max", "bool", True), ("min", "bool", False), ("max", "int8", False)]
)
def test_what_holds_of_all_so_far(op: str, type_: str, runs: bool) -> None:
    x = np.arange(37) == 20
    value = f"{type_}(j <= i && X(j))"
    text = f"def f(bool(N) X) -> (O) {{ O(i) {op}=! {value} where i in 0:N, j in 0:N }}"
    assert (nest_of(text, x).running is not None) == runs
    assert same_bits(run(text, x, options=DEFAULT)[0], reference(text, x)[0])


@pytest.mark.parametrize("value", ["(j <= i + 1) ? X(j) : 0", "(j < i - 1) ? 0 : X(j)"])
def test_terms_on_both_sides_of_an_element_do_not_run(value: str) -> None:
    """No other number would make them, so nothing is told."""
    text = f"def f(float(N) X) -> (O) {{ O(i) max=! {value} where i in 0:N, j in 0:N }}"
    assert check(text)["f"].warnings == ()
    assert nest_of(text.replace("0 ", "log(0.0) ", 1), np.ones(9, "f")).running is None


@pytest.mark.parametrize(
    ("output", "op", "type_", "value", "other"),
    [
        ("O", "max", "float", "(j <= i) ? X(j) : {}", "0"),
        ("O", "min", "float", "(i - 2 < j) ? {} : X(j)", "3.5"),
        ("O", "max", "double", "(j < i && X(j) > 0) ? X(j) : {}", "-1e30"),
        ("O", "min", "float16", "(i <= j) ? X(j) : {}", "X(i)"),
        ("O", "max", "int64", "(j >= i) ? X(j) : {}", "0"),
        ("int32(N) O", "max", "int8", "(j <= i) ? X(j) : {}", "0"),
    ],
)
def test_what_keeps_them_from_running_is_told(
    output: str, op: str, type_: str, value: str, other: str
) -> None:
    """Both remedies, typed: the result runs, and the second has the same value."""
    x = np.asarray([4, -3, 5, -1, 7], numpy_dtype(scalar_type(type_)))
    head = f"def f({type_}(N) X) -> ({output}) {{ O(i) {op}=! "
    text = head + value.format(other) + " where i in 0:N }"
    (warning,) = check(text)["f"].warnings
    found = re.fullmatch(
        r"this running .* all pairs of 'i' and 'j', because (.*) counts where the condition is "
        r"false; write (.*) instead, and if \1 is meant to count, (.*) in the next statement",
        warning.message,
    )
    assert found is not None
    assert text[warning.span.start : warning.span.end] == found[1] == other
    assert nest_of(text, x).running is None
    better = head + value.format(found[2]) + f" where i in 0:N {found[3]} }}"
    (definition,) = check(better).values()
    assert definition.warnings == ()
    assert nest_of(better, x).running is not None
    assert same_bits(run(better, x)[0], reference(text, x)[0])


@pytest.mark.parametrize(
    "text",
    [
        "O(i) max=! (j <= i) ? X(i, j) : 0",  # its terms depend on i
        "O(i) max=! (j <= i) ? X(0, j) : X(1, j)",  # which counts more than once
        "O(i) max=! (2 * j <= i) ? X(0, j) : 0",
        "O(i) max=! (i + j < N) ? X(0, i + j) : 0",
        "O(i) max=! (X(0, j) <= i) ? X(1, j) : 0",
        "O(i) +=! (j <= i) ? X(0, j) : 1",
    ],
)
def test_what_could_not_run_is_not_told(text: str) -> None:
    body = f"def f(float(M, N) X) -> (O) {{ {text} where i in 0:N, j in 0:N }}"
    assert check(body)["f"].warnings == ()


@pytest.mark.parametrize(
    ("op", "type_", "nothing"),
    [
        ("max", "float", "log(0.0)"), ("max", "float", "-1e39"), ("min", "float", "-log(0.0)"),
        ("max", "double", "log(0.0)"), ("min", "double", "-log(0)"),
        ("max", "int32", "-2147483647 - 1"), ("min", "int32", "2147483647"),
        ("max", "float16", "log(0.0)"), ("min", "uint8", "255"), ("max", "uint8", "0"),
        ("*", "int32", "1"), ("+", "int8", "0"),
    ],
)  # fmt: skip
def test_what_changes_nothing(op: str, type_: str, nothing: str) -> None:
    text = (
        f"def f({type_}(N) X) -> (O) {{ O(i) {op}=! (j <= i) ? X(j) : {nothing} where i in 0:N }}"
    )
    names = {"float": np.float32, "double": np.float64}
    x = np.arange(5).astype(names.get(type_, type_))
    assert nest_of(text, x).running == "s0.i"


LOWER = (
    "def f(float(N, N) A, float(N, M) B) -> (C) { C(i, k) +=! (j <= i) ? A(i, j) * B(j, k) : 0 }"
)
SCORES = (
    "def f(float(N, D) Q, float(N, D) K) -> (S) { S(i, j) +=! (j <= i) ? Q(i, d) * K(j, d) : 0 }"
)


@pytest.mark.parametrize("text", [LOWER, SCORES, LOWER.replace("j <= i", "j > i")])
@pytest.mark.parametrize("options", [NAIVE, LANES])
def test_triangles_take_half_of_the_square(
    text: str, options: MappingOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = b = np.ones((24, 24), np.float32)
    sized = sized_of(text, a, b)
    built = cpu.schedule(sized, options, replace(host_cpu(), threads=1))
    cut = [s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.For)]
    cut = [s for s in cut if s.loop.cut is not None]
    assert cut
    taken, whole = 0, 0
    iterations = loopir_interpreter._Run.iterations
    inside = loopir_interpreter._Run.all_inside

    def counted(run: Any, statement: ir.Statement) -> None:
        nonlocal taken
        taken += statement in cut
        inside(run, statement)

    def passed(run: Any, fold: ir.Fold, some: Any = None) -> Iterator[None]:
        nonlocal whole
        for _ in iterations(run, fold, some):
            whole += any(fold == s.loop.fold for s in cut)
            yield

    monkeypatch.setattr(loopir_interpreter._Run, "all_inside", counted)
    monkeypatch.setattr(loopir_interpreter._Run, "iterations", passed)
    names = [t.name for t in sized.checked.inputs]
    made = np.zeros(next(iter(sized.shapes[t.name] for t in sized.checked.outputs)), np.float32)
    output = sized.checked.outputs[0].name
    interpret(built, {names[0]: a, names[1]: b, output: made})
    assert np.array_equal(made, reference(text, a, b)[0])
    assert 0.4 < taken / whole < 0.8


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("j <= i", lambda i, j: j <= i),
        ("i + 3 <= j", lambda i, j: i + 3 <= j),
        ("j <= i + 2 && j >= i - 2", lambda i, j: abs(i - j) <= 2),
        ("j == i", lambda i, j: i == j),
        ("!(j > i) && B(j, k) > 0", lambda i, j: j <= i),
        ("j < i && j >= 5", lambda i, j: (j < i) & (j >= 5)),
        ("2 * j <= i + 3", lambda i, j: 2 * j <= i + 3),
        (
            "i < 3 * j - 4 && 5 * j + 2 * i < 200",
            lambda i, j: (i < 3 * j - 4) & (5 * j + 2 * i < 200),
        ),
        ("2 * i - 7 * j >= -90 && 3 * j > 40", lambda i, j: (2 * i - 7 * j >= -90) & (3 * j > 40)),
    ],
)
def test_products_with_triangular_matrices(
    condition: str, holds: Callable[[Array, Array], Array]
) -> None:
    varying = ("N",) if condition in ("j <= i", "i + 3 <= j") else ()
    f = tcl.define(LOWER.replace("j <= i", condition), varying=varying, threads=2).f
    for n, m in ((1, 3), (37, 5), (129, 40)):
        rng = np.random.default_rng(n)
        a, b = (rng.integers(-3, 4, s).astype(np.float32) for s in ((n, n), (n, m)))
        kept = holds(np.arange(n)[:, None], np.arange(n)[None])
        assert np.array_equal(f(a, b), (a * kept) @ (b * (b > 0) if "B(" in condition else b))


def test_what_a_triangle_leaves_out_spoils_nothing() -> None:
    """Where the condition is the same for all terms, it is looked at once, after them."""
    q = np.random.default_rng(0).integers(-3, 4, (70, 16)).astype(np.float32)
    k = q.copy()
    k[40] = np.inf
    with np.errstate(invalid="ignore"):
        whole = np.where(np.tri(70, dtype=bool), q @ k.T, 0)
    assert np.array_equal(run(SCORES, q, k, options=DEFAULT)[0], whole, equal_nan=True)


def test_borders_are_not_cut() -> None:
    text = (
        "def f(float(N) X, float(K) W) -> (Y) { "
        "Y(n) +=! (n + k - 1 >= 0 && n + k - 1 < N) ? X(n + k - 1) * W(k) : 0 where n in 0:N }"
    )
    sized = sized_of(text, np.ones(100, np.float32), np.ones(3, np.float32))
    built = cpu.schedule(sized, DEFAULT, host_cpu())
    loops = (s.loop for k in built.kernels for s in statements(k.body) if isinstance(s, ir.For))
    assert all(loop.cut is None for loop in loops)


LAGS = """
def f(int16(C, T) X, float(T) W) -> (R, S) {
    R(c, l) +=! (t + l < T) ? int32(X(c, t)) * int32(X(c, t + l)) : 0 where l in 0:7, t in 0:T
    S(l) +=! (t >= l + 2) ? W(t) * W(t - l - 2) : 0 where l in 0:9, t in 0:T
}
"""


@pytest.mark.parametrize("length", [301, 1024])
def test_borders_of_long_loops_are_apart(length: int) -> None:
    rng = random.Random(length)
    numbers = np.random.default_rng(length)
    arrays: list[Array] = [
        numbers.integers(-9, 10, (3, length)).astype(np.int16),
        numbers.integers(-9, 10, (length,)).astype(np.float32),
    ]
    sized = sized_of(LAGS, *arrays)
    host = replace(host_cpu(), threads=1)
    built = cpu.schedule(sized, DEFAULT, host)
    loops = [s.loop for k in built.kernels for s in statements(k.body) if isinstance(s, ir.For)]
    cuts = [loop.cut for loop in loops if loop.cut is not None]
    assert cuts
    assert all(cut.apart for cut in cuts)
    expected = reference(LAGS, *arrays)
    for options in (DEFAULT, *(random_options(rng, sized, host) for _ in range(2))):
        made = run(LAGS, *(fenced_copy(a, after=True) for a in arrays), options=options)
        assert all(map(np.array_equal, made, expected))


def test_lists_are_for_what_data_say() -> None:
    a = np.ones((50, 50), np.float32)
    kernels = {options: run(LOWER, a, a, options=options)[0] for options in (DEFAULT, NAIVE.skip())}
    assert all(np.array_equal(made, np.tril(a) @ a) for made in kernels.values())
    sized = sized_of(LOWER, a, a)
    assert not cpu.plan(sized, DEFAULT, host_cpu()).options["s0"].skip


def test_nan_and_infinity_stay_behind() -> None:
    x = np.ones(200, np.float32)
    x[[70, 150]] = np.inf, np.nan
    (sums,) = run(CUMSUM, x, options=DEFAULT)
    assert np.array_equal(sums, np.cumsum(x), equal_nan=True)
    most = CUMSUM.replace("+=!", "max=!").replace(": 0 ", ": log(0.0) ")
    (found,) = run(most, x, options=DEFAULT)
    assert np.array_equal(found, np.maximum.accumulate(x), equal_nan=True)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("columns", [1, 20])
def test_long_sums_keep_their_digits(equal: bool, columns: int) -> None:
    n = 10**7 if columns == 1 else 10**6
    rng = np.random.default_rng(n)
    x = np.full(n, 0.1, np.float32) if equal else rng.random(n, np.float32)
    right = np.cumsum(x, dtype=np.float64)
    text = CUMSUM
    if columns > 1:
        text = "def f(float(N, D) X) -> (O) { O(i, d) +=! (j <= i) ? X(j, d) : 0 where i in 0:N }"
        x = np.repeat(x.reshape(-1, 1), columns, 1)
        right = right.reshape(-1, 1)
    for options in (DEFAULT, NAIVE):
        (sums,) = run(text, x, options=options)
        assert np.max(np.abs(sums / right - 1)) < SUMS


def test_adds_to_what_is_there() -> None:
    text = "def f(float(N) X) -> (O) { O(i) = X(i)\n O(i) += (j < i) ? X(j) : 0 }"
    x = np.arange(50, dtype=np.float32)
    assert np.array_equal(run(text, x, options=DEFAULT)[0], np.cumsum(x))


def test_between_other_statements() -> None:
    text = """
    def f(float(B, N) X) -> (Y, S, Z, Mean) {
        Y(b, i) = X(b, i) * 2
        S(b, i) +=! (j <= i) ? Y(b, j) : 0 where i in 0:N
        Z(b, i) = S(b, i) - Y(b, i)
        Mean(b) +=! Z(b, i)
    }
    """
    x = np.random.default_rng(0).integers(0, 9, (70, 333)).astype(np.float32)
    y, s, z, mean = run(text, x, options=DEFAULT)
    assert np.array_equal(s, np.cumsum(2 * x, 1)) and np.array_equal(z, s - y)
    assert np.allclose(mean, z.sum(1))


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
def test_strided(turned: tuple[bool, bool]) -> None:
    text = "def f(float(B, N) X) -> (O) { O(b, i) +=! (j <= i) ? X(b, j) : 0 where i in 0:N }"
    x = np.random.default_rng(0).integers(0, 9, (60, 90)).astype(np.float32)
    x = x[::-1, ::3] if turned[0] else x
    x = np.asfortranarray(x) if turned[1] else x
    assert np.array_equal(run(text, x, options=DEFAULT)[0], np.cumsum(x, 1))


def test_one_kernel_for_many_sizes() -> None:
    texts = {
        "last": "def f(float(B, N) X) -> (O) { O(b, i) +=! (j <= i) ? X(b, j) : 0 where i in 0:N }",
        "back": "def f(float(B, N) X) -> (O) { O(b, i) +=! (j > i) ? X(b, j) : 0 where i in 0:N }",
    }
    for name, text in texts.items():
        f = tcl.define(text, varying=("N", "B"), threads=2).f
        for b, n in ((3, 5), (4, 100), (2, 1000), (70, 63), (1, 1)):
            x = np.random.default_rng(n).integers(0, 9, (b, n)).astype(np.float32)
            sums = np.cumsum(x, 1)
            assert np.array_equal(f(x), sums if name == "last" else sums[:, -1:] - sums)


def test_threads_of_a_gpu_share_other_dimensions() -> None:
    text = "def f(float(N, D) X) -> (O) { O(i, d) +=! (j <= i) ? X(j, d) : 0 where i in 0:N }"
    x = np.random.default_rng(0).integers(0, 9, (70, 200)).astype(np.float32)
    work = work_of_text(text, x)
    case = case_of(work, DEFAULT, H200)
    assert [launch.threads for launch in case.module.launches] == [128]
    check_cases([case]).none()
    along = MappingOptions("naive", nests=(NestOptions(threads=(1, 32)),))
    with pytest.raises(OptionsError, match=r"threads: nest s0: each element of O depends on"):
        case_of(work, along, H200)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (NestOptions(chunk=(0, 8)), "s0.i is reduced"),
        (NestOptions(tile=(0, 8)), "each element of O depends on the one before it along s0.i"),
        (NestOptions(register=(0, 2)), "each element of O depends on the one before it"),
        (NestOptions(inner_order=(1, 0)), "each element of O depends on the one before it"),
        (NestOptions(split=(0, 4)), "each element of O depends on the one before it"),
        (NestOptions(stage=(0,)), "each element of O depends on the one before it"),
    ],
)
def test_what_is_refused(options: NestOptions, said: str) -> None:
    text = "def f(float(B, N) X) -> (O) { O(b, i) +=! (j <= i) ? X(b, j) : 0 where i in 0:N }"
    sized = sized_of(text, np.zeros((20, 30), np.float32))
    with pytest.raises(OptionsError, match=said):
        compile_cpu(sized, MappingOptions("naive", nests=(options,)))


PADDED = """
def f(float(H, W, C) I, float(3, 3, C) K) -> (O) {
    O(h, w, c) +=! (h + i >= 1 && h + i <= H && !(w + j < 1) && w + j - W < 1)
        ? I(h + i - 1, w + j - 1, c) * K(i, j, c) : 0 where h in 0:H, w in 0:W
}
"""


@pytest.mark.parametrize("options", [NAIVE, LANES])
def test_tiles_inside_of_a_padded_image_ask_for_no_bounds(
    options: MappingOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, s).astype(np.float32) for s in ((12, 13, 5), (3, 3, 5))]
    sized = sized_of(PADDED, *arrays)
    built = cpu.schedule(sized, options, replace(host_cpu(), threads=1))
    found = [s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.Within)]
    assert len(found) == 1
    assert not branches(found[0].then)
    sides = []
    first = loopir_interpreter._Run.first

    def counted(run: Any, either: ir.First | ir.Within) -> bool:
        sides.append(first(run, either))
        return sides[-1]

    monkeypatch.setattr(loopir_interpreter._Run, "first", counted)
    made = np.zeros((12, 13, 5), np.float32)
    interpret(built, {"I": arrays[0], "K": arrays[1], "O": made})
    assert 0.5 < np.mean(sides) < 0.9
    (expected,) = reference(PADDED, *arrays)
    assert np.array_equal(made, expected)
    assert np.array_equal(run(PADDED, *arrays, options=options)[0], expected)


def test_bounds_that_seldom_hold_are_asked_for_everywhere() -> None:
    text = PADDED.replace("h + i >= 1", "2 * h + i >= 2 * H - 4")
    arrays = np.ones((12, 13, 5), np.float32), np.ones((3, 3, 5), np.float32)
    built = cpu.schedule(sized_of(text, *arrays), NAIVE, host_cpu())
    found = [s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.Within)]
    asked = [s for s in found if any(index.constant > 20 for index, _ in s.bounds)]
    assert not asked
