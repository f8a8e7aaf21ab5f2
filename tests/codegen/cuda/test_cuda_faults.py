"""Faults planted in generated kernels: whatever the order of threads, the harness finds each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from comparing import check_equal
from cuda_checks import Case, case_of, check_cases, emulator_only, run_case, why_not, work_of_text

from tcl.codegen.cuda.emulator import ORDERS, EmulationError, compile_modules
from tcl.codegen.devices.gpu import H200, T4, GpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

RNG = np.random.default_rng(3)
BLOCKS = NestOptions(
    chunk=(16, 16), threads=(8, 8), register=(2, 1, 2), vectorize=(1, 2), tile=(0, 0, 8)
)


def floats(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.standard_normal(shape, np.float32)


def made(text: str, own: NestOptions, *inputs: object, device: GpuProfile = H200) -> Case:
    work = work_of_text(text, *inputs)  # type: ignore[arg-type]
    return case_of(work, MappingOptions().with_nest(0, own), device)


def product(stage: tuple[int, int] = (-1, -1), buffers: int = 1, device: GpuProfile = H200) -> Case:
    text = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    own = NestOptions(stage=stage, buffers=buffers).over(BLOCKS)
    return made(text, own, floats(37, 29), floats(29, 35), device=device)


def sums(rows: int = 1, held: int = 0) -> Case:
    """Rows whose sums the threads of a block share, several warps of them; of ``held`` rows at
    once, or of all."""
    own = NestOptions(chunk=(rows,), threads=(1, 64), register=(held or rows,))
    text = "def rows(float(M, K) A) -> (C) { C(m) +=! A(m, k) }"
    return made(text, own, floats(max(rows, 8), 100))


def shared_sums() -> Case:
    """Rows whose sums the threads of a warp share, two rows of a block at once."""
    own = NestOptions(chunk=(2,), threads=(2, 32))
    return made("def rows(float(M, K) A) -> (C) { C(m) +=! A(m, k) }", own, floats(5, 100))


def sums_in_place_of_panels() -> Case:
    """Warps share the sums of a product, and hand them over where its panels were."""
    own = NestOptions(
        chunk=(8, 32), threads=(4, 8, 2), register=(2, 4), tile=(0, 0, 8), stage=(2, 2), buffers=3
    )
    text = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    return made(text, own, floats(32, 29), floats(29, 32))


def sums_at_once() -> Case:
    """Three sums that warps hand over at once, and one that they hand over after these."""
    text = (
        "def f(float(M, K) A) -> (S, T, U, V) {\n"
        "    S(m) +=! A(m, k)\n    T(m) max=! A(m, k)\n    U(m) min=! A(m, k)\n"
        "    V(m) +=! A(m, k) * S(m)\n}"
    )
    own = NestOptions(chunk=(2,), threads=(1, 64))
    options = MappingOptions().with_nest(0, own)
    for nest in (1, 2, 3):
        options = options.with_nest(nest, NestOptions(fuse=True).over(own))
    return case_of(work_of_text(text, floats(5, 100)), options)


def exchanged() -> Case:
    """A block's threads read what others of them wrote before."""
    text = "def f(float(M, N) A) -> (B, C) { B(m, n) = A(m, n) + 1\n C(m, n) = B(m, 39 - n) }"
    own = NestOptions(chunk=(1,), threads=(1, 40))
    options = MappingOptions().with_nest(0, own)
    options = options.with_nest(1, NestOptions(fuse=True).over(own))
    return case_of(work_of_text(text, floats(5, 40)), options)


def gather() -> Case:
    text = "def g(float(N) A, int32(B) I) -> (C) { C(b) = A(I(b)) }"
    own = NestOptions(chunk=(32,), threads=(32,))
    return made(text, own, floats(9), np.full(70, 3, np.int32))


@dataclass(frozen=True, slots=True)
class Fault:
    case: Callable[[], Case]
    old: str
    """A regular expression of what is replaced, in the first place where it is."""
    new: str
    says: str
    """What the emulator has to say; empty: that, or a wrong result."""
    skipped: int = 0
    """Places that are left as they are."""


