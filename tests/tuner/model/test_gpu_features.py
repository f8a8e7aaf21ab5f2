"""What a model knows of candidates for a GPU."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from nests import sized

from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.model.gpu_features import SCHEMA
from tcl.tuner.model.gpu_subject import GpuSubject
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

DEFS = {
    "product": sized(
        "float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }", (40, 32), (32, 64)
    ),
    "window": sized(
        "float(N, W) I, float(K) F) -> (O) { O(n, w) +=! I(n, w + k) * F(k) }", (16, 80), (17,)
    ),
    "pointwise": sized("float(M, N) A) -> (B) { B(m, n) = exp(A(m, n)) * 2 }", (24, 64)),
    "transposed": sized("float(M, N) A) -> (B) { B(n, m) = A(m, n) }", (32, 64)),
    "rows": sized("float(M, N) A) -> (B) { B(m) +=! A(m, n) }", (24, 96)),
}
"""Rows are whole sectors, so that what is touched can be counted without their places."""
LEAST = 4 * (40 * 32 + 32 * 64 + 40 * 64)
"""Bytes of the product's tensors."""


def candidates(
    def_: SizedDef, device: GpuProfile, count: int, seed: int = 0
) -> tuple[GpuSubject, list[MappingOptions]]:
    """Random ones, and the default; reductions are not split: each nest has a kernel."""
    program = lower(def_, gpu_layouts(def_))
    fixed = {f"{n.name}.split": 1 for n in program.nests}
    space = GpuMappingSpace(program, device)
    known = {k.name for k in space.space.knobs}
    space = GpuMappingSpace(program, device, {k: v for k, v in fixed.items() if k in known})
    rng = Random(seed)
    drawn = (space.space.sample(rng) for _ in range(count))
    found = [space.to_options(c) for c in drawn if c is not None]
    return GpuSubject.read(program, device), [MappingOptions(), *found]


def naive() -> MappingOptions:
    """Nothing is chosen besides."""
    return MappingOptions("naive")


COUNTED = {
    "in place": (
        *("product", naive().chunk(8, 32).threads(8, 32).tile(0, 0, 16)),
        {
            "results": 40 * 64, "depth": 32, "operands": 2, "kernels": 1, "threads": 256,
            "sharing": 1, "held": 1, "unroll": 1, "registers": 24 + 1 + 2, "shared": 1, "tile": 16,
            "blocks": 5 * 2, "block_points": 8 * 32 * 32, "resident": 8, "occupancy": 1, "lost": 1,
            "block_divides": 1, "step_divides": 1, "read_spread": 1, "write_spread": 1,
            "block_bytes": 4 * (8 * 32 + 32 * 32 + 8 * 32),
            "idle": 1 - 10 / (8 * 132),
            # Of each of 32 steps in 8 warps: one sector of A for all threads, four of B.
            "requests": (32 * 8 * 10 * (1 + 4) + 10 * 32) * 32 / LEAST,
            "traffic": 10 * 6144 / LEAST,
            # All requests, on the part of the device that has blocks, and the launch.
            "seconds": 2 + 1e6 * (32 * 8 * 10 * 5 + 320) / (132 * 1.6e9) / (10 / (8 * 132)),
        },
    ),
    "copied": (
        "product",
        naive().chunk(16, 32).threads(8, 8).register(2, 0, 4).vectorize(4).tile(0, 0, 16)
        .stage(1, 1).buffers(1),
        {
            "threads": 64, "width": 4, "held": 2 * 4, "unroll": 4, "staged": 2, "buffers": 1,
            "registers": 24 + 8 + (2 * 4 + 4 * 4), "blocks": 3 * 2, "lost": 48 / 40,
            "block_divides": 2 / 3, "step_divides": 2 / 3, "conflicts": 1,
            "block_bytes": 4 * (16 * 32 + 32 * 32 + 16 * 32), "copied": 4 * (16 * 32 + 32 * 32),
            "shared": 4 * (16 * (32 + 4) + 32 * 32),  # with four words more in a row of A
            "requests": 6 * 8192 / LEAST, "traffic": 6 * 8192 / LEAST,
        },
    ),
    # A warp reads 8 rows of 4 elements, or 32 of one, where all would fill 4 sectors.
    "written in order": (
        *("transposed", naive().chunk(32, 8).threads(32, 8)),
        {"read_spread": 8 / 4, "write_spread": 1, "requests": (8 * 8 * 8 + 256) * 32 / 2**14},
    ),
    "read from everywhere": (
        *("transposed", naive().chunk(8, 32).threads(8, 32)),
        {"read_spread": 32 / 4, "write_spread": 1, "requests": (8 * 8 * 32 + 256) * 32 / 2**14},
    ),
    "read in order": (
        *("transposed", naive().chunk(32, 1).threads(32)),
        {"read_spread": 1, "write_spread": 32 / 4, "lost_threads": 0, "threads": 32, "blocks": 64},
    ),
    "shared sums": (
        *("rows", naive().chunk(1).threads(1, 16)),
        {"sharing": 16, "threads": 32, "lost_threads": 1 / 2, "blocks": 24, "joined": 0},
    ),
}  # fmt: skip
"""A def, options, and features as they are counted on paper; logarithms as what they are of."""


