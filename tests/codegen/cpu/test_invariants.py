"""What iterations of a loop share is computed before it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cpu_kernels import sized_of

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.emit.repeats import repeat
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan

ROWS = "def f(float(N, D) X, float(N) S) -> (O) { O(n, d) = X(n, d) * S(n) }"
SUMS = "def f(float(N, D) X) -> (S, O) { S(n) +=! X(n, d) O(n, d) = X(n, d) - S(n) }"
ROOTS = "def f(float(N, D) X) -> (O) { O(n, d) = X(n, d) * sqrt(float(n)) }"
PLACES = "def f(float(N, D) X) -> (O) { O(n, d) = X(n, d) * float((d * d + 7) / 48) }"
SOFTMAX = """def f(float(N, D) I) -> (O, Most, Total) {
    Most(n) max=! I(n, d) Total(n) +=! exp(I(n, d) - Most(n))
    O(n, d) = exp(I(n, d) - Most(n)) / Total(n) }"""
CHOICE = """def f(float(2, N, D) X, float(N) S) -> (O) {
    O(c, n, d) = X(c, n, d) * (c == 0 ? cospi(S(n)) : sinpi(S(n))) }"""
PLACED = """def f(float(G, D) X, int32(G) K, float(G) S, float(2, N) B) -> (H) {
    H(c, n) = B(c, n)
    H(c, K(g) + d) += K(g) + d < N ? X(g, d) * (c == 0 ? cospi(S(g)) : sinpi(S(g))) : 0 }"""
ENDS = Val("%n", "i64")


@pytest.mark.parametrize(
    ("text", "shapes", "what", "depths"),
    [
        (ROWS, [(64, 256), (64,)], " load float,", {1}),
        (ROWS, [(64, 256), (64,)], " load <16 x float>,", {2}),
        (SUMS, [(64, 4096)], " load float,", {1, 2}),
        (ROOTS, [(64, 256)], "call float @llvm.sqrt", {1}),
        (PLACES, [(64, 64)], " sdiv <16 x i32>", {0}),
        (CHOICE, [(2, 640, 1024), (640,)], "call float @tcl_cospi", {2, 3}),
        (PLACED, [(64, 256), (64,), (64,), (2, 999)], "call float @tcl_sinpi", {2}),
    ],
    ids=["shared", "own", "sums", "roots", "places", "choice", "scatter"],
)
def test_depths(text: str, shapes: list[tuple[int, ...]], what: str, depths: set[int]) -> None:
    """How many loops are around what a row shares, and around what it does not. Sums are stored in
    the loop over rows: they are read in it, before the one over a row, but for ends of rows, of
    which there may be none. Where a vector may be left out at an end, a choice is made there."""
    lines = _emitted(text, shapes)[0].splitlines()
    assert {depth for depth, line in _with_depths(lines) if what in line} == depths


def test_what_is_put_before_a_loop_of_a_builder() -> None:
    """Reads of what no iteration writes, if they may be made in vain; operations without side
    effects, but no divisions by what may be 0; each once."""
    b, found = Builder(), list[str]()

    def each(own: Val) -> None:
        with_own = b.binary("add", own, ENDS)
        b.binary("mul", ENDS, ENDS)
        b.binary("mul", ENDS, ENDS)
        b.binary("udiv", ENDS, Val("5", "i64"))
        b.binary("udiv", Val("5", "i64"), ENDS)
        for tensor, total in (("read", True), ("read too", False), ("written", True)):
            b.total = total
            b.load(tensor, f"load float, ptr %{tensor.replace(' ', '_')}", "float")
        b.total = True
        b.load(
            "read", f"load float, {b.op(f'getelementptr i8, ptr %x, {with_own}', 'ptr')}", "float"
        )

    repeat(b, Val("0", "i64"), ENDS, 1, each, False, {"written"})
    depths = [
        f"{depth} {line.split(' = ')[1]}"
        for depth, line in _with_depths(b.finished())
        if " = " in line
    ]
    found = [re.sub(r"%v\d+", "%v", line) for line in depths if "phi" not in line]
    assert found == [
        "0 mul i64 %n, %n",
        "0 udiv i64 %n, 5",
        "0 load float, ptr %read",
        "1 add i64 %v, %n",
        "1 udiv i64 5, %n",
        "1 load float, ptr %read_too",
        "1 load float, ptr %written",
        "1 getelementptr i8, ptr %x, i64 %v",
        "1 load float, ptr %v",
        "1 add nuw nsw i64 %v, 1",
        "1 icmp ne i64 %v, %n",
    ]  # fmt: skip


def test_what_is_known_where_a_condition_leads_is_known_behind_it() -> None:
    """And what was read, unless it was written meanwhile."""
    b = Builder()
    text = "load float, ptr %x"
    first, product = b.load("x", text, "float"), b.binary("mul", ENDS, ENDS)
    b.branch_if(Val("%c", "i1"), "then", "after")
    b.start("then")
    assert b.load("x", text, "float") == first
    assert b.binary("mul", ENDS, ENDS) == product
    only = b.binary("add", ENDS, ENDS)
    b.store("x", "store float 0.0, ptr %x")
    b.branch("after")
    b.start("after")
    assert b.binary("mul", ENDS, ENDS) == product
    assert b.load("x", text, "float") != first
    assert b.binary("add", ENDS, ENDS) != only


def test_constants_are_loaded_before_loops() -> None:
    """LLVM puts them before loops that end with their condition. The innermost loops here compute
    exponentials of rows of nine."""
    lines = assembly(*_emitted(SOFTMAX, [(20000, 9)])).splitlines()
    labels = {line.partition(":")[0]: k for k, line in enumerate(lines) if line[:1] == "."}
    jumps = [(k, line.split()[1]) for k, line in enumerate(lines) if line.startswith("\tj")]
    loops = [lines[labels[to] : k] for k, to in jumps if labels.get(to, k) < k]
    inner = [
        loop for loop in loops if not any(other != loop and other[0] in loop for other in loops)
    ]
    assert any("vfmadd" in line for loop in inner for line in loop)
    assert not any("LCPI" in line for loop in inner for line in loop)


def _with_depths(lines: list[str]) -> list[tuple[int, str]]:
    """Lines of LLVM IR, and the number of loops around each."""
    depth, found = 0, []
    for line in lines:
        depth += re.match(r"(body|chunk)\d+:", line) is not None
        depth -= re.match(r"taken\d+:", line) is not None
        found.append((depth, line))
        depth -= "!llvm.loop" in line
    return found


def _emitted(text: str, shapes: list[tuple[int, ...]]) -> tuple[str, CpuProfile]:
    """A def's default as LLVM IR, on a machine with AVX-512."""
    device = find("Zen 4")
    assert device is not None
    sized = sized_of(text, *(np.empty(shape, "f") for shape in shapes))
    made = plan(sized, MappingOptions("mlp"), device)
    return emit_program(made.scheduled(), made.target).text, made.target
