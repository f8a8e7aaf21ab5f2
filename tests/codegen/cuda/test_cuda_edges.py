"""CUDA kernels at the edges: types, layouts, subscripts that depend on data, extents of 0 and 1,
scalars, and tensors of more elements than 32 bits count."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
from cuda_checks import (
    DEVICES,
    Array,
    Case,
    Work,
    case_of,
    check_cases,
    compile_modules,
    layout_of,
    run_case,
    why_not,
    work_of_text,
)
from cuda_modules import needs_nvrtc
from cuda_options import random_gpu_options
from program_builder import numpy_type
from sampling import sampled

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emulator import ORDERS
from tcl.codegen.cuda.run.compile import compile_cubin
from tcl.codegen.devices.gpu import H200, T4
from tcl.codegen.loopir.layouts import WIDEST, gpu_layouts
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

PRESETS = ("naive", "pointwise", "mlp")
RNG = np.random.default_rng(11)
TYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bool"),
)


def several(
    work: Work, drawn: int = 2, title: str = "", presets: Sequence[str] = PRESETS
) -> Iterator[Case]:
    """Presets and random options."""
    rng = random.Random(work.name + title)
    for name in presets:
        yield case_of(work, MappingOptions(name), title=title)
    for _ in range(drawn):
        device = rng.choice((H200, T4))
        yield case_of(work, random_gpu_options(rng, work.sized, device), device, title=title)


def of_type(type_: str, *shape: int) -> Array:
    """Small numbers, all of which every type has, so that sums are exact."""
    low = -3 if type_.startswith(("float", "bfloat", "int")) else 0
    high = 2 if type_ == "bool" else 4
    return np.asarray(RNG.integers(low, high, shape)).astype(numpy_type(type_))


# Types.


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("type_", TYPES)
def test_types(type_: str, whole: bool) -> None:
    """Copies in vectors, sums over threads, products of panels, largest elements and the like:
    by all presets, or each by the one whose turn it is with this type."""
    turns = cycle(PRESETS[TYPES.index(type_) % 3 :] + PRESETS[: TYPES.index(type_) % 3])

    def some(work: Work, drawn: int = 1 + whole, title: str = "") -> Iterator[Case]:
        return several(work, drawn, title, PRESETS if whole else (next(turns),))

    a, b = of_type(type_, 13, 36), of_type(type_, 36, 24)
    copied = f"def copied({type_}(M, N) A) -> (C) {{ C(m, n) = A(m, n) }}"
    turned = f"def turned({type_}(M, N) A) -> (C) {{ C(n, m) = A(m, n) }}"
    cases = [*some(work_of_text(copied, a)), *some(work_of_text(turned, a))]
    if type_ != "bool":
        product_ = (
            f"def multiplied({type_}(M, K) A, {type_}(K, N) B) -> (C) "
            "{ C(m, n) +=! A(m, k) * B(k, n) }"
        )
        cases += some(work_of_text(product_, a, b))
        for op in ("+", "max", "min"):
            text = f"def reduced({type_}(M, N) A) -> (C) {{ C(m) {op}=! A(m, n) }}"
            work = work_of_text(text, a)
            cases += some(work, 1, op)
            shared = NestOptions(threads=(2, 64), chunk=(2,))
            cases.append(case_of(work, MappingOptions().with_nest(0, shared), title=op))
    check_cases(cases).none()


def test_the_first_of_the_least_by_lanes_of_results_and_threads_of_the_reduction() -> None:
    """Two reductions in the same loops, of which one needs the other one's result."""
    text = (
        "def f(float(K, N) A) -> (Least, Best) {\n"
        "    Least(k) min=! A(k, n)\n    Best(k) min=! (A(k, n) == Least(k)) ? n : N\n}"
    )
    work = work_of_text(text, np.round(RNG.standard_normal((3, 137), np.float32), 1))
    cases = []
    for lanes, held, threads in product(((0, 2), (1, 4), (0, 1)), (1, 2), (8, 32, 64)):
        own = NestOptions(chunk=(6,), register=(1, held), threads=(1, threads), vectorize=lanes)
        options = MappingOptions().with_nest(0, own)
        cases.append(case_of(work, options.with_nest(1, NestOptions(fuse=True).over(own))))
    check_cases(cases).none()


@pytest.mark.parametrize("extent", [35, 37, 41])
def test_the_last_part_of_a_split_reduction_reads_nothing_beyond_it(extent: int) -> None:
    """Neither for what is added up nor for values that it is made of."""
    text = (
        "def f(float(M, N) A, int32(N) I, float(M) B) -> (C, D) {\n"
        "    C(m) +=! x * x where x = A(m, n) - B(m)\n"
        "    D(m) max=! A(m, I(n))\n}"
    )
    inputs = (
        RNG.standard_normal((5, extent), np.float32),
        np.asarray(RNG.integers(0, extent, extent), np.int32),
        RNG.standard_normal(5, np.float32),
    )
    work = work_of_text(text, *inputs)
    cases = []
    for parts, threads, name in product((2, 3, 7), (1, 4), PRESETS):
        own = NestOptions(split=(0, parts), threads=(1, threads))
        cases.append(case_of(work, MappingOptions(name).with_nest(0, own).with_nest(1, own)))
    check_cases(cases).none()


