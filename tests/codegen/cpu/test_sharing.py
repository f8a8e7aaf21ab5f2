"""Which parts of a region threads take, and in which order."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import team_kernels as bodies
from team_kernels import kernel


def taking(threads: int, parts: int) -> Callable[[int], int]:
    """What a thread takes next: the number of a part, or -1."""
    take, line = kernel(bodies.TAKE, 3, threads=1), np.zeros(8, np.int64)

    def next_part(thread: int) -> int:
        out = np.zeros(1, np.int64)
        take([np.array([thread, threads, parts], np.int64), line, out])
        return int(out[0])

    return next_part


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 15, 16, 40])
@pytest.mark.parametrize("parts", [0, 1, 2, 7, 64, 641])
def test_each_part_is_taken_once(threads: int, parts: int) -> None:
    """By threads in any order, of which some never come."""
    rng = random.Random(1000 * threads + parts)
    for come in (threads, max(1, threads // 2), 1):
        able, taken, take = rng.sample(range(threads), come), [], taking(threads, parts)
        while able:
            thread = rng.choice(able)
            if (part := take(thread)) < 0:
                able.remove(thread)
            else:
                taken.append(part)
        assert sorted(taken) == list(range(parts))


def test_threads_begin_apart_from_each_other() -> None:
    """So that each mostly has in its caches what it touched in the region before, and neighbours
    are seldom touched at once: at both ends of what a pair of threads begins with."""
    take = taking(2, 5)
    assert [take(thread) for thread in (0, 1, 0, 1, 1, 0)] == [0, 4, 1, 3, 2, -1]
    take = taking(4, 10)
    assert [take(thread) for thread in (0, 1, 2, 3)] == [0, 4, 5, 9]


def test_threads_help_where_something_is_left() -> None:
    take = taking(4, 4)
    assert [take(0) for _ in range(5)] == [0, 1, 2, 3, -1]
