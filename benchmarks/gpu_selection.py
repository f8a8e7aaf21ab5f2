"""The candidate that a model puts first on recorded GPU spaces, of those it has not learned from.

    python -m benchmarks.gpu_selection --out FILE

Ten parts of each space in turn, for which a model of 2,000 rows of the others selects, as in
``benchmarks.transfer``. ``knobs``: it knows the values of the knobs alone; ``counted``: also what
follows from them for the kernel and the GPU, as the tuner's own models do. See
``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.replay import RecordedSpace, load_space
from benchmarks.search import SPACES
from benchmarks.transfer import _LEARNT, _SLOW, _best, _ratio, parts_of, rows_of
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config
from tcl.tuner.training.evaluate import Score

SETTINGS = Boosting(rate=0.25, columns=0.5, rows=1.0)
"""A space is one problem, of which a tree may learn faster."""
_OTHERS = 24
"""Registers of a thread for addresses and counters, about."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What the counts ask of a GPU, from its vendor's tables."""

    multiprocessors: int
    threads: int
    """That a multiprocessor holds."""
    shared: int
    """Bytes of a multiprocessor."""
    registers: int
    """Of 32 bits, of a multiprocessor."""
    blocks: int
    """That a multiprocessor holds."""
    warp: int


GPUS = {
    "A100": Gpu(108, 2048, 164 << 10, 65536, 32, 32),
    "W7800": Gpu(70, 2048, 128 << 10, 131072, 32, 32),
    "MI250X": Gpu(110, 2048, 64 << 10, 131072, 32, 64),
    "W6600": Gpu(28, 2048, 128 << 10, 131072, 32, 32),
    "RTX3090": Gpu(82, 1536, 100 << 10, 65536, 16, 32),
}


def _residency(gpu: Gpu, threads: Floats, blocks: Floats, shared: Floats, held: Floats) -> Floats:
    """Of blocks with so many threads, bytes of shared memory and results of a thread: how many a
    multiprocessor holds, and how often the GPU is filled (N x 8)."""
    whole = np.ceil(threads / gpu.warp) * gpu.warp
    limits = (
        gpu.threads // whole,
        gpu.shared // np.maximum(shared, 1),
        gpu.registers // (whole * (_OTHERS + held)),
    )
    resident = np.maximum(1, np.minimum.reduce([*limits, np.full(len(whole), gpu.blocks)]))
    waves = blocks / (resident * gpu.multiprocessors)
    return np.column_stack(
        [
            *(np.log2(threads), threads / whole, np.log2(blocks), np.log2(np.maximum(shared, 1))),
            *(resident, resident * whole / gpu.threads, np.log2(waves), np.ceil(waves) / waves),
        ]
    )


def _convolution(knobs: Floats, gpu: Gpu) -> Floats:
    """Of 4096 x 4096 pixels with a filter of 15 x 15."""
    across, down, wide, high, _, padded, staged, _, filter_height, filter_width = knobs.T
    width, height, held = across * wide, down * high, wide * high
    blocks = np.ceil(4096 / width) * np.ceil(4096 / height)
    read = width + filter_width - 1, height + filter_height - 1
    loads = np.ceil(read[0] / across) * across, np.ceil(read[1] / down) * down
    own = (
        *(np.log2(width), np.log2(height), held, wide / high),
        np.log2(blocks * width * height / 4096**2),
        np.log2(read[0] * read[1] / (width * height)),
        *(read[0] % 32, (read[0] + padded) % 32, np.gcd(read[0].astype(int), 32)),
        *(across % 32, np.gcd(across.astype(int), 32)),
        *(loads[0] / read[0], loads[1] / read[1], np.log2(loads[0] * loads[1])),
        *(wide * staged, high * staged),
    )
    shared = np.where(staged > 0, read[0] * read[1] * 4, 0)
    fullness = _residency(gpu, across * down, blocks, shared, held)
    return np.column_stack([fullness, *own])


def _dedispersion(knobs: Floats, gpu: Gpu) -> Floats:
    """Of 24,400 samples and 2,048 measures."""
    across, down, _, wide, high, strided, stepped, _ = knobs.T
    width, height, held = across * wide, down * high, wide * high
    blocks = np.ceil(24400 / width) * np.ceil(2048 / height)
    own = (
        *(np.log2(width), np.log2(height), np.log2(across), np.log2(down), held),
        np.log2(blocks * width * height / (24400 * 2048)),
        *(width % 32, height % 32, np.gcd(down.astype(int), 64), wide * strided, high * stepped),
    )
    nothing = np.zeros(len(knobs))
    return np.column_stack([_residency(gpu, across * down, blocks, nothing, held), *own])


