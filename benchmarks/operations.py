"""Measures what an operator, a cast or a built-in costs an element, with 4096 in the first cache.

    python -m benchmarks.operations                  # half a minute
    python -m benchmarks.operations --only / % erfinv

What takes as long as a copy, and a vector of lanes besides, is a few instructions. Where a number
stands out, LLVM or the C library works on one lane after the other: look at `tcl show --stage asm`.
Times are the least of some calls, less that of a copy, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import tcl
from benchmarks.common import command, write
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax.types import SCALAR_TYPES

COUNT = 4096
CALLS = 60
NAMES = "XYZW"
FLOATS = ("float32", "float64")
TYPES = tuple(name for name in SCALAR_TYPES if name not in ("bool",))


def operations() -> Iterator[tuple[str, str, str]]:
    """The formula, the type of its operands, and of its result."""
    for name, count in BUILTINS.items():
        operands = ", ".join(f"{n}(i)" for n in NAMES[:count])
        for type_ in FLOATS:
            yield f"{name}({operands})", type_, type_
    for type_ in TYPES:
        for op in "+-*/%":
            yield f"X(i) {op} Y(i)", type_, type_
        yield "X(i) / 3", type_, type_
        yield "X(i) % 3", type_, type_
        yield "max(X(i), Y(i))", type_, type_
        yield "X(i) > Y(i) ? X(i) : Y(i)", type_, type_
        for other in TYPES:
            if other != type_:
                yield f"{other}(X(i))", type_, other


def seconds(formula: str, type_: str, result: str) -> float:
    """Of a call that computes ``COUNT`` of them, the least of ``CALLS``."""
    names = [n for n in NAMES if f"{n}(i)" in formula]
    inputs = ", ".join(f"{type_}(N) {n}" for n in names)
    text = f"def f({inputs}) -> ({result}(N) O) {{ O(i) = {formula} }}"
    rng = np.random.default_rng(0)
    dtype = numpy_dtype(SCALAR_TYPES[type_])
    values = rng.uniform(0.1, 0.9, COUNT) if "float" in type_ else rng.integers(1, 100, COUNT)
    arrays = [rng.permutation(values).astype(dtype) for _ in names]
    kernel = tcl.define(text, threads=1).f
    outputs = kernel(*arrays)
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        kernel(*arrays, outputs=outputs)
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    parser = command("operations", __doc__)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="those whose formula has one of these"
    )
    given = parser.parse_args()
    copy = seconds("X(i)", "float32", "float32")
    found = [
        (max(0.0, seconds(*operation) - copy) / COUNT, operation)
        for operation in operations()
        if any(part in operation[0] for part in given.only)
    ]
    found.sort(reverse=True)
    for each, (formula, type_, _) in found:
        print(f"{formula:30} {type_:9} {each * 1e9:8.2f} ns")
    rows = [{"formula": f, "type": t, "result": r, "seconds": each} for each, (f, t, r) in found]
    write(given.out, {"rows": rows})


if __name__ == "__main__":
    main()