def test_bools_that_are_decided_and_reduced() -> None:
    text = (
        "def masks(float(M, N) A, bool(M, N) K) -> (C, D) {\n"
        "    C(m, n) = A(m, n) > 0.0 && K(m, n)\n"
        "    D(m) +=! C(m, n) ? 1 : 0\n}"
    )
    a = RNG.standard_normal((7, 36), np.float32)
    check_cases(several(work_of_text(text, a, of_type("bool", 7, 36)), 4)).none()


# Layouts.


def layouts(array: Array) -> dict[str, Array]:
    """The same elements elsewhere, and one element for all of an axis."""
    wide = np.zeros((array.shape[0], 2 * array.shape[1]), array.dtype)
    wide[:, ::2] = array
    return {
        "transposed": np.ascontiguousarray(array.T).T,
        "upside down": np.ascontiguousarray(array[::-1])[::-1],
        "backwards": np.ascontiguousarray(array[:, ::-1])[:, ::-1],
        "with gaps": wide[:, ::2],
        "a row for all": np.broadcast_to(array[:1], array.shape),
        "a column for all": np.broadcast_to(array[:, :1], array.shape),
    }


# Each of the layouts at one of the boundaries in CI, in turns.
LAYOUTS = [
    pair
    for k, how in enumerate(layouts(np.zeros((2, 2))))
    for pair in ((how, (4, 16)[k % 2]), (how, (16, 4)[k % 2]))
]


@pytest.mark.parametrize(("how", "base"), sampled(LAYOUTS, 2))
def test_inputs_that_are_not_row_major(how: str, base: int) -> None:
    text = (
        "def mixed(float(M, K) A, float(K, N) B) -> (C, D) {\n"
        "    C(m, n) +=! A(m, k) * B(k, n)\n    D(k, n) = B(k, n) + 1\n}"
    )
    a = RNG.standard_normal((20, 36), np.float32)
    b = RNG.standard_normal((36, 24), np.float32)
    staged = NestOptions(
        chunk=(16, 16), threads=(4, 4), vectorize=(1, 4), tile=(0, 0, 8), stage=(2, 2), buffers=2
    )
    cases = []
    for given in ((layouts(a)[how], b), (a, layouts(b)[how])):
        work = work_of_text(text, *given)
        found = gpu_layouts(work.sized, wide=() if base < WIDEST else None)
        for name, array in zip("AB", given, strict=True):
            found[name] = layout_of(array, found[name], base)
        chosen = [MappingOptions(name) for name in PRESETS]
        chosen.append(MappingOptions().with_nest(0, staged))
        chosen.append(random_gpu_options(random.Random(how), work.sized, H200, layouts=found))
        cases += [case_of(work, o, layouts=found) for o in chosen]
    check_cases(cases).none()


# Subscripts that depend on data.

GATHER = "def gather(float(N, M) A, int32(B) I) -> (C) { C(b, m) = A(I(b), m) }"
SUM = "def lut(float(N, M) A, int64(B, L) I) -> (C) { C(b, m) +=! A(I(b, l), m) }"
LATER = (
    "def later(float(N) A, int32(B) I) -> (C) {\n"
    "    C(b) = I(b) > 2 ? A(I(b)) : 0.0\n}"
)  # fmt: skip
SUBSCRIPTS = {
    "gather": (GATHER, np.arange(70) * 7 % 9, np.int32),
    "lut": (SUM, np.arange(70).reshape(14, 5) * 7 % 9, np.int64),
    "later": (LATER, np.arange(70) * 7 % 9, np.int32),
}


def table(case: str) -> Array:
    return RNG.standard_normal((9,) if case == "later" else (9, 24), np.float32)


@pytest.mark.parametrize("unchecked", [False, True], ids=["checked", "unchecked"])
@pytest.mark.parametrize("case", SUBSCRIPTS)
def test_subscripts_that_depend_on_data(case: str, unchecked: bool) -> None:
    text, index, dtype = SUBSCRIPTS[case]
    work = work_of_text(text, table(case), index.astype(dtype))
    cases = [
        case_of(work, c.options, T4 if "T4" in c.title else H200, unchecked=unchecked)
        for c in several(work, 3)
    ]
    assert all(bool(c.module.sites) != unchecked for c in cases)
    assert all(("checked(" in c.module.source) != unchecked for c in cases)
    check_cases(cases).none()


