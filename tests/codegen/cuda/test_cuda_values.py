"""Values as CUDA C++: every type, operator, cast and built-in, through the host's compiler."""

from __future__ import annotations

import re
from typing import Any

import cuda_values
import numpy as np
import pytest
from cpu_kernels import Array
from cuda_checks import case_of, check_cases, work_of_text
from value_cases import Key, all_cases, check_outputs

from tcl.codegen.cuda.cpp.types import constant
from tcl.codegen.cuda.prelude.prelude import HELPERS, helpers_in
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.syntax.types import FLOAT32, FLOAT64

needs_compiler = pytest.mark.skipif(not cuda_values.COMPILER, reason="no C++ compiler (g++)")

KEYS = [pytest.param(key, id=" ".join(key)) for key in all_cases()]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, list[Array]]:
    """Everything, by one compilation."""
    outputs = cuda_values.run(list(all_cases().values()), tmp_path_factory.mktemp("values"))
    return dict(zip(all_cases(), outputs, strict=True))


@needs_compiler
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # signalling NaNs
@pytest.mark.parametrize("key", KEYS)
def test_values(key: Key, results: dict[Key, list[Array]]) -> None:
    check_outputs(key, results[key])


@needs_compiler
def test_constants_beyond_their_small_types_wrap() -> None:
    """C++ converts the others anyway, so that their conversions are left out."""
    x = np.arange(-128, 128).astype(np.int8)
    text = """def f(int8(N) X) -> (A, B, C, D) {
        A(i) = X(i) < int8(N) ? 1 : 2
        B(i) = uint8(X(i)) >= uint8(259) ? 1 : 2
        C(i) = int16(X(i)) + int16(65533)
        D(i) = uint8(X(i)) / uint8(259)
    }"""
    check_cases([case_of(work_of_text(text, x[1:]), MappingOptions("mlp"))]).none()


# What NVRTC says, which needs no GPU.


def compiled(source: str, option: str) -> Any:
    """The program after NVRTC has compiled it without a word."""
    nvrtc = pytest.importorskip("cupy.cuda", reason="NVRTC comes with CuPy").nvrtc
    program = nvrtc.createProgram(source, "values.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={option}", "--fmad=false"))
        log = nvrtc.getProgramLog(program)
        assert not log, log[:4000]
        return nvrtc.getPTX(program) if option.startswith("compute") else nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program)[:4000])
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("architecture", ["compute_75", "sm_90"])
def test_every_helper_compiles_for_gpus(architecture: str) -> None:
    """Machine code takes long, and shows what is wrong with instructions that helpers name: each
    helper is in it once."""
    few = ("int32", "uint16", "uint64", "float32")
    cases, seen = [], set[str]()
    for (kind, *rest), case in all_cases().items():
        if kind in ("casts", "rounded", "special", "mixed") or (
            kind == "operators" and rest[0] in few
        ):
            used = helpers_in(cuda_values.kernels([case]))
            if architecture == "compute_75" or not used <= seen:
                cases.append(case)
            seen |= used
    assert compiled(cuda_values.kernels(cases), architecture)
    names = list(HELPERS)
    assert set(names[: names.index("carry")]) <= seen  # the others are about memory


def test_constants_are_exact() -> None:
    """The decimals that are written give the same bits in PTX."""
    rng = np.random.default_rng(5)
    singles = rng.integers(0, 2**32, 300, np.uint32).view(np.float32)
    doubles = rng.integers(0, 2**64, 300, np.uint64).view(np.float64)
    singles, doubles = singles[np.isfinite(singles)], doubles[np.isfinite(doubles)]
    lines = [f"p[{k}] = {constant(float(x), FLOAT32)};" for k, x in enumerate(singles)]
    lines += [f"q[{k}] = {constant(float(x), FLOAT64)};" for k, x in enumerate(doubles)]
    head = 'extern "C" __global__ void f(float* p, double* q)'
    ptx = compiled(f"{head} {{ {' '.join(lines)} }}", "compute_75")
    found = {int(x) for x in re.findall(r"mov\.[bu](?:32|64) \S+ (-?\d+);", str(ptx))}
    assert {*singles.view(np.int32).tolist(), *doubles.view(np.int64).tolist()} <= found
