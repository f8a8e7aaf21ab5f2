"""Options of CUDA kernels: honoured, or refused in a sentence; and that every stage of the schedule
means the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from comparing import sized_of as sized_of_program
from cuda_checks import example_sizes as sizes_of
from cuda_checks import points_of
from cuda_options import random_gpu_options
from interpreted_stages import check_stages, stages
from nests import sized as sized_of
from sampling import swept
from strategies import random_program

from examples import NAMES, definitions, sized_for
from tcl.arrays.annotations import parse_sizes, read_annotations
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200, T4
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule as schedule_cpu
from tcl.codegen.schedule.gpu import schedule
from tcl.common.errors import NoNestError, OptionsError
from tcl.grammar.check.definitions import check

MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
TWICE = "def f(float(M, N) A) -> (B, C) { B(m, n) = A(m, n)\n C(m) +=! B(m, n) }"
LUT = "def f(float(N) A, int32(B) I) -> (C) { C(b) = A(I(b)) }"


PRODUCT = sized_of(MATMUL, A=(64, 64), B=(64, 64))
PAIR = sized_of(TWICE, A=(40, 50))
GATHER = sized_of(LUT, A=(40,), I=(50,))
BLOCK = NestOptions(chunk=(16, 16), threads=(8, 8), tile=(0, 0, 8))


def own(**choices: Any) -> MappingOptions:
    return MappingOptions().with_nest(0, NestOptions(**choices).over(BLOCK))


def alone(**choices: Any) -> MappingOptions:
    return MappingOptions().with_nest(0, NestOptions(**choices))


REFUSED = {
    "prefetch: nest s0: prefetch is not available on a GPU": (PRODUCT, own(prefetch=(0, 64))),
    "stream: nest s0: stores that bypass the caches": (PRODUCT, own(stream=True)),
    "tile: nest s0: on a GPU, chunk divides results": (PRODUCT, own(tile=(16, 16, 8))),
    "threads: nest s0: 2048 threads are more than the 1024": (
        PRODUCT,
        alone(threads=(64, 32), chunk=(64, 32)),
    ),
    "threads: nest s0: it has 3 dimensions, but 4 sizes": (PRODUCT, alone(threads=(1, 1, 1, 2))),
    "register: nest s0: it has 3 dimensions, but 4 sizes": (PRODUCT, alone(register=(1, 1, 1, 2))),
    "register: nest s0: 1024 words of results do not fit": (
        PRODUCT,
        alone(register=(32, 32), chunk=(64, 64)),
    ),
    "register: nest s0: 32768 points are too many": (
        PRODUCT,
        alone(register=(32, 32, 32)),
    ),
    "chunk: nest s0: 16 points of s0.m are not a multiple of": (PRODUCT, own(threads=(3, 8))),
    "tile: nest s0: 8 points of s0.k are not a multiple of": (PRODUCT, own(register=(1, 1, 3))),
    "threads: nest s0: threads combine sums, so 3 must be a power of two": (
        PRODUCT,
        alone(threads=(1, 3, 4), chunk=(1, 3)),
    ),
    "stage: nest s0: operand 0, A: blocks share no memory": (PRODUCT, own(stage=(0, -1))),
    "stage: nest s0: operand 1, B: there are 1 loops inside of the chunks, not 2": (
        PRODUCT,
        own(stage=(-1, 3), threads=(16, 16)),
    ),
    "stage: nest s0: it has 2 operands, but 3 were given": (PRODUCT, own(stage=(1, 1, 1))),
    "stage: nest s0: operand 0, A: the nest has no threads": (
        PRODUCT,
        alone(stage=(1,), chunk=(4, 4), threads=(1, 1)),
    ),
    "fuse: nest s0: there is no nest before it": (PRODUCT, own(fuse=True)),
    "inner_order: nest s0: loops over results must be outside": (
        PRODUCT,
        alone(inner_order=(2, 0, 1), threads=(4, 4), chunk=()),
    ),
    "fuse: nest s1: its chunks differ from those of s0": (
        PAIR,
        alone(chunk=(4,)).with_nest(1, NestOptions(chunk=(5,), fuse=True)),
    ),
    "split: nest s0: s0.m is not a reduction": (PRODUCT, alone(split=(2,))),
    "there is no nest 1: f has only nest 0": (
        PRODUCT,
        own().with_nest(1, NestOptions(chunk=(4,))),
    ),
    "stage: nest s0: operand 0, A: data select the element that is read": (
        GATHER,
        alone(stage=(1,), threads=(32,), chunk=(32,)),
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_honoured_is_refused_in_a_sentence(sentence: str) -> None:
    sized, options = REFUSED[sentence]
    with pytest.raises(OptionsError) as refused:
        schedule(sized, options, H200)
    said = str(refused.value)
    assert said.startswith(sentence)
    assert "\n" not in said


def test_what_a_device_has_no_room_for_is_refused() -> None:
    big = own(chunk=(64, 64), tile=(0, 0, 64), stage=(2, 2), buffers=8)
    with pytest.raises(OptionsError, match=r"^stage: .* panels need .* bytes of shared memory"):
        schedule(PRODUCT, big, T4)
    # A panel that fills all of it leaves no room for sums that warps hand to each other.
    text = "def f(float(M, K) A, float(K) B) -> (C) { C(m) +=! A(m, k) * B(k) }"
    dots = sized_of(text, A=(64, 16384), B=(16384,))
    full = {n: alone(chunk=(4,), threads=(1, n), stage=(2,)) for n in (32, 64)}
    schedule(dots, full[32], T4)
    with pytest.raises(OptionsError, match=r"^stage: .* panels need 65792 bytes"):
        schedule(dots, full[64], T4)
    many = sized_of("def f(uint8(M, N) A) -> (B) { B(m, n) = A(m, n) }", A=(70_000, 70_000))
    with pytest.raises(OptionsError, match=r"^chunk: .* blocks are more than the limit of"):
        schedule(many, alone(chunk=(1, 1), threads=(1, 1)), H200)


@pytest.mark.parametrize("key", ["prefetch", "stream", "tile"])
def test_a_cpus_options_are_refused_for_all_nests_too(key: str) -> None:
    value: Any = {"prefetch": (64, 64), "stream": True, "tile": (4, 4, 4)}[key]
    options = MappingOptions(default=NestOptions(**{key: value}))
    if key != "stream":  # past no reduction's results
        schedule_cpu(PRODUCT, options, host_cpu())
    with pytest.raises(OptionsError, match=f"^{key}: nest s0: "):
        schedule(PRODUCT, options, H200)


GPU_ONLY: dict[str, Any] = {
    "threads": (8, 8),
    "buffers": 2,
}


@pytest.mark.parametrize("key", GPU_ONLY)
def test_a_cpu_refuses_a_gpus_options(key: str) -> None:
    choices = NestOptions(**{key: GPU_ONLY[key]})
    with pytest.raises(OptionsError, match=f"^{key}: nest s0: only a GPU"):
        schedule_cpu(PRODUCT, MappingOptions().with_nest(0, choices), host_cpu())
    with pytest.raises(OptionsError, match=f"^{key}: all nests: only a GPU"):
        schedule_cpu(PRODUCT, MappingOptions(default=choices), host_cpu())


def test_a_cpu_takes_what_says_no_to_a_gpus_options() -> None:
    nothing = NestOptions(threads=(1, 0), split=(), buffers=1, mma=())
    schedule_cpu(PRODUCT, MappingOptions("mlp", nothing), host_cpu())


def test_a_reduction_has_as_many_parts_as_were_asked_for() -> None:
    sized = sized_for(check("def f(float(K) A) -> (B) { B +=! A(k) }")["f"], {"K": 10})
    for parts in (2, 3, 4, 5, 10):
        program = schedule(sized, MappingOptions().split(parts), H200)
        assert program.tensor("s0.parts").layout.extents[0] == parts
    for parts, sentence in ((6, "10 points of s0.k fill only 5 of 6 parts"), (11, "for 11")):
        with pytest.raises(OptionsError, match=f"split: nest s0: .*{sentence}"):
            schedule(sized, MappingOptions().with_nest(0, NestOptions(split=(parts,))), H200)


@pytest.mark.parametrize("file", NAMES)
def test_choices_for_all_nests_are_left_off_where_they_cannot_be(file: str) -> None:
    """Nests are joined that can be, operands staged that can be; and what a preset chooses gives
    way to what is asked for. What no nest can have is refused."""
    start = MappingOptions(("naive", "pointwise", "mlp")[NAMES.index(file) % 3])
    asked = (
        *(start.fuse(), start.fuse(False), start.stage(2, 2), start.stage(1), start.buffers(3)),
        *(start.chunk(4), start.threads(16), start.threads(1, 32), start.vectorize(4)),
        *(start.register(2, 2), start.order(1, 0), start.merged(), start.fuse().stage(1, 2)),
    )
    for entry, checked in definitions(file).items():
        sized = sized_for(checked, sizes_of(file, entry))
        for options in asked:
            chosen = options.default
            while True:
                try:
                    schedule(sized, replace(options, default=chosen), H200)
                    break
                except NoNestError as error:
                    chosen = replace(chosen, **{error.option: None})


def every_size() -> Iterator[tuple[str, str, str]]:
    for file in NAMES:
        for entry, checked in definitions(file).items():
            for label in read_annotations(checked).sizes:
                yield file, entry, label


def test_the_smallest_device_takes_what_the_preset_chooses() -> None:
    for file, entry, label in every_size():
        checked = definitions(file)[entry]
        sized = sized_for(checked, dict(parse_sizes(label, checked)))
        schedule(sized, MappingOptions("mlp"), T4)


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_whatever_is_drawn_is_honoured_or_refused_in_a_sentence(start: int) -> None:
    """The sampler takes back what is refused by the option that the sentence names."""
    reasons: Counter[str] = Counter()
    for seed in range(start, start + 25):
        program = random_program(seed)
        sized = sized_of_program(program)
        random_gpu_options(random.Random(seed), sized, H200, reasons)
    assert {"stage", "fuse"} <= reasons.keys()


# Every stage means the same.


@pytest.mark.parametrize("seed", swept(range(20), range(1000, 1300)))
def test_every_stage_means_the_same(seed: int) -> None:
    program = random_program(seed, max_statements=3)
    sized = sized_of_program(program)
    if points_of(sized) > 2000:
        pytest.skip("too many points to interpret")
    options = random_gpu_options(random.Random(seed), sized, H200)
    check_stages(program, sized, seed, stages(sized, options, H200), options)
