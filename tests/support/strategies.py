"""Random legal programs, for Hypothesis (``programs()``) or from a seed (``random_program``).

Values are tracked as intervals, so that nothing overflows, no denominator or logarithm comes near
zero, and decisions (comparisons, casts to integers) are taken on exactly known values alone. The
ranges of all indices are known independently of the language: see ``program_accesses``.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st
from program_builder import Builder, Output, Program, numpy_type

__all__ = ["Output", "Program", "numpy_type", "programs", "random_program"]


class _Drawn:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))


class _Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


@st.composite
def programs(draw: st.DrawFn, max_statements: int = 4, bfloat16: bool = True) -> Program:
    """Legal programs of 1 to ``max_statements`` statements."""
    return Builder(_Drawn(draw), bfloat16).program(max_statements)


def random_program(seed: int, max_statements: int = 4, bfloat16: bool = True) -> Program:
    """The legal program of that seed: the same on every machine, quick, but it does not shrink."""
    return Builder(_Seeded(seed), bfloat16).program(max_statements)
