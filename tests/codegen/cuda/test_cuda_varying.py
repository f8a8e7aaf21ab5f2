"""CUDA kernels for a class of sizes, emulated: at every size, what the reference gives, without a
race or an access that no kernel may make."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from cuda_checks import (
    Case,
    Failures,
    Work,
    check_work,
    compile_modules,
    example_sizes,
    run_case,
    why_not,
)
from cuda_modules import needs_nvrtc
from cuda_options import random_gpu_options
from sampling import sampled, swept

from examples import NAMES, definitions, sized_for
from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emulator import ORDERS, EmulationError
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.cuda.run.ready import ModuleForAll, emitted_for_all
from tcl.codegen.devices.gpu import H200, T4, GpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.sizes.varying import Size, Undecided
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef

BEST = MappingOptions("mlp")
emulates = pytest.mark.skipif(bool(why_not()), reason=why_not() or "")


@dataclass(frozen=True, slots=True)
class ForAll:
    """A def whose kernels are one module for all sizes of a class, and sizes to show it at."""

    definition: CheckedDef
    sizes: Mapping[str, int]
    varying: str
    symbol: int
    values: Sequence[int]
    options: MappingOptions = BEST
    device: GpuProfile = H200

    def made(self) -> ModuleForAll:
        """Raises ``Undecided`` or ``SourceError`` if there can be none."""
        at = {**self.sizes, self.varying: self.symbol}
        shapes = {t.name: input_shape(t, at) for t in self.definition.inputs}
        sized = infer(self.definition, shapes)
        module = emitted_for_all(self.options, lambda o: emit_module(sized, o, self.device))
        return ModuleForAll.from_module(module)

    def cases(self, code: ModuleForAll) -> Iterator[Case]:
        """The kernels at each of the sizes that the def can have."""
        for value in self.values:
            at = {**self.sizes, self.varying: value}
            try:
                sized = sized_for(self.definition, at)
            except SourceError:
                continue
            inputs = random_inputs(self.definition, at)
            work = Work(f"{self.definition.name}({at})", sized, inputs)
            yield Case(work, self.options, code.at({self.varying: value}))


def compare(found: Iterable[ForAll]) -> tuple[int, Counter[str]]:
    """Emulates all of them at all of their sizes; how many runs there were, and why some defs have
    no such kernel."""
    reasons: Counter[str] = Counter()
    made: list[tuple[ForAll, ModuleForAll]] = []
    for each in found:
        try:
            made.append((each, each.made()))
        except (Undecided, SourceError) as error:
            reasons[str(error)] += 1
    failures = Failures()
    emulated = compile_modules([code.module for _, code in made])
    for (each, code), kernels in zip(made, emulated, strict=True):
        for case in each.cases(code):
            failures.cases += 1
            order = ORDERS[failures.cases % len(ORDERS)]
            try:
                results = run_case(case, kernels, order)
                check_work(case.work, results, f"{order} order")
            except (EmulationError, AssertionError, IndexError) as error:
                failures.note(case, error)
    failures.none()
    return failures.cases, reasons


def along() -> Iterator[tuple[str, str, str]]:
    """(file, def, size that varies) of all examples."""
    for file in NAMES:
        for name, definition in definitions(file).items():
            for size in definition.sizes:
                yield file, name, size


def of_example(file: str, name: str, varying: str) -> Iterator[ForAll]:
    definition = definitions(file)[name]
    sizes = {n: min(v, 24) for n, v in example_sizes(file, name).items()}
    small = Size.named(varying, least=1, most=15, value=5)
    yield ForAll(definition, sizes, varying, small, [1, 2, 3, 4, 7, 15])
    ragged = Size.named(varying, least=16, most=255, value=65)
    yield ForAll(definition, sizes, varying, ragged, [16, 17, 31, 33, 63, 65, 129])
    whole = Size.named(varying, least=16, most=255, multiple=16, value=80)
    yield ForAll(definition, sizes, varying, whole, [16, 32, 48, 144])


@emulates
@pytest.mark.parametrize(("first", "every"), sampled([(0, 211), *((k, 37) for k in range(37))], 38))
def test_examples(first: int, every: int) -> None:
    cases = [c for each in [*along()][first::every] for c in of_example(*each)]
    runs, reasons = compare(cases)
    assert first or runs > 12, reasons


TEXTS = (
    "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
    "def f(float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }",
    "def f(float16(M, K) A, float16(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
    "def f(int8(M, K) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * B(k, n) }",
    "def f(float(M, K) A, float(N) B) -> (C) { C(m) max=! A(m, k) * B(n) }",
    "def f(float(M, N) A, float(N) B, float(K) D) -> (C, E) "
    "{ C(m, n) = exp(A(m, n)) + B(n)  E(m, k) = C(m, 0) * D(k) }",
    "def f(float(M, N) A, int32(K) I) -> (O) { O(m, k) = A(m, I(k)) where I(k) in 0:N }",
    "def f(float(M, N) A, float(K) W) -> (O) { O(m, i) +=! A(m, i + k) * W(k) }",
    "def f(float(M, N) A, float(K) B) -> (s, O) { s(m) max=! A(m, n)  O(m, n) = A(m, n) / s(m) }",
)


def random_case(seed: int) -> ForAll:
    """A def with random options, at sizes around all tiles."""
    rng = random.Random(seed)
    (definition,) = check(TEXTS[seed % len(TEXTS)]).values()
    varying = rng.choice(definition.sizes)
    sizes = {name: rng.randint(3, 30) for name in definition.sizes}
    sizes["K"] = rng.randint(1, 3) if "W(k)" in TEXTS[seed % len(TEXTS)] else sizes["K"]
    multiple, least = rng.choice([(1, 1), (1, 3), (1, 16), (2, 2), (16, 16)])
    symbol = Size.named(varying, multiple=multiple, least=least, most=300, value=32 + multiple)
    device = rng.choice([H200, T4])
    at = sized_for(definition, {**sizes, varying: 32 + multiple})
    options = random_gpu_options(rng, at, device)
    around = {multiple * rng.randint(1, 140 // multiple) for _ in range(4)} | {32, 64}
    values = sorted(v for v in around | {multiple} if v >= least)
    return ForAll(definition, sizes, varying, symbol, values, options, device)


def compare_random(seeds: Iterable[int]) -> int:
    found = []
    for seed in seeds:
        try:
            each = random_case(seed)
            each.made()
        except (OptionsError, SourceError):
            continue  # what was asked for cannot be for all of the sizes
        except Undecided:
            continue
        found.append(each)
    runs, _ = compare(found)
    return runs


@emulates
@pytest.mark.parametrize("first", swept([0], range(1000, 1480, 9)))
def test_random_options(first: int) -> None:
    assert compare_random(range(first, first + 9)) > 15 or first


MATMUL = TEXTS[0]


def source(text: str, sizes: Mapping[str, int], symbol: int, options: MappingOptions = BEST) -> str:
    """The CUDA C++ of the one def of a text, whose size M varies."""
    (definition,) = check(text).values()
    return ForAll(definition, sizes, "M", symbol, (), options).made().module.source


def test_the_grid_and_the_edges_are_given_at_the_launch() -> None:
    (definition,) = check("def f(float(M, 100) A) -> (C) { C(m, n) = A(m, n) }").values()
    options = BEST.with_nest(0, NestOptions(chunk=(8, 64), threads=(2, 16), vectorize=(1, 4)))
    symbol = Size.named("M", least=16, most=255, value=65)
    code = ForAll(definition, {}, "M", symbol, (), replace(options, merge=False)).made()
    for value in (16, 17, 24, 25, 255):
        (launch,) = code.at({"M": value}).launches
        assert launch.blocks == -(-value // 8) * 2
        assert launch.sizes == (value,)
        (a, c) = code.at({"M": value}).tensors
        assert a.layout.extents == c.layout.extents == (value, 100)
    assert "const int size_M)" in code.module.source


def test_what_divides_a_size_is_made_use_of() -> None:
    # Rows of a transposed factor begin at multiples of 16 bytes only if the size is one of 4.
    text = "def f(float(K, M) A, float(K, N) B) -> (C) { C(m, n) +=! A(k, m) * B(k, n) }"
    sizes = {"K": 64, "N": 64}
    whole = source(text, sizes, Size.named("M", least=16, most=255, multiple=16, value=80))
    assert "copy_async<16, true>(&A" in whole
    ragged = source(text, sizes, Size.named("M", least=16, most=255, value=65))
    assert "copy_async<4>(&A" in ragged and "copy_async<16, true>(&A" not in ragged


def test_what_would_not_fit_is_not_computed_in_32_bits() -> None:
    text = "def f(float(M, N) A) -> (C) { C(m, n) = A(m, n) + 1 }"
    large = Size.named("M", least=1 << 20, most=(1 << 31) - 1, value=(1 << 25) + 1)
    assert "const long long size_" in source(text, {"N": 8}, large)
    small = Size.named("M", least=256, most=4095, value=1025)
    assert "const int size_" in source(text, {"N": 8}, small)


def test_a_panel_of_any_size_is_refused() -> None:
    text = "def f(float(N, M) A, float(M) B) -> (C) { C(n) +=! A(n, m) * B(m) }"
    options = BEST.with_nest(0, NestOptions(chunk=(8,), threads=(8,), stage=(1,), split=()))
    with pytest.raises(Undecided, match="what a panel holds is known only when the kernel runs"):
        source(text, {"N": 24}, Size.named("M", least=16, most=255, value=65), options)


@emulates
@pytest.mark.parametrize(
    ("text", "sizes", "varying", "symbol", "values", "options"),
    [
        # Parts of a sum whose length varies: the last ones may be empty.
        (
            "def f(float(M, N) A) -> (C) { C(m) +=! A(m, n) }",
            {"M": 3},
            "N",
            Size.named("N", least=1, most=4095, value=1025),
            [1, 15, 16, 17, 100, 1000],
            BEST.with_nest(0, NestOptions(split=(0, 7))),
        ),
        # Subscripts that depend on data, in a tensor whose extent varies.
        (
            "def f(float(N, D) A, int32(M) I) -> (O) { O(m, d) = A(I(m), d) }",
            {"M": 9, "D": 5},
            "N",
            Size.named("N", least=1, most=255, value=17),
            [1, 2, 50],
            BEST,
        ),
        # A size in an expression.
        (
            "def f(float(N) A) -> (m, O) { m +=! A(n) / N  O(n) = n < N - 1 ? A(n) - m : N }",
            {},
            "N",
            Size.named("N", least=2, most=4095, value=65),
            [2, 3, 64, 65, 700],
            BEST,
        ),
        # As many windows as fit.
        (
            "def f(float(N, M) A) -> (O) { O(m, n) max=! A(2 * n + k, m) where k in 0:3 }",
            {"M": 5},
            "N",
            Size.named("N", least=16, most=255, value=65),
            [16, 17, 18, 31, 64, 99],
            BEST,
        ),
        # Panels that are filled ahead in a loop of any length.
        (
            MATMUL,
            {"M": 20, "N": 20},
            "K",
            Size.named("K", least=1, most=4095, value=65),
            [1, 15, 16, 17, 31, 32, 33, 100],
            BEST.with_nest(
                0,
                NestOptions(
                    chunk=(16, 16), tile=(0, 0, 16), threads=(16, 16), stage=(2, 2), buffers=3
                ),
            ),
        ),
    ],
)
def test_hard_ones(
    text: str,
    sizes: Mapping[str, int],
    varying: str,
    symbol: int,
    values: Sequence[int],
    options: MappingOptions,
) -> None:
    (definition,) = check(text).values()
    runs, reasons = compare([ForAll(definition, sizes, varying, symbol, values, options)])
    assert runs == len(values), reasons


PARTS = NestOptions(
    chunk=(16, 16),
    tile=(0, 0, 8),
    threads=(16, 4),
    vectorize=(1, 4),
    split=(0, 0, 3),
    stage=(2, 2),
    buffers=2,
)


@emulates
@pytest.mark.parametrize(
    ("value", "stage", "asked"),
    [
        ("A(m, k) * B(n, k)", (2, 2), False),
        ("A(m, k) * B(n, k)", (2, -1), True),  # what is not in a panel may be infinite
        ("A(m, k) * B(n, k) + 1", (2, 2), True),
        ("A(m, k) * B(n, k) * A(m, 0)", (2, 2), True),
        ("k < m ? A(m, k) * B(n, k) : 0", (2, 2), False),
        ("B(n, k) > 0 ? A(m, k) * A(m, k) : 0", (-1, 2), True),  # B has no such elements
    ],
)
def test_the_last_part_ends_in_panels(value: str, stage: tuple[int, ...], asked: bool) -> None:
    """Of a sum in parts: nothing is asked where all panels that are read are zero."""
    text = f"def f(float(M, K) A, float(N, K) B) -> (C) {{ C(m, n) +=! {value} }}"
    (definition,) = check(text).values()
    options = BEST.with_nest(0, replace(PARTS, stage=stage))
    symbol = Size.named("K", least=1, most=4095, value=1025)
    each = ForAll(definition, {"M": 18, "N": 20}, "K", symbol, [1, 7, 31, 33, 130], options)
    assert ("(long long)(" in each.made().module.source) == asked
    runs, _ = compare([each])
    assert runs == len(each.values)


@needs_nvrtc
@pytest.mark.parametrize("text", TEXTS[:3])
def test_nvrtc_compiles_them(text: str) -> None:
    (definition,) = check(text).values()
    for symbol in (
        Size.named("M", least=256, most=4095, multiple=16, value=1040),
        Size.named("M", least=256, most=4095, value=1025),
    ):
        code = ForAll(definition, {"N": 512, "K": 512}, "M", symbol, ()).made()
        for resources in compile_cubin(code.module, H200).resources:
            assert not resources.spill_loads and not resources.spill_stores
