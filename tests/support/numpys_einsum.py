"""NumPy's own tests of einsum, with ours beside it at every call.

    python tests/support/numpys_einsum.py [PYTEST'S ARGUMENTS]

Every call of ``numpy.einsum`` in them is made with ``tcl.einsum`` too, on the same operands. The
last lines tell how many calls agree (the same values, type and shape, or an error of both), how
many were refused with a sentence, and of how many ours gives something else; those are listed. Some
thousand kernels are compiled: this takes minutes, and is no part of the suite.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import numpy._core.tests.test_einsum as theirs
import pytest

import tcl

_TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-11}


class Beside:
    """``numpy.einsum``, which compares."""

    def __init__(self) -> None:
        self.numpys = np.einsum
        self.counts: Counter[str] = Counter()
        self.sentences: Counter[str] = Counter()
        self.listed: list[str] = []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        copies = [a.copy("K") if isinstance(a, np.ndarray) else a for a in arguments]
        ours = dict(options)
        out = options.get("out")
        if isinstance(out, np.ndarray):
            same = (c for a, c in zip(arguments, copies, strict=True) if a is out)
            ours["out"] = next(same, out.copy("K"))
        try:
            result: Any = tcl.einsum(*copies, **ours)
        except (tcl.ArgumentError, TypeError) as error:
            result = error
        except Exception as error:  # whatever it is, it is listed
            self._list("failed", f"{type(error).__name__}: {error}", arguments, options)
            return self.numpys(*arguments, **options)
        try:
            expected = self.numpys(*arguments, **options)
        except Exception:
            if isinstance(result, Exception):
                self.counts["agree: an error of both"] += 1
            else:
                self._list("accepted", "NumPy refuses it", arguments, options)
            raise
        if isinstance(result, tcl.ArgumentError):
            self.counts["refused"] += 1
            self.sentences[str(result)] += 1
        elif isinstance(result, Exception):
            self._list("failed", repr(result), arguments, options)
        elif difference := _difference(result, expected):
            self._list("wrong", difference, arguments, options)
        else:
            self.counts["agree"] += 1
        return expected

    def _list(self, verdict: str, why: str, arguments: Any, options: Any) -> None:
        self.counts[verdict] += 1
        shown = [a if isinstance(a, str | list | int) else _summary(a) for a in arguments]
        self.listed.append(f"{verdict}: {shown} {options}: {why}")


def _summary(given: Any) -> str:
    return f"{given.dtype}{given.shape}" if isinstance(given, np.ndarray) else repr(given)


def _difference(ours: Any, numpys: Any) -> str:
    ours, numpys = np.asarray(ours), np.asarray(numpys)
    if ours.dtype != numpys.dtype or ours.shape != numpys.shape:
        return f"{_summary(ours)}, not {_summary(numpys)}"
    tolerance = _TOLERANCE.get(ours.dtype.name, 0.0)
    close = np.allclose(ours, numpys, rtol=tolerance, atol=tolerance, equal_nan=True)
    return "" if close else f"{ours.ravel()[:5]}, not {numpys.ravel()[:5]}"


def main() -> int:
    """Run them; 1 if any call is wrong."""
    beside = Beside()
    np.einsum = beside
    path = theirs.__file__
    pytest.main(["-q", "-c", "/dev/null", "-p", "no:cacheprovider", path, *sys.argv[1:]])
    for line in dict.fromkeys(beside.listed):
        print(line)
    for sentence, count in beside.sentences.most_common():
        print(f"refused {count} times: {sentence}")
    print(", ".join(f"{name}: {count}" for name, count in sorted(beside.counts.items())))
    return int(any(beside.counts[verdict] for verdict in ("wrong", "failed", "accepted")))


if __name__ == "__main__":
    sys.exit(main())
