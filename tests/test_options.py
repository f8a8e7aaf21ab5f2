"""Mapping options: what they accept, how they read and write, what a schedule refuses."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcl.codegen.device import CpuProfile
from tcl.codegen.errors import OptionsError
from tcl.codegen.ir_print import show
from tcl.codegen.options import PRESETS, WIDTHS, MappingOptions, NestOptions
from tcl.codegen.schedule import schedule
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef

DEVICE = CpuProfile("generic", "", "x86_64-unknown-linux-gnu", 256, 4, 32768, 1 << 20, 8 << 20)

nests = st.builds(
    NestOptions,
    st.none() | st.lists(st.integers(0, 2**31 - 1), max_size=5).map(tuple),
    st.none() | st.integers(0, 5).flatmap(lambda n: st.permutations(range(n))).map(tuple),
    st.none() | st.integers(0, 5).flatmap(lambda n: st.permutations(range(n))).map(tuple),
    st.none() | st.tuples(st.integers(-1, 5), st.sampled_from(WIDTHS)),
)
options = st.builds(
    MappingOptions, st.sampled_from(PRESETS), nests, st.lists(nests, max_size=4).map(tuple)
)


def sized(text: str, **shapes: tuple[int, ...]) -> SizedDef:
    (checked,) = check(text).values()
    return infer(checked, shapes)


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
        ('{"nests": [{"order": [1, 2]}]}', "order"),
        ('{"nests": [{"vectorize": [0, 3]}]}', "1, 2, 4, 8, 16, 32, 64"),
        ('{"nests": [{"vectorize": [-2, 4]}]}', "dimension"),
        ('{"nests": [{"vectorize": [4]}]}', "vectorize"),
        ('{"nests": [3]}', r"nests\[0\]"),
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
        (MappingOptions().nest(0).tile(1, 2, 3, 4), "3 dimensions, 4 sizes"),
        (MappingOptions().nest(0).order(1, 0), "3 dimensions"),
        (MappingOptions().nest(0).inner_order(1, 0), "3 dimensions"),
        (MappingOptions().nest(0).vectorize(4, 2), "reduced"),
        (MappingOptions().nest(0).vectorize(4, 3), "no dimension 3"),
        (MappingOptions().nest(1).tile(4), "2 nests"),
    ],
)
def test_what_does_not_fit_is_refused(o: MappingOptions, words: str) -> None:
    with pytest.raises(OptionsError, match=words):
        schedule(matmul(), o, DEVICE)


def test_a_scalar_cannot_be_vectorised() -> None:
    total = sized("def f(float(N) A) -> (s) { s +=! A(i) }", A=(9,))
    with pytest.raises(OptionsError, match="no dimension to vectorise"):
        schedule(total, MappingOptions().nest(0).vectorize(4), DEVICE)
    assert "vector" not in show(schedule(total, MappingOptions().vectorize(4), DEVICE))


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_suit_every_def(preset: str) -> None:
    for each in (matmul(), softmax(), sized("def f() -> (s) { s = 1.0 }")):
        schedule(each, MappingOptions(preset), DEVICE)
        schedule(each, MappingOptions(preset).tile(4, 4, 4, 4).order(2, 1, 0), DEVICE)


def test_choices_override_each_other() -> None:
    text = show(schedule(softmax(), MappingOptions("pointwise").nest(2).vectorize(1), DEVICE))
    assert text.split("nest s2")[1].count("vector") == 0
    scalar = show(schedule(softmax(), MappingOptions("pointwise").vectorize(1), DEVICE))
    assert "vector" not in scalar
    wide = MappingOptions("pointwise").vectorize(1).nest(2).vectorize(2)
    text = show(schedule(softmax(), wide, DEVICE))
    assert "s2.d.lane x 2 vector" in text and text.count("vector") == 1