@pytest.mark.parametrize("case", SUBSCRIPTS)
def test_subscripts_out_of_range_are_an_index_error(case: str) -> None:
    text, index, dtype = SUBSCRIPTS[case]
    work = work_of_text(text, table(case), index.astype(dtype))
    cases = list(several(work, 2))
    compiled = compile_modules([c.module for c in cases])
    for wrong in (-1, 9, 2**31 - 1):
        spoiled = index.astype(dtype)
        spoiled.reshape(-1)[41] = wrong
        taken = case != "later" or wrong > 2
        bad = replace(work, inputs=(work.inputs[0], spoiled))
        for one, emulated, order in (
            (*pair, order) for pair in zip(cases, compiled, strict=True) for order in ORDERS
        ):
            changed = Case(bad, one.options, one.module)
            if not taken:  # what is not chosen is not read
                run_case(changed, emulated, order)
                continue
            with pytest.raises(IndexError) as error:
                run_case(changed, emulated, order)
            assert str(error.value) == (
                f"index {wrong} is out of range for dimension 0 of tensor A, "
                "which has indices 0 to 8"
            )


# Extents.


@pytest.mark.parametrize("m", [0, 1, 2])
def test_extents_of_nothing_and_of_one(m: int) -> None:
    text = (
        "def f(float(M, K) A, float(K, N) B, float X) -> (C, D, E) {\n"
        "    C(m, n) +=! A(m, k) * B(k, n) * X\n"
        "    D(m) max=! A(m, k)\n    E +=! A(m, k)\n}"
    )
    cases: list[Case] = []
    for n, k in product((0, 1, 2), repeat=2):
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        work = work_of_text(text, a, b, np.asarray(np.float32(3)))
        cases += several(work, 1, f"{m}x{n}x{k} ")
    check_cases(cases, ("random",)).none()


def test_scalars() -> None:
    text = "def f(float A, int32 B) -> (C, D) { C = A + B\n D = C * A }"
    work = work_of_text(text, np.asarray(np.float32(2.5)), np.asarray(np.int32(3)))
    check_cases(several(work)).none()


def test_what_is_added_to_stays() -> None:
    """Outputs that begin with what the caller gives."""
    text = "def f(float(M, N) A) -> (C) { C(m) += A(m, n) }"
    work = work_of_text(text, RNG.standard_normal((13, 70), np.float32))
    assert work.sized.checked.uninitialised
    check_cases(several(work, 4)).none()


# Sizes beyond 32 bits.

HUGE = {
    "copied": ("def f(uint8(M, N) A) -> (C) { C(m, n) = A(m, n) }", {"A": (50_000, 70_000)}),
    "turned": ("def f(uint8(M, N) A) -> (C) { C(n, m) = A(m, n) }", {"A": (50_000, 70_000)}),
    "reduced": ("def f(float(M, N) A) -> (C) { C(m) +=! A(m, n) }", {"A": (40_000, 70_000)}),
    "all of it": ("def f(float(M, N) A) -> (C) { C +=! A(m, n) }", {"A": (40_000, 70_000)}),
    "multiplied": (
        "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        {"A": (60_000, 64), "B": (64, 60_000)},
    ),
}


@needs_nvrtc
@pytest.mark.parametrize("case", HUGE)
def test_tensors_of_more_elements_than_32_bits_count(case: str) -> None:
    text, shapes = HUGE[case]
    (checked,) = check(text).values()
    sized = infer(checked, shapes)
    begin = list(HUGE).index(case)
    for number, name in enumerate(PRESETS):  # for one device each, in turn
        device = DEVICES[(begin + number) % len(DEVICES)]
        module = emit_module(sized, MappingOptions(name), device)
        kernels = module.source.partition('extern "C"')[2]  # without the helper functions
        assert "long long " in kernels
        assert "const int " not in kernels
        compile_cubin(module, device)


def test_what_branches_is_unrolled_less() -> None:
    """NVRTC takes half a minute to straighten out a thousand branches in a row."""
    options = MappingOptions("naive").register(8, 8, 2)
    texts = {
        condition: f"def f(float(M, K) A, float(K, N) B) -> (C) "
        f"{{ C(m, n) +=! {condition} A(m, k) * B(k, n) {': 0' if condition else ''} }}"
        for condition in ("", "m < k + n ?")
    }
    times = []
    for text in texts.values():
        (checked,) = check(text).values()
        sized = infer(checked, {"A": (64, 64), "B": (64, 64)})
        source = emit_module(sized, options, H200).source
        (unrolled,) = re.findall(r"#pragma unroll(?: (\d+))?\n *for \(int k_point", source)
        times.append(int(unrolled))
    assert times == [4, 2]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        *product(["int8", "int16", "int32"], ["-A(i + j)", "0 - A(i + j)", "A(i + j) * -1"]),
        ("uint32", "-A(i + j)"),
    ],
)
def test_integers_are_not_negated_by_a_minus_sign(type_: str, value: str) -> None:
    """NVRTC before 13.4 loses one of several before a minimum."""
    array = np.array([0, 3, 2, 1], type_)
    cast = value.replace("0 -", f"{type_}(0) -").replace("-1", f"{type_}(-1)")
    text = f"def f({type_}(N) A) -> (O) {{ O(i) min=! {cast} where i in 0:2, j in 0:3 }}"
    case = case_of(work_of_text(text, array), MappingOptions("naive"))
    assert "negative(A" in case.module.source.partition('extern "C"')[2]
    check_cases([case], ("forward",)).none()
