"""What a model knows of candidates, compared with the loops that become of them."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from nests import NARROW, WIDE, sized
from recounted import RECOUNTED, Recount

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import OPTIONS, PLAIN, NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.model.cpu_features import SCHEMA
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.space.cpu.mapping import MappingSpace

SMALL = replace(NARROW, l1_bytes=1 << 10, l2_bytes=4 << 10, l3_bytes=16 << 10)
"""Caches that small arrays do not fit into."""
DEFS = {
    "product": sized(
        "float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }", (20, 32), (32, 48)
    ),
    "window": sized(
        "float(N, W) I, float(K) F) -> (O) { O(n, w) +=! I(n, w + k) * F(k) }", (18, 80), (17,)
    ),
    "pointwise": sized("float(M, N) A) -> (B) { B(m, n) = exp(A(m, n)) * 2 }", (12, 64)),
    "masked": sized(
        "float(B, K) I, uint8(N, K) M) -> (O) { O(b, n) +=! M(n, k) == 1 ? I(b, k) * 2 : 0.0 }",
        (16, 64),
        (32, 64),
    ),
    "two": sized(
        "float(N, D) I) -> (S, O) { S(n) +=! I(n, d)  O(n, d) = exp(I(n, d)) / S(n) }", (16, 64)
    ),
}
"""Rows are whole lines of a cache, so that what is touched can be counted without their places."""


def candidates(
    def_: SizedDef, device: CpuProfile, count: int, seed: int = 0
) -> tuple[CpuSubject, list[MappingOptions]]:
    """Random ones."""
    program = lower(def_, cpu_layouts(def_))
    space, rng = MappingSpace(program, device), Random(seed)
    drawn = (space.space.sample(rng) for _ in range(count))
    return CpuSubject.read(program, device), [space.to_options(c) for c in drawn if c is not None]


def test_every_feature_is_counted_again() -> None:
    assert set(RECOUNTED) == {f.name for f in SCHEMA.features} - set(SCHEMA.common)


def recounts(subject: CpuSubject, options: MappingOptions) -> list[Recount]:
    """What is counted of the loops of each nest after all passes."""
    *_, (_, program) = plan_cpu(subject.program, options, subject.device).applied()
    return [
        Recount(subject.program, program, program.nests[n.position], subject.device)
        for n in subject.nests
    ]


def compare(subject: CpuSubject, options: list[MappingOptions]) -> None:
    """Features, and what is counted."""
    rows, seconds = subject.extract([subject.choices(o) for o in options])
    usual = recounts(subject, DEFAULT)
    before = [r.cycles() for r in usual]
    for row, expected, each in zip(rows, seconds, options, strict=True):
        found = dict(zip(SCHEMA.names, row, strict=True))
        counted = recounts(subject, each)
        cycles = [r.cycles() for r in counted]
        differ = [
            any(f(a) != pytest.approx(float(f(b)), abs=1e-9) for f in RECOUNTED.values())
            for a, b in zip(counted, usual, strict=True)
        ]
        among = [k for k, other in enumerate(differ) if other] or range(len(before))
        at = max(among, key=lambda k: before[k])
        for name, feature in RECOUNTED.items():
            again = float(feature(counted[at]))
            assert found[name] == pytest.approx(again, abs=1e-9), (name, each)
            change = again - float(feature(usual[at]))
            assert found[f"{name}.change"] == pytest.approx(change, abs=1e-9), (name, each)
        whole = {
            "time": math.log2(sum(cycles) / sum(before)),
            "nest_time": math.log2(cycles[at] / before[at]),
            "share": before[at] / sum(before),
            "nests_changed": sum(differ),
        }
        assert {name: found[name] for name in SCHEMA.whole} == pytest.approx(whole, abs=1e-9)
        assert expected == pytest.approx(sum(cycles) / 3e9)


@pytest.mark.parametrize("name", DEFS)
@pytest.mark.parametrize("device", [SMALL, replace(WIDE, threads=2)], ids=["small", "wide"])
def test_features_are_what_the_passes_make(name: str, device: CpuProfile) -> None:
    compare(*candidates(DEFS[name], device, 6))


def test_points_that_are_left_out_are_known() -> None:
    subject, _ = candidates(DEFS["masked"], SMALL, 0)
    compare(subject, [MappingOptions("naive").with_nest(0, replace(PLAIN, skip=True))])


@pytest.mark.parametrize("name", DEFS)
def test_one_candidate_has_the_features_that_it_has_among_others(name: str) -> None:
    subject, options = candidates(DEFS[name], NARROW, 12)
    choices = [subject.choices(o) for o in options]
    rows, seconds = subject.extract(choices)
    for row, expected, each in zip(rows, seconds, choices, strict=True):
        alone, time = subject.extract([each])
        assert np.array_equal(alone[0], row)
        assert time[0] == expected


def test_what_candidates_have_in_common_is_of_the_def_and_the_device() -> None:
    subject, options = candidates(DEFS["product"], NARROW, 2)
    found = dict(
        zip(SCHEMA.names, subject.extract([subject.choices(options[0])])[0][0], strict=True)
    )
    assert {name: found[name] for name in SCHEMA.common} == pytest.approx(
        {
            "flops": math.log2(2 * 20 * 32 * 48),
            "bytes": math.log2(4 * (20 * 32 + 32 * 48 + 20 * 48)),
            "intensity": math.log2(2 * 20 * 32 * 48 / (4 * (20 * 32 + 32 * 48 + 20 * 48))),
            "reuse": math.log2(20 * 32 * 48 / (4 * (20 * 32 + 32 * 48 + 20 * 48))),
            **{"nests": 1, "results": math.log2(20 * 48), "depth": 5, "dims": 3, "operands": 2},
            **{"itemsize": 4, "work": 0.5, "scattered": 0},
            "l1": math.log2(NARROW.l1_bytes),
            "l2": math.log2(NARROW.l2_bytes),
            "l3": math.log2(NARROW.l3_bytes),
            "vector": math.log2(NARROW.vector_bits),
            **{
                "cores": NARROW.cores,
                "threads": subject.device.threads,
                "fused": float(NARROW.fused),
            },
        }
    )


def test_names_are_different_and_every_feature_says_what_it_is() -> None:
    assert len(set(SCHEMA.names)) == len(SCHEMA.names)
    assert all(f.meaning for f in SCHEMA.features)
    assert list(SCHEMA.groups) == ["problem", "mapping", "interaction", "hardware"]


def test_what_options_leave_open_is_planned() -> None:
    subject, _ = candidates(DEFS["two"], NARROW, 0)
    (choices,) = [subject.choices(MappingOptions("mlp"))]
    assert len(choices) == len(subject.nests) == 2
    assert all(c.complete_on("CPU") for c in choices)


CHANGED: dict[str, object] = {
    **{"tile": (4, 8, 4), "order": (2, 1, 0), "inner_order": (2, 1, 0), "vectorize": (1, 8)},
    **{"register": (2, 1, 1), "stage": (0,), "chunk": (4,), "prefetch": (64,), "dot": (0, 0, 2)},
    **{"stream": True, "peel": True, "skip": True, "fuse": True},
}
"""Of a plain product in tiles. A matrix unit needs a device that has one."""


def test_every_option_that_a_search_chooses_is_known() -> None:
    searched = {k for k, o in OPTIONS.items() if o.knobs and "CPU" not in o.refused}
    assert searched == {*CHANGED, "mma", "split"}  # which has knobs on a GPU alone


@pytest.mark.parametrize("name", CHANGED)
def test_every_option_makes_a_difference(name: str) -> None:
    """One that no feature tells would be chosen blindly."""
    subject, _ = candidates(DEFS["product"], SMALL, 0)
    plain = replace(PLAIN, tile=(8, 8, 8))
    changed = NestOptions(**{**plain.made(), name: CHANGED[name]})
    before, after = subject.extract([(plain,), (changed,)])[0]
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (1, 7)])
def test_edges_have_features(shape: tuple[int, int]) -> None:
    def_ = sized("float(M, N) A) -> (B) { B(m) +=! A(m, n) }", shape)
    subject, options = candidates(def_, NARROW, 3)
    rows, seconds = subject.extract([subject.choices(o) for o in [*options, MappingOptions()]])
    assert np.isfinite(rows).all() and (seconds > 0).all()


def test_a_nest_that_reads_nothing_has_features() -> None:
    def_ = sized(
        "float(M, N) A) -> (B) { B(m, n) = float(m + n) where m in 0:M, n in 0:N }", (8, 9)
    )
    subject, options = candidates(def_, NARROW, 3)
    rows, seconds = subject.extract([subject.choices(o) for o in options])
    assert np.isfinite(rows).all() and (seconds > 0).all()
