"""Defs as CUDA kernels, emulated in all orders of threads and compared with the reference: or run
on a real GPU, see ``real_gpu``."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from comparing import check_equal, outputs_of
from program_builder import Program
from real_gpu import ON_GPU, OnGpu, note, time_is_up

from examples import definitions, sized_for
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.cuda import emulator
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import ORDERS, Emulated, EmulationError, Order
from tcl.codegen.devices.gpu import A100, H100, H200, RTX_5090, T4, GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.common.errors import CompileError, TclError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef

Array = npt.NDArray[Any]
Kernels: TypeAlias = Emulated | OnGpu

DEVICES = (T4, A100, H100, RTX_5090)
BATCH = 1 if ON_GPU else 32
"""Modules that are compiled together."""


def why_not() -> str | None:
    """Why kernels cannot be run, in one sentence; None if they can."""
    return None if ON_GPU else emulator.why_not()


emulator_only = pytest.mark.skipif(bool(ON_GPU), reason="only the emulator finds this")
"""Of tests about what a real GPU does not say, or does not survive."""


def compile_modules(modules: Sequence[CudaModule]) -> Sequence[Kernels]:
    """The modules for the emulator, or for a real GPU."""
    if ON_GPU:
        return [OnGpu(module, module) for module in modules]
    return emulator.compile_modules(modules)


@dataclass(frozen=True)
class Work:
    """A def for given sizes, with inputs and what it makes of them."""

    name: str
    sized: SizedDef
    inputs: Sequence[Array]
    given: tuple[Array, ...] | None = None
    """The results, if another than the reference says them."""

    @cached_property
    def expected(self) -> Sequence[Array]:
        """The results; not every test asks for them."""
        if self.given is not None:
            return self.given
        expected = outputs_of(self.sized)
        compile_reference(self.sized)(tuple(self.inputs), expected)
        return expected

    @property
    def names(self) -> list[str]:
        """The tensors, in the order of a call."""
        checked = self.sized.checked
        return [t.name for t in checked.inputs + checked.outputs]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel that is to be right."""

    work: Work
    options: MappingOptions
    module: CudaModule
    title: str = ""

    def __str__(self) -> str:
        return f"{self.work.name} {self.title}{self.options}"


def points_of(sized: SizedDef) -> int:
    """The points of all statements."""
    return sum(prod(s.extent(i) for i in s.ranges) for s in sized.statements)


