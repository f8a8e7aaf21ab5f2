"""The pictures of ``docs/gallery``: what each program computes, drawn by matplotlib.

``python -m benchmarks.gallery --pictures`` draws all of them.
"""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

import tcl
from benchmarks.gallery import PAGES, ROOT

PICTURES: dict[str, Callable[[], None]] = {}
_PAPER, _INK, _BLUE, _ORANGE = "#fbfaf7", "#26292e", "#4a7fb5", "#d9662b"


def _picture(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(draw: Callable[[], None]) -> Callable[[], None]:
        PICTURES[name] = draw
        return draw

    return register


@contextmanager
def _axes(name: str, *titles: str, height: float = 2.9) -> Iterator[list[Any]]:
    """An axis for each title, side by side; the picture is saved when they are drawn on."""
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    with pyplot.rc_context({"font.size": 9, "text.color": _INK, "axes.labelcolor": _INK}):
        figure, axes = pyplot.subplots(
            1, len(titles), figsize=(7.2, height), facecolor=_PAPER, squeeze=False
        )
        for axis, title in zip(axes[0], titles, strict=True):
            axis.set_facecolor(_PAPER)
            axis.set_title(title, fontsize=9.5, loc="left")
            for spine in axis.spines.values():
                spine.set_visible(False)
            axis.tick_params(length=0)
        yield list(axes[0])
        figure.tight_layout()
        path = PAGES / f"pictures/{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100, metadata={"Software": None})
        pyplot.close(figure)
        print(f"written: {path}")


def _program(name: str) -> dict[str, Any]:
    """What a program defines; it is not run."""
    return runpy.run_path(str(ROOT / f"examples/{name}.py"))


def _image(axis: Any, values: Any, **how: Any) -> None:
    axis.imshow(values, **{"cmap": "Blues", "interpolation": "nearest", **how})
    axis.set_xticks([])
    axis.set_yticks([])


@_picture("attention")
def _attention() -> None:
    attention = tcl.define(_program("attention")["ATTENTION"]).attention
    rng = np.random.default_rng(3)
    walk = rng.standard_normal((4, 48, 16), np.float32).cumsum(axis=1) / 2
    slopes = np.array([1 / 2, 1 / 8, 1 / 32, 0], np.float32)
    weights = attention(walk, walk, slopes, wanted=("P",))
    with _axes("attention", *(f"slope {slope:g}" for slope in slopes), height=2.2) as axes:
        for axis, head in zip(axes, weights, strict=True):
            _image(axis, np.sqrt(head))


@_picture("grouped_convolution")
def _grouped() -> None:
    channel = np.arange(64)
    same = channel[:, None] // 4 == channel // 4
    titles = ("a convolution: each output reads all", "16 groups: each output reads 4 channels")
    with _axes("grouped_convolution", *titles) as axes:
        for axis, read in zip(axes, (np.ones((64, 64)), same), strict=True):
            _image(axis, read, vmin=0, vmax=1.4)
            axis.set_xlabel("input channel")
            axis.set_ylabel("output channel")


@_picture("group_norm")
def _group_norm() -> None:
    norm = tcl.define(_program("group_norm")["GROUP_NORM"]).group_norm
    rng = np.random.default_rng(0)
    groups = np.arange(5)[:, None, None, None]
    images = (rng.standard_normal((1, 5, 2, 64, 64)) * (0.4 + groups / 3) + 2 * groups).astype("f")
    ones = np.ones((5, 2), np.float32)
    out, mean, var = norm(images, ones, 0 * ones)
    normalised = (images - mean[..., None, None, None]) / np.sqrt(var)[..., None, None, None]
    titles = ("five groups", "mean 0, variance 1", "after SiLU")
    with _axes("group_norm", *titles, height=2.4) as axes:
        for axis, values in zip(axes, (images, normalised, out), strict=True):
            for group in values[0]:
                axis.hist(group.ravel(), bins=60, histtype="step", linewidth=1.2)
            axis.set_yticks([])


@_picture("wavenet")
def _wavenet() -> None:
    with _axes("wavenet", "four cells, dilations 1, 2, 4, 8: an output sees 16 inputs") as (axis,):
        reached = {31}
        for layer in reversed(range(4)):
            for t in range(32):
                for tap in (t, t - 2**layer):
                    if tap >= 0:
                        lit = t in reached
                        colour, width = (_ORANGE, 1.6) if lit else (_BLUE, 0.4)
                        axis.plot([tap, t], [layer, layer + 1], color=colour, linewidth=width)
            reached |= {t - 2**layer for t in reached}
        for layer in range(5):
            axis.plot(range(32), [layer] * 32, "o", color=_INK, markersize=3)
        axis.set_yticks(range(5), ["sound", *(f"cell {n}" for n in range(1, 5))])
        axis.set_xticks([])


@_picture("kronecker")
def _kronecker() -> None:
    rng = np.random.default_rng(2)
    small = [np.round(rng.random((4, 4)) ** 2, 1) for _ in range(3)]
    whole = np.kron(np.kron(small[0], small[1]), small[2])
    titles = ("U", "V", "W", "U ⊗ V ⊗ W")
    with _axes("kronecker", *titles, height=2.4) as axes:
        for axis, matrix in zip(axes, [*small, whole], strict=True):
            _image(axis, np.sqrt(matrix))


@_picture("product_quantised")
def _product_quantised() -> None:
    compress = tcl.define(_program("product_quantised")["SEARCH"]).compress
    rng = np.random.default_rng(5)
    codes = rng.standard_normal((1, 24, 2), np.float32)
    grid = np.linspace(-2.6, 2.6, 260, dtype=np.float32)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 1, 2)
    numbers = compress(points, codes, wanted=("Byte",)).reshape(260, 260)
    title = "two numbers of a vector become the number of the nearest of 24 codes"
    with _axes("product_quantised", title, height=3.6) as (axis,):
        shuffled = rng.permutation(24)[numbers]
        _image(axis, shuffled, cmap="Pastel1", extent=(-2.6, 2.6, -2.6, 2.6), origin="lower")
        axis.plot(*codes[0].T, "o", color=_INK, markersize=4)
        axis.set_xlim(-2.6, 2.6)
        axis.set_ylim(-2.6, 2.6)


