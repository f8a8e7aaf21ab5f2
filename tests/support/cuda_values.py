"""Values of the loop IR as CUDA C++, compiled for the CPU, each statement a plain loop."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cpu_kernels import Array, poisoned
from value_cases import Case

from tcl.codegen.cuda.cpp.types import c_type, constant, from_memory, memory_type, to_memory
from tcl.codegen.cuda.emit.writer import Expressions
from tcl.codegen.cuda.prelude.prelude import helpers_in, prelude
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.lower import lower
from tcl.grammar.syntax.types import ScalarType

COMPILER = shutil.which("g++")

SHIM = r"""
#include <cmath>
#include <cstring>
#define TCL_EMULATED
#define __device__ static __attribute__((unused))
#define __forceinline__ inline
template <class To, class From> static To bits_as(From x)
{
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}
__device__ float __int_as_float(int x) { return bits_as<float>(x); }
__device__ float __uint_as_float(unsigned x) { return bits_as<float>(x); }
__device__ unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
__device__ long long __double_as_longlong(double x) { return bits_as<long long>(x); }
__device__ double __longlong_as_double(long long x) { return bits_as<double>(x); }
__device__ double rsqrt(double x) { return 1 / std::sqrt(x); }
__device__ float rsqrtf(float x) { return (float)rsqrt((double)x); }
__device__ double rcbrt(double x)
{
    double y = 1 / std::cbrt(x);
    if (x == 0 || y == 0) return y;
    return y + y * std::fma(-(x * y * y), y, 1.0) / 3;
}
__device__ float rcbrtf(float x) { return (float)rcbrt((double)x); }
__device__ double cospi(double x);
__device__ double sinpi(double x)
{
    double r = std::fmod(std::fabs(x), 2.0);
    bool negative = r > 1;
    if (r >= 1) r -= 1;
    if (r == 0) return std::copysign(0.0, x);
    if (r > 0.5) r = 1 - r;
    double y = r <= 0.25 ? std::sin(M_PI * r) : std::cos(M_PI * (0.5 - r));
    return negative != (x < 0) ? -y : y;
}
__device__ double cospi(double x)
{
    double r = std::fmod(std::fabs(x), 2.0);
    if (r > 1) r = 2 - r;
    bool negative = r > 0.5;
    if (negative) r = 1 - r;
    if (r == 0.5) return 0;
    double y = r <= 0.25 ? std::cos(M_PI * r) : std::sin(M_PI * (0.5 - r));
    return negative ? -y : y;
}
__device__ float sinpif(float x) { return (float)sinpi((double)x); }
__device__ float cospif(float x) { return (float)cospi((double)x); }
__device__ int negative(int a) { return (int)(0u - (unsigned int)a); }
__device__ float half_to_float(unsigned short h)
{
    unsigned body = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
    if ((h & 0x7c00u) == 0x7c00u) return __uint_as_float(body | 0x7f800000u | sign);
    return __uint_as_float(__float_as_uint(__uint_as_float(body) * 0x1p112f) | sign);
}
__device__ unsigned short float_to_half(float x)
{
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7e00u;
    if (size >= 143u << 23) return sign | 0x7c00u;
    if (size < 113u << 23)
        return sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u);
    return sign | ((size + 0xfffu - (112u << 23) + (size >> 13 & 1u)) >> 13);
}
"""


def expressions() -> Expressions:
    """Whose loads read ``p[k][i]`` style pointers named as the tensors, at the one index ``i``."""
    return Expressions(_index, _load, lambda v: v.name, _no_combined)


def _index(index: ir.Affine, t: ScalarType) -> str:
    text = "".join(f"{c} * i + " if c != 1 else "i + " for _, c in index.terms)
    whole = f"{text}{index.constant}" if index.constant or not text else text[:-3]
    return f"({c_type(t)})({whole})"


def _load(load: ir.Load) -> str:
    (subscript,) = load.ref.subscripts
    assert isinstance(subscript, ir.Affine)
    return from_memory(f"{load.ref.tensor}[i]", load.type)


def _no_combined(value: ir.Combined) -> str:
    raise AssertionError(value)


def source(cases: Sequence[Case]) -> str:
    """For the host's compiler: one function per statement."""
    return SHIM + _source(cases, 'extern "C" void')


def kernels(cases: Sequence[Case]) -> str:
    """For NVRTC: one kernel per statement."""
    return _source(cases, 'extern "C" __global__ void')


def _source(cases: Sequence[Case], kind: str) -> str:
    writer = expressions()
    functions = [
        _function(f"{kind} case{k}_{nest.name}", program, nest, writer)
        for k, program in enumerate(lower(case.sized) for case in cases)
        for nest in program.nests
    ]
    body = "\n".join(functions)
    return f"{prelude(writer.used | helpers_in(body))}\n{body}"


def _function(head: str, program: ir.Program, nest: ir.Nest, writer: Expressions) -> str:
    point = nest.point
    (dim,) = nest.dims
    loop = f"for (int i = {dim.first}; i < {dim.first + dim.extent}; ++i)"
    if point.op == "=":
        lines = [f"    {loop} {{"]
        for let in point.lets:
            text = writer.text(let.value)
            lines.append(f"        {c_type(let.value.type)} {let.name} = {text};")
        stored = writer.stored(point.value, point.type)
        lines += [f"        {point.target.tensor}[i] = {stored};", "    }", "}"]
    else:
        start = constant(identity(point.op, point.type).value, point.type)
        step = writer.accumulate(point.op, "total", point.value, point.type)
        lines = [f"    {c_type(point.type)} total = {start};", f"    {loop} {step}"]
        lines += [f"    *{point.target.tensor} = {to_memory('total', point.type)};", "}"]
    pointers = [
        f"    {element}* {tensor.name} = ({element}*)tensors[{k}];"
        for k, tensor in enumerate(program.tensors)
        for element in [memory_type(tensor.layout.type)]
        if any(re.search(rf"\b{tensor.name}\b", line) for line in lines)
    ]
    return "\n".join([f"{head}(void** tensors)", "{", *pointers, *lines])


def run(cases: Sequence[Case], folder: Path) -> list[list[Array]]:
    """The outputs of each case, by one compilation."""
    (folder / "values.cc").write_text(source(cases))
    flags = "-std=c++17 -O1 -ffp-contract=off -fno-builtin -fPIC -shared -Wall"
    made = subprocess.run(
        [COMPILER or "g++", *flags.split(), "values.cc", "-o", "values.so"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0 and not made.stderr, made.stderr[:4000]
    library = ctypes.CDLL(str(folder / "values.so"))
    results = []
    for k, case in enumerate(cases):
        program, outputs = lower(case.sized), poisoned(case.sized)
        arrays = [a.ctypes.data for a in (*case.inputs, *outputs)]
        for nest in program.nests:
            library[f"case{k}_{nest.name}"]((ctypes.c_void_p * len(arrays))(*arrays))
        results.append(outputs)
    return results
