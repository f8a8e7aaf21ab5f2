"""The finals of a search: who is timed how, and who wins."""

from __future__ import annotations

import pytest

from tcl.tuner.finals import BUDGET, ROUNDS, Entrant, race, winner


class Clock:
    """Time that passes only in kernels."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def kernel(self, name: str, seconds: float) -> object:
        def run() -> None:
            self.now += seconds
            self.order.append(name)

        return run


def test_all_are_timed_in_turns_and_in_changing_order() -> None:
    clock = Clock()
    runs = [clock.kernel(name, s) for name, s in (("a", 1e-3), ("b", 2e-3), ("c", 5e-3))]
    times = race(runs, clock=clock)  # type: ignore[arg-type]
    assert [len(t) for t in times] == [ROUNDS] * 3
    for taken, seconds in zip(times, (1e-3, 2e-3, 5e-3), strict=True):
        assert taken == pytest.approx([seconds] * ROUNDS)
    first = "".join(clock.order).replace("aaa", "A").replace("bb", "B").replace("cc", "C")
    assert len({first[k : k + 3] for k in range(6, len(first), 3)}) > 2


def test_long_kernels_are_timed_three_times() -> None:
    clock = Clock()
    runs = [clock.kernel("a", BUDGET), clock.kernel("b", BUDGET)]
    assert [len(t) for t in race(runs, clock=clock)] == [3, 3]  # type: ignore[arg-type]


def test_outputs_are_put_back_before_each_sample() -> None:
    clock = Clock()
    reset = clock.kernel("-", 0.0)
    race([clock.kernel("a", 1.0)], reset, clock)  # type: ignore[arg-type,list-item]
    text = "".join(clock.order)
    assert text.startswith("-aaaa-aa-aa")


@pytest.mark.parametrize(
    ("old", "new", "wins"),
    [
        ([10, 10, 10], [9, 9, 9], "new"),
        ([10, 10, 10], [9.95, 9.95, 9.95], "old"),  # a tie
        ([10, 10, 10, 10, 10], [9, 9, 9, 12, 12], "old"),  # not clearly
        ([10, 10, 10], [11, 11, 11], "old"),
    ],
)
def test_ties_go_to_the_incumbent(old: list[float], new: list[float], wins: str) -> None:
    entrants = [Entrant("new", tuple(new)), Entrant("old", tuple(old))]
    assert winner(entrants, "old").name == wins
    assert winner(entrants, None).name == ("new" if min(new) < 10 else "old")
