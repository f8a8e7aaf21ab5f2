"""The matrix unit's instructions (AMX): Intel's manual, volume 2, "LDTILECFG" to "TDPBUUD".

The tile registers are memory on the stack of the function that uses them: what they hold ends with
it at the latest, as on a machine whose kernels release them. An instruction without a configuration
stops the process, as there.
"""

from __future__ import annotations

import re

PRODUCTS = {
    "amx-int8": ("tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"),
    "amx-bf16": ("tdpbf16ps",),
}
"""Feature → its products of tiles."""

_MOVES = ("ldtilecfg", "tilerelease", "tilezero", "tileloadd64", "tilestored64")
NAMES = frozenset(f"llvm.x86.{n}" for n in (*_MOVES, *(p for of in PRODUCTS.values() for p in of)))
"""The intrinsics."""

_TILES, _ROWS, _ROW = 8, 16, 64
_TILE = _ROWS * _ROW
_CONFIGURATION = 64
_BYTES = _CONFIGURATION + _TILES * _TILE
"""The configuration as it was loaded, of which the first byte is 0 without one; then the tiles."""


def with_state(text: str, prefix: str) -> str:
    """A module whose functions hand their own tile registers to those functions, with names that
    begin so, that stand for the intrinsics."""
    calls = "|".join(n.removeprefix("llvm.x86.") for n in sorted(NAMES))
    text = re.sub(rf"@{re.escape(prefix)}({calls})\(\)", rf"@{prefix}\1(ptr %tcl_tiles)", text)
    text = re.sub(rf"@{re.escape(prefix)}({calls})\((?!ptr %tcl_tiles)",
                  rf"@{prefix}\1(ptr %tcl_tiles, ", text)  # fmt: skip
    own = f"entry:\n  %tcl_tiles = alloca [{_BYTES} x i8], align 64\n  store i8 0, ptr %tcl_tiles\n"
    parts = re.split(r"(?m)^(?=define )", text)
    return "".join(
        part.replace("entry:\n", own, 1) if "ptr %tcl_tiles" in part else part for part in parts
    )


def tile_definition(name: str, function: str) -> str:
    """The function that stands for an intrinsic; its first argument are the tile registers."""
    short = name.removeprefix("llvm.x86.")
    if short in _MOVES_TEXT:
        return _MOVES_TEXT[short].format(name=function)
    if short == "tdpbf16ps":
        return _product(function, _BFLOAT16, _BFLOAT16_END)
    left, right = short[4], short[5]
    return _product(function, _integers(left == "s", right == "s"), "")


STATE = f"""\
define internal ptr @tcl_tile(ptr %state, i8 %tile) noinline nounwind {{
entry:
  %palette = load i8, ptr %state
  %one = icmp eq i8 %palette, 1
  %there = icmp ult i8 %tile, {_TILES}
  %both = and i1 %one, %there
  br i1 %both, label %configured, label %none
none:
  call void @llvm.trap()
  unreachable
configured:
  %number = zext i8 %tile to i64
  %bytes = mul i64 %number, {_TILE}
  %behind = add i64 %bytes, {_CONFIGURATION}
  %at = getelementptr i8, ptr %state, i64 %behind
  ret ptr %at
}}
define internal i64 @tcl_tile_rows(ptr %state, i8 %tile) noinline nounwind {{
entry:
  %number = zext i8 %tile to i64
  %behind = add i64 %number, 48
  %at = getelementptr i8, ptr %state, i64 %behind
  %rows = load i8, ptr %at
  %wide = zext i8 %rows to i64
  ret i64 %wide
}}
define internal i64 @tcl_tile_row_bytes(ptr %state, i8 %tile) noinline nounwind {{
entry:
  %number = zext i8 %tile to i64
  %twice = mul i64 %number, 2
  %behind = add i64 %twice, 16
  %at = getelementptr i8, ptr %state, i64 %behind
  %bytes = load i16, ptr %at
  %wide = zext i16 %bytes to i64
  ret i64 %wide
}}
declare void @llvm.trap()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.inline.p0.i64(ptr, i8, i64, i1)
"""
"""What all of them need."""


