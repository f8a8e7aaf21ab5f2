"""Random defs with sums of products, and options with which a matrix unit computes them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
from cpu_kernels import Array, accepted
from emulated_cpu import host_with

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import BFLOAT16

EMULATED = "+amx-tile,+amx-int8,+amx-bf16"
EMULATING = host_with(EMULATED)
"""This machine, with a matrix unit that is emulated."""
_found = find("Sapphire Rapids")
assert _found is not None
SAPPHIRE_RAPIDS = _found
"""A machine that has one, to compile for."""

CASES: dict[str, tuple[str, tuple[int, int, int], tuple[str, ...], tuple[str, ...]]] = {
    "plain": ("C(m, n) +=! A(m, k) * B(k, n)", (0, 1, 2), ("M", "K"), ("K", "N")),
    "right transposed": ("C(m, n) +=! A(m, k) * B(n, k)", (0, 1, 2), ("M", "K"), ("N", "K")),
    "left transposed": ("C(m, n) +=! A(k, m) * B(k, n)", (0, 1, 2), ("K", "M"), ("K", "N")),
    "columns first": ("C(n, m) +=! A(m, k) * B(k, n)", (1, 0, 2), ("M", "K"), ("K", "N")),
    "added to": ("C(m, n) += A(m, k) * B(k, n)", (0, 1, 2), ("M", "K"), ("K", "N")),
    "batched": (
        "C(b, m, n) +=! A(b, m, k) * B(b, k, n)", (1, 2, 3), ("Z", "M", "K"), ("Z", "K", "N"),
    ),
    "convolution": (
        "C(p, f, h, w) +=! A(p, c, h + r, w + s) * B(f, c, r, s)",
        (1, 3, 4), ("P", "K", "H", "N"), ("M", "K", "R", "S"),
    ),
    "columns of an image": (
        "C(p, h, w, f) +=! A(p, h + r, w + s, c) * B(r, s, c, f)",
        (2, 3, 6), ("P", "H", "N", "K"), ("R", "S", "K", "M"),
    ),
    "squares": ("C(m, n) +=! A(m, k) * A(n, k)", (0, 1, 2), ("M", "K"), ()),
}  # fmt: skip
"""Statement, the dimensions that the matrix unit multiplies along, and both factors' shapes."""
SMALL = {"Z": 3, "P": 2, "H": 4, "R": 3, "S": 3}
"""Sizes that stay small."""
TYPES = ("int8", "uint8", "bfloat16")


def text_of(case: str, types: tuple[str, str], epilogue: bool = False) -> str:
    """The def of a case whose factors have these types."""
    body, _, left, right = CASES[case]
    wide = "float" if "bfloat16" in types else "int32"
    target, sums = body.split("=! " if "=!" in body else "= ")
    first, second = sums.split(" * ")
    body = f"{target}{'=!' if '=!' in body else '='} {wide}({first}) * {wide}({second})"
    inputs = [f"{types[0]}({', '.join(left)}) A", f"{types[1]}({', '.join(right)}) B"]
    if epilogue:
        name = target.split(" +")[0]
        body += f"\n    {name} = {name} * 2 + 1"
    return f"def f({', '.join(inputs if right else inputs[:1])}) -> (C) {{\n    {body}\n}}"


def random_work(rng: random.Random) -> tuple[str, list[Array], tuple[int, int, int]]:
    """A def, its inputs, and dimensions that a matrix unit may multiply along."""
    case = rng.choice(list(CASES))
    _, mma, *names = CASES[case]
    pairs = [("bfloat16", "bfloat16")] + [(a, b) for a in TYPES[:2] for b in TYPES[:2]]
    types = rng.choice(pairs)
    if not names[1]:
        types = (types[0], types[0])
    most = rng.choice([20, 70, 70, 150])
    sizes = {n: SMALL.get(n) or rng.choice([rng.randint(1, most), 16, 32, 64]) for n in "MNK"}
    sizes |= SMALL
    if "N" in names[0] and "S" in names[1]:
        sizes["N"] += SMALL["S"] - 1
    inputs = [
        random_array(rng, tuple(sizes[n] for n in axes), type_)
        for axes, type_ in zip(names, types, strict=True)
        if axes
    ]
    epilogue = rng.random() < 0.3 and case != "added to"
    return text_of(case, types, epilogue), inputs, mma


def random_array(rng: random.Random, shape: tuple[int, ...], type_: str) -> Array:
    own = np.random.default_rng(rng.randrange(1 << 30))
    if type_ == "bfloat16":
        return own.standard_normal(shape).astype(numpy_dtype(BFLOAT16))
    info: Any = np.iinfo(type_)
    return own.integers(info.min, info.max + 1, shape).astype(type_)


def random_options(
    rng: random.Random,
    sized: SizedDef,
    mma: tuple[int, int, int],
    device: CpuProfile = EMULATING,
) -> MappingOptions:
    """Options with which the matrix unit computes the first nest on a device, whose threads decide
    about chunks that are left open."""
    nest = lower(sized).nests[0]
    rank = len(nest.dims)
    for _ in range(60):
        rows, columns, words = mma if rng.random() < 0.7 else (mma[1], mma[0], mma[2])
        tile = tuple(rng.choice([0, 0, 0, 16, 32, 64, rng.randint(1, 70)]) for _ in range(rank))
        register = [0] * rank
        register[rows], register[columns] = rng.randint(1, 3), rng.randint(1, 3)
        register[words] = rng.choice([0, 0, 2])
        tiles = sum(size > 0 for size in tile)
        depth = 2 if operands(nest.point)[0].type == BFLOAT16 else 4
        own = NestOptions(
            tile=tile,
            order=tuple(rng.sample(range(rank), rank)),
            inner_order=tuple(rng.sample(range(rank), rank)),
            vectorize=(columns, 16),
            register=tuple(register),
            dot=tuple(depth if k == words else 0 for k in range(rank)),
            mma=(rows, columns, words),
            stage=(rng.randint(-1, tiles), rng.randint(-1, tiles)),
        )
        if rng.random() < 0.3:
            own = replace(own, chunk=tuple(rng.choice([0, 7, 16, 40]) for _ in range(2)))
        chosen = MappingOptions(rng.choice(["naive", "mlp"]), nests=(own,))
        if accepted(sized, chosen, device):
            return chosen
    raise AssertionError(f"nothing was accepted, not {chosen}, of\n{sized.checked.source.text}")
