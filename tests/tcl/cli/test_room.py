"""Too little memory for what compiles: a sentence, no crash, nothing that waits for ever."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
SENTENCE = re.compile(
    r"error: (LLVM|Numba) needs \d+ MB of address space, but the limit on it leaves \d+ MB; "
    r"raise it with `ulimit -v`\n"
)


def limited(megabytes: int, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with so much address space."""
    (tmp_path / "mm.tc").write_text(MM)
    size = megabytes << 20
    return subprocess.run(
        [sys.executable, "-m", "tcl", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={
            **os.environ,
            "TCL_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
            "OPENBLAS_NUM_THREADS": "1",  # NumPy's own takes memory for each core
        },
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )


def test_a_text_can_be_checked_with_little(tmp_path: Path) -> None:
    done = limited(300, tmp_path, "check", "mm.tc")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("megabytes", [250, 320, 400, 450, 500])
def test_where_there_is_no_room(tmp_path: Path, megabytes: int) -> None:
    """It runs, or says what it needs: LLVM, and for so many points Numba."""
    done = limited(megabytes, tmp_path, "run", "mm.tc", "-s", "M=64,N=64,K=64")
    if done.returncode == 0:
        assert done.stderr == ""
    else:
        assert done.returncode == 1
        assert SENTENCE.fullmatch(done.stderr)
    if megabytes < 300:
        assert done.returncode == 1
