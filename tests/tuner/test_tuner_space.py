"""The search space of a def: options as knobs, and back."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest
from interpreted_stages import stages
from nests import sized

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir.ir import Kind, Program
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.knobs import loop_orders, tile_sizes
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.cpu.fusion_limits import results_at_once
from tcl.codegen.schedule.cpu import default_plan, other_plans, plan_cpu, schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.cpu.mapping import MappingSpace

DEVICE = CpuProfile(
    name="generic",
    features="",
    triple="x86_64-unknown-linux-gnu",
    vector_bits=256,
    cores=2,
    l1_bytes=32 << 10,
    l2_bytes=512 << 10,
    l3_bytes=8 << 20,
)
MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SOFTMAX = """
def f(float(N, D) I) -> (O, M, S) {
    M(n) max=! I(n, d)
    S(n) +=! exp(I(n, d) - M(n))
    O(n, d) = exp(I(n, d) - M(n)) / S(n)
}
"""
CONVOLUTION = """
def f(float(N, C, H, W) I, float(F, C, KH, KW) K) -> (O) {
    O(n, f, h, w) +=! I(n, c, h + kh, w + kw) * K(f, c, kh, kw)
}
"""


def space_of(definition: SizedDef, **fixed: int | str) -> MappingSpace:
    return MappingSpace(lower(definition, None), DEVICE, fixed)


CASES = {
    "matmul": sized(MATMUL, A=(100, 37), B=(37, 64)),
    "softmax": sized(SOFTMAX, I=(50, 33)),
    "convolution": sized(CONVOLUTION, I=(2, 4, 10, 12), K=(8, 4, 3, 3)),
    "ones": sized(MATMUL, A=(1, 1), B=(1, 1)),
    "row": sized(MATMUL, A=(1, 40), B=(40, 9)),
    "huge": sized(MATMUL, A=(4, 60_000), B=(60_000, 60_000)),
    "empty": sized(MATMUL, A=(5, 0), B=(0, 7)),
    "copy": sized("def f(float(N) I) -> (O) { O(n) = I(n) }", I=(77,)),
    "sum": sized("def f(float(N) I) -> (O) { O +=! I(n) }", I=(77,)),
    "scalar": sized("def f(float I) -> (O) { O = I }", I=()),
}


@pytest.mark.parametrize("name", CASES)
def test_every_configuration_can_be_applied_and_comes_back(name: str) -> None:
    space = space_of(CASES[name])
    rng = Random(0)
    for _ in range(60):
        config = space.space.sample(rng)
        assert config is not None
        options = space.to_options(config)
        schedule(CASES[name], options, DEVICE)
        assert space.from_options(options) == config
        assert space.from_json(space.to_json(options)) == options


@pytest.mark.parametrize("name", ["softmax", "convolution", "copy", "sum", "scalar"])
def test_all_configurations_in_order(name: str) -> None:
    """Passing over those that a constraint refuses likewise leaves out no others."""
    space = space_of(CASES[name]).space
    rng, kept = Random(1), space
    while kept.cardinality > 400:  # most knobs fixed
        drawn = kept.sample(rng)
        assert drawn is not None
        free = [k for k in kept.knobs if k.cardinality > 1]
        knob = rng.choice(free)
        kept = kept.fix({knob.name: drawn[kept.knobs.index(knob)]})
    every = itertools.product(*(k.choices for k in kept.knobs))
    assert list(kept.enumerate()) == [c for c in every if kept.valid(c)]


@pytest.mark.parametrize("name", CASES)
def test_default_is_naive(name: str) -> None:
    space = space_of(CASES[name])
    default = space.space.default
    assert space.space.valid(default)
    assert space.from_options(MappingOptions("naive")) == default
    options = space.to_options(default)
    assert schedule(CASES[name], options, DEVICE) == schedule(
        CASES[name], MappingOptions("naive"), DEVICE
    )


@pytest.mark.parametrize("preset", ["naive", "pointwise", "mlp", "conv"])
@pytest.mark.parametrize("name", CASES)
def test_presets_are_in_the_space_or_said_not_to_be(name: str, preset: str) -> None:
    space = space_of(CASES[name])
    config = space.from_options(MappingOptions(preset))
    if config is not None:
        assert kernel(name, space.to_options(config)) == kernel(name, MappingOptions(preset))
    else:
        assert preset in ("mlp", "conv")


GAPS = "def f(double(M, A, 3) R) -> (G) { G(m, i, j) +=! fabs(R(m, i, x) - R(m, j, x)) }"
ZEN_4 = find("Zen 4") or DEVICE
PROMISING = {
    **{name: CASES[name] for name in ("matmul", "softmax", "convolution", "row", "copy")},
    "apart": sized(GAPS, R=(90, 23, 3)),
    "dot products": sized(
        "def f(int8(M, K) A, int8(K, N) B) -> (int32(M, N) C)"
        " { C(m, n) +=! int32(A(m, k)) * B(k, n) }",
        A=(1, 100),
        B=(100, 64),
    ),
    "gather": sized("def f(float(N) X, int32(M) P) -> (O) { O(m) = X(P(m)) }", X=(99,), P=(900,)),
}


@pytest.mark.parametrize("device", [DEVICE, ZEN_4], ids=lambda device: device.name)
@pytest.mark.parametrize("name", PROMISING)
def test_other_lanes_and_tiles_come_with_what_follows_from_them(
    name: str, device: CpuProfile
) -> None:
    space = MappingSpace(lower(PROMISING[name], None), device)
    found = list(space.promising(8))
    default = space.from_options(DEFAULT)
    assert 1 <= len(found) == len({*found}) <= 8 and default not in found
    assert all(space.space.valid(config) for config in found)
    for config in found:
        schedule(PROMISING[name], space.to_options(config), device)


def test_other_plans_end_with_the_ways_that_there_are() -> None:
    program = lower(PROMISING["copy"], None)
    plans = list(other_plans(program, DEVICE, 8))
    assert 1 <= len(plans) < 8 and default_plan(program, DEVICE) not in plans


def test_other_lanes_are_not_one_change_away() -> None:
    """Each vector of one operand has to be put together in the default, of the other here."""
    space = MappingSpace(lower(PROMISING["apart"], None), ZEN_4)
    default = space.from_options(DEFAULT)
    assert default is not None
    (lanes,) = (k for k, knob in enumerate(space.space.knobs) if knob.name.endswith("vector"))
    others = [c for c in space.promising(8) if c[lanes] != default[lanes]]
    assert others
    assert not all(
        space.space.valid((*default[:lanes], c[lanes], *default[lanes + 1 :]))
        and sum(a != b for a, b in zip(c, default, strict=True)) == 1
        for c in others
    )


def test_other_tiles_keep_fixed_values() -> None:
    space = space_of(CASES["matmul"])
    default = space.from_options(DEFAULT)
    assert default is not None
    place = next(k for k, knob in enumerate(space.space.knobs) if knob.name.endswith("vector"))
    assert len({c[place] for c in space.promising(8)}) > 1
    fixed = {space.space.knobs[place].name: default[place]}
    kept = [c[place] for c in space_of(CASES["matmul"], **fixed).promising(8)]
    assert kept and {*kept} == {default[place]}


DEFAULTS = {
    "peeled in the second cache": sized(
        "uint8(H, W) I) -> (uint8(H, W) O) { O(h, w) = I(h, w) > 9 ? 255 : 0 }", (720, 960)
    ),
    "windows written out": sized(
        "float(N, H, W, C) I) -> (O) { O(n, h, w, c) max=! I(n, h + i, w + j, c)"
        " where i in 0:3, j in 0:3 }",
        (4, 60, 60, 64),
    ),
    "rows of windows written out": sized(
        "float(C, H, W) I, float(C, 5, 5) K) -> (O)"
        " { O(c, h, w) +=! I(c, h + i, w + j) * K(c, i, j) }",
        (72, 57, 57),
        (72, 5, 5),
    ),
    "no results": sized(
        "int16(N) X) -> (Tied) { Tied +=! i < j && X(i) == X(j) }",
        (2501,),
    ),
    "points without lanes": sized("int32(I, J) X) -> (int32(I) L) { L(i) +=! X(i, j) }", (16, 16)),
    "a panel before all tiles": sized(
        "int8(B, M, K) A, int8(B, N, K) C) -> (int32(B, M, N) O)"
        " { O(b, m, n) +=! int32(A(b, m, k)) * int32(C(b, n, k)) }",
        (8, 50, 96),
        (8, 60, 96),
    ),
    "panels of later operands": sized(
        "float(B, N, 2) X, float(N, M, 2) W) -> (Re) { Re(b, m) +=! X(b, n, 0) * W(n, m, 0)"
        " - X(b, n, 1) * W(n, m, 1) }",
        (200, 128, 2),
        (128, 30, 2),
    ),
    "updates": sized("uint8(N) A) -> (int32(256) H) { H(A(n)) +=! 1 }", (5000,)),
    "in order": sized(
        "float(N, M) X) -> (S) { S(n, m) +=! (k <= m) ? X(n, k) : 0 where m in 0:640 }",
        (500, 640),
    ),
    "chunks of updates": sized(
        "float(F, C) X, int32(F) I, float(V) W) -> (float(V, C) S, O)"
        " { S(I(f), c) +=! X(f, c)  O(v, c) = S(v, c) / fmax(S(v, 0), W(v)) }",
        (70000, 3),
        (70000,),
        (35000,),
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_search_can_start_from_the_default(name: str) -> None:
    device = find("Cascade Lake")
    assert device is not None
    device = replace(device, threads=1)
    space = MappingSpace(lower(DEFAULTS[name]), device)
    config = space.from_options(DEFAULT)
    assert config is not None
    one, other = (
        schedule(DEFAULTS[name], options, device) for options in (DEFAULT, space.to_options(config))
    )
    assert one == other


def kernel(name: str, options: MappingOptions) -> str:
    """What is compiled in the end."""
    return emit_program(schedule(CASES[name], options, DEVICE), DEVICE).text


@pytest.mark.parametrize("name", ["matmul", "convolution", "row"])
def test_configurations_that_are_not_normal_are_kernels_of_others(name: str) -> None:
    space = space_of(CASES[name])
    all_ = replace(space.space, canonical=dict)
    rng = Random(1)
    changed: set[str] = set()
    for _ in range(60):
        config = all_.sample(rng)
        assert config is not None
        values = all_.values(config)
        canonical = space.space.canonical(values)
        if different := {k for k, v in canonical.items() if values[k] != v}:
            one = all_.config({**values, **canonical})
            assert space.space.reason(config) and space.space.valid(one)
            assert kernel(name, space.to_options(config)) == kernel(name, space.to_options(one))
            assert space.from_options(space.to_options(config)) == one
            changed |= {k.rpartition(".")[2] for k in different}
    assert changed >= ({"order", "register", "unroll"} if name == "matmul" else {"register"})


def test_knobs_of_a_matrix_product() -> None:
    space = space_of(CASES["matmul"]).space
    choices = {k.name.split(".", 1)[1]: k.choices for k in space.knobs}
    assert list(choices) == [
        "m.tile",
        "n.tile",
        "k.tile",
        "order",
        "inner_order",
        "vector",
        "lanes",
        "register",
        "row",
        "unroll",
        "stage0",
        "stage1",
        "m.chunk",
        "n.chunk",
    ]
    # Powers of two, parts of the whole, and what the default has.
    assert set(choices["n.tile"]) - {24} == {2, 4, 8, 10, 11, 13, 16, 22, 32, 64}
    assert len(choices["order"]) == 6
    assert choices["order"][0] == "0 1 2"
    assert choices["vector"] == (0, 1, 2)
    assert choices["lanes"] == (1, 2, 4, 8)
    # Rows, second rows, vectors: what 16 registers hold.
    assert "6 1 2" in choices["register"] and "14 1 1" in choices["register"]
    assert "7 1 2" not in choices["register"] and "2 2 1" not in choices["register"]
    assert choices["unroll"] == (1, 2, 4, 8)


def test_options_say_what_the_knobs_say() -> None:
    space = space_of(CASES["matmul"])
    names = {k.name.split(".", 1)[1]: k.name for k in space.space.knobs}
    config = space.space.config(
        {
            names["m.tile"]: 32,
            names["k.tile"]: 8,
            names["order"]: "2 0 1",
            names["inner_order"]: "0 2 1",
            names["vector"]: 1,
            names["lanes"]: 4,
            names["register"]: "6 1 2",
            names["unroll"]: 4,
            names["stage0"]: 1,
            names["stage1"]: 1,
        }
    )
    nest = NestOptions(
        (32, 0, 8),
        (2, 0, 1),
        (0, 2, 1),
        (1, 4),
        (6, 2, 4),
        (2, 1),
        (),
        False,
        False,
        (),
        split=(),
        mma=(),
        dot=(),
        peel=False,
        skip=False,
    )
    assert space.to_options(config) == MappingOptions("naive").with_nest(0, nest)


def test_redundant_configurations_are_no_choice_but_their_options_are_understood() -> None:
    space = space_of(CASES["matmul"])
    default = space.space.values(space.space.default)
    order, vector, lanes = (k.name for k in space.space.knobs[3:7] if "inner" not in k.name)
    untiled = space.space.config({**default, order: "1 0 2"})
    assert "1 0 2 has the same effect as 0 1 2" in (space.space.reason(untiled) or "")
    scalar = space.space.config({**default, vector: 0})
    assert "without lanes" in (space.space.reason(scalar) or "")
    wide = space.space.config({**default, lanes: 8, space.space.knobs[1].name: 4})
    assert "8 lanes are more than the 4 points of a tile" in (space.space.reason(wide) or "")
    for options in (
        MappingOptions("naive").order(1, 0, 2),
        MappingOptions("naive").vectorize(1, 0),
        MappingOptions("naive").tile(1000, 1000),
    ):
        assert space.from_options(options) == space.space.default


@pytest.mark.parametrize(
    "options",
    [
        MappingOptions("naive").tile(31),
        MappingOptions("naive").vectorize(64),
        MappingOptions("naive").tile(0, 4).vectorize(8),
        MappingOptions("naive").register(11),
        MappingOptions("naive").register(0, 0, 3),
        MappingOptions("naive").tile(8, 8).stage(-1, 1),
        MappingOptions("naive").chunk_order(1, 0, 2),
    ],
    ids=["tile", "lanes", "lanes of a tile", "rows", "unroll", "stage", "order of chunks"],
)
def test_options_that_are_not_in_the_space_have_no_configuration(options: MappingOptions) -> None:
    assert space_of(CASES["matmul"]).from_options(options) is None


def test_options_for_more_nests_than_there_are_are_an_error() -> None:
    options = MappingOptions("naive").nest(3).tile(8)
    with pytest.raises(OptionsError, match="there is no nest 3"):
        space_of(CASES["matmul"]).from_options(options)


def test_knobs_can_be_fixed() -> None:
    names = [k.name for k in space_of(CASES["matmul"]).space.knobs]
    fixed = space_of(CASES["matmul"], **{names[0]: 16, names[6]: 8})
    rng = Random(1)
    for _ in range(30):
        config = fixed.space.sample(rng)
        assert config is not None
        nest = fixed.to_options(config).nests[0]
        assert nest.tile is not None
        assert nest.tile[0] == 16
        assert nest.vectorize is not None
        assert nest.vectorize[1] == 8
    with pytest.raises(ValueError, match="no knob 'x'"):
        space_of(CASES["matmul"], x=1)


def test_statements_that_have_to_run_in_order_have_no_knobs() -> None:
    program = lower(CASES["softmax"], None)
    first, *others = program.nests
    ordered = replace(
        program, nests=(replace(first, sequential="it reads what it writes"), *others)
    )
    space = MappingSpace(ordered, DEVICE)
    owners = {k.name.split(".")[0] for k in space.space.knobs}
    assert owners == {n.name for n in others}
    config = space.space.sample(Random(0))
    assert config is not None
    assert space.to_options(config).own(0) == NestOptions()
    assert space.from_options(space.to_options(config)) == config


def test_running_sums_have_knobs() -> None:
    definition = sized(
        "float(N, M) X) -> (S) { S(n, m) +=! (k <= m) ? X(n, k) : 0 where m in 0:40 }", (30, 40)
    )
    space = space_of(definition)
    lanes = set()
    for seed in range(40):
        config = space.space.sample(Random(seed))
        assert config is not None
        options = space.to_options(config)
        schedule(definition, options, DEVICE)
        assert space.from_options(options) == config
        lanes.add(options.nests[0].vectorize)
    assert {(-1, 1), (0, 4), (1, 8)} <= lanes


def test_nests_that_go_along_follow_the_one_that_has_knobs() -> None:
    text = """
    def f(float(M, K) A, float(K, N) B, float(N) V) -> (O) {
        O(m, n) +=! A(m, k) * B(k, n)
        O(m, n) = O(m, n) + V(n)
        O(m, n) = fmax(O(m, n), 0)
    }
    """
    definition = sized(text, A=(40, 30), B=(30, 50), V=(50,))
    space = space_of(definition)
    assert {k.name.split(".")[0] for k in space.space.knobs} == {"s0"}
    followed = 0
    for seed in range(20):
        config = space.space.sample(Random(seed))
        assert config is not None
        options = space.to_options(config)
        assert space.from_options(options) == config
        chosen = plan_cpu(lower(definition), options, DEVICE).options
        (*_, (_, program), _) = stages(definition, options, DEVICE)
        assert isinstance(program, Program)
        nest = program.nest("s0")
        lanes = [x.fold.dim for x in nest.loops if x.kind is Kind.VECTOR]
        if results_at_once(nest) and lanes != ["s0.k"]:
            assert chosen["s1"].vectorize == chosen["s0"].vectorize
            followed += 1
    assert followed
    apart = MappingOptions("mlp").nest(1).vectorize(2, 0)
    assert space.from_options(apart) is None


def test_long_defs_have_knobs_for_the_largest_nests_only() -> None:
    lines = [
        "O0(n, m) = I(n, m)" if i == 0 else f"O{i}(m) = I(0, m) where m in 0:{49 - i}"
        for i in range(30)
    ]
    outputs = ", ".join(f"O{i}" for i in range(30))
    text = f"def f(float(N, M) I) -> ({outputs}) {{\n" + "\n".join(lines) + "\n}"
    definition = sized(text, I=(40, 50))
    space = space_of(definition)
    owners = {k.name.split(".")[0] for k in space.space.knobs}
    assert len(owners) == 8
    rng = Random(0)
    config = space.space.sample(rng)
    assert config is not None
    options = space.to_options(config)
    schedule(definition, options, DEVICE)
    assert space.from_options(options) == config
    assert space.from_options(MappingOptions("mlp")) is not None
    assert space.from_options(MappingOptions("naive")) is None  # the rest is not mapped so


@pytest.mark.parametrize(
    ("extent", "sizes"),
    [
        (1, (1,)),
        (2, (2,)),
        (3, (2, 3)),
        (8, (2, 3, 4, 8)),
        (13, (2, 3, 4, 5, 7, 8, 13)),
        (100, (2, 4, 8, 13, 15, 16, 17, 20, 25, 32, 34, 50, 64, 100)),
    ],
)
def test_tile_sizes(extent: int, sizes: tuple[int, ...]) -> None:
    assert tile_sizes(extent) == sizes


def test_loop_orders_are_permutations_with_the_natural_one_first() -> None:
    assert list(loop_orders([False])) == [(0,)]
    assert len(list(loop_orders([False] * 4))) == 24
    seven = list(loop_orders([False] * 4 + [True] * 3))
    assert seven[0] == tuple(range(7))
    assert (4, 5, 6, 0, 1, 2, 3) in seven
    assert len(set(seven)) == len(seven) <= 1 + 1 + 3 * 7
    assert all(sorted(o) == list(range(7)) for o in seven)