def _gemm(knobs: Floats, gpu: Gpu) -> Floats:
    """Of 4096 x 4096 matrices."""
    m, n, k, m_threads, n_threads, a_threads, b_threads, _, m_lanes, n_lanes = knobs.T[:10]
    a_staged, b_staged = knobs.T[12:14]
    threads, own_m, own_n = m_threads * n_threads, m / m_threads, n / n_threads
    own = (
        *(np.log2(own_m), np.log2(own_n), own_m * own_n),
        *(np.log2(m * n / (m + n)), np.log2(own_m * own_n / (own_m + own_n))),
        *(np.log2(m / a_threads / m_lanes), np.log2(n / b_threads / n_lanes)),
        *(np.log2(own_m / m_lanes), np.log2(own_n / n_lanes)),
        *(np.log2(threads / a_threads), np.log2(threads / b_threads)),
        *(a_staged * m_lanes, b_staged * n_lanes),
        *(np.log2(m_threads * m_lanes), np.log2(n_threads * n_lanes)),
        *(np.log2(a_threads * m_lanes), np.log2(b_threads * n_lanes)),
    )
    shared = (a_staged * k * m + b_staged * k * n) * 4
    blocks = (4096 / m) * (4096 / n)
    return np.column_stack([_residency(gpu, threads, blocks, shared, own_m * own_n), *own])


def _pnpoly(knobs: Floats, gpu: Gpu) -> Floats:
    """Of 20,000,000 points."""
    between, threads, held, method = knobs.T
    blocks = np.ceil(20e6 / (threads * held))
    fullness = _residency(gpu, threads, blocks, np.zeros(len(knobs)), held)
    return np.column_stack([fullness, between * 3 + method, threads * held])


COUNTED: dict[str, Callable[[Floats, Gpu], Floats]] = {
    "convolution": _convolution,
    "dedispersion": _dedispersion,
    "gemm": _gemm,
    "pnpoly": _pnpoly,
}


def features(space: RecordedSpace, configs: Sequence[Config], *, counted: bool) -> Floats:
    """N x F: the numbers of the knobs, and what follows from them."""
    rows = rows_of(configs)
    if not counted:
        return rows
    kernel, gpu = space.name.split("_")
    return np.column_stack([rows, COUNTED[kernel](rows, GPUS[gpu])])


def selected(space: RecordedSpace, settings: Boosting, *, counted: bool) -> list[float]:
    """Best time / time of the selected candidate, of each part."""
    parts, found = parts_of(space), []
    for k, part in enumerate(parts):
        others = [c for j, each in enumerate(parts) if j != k for c in each]
        learnt = Random(k).sample(others, min(_LEARNT, len(others)))
        pairs = [(c, t) for c in learnt if (t := space.times[c]) is not None]
        logs = np.log([t for _, t in pairs])
        weights = np.exp(_SLOW * (logs.min() - logs))
        every = features(space, [*(c for c, _ in pairs), *part], counted=counted)
        problem = np.zeros(len(pairs), np.int64)
        forest = train(Examples(every[: len(pairs)], logs, problem, weights), settings)
        members = forest.predict(every[len(pairs) :])
        best = Prediction(members.mean(axis=0), members.std(axis=0)).best
        found.append(_ratio(space, part[best], _best(space, part)))
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_selection", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--spaces", default="", help="names, with commas between; default: all")
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    known = {p.name.removesuffix(".csv.gz"): p for p in sorted(SPACES.glob("*.csv.gz"))}
    names = given.spaces.split(",") if given.spaces else [*known]
    rows: list[dict[str, Any]] = []
    for name in names:
        space = load_space(known[name])
        for who, settings in (("knobs", Boosting()), ("counted", SETTINGS)):
            ratios = selected(space, settings, counted=who == "counted")
            score = Score.from_ratios(ratios)
            print(
                f"{name:<22} {who:<8} mean {score.mean:.3f}  10th percentile {score.tenth:.3f}  "
                f"least {score.least:.3f}",
                flush=True,
            )
            rows.append({"space": name, "model": who, **asdict(score), "parts": ratios})
    for who in ("knobs", "counted"):
        means = [row["mean"] for row in rows if row["model"] == who]
        print(f"{len(means)} spaces, {who}: mean {fmean(means):.3f}")
    if given.out is not None:
        data = {"date": time.strftime("%Y-%m-%d"), "recorded": True, "selected": rows}
        given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