def work_of_text(text: str, *inputs: Array) -> Work:
    """The one def of a text, for these inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(text).values()
    names = [t.name for t in checked.inputs]
    sized = infer(checked, {n: a.shape for n, a in zip(names, inputs, strict=True)})
    return Work(checked.name, sized, inputs)


def work_of_program(program: Program, seed: int) -> Work:
    """A random program."""
    sized = infer(check(program.source)[program.entry], program.shapes)
    return Work(f"program {seed}", sized, tuple(program.inputs(seed).values()))


@cache
def example_work(file: str, entry: str, most: int = 0) -> Work:
    """A def of an example for its ``test`` sizes, or for larger ones of about ``most`` points."""
    checked = definitions(file)[entry]
    sizes = example_sizes(file, entry, most)
    spoken = ", ".join(f"{k}={v}" for k, v in sizes.items())
    sized = sized_for(checked, sizes)
    return Work(f"{file}.{entry}({spoken})", sized, random_inputs(checked, sizes))


def example_sizes(file: str, entry: str, most: int = 0) -> dict[str, int]:
    """The ``test`` sizes of an example, or larger ones of about ``most`` points."""
    checked = definitions(file)[entry]
    sizes = dict(parse_sizes("test", checked))
    return grown(checked, sizes, most) if most else sizes


def grown(checked: CheckedDef, sizes: dict[str, int], most: int) -> dict[str, int]:
    """Sizes two or three times as large, and ragged, as far as there are no more points."""
    rng = random.Random(checked.name)
    # The symbols of the results first, so that several blocks run, and edges of them.
    for _ in range(2):
        for symbol in rng.sample(sorted(sizes), len(sizes)):
            larger = {**sizes, symbol: sizes[symbol] * 2 + rng.randint(-1, 3)}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if points_of(sized_for(checked, larger)) <= most:
                        sizes = larger
            except TclError:
                continue  # sizes that have to fit others
    return sizes


def case_of(
    work: Work,
    options: MappingOptions,
    device: GpuProfile = H200,
    *,
    layouts: Mapping[str, ir.Layout] | None = None,
    unchecked: bool = False,
    title: str = "",
) -> Case:
    """The kernels for these options."""
    module = emit_module(work.sized, options, device, layouts, unchecked)
    return Case(work, options, module, title)


@dataclass(slots=True)
class Failures:
    """What went wrong, all of it, so that a sweep says how much."""

    said: list[str] = field(default_factory=list)
    cases: int = 0

    def note(self, case: object, error: BaseException) -> None:
        text = str(error)
        self.said.append(f"{case}: {type(error).__name__}: {text[:1500]}")
        if ON_GPU:
            note("WRONG", self.said[-1])

    def none(self) -> None:
        """Fails if there is one; the first ones are shown."""
        shown = "\n\n".join(self.said[:4])
        assert not self.said, f"{len(self.said)} of {self.cases} cases are wrong\n{shown}"


def run_case(case: Case, kernels: Kernels, order: Order, seed: int = 1) -> list[Array]:
    """The results of a run."""
    made = outputs_of(case.work.sized)
    arrays = dict(zip(case.work.names, (*case.work.inputs, *made), strict=True))
    replace(kernels, module=case.module).run(arrays, order, seed=seed)
    return made


def check_work(work: Work, made: Sequence[Array], what: str) -> None:
    """Results are those of the reference."""
    check_equal(work.sized, made, work.expected, what, work.inputs)


def check_cases(cases: Iterable[Case], orders: Sequence[Order] = ORDERS) -> Failures:
    """Emulates kernels in these orders of threads, and compares all results. A real GPU runs each
    as often as there are orders: what counts the blocks that are done has to be as before."""
    failures, rest, begin, skipped = Failures(), iter(cases), time.time(), 0
    orders = ORDERS if ON_GPU else orders
    while not time_is_up(begin) and (batch := list(islice(rest, BATCH))):
        failures.cases += len(batch)
        for case, kernels in _compiled(batch, failures):
            try:
                for order in orders:
                    made = run_case(case, kernels, order)
                    check_work(case.work, made, f"{order} order")
            except (EmulationError, AssertionError, IndexError) as error:
                failures.note(case, error)
            except pytest.skip.Exception:  # of what this GPU cannot run
                skipped += 1
    if ON_GPU and skipped == failures.cases:
        pytest.skip("no kernel could be run, or the time was up")
    return failures


def _compiled(batch: list[Case], failures: Failures) -> list[tuple[Case, Kernels]]:
    """Those that compile; the others are failures."""
    try:
        return list(zip(batch, compile_modules([c.module for c in batch]), strict=True))
    except CompileError as error:
        if len(batch) == 1:
            failures.note(batch[0], error)
            return []
        half = len(batch) // 2
        return _compiled(batch[:half], failures) + _compiled(batch[half:], failures)


def layout_of(array: Array, like: ir.Layout, base: int) -> ir.Layout:
    """How an array lies in memory, whose first element is so aligned."""
    assert array.shape == like.extents
    strides = tuple(int(s) for s in array.strides)
    return ir.Layout(like.type, like.extents, strides, like.origin, base=base)


def strided(array: Array, rng: random.Random) -> Array:
    """The same elements in memory that lies otherwise: axes exchanged, turned round, with gaps, or
    one element for all of an axis (then the values are the first one's)."""
    kind = rng.choice(("same", "transposed", "turned", "gaps", "broadcast"))
    if not array.ndim or kind == "same":
        return array
    axis = rng.randrange(array.ndim)
    if kind == "transposed":
        order = rng.sample(range(array.ndim), array.ndim)
        back = [order.index(k) for k in range(array.ndim)]
        return np.ascontiguousarray(array.transpose(order)).transpose(back)
    if kind == "turned":
        return np.flip(np.ascontiguousarray(np.flip(array, axis)), axis)
    if kind == "gaps":
        wide = np.zeros((*array.shape[:axis], 3 * array.shape[axis], *array.shape[axis + 1 :]))
        view: Array = wide.astype(array.dtype)[(slice(None),) * axis + (slice(None, None, 3),)]
        view[...] = array
        return view
    if not array.shape[axis]:
        return array
    return np.broadcast_to(array.take([0], axis), array.shape)
