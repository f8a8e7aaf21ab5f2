"""Calls with options from caches, on outputs that lie in memory in any way: none may fail or be
wrong, whatever the caches hold.

``python tests/support/cached_calls.py 1000000`` makes a million of them, in some minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from comparing import check_equal, outputs_of
from cpu_kernels import cache_key, random_options

import tcl
from tcl.backends.program_backend import CpuBackend
from tcl.codegen.reference import compile_reference
from tcl.executors.call_kernels import size
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.space.cpu.mapping import MappingSpace

Array = npt.NDArray[Any]
POISON = 0xAB
WAYS = ("define", "factory", "nearest", "compile")
STREAMED = '{"nests":[{"stream":true,"vectorize":[-1,16]},{"stream":true,"vectorize":[-1,16]}]}'
UNFIT = (
    '{"nests":[{"tile":[1,2,3,4,5,6,7,8]}]}',
    '{"nests":[{"order":[3,2,1,0,4]}]}',
    '{"nests":[{"stage":[7,7,7,7]}]}',
    '{"nests":[{},{},{},{},{},{},{"tile":[4]}]}',
    '{"preset":"mlp","default":{"threads":[32,8]}}',
    '{"preset":"mlp","of_a_newer_version":1}',
    '{"default":{"tile":[NaN]}}',
    '{"default":{"tile":[' + "9" * 40 + "]}}",
    "null",
    "",
)
"""That apply to nothing here, or are no options."""

DEFS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "matmul": (
        "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        {"A": (6, 9), "B": (9, 32)},
    ),
    "softmax": (
        "def f(float(N, D) I) -> (O, s, m) { m(n) max=! I(n, d)"
        " s(n) +=! exp(I(n, d) - m(n)) O(n, d) = exp(I(n, d) - m(n)) / s(n) }",
        {"I": (5, 48)},
    ),
    "bias and relu": (
        "def f(float(M, K) A, float(N, K) B, float(N) c) -> (O) {"
        " O(m, n) +=! A(m, k) * B(n, k) O(m, n) = fmax(O(m, n) + c(n), 0) }",
        {"A": (7, 8), "B": (16, 8), "c": (16,)},
    ),
    "stencil": (
        "def f(float(H, W) I) -> (O) { O(y, x) = I(y - 1, x) + I(y + 1, x) + I(y, x - 1)"
        " + I(y, x + 1) - 4 * I(y, x) where y in 1:H - 1, x in 1:W - 1 }",
        {"I": (8, 50)},
    ),
    "bool": (
        "def f(bool(M, K) A, bool(N, K) B) -> (C) { C(m, n) max=! A(m, k) && B(n, k) }",
        {"A": (9, 20), "B": (64, 20)},
    ),
    "int8": (
        "def f(int8(M, K) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * int32(B(k, n)) }",
        {"A": (5, 16), "B": (16, 32)},
    ),
    "convolution": (
        "def f(float(N, C, H, W) I, float(O, C, KH, KW) F) -> (R) {"
        " R(n, o, h, w) +=! I(n, c, 2 * h + kh, 2 * w + kw) * F(o, c, kh, kw) }",
        {"I": (1, 2, 9, 19), "F": (4, 2, 3, 3)},
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Outputs of one call: where they lie, and all the memory that they lie in, as it has to be
    after a call."""

    outputs: tuple[Array, ...] | None
    memory: tuple[Array, ...]
    wanted: list[bytes]


@dataclass(frozen=True, slots=True)
class Function:
    """A def with a cache of its own, and the outputs that it is called on."""

    name: str
    call: Any
    inputs: tuple[Array, ...]
    places: list[Place]

    def run(self, place: Place) -> bool:
        """Whether a call wrote what it has to, and nothing beside it."""
        if place.outputs is None:
            found = self.call(*self.inputs)
            made = found if isinstance(found, tuple) else (found,)
            return [each.tobytes() for each in made] == place.wanted
        for memory in place.memory:
            memory.fill(POISON)
        self.call(*self.inputs, outputs=place.outputs)
        return [memory.tobytes() for memory in place.memory] == place.wanted


def values(
    checked: CheckedDef, shapes: dict[str, tuple[int, ...]], rng: np.random.Generator
) -> list[Array]:
    """Inputs whose sums are exact in their types."""
    return [
        rng.integers(0 if t.type.is_bool else -4, 2, shapes[t.name]).astype(t.type.name)
        for t in checked.inputs
    ]


def laid_out(like: Array, rng: random.Random) -> tuple[Array, Array]:
    """Memory, and a view of it that an output can be: axes in any order, turned round, with gaps
    within and between rows, somewhere in it."""
    order = rng.sample(range(like.ndim), like.ndim)
    if rng.random() < 0.4:
        order.sort()
    step, strides = like.itemsize, [0] * like.ndim
    for axis in reversed(order):
        step *= rng.choice((1, 1, 1, 2, 3))
        strides[axis] = step
        step = step * like.shape[axis] + like.itemsize * rng.choice((0, 0, 1, 5, 16))
    memory = np.zeros(step + 64 + 17 * like.itemsize, np.uint8)
    offset = -memory.ctypes.data % 64 + like.itemsize * rng.choice((0, 0, 1, 16))
    for axis in range(like.ndim):
        if rng.random() < 0.15:
            offset += strides[axis] * (like.shape[axis] - 1)
            strides[axis] = -strides[axis]
    view: Array = np.ndarray(like.shape, like.dtype, memory, offset, strides)
    return memory, view


