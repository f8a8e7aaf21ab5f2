"""Results written past the caches: the same values, wherever arrays begin; where it is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import sized_of
from nests import sized

from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu, schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.cpu.mapping import MappingSpace

SCALE = "def f({0}(M, N) A, {0}(N) B) -> (O) {{ O(m, n) = A(m, n) + B(n) }}"
STREAM = MappingOptions().vectorize(16, 1).stream()
DEVICE = replace(host_cpu(), l2_bytes=1 << 20, l3_bytes=32 << 20, memory=None)
(NAMED,) = (
    replace(p, threads=1, l2_bytes=1 << 20, l3_bytes=32 << 20)
    for p in known_cpus.PROFILES
    if p.title == "Cascade Lake"
)


@pytest.mark.skipif(not host_cpu().triple.startswith("x86_64"), reason="instructions of x86")
def test_the_processor_is_told() -> None:
    sized = sized_of(SCALE.format("float"), np.zeros((4, 64)), np.zeros(64))
    asm = compile_cpu(sized, STREAM.nest(0).stream()).asm
    assert "movnt" in asm
    last = asm.rindex("movnt")
    assert "sfence" in asm[last:]
    assert "movnt" not in compile_cpu(sized, STREAM.stream(False)).asm


@pytest.mark.parametrize(
    ("text", "shapes", "options", "words"),
    [
        ("O(m) +=! A(m, n)", [(16, 16)], MappingOptions().vectorize(8, 0), "is a reduction"),
        ("O(m, n) = A(m, n)", [(16, 16)], MappingOptions(), "without lanes"),
        (
            *("O(m, n) = A(m, n)", [(16, 16)]),
            *(MappingOptions().vectorize(8, 0), "lanes along .*m are not adjacent"),
        ),
        ("O(m, n) = A(m, n)", [(16, 16)], MappingOptions().vectorize(2), "too short; at least 16"),
        ("O(m, n) = A(m, n)", [(16, 18)], MappingOptions().vectorize(8), "multiples of 16 bytes"),
        ("O(m, n) = A(m, n)", [(16, 16)], MappingOptions().vectorize(4).tile(0, 6), "multiples"),
    ],
)
def test_what_cannot_be_streamed_is_refused(
    text: str, shapes: list[tuple[int, ...]], options: MappingOptions, words: str
) -> None:
    sized = sized_of(f"def f(float(M, N) A) -> (O) {{ {text} }}", *map(np.zeros, shapes))
    for asked in (options.nest(0).stream(), options.stream()):
        with pytest.raises(OptionsError, match=f"stream: nest s0: .*{words}"):
            schedule(sized, asked, DEVICE)


def streams(each: SizedDef) -> list[bool]:
    program = lower(each)
    return [
        bool(o.stream) for o in plan_cpu(program, MappingOptions("mlp"), NAMED).options.values()
    ]


def test_the_preset_streams_large_results_that_nothing_reads() -> None:
    text = SCALE.format("float")
    assert streams(sized(text, A=(4096, 4096), B=(4096,))) == [True]
    assert streams(sized(text, A=(512, 512), B=(512,))) == [False]
    assert streams(sized(text, A=(4096, 4098), B=(4098,))) == [True]
    twice = "def f(float(M, N) A) -> (O, P) {{ O(m, n) = A(m, n) * 2  P(m, n) = O({0}) + 1 }}"
    assert streams(sized(twice.format("n, m"), A=(4096, 4096))) == [False, True]
    fused = twice.format("m, n")
    assert streams(sized(fused, A=(4096, 4096))) == [True, True], "it is still in a register"


@pytest.mark.parametrize(("operands", "expected"), [(1, False), (5, True)])
def test_the_preset_streams_what_caches_lose_beside_the_operands(
    operands: int, expected: bool
) -> None:
    names = "ABCDE"[:operands]
    given = ", ".join(f"float(M, N) {name}" for name in names)
    text = f"def f({given}) -> (O) {{ O(m, n) = {' + '.join(f'{name}(m, n)' for name in names)} }}"
    assert streams(sized(text, **dict.fromkeys(names, (1024, 1024)))) == [expected]


def test_what_a_nest_does_not_read_takes_no_cache() -> None:
    rows = "def f(float(V, D) T, int32(L) I) -> (O) { O(l, d) = T(I(l), d) }"
    assert streams(sized(rows, T=(200_000, 64), I=(16_384,))) == [False]
    part = "def f(float(M, N) A) -> (O) { O(m, n) = 2 * A(m, n) where m in 0:128 }"
    assert streams(sized(part, A=(4096, 8192))) == [False]


def test_the_tuner_tries_it_where_it_can_be() -> None:
    large = sized(SCALE.format("float"), A=(1024, 1024), B=(1024,))
    space = MappingSpace(lower(large), DEVICE)
    (knob,) = (k for k in space.space.knobs if k.name.endswith("stream"))
    rng, found = Random(4), set()
    for _ in range(60):
        config = space.space.sample(rng)
        assert config is not None
        options = space.to_options(config)
        schedule(large, options, DEVICE)
        assert space.from_options(options) == config
        found.add(options.nests[0].stream)
    assert found == {True, False} and knob.default == 0
    small = MappingSpace(lower(sized(SCALE.format("float"), A=(8, 16), B=(16,))), DEVICE)
    assert not any(k.name.endswith("stream") for k in small.space.knobs)
