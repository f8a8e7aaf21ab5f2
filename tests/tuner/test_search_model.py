"""The model of the screened search, and recorded spaces."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from places import ROOT

from benchmarks.search import load_space, replay
from tcl.codegen.options.knobs import Knob
from tcl.tuner.space.search_space import SearchSpace
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.gaussian import Features, GaussianProcess, cholesky, inverse, solve
from tcl.tuner.strategies.strategy import SearchSettings

SPACE = SearchSpace(
    (
        Knob("tile", (0, 1, 3, 7, 15), 0, ordered=True),
        Knob("fixed", (4,), 4, ordered=True),
        Knob("order", ("a", "b", "c"), "a", ordered=False),
        Knob("width", (1, 2, 4, 8, 16, 32), 1, ordered=True),
    )
)


def test_triangular_algebra_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 60):
        root = rng.standard_normal((size, size))
        matrix = root @ root.T + np.eye(size)
        lower = cholesky(matrix)
        np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), atol=1e-10)
        right = rng.standard_normal((size, 3))
        np.testing.assert_allclose(lower @ solve(lower, right), right, atol=1e-10)
        np.testing.assert_allclose(inverse(lower) @ matrix, np.eye(size), atol=1e-8)


def test_features_are_one_choice_for_each_knob_that_has_one() -> None:
    """And one more where numbers are not powers of two: how odd they are."""
    features = Features(SPACE)
    rows = features.rows([(0, 4, "a", 1), (15, 4, "c", 1), (3, 4, "c", 32)])
    np.testing.assert_array_equal(rows, [[0, 0, 0, 0], [4, 2, 0, 4], [2, 2, 5, 2]])
    # log2(1 + tile), from 0 to 1; orders are alike or not; log2 of the odd part, from 0 to 1.
    odd = np.log(3) / np.log(15)
    apart = features.table.take(features.pairs(rows[[0, 0]], rows[[1, 2]]))
    np.testing.assert_allclose(apart, np.array([[1, 0.25], [1, 1], [0, 1], [1, odd**2]]))
    one, other, both = 3, 2.25 + odd**2, 1.25 + (1 - odd) ** 2
    expected = np.array([[0, one, other], [one, 0, both], [other, both, 0]])
    np.testing.assert_allclose(features.distances(rows, rows), expected)


def measured(count: int, seed: int) -> tuple[Features, np.ndarray, np.ndarray]:
    features, rng = Features(SPACE), Random(seed)
    configs = [c for c in (SPACE.sample(rng) for _ in range(count)) if c is not None]
    rows = features.rows(configs)
    tile, width = rows[:, 0] / 4, rows[:, 2] / 5
    values = 2 * tile + (rows[:, 1] == 2) + tile * width
    return features, rows, (values - values.mean()) / values.std()


def test_gradient_is_that_of_the_likelihood() -> None:
    features, rows, values = measured(25, 1)
    process = GaussianProcess(features)
    first, second = np.triu_indices(len(rows), 1)
    pairs = features.pairs(rows[first], rows[second])
    logs = process._logs + 0.1
    _, slope = process._loss(logs, pairs, values)
    step = 1e-5
    for i, value in enumerate(slope):
        away = np.eye(len(logs))[i] * step
        above = process._loss(logs + away, pairs, values)[0]
        below = process._loss(logs - away, pairs, values)[0]
        assert value == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)


def test_model_predicts_what_it_has_not_seen() -> None:
    features, rows, values = measured(70, 2)
    process = GaussianProcess(features)
    for _ in range(3):
        process.fit(rows[:40], values[:40])
    posterior = process.posterior(rows[:40], values[:40], rows)
    assert np.abs(posterior.mean[:40] - values[:40]).max() < 0.1
    assert np.corrcoef(posterior.mean[40:], values[40:])[0, 1] > 0.97
    assert posterior.spread.min() > 0


def test_uncertainty_shrinks_around_what_is_chosen() -> None:
    """As it would with the measurement, whatever its result."""
    features, rows, values = measured(30, 3)
    process = GaussianProcess(features)
    before = process.posterior(rows[:10], values[:10], rows[10:])
    spread = before.spread
    before.chosen(0)
    before.chosen(5)
    also = [*range(10), 10, 15]
    after = process.posterior(rows[also], values[also], rows[10:])
    ratio = before.spread / after.spread
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert (before.spread <= spread).all()


def write(path: Path, text: str) -> Path:
    with gzip.open(path, "wt") as file:
        file.write(text)
    return path


def test_recorded_space_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "kernel_gpu.csv.gz",
        "block,order,flag,share,time_ms\n"
        "64,ab,0,0.5,2.0\n8,ba,1,0.25,\n16,ab,1,1.5,1.0\n64,ba,1,0.5,4.0\n8,ab,1,0.25,3.0\n",
    )
    space = load_space(path)
    assert space.name == "kernel_gpu"
    assert [k.choices for k in space.knobs] == [
        (8, 16, 64),
        ("ab", "ba"),
        (0, 1),
        ("0.25", "0.5", "1.5"),
    ]
    assert [k.ordered for k in space.knobs] == [True, False, False, True]
    assert space.cardinality == 36
    assert len(list(space.enumerate())) == 5
    assert space.optimum == 1e-3
    assert space.times[(8, "ba", 1, "0.25")] is None
    assert not space.valid((16, "ba", 1, "1.5"))
    for name in ("random", "genetic", "screened", "exhaustive"):
        times = replay(make_strategy(name, space, Random(0), SearchSettings()), space, 100)
        assert sorted(t or 0.0 for t in times) == [0.0, 1e-3, 2e-3, 3e-3, 4e-3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "last column is time_ms was expected"),
        ("a,b\n1,2\n", "last column is time_ms was expected"),
        ("a,time_ms\n", "last column is time_ms was expected"),
        ("a,time_ms\n1,2\n1\n", "rows of different length"),
        ("a,time_ms\n1,2\n1,3\n", "a configuration is there twice"),
    ],
)
def test_what_is_no_recorded_space_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_space(write(tmp_path / "x.csv.gz", text))


DIGEST = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from random import Random
from test_strategies import rugged_space, search
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.strategy import SearchSettings
found = search(make_strategy("screened", rugged_space(), Random(5), SearchSettings()), 150)
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""


def test_same_run_in_every_process_with_any_number_of_threads() -> None:
    def digest(hash_seed: str, threads: str) -> str:
        path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONHASHSEED": hash_seed,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
        }
        command = [sys.executable, "-c", DIGEST, str(Path(__file__).parent)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert digest("1", "1") == digest("2", "4")


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="runs in the source tree only")
def test_benchmark_of_the_strategies(tmp_path: Path) -> None:
    rng = Random(0)
    rows = [
        f"{a},{b},{c},{1 + (a - 20) ** 2 / 50 + abs(b - 4) * (1 + c) + rng.random() / 10}"
        for a in range(1, 40, 2)
        for b in (1, 2, 4, 8, 16)
        for c in range(4)
    ]
    write(tmp_path / "bowl.csv.gz", "a,b,c,time_ms\n" + "\n".join(rows) + "\n")
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks.search", "--quick", "--spaces", str(tmp_path)]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "all, 5 repeats" in done.stdout
    pooled = {row["strategy"]: row for row in json.loads(out.read_text())["pooled"]}
    assert pooled["screened"]["reached"][1] > pooled["random"]["reached"][1] + 0.02
    assert pooled["screened"]["good"] == 1.0
    none = subprocess.run(
        [*command, "--strategies", "luck"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert none.returncode == 2
    assert "there is no strategy 'luck'" in none.stderr