def filled(text: str, inputs: list[Array], sized: SizedDef, rng: random.Random) -> list[str]:
    """Options for a cache, best first: sampled ones, streamed ones, and some that fit nothing."""
    space = MappingSpace(*_program(text, inputs))
    options = [random_options(rng, sized).to_json() for _ in range(2)]
    for _ in range(4):
        config = space.space.sample(rng)
        if config is not None:
            options.append(space.to_options(config).to_json())
    options += rng.sample(UNFIT, rng.randrange(4))
    rng.shuffle(options)
    if rng.random() < 0.5:
        options.insert(0, STREAMED)
    return list(dict.fromkeys(options))


def _program(text: str, inputs: list[Array]) -> tuple[Any, Any]:
    backend = CpuBackend.described(text, "f", inputs, 1)
    return backend.program(), backend.device


def function(name: str, way: str, folder: Path, layouts: int, rng: random.Random) -> Function:
    """A def with a new cache in this folder, used in this way."""
    text, shapes = DEFS[name]
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    checked = tcl.define(text).definition("f")
    inputs = values(checked, shapes, numbers)
    if rng.random() < 0.4:
        inputs = [np.asfortranarray(a) for a in inputs]
    sized = size(checked, inputs)
    os.environ["TCL_CACHE_DIR"] = str(folder)
    cache = TuningCache(folder / "named.db" if way == "factory" else default_path())
    tuned = inputs
    if way == "nearest":  # for the same sizes with other strides
        fortran = inputs[0].flags.f_contiguous
        tuned = [np.array(a, order="C" if fortran else "F") for a in inputs]
    key = cache_key(size(checked, tuned), tuned)
    for rank, each in enumerate(filled(text, inputs, sized, rng)):
        cache.store(key, each, Outcome(Verdict.CORRECT, (1e-6 * (rank + 1),)), run="r")
    cache.close()
    if way == "compile":
        call: Any = tcl.compile(text, "f", None, *inputs, threads=1)
    elif way == "factory":
        factory = tcl.make_load_from_cache_options_factory(cache.path, threads=1)
        call = tcl.define(text, factory, threads=1).f
    else:
        call = tcl.define(text, threads=1, nearest=way == "nearest").f
    expected = outputs_of(sized)
    compile_reference(sized)(inputs, expected)
    places = [_place(call, inputs, sized, expected, None)]
    for _ in range(layouts):
        laid = [laid_out(e, rng) for e in expected]
        places.append(_place(call, inputs, sized, expected, laid))
    return Function(f"{name}, {way}", call, tuple(inputs), places)


def _place(
    call: Any,
    inputs: list[Array],
    sized: SizedDef,
    expected: list[Array],
    laid: list[tuple[Array, Array]] | None,
) -> Place:
    """Call once and compare with the reference: later calls have to give the same bits."""
    if laid is None:
        found = call(*inputs)
        made = found if isinstance(found, tuple) else (found,)
        check_equal(sized, made, expected, "new outputs")
        return Place(None, (), [each.tobytes() for each in made])
    memory, views = tuple(m for m, _ in laid), tuple(v for _, v in laid)
    for each in memory:
        each.fill(POISON)
    call(*inputs, outputs=views)
    check_equal(sized, views, expected, f"strides {[v.strides for v in views]}")
    wanted = [each.tobytes() for each in memory]
    for each, view in laid:  # nothing beside the elements was written
        view[...] = 0
        rest = each.copy()
        each.fill(POISON)
        view[...] = 0
        assert rest.tobytes() == each.tobytes(), "a call wrote beside its output"
    return Place(views, memory, wanted)


def functions(count: int, layouts: int, folder: Path, seed: int) -> Iterator[Function]:
    """Defs in turn, used in all ways in turn."""
    rng = random.Random(seed)
    names = list(DEFS)
    for number in range(count):
        own = folder / str(number)
        own.mkdir()
        way = WAYS[(number + number // len(names)) % len(WAYS)]
        yield function(names[number % len(names)], way, own, layouts, rng)


def run(calls: int, count: int, layouts: int, folder: Path, seed: int) -> Counter[str]:
    """Make so many calls of so many functions, each on outputs of so many layouts, in random order;
    what happened, counted. Whatever a call raises is raised."""
    found: Counter[str] = Counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = list(functions(count, layouts, folder, seed))
        first = len(caught)
        rng = random.Random(seed)
        for _ in range(calls):
            each = made[int(rng.random() * len(made))]
            place = each.places[int(rng.random() * len(each.places))]
            if each.run(place):
                found["right"] += 1
            else:
                found["wrong"] += 1
                found[f"wrong: {each.name}"] += 1
        found["warnings while calls were repeated"] = len(caught) - first
    found["kernels"] = sum(len(each.places) for each in made)
    for warning in caught:
        text = str(warning.message)
        kind = "cached options do not apply" if "do not apply" in text else "was not tuned for"
        assert issubclass(warning.category, tcl.TclWarning) and kind in text, text
        found[kind] += 1
        entry = re.search(r"rank \d+ for .* \(key \w+ in [^)]*\)", text)
        if entry is not None:
            found[entry[0]] += 1
            assert found.pop(entry[0]) == 1
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int)
    parser.add_argument("--functions", type=int, default=56)
    parser.add_argument("--layouts", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.calls, given.functions, given.layouts, Path(folder), given.seed)
    for what, count in found.items():
        print(f"{what}: {count:,}")
    print(f"{time.monotonic() - begun:.0f} s")
    raise SystemExit(1 if found["wrong"] else 0)


if __name__ == "__main__":
    main()