BARRIER = r"__syncthreads\(\);"
FAULTS = {
    "the barrier before a panel is filled": Fault(
        lambda: product((2, 2)), BARRIER, "", r"race: .* shared memory"
    ),
    "the barrier after a panel is filled": Fault(
        lambda: product((2, 2)), BARRIER, "", r"race: .* shared memory", skipped=1
    ),
    "the barrier after a panel of one operand": Fault(
        lambda: product((1, -1)), BARRIER, "", r"race: .* shared memory"
    ),
    "the barrier of asynchronous copies": Fault(
        lambda: product((2, 2), 3), BARRIER, "", "race: "
    ),
    "the barrier of copies by registers": Fault(
        lambda: product((2, 2), 2, T4), BARRIER, "", "race: "
    ),
    "the barrier between nests of a block": Fault(exchanged, BARRIER, "", r"race: .* of B"),
    "the barrier before sums are exchanged": Fault(sums, BARRIER, "", r"race: .* shared memory"),
    "the barrier after sums are exchanged": Fault(
        lambda: sums(32), BARRIER, "", r"race: .* shared memory", skipped=1
    ),
    "the barrier between the sums of two rows": Fault(
        lambda: sums(2, held=1), BARRIER, "", r"race: .* shared memory"
    ),
    "the barrier before sums are written where panels were": Fault(
        sums_in_place_of_panels, BARRIER, "", r"race: .* shared memory", skipped=1
    ),
    "the barrier after sums are written where panels were": Fault(
        sums_in_place_of_panels, BARRIER, "", r"race: .* shared memory", skipped=2
    ),
    "a vector of sums in the place of another": Fault(
        sums_in_place_of_panels, r"threadIdx.x \* 4", "threadIdx.x * 3", "race|misaligned"
    ),
    "the wait for copies": Fault(
        lambda: product((2, 2), 2), r"wait_copies<0>\(\);", "", "asynchronous copy"
    ),
    "the wait for copies that are not ahead": Fault(
        lambda: product((2, 2)), r"wait_copies<0>\(\);", "", "asynchronous copy"
    ),
    "a wait for too few copies": Fault(
        lambda: product((2, 2), 3), r"wait_copies<1>\(\);", "wait_copies<2>();", "asynchronous copy"
    ),
    "a copy of a panel too few": Fault(
        lambda: product((2, 2), 3), r"% 3\) \* (\d+)", r"% 2) * \1", ""
    ),
    "the guard of the results' rows": Fault(
        product, r"if \(m < 37\)", "if (true)", "out of bounds: .* of C"
    ),
    "the guard of the results' columns": Fault(
        product, r"if \((n\w*) < 35\)", r"if (\1 < 36)", ""
    ),
    "the guard of a row that is copied": Fault(
        lambda: product((2, 2)), r"<\s+37\b", "< 38", "out of bounds: .* of A"
    ),
    "the guard of the reduction": Fault(
        sums, r"if \((\w+) < 100\)", r"if (\1 < 128)", "out of bounds: .* of A"
    ),
    "a barrier that some skip": Fault(
        sums, BARRIER, "if (threadIdx.x < 32) __syncthreads();", "divergent|race"
    ),
    "a panel in the place of another": Fault(
        lambda: product((2, 2)), r"shared \+ \d+", "shared", "", skipped=1
    ),
    "results of two threads in one place": Fault(
        product, r"C\[m \* 35 \+ n\w*\]", "C[m * 35]", "race: .* of C"
    ),
    "one thread alone writes a sum": Fault(
        sums, r"if \(threadIdx.x == 0\)", "if (threadIdx.x < 2)", "race: .* of C"
    ),
    "all threads that share a sum write it": Fault(
        shared_sums, r"if \(k_thread == 0\)", "if (true)", "race: .* of C"
    ),
    "one of several sums handed over in the place of another": Fault(
        sums_at_once, r"exchange \+ 512", "exchange + 256", ""
    ),
    "sums handed over in the place of those before": Fault(
        sums_at_once, r"exchange \+ 1024", "exchange + 0", ""
    ),
    "a result one further": Fault(product, r"C\[m \* 35", "C[1 + m * 35", ""),
    "a panel one further": Fault(
        lambda: product((2, 2)), r"&A_tile\[", "&A_tile[2 + ", ""
    ),
    "what fills a panel one further": Fault(
        lambda: product((2, 2)), r"(copy_async<4>\(&A_tile\[)", r"\g<1>1 + ", "race|out of bounds"
    ),
    "a vector one further": Fault(
        lambda: made(
            "def f(float(N) A) -> (C) { C(n) = A(n) }",
            NestOptions(chunk=(64,), threads=(16,), vectorize=(0, 4)),
            floats(128),
        ),
        r", &A\[", ", &A[1 + ", "misaligned: .* of A",
    ),
    "a vector of results one further": Fault(
        lambda: made(
            "def f(float(N) A) -> (C) { C(n) = A(n) }",
            NestOptions(chunk=(64,), threads=(16,), vectorize=(0, 4)),
            floats(128),
        ),
        r"\(&C\[", "(&C[2 + ", "misaligned: .* of C",
    ),
    "a plain write instead of an atomic one": Fault(
        gather,
        r"atomicCAS\(error, 0ull, site\) == 0ull",
        "(error[0] = site)",
        "race: .* error record",
    ),
}  # fmt: skip


@cache
def correct(fault: str) -> Case:
    return FAULTS[fault].case()


def test_without_faults_all_is_well() -> None:
    check_cases([correct(fault) for fault in FAULTS]).none()


def planted(fault: str) -> Case:
    one, case = FAULTS[fault], correct(fault)
    if one.case is gather:  # whose checks fail in many threads
        work = replace(case.work, inputs=(case.work.inputs[0], np.full(70, 9, np.int32)))
        case = replace(case, work=work)
    places = list(re.finditer(one.old, case.module.source))
    assert len(places) > one.skipped, case.module.source
    place = places[one.skipped]
    source = case.module.source
    source = source[: place.start()] + place.expand(one.new) + source[place.end() :]
    assert source != case.module.source
    return replace(case, module=replace(case.module, source=source))


@emulator_only
@pytest.mark.parametrize("start", range(0, len(FAULTS), 8))
def test_planted_faults_are_found_in_every_order(start: int) -> None:
    names = list(FAULTS)[start : start + 8]
    cases = [planted(name) for name in names]
    for name, case, emulated in zip(
        names, cases, compile_modules([c.module for c in cases]), strict=True
    ):
        for order in ORDERS:
            with pytest.raises((EmulationError, AssertionError)) as found:
                check_equal(
                    case.work.sized, run_case(case, emulated, order), case.work.expected, ""
                )
            said = str(found.value)
            if FAULTS[name].says:
                assert found.type is EmulationError, f"{name}, {order}: {said}"
                assert re.search(FAULTS[name].says, said), f"{name}, {order}: {said}"
