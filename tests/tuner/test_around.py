"""Configurations around another one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from random import Random

import pytest
from nests import WIDE

from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.tuner.space.around import Change, Kind, around, changes, singles
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config, SearchSpace

DEFS = {
    "product": (
        "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        {"A": (100, 37), "B": (37, 64)},
    ),
    "two": (
        """def f(float(N, D) I) -> (S, O) {
            S(n) +=! I(n, d)
            O(n, d) = I(n, d) / S(n)
        }""",
        {"I": (50, 33)},
    ),
}

PAIR = SearchSpace(
    (Knob("size", (1, 2, 4, 8), 2, ordered=True), Knob("kind", ("a", "b", "c"), "b", ordered=False))
)


def test_all_changes_of_one_knob_come_nearest_first() -> None:
    assert changes(PAIR.knobs, (2, "b")) == (((0, 1), (0, 4), (1, "a"), (1, "c")), ((0, 8),))


def test_one_knob_is_changed_before_two_are_and_everything_comes_once() -> None:
    found = list(around(PAIR, (2, "b")))
    assert found[:5] == [(1, "b"), (4, "b"), (2, "a"), (8, "b"), (2, "c")]
    assert {*found, (2, "b")} == {*PAIR.enumerate()}
    assert len(found) == 11


def test_what_has_gained_most_comes_first_and_kinds_take_turns() -> None:
    space = SearchSpace(
        (
            Knob("s0.m.tile", (2, 4, 8, 16), 16, ordered=True),
            Knob("s0.stage1", (0, 1), 0, ordered=True),
            Knob("s0.register", ("1", "2", "3", "4"), "2", ordered=True),
            Knob("s0.lanes", (1, 4), 4, ordered=True),
        )
    )
    gains: dict[Kind, float] = {
        ("register", True): 0.013,
        ("tile", False): 0.0035,
        ("lanes", False): 0.0001,
    }
    gains |= {("stage", True): 0.007, ("register", False): 0.003}

    def changed(made: tuple[Change, ...]) -> Config:
        ((place, value),) = made
        return (*space.default[:place], value, *space.default[place + 1 :])

    found = [
        next(
            (knob.name, value)
            for knob, value, own in zip(space.knobs, c, space.default, strict=True)
            if value != own
        )
        for c in singles(space.knobs, space.default, changed, gains)
    ]
    assert found == [
        ("s0.register", "3"),
        ("s0.register", "4"),
        ("s0.stage1", 1),
        ("s0.m.tile", 8),
        ("s0.register", "1"),
        ("s0.m.tile", 4),
        ("s0.m.tile", 2),
        ("s0.lanes", 1),
    ]


def test_what_a_constraint_only_gets_counts_as_read() -> None:
    def alike(values: Mapping[str, Value]) -> str | None:
        return "kinds differ" if values.get("kind") != "b" else None

    assert list(around(SearchSpace(PAIR.knobs, (alike,)), (2, "b"))) == [
        (1, "b"),
        (4, "b"),
        (8, "b"),
    ]


@pytest.mark.parametrize("name", DEFS)
def test_what_is_valid_is_found_without_asking_all_constraints(name: str) -> None:
    text, shapes = DEFS[name]
    space = MappingSpace(lower(infer(check(text)["f"], shapes), None), WIDE)
    rng, default = Random(1), space.from_options(MappingOptions("mlp"))
    assert default is not None
    found = list(islice(around(space.space, default), 400))
    assert all(space.space.valid(c) for c in found)
    singles = {c for c in found if sum(a != b for a, b in zip(c, default, strict=True)) == 1}
    every = changes(space.space.knobs, default)
    for place, value in rng.sample([c for same in every for c in same], 40):
        moved = (*default[:place], value, *default[place + 1 :])
        assert (moved in singles) == space.space.valid(moved)
