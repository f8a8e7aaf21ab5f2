"""Loops that only read, only copy, or only multiply and add, as LLVM IR; among these the
instructions that multiply narrow numbers and add up the products.

What a machine does per second of a type's multiply-adds is the rate of the best such instruction
that it has; where it has none, numbers are made wider first, and the rate is float32's.
Instructions that add up with saturation, or in the narrow type itself, are left out: long sums
would be wrong.

Each has a loop of independent sums, enough to hide its latency. Every step depends on the one
before, so that no step can be left out or moved out of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.cpu.emit.matrix import CONFIGURATION
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import MATRIX_REGISTERS, Form, Fragment, fragments
from tcl.grammar.syntax.types import BFLOAT16, FLOAT32, INT8, INT32

CHAINS = 12
"""Independent sums: enough to hide a latency of six cycles on two units."""
STREAMS = 4
"""Places of the buffer that are read side by side: processors fetch more of several streams than of
one."""

_DECLARED = """
declare {type} @llvm.fma.v{lanes}f32({type}, {type}, {type})
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {type})
"""
_FRAME = """
define float @ceiling(ptr noalias %from, ptr noalias %to, i64 %count) {{
entry:
  %x = load {type}, ptr %from, align 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add nuw nsw i64 %i, {step}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{end}
}}
!0 = !{{i32 1}}
"""
_TWO_BY_TWO = (
    Fragment(
        "smmla", (INT8, INT8), 8, INT32,
        (Form(128, "llvm.aarch64.neon.smmla.v4i32.v16i8", frozenset({"i8mm"})),),
        rows=2, columns=2,
    ),
    Fragment(
        "bfmmla", (BFLOAT16, BFLOAT16), 4, FLOAT32,
        (Form(128, "llvm.aarch64.neon.bfmmla", frozenset({"bf16"})),),
        rows=2, columns=2,
    ),
)  # fmt: skip
"""Products of two rows by two columns, which no kernel of ours uses and peers may."""


@dataclass(frozen=True, slots=True)
class DotInstruction:
    """An instruction that adds products of narrow numbers to the lanes of a wider vector."""

    fragment: Fragment
    form: Form

    @property
    def name(self) -> str:
        """LLVM's."""
        return self.form.intrinsic

    @property
    def type(self) -> str:
        """Of the numbers, one of ``tcl.codegen.loopir.cost.NARROW``."""
        factor = self.fragment.factors[0]
        return f"int{factor.bits}" if factor.is_integral else factor.name

    @property
    def total(self) -> str:
        """LLVM's type of the sums."""
        return f"<{self.form.lanes} x {'float' if self.fragment.sums.is_float else 'i32'}>"

    @property
    def operand_types(self) -> str:
        """LLVM's type of the vectors of narrow numbers."""
        factor = self.fragment.factors[0]
        number = "bfloat" if factor == BFLOAT16 else f"i{factor.bits}"
        return f"<{self.form.bits // factor.bits} x {number}>"

    @property
    def tiles(self) -> bool:
        """Whether it is one of a matrix unit, with registers of its own."""
        return self.fragment.words > 1

    @property
    def operations(self) -> int:
        """Of one instruction; a multiply-add is two."""
        each = self.fragment
        sums = each.rows * (each.columns or 0) if self.tiles else self.form.lanes
        return 2 * sums * each.words * each.depth

    @property
    def declaration(self) -> str:
        """LLVM IR."""
        if self.tiles:
            return f"declare void @{self.name}(i8 immarg, i8 immarg, i8 immarg)"
        total = f"{self.total}, " if self.fragment.adds else ""
        return (
            f"declare {self.total} @{self.name}({total}{self.operand_types}, {self.operand_types})"
        )

    def step(self, k: int) -> list[str]:
        """LLVM IR of ``%n{k}``, which is ``%s{k}`` and products more; ``%x`` are numbers."""
        total, numbers = self.total, f"{self.operand_types} %y{k}, {self.operand_types} %x"
        lines = [f"%y{k} = bitcast {total} %s{k} to {self.operand_types}"]
        if self.fragment.adds:
            return [*lines, f"%n{k} = call {total} @{self.name}({total} %s{k}, {numbers})"]
        return [
            *lines,
            f"%m{k} = call {total} @{self.name}({numbers})",
            f"%n{k} = add {total} %s{k}, %m{k}",
        ]


def dots(device: CpuProfile) -> list[DotInstruction]:
    """The instructions that a machine has, in its longest vectors."""
    own = _TWO_BY_TWO if device.architecture == "aarch64" else ()
    every = (*fragments(device), *fragments(device, matrix=True), *own)
    found = [(each, each.forms_of(device)) for each in every]
    return [DotInstruction(fragment, forms[0]) for fragment, forms in found if forms]


