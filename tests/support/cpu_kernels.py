"""Defs compiled for the CPU and by the reference, for the tests of both and of the loop IR."""

from __future__ import annotations

import ctypes
import mmap
import random
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiled_kernels import compile_cpu

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.codegen.passes.cpu.dot import depths
from tcl.codegen.passes.cpu.skip import why_never_skipped
from tcl.codegen.reference import compile_reference
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import Query
from tcl.tuner.cache.key import CacheKey

Array = np.ndarray[Any, np.dtype[Any]]
NAIVE = MappingOptions()
LANES = MappingOptions().vectorize(8)
BOTH = pytest.mark.parametrize("options", [NAIVE, LANES], ids=["scalar", "lanes"])
POISON = 77
MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


def sized_of(text: str, *inputs: Array) -> SizedDef:
    """The one def of ``text`` for these inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(text).values()
    names = [t.name for t in checked.inputs]
    return infer(checked, {n: a.shape for n, a in zip(names, inputs, strict=True)})


def cache_key(sized: SizedDef, arrays: Sequence[Array], threads: int = 1) -> CacheKey:
    """What measured times of this def on these inputs, with so many threads, depend on."""
    return Query.on_inputs(sized, arrays, replace(host_cpu(), threads=threads)).key


def poisoned(sized: SizedDef) -> list[Array]:
    return [
        np.full(sized.shapes[t.name], POISON).astype(numpy_dtype(t.type))
        for t in sized.checked.outputs
    ]


def run(
    text: str,
    *inputs: Array,
    options: MappingOptions = NAIVE,
    unchecked: bool = False,
    device: CpuProfile | None = None,
) -> list[Array]:
    """Outputs of the one def of ``text``; the kernel is compiled for the inputs' strides."""
    sized = sized_of(text, *inputs)
    strides = {t.name: a.strides for t, a in zip(sized.checked.inputs, inputs, strict=True)}
    outputs = poisoned(sized)
    kernel = compile_cpu(sized, options, strides=strides, unchecked=unchecked, device=device)
    kernel(inputs, outputs)
    return outputs


def reference(text: str, *inputs: Array) -> list[Array]:
    sized = sized_of(text, *inputs)
    outputs = poisoned(sized)
    compile_reference(sized)(inputs, outputs)
    return outputs


def same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def random_options(
    rng: random.Random, sized: SizedDef, device: CpuProfile | None = None
) -> MappingOptions:
    """Any tiles, orders, lanes and register tiles that the nests of ``sized`` can have."""
    if rng.random() < 0.1:
        return MappingOptions(rng.choice(PRESETS))
    chosen = MappingOptions()
    for position, nest in enumerate(lower(sized).nests):
        rank = len(nest.dims)
        outer, inner = (tuple(rng.sample(range(rank), rank)) for _ in range(2))
        lanes = (rng.randrange(rank), rng.choice([1, 2, 4, 8, 16])) if rank else None
        tile = tuple(rng.choice([0, 1, 2, 3, 4, 5, 8]) for _ in range(rank))
        if nest.running is not None:  # reductions go through their points in order, inside
            results = sum(not d.reduction for d in nest.dims)
            tile = tile[:results]
            outer, inner = (
                (*(k for k in order if k < results), *range(results, rank))
                for order in (outer, inner)
            )
            lanes = rng.choice([(rng.randrange(results), 8) if results else None, lanes, None])
            if not accepted(
                sized,
                MappingOptions().with_nest(position, NestOptions(vectorize=lanes)),
                device or host_cpu(),
            ):
                lanes = None
        own = NestOptions(tile, outer, inner, lanes)
        chosen = chosen.with_nest(position, own)
        for depth in depths(nest, device or host_cpu()):
            along = rng.choice([k for k, d in enumerate(nest.dims) if d.reduction])
            dot = tuple(depth if k == along else 0 for k in range(rank))
            several = chosen.with_nest(position, replace(own, dot=dot))
            if accepted(sized, several, device or host_cpu()):
                own, chosen = replace(own, dot=dot), several
                break
        register = tuple(rng.choice([0, 1, 2, 3, 4]) for _ in range(rank))
        for _ in range(3):  # smaller, until it fits the registers
            bigger = chosen.with_nest(position, replace(own, register=register))
            if accepted(sized, bigger, device or host_cpu()):
                chosen = bigger
                break
            register = tuple(size - 1 if size > 1 else size for size in register)
        for operand in range(len(operands(nest.point))):
            own = chosen.own(position)
            stage = (own.stage or ()) + (-1,) * (operand - len(own.stage or ()))
            level = rng.choice([-1, 0, 1, 2, 3])
            staged = chosen.with_nest(position, replace(own, stage=(*stage, level)))
            if accepted(sized, staged, device or host_cpu()):
                chosen = staged
        streamed = chosen.nest(position).stream()
        if rng.random() < 0.7 and accepted(sized, streamed, device or host_cpu()):
            chosen = streamed
        reads = operands(nest.point)
        ahead = tuple(rng.choice([0, 64, 1000, 1 << 30]) for _ in reads)
        for k in range(len(reads)):  # each for itself: a nest may refuse some
            own = chosen.own(position)
            one = (*(own.prefetch or ())[:k], *[0] * (k - len(own.prefetch or ())), ahead[k])
            fetched = chosen.with_nest(position, replace(own, prefetch=one))
            if accepted(sized, fetched, device or host_cpu()):
                chosen = fetched
        skipping = chosen.nest(position).skip()
        if why_never_skipped(nest) is None and accepted(sized, skipping, device or host_cpu()):
            chosen = skipping
    return chosen


def accepted(sized: SizedDef, options: MappingOptions, device: CpuProfile) -> bool:
    try:
        schedule(sized, options, device)
    except OptionsError:
        return False
    return True


def plain(a: Array) -> Array:
    """Floats of any width as float64, for comparing."""
    return a.astype(np.float64) if a.dtype.kind not in "biu" else a


def fenced(shape: tuple[int, ...], dtype: Any, after: bool) -> Array:
    """An array with forbidden memory right behind it, or right before it."""
    page = mmap.PAGESIZE
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = -(-size // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    for at in (start, start + page + room):
        assert libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    offset = page + room - size if after else page
    return np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)


def fenced_copy(array: Array, after: bool) -> Array:
    """The same numbers, ``fenced``."""
    copy = fenced(array.shape, array.dtype, after)
    copy[...] = array
    return copy
