"""Smooth a noisy picture with a stencil, and save it before and after.

Each inner pixel becomes the mean of itself and its four neighbours; the border is copied. A ``? :``
on the indices tells them apart. Two arrays take turns as input and output, so that twenty steps
allocate nothing. The picture is drawn here; Pillow (``pip install '.[examples]'``) saves it.

    python examples/picture_stencil.py
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

import tcl
from tcl.bench.turns import compare_in_turns

STENCIL = """
def smooth(float(H, W) I) -> (O) {
    O(y, x) = (y >= 1 && y + 1 < H && x >= 1 && x + 1 < W)
        ? 0.2 * (I(y, x) + I(y - 1, x) + I(y + 1, x) + I(y, x - 1) + I(y, x + 1)) : I(y, x)
        where y in 0:H, x in 0:W
}
"""

Picture = npt.NDArray[np.float32]


def draw(height: int, width: int) -> Picture:
    """Rings and bars under heavy noise, from 0 (black) to 1 (white)."""
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    rings = 0.5 + 0.5 * np.cos(20 * np.hypot(y, x * width / height))
    bars = np.where(np.floor(6 * x) % 2, 0.25, 0.75)
    noise = np.random.default_rng(0).normal(0, 0.25, (height, width))
    return np.asarray(np.clip(np.where(y < 0, rings, bars) + noise, 0, 1), np.float32)


def with_numpy(picture: Picture, out: Picture) -> None:
    """One step with NumPy: a pass over the picture for each neighbour."""
    inner = out[1:-1, 1:-1]
    np.copyto(out, picture)
    for neighbour in (
        *(picture[:-2, 1:-1], picture[2:, 1:-1]),
        *(picture[1:-1, :-2], picture[1:-1, 2:]),
    ):
        inner += neighbour
    inner *= np.float32(0.2)


def save(folder: Path, **pictures: Picture) -> None:
    """Write each as a PNG of its name."""
    try:
        from PIL import Image
    except ImportError:
        print("no pictures are saved: Pillow is not installed (pip install '.[examples]')")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        Image.fromarray((255 * picture).astype(np.uint8)).save(folder / f"{name}.png")
        print(f"saved {folder / name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small picture, done in a moment")
    parser.add_argument("--folder", type=Path, default=Path("pictures"), help="where to save")
    given = parser.parse_args()
    before = draw(*((40, 60) if given.small else (1080, 1920)))

    T = tcl.define(STENCIL)
    one, other = before.copy(), np.empty_like(before)
    expected, spare = before.copy(), np.empty_like(before)
    for _ in range(20):
        T.smooth(one, outputs=(other,))
        one, other = other, one
        with_numpy(expected, spare)
        expected, spare = spare, expected
    np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
    save(given.folder, before=before, after=one)

    compare_in_turns(
        {
            "tcl": lambda: T.smooth(before, outputs=(other,)),
            "NumPy": lambda: with_numpy(before, spare),
        }
    )


if __name__ == "__main__":
    main()