def peak_loops(lanes: int) -> dict[str, str]:
    """Name → LLVM IR of the functions that read, copy, and multiply and add."""
    type_ = f"<{lanes} x float>"
    unrolled = 8
    together = unrolled // STREAMS
    reads, copies = [], []
    for k in range(unrolled):
        reads += [
            f"%a{k} = mul i64 %count, {k // together}",
            f"%b{k} = getelementptr i8, ptr %from, i64 %a{k}",
            f"%o{k} = add nuw nsw i64 %i, {k % together * lanes * 4}",
            f"%p{k} = getelementptr i8, ptr %b{k}, i64 %o{k}",
            f"%v{k} = load {type_}, ptr %p{k}, align 64",
            f"%n{k} = fadd {type_} %s{k}, %v{k}",
        ]
        copies += [
            f"%o{k} = add nuw nsw i64 %i, {k * lanes * 4}",
            f"%p{k} = getelementptr i8, ptr %from, i64 %o{k}",
            f"%v{k} = load {type_}, ptr %p{k}, align 64",
            f"%q{k} = getelementptr i8, ptr %to, i64 %o{k}",
            f"store {type_} %v{k}, ptr %q{k}, align 64, !nontemporal !0",
        ]
    fmas = [
        f"%n{k} = call {type_} @llvm.fma.v{lanes}f32({type_} %s{k}, {type_} %x, {type_} %x)"
        for k in range(CHAINS)
    ]

    def timed_loop(step: int, body: list[str], end: list[str]) -> str:
        lines = {"body": "\n".join(body), "end": "\n".join(end)}
        return (_DECLARED + _FRAME).format(step=step, type=type_, lanes=lanes, **lines)

    def chained(step: int, body: list[str], chains: int, start: str) -> str:
        """A loop that goes on with ``chains`` values, whose sum it returns so that none of them can
        be left out."""
        values = [
            f"%s{k} = phi {type_} [ {start}, %entry ], [ %n{k}, %loop ]" for k in range(chains)
        ]
        end = [f"%all0 = fadd {type_} %n0, zeroinitializer"]
        end += [f"%all{k} = fadd {type_} %all{k - 1}, %n{k}" for k in range(1, chains)]
        end += [
            f"%result = call reassoc float @llvm.vector.reduce.fadd.v{lanes}f32("
            f"float 0.0, {type_} %all{chains - 1})",
            "ret float %result",
        ]
        return timed_loop(step, values + body, end)

    step = unrolled * lanes * 4
    return {
        "read": chained(step // STREAMS, reads, unrolled, "zeroinitializer"),
        "copy": timed_loop(step, copies, ["fence seq_cst", "ret float 0.0"]),
        "fma": chained(1, fmas, CHAINS, "%x"),
    }


TURNS = 400
"""How often a cache line is handed over: a tenth of a millisecond where nothing disturbs it."""


def turns_loop() -> str:
    """LLVM IR of the function that two threads call with the same counter, which begins at 0, and
    with 0 and 1: each adds one whenever it is its turn."""
    return f"""
define float @ceiling(ptr %counter, ptr %unused, i64 %own) {{
entry:
  br label %loop
loop:
  %turn = phi i64 [ %own, %entry ], [ %next, %done ]
  br label %wait
wait:
  %now = load atomic i64, ptr %counter acquire, align 8
  %mine = icmp eq i64 %now, %turn
  br i1 %mine, label %done, label %wait
done:
  %after = add i64 %turn, 1
  store atomic i64 %after, ptr %counter release, align 8
  %next = add i64 %turn, 2
  %more = icmp ult i64 %next, {TURNS}
  br i1 %more, label %loop, label %out
out:
  ret float 0.0
}}
"""


def products_loop(dot: DotInstruction) -> str:
    """LLVM IR of the function that only adds up products of narrow numbers."""
    if dot.tiles:
        return _tiles_loop(dot)
    floats = dot.total.endswith("float>")
    lanes = dot.total.split()[0].removeprefix("<")
    number, add = ("float", "fadd") if floats else ("i32", "add")
    reduce = f"llvm.vector.reduce.{add}.v{lanes}{'f32' if floats else 'i32'}"
    first = "float 0.0, " if floats else ""
    body = [
        f"%s{k} = phi {dot.total} [ zeroinitializer, %entry ], [ %n{k}, %loop ]"
        for k in range(CHAINS)
    ]
    for k in range(CHAINS):
        body += dot.step(k)
    end = [f"%all0 = {add} {dot.total} %n0, zeroinitializer"]
    end += [f"%all{k} = {add} {dot.total} %all{k - 1}, %n{k}" for k in range(1, CHAINS)]
    end.append(f"%whole = call {number} @{reduce}({first}{dot.total} %all{CHAINS - 1})")
    if not floats:
        end.append("%result = sitofp i32 %whole to float")
    else:
        end.append("%result = fadd float %whole, 0.0")
    end.append("ret float %result")
    arguments = "float, " if floats else ""
    return (
        f"{dot.declaration}\ndeclare {number} @{reduce}({arguments}{dot.total})\n"
        + _FRAME.format(type=dot.operand_types, step=1, body="\n".join(body), end="\n".join(end))
    )


def _tiles_loop(dot: DotInstruction) -> str:
    """The same in the registers of a matrix unit: all but two hold sums, and two hold zeros."""
    sums = MATRIX_REGISTERS - 2
    factors = f"i8 {sums}, i8 {sums + 1}"
    start = ["call void @llvm.x86.ldtilecfg(ptr @tcl_tiles)"]
    start += [f"call void @llvm.x86.tilezero(i8 {r})" for r in range(MATRIX_REGISTERS)]
    body = [f"call void @{dot.name}(i8 {k % sums}, {factors})" for k in range(CHAINS)]
    frame = _FRAME.format(
        type="<16 x i32>",
        step=1,
        body="\n".join(body),
        end="call void @llvm.x86.tilerelease()\nret float 0.0",
    )
    return "\n".join(
        (
            CONFIGURATION,
            "declare void @llvm.x86.ldtilecfg(ptr)",
            "declare void @llvm.x86.tilezero(i8 immarg)",
            "declare void @llvm.x86.tilerelease()",
            dot.declaration,
            frame.replace("entry:\n", "entry:\n" + "\n".join(start) + "\n"),
        )
    )
