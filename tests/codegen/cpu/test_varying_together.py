"""Kernels for classes of all sizes of a def at once: what is right, and what making them takes."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

import pytest
from comparing import check_equal, outputs_of
from compiled_kernels import compile_cpu
from matrix_unit import EMULATING, text_of
from sampling import sampled

from examples import DEFS, definitions, sized_for
from tcl.arrays.annotations import parse_sizes, read_annotations
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.varying import ready_for_all, scheduled_for_all
from tcl.codegen.devices.known_cpus import PROFILES
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.executors.size_classes import ForAll
from tcl.grammar.check.definitions import check
from tcl.grammar.sizes import polynomials, varying
from tcl.grammar.sizes.size_classes import SizeClass, classes_of
from tcl.grammar.sizes.varying import Undecided
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef

_T = TypeVar("_T")
BEST = MappingOptions("mlp")
SAPPHIRE_RAPIDS = replace(next(d for d in PROFILES if d.name == "sapphirerapids"), threads=1)
REMEMBERING = (
    *(polynomials.plus, polynomials.multiplied, polynomials.remembered),
    varying.over,
)


def examples() -> list[tuple[str, str, str]]:
    """(file, def, label of its sizes) of all examples."""
    return [
        (file, name, label)
        for file, name in DEFS
        for label in read_annotations(definitions(file)[name]).sizes
        if definitions(file)[name].sizes
    ]


def widest(
    definition: CheckedDef, sizes: Mapping[str, int], use: Callable[[ForAll], _T]
) -> _T | None:
    """What ``use`` gives of the widest classes of all sizes that there can be a kernel for; None
    if the sizes have to have one of their own."""
    for found in classes_of(sizes, definition.sizes):
        with contextlib.suppress(Undecided, SourceError, OptionsError):
            return use(ForAll.for_sizes(definition, sizes, found))
    return None


def compare(all_: ForAll, several: list[dict[str, int]], threads: int = 1) -> int:
    """Run the kernel of classes at some sizes; how many of them the def can have."""
    definition = all_.symbolic.checked
    code = ready_for_all(all_.symbolic, BEST, threads=threads, asked=False)
    launcher = Launcher(code, [t.name for t in definition.inputs + definition.outputs])
    compared = 0
    for sizes in several:
        try:
            sized = sized_for(definition, sizes)
        except SourceError:
            continue
        inputs = random_inputs(definition, sizes)
        actual, expected = outputs_of(sized), outputs_of(sized)
        launcher.at(code.at({name: sizes[name] for name in all_.classes}))([*inputs, *actual])
        compile_cpu(sized, MappingOptions())(inputs, expected)
        check_equal(sized, actual, expected, str(sizes))
        compared += 1
    return compared


def some(rng: random.Random, class_: SizeClass, most: int) -> int:
    """A size of a class, not too large."""
    last = max(class_.least, min(class_.most, most)) // class_.multiple
    return class_.multiple * rng.randint(-(-class_.least // class_.multiple), last)


WRITTEN_OUT = [
    # Sums of any number of lanes, which are stored far apart; copies whose lanes are far apart.
    ("group_convolution", "group_convolution_strided", "test"),
    ("layers", "tensordot", "test"),
]


@pytest.mark.parametrize(("file", "name", "label"), [*WRITTEN_OUT, *sampled(examples(), 47)])
def test_examples(file: str, name: str, label: str) -> None:
    definition, rng = definitions(file)[name], random.Random(name)
    sizes = {n: min(v, 40) for n, v in parse_sizes(label, definition).items()}
    most = 300 if len(sizes) < 4 else 40

    def right(all_: ForAll) -> int:
        several = [{n: some(rng, c, most) for n, c in all_.classes.items()} for _ in range(5)]
        return compare(all_, [sizes, *several])

    assert widest(definition, sizes, right) != 0


@pytest.mark.parametrize(
    ("least", "types"), sampled(product([1, 16], [("int8",) * 2, ("bfloat16",) * 2]), 3)
)
def test_products_in_the_matrix_unit(
    types: tuple[str, str], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shorter iterations of rows, of columns and of what is added up, by themselves and together.
    monkeypatch.setattr("tcl.codegen.cpu.run.varying.host_cpu", lambda: EMULATING)
    (definition,) = check(text_of("plain", types)).values()
    wide = dict.fromkeys(definition.sizes, SizeClass(1, least, 255))
    all_ = ForAll.for_sizes(definition, dict.fromkeys(definition.sizes, 40), wide)
    lengths = [n for n in (1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 67, 129) if n >= least]
    rng = random.Random(0)
    several = [{n: rng.choice(lengths) for n in definition.sizes} for _ in range(6)]
    alike = [dict.fromkeys(definition.sizes, n) for n in lengths[least > 1 :: 2]]
    assert compare(all_, [*several, *alike], threads=2) == 6 + len(alike)


def taken(all_: ForAll) -> tuple[int, int]:
    """Lines of code, and polynomials and results that were worked out for it."""
    for function in REMEMBERING:
        function.cache_clear()
    made, built = scheduled_for_all(all_.symbolic, BEST, SAPPHIRE_RAPIDS, asked=False)
    lines = emit_program(built, made.target).text.count("\n")
    return lines, sum(function.cache_info().misses for function in REMEMBERING)


@pytest.mark.parametrize("several", [("M",), ("K",), ("M", "N"), ("M", "N", "K")])
@pytest.mark.parametrize("types", [("int8", "int8"), ("bfloat16", "bfloat16")])
def test_a_product_is_short_however_many_of_its_sizes_vary(
    types: tuple[str, str], several: tuple[str, ...]
) -> None:
    (definition,) = check(text_of("plain", types)).values()
    sizes = dict.fromkeys(definition.sizes, 300)
    all_ = ForAll.for_sizes(definition, sizes, next(classes_of(sizes, several)))
    lines, worked_out = taken(all_)
    assert lines < 4_000
    assert worked_out < 600


@pytest.mark.parametrize(("file", "name", "label"), sampled(examples(), 29))
def test_what_an_example_takes(file: str, name: str, label: str) -> None:
    definition = definitions(file)[name]
    lines, worked_out = widest(definition, parse_sizes(label, definition), taken) or (0, 0)
    assert lines < 32_000
    assert worked_out < 600
