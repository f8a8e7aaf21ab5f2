"""Remove the noise of a picture and keep its edges: a bilateral filter, in one kernel.

Each pixel becomes a weighted mean of its 49 neighbours. The weight is large for a neighbour that is
near in place and in brightness, so edges stay sharp. A condition on indices excludes neighbours
outside the picture. The program draws the picture, or reads it from ``--picture``; Pillow
(``pip install '.[examples]'``) reads and saves pictures.

    python examples/picture_stencil.py
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tcl
from tcl.bench.turns import compare_in_turns

BILATERAL = """
def bilateral(float(H, W) I, float near, float alike) -> (O, Weights) {
    O(y, x) +=! (y + dy >= 3 && y + dy < H + 3 && x + dx >= 3 && x + dx < W + 3)
        ? I(y + dy - 3, x + dx - 3) * exp(-near * float((dy - 3) * (dy - 3) + (dx - 3) * (dx - 3))
            - alike * (I(y + dy - 3, x + dx - 3) - I(y, x)) * (I(y + dy - 3, x + dx - 3) - I(y, x)))
        : 0 where y in 0:H, x in 0:W, dy in 0:7, dx in 0:7
    Weights(y, x) +=! (y + dy >= 3 && y + dy < H + 3 && x + dx >= 3 && x + dx < W + 3)
        ? exp(-near * float((dy - 3) * (dy - 3) + (dx - 3) * (dx - 3))
            - alike * (I(y + dy - 3, x + dx - 3) - I(y, x)) * (I(y + dy - 3, x + dx - 3) - I(y, x)))
        : 0 where y in 0:H, x in 0:W, dy in 0:7, dx in 0:7
    O(y, x) = O(y, x) / Weights(y, x)
}
"""
NEAR, ALIKE = 1 / 8, 8.0

Picture = npt.NDArray[np.float32]


def draw(height: int, width: int) -> Picture:
    """Rings and bars under heavy noise, from 0 (black) to 1 (white)."""
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    rings = 0.5 + 0.5 * np.cos(20 * np.hypot(y, x * width / height))
    bars = np.where(np.floor(6 * x) % 2, 0.25, 0.75)
    noise = np.random.default_rng(0).normal(0, 0.1, (height, width))
    return np.asarray(np.clip(np.where(y < 0, rings, bars) + noise, 0, 1), np.float32)


def with_numpy(picture: Picture) -> Picture:
    """The same with NumPy: several passes over the picture for each of the 49 neighbours."""
    (height, width), ways = picture.shape, range(-3, 4)
    padded = np.pad(picture, 3, constant_values=np.inf)  # exp(-inf) is 0
    total, weights = np.zeros_like(picture), np.zeros_like(picture)
    for dy, dx in ((dy, dx) for dy in ways for dx in ways):
        other = padded[3 + dy : 3 + dy + height, 3 + dx : 3 + dx + width]
        weight = other - picture
        np.square(weight, out=weight)
        weight *= -np.float32(ALIKE)
        weight -= np.float32(NEAR * (dy * dy + dx * dx))
        np.exp(weight, out=weight)
        weights += weight
        total += weight * np.where(weight > 0, other, 0)
    return total / weights


def save(folder: Path, **pictures: Picture) -> None:
    """Save each picture as a PNG with its name."""
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
    parser.add_argument("--picture", type=Path, help="which one, instead of one that is drawn")
    parser.add_argument("--folder", type=Path, default=Path("pictures"), help="where to save")
    given = parser.parse_args()
    if given.picture is None:
        before: Picture = draw(*((40, 60) if given.small else (720, 1280)))
    else:
        from PIL import Image

        before = np.asarray(Image.open(given.picture).convert("L"), np.float32) / np.float32(255)

    T = tcl.define(BILATERAL)

    def with_tcl() -> Any:
        return T.bilateral(before, NEAR, ALIKE, wanted=("O",))

    after = with_tcl()
    np.testing.assert_allclose(after, with_numpy(before), rtol=1e-3, atol=1e-4)
    save(given.folder, before=before, after=np.clip(after, 0, 1))
    compare_in_turns({"tcl": with_tcl, "NumPy": lambda: with_numpy(before)})


if __name__ == "__main__":
    main()
