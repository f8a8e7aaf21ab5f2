"""The chunk size of a loop that you wrote yourself, because index notation cannot express it.

The time for a point of the Mandelbrot set depends on the point, so two halves of the picture are
not equal work. A C function over a range of rows (here compiled by Numba) runs on the threads of
tcl. Each thread takes one chunk after the other. ``BlockTuner`` measures once which chunk size is
the best, and saves it.

    python examples/own_kernel.py
"""

import argparse
from typing import Any

import numba
import numpy as np
from numba import types

import tcl
from tcl.bench.turns import compare_in_turns

STEPS = 100


signature = types.void(types.int64, types.int64, types.CPointer(types.int32), types.int64)


@numba.cfunc(signature)  # type: ignore[untyped-decorator]
def rows(begin: int, end: int, picture: Any, width: int) -> None:
    """The number of steps until each point of these rows leaves the circle of radius 2."""
    for row in range(begin, end):
        for column in range(width):
            x0, y0 = 3.0 * column / width - 2.2, 2.4 * row / width - 1.2
            x, y, step = 0.0, 0.0, 0
            while step < STEPS and x * x + y * y <= 4:
                x, y, step = x * x - y * y + x0, 2 * x * y + y0, step + 1
            picture[row * width + column] = step


def with_numpy(width: int) -> Any:
    """All points at once, for as many steps as the slowest point needs."""
    column, row = np.meshgrid(np.arange(width), np.arange(width))
    x0, y0 = 3.0 * column / width - 2.2, 2.4 * row / width - 1.2
    x, y, steps = np.zeros_like(x0), np.zeros_like(y0), np.zeros((width, width), np.int32)
    inside = np.ones((width, width), bool)
    for _ in range(STEPS):
        inside &= x * x + y * y <= 4
        steps += inside
        x, y = np.where(inside, x * x - y * y + x0, x), np.where(inside, 2 * x * y + y0, y)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small picture, done in a moment")
    width = 48 if parser.parse_args().small else 512

    picture = np.zeros((width, width), np.int32)
    tuner = tcl.BlockTuner(rows, width)
    result = tuner.tune(picture, width)
    print(f"rows of a chunk: {result.block[0]}, chunks: {result.grid[0]}")
    np.testing.assert_array_equal(picture, with_numpy(width))

    whole = rows.ctypes
    compare_in_turns(
        {
            "tcl, tuned chunk": lambda: tuner.run(picture, width),
            "one call": lambda: whole(0, width, picture.ctypes.data_as(whole.argtypes[2]), width),
            "NumPy": lambda: with_numpy(width),
        }
    )


if __name__ == "__main__":
    main()
