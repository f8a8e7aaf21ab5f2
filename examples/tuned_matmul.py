"""Tune a matrix product once; let every later process use what was found.

A search takes a minute and is worth it for sizes that come back for days. What it finds is kept in
the tuning cache, a file, under the def, the sizes, the machine and the number of threads. A process
that defines the same operator later, with no word about tuning, gets the tuned kernel.

    python examples/tuned_matmul.py
"""

import argparse
import subprocess
import sys

import numpy as np

import tcl
from tcl.bench.turns import compare_in_turns

TMM = """
def tmm(float(M, K) A, float(N, K) B) -> (C) {
    C(m, n) +=! A(m, k) * B(n, k)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small matrices, a short search")
    parser.add_argument("--later", action="store_true", help="be the later process: do not tune")
    given = parser.parse_args()
    m, n, k = (24, 40, 56) if given.small else (128, 512, 1024)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, k), np.float32)
    B = rng.standard_normal((n, k), np.float32)

    if not given.later:
        config = tcl.TunerConfig(generations=1, population=4) if given.small else None
        best = tcl.autotune(TMM, "tmm", A, B, tuner_config=config, store_to_cache=True)
        print(f"tuned: {best}", flush=True)
        subprocess.run([sys.executable, __file__, "--later", *sys.argv[1:]], check=True)
        return

    tuned = tcl.compile(TMM, "tmm", None, A, B)  # None: the best that is known
    default = tcl.compile(TMM, "tmm", "mlp", A, B)  # a preset, which nobody had to search for
    print(f"a later process uses: {tuned.options}")
    C = tuned(A, B)
    np.testing.assert_allclose(C, A @ B.T, rtol=1e-4, atol=1e-3)

    ours, theirs = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    compare_in_turns(
        {
            "tcl, tuned": lambda: tuned(A, B, outputs=(ours,)),
            "tcl, not tuned": lambda: default(A, B, outputs=(ours,)),
            "NumPy": lambda: np.matmul(A, B.T, out=theirs),
        }
    )


if __name__ == "__main__":
    main()
