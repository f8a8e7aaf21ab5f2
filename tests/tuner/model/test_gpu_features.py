"""What a model knows of candidates for a GPU."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from nests import sized

from tcl.codegen.counters.prediction import predict
from tcl.codegen.counters.requests import Memory
from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.model.gpu_subject import SCHEMA, GpuSubject
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


def test_features_are_the_counts_of_the_kernel_that_takes_the_longest() -> None:
    def_ = DEFS["rows"]
    subject = GpuSubject.read(lower(def_, gpu_layouts(def_)), H200)
    kernels = subject.choices(naive().chunk(1).threads(1, 16).split(0, 4))
    rows, seconds = subject.extract([kernels])
    found = dict(zip(SCHEMA.names, rows[0], strict=True))
    predicted = [predict(k) for k in kernels]
    longest = max(range(len(kernels)), key=lambda k: predicted[k].rank)
    counts, prediction = kernels[longest], predicted[longest]
    assert len(kernels) == 2 and seconds[0] == sum(p.rank for p in predicted)
    assert found["kernels"] == 2 and found["registers"] == counts.registers
    assert (2 ** found["threads"], 2 ** found["blocks"]) == (counts.threads, counts.blocks)
    reads = counts.traffic[Memory.GLOBAL_READ]
    assert 2 ** found["read_spread"] == pytest.approx(reads.units / reads.requests)
    assert found[f"{prediction.binding}.busy"] == 0
    assert 2 ** found["seconds"] == pytest.approx(1e6 * prediction.rank)
    assert found["float64.busy"] == -10 and all(f"{p}.busy" in found for p in prediction.pipes)


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
