"""Kernels for a class of sizes: at every size, what the kernel for that size alone gives."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Mapping

import pytest
from comparing import check_equal, outputs_of
from compiled_kernels import compile_cpu
from cpu_kernels import fenced_copy, random_options
from matrix_unit import CASES, EMULATING, text_of
from matrix_unit import random_options as random_fragments
from sampling import sampled

from examples import DEFS, definitions, sized_for
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.emit.scope import Lengths
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.varying import ready_for_all, scheduled_for_all
from tcl.codegen.devices.known_cpus import PROFILES
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.sizes.varying import Size, Undecided, symbols_of
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef

BEST = MappingOptions("mlp")


def along() -> Iterable[tuple[str, str, str]]:
    """(file, def, size that varies) of all examples."""
    for file, name in DEFS:
        for size in definitions(file)[name].sizes:
            yield file, name, size


def compare(
    definition: CheckedDef,
    sizes: Mapping[str, int],
    varying: str,
    symbol: int,
    values: Iterable[int],
    options: MappingOptions = BEST,
    threads: int = 1,
) -> int:
    """Run one kernel for all values of a size; how many of them the def can have. Raises
    ``Undecided`` if there is no such kernel."""
    symbolic = sized_for(definition, {**sizes, varying: symbol})
    code = ready_for_all(symbolic, options, threads=threads, asked=options is not BEST)
    launcher = Launcher(code, [t.name for t in definition.inputs + definition.outputs])
    compared = 0
    for value in values:
        at = {**sizes, varying: value}
        try:
            sized = sized_for(definition, at)
        except SourceError:
            continue
        inputs = [fenced_copy(a, after=True) for a in random_inputs(definition, at)]
        expected = outputs_of(sized)
        actual = [fenced_copy(a, after=True) for a in expected]
        launcher.at(code.at({varying: value}))([*inputs, *actual])
        compile_cpu(sized, MappingOptions())(inputs, expected)
        check_equal(sized, actual, expected, f"{varying} = {value}")
        compared += 1
    return compared


@pytest.mark.parametrize(("file", "name", "varying"), sampled(along(), 29))
def test_examples(file: str, name: str, varying: str) -> None:
    definition = definitions(file)[name]
    sizes = dict(parse_sizes("test", definition))
    sizes = {n: min(v, 40) for n, v in sizes.items()}
    for multiple, values in ((1, [1, 2, 7, 9, 23, 33, 130]), (16, [16, 48, 144])):
        for least in (1, 3, 16):
            symbol = Size.named(
                varying, multiple=multiple, least=least, most=255, value=64 + multiple
            )
            try:
                large = [v for v in values if v >= least]
                assert compare(definition, sizes, varying, symbol, large)
                break
            except (Undecided, SourceError):
                if least == 16:
                    pytest.skip(f"no kernel is for all values of {varying}")


def test_the_last_vector_of_a_rest_is_no_longer_than_that() -> None:
    """A rest of several vectors is a loop; the last one of them may be shorter."""
    (definition,) = check(
        "def f(half(M, N) A, half(N) B) -> (O) { O(m, n) = A(m, n) + B(n) }"
    ).values()
    symbol = Size.named("N", least=1, most=255, value=65)
    assert compare(definition, {"M": 1, "N": 65}, "N", symbol, range(1, 80)) == 79


def test_rows_that_are_read_from_the_last_to_the_first() -> None:
    text = "def f(float(Z, Y) A) -> (O) { O(z, s) max=! A(Z - 1 - z, 2 * s + k) where k in 0:3 }"
    (definition,) = check(text).values()
    for size in ("Z", "Y"):
        symbol = Size.named(size, least=5, most=255, value=65)
        assert compare(definition, {"Z": 5, "Y": 9}, size, symbol, range(5, 40)) == 35


def test_what_the_first_row_adds_up_is_there_in_every_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of signed and unsigned bytes are added up beside what they have too much, which the
    first row of a register tile adds up for all of its rows."""
    monkeypatch.setattr("tcl.codegen.cpu.emit.loops._LINES", 0)
    definition = definitions("convolution")["convolution_int8"]
    sizes = dict(parse_sizes("test", definition))
    symbol = Size.named("F", least=1, most=255, value=65)
    assert compare(definition, sizes, "F", symbol, range(1, 28)) == 27


