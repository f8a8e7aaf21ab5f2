"""What a kernel for classes of all sizes of a def takes to compile here: defs of the examples, and
products of narrow numbers.

    python -m benchmarks.compiling_classes                  # the large sizes of each def
    python -m benchmarks.compiling_classes --label test --slowest 20 --out FILE

Seconds are those of this thread alone: of what comes before code is written (for the most part
choices by a model of the machine), of writing it, and of LLVM.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.common import command, write
from tcl.arrays.annotations import read_annotations
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.varying import scheduled_for_all
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import CompileError, OptionsError
from tcl.executors.size_classes import ForAll
from tcl.grammar.check.definitions import check
from tcl.grammar.sizes.size_classes import classes_of
from tcl.grammar.sizes.varying import Undecided
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef

PRODUCT = "def {0}(T(M, K) A, T(K, N) B) -> (C) {{ C(m, n) +=! S(A(m, k)) * S(B(k, n)) }}"
PRODUCTS = {"int8": "int32", "bfloat16": "float", "float16": "float", "float": "float"}
Case = tuple[CheckedDef, Mapping[str, int]]


def cases(label: str) -> Iterator[Case]:
    """Defs, and sizes that classes are looked for."""
    for type_, sum_ in PRODUCTS.items():
        text = (
            PRODUCT.format(f"product_{type_}").replace("T(", f"{type_}(").replace("S(", f"{sum_}(")
        )
        for definition in check(text).values():
            yield definition, dict.fromkeys(definition.sizes, 300)
    for path in sorted((Path(__file__).parent.parent / "examples").glob("*.tc")):
        for definition in check(path.read_text(encoding="utf-8"), path.name).values():
            known = read_annotations(definition).sizes
            if definition.sizes and known:
                yield definition, known.get(label) or next(iter(known.values()))


def taken(definition: CheckedDef, sizes: Mapping[str, int]) -> dict[str, float]:
    """Seconds of each part, and lines of code; what fails for wide classes is counted, too."""
    device, start = replace(host_cpu(), threads=1), time.thread_time()
    for classes in classes_of(sizes, definition.sizes):
        try:
            all_ = ForAll.for_sizes(definition, sizes, classes)
            options = MappingOptions("mlp")
            made, built = scheduled_for_all(all_.symbolic, options, device, asked=False)
            scheduled = time.thread_time()
            text = emit_program(built, made.target).text
        except (Undecided, SourceError, OptionsError, CompileError):
            continue
        written = time.thread_time()
        compile_object(text, made.target)
        parts = (scheduled - start, written - scheduled, time.thread_time() - written)
        found = dict(zip(("before", "written", "llvm"), parts, strict=True))
        return {"all": sum(parts), **found, "lines": text.count("\n")}
    return {"all": time.thread_time() - start, "before": time.thread_time() - start}


def main() -> None:
    parser = command("compiling_classes", __doc__)
    parser.add_argument("--label", default="large", help="which sizes of the defs' comments")
    parser.add_argument("--slowest", type=int, default=12, help="defs that are printed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {d.name: taken(d, sizes) for d, sizes in cases(given.label)}
    slowest = sorted(found.items(), key=lambda each: -each[1]["all"])
    for name, parts in slowest[: given.slowest]:
        text = "  ".join(f"{part} {value:6.2f}" for part, value in parts.items() if part != "lines")
        print(f"{name:32} {text}  lines {parts.get('lines', 0):6.0f}")
    print(f"{len(found)} defs: {sum(parts['all'] for parts in found.values()):.1f} s")
    write(given.out, {"defs": found})


if __name__ == "__main__":
    main()
