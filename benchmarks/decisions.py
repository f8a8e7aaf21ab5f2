"""Shows how often the finals of a search find the best kernel in spite of noise.

    python -m benchmarks.decisions [--decisions 1000] [--out FILE]

Kernels have known times. The finals read these times with artificial or recorded noise: see
``tests/support/decisions.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.common import command, write

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from decisions import decided, recorded, rough, summary


def main() -> None:
    parser = command("decisions", __doc__)
    parser.add_argument("--decisions", type=int, default=1000)
    given = parser.parse_args()
    noises = {"made up": rough, "quiet": recorded("quiet"), "loaded": recorded("loaded")}
    found = {
        name: summary([decided(seed, noise) for seed in range(given.decisions)])
        for name, noise in noises.items()
    }
    for name, values in found.items():
        print(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()))
    write(given.out, found)


if __name__ == "__main__":
    main()
