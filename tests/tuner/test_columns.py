"""Many configurations as columns, and what is drawn around one."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from nests import NARROW, WIDE

from tcl.codegen.choose.cpu.presets import CpuPreset
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.cpu import default_plan
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.model.loops import READ
from tcl.tuner.model.ranking import candidates
from tcl.tuner.space.columns import Rows, different, equal_row_codes
from tcl.tuner.space.cpu.mapping import MappingSpace

DEFS = {
    "product": (
        "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        {"A": (700, 37), "B": (37, 640)},
    ),
    "bytes": (
        "def f(uint8(M, K) A, int8(K, N) B) -> (C) { C(m, n) +=! int32(A(m, k)) * B(k, n) }",
        {"A": (60, 32), "B": (32, 64)},
    ),
    "two": (
        """def f(float(N, D) I) -> (S, O) {
            S(n) +=! I(n, d)
            O(n, d) = I(n, d) / S(n)
        }""",
        {"I": (50, 33)},
    ),
}


def made(name: str, device: CpuProfile) -> tuple[CpuSubject, MappingSpace]:
    text, shapes = DEFS[name]
    program = lower(infer(check(text)["f"], shapes), None)
    subject = CpuSubject.read(program, device)
    return subject, MappingSpace(program, subject.device)


@pytest.mark.parametrize("device", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", DEFS)
def test_columns_say_what_each_configuration_does(name: str, device: CpuProfile) -> None:
    subject, space = made(name, device)
    rng, default = Random(0), space.from_options(MappingOptions("mlp"))
    assert default is not None
    drawn = candidates(space.space, default, 40)
    anywhere = [c for _ in range(10) if (c := space.space.sample(rng)) is not None]
    configs = [*map(drawn.config, range(len(drawn.places))), *anywhere]
    rows = Rows.from_configs(space.space, configs)
    assert [rows.config(k) for k in range(len(configs))] == configs
    columns = space.columns(rows)
    choices = [subject.choices(space.to_options(c)) for c in configs]
    for place, nest in enumerate(subject.nests):
        for option in READ:
            column = columns[nest.position][option]
            got = [column.values[code] for code in column.codes]
            assert got == [getattr(each[place], option) for each in choices], option
    own = [columns[nest.position] for nest in subject.nests]
    found, seconds = subject.extract_columns(len(configs), own)
    expected, longer = subject.extract(choices)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(seconds, longer)


def test_who_chooses_plans_the_default_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made_for: list[str] = []
    plain = CpuPreset.named

    def of(name: str, program: ir.Program, *rest: Any) -> CpuPreset:
        made_for.append(name)
        return plain(name, program, *rest)

    monkeypatch.setattr(CpuPreset, "named", of)
    default_plan.cache_clear()
    _, space = made("two", WIDE)
    assert space.from_options(DEFAULT) is not None
    assert made_for == [DEFAULT.preset]


def test_what_is_drawn_is_new_worth_trying_and_always_the_same() -> None:
    _, space = made("product", WIDE)
    default = space.from_options(MappingOptions("mlp"))
    assert default is not None
    drawn = candidates(space.space, default, 300)
    configs = [drawn.config(k) for k in range(len(drawn.places))]
    assert configs[0] == default
    assert len({*configs}) == len(configs) <= 300
    apart = [sum(a != b for a, b in zip(c, default, strict=True)) for c in configs]
    assert {*apart} == {0, 1, 2, 3, 4}
    for config in configs[1:]:
        values = space.space.values(config)
        assert all(heuristic(values) is None for heuristic in space.space.heuristics)
    again = candidates(space.space, default, 300)
    np.testing.assert_array_equal(again.places, drawn.places)
    other = candidates(space.space, default, 300, seed=1)
    assert not np.array_equal(other.places, drawn.places)


def test_nothing_is_drawn_where_there_is_no_choice() -> None:
    program = lower(
        infer(check("def f(float(N) A) -> (B) { B(n) = A(n) }")["f"], {"A": (1,)}), None
    )
    space = MappingSpace(program, WIDE).space
    assert len(candidates(space, space.default, 10).places) == 1


def test_rows_that_are_alike_have_one_number() -> None:
    same = equal_row_codes([np.array([0, 1, 0, 1]), np.array([5, 5, 5, 6])])
    assert same[0] == same[2]
    assert len({*same.tolist()}) == 3
    large = equal_row_codes([np.array([0, 1 << 40, 0])] * 3)
    assert large.tolist() == [0, 1, 0]


def test_the_first_of_equal_rows_stays() -> None:
    places = np.array([[3, 1], [1, 3], [3, 1], [0, 70_000], [1, 3]], np.intp)
    assert different(places).tolist() == [0, 1, 3]
    assert different(np.zeros((3, 0), np.intp)).tolist() == [0]
