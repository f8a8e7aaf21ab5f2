"""Tune with many workers: a Dask cluster compiles and measures the candidates.

The program starts a local cluster with two workers, so it runs anywhere. For your own machines,
start `dask scheduler` and `dask worker` on them and pass `--scheduler tcp://HOST:PORT`. Each
machine measures one kernel at a time, however many workers it has. Workers must have the same
processor as this machine; other workers are left out.

    python examples/tuned_with_dask.py
"""

import argparse
import logging
from contextlib import ExitStack
from typing import Any

import numpy as np
from distributed import LocalCluster

import tcl
from tcl.bench.turns import compare_in_turns
from tcl.cluster import Cluster

CONVOLUTION = """
def convolution(float(N, C, W) X, float(F, C, K) Taps, float(F) Bias) -> (Y) {
    Y(n, f, w) +=! X(n, c, w + k) * Taps(f, c, k)
    Y(n, f, w) = fmax(Y(n, f, w) + Bias(f), 0)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, a short search")
    parser.add_argument("--scheduler", help="of a cluster that is there: tcp://HOST:PORT")
    given = parser.parse_args()
    n, c, f, width, taps = (2, 3, 4, 50, 5) if given.small else (8, 32, 32, 2048, 9)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, c, width), np.float32)
    Taps = rng.standard_normal((f, c, taps), np.float32)
    Bias = rng.standard_normal(f, np.float32)
    config = tcl.TunerConfig(time_limit=1 if given.small else 20)

    with ExitStack() as stack:
        address = given.scheduler
        if address is None:
            start: Any = LocalCluster  # it has no types
            local = start(
                n_workers=2,
                threads_per_worker=1,
                processes=not given.small,
                protocol="tcp://",
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            )
            address = stack.enter_context(local).scheduler_address
        cluster = stack.enter_context(Cluster(f"dask:{address}", threads=1))
        print(cluster.description.rpartition(" at ")[0])
        tuner = tcl.Tuner(CONVOLUTION, threads=1, workplace=cluster)
        found = tuner.tune("convolution", (X, Taps, Bias), config=config, progress=False)
    best = found.best.options if found.best else None  # None: the best that is known
    print(f"tuned: {best}")

    def with_numpy() -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(X, taps, axis=2)
        product = np.einsum("ncwk,fck->nfw", windows, Taps, optimize=True)
        return np.maximum(product + Bias[:, None], 0)

    tuned = tcl.compile(CONVOLUTION, "convolution", best, X, Taps, Bias, threads=1)
    default = tcl.compile(CONVOLUTION, "convolution", "mlp", X, Taps, Bias, threads=1)
    Y = tuned(X, Taps, Bias)
    np.testing.assert_allclose(Y, with_numpy(), rtol=1e-3, atol=1e-3)
    compare_in_turns(
        {
            "tcl, tuned": lambda: tuned(X, Taps, Bias, outputs=(Y,)),
            "tcl, not tuned": lambda: default(X, Taps, Bias, outputs=(Y,)),
            "NumPy": with_numpy,
        }
    )


if __name__ == "__main__":
    main()
