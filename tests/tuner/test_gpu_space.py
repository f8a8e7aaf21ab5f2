"""The search space of a def on a GPU: options as knobs, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from nests import sized
from sampling import sampled

import examples
from examples import definitions, sized_for
from tcl.arrays.annotations import read_annotations
from tcl.codegen.devices.gpu import A100, H100, T4, GpuProfile
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

DEFS = {f"{file}-{name}": definitions(file)[name] for file, name in examples.DEFS}
MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SOFTMAX = """
def f(float(N, D) I) -> (O, M, S) {
    M(n) max=! I(n, d)
    S(n) +=! exp(I(n, d) - M(n))
    O(n, d) = exp(I(n, d) - M(n)) / S(n)
}
"""
LAYER = """
def f(float(B, M) I, float(N, M) W, float(N) C) -> (O) {
    O(b, n) +=! I(b, m) * W(n, m)
    O(b, n) = fmax(O(b, n) + C(n), 0)
}
"""


def sized_of(checked: CheckedDef, label: str | None = None) -> SizedDef:
    """A def with the sizes of a comment above it: the first that is not for tests."""
    known = read_annotations(checked).sizes
    return sized_for(checked, known[label or next(x for x in known if x != "test")])


def space_of(
    definition: SizedDef,
    profile: GpuProfile = H100,
    fixed: Mapping[str, int | str] | None = None,
) -> GpuMappingSpace:
    return GpuMappingSpace(lower(definition, gpu_layouts(definition)), profile, fixed)


CASES = {
    "matmul": sized(MATMUL, A=(100, 37), B=(37, 64)),
    "softmax": sized(SOFTMAX, I=(50, 33)),
    "layer": sized(LAYER, I=(64, 300), W=(20, 300), C=(20,)),
    "ones": sized(MATMUL, A=(1, 1), B=(1, 1)),
    "row": sized(MATMUL, A=(1, 40), B=(40, 9)),
    "huge": sized(MATMUL, A=(4, 60_000), B=(60_000, 60_000)),
    "empty": sized(MATMUL, A=(5, 0), B=(0, 7)),
    "sum": sized("def f(float(N) I) -> (O) { O +=! I(n) }", I=(100_000,)),
    "scalar": sized("def f(float I) -> (O) { O = I }", I=()),
}


@pytest.mark.parametrize("profile", [H100, T4], ids=lambda p: p.name)
@pytest.mark.parametrize("name", CASES)
def test_every_configuration_can_be_applied_and_comes_back(name: str, profile: GpuProfile) -> None:
    space = space_of(CASES[name], profile)
    rng = Random(0)
    for _ in range(15):
        config = space.space.sample(rng)
        assert config is not None
        options = space.to_options(config)
        schedule(CASES[name], options, profile)
        assert space.from_options(options) == config
        assert space.from_json(space.to_json(options)) == options


@pytest.mark.parametrize("count", [1, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sampled(DEFS, 4))
def test_examples(name: str, count: int) -> None:
    """The default is the preset's; every configuration can be scheduled, and comes back."""
    rng = Random(1)
    for label in ("test", None):
        definition = sized_of(DEFS[name], label)
        space = space_of(definition, A100)
        default = space.space.default
        assert space.space.valid(default)
        assert space.from_options(MappingOptions("mlp")) == default
        for _ in range(count if space.space.knobs else 1):
            config = space.space.sample(rng)
            assert config is not None
            options = space.to_options(config)
            schedule(definition, options, A100)
            assert space.from_options(options) == config


@pytest.mark.parametrize("name", CASES)
def test_default_is_the_preset(name: str) -> None:
    space = space_of(CASES[name])
    assert space.space.valid(space.space.default)
    assert space.from_options(MappingOptions("mlp")) == space.space.default


def test_knobs_of_a_matrix_product() -> None:
    space = space_of(sized(MATMUL, A=(1024, 1024), B=(1024, 1024))).space
    choices = {k.name.split(".", 1)[1]: k.choices for k in space.knobs}
    assert list(choices) == [
        *("m.threads", "m.register", "m.steps"),
        *("n.threads", "n.register", "n.steps"),
        *("k.threads", "k.register", "k.steps"),
        *("block", "vector", "lanes", "split", "stage0", "stage1", "buffers"),
    ]
    assert choices["lanes"] == (1, 2, 4)
    assert choices["vector"] == (1, 2)  # where memory lies in order


def test_constraints_say_why() -> None:
    space = space_of(sized(MATMUL, A=(1024, 1024), B=(1024, 1024))).space
    at = space.knobs[0].name.partition(".")[0]

    def reason(**values: int | str) -> str | None:
        named = {f"{at}.{k.replace('_', '.')}": v for k, v in values.items()}
        return space.reason(space.config(named))

    assert reason() is None
    assert "less than a warp" in str(
        reason(m_threads=1, n_threads=1, k_threads=1, stage0="no", stage1="no")
    )
    assert "panels need" in str(reason(k_steps=0))
    assert "has the same effect" in str(reason(m_threads=64, n_threads=64))  # of a block of 256
    assert "leave most of the device idle" in str(reason(m_steps=16, n_steps=16))


def test_fixed_knobs() -> None:
    definition = sized(MATMUL, A=(1024, 1024), B=(1024, 1024))
    name = next(k.name for k in space_of(definition).space.knobs if k.name.endswith("buffers"))
    space = space_of(definition, fixed={name: 2})
    rng = Random(3)
    for _ in range(20):
        config = space.space.sample(rng)
        assert config is not None
        assert space.to_options(config).own(0).buffers in (1, 2)
    assert space.to_options(space.nearest(MappingOptions("mlp"))).own(0).buffers == 2
    with pytest.raises(ValueError, match="there is no knob"):
        space_of(definition, fixed={"nothing": 1})


def test_options_that_no_knob_can_say() -> None:
    space = space_of(CASES["matmul"])
    default = space.to_options(space.space.default)
    odd = default.with_nest(0, NestOptions(threads=(3, 32), chunk=(3, 32)).over(default.own(0)))
    assert space.from_options(odd) is None
    assert space.from_options(MappingOptions("naive")) is None


def test_nests_whose_points_have_an_order_have_no_knobs() -> None:
    program = lower(CASES["softmax"])
    first, *others = program.nests
    ordered = replace(first, sequential="it reads what it writes")
    space = GpuMappingSpace(replace(program, nests=(ordered, *others)), H100)
    names = {k.name.partition(".")[0] for k in space.space.knobs}
    assert names == {n.name for n in others}
    assert space.from_options(MappingOptions("mlp")) == space.space.default


def test_nests_share_kernels() -> None:
    definition = sized(SOFTMAX, I=(4096, 512))
    space = space_of(definition)
    rng, kernels = Random(0), set()
    for _ in range(60):
        config = space.space.sample(rng)
        assert config is not None
        program = schedule(definition, space.to_options(config), H100)
        kernels.add(tuple(len(k.points) for k in program.kernels))
    assert len(kernels) > 3
