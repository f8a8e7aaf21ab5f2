"""Every def of the suite as CUDA kernels: emulated, and compared with the reference.

The sizes are ragged. Threads run in forward, reverse and random order; the emulator finds races,
accesses out of bounds and misaligned ones. CI takes a sample of the options.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from cuda_checks import Case, case_of, check_cases, example_work, why_not
from cuda_options import random_gpu_options, space_options
from sampling import sampled, swept

from examples import NAMES, definitions
from tcl.bench.rows import SUITE
from tcl.codegen.devices.gpu import H200, T4
from tcl.codegen.options.options import MappingOptions

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

PRESETS = ("naive", "pointwise", "mlp")
LARGER = 6_000
"""Points of a def, about, with several blocks, tiles and edges."""
LARGEST = 60_000
MANY = [(most, 20) for most in (0, LARGER, LARGEST)]
each_file = pytest.mark.parametrize("file", NAMES)


def presets(file: str, most: int, each: bool = True, turn: int = 0) -> Iterator[Case]:
    """All presets of each def, or the one whose turn it is."""
    for position, entry in enumerate(definitions(file), NAMES.index(file) + turn):
        work = example_work(file, entry, most)
        names = PRESETS if each else (PRESETS[position % len(PRESETS)],)
        yield from (case_of(work, MappingOptions(name)) for name in names)


def drawn(file: str, most: int, count: int) -> Iterator[Case]:
    """Random options, every other time from the space that is searched, on devices with
    asynchronous copies and without."""
    for position, entry in enumerate(definitions(file)):
        work = example_work(file, entry, most)
        for number in range(position, position + count):
            rng = random.Random(f"{file}.{entry} {number}")
            device = rng.choice((H200, T4))
            options = random_gpu_options(rng, work.sized, device)
            if number % 2:
                options = space_options(rng, work.sized, device) or options
            yield case_of(work, options, device, title=f"{device.name} ")


def test_the_suite_is_among_the_examples() -> None:
    assert all(row.entry in definitions(row.file) for row in SUITE)


@pytest.mark.parametrize("most", swept([0], [LARGEST]))
@each_file
def test_presets_agree_with_the_reference(file: str, most: int) -> None:
    check_cases(presets(file, most, each=most == LARGEST, turn=1)).none()


@each_file
def test_a_preset_agrees_on_larger_sizes(file: str) -> None:
    check_cases(presets(file, LARGER, each=False), ("random",)).none()


@pytest.mark.parametrize(("most", "count"), sampled([(0, 1), *MANY], 4))
@each_file
def test_random_options_agree_with_the_reference(file: str, most: int, count: int) -> None:
    check_cases(drawn(file, most, count)).none()