def _rows(copy: str) -> str:
    """The rows of a tile, one after the other: ``%row`` of ``%own``, ``%bytes`` long, and its
    ``%place`` in memory."""
    return f"""\
  %rows = call i64 @tcl_tile_rows(ptr %state, i8 %tile)
  %bytes = call i64 @tcl_tile_row_bytes(ptr %state, i8 %tile)
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp ult i64 %k, %rows
  br i1 %more, label %copy, label %done
copy:
  %inside = mul i64 %k, {_ROW}
  %row = getelementptr i8, ptr %own, i64 %inside
  %apart = mul i64 %k, %stride
  %place = getelementptr i8, ptr %memory, i64 %apart
{copy}
  %next = add i64 %k, 1
  br label %each
done:
  ret void"""


_READ = "  call void @llvm.memcpy.p0.p0.i64(ptr %row, ptr %place, i64 %bytes, i1 false)"
_WRITE = "  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %row, i64 %bytes, i1 false)"
_CLEAR = f"call void @llvm.memset.inline.p0.i64(ptr %own, i8 0, i64 {_TILE}, i1 false)"

_MOVES_TEXT = {
    "ldtilecfg": f"""\
define internal void @{{name}}(ptr %state, ptr %configuration) noinline nounwind {{{{
entry:
  call void @llvm.memset.inline.p0.i64(ptr %state, i8 0, i64 {_BYTES}, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr %configuration, i64 {_CONFIGURATION}, i1 false)
  ret void
}}}}""",
    "tilerelease": """\
define internal void @{name}(ptr %state) noinline nounwind {{
entry:
  store i8 0, ptr %state
  ret void
}}""",
    "tilezero": f"""\
define internal void @{{name}}(ptr %state, i8 %tile) noinline nounwind {{{{
entry:
  %own = call ptr @tcl_tile(ptr %state, i8 %tile)
  {_CLEAR}
  ret void
}}}}""",
    "tileloadd64": f"""\
define internal void @{{name}}(ptr %state, i8 %tile, ptr %memory, i64 %stride) nounwind {{{{
entry:
  %own = call ptr @tcl_tile(ptr %state, i8 %tile)
  {_CLEAR}
{_rows(_READ)}
}}}}""",
    "tilestored64": f"""\
define internal void @{{name}}(ptr %state, i8 %tile, ptr %memory, i64 %stride) nounwind {{{{
entry:
  %own = call ptr @tcl_tile(ptr %state, i8 %tile)
{_rows(_WRITE)}
}}}}""",
}


