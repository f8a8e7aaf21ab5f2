"""Mapping options: what they accept, how they read and write, what a schedule refuses."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import sized

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.kinds import WIDTHS, Flag
from tcl.codegen.options.nest_options import OPTIONS, PLAIN, NestOptions, OptionMethods
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef

DEVICE = CpuProfile("generic", "", "x86_64-unknown-linux-gnu", 256, 4, 32768, 1 << 20, 8 << 20)

nests = st.builds(
    NestOptions,
    st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple),
    st.none() | st.integers(0, 5).flatmap(lambda n: st.permutations(range(n))).map(tuple),
    st.none() | st.integers(0, 5).flatmap(lambda n: st.permutations(range(n))).map(tuple),
    st.none() | st.tuples(st.integers(-1, 5), st.sampled_from(WIDTHS)),
    st.none() | st.lists(st.integers(0, 64), max_size=5).map(tuple),
    st.none() | st.lists(st.integers(-1, 64), max_size=5).map(tuple),
    st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.lists(st.integers(0, 1 << 30), max_size=5).map(tuple),
    st.none() | st.lists(st.integers(0, 1024), max_size=5).map(tuple),
    st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple),
    st.none() | st.integers(1, 8),
    st.none() | st.sampled_from(((), (0, 1), (1, 0), (2, 0, 1))),
)
options = st.builds(
    MappingOptions, st.sampled_from(PRESETS), nests, st.lists(nests, max_size=4).map(tuple)
)


def matmul() -> SizedDef:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    return sized(text, A=(30, 20), B=(20, 40))


def softmax() -> SizedDef:
    text = """def f(float(N, D) I) -> (m, s, O) {
        m(n) max=! I(n, d)
        s(n) +=! exp(I(n, d) - m(n))
        O(n, d) = exp(I(n, d) - m(n)) / s(n)
    }"""
    return sized(text, I=(8, 16))


def test_several_values_may_be_one_list() -> None:
    one_by_one = {
        **dict.fromkeys(("chunk", "tile", "register", "stage", "prefetch"), (8, 4)),
        **dict.fromkeys(("threads", "split"), (8, 4)),
        **dict.fromkeys(("chunk_order", "order", "inner_order", "mma"), (1, 0)),
    }
    for name, values in one_by_one.items():
        expected = getattr(MappingOptions(), name)(*values)
        assert getattr(MappingOptions(), name)(list(values)) == expected
        assert getattr(MappingOptions().nest(1), name)(values).own(1) == expected.default
    with pytest.raises(OptionsError, match="tile: must be integers"):
        MappingOptions().tile([8], [4])


@given(options)
def test_json_round_trip(o: MappingOptions) -> None:
    again = MappingOptions.from_json(o.to_json())
    assert again == o and hash(again) == hash(o)
    assert again.to_json() == o.to_json()
    assert pickle.loads(pickle.dumps(o)) == o


def test_json_says_what_was_chosen() -> None:
    o = MappingOptions("mlp").tile(64, 64, 32).vectorize(8).nest(1).order(1, 0)
    assert json.loads(o.to_json()) == {
        "preset": "mlp",
        "default": {"tile": [64, 64, 32], "vectorize": [-1, 8]},
        "nests": [{}, {"order": [1, 0]}],
    }


def test_methods_leave_the_original_alone() -> None:
    first = MappingOptions("naive")
    second = first.tile(4, 4).inner_order(1, 0).nest(0).vectorize(4, 1)
    assert first == MappingOptions() == MappingOptions.naive()
    assert second.default == NestOptions(tile=(4, 4), inner_order=(1, 0))
    assert second.nests == (NestOptions(vectorize=(1, 4)),)
    assert second.nest(0).tile(2).nests == (NestOptions(tile=(2,), vectorize=(1, 4)),)


FLAGS = [name for name, option in OPTIONS.items() if isinstance(option.kind, Flag)]
METHODS = sorted(name for name in vars(OptionMethods) if not name.startswith("_"))


def test_every_option_has_its_method() -> None:
    assert set(METHODS) == set(OPTIONS)


def test_plain_choices_ask_for_nothing() -> None:
    made = PLAIN.made()
    assert [key for key, option in OPTIONS.items() if option.knobs] == [*made]
    assert not [key for key, value in made.items() if OPTIONS[key].kind.asks(value)]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_makes_its_choice_for_all_nests_or_one(name: str) -> None:
    arguments = [8] if name in ("vectorize", "buffers") else [] if name in FLAGS else [1, 0]
    every: MappingOptions = getattr(MappingOptions("mlp"), name)(*arguments)
    one: MappingOptions = getattr(MappingOptions("mlp").nest(1), name)(*arguments)
    assert every == MappingOptions("mlp", every.default)
    assert one == MappingOptions("mlp", nests=(NestOptions(), every.default))
    assert [*every.default.made()] == [name]


@given(options, nests)
def test_a_repr_makes_the_same(o: MappingOptions, nest: NestOptions) -> None:
    assert eval(repr(o)) == o
    assert eval(repr(nest)) == nest


def test_a_repr_says_what_is_set() -> None:
    o = MappingOptions("mlp").tile(8, 16).fuse(False).dot().merged(False).nest(1).vectorize(4)
    assert repr(o.nest(1).skip()) == (
        "MappingOptions('mlp').tile(8, 16).fuse(False).dot().merged(False)"
        ".nest(1).vectorize(4, -1).nest(1).skip(True)"
    )
    assert eval(repr(o)) == o
    assert repr(MappingOptions()) == "MappingOptions('naive')"
    assert repr(NestOptions((8,), peel=True)) == "NestOptions(tile=(8,), peel=True)"


@given(nests)
def test_a_dimension_more_and_again_less(nest: NestOptions) -> None:
    assert nest.with_leading().without_leading() == nest


def test_a_dimension_more_moves_what_is_said_by_position() -> None:
    before = NestOptions((4,), (1, 0), (), (0, 8), (2, 3), (1,), (5,), True, mma=(0, 1))
    assert before.with_leading() == NestOptions(
        (0, 4), (0, 2, 1), (), (1, 8), (0, 2, 3), (1,), (0, 5), True, mma=(1, 2)
    )


def test_trailing_empty_choices_do_not_matter() -> None:
    assert MappingOptions(nests=(NestOptions(), NestOptions())) == MappingOptions()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "object"),
        ("nonsense", "JSON"),
        ('{"preset": "fast"}', "naive, pointwise, mlp, conv"),
        ('{"preset": 3}', "preset"),
        ('{"presets": "naive"}', "'presets'"),
        ('{"default": {"tiles": [3]}}', "'tiles'"),
        ('{"default": {"tile": 3}}', "default.tile"),
        ('{"default": {"tile": [-1]}}', "tile"),
        ('{"default": {"tile": [true]}}', "tile"),
        ('{"default": {"tile": [1.5]}}', "tile"),
        ('{"default": {"tile": null}}', "default.tile"),
        ('{"nests": {}}', "nests"),
        ('{"nests": [{"order": [0, 0]}]}', "order"),
        ('{"nests": [{"register": [65]}]}', "register: .* 64"),
        ('{"default": {"register": [-1]}}', "register"),
        ('{"default": {"stage": [-2]}}', "stage: levels must be from -1"),
        ('{"nests": [{"order": [1, 2]}]}', "order"),
        ('{"nests": [{"vectorize": [0, 3]}]}', "1, 2, 4, 8, 16, 32, 64"),
        ('{"nests": [{"vectorize": [-2, 4]}]}', "dimension"),
        ('{"nests": [{"vectorize": [4]}]}', "vectorize"),
        ('{"nests": [3]}', r"nests\[0\]"),
        ('{"default": {"buffers": null}}', "default.buffers: .* 1 to 8"),
        ('{"default": {"tile": [1], "tile": [2]}}', "'tile' appears twice"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_bad_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(OptionsError, match=words):
        MappingOptions.from_json(text)


def test_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(OptionsError, match="naive, pointwise, mlp, conv"):
        MappingOptions("turbo")


def test_integers_of_every_class() -> None:
    sizes = np.array([32, 8])
    position: Any = np.int8(1)
    width: Any = np.uint8(4)
    assert MappingOptions().tile(*sizes) == MappingOptions().tile(32, 8)
    assert MappingOptions().nest(position).vectorize(width).to_json() == (
        '{"nests":[{},{"vectorize":[-1,4]}],"preset":"naive"}'
    )
    with pytest.raises(OptionsError, match="integers"):
        MappingOptions().tile(sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize("nests", [3, None, [1], "ab", {}])
def test_nests_have_to_be_nests(nests: Any) -> None:
    with pytest.raises(OptionsError, match="NestOptions"):
        MappingOptions(nests=nests)


def test_bad_nest_position() -> None:
    with pytest.raises(OptionsError, match="position"):
        MappingOptions().nest(-1).tile(3)
    with pytest.raises(OptionsError, match="position"):
        MappingOptions().nest(10**9).tile(3)


@pytest.mark.parametrize(
    ("o", "words"),
    [
        (MappingOptions().nest(0).tile(1, 2, 3, 4), "3 dimensions, but 4 sizes"),
        (MappingOptions().nest(0).order(1, 0), "3 dimensions"),
        (MappingOptions().nest(0).inner_order(1, 0), "3 dimensions"),
        (MappingOptions().nest(0).vectorize(4, 3), "no dimension 3"),
        (MappingOptions().nest(1).tile(4), "there is no nest 1: f has only nest 0"),
        (MappingOptions().nest(0).register(1, 2, 3, 4), "3 dimensions, but 4 sizes"),
        (MappingOptions().vectorize(8).nest(0).register(7, 2), "7 x 2 vectors need 17 registers"),
        (MappingOptions().vectorize(16).nest(0).register(7), "7 x 2 vectors need 17 registers"),
        (MappingOptions().nest(0).register(16), "16 x 1 vectors need 18 registers"),
        (MappingOptions().nest(0).stage(0, 0, 0), "2 operands, but 3 were given"),
        (MappingOptions().tile(4, 4).nest(0).stage(-1, 3), "operand 1, B: there are 2 loops"),
        (MappingOptions().nest(0).register(14, 1, 64), "280 points"),
    ],
)
def test_what_does_not_fit_is_refused(o: MappingOptions, words: str) -> None:
    with pytest.raises(OptionsError, match=words):
        schedule(matmul(), o, DEVICE)


def test_a_scalar_cannot_be_vectorised() -> None:
    total = sized("def f(float(N) A) -> (s) { s +=! A(i) }", A=(9,))
    with pytest.raises(OptionsError, match="no dimension to vectorise"):
        schedule(total, MappingOptions().nest(0).vectorize(4), DEVICE)
    with pytest.raises(OptionsError, match=r"^vectorize: nest s0: \S+ has no dimension"):
        schedule(total, MappingOptions().vectorize(4), DEVICE)


def test_a_register_tile_for_all_nests_goes_where_it_fits() -> None:
    tile = MappingOptions().vectorize(8).register(6, 2)
    assert "s0.m.register x 6 unroll" in show(schedule(matmul(), tile, DEVICE))
    with pytest.raises(OptionsError, match=r"^register: nest s0: 7 x 2 vectors need 17"):
        schedule(matmul(), tile.register(7, 2), DEVICE)
    ordered = sized("def f(float(N) A) -> (O) { O(i) = A(i) O(i) += O(i) }", A=(9,))
    assert "unroll" in show(schedule(ordered, MappingOptions().register(4), DEVICE))


REFUSED = {
    "data select": ("def f(float(N) A, int32(M) I) -> (O) { O(i) = A(I(i)) }", (9,), (9,), 0),
    "may be out of": ("def f(float(N) A) -> (O) { O(i) = i > 3 ? A(i - 1) : 0.0 "
                         "where i in 0:9 }", (9,), None, 0),
    "the nest writes it": ("def f(float(N) A) -> (O) { O(i) = A(i) O(i) = O(i) + A(i) }",
                           (9,), None, 1),
    "nothing to read": ("def f(float(N) A) -> (O) { O +=! A(i) }", (0,), None, 0),
    "would need": ("def f(float(N) A) -> (O) { O(i, j, k) = A(i) + j + k "
                   "where j in 0:9, k in 0:9 }", (1 << 27,), None, 0),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_staged_is_refused(reason: str) -> None:
    text, a, i, position = REFUSED[reason]
    each = sized(text, A=a, **({"I": i} if i else {}))
    words = f"stage: nest s{position}: operand 0, .*{reason}|{reason}"
    with pytest.raises(OptionsError, match=words):
        schedule(each, MappingOptions().nest(position).stage(0), DEVICE)
    if position:  # the nest before it can have it
        program = schedule(each, MappingOptions().stage(0), DEVICE)
        assert "s0.panel" in show(program) and f"s{position}.panel" not in show(program)
    else:
        with pytest.raises(OptionsError, match=words):
            schedule(each, MappingOptions().stage(0), DEVICE)


def test_a_register_tile_is_no_larger_than_what_there_is() -> None:
    few = sized("def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
                A=(3, 2), B=(2, 9))  # fmt: skip
    text = show(schedule(few, MappingOptions().vectorize(8).nest(0).register(60, 2), DEVICE))
    assert "s0.m.register x 3 unroll" in text


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_suit_every_def(preset: str) -> None:
    scalar = sized("def f() -> (s) { s = 1.0 }")
    for each in (matmul(), softmax(), scalar):
        schedule(each, MappingOptions(preset), DEVICE)
    schedule(matmul(), MappingOptions(preset).tile(4, 4, 4, 4).order(2, 1, 0), DEVICE)
    schedule(softmax(), MappingOptions(preset).tile(4, 4, 4, 4).order(1, 0), DEVICE)


def test_choices_override_each_other() -> None:
    text = show(schedule(softmax(), MappingOptions("pointwise").nest(2).vectorize(1), DEVICE))
    assert "s2.d.lane" not in text
    scalar = show(schedule(softmax(), MappingOptions("pointwise").vectorize(1), DEVICE))
    assert "vector" not in scalar
    wide = MappingOptions("pointwise").vectorize(1).nest(2).vectorize(2)
    text = show(schedule(softmax(), wide, DEVICE))
    assert "s2.d.lane x 2 vector" in text and text.count("vector") == 1
