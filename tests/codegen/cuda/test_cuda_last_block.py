"""Parts of sums that the last block to be done adds up, in the launch that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product as every

import numpy as np
import pytest
from cuda_checks import Case, case_of, check_cases, work_of_text
from cuda_modules import needs_nvrtc
from sampling import swept

from tcl.arrays.random_inputs import input_shape
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.run.compile import compile_cubin, spills
from tcl.codegen.devices.gpu import A100, B200, H200, T4
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT
from tcl.executors.size_classes import ForAll, for_all
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer

SMALL = replace(H200, multiprocessors=40)
PRODUCT = "def f(T(M, K) A, T(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
LAYER = """def f(float(M, K) A, float(K, N) B, float(N) b) -> (C, D) {
    C(m, n) +=! A(m, k) * B(k, n)
    D(m, n) = fmax(C(m, n) + b(n), 0)
}"""
MORE = """def f(float(M, K) A, float(K, N) B, float(N) b) -> (C) {
    C(m, n) = b(n) where m in 0:M
    C(m, n) += A(m, k) * B(k, n)
}"""
ROWS = "def f(T(N, D) A) -> (S) { S(n) +=! A(n, d) }"
COLUMNS = "def f(T(N, D) A) -> (S) { S(d) max=! A(n, d) }"
ALL = "def f(T(N, D) A) -> (S) { S() +=! A(n, d) }"


def product(m: int, n: int, k: int, text: str = PRODUCT, type_: str = "float") -> Case:
    generator = np.random.default_rng(m)
    dtype = {"half": "float16", "double": "float64"}.get(type_, "float32")
    shapes = [(m, k), (k, n), (n,)][: 2 if text == PRODUCT else 3]
    arrays = [generator.integers(-3, 4, s).astype(dtype) for s in shapes]
    # By default, warps share short sums.
    options = DEFAULT.with_nest(0, NestOptions(split=(0, 0, 6))) if k <= 1024 else DEFAULT
    return case_of(work_of_text(text.replace("T(", f"{type_}("), *arrays), options, SMALL)


def reduction(text: str, n: int, d: int, dtype: str = "float32") -> Case:
    type_ = {"float32": "float", "float16": "half", "float64": "double"}.get(dtype, dtype)
    array = np.random.default_rng(n).integers(-9, 9, (n, d)).astype(dtype)
    return case_of(work_of_text(text.replace("T(", f"{type_}("), array), DEFAULT, SMALL)


def test_parts_are_added_up_in_their_own_launch() -> None:
    """In every order of threads and blocks, without a race, and the count is zero again."""
    cases = [
        product(9, 21, 700),
        product(16, 30, 1024, LAYER),
        product(8, 12, 8192, MORE),
        product(8, 8, 600, type_="double"),
        product(16, 16, 512, type_="half"),
        reduction(ROWS, 2, 65536),
        reduction(ROWS, 2, 32768, "float16"),
        reduction(COLUMNS, 20000, 7, "int32"),
        reduction(ALL, 360, 256, "float64"),
        reduction(ALL, 360, 256),
    ]
    assert [len(c.module.launches) for c in cases] == [1] * len(cases)
    assert sum("last_of(" in c.module.source for c in cases) >= 8
    check_cases(cases).none()


LAYOUTS = {
    "NN": ("m, k", "k, n"),
    "NT": ("m, k", "n, k"),
    "TN": ("k, m", "k, n"),
    "TT": ("k, m", "n, k"),
}
MANY = every(("sm_80", "sm_90", "sm_100"), LAYOUTS, (1024, 2048, 4096, 8192))


@needs_nvrtc
@pytest.mark.parametrize("case", swept([("sm_90", "TN", 1024)], MANY))
def test_products_spill_nothing(case: tuple[str, str, int]) -> None:
    """With known sizes, and with one that varies."""
    architecture, layout, size = case
    device = next(d for d in (A100, H200, B200) if d.architecture == architecture)
    one, other = LAYOUTS[layout]
    text = f"def f(float({one.upper()}) A, float({other.upper()}) B) -> (C) "
    (checked,) = check(text + f"{{ C(m, n) +=! A({one}) * B({other}) }}").values()
    sizes = dict.fromkeys("MNK", size)
    known = infer(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})
    classes = [for_all(checked, sizes, (name,), device) for name in "MNK"]
    for sized in (known, *(found.symbolic for found in classes if isinstance(found, ForAll))):
        module = emit_module(sized, DEFAULT, device)
        assert spills(compile_cubin(module, device).resources) == 0


@pytest.mark.parametrize("stage", [(2, 2), (2, -1)], ids=str)
@pytest.mark.parametrize(("k", "buffers"), [(72, 3), (62, 2), (62, 1), (144, 2)])
def test_parts_end_inside_of_panels(stage: tuple[int, int], k: int, buffers: int) -> None:
    """Panels are zero where a part ends, so that products do not ask for that; what is not in a
    panel may be infinite."""
    generator = np.random.default_rng(k)
    own = NestOptions(
        chunk=(16, 16),
        tile=(0, 0, 16),
        threads=(16, 4),
        vectorize=(1, 4),
        split=(0, 0, 2),
        stage=stage,
        buffers=buffers,
    )

    def cases() -> Iterator[Case]:
        for first, second in every(("m, k", "k, m"), ("k, n", "n, k")):
            text = (
                f"def f(float({first.upper()}) A, float({second.upper()}) B) -> (C) "
                f"{{ C(m, n) +=! A({first}) * B({second}) }}"
            )
            shapes = (
                [{"m": 21, "n": 35, "k": k}[x] for x in s.split(", ")] for s in (first, second)
            )
            arrays = [generator.integers(-3, 4, s).astype("float32") for s in shapes]
            arrays[0][(3, k // 2) if first == "m, k" else (k // 2, 3)] = np.inf
            for device in (H200, T4):
                case = case_of(work_of_text(text, *arrays), DEFAULT.with_nest(0, own), device)
                asked = re.search(rf"k_(point|register|row) < {k // 2}\b", case.module.source)
                assert asked is None or -1 in stage
                yield case

    check_cases(cases()).none()
