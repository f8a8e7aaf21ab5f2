"""Tune a dilated convolution once; every later process uses the result.

No library has a hand-written kernel for each dilation. The default options come from a model of the
machine, which does not see everything. A search of half a minute tries some hundred kernels. It
stores the result in a file, the tuning cache, under the def, the sizes, the machine and the number
of threads. A later process that defines the same operator gets the tuned kernel.

    python examples/tuned_convolution.py
"""

import argparse
import subprocess
import sys
from typing import Any

import numpy as np
import torch

import tcl
from tcl.bench.turns import compare_in_turns

DILATED = """
def dilated(float(N, C, H, W) I, float(F, C, 3, 3) K) -> (O) {
    O(n, f, h, w) +=! I(n, c, h + 3 * kh, w + 3 * kw) * K(f, c, kh, kw)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, a short search")
    parser.add_argument("--seconds", type=float, default=30, help="that the search may take")
    parser.add_argument("--later", action="store_true", help="be the later process: do not tune")
    given = parser.parse_args()
    n, c, size = (1, 3, 13) if given.small else (16, 16, 56)
    rng = np.random.default_rng(0)
    image = rng.standard_normal((n, c, size, size), np.float32)
    weight = rng.standard_normal((c, c, 3, 3), np.float32)

    if not given.later:
        config = tcl.TunerConfig(time_limit=given.seconds)
        if given.small:
            config = tcl.TunerConfig(generations=1, population=4)
        best = tcl.autotune(
            DILATED, "dilated", image, weight, tuner_config=config, store_to_cache=True
        )
        print(f"tuned: {best}", flush=True)
        subprocess.run([sys.executable, __file__, "--later", *sys.argv[1:]], check=True)
        return

    tuned = tcl.compile(DILATED, "dilated", None, image, weight)  # the best that is known
    default = tcl.compile(DILATED, "dilated", "mlp", image, weight)  # what nobody tuned
    print(f"a later process uses: {tuned.options}")
    i, k = torch.from_numpy(image), torch.from_numpy(weight)

    def with_torch() -> Any:
        return torch.nn.functional.conv2d(i, k, dilation=3)

    np.testing.assert_allclose(tuned(image, weight), with_torch(), rtol=1e-3, atol=1e-3)
    compare_in_turns(
        {
            "tcl, tuned": lambda: tuned(image, weight),
            "tcl, not tuned": lambda: default(image, weight),
            "torch": with_torch,
        }
    )


if __name__ == "__main__":
    main()