@_picture("picture_stencil")
def _picture_stencil() -> None:
    program = _program("picture_stencil")
    cbook: Any = import_module("matplotlib.cbook")
    image: Any = import_module("matplotlib.pyplot").imread(
        cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)  # of the US Navy: public domain
    )
    grey = (image[20:420:2, 100:420:2] @ [0.3, 0.59, 0.11] / 255).astype(np.float32)
    noise = np.random.default_rng(0).normal(0, 0.08, grey.shape)
    before = np.clip(grey + noise, 0, 1).astype(np.float32)
    bilateral = tcl.define(program["BILATERAL"]).bilateral
    after = bilateral(before, program["NEAR"], program["ALIKE"], wanted=("O",))
    with _axes("picture_stencil", "before", "after", height=2.5) as axes:
        for axis, picture in zip(axes, (before, after), strict=True):
            few = np.round(24 * picture)  # shades, for a small file
            _image(axis, few, cmap="gray", vmin=0, vmax=24)


@_picture("train_network")
def _train_network() -> None:
    program = _program("train_network")
    losses = [
        program["learn"](network, 200, 8, 64) for network in (program["ours"](), program["theirs"])
    ]
    with _axes("train_network", "loss; the two curves differ by less than 1e-4") as (axis,):
        axis.plot(losses[1], color=_ORANGE, linewidth=4, alpha=0.5, label="torch's layers")
        axis.plot(losses[0], color=_INK, linewidth=1, label="defs, derived gradients")
        axis.set_xlabel("step")
        axis.legend(frameon=False)


@_picture("tuned_convolution")
def _tuned_convolution() -> None:
    rng = np.random.default_rng(0)
    inputs = [
        rng.standard_normal(shape, np.float32) for shape in ((16, 16, 56, 56), (16, 16, 3, 3))
    ]
    tuner = tcl.Tuner(_program("tuned_convolution")["DILATED"], threads=1)
    config = tcl.TunerConfig(time_limit=30, seed=1)
    found = tuner.tune("dilated", inputs, config=config, progress=False)
    tried = [(n, c.time * 1e3) for n, c in enumerate(found.history) if c.time is not None]
    best = list(itertools.accumulate((time for _, time in tried), min))
    with _axes("tuned_convolution", "milliseconds of each candidate, and the best so far") as (
        axis,
    ):
        axis.plot(*zip(*tried, strict=True), "o", color=_BLUE, markersize=4, alpha=0.6)
        axis.step([n for n, _ in tried], best, where="post", color=_ORANGE, linewidth=2)
        axis.set_ylim(0, 3 * best[0])  # much slower ones are above
        axis.set_xlabel("candidate")


@_picture("tuned_with_dask")
def _tuned_with_dask() -> None:
    title = "workers of a machine compile at the same time, and measure in turns"
    with _axes("tuned_with_dask", title, height=2.6) as (axis,):
        for machine, worker in itertools.product(range(2), range(2)):
            row = 5 - 3 * machine - worker
            axis.text(
                -1, row, f"machine {machine + 1}, worker {worker + 1}", ha="right", va="center"
            )
            for job in range(4):
                start = 12 * job + 6 * worker
                axis.barh(row, 5.6, left=start, color=_BLUE, height=0.6)
                axis.barh(row, 5.6, left=start + 6, color=_ORANGE, height=0.6)
        axis.barh([], [], color=_BLUE, label="compile")
        axis.barh([], [], color=_ORANGE, label="measure")
        axis.legend(frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0, 0.02))
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_xlim(-16, 54)


@_picture("own_kernel")
def _own_kernel() -> None:
    width = 320
    picture = np.zeros((width, width), np.int32)
    whole = _program("own_kernel")["rows"].ctypes
    whole(0, width, picture.ctypes.data_as(whole.argtypes[2]), width)
    titles = ("steps until a point leaves", "steps of each row: chunks are not equal work")
    with _axes("own_kernel", *titles) as axes:
        _image(axes[0], np.log1p(picture), cmap="magma")
        axes[1].barh(range(width), picture.sum(axis=1), height=1, color=_BLUE)
        axes[1].set_ylim(width, 0)
        axes[1].set_xticks([])
        axes[1].set_yticks([])
