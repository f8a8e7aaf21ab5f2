"""The command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"


def tcl(
    *arguments: str | Path, cache: Path | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "120"}
    if cache is not None:
        environment["TCL_CACHE_DIR"] = str(cache)
    return subprocess.run(
        [sys.executable, "-m", "tcl", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        input=stdin,
        timeout=300,
        check=False,
    )
