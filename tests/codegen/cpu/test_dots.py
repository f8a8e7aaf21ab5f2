"""Dot products: sums of products of small integers are exact whichever instruction adds them up."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_kernels import poisoned, random_options, reference, same_bits, sized_of

from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.schedule.cpu import plan

Array = np.ndarray[Any, np.dtype[Any]]
X86_64 = pytest.mark.skipif(
    not host_cpu().has("sse2"), reason="runs instructions of x86-64, or functions in their place"
)
FORMS = {
    "product": "K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n)) }",
    "transposed": "N, K) B) -> (C) { C(m, n) +=! int32(A(k, m)) * int32(B(n, k)) }",
    "unsigned": "K, N) B) -> (uint32(M, N) C) { C(m, n) +=! uint32(A(m, k)) * uint32(B(k, n)) }",
    "batched": "P, K, N) B) -> (C) { C(p, m, n) +=! int32(A(p, m, k)) * int32(B(p, k, n)) }",
    "convolution": "O, C, R, R) B) -> (D) {"
    "D(o, h, w) +=! int32(A(c, h + y, w + x)) * B(o, c, y, x) }",
    "shifted": "K, N) B) -> (C) { C(m, n) +=! (int32(A(m, k)) - 7) * (int32(B(k, n)) - A(m, 0)) }",
    "epilogue": "K, N) B) -> (C, D) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n))\n"
    "D(m, n) = int8(min(C(m, n), 90)) + B(0, n) }",
    "one operand": "K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(A(n, k) - B(0, 0)) }",
}
"""Sums of products, as they go on after the first operand."""
FIRST = {
    "transposed": "K, M",
    "batched": "P, M, K",
    "convolution": "C, H, W",
}
TYPES = ("int8", "uint8", "int16", "uint16", "bool")


def def_of(form: str, a: str, b: str) -> str:
    first = FIRST.get(form, "M, K")
    return f"def f({a}({first}) A, {b}({FORMS[form]}"


def inputs(form: str, a: str, b: str, rng: random.Random) -> list[Array]:
    """Arrays of the shapes that a form takes, of all that their types hold."""
    m, n, k, p = (rng.choice([1, 2, 3, 5, 8, 11, 17, 33]) for _ in range(4))
    shapes = {
        "transposed": ((k, m), (n, k)),
        "batched": ((p, m, k), (p, k, n)),
        "convolution": ((k, m + 2, n + 2), (p, k, 3, 3)),
        "one operand": ((max(m, n), k), (k, n)),
    }.get(form, ((m, k), (k, n)))
    draw = np.random.default_rng(rng.randrange(1 << 30))
    return [_drawn(draw, type_, shape) for type_, shape in zip((a, b), shapes, strict=True)]


def _drawn(draw: np.random.Generator, type_: str, shape: tuple[int, ...]) -> Array:
    if type_ == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(type_)
    ends = np.array([limits.min, limits.max], type_)
    any_ = draw.integers(limits.min, limits.max + 1, shape).astype(type_)
    return np.where(draw.random(shape) < 0.3, ends[draw.integers(0, 2, shape)], any_)


def check_exact(seed: int, device: CpuProfile) -> bool:
    """Compares a random sum of products, with random options, with the reference. Returns whether
    it has dot products."""
    rng = random.Random(seed)
    form, (a, b) = rng.choice(list(FORMS)), rng.choices(TYPES, (5, 3, 2, 1, 1), k=2)
    arrays = inputs(form, a, b, rng)
    text = def_of(form, a, b)
    sized = sized_of(text, *arrays)
    options = random_options(rng, sized, device)
    (*found,), (*expected,) = poisoned(sized), reference(text, *arrays)
    compile_cpu(sized, options, device=device)(arrays, found)
    alike = all(same_bits(x, y) for x, y in zip(found, expected, strict=True))
    assert alike, f"{text} {options.to_json()}"
    *_, (_, program) = plan(sized, options, device).applied()
    return any(n.dot is not None for n in program.nests)


HOST = host_cpu()
MACHINES = {
    "host": HOST,
    "pairs of 128 bits": replace(HOST, features="+sse2", vector_bits=128),
    "AVX-VNNI": replace(HOST, emulated="+avxvnni"),
    "AVX512-VNNI": replace(HOST, emulated="+avx512vnni", vector_bits=512),
    "AVX-VNNI-INT8": replace(HOST, emulated="+avxvnni,+avxvnniint8"),
}
ON_MACHINES = pytest.mark.parametrize("machine", MACHINES)


@X86_64
@ON_MACHINES
def test_any_types_forms_and_options_give_exact_sums(machine: str) -> None:
    some = [check_exact(seed, MACHINES[machine]) for seed in range(15)]
    assert sum(some) >= 3


@pytest.mark.slow
@X86_64
@ON_MACHINES
@pytest.mark.parametrize("part", range(8))
def test_more_of_them(machine: str, part: int) -> None:
    for seed in range(1000 + part, 1400, 8):
        check_exact(seed, MACHINES[machine])
