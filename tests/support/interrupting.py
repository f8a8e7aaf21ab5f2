"""A process that is interrupted at random again and again, and counts what came of it.

    python interrupting.py warm|cold|kernels SEED COUNT

``warm``: programs are parsed and checked; ``cold``: the grammar's tables are made as well;
``kernels``: programs are compiled and run. The last line is JSON: how often the result was right,
how often there was ``KeyboardInterrupt``, and sentences about all else.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tcl
from tcl.bench.rows import EXAMPLES
from tcl.grammar.check.definitions import check

TEXTS = [t for t in (p.read_text("utf-8") for p in sorted(EXAMPLES.glob("*.tc"))) if len(t) < 1500]


def fresh_folder() -> None:
    """Nothing is kept any more."""
    shutil.rmtree(os.environ["TCL_CACHE_DIR"], ignore_errors=True)


def ran(text: str) -> object:
    """What a program with a number in it computes; compiled anew."""
    inputs = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    return np.asarray(tcl.define(text).f(inputs)).tolist()


def kernel(number: int) -> str:
    return f"def f(float(M, N) A) -> (B) {{ B(m) +=! A(m, n) * {number} + exp(A(m, n) * 0) }}"


class Counts:
    def __init__(self) -> None:
        self.right = self.interrupted = 0
        self.wrong: list[str] = []

    def interrupt(self, seconds: float, work: Callable[[], object], expected: object) -> None:
        """Do the work, and interrupt it after so long if it is not done by then."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                found = work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            self.interrupted += 1
        except BaseException as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
        else:
            if found == expected:
                self.right += 1
            else:
                self.wrong.append(f"another result: {found}"[:1000])


def main(kind: str, seed: int, count: int) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    chance, counts = random.Random(seed), Counts()
    expected = {text: check(text) for text in TEXTS}
    for number in range(count):
        if kind == "kernels":
            text = kernel(number)
            inputs = np.arange(24.0, dtype=np.float32).reshape(4, 6)
            result: object = (inputs * np.float32(number) + 1).sum(1, dtype=np.float32).tolist()
        else:
            text = chance.choice(TEXTS)
            result = expected[text]
        work: Callable[[str], object] = ran if kind == "kernels" else check
        if number % 50 == 0:  # how long it takes now
            if kind == "cold":
                fresh_folder()
            begin = time.perf_counter()
            work(kernel(-number) if kind == "kernels" else text)
            span = time.perf_counter() - begin
        if kind == "cold":
            fresh_folder()
        seconds = 1e-6 + chance.random() * 1.1 * span
        counts.interrupt(seconds, functools.partial(work, text), result)
    print(json.dumps(vars(counts)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCL_CACHE_DIR"] = str(Path(folder) / "cache")
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
