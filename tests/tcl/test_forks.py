"""A fork while other threads compile: the child makes calls of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX")

PROGRAM = """
import os, signal, threading
import numpy as np
import tcl

T = tcl.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }")
ended = threading.Event()

def new_shapes(first):
    for k in range(first, 500, 3):
        if ended.is_set():
            return
        A = np.ones((k, k), "f")
        assert (T.mm(A, A) == k).all()

threads = [threading.Thread(target=new_shapes, args=(k,)) for k in (3, 4, 5)]
for thread in threads:
    thread.start()
for number in range(12):
    child = os.fork()
    if not child:
        signal.alarm(600)  # ends a child that hangs
        A = np.ones((600 + number, 7), "f")  # whose shape is new, too
        B = np.ones((7, 5), "f")
        os._exit(0 if (T.mm(A, B) == 7).all() and (T.mm(A, B) == 7).all() else 1)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))
ended.set()
for thread in threads:
    thread.join()
"""

IMPORTS = """
import os, signal, threading, time
import numpy as np
import tcl

T = tcl.define("def f(float(N) X) -> (Y) { Y(i) = X(i) + 1 }", threads=1)
X = np.ones(8, "f")
importing = threading.Thread(target=lambda: tcl.autotune)
importing.start()
children = []
for _ in range(12):
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if (T.f(X) == 2).all() else 1)
    children.append(child)
    time.sleep(0.03)
importing.join()
for child in children:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("program", [PROGRAM, IMPORTS], ids=["compile", "import"])
def test_children_of_busy_threads(program: str, tmp_path: object) -> None:
    environment = {**os.environ, "TCL_CACHE_DIR": str(tmp_path), "TCL_NUM_THREADS": "2"}
    environment.pop("TCL_TUNE_MODE", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"] * 12