@pytest.mark.parametrize("seed", sampled(range(400), 27))
def test_random_products_with_random_options(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every tile, lane and panel, at sizes around all of them.
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr("tcl.codegen.cpu.emit.loops._LINES", 0)
    text = rng.choice(
        [
            "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
            "def f(float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }",
            "def f(int8(M, K) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * B(k, n) }",
            "def f(float16(M, K) A, float16(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
            "def f(float(M, K) A, float(N) B) -> (C) { C(m) max=! A(m, k) * B(n) }",
            "def f(float(M, N) A, float(N) B, float(K) D) -> (C, E) "
            "{ C(m, n) = exp(A(m, n)) + B(n)  E(m, k) = C(m, 0) * D(k) }",
        ]
    )
    (definition,) = check(text).values()
    varying = rng.choice(definition.sizes)
    sizes = {name: rng.randint(1, 40) for name in definition.sizes}
    multiple = rng.choice([1, 1, 2, 16])
    least = rng.choice([1, 1, 32, 48])
    symbol = Size.named(varying, multiple=multiple, least=least, most=1000, value=32 + multiple)
    usual = {t.name: input_shape(t, {**sizes, varying: 32 + multiple}) for t in definition.inputs}
    options = random_options(rng, infer(definition, usual))
    values = {multiple * rng.randint(1, 200 // multiple) for _ in range(6)} | {multiple, 32}
    values = {max(value, least) for value in values}
    # What begins on boundaries cannot where it is not known how many points there are.
    with contextlib.suppress(OptionsError, Undecided):
        compare(definition, sizes, varying, symbol, sorted(values), options, rng.choice([1, 2]))


@pytest.mark.parametrize("seed", sampled(range(200), 67))
def test_random_products_in_the_matrix_unit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: EMULATING)
    rng = random.Random(f"matrix unit {seed}")
    case = rng.choice(["plain", "right transposed", "left transposed", "columns first", "added to"])
    types = rng.choice([("bfloat16", "bfloat16"), ("int8", "int8"), ("uint8", "int8")])
    (definition,) = check(text_of(case, types)).values()
    sizes = {name: rng.choice([rng.randint(1, 70), 16, 32]) for name in definition.sizes}
    varying, multiple = rng.choice(definition.sizes), rng.choice([1, 1, 2, 16])
    symbol = Size.named(varying, multiple=multiple, least=1, most=300, value=32 + multiple)
    usual = {t.name: input_shape(t, {**sizes, varying: 32 + multiple}) for t in definition.inputs}
    options = random_fragments(rng, infer(definition, usual), CASES[case][1])
    values = {multiple * rng.randint(1, 140 // multiple) for _ in range(6)} | {multiple, 32}
    with contextlib.suppress(OptionsError, Undecided):
        compare(definition, sizes, varying, symbol, sorted(values), options)


def test_fragments_are_not_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three fragments of columns at once, of which the last ones are not whole."""
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: EMULATING)
    (definition,) = check(text_of("plain", ("int8", "int8"))).values()
    symbol = Size.named("M", least=1, most=300, value=33)
    own = NestOptions(
        inner_order=(2, 1, 0),
        vectorize=(0, 16),
        register=(3, 1),
        dot=(0, 0, 4),
        mma=(1, 0, 2),
        stage=(0, 0),
    )
    options = MappingOptions().with_nest(0, own)
    values = (1, 3, 5, 15, 16, 22, 31, 49)
    assert compare(definition, {"K": 8, "N": 5}, "M", symbol, values, options) == len(values)


def test_rows_of_whole_fragments_are_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, where all sizes of a class have whole fragments."""
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: EMULATING)
    (definition,) = check(text_of("plain", ("int8", "int8"))).values()
    symbol = Size.named("M", multiple=16, least=16, most=255, value=80)
    values = (16, 32, 48, 80, 144)
    assert compare(definition, {"K": 128, "N": 40}, "M", symbol, values) == len(values)


def test_words_of_several_fragments_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a kernel for all lengths of a sum, though two fragments of it are written out."""
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: EMULATING)
    (definition,) = check(text_of("plain", ("int8", "int8"))).values()
    symbol = Size.named("K", least=1, most=300, value=33)
    own = NestOptions(
        vectorize=(0, 16), register=(1, 1, 2), dot=(0, 0, 4), mma=(1, 0, 2), stage=(0, 0)
    )
    values = (1, 4, 63, 65, 130)
    options = MappingOptions().with_nest(0, own)
    assert compare(definition, {"M": 17, "N": 5}, "K", symbol, values, options) == len(values)


@pytest.mark.parametrize("seed", sampled(range(60), 6))
def test_few_sizes(seed: int) -> None:
    # The last iteration is all of the work: of each length it is written out apart.
    rng = random.Random(seed)
    (definition,) = check(
        "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    ).values()
    varying = rng.choice(definition.sizes)
    sizes = {name: rng.randint(1, 40) for name in definition.sizes}
    least = rng.choice([2, 4, 8])
    symbol = Size.named(varying, least=least, most=2 * least - 1, value=2 * least - 1)
    usual = {t.name: input_shape(t, {**sizes, varying: 15}) for t in definition.inputs}
    options = rng.choice([BEST, random_options(rng, infer(definition, usual))])
    with contextlib.suppress(OptionsError):
        compare(definition, sizes, varying, symbol, range(least, 2 * least), options)


@pytest.mark.parametrize(
    ("multiple", "least", "most", "step"),
    [(1, 8, 15, 16), (1, 8, 15, 6), (4, 6, 30, 16), (3, 1, 200, 8), (16, 16, 255, 6), (2, 2, 2, 3)],
)
def test_remainders(multiple: int, least: int, most: int, step: int) -> None:
    lengths = (n for n in range(least, most + 1) if n % multiple == 0)
    assert Lengths(multiple, least, most).remainders(step) == {n % step for n in lengths}


@pytest.mark.parametrize(
    ("text", "sizes", "varying", "options"),
    [
        # A dimension that has one point at the usual size.
        (
            "def f(float(20) B, float(N) A, float(M) C) -> (O) "
            "{ O(i) +=! B(i + j) where j in 0:N/5, i in 0:M }",
            {"M": 10},
            Size.named("N", least=5, most=40, value=6),
            BEST,
        ),
        # Lanes whose rows are as far apart as a size says, at places that data tell.
        (
            "def f(float(M, N) A, int32(M) I) -> (O) { O(m) = A(m, I(m)) }",
            {"M": 20},
            Size.named("N", least=1, most=99, value=33),
            MappingOptions().vectorize(8),
        ),
        # More registers than there are points.
        (
            "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
            {"M": 20, "K": 5},
            Size.named("N", least=1, most=7, value=4),
            MappingOptions().register(1, 8),
        ),
        (
            "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
            {"N": 20, "K": 5},
            Size.named("M", least=2, most=5, value=4),
            MappingOptions().tile(6, 8).vectorize(8).register(6, 1).stage(1, 1),
        ),
        # Copies of which two register tiles are written out, and the last is shorter.
        (
            "def f(float(K, M) A) -> (O) { O(m) +=! A(k, m) }",
            {"K": 40},
            Size.named("M", least=16, most=255, value=33),
            MappingOptions().with_nest(
                0, NestOptions((5, 0), (1, 0), (0, 1), (1, 2), register=(4, 3), stage=(1,))
            ),
        ),
    ],
)
def test_what_the_usual_size_must_not_decide(
    text: str, sizes: dict[str, int], varying: Size, options: MappingOptions
) -> None:
    (definition,) = check(text).values()
    ((name, symbol),) = symbols_of(iter([varying])).items()
    values = range(symbol.least, symbol.most + 1, max(1, symbol.most // 36))
    assert compare(definition, sizes, name, varying, values, options)


def test_scratch_of_each_thread_is_as_long_as_a_size_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two threads, each with its own copy of rows for the matrix unit.
    device = next(d for d in PROFILES if d.name == "sapphirerapids")
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: device)
    text = (
        "def f(int8(K, M) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(k, m)) * int32(B(k, n)) }"
    )
    (definition,) = check(text).values()
    m = Size.named("M", multiple=16, least=16, most=255, value=80)
    shapes = {t.name: input_shape(t, {"M": m, "N": 96, "K": 128}) for t in definition.inputs}
    code = ready_for_all(infer(definition, shapes), BEST, threads=2, asked=False)
    small, large = (code.at({"M": n}).scratch for n in (32, 240))
    assert small != large
    assert any(private for *_, private in large)


@pytest.mark.parametrize("name", ["haswell", "znver4"])
def test_words_of_varying_numbers_are_copied_in_little_code(name: str) -> None:
    """Without masks, each length of a rest has code of its own; with them, each that is shorter
    than a word."""
    text = (
        "def f(uint8(M, K) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n)) }"
    )
    m, k = (Size.named(size, least=16, most=127, value=100) for size in "MK")
    sized = infer(check(text)["f"], {"A": (m, k), "B": (k, 17)})
    device = next(d for d in PROFILES if d.name == name)
    _, built = scheduled_for_all(sized, BEST, device, asked=False)
    assert len(emit_program(built, device).text) < 1_000_000


def test_three_sizes_whose_rows_data_select_have_little_code() -> None:
    """Each length of one size's last, shorter iteration once for each of the others is 26 MB."""
    text = (
        "def f(float(N, F) X, uint8(T, 6) J, float(T, 6) B, int32(6) W) -> (P) "
        "{ P(n, t) +=! X(n, J(t, d)) > B(t, d) ? W(d) : 0 }"
    )
    bounds = {"N": (256, 4095), "F": (4, 7), "T": (16, 255)}
    n, f, t = (Size.named(x, least=a, most=b, value=(a + b) // 2) for x, (a, b) in bounds.items())
    sized = infer(check(text)["f"], {"X": (n, f), "J": (t, 6), "B": (t, 6), "W": (6,)})
    device = next(d for d in PROFILES if d.name == "znver4")
    _, built = scheduled_for_all(sized, BEST, device, asked=False)
    assert len(emit_program(built, device).text) < 2_500_000