def _product(function: str, step: str, end: str) -> str:
    """``sums += left x right``. ``step`` adds to ``%before`` what four bytes ``%four`` of a row of
    the left tile make with the row ``%there`` of the right one: ``%after``; ``end`` makes
    ``%total`` of what was added so, where that is not the sums themselves."""
    apart = bool(end)
    held, type_ = ("<32 x float>", "<16 x float>") if apart else ("<16 x i32>", "<16 x i32>")
    first = "zeroinitializer" if apart else "%old"
    return f"""\
define internal void @{function}(ptr %state, i8 %sums, i8 %left, i8 %right) noinline nounwind {{
entry:
  %c = call ptr @tcl_tile(ptr %state, i8 %sums)
  %a = call ptr @tcl_tile(ptr %state, i8 %left)
  %b = call ptr @tcl_tile(ptr %state, i8 %right)
  %rows = call i64 @tcl_tile_rows(ptr %state, i8 %sums)
  %depth = call i64 @tcl_tile_rows(ptr %state, i8 %right)
  br label %each
each:
  %m = phi i64 [ 0, %entry ], [ %next, %end ]
  %more = icmp ult i64 %m, %rows
  br i1 %more, label %row, label %done
row:
  %inside = mul i64 %m, {_ROW}
  %a_row = getelementptr i8, ptr %a, i64 %inside
  %c_row = getelementptr i8, ptr %c, i64 %inside
  %old = load {type_}, ptr %c_row, align 64
  br label %points
points:
  %k = phi i64 [ 0, %row ], [ %following, %step ]
  %before = phi {held} [ {first}, %row ], [ %after, %step ]
  %deeper = icmp ult i64 %k, %depth
  br i1 %deeper, label %step, label %end
step:
  %a_place = mul i64 %k, 4
  %a_at = getelementptr i8, ptr %a_row, i64 %a_place
  %b_place = mul i64 %k, {_ROW}
  %b_at = getelementptr i8, ptr %b, i64 %b_place
  %one = load i32, ptr %a_at, align 4
  %placed = insertelement <16 x i32> poison, i32 %one, i32 0
  %fours = shufflevector <16 x i32> %placed, <16 x i32> poison, <16 x i32> zeroinitializer
{step}
  %following = add i64 %k, 1
  br label %points
end:
{end or "  %total = select i1 true, <16 x i32> %before, <16 x i32> %before"}
  store {type_} %total, ptr %c_row, align 64
  %next = add i64 %m, 1
  br label %each
done:
  ret void
}}"""


def _integers(left: bool, right: bool) -> str:
    """Four products of bytes for each column, signed or not: sums wrap."""
    lines = ["  %there = load <16 x i32>, ptr %b_at, align 64"]
    total = "%before"
    for k in range(4):
        for name, of, signed in (("x", "fours", left), ("y", "there", right)):
            shift = "ashr" if signed else "lshr"
            lines += [
                f"  %{name}{k}.high = shl <16 x i32> %{of}, splat (i32 {8 * (3 - k)})",
                f"  %{name}{k} = {shift} <16 x i32> %{name}{k}.high, splat (i32 24)",
            ]
        following = "%after" if k == 3 else f"%sum{k}"
        lines += [
            f"  %product{k} = mul <16 x i32> %x{k}, %y{k}",
            f"  {following} = add <16 x i32> {total}, %product{k}",
        ]
        total = following
    return "\n".join(lines)


_WIDE = "<32 x i32>"
_BFLOAT16 = f"""\
  %a_half = bitcast <16 x i32> %fours to <32 x i16>
  %b_half = load <32 x i16>, ptr %b_at, align 64
  %a_word = zext <32 x i16> %a_half to {_WIDE}
  %b_word = zext <32 x i16> %b_half to {_WIDE}
  %a_high = shl {_WIDE} %a_word, splat (i32 16)
  %b_high = shl {_WIDE} %b_word, splat (i32 16)
  %a_all = bitcast {_WIDE} %a_high to <32 x float>
  %b_all = bitcast {_WIDE} %b_high to <32 x float>
  %a_values = call <32 x float> @tcl_flushed.v32(<32 x float> %a_all)
  %b_values = call <32 x float> @tcl_flushed.v32(<32 x float> %b_all)
  %exact = call <32 x float> @llvm.fma.v32f32(<32 x float> %a_values, <32 x float> %b_values, \
<32 x float> %before)
  %after = call <32 x float> @tcl_flushed.v32(<32 x float> %exact)"""


def _every_other(first: int) -> str:
    return f"<16 x i32> <{', '.join(f'i32 {2 * k + first}' for k in range(16))}>"


_BFLOAT16_END = f"""\
  %even = shufflevector <32 x float> %before, <32 x float> poison, {_every_other(0)}
  %odd = shufflevector <32 x float> %before, <32 x float> poison, {_every_other(1)}
  %both = fadd <16 x float> %even, %odd
  %total = fadd <16 x float> %old, %both"""
