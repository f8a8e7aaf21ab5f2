"""What a model knows of candidates for a GPU, compared with the kernels that become of them."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from gpu_recounted import GPU_RECOUNTED, GpuRecount
from nests import sized

from tcl.codegen.cuda.emit.emit import emit
from tcl.codegen.devices.gpu import H200, T4, GpuProfile
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.gpu import plan_gpu
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
}
"""Rows are whole sectors, so that what is touched can be counted without their places."""


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


def test_every_feature_is_counted_again() -> None:
    assert set(GPU_RECOUNTED) == {f.name for f in SCHEMA.features}


@pytest.mark.parametrize("name", DEFS)
@pytest.mark.parametrize("device", [H200, T4], ids=lambda d: d.name)
def test_features_are_what_the_kernels_do(name: str, device: GpuProfile) -> None:
    subject, options = candidates(DEFS[name], device, 6)
    described = subject.describable(options)
    assert len(described) > 3
    rows, seconds = subject.extract([choices for _, choices in described])
    usual, compared = recount(subject, DEFAULT), 0
    for row, expected, (place, _) in zip(rows, seconds, described, strict=True):
        again = recount(subject, options[place])
        if again is None:
            continue
        found = dict(zip(SCHEMA.names, row, strict=True))
        for feature in SCHEMA.features:
            counted = float(GPU_RECOUNTED[feature.name](again))
            about = feature.name, options[place]
            assert found[feature.name] == pytest.approx(counted, abs=1e-9), about
            if usual is not None and (change := f"{feature.name}.change") in found:
                before = float(GPU_RECOUNTED[feature.name](usual))
                assert found[change] == pytest.approx(counted - before, abs=1e-9), about
        if usual is not None:
            assert found["time"] == pytest.approx(math.log2(again.seconds / usual.seconds))
        assert expected == pytest.approx(again.seconds)
        compared += 1
    assert compared > 3
    assert usual is not None or name == "product"  # which is multiplied on tensor cores, or split


def recount(subject: GpuSubject, options: MappingOptions) -> GpuRecount | None:
    """What is counted of the kernel; None of several ones, and of fragments of tensor cores."""
    built = plan_gpu(subject.program, options, subject.device).scheduled()
    if len(built.kernels) > 1 or any(n.name == "mma" for n in built.kernels[0].spaces):
        return None
    (kernel,), (launch,) = built.kernels, emit(built, subject.device).launches
    nest = subject.program.nests[0].name
    return GpuRecount(subject.program, built, kernel, launch, nest, subject.device)


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
