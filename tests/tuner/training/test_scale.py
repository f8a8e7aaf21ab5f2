"""Times of several searches, on one scale."""

from __future__ import annotations

import pytest

from tcl.tuner.training.history import Session, on_one_scale


def test_a_slower_session_is_brought_to_the_pace_of_the_others() -> None:
    fast = Session({"default": 1.0, "a": 2.0, "b": 4.0}, raced=False)
    slow = Session({"default": 3.0, "b": 12.0, "c": 1.5}, raced=False)
    found = on_one_scale([fast, slow], "default")
    ratios = {name: s.seconds / found["default"].seconds for name, s in found.items()}
    assert ratios == pytest.approx({"default": 1, "a": 2, "b": 4, "c": 0.5})
    assert not any(s.raced for s in found.values())


def test_what_was_timed_in_turns_counts_more_than_a_single_reading() -> None:
    read = Session({"default": 1.0, "lucky": 0.5, "other": 2.0}, raced=False)
    turns = Session({"default": 1.0, "lucky": 0.9}, raced=True)
    found = on_one_scale([read, turns], "default")
    assert found["lucky"].seconds / found["default"].seconds == pytest.approx(0.9, rel=0.02)
    assert {name for name, s in found.items() if s.raced} == {"default", "lucky"}


def test_sessions_are_joined_by_way_of_others_and_else_left_out() -> None:
    first = Session({"default": 1.0, "a": 2.0}, raced=True)
    second = Session({"a": 1.0, "b": 3.0}, raced=True)
    apart = Session({"x": 1.0, "y": 2.0, "z": 3.0, "w": 4.0}, raced=True)
    found = on_one_scale([apart, second, first], "default")
    assert found.keys() == {"default", "a", "b"}
    assert found["b"].seconds / found["default"].seconds == pytest.approx(6)
    assert on_one_scale([apart, second], "default").keys() == apart.times.keys()
    assert on_one_scale([], "default") == {}