@pytest.mark.parametrize("case", COUNTED)
def test_features_are_what_is_counted_on_paper(case: str) -> None:
    name, options, expected = COUNTED[case]
    def_ = DEFS[name]
    subject = GpuSubject.read(lower(def_, gpu_layouts(def_)), H200)
    rows, seconds = subject.extract([subject.choices(options)])
    found = dict(zip(SCHEMA.names, rows[0], strict=True))
    logarithms = {f.name for f in SCHEMA.features if f.unit.startswith("log2")}
    assert {n: 2 ** found[n] if n in logarithms else found[n] for n in expected} == pytest.approx(
        expected
    )
    assert found["seconds"] == pytest.approx(math.log2(1e6 * seconds[0]))


def test_changes_are_from_the_default() -> None:
    subject, options = candidates(DEFS["product"], H200, 4)
    choices = [each for _, each in subject.describable([DEFAULT, *options])]
    rows, seconds = subject.extract(choices)
    names = [f.name for f in SCHEMA.features]
    for row, time in zip(rows, seconds, strict=True):
        found = dict(zip(SCHEMA.names, row, strict=True))
        assert found["time"] == pytest.approx(math.log2(time / seconds[0]))
        for name, default in zip(names, rows[0], strict=False):
            assert found.get(f"{name}.change", found[name] - default) == found[name] - default


@pytest.mark.parametrize("name", DEFS)
def test_one_candidate_has_the_features_that_it_has_among_others(name: str) -> None:
    subject, options = candidates(DEFS[name], H200, 4)
    choices = [c for _, c in subject.describable(options)]
    rows, seconds = subject.extract(choices)
    for row, expected, each in zip(rows, seconds, choices, strict=True):
        alone, time = subject.extract([each])
        assert np.array_equal(alone[0], row)
        assert time[0] == expected


def test_names_are_different_and_a_new_meaning_is_another_schema() -> None:
    assert len(set(SCHEMA.names)) == len(SCHEMA.names)
    assert list(SCHEMA.groups) == ["problem", "mapping", "interaction", "hardware"]
    assert all(f.meaning for f in SCHEMA.features)
    assert replace(SCHEMA, version=SCHEMA.version + 1).digest != SCHEMA.digest


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (1, 7)])
def test_edges_have_features(shape: tuple[int, int]) -> None:
    def_ = sized("float(M, N) A) -> (B) { B(m) +=! A(m, n) }", shape)
    subject, options = candidates(def_, H200, 3)
    rows, seconds = subject.extract([c for _, c in subject.describable(options)])
    assert np.isfinite(rows).all() and (seconds > 0).all()
