"""The operator on the CPU without Python, as LLVM IR.

torch calls a function that was registered through its C interface with the handles of the inputs
in a list of words, and takes those of the outputs from its beginning. Handles belong to whom they
are handed to. The function reads what a kernel depends on, the inputs' sizes and strides, and looks
for these words, the *key*, in a hash table of *rows*:

    entry of the kernel, key, for each input the least address that it may have (1 if it has
    elements), for each output its sizes and its strides, the sizes that vary as the kernel takes
    them

Where one size varies, rows of *kinds* of sizes follow (``grammar.size_classes.kind_of``), a table
of which has a place for each kind. They have two words, ``a`` and ``b``, for each one of the key
and of the outputs' layouts, which is then ``a + b * size``, and no size. From such a row one for
the size at hand is made on the stack.

Rows never change, and are published in the tables by one atomic store. Where there is none, where
an input is not what the def declares, or a call fails, Python is asked to do the call
(``@missed``), which adds a row, or says what is wrong; this is raised as a C++ exception, which
passes through the function (``uwtable``).

Addresses of torch's functions stand in ``@torch``: its libraries' symbols are not this process's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.grammar.sizes.size_classes import BUCKETS, MULTIPLE, kind_of

CALL, PUBLISH, TORCH, TABLE, KINDS, MISSED = (
    *("tcl_torch_call", "tcl_torch_publish", "tcl_torch_functions", "tcl_torch_table"),
    *("tcl_torch_kinds", "tcl_torch_missed"),
)
"""The symbols: what torch calls; ``void (ptr place, ptr value)``, the atomic store; the words that
hold torch's functions, the table, the table of kinds, and the address of what does a call in
Python."""

FUNCTIONS = (
    *("aoti_torch_get_dim", "aoti_torch_get_dtype", "aoti_torch_get_sizes"),
    *("aoti_torch_get_strides", "aoti_torch_get_data_ptr", "aoti_torch_empty_strided"),
    *("aoti_torch_delete_tensor_object", "aoti_torch_check"),
)
"""torch's functions, in the order of ``TORCH``."""
_DIM, _DTYPE, _SIZES, _STRIDES, _DATA, _EMPTY, _DELETE, _CHECK = range(len(FUNCTIONS))

_KINDS = 2 + max(kind_of(BUCKETS[-1] - 1), kind_of(BUCKETS[-1] - MULTIPLE))
"""Places of the table of kinds."""

_FACTOR = 0x9E3779B97F4A7C15
"""Odd, and without a pattern: it spreads words over a hash's high bits."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What the code of an operator is made for."""

    inputs: tuple[tuple[int, int, int], ...]
    """Of each: rank, torch's number of the element type, bytes of an element."""
    outputs: tuple[tuple[int, int], ...]
    """Of each: rank and torch's number of the element type."""
    varying: tuple[int, ...] = ()
    """The words of a key that tell the sizes that vary, of which kernels hear in words behind the
    addresses."""

    @property
    def key(self) -> int:
        """Words of a key."""
        return sum(2 * rank for rank, _, _ in self.inputs)

    @property
    def layouts(self) -> int:
        """Words of a row for the sizes and strides of outputs."""
        return sum(2 * rank for rank, _ in self.outputs)

    @property
    def row(self) -> int:
        """Words of a row."""
        return 1 + self.key + len(self.inputs) + self.layouts + len(self.varying)


def hashed(key: Sequence[int]) -> int:
    """The hash of a key, as the code computes it. A table looks from its lowest bits on."""
    mixed = 0
    for word in key:
        mixed = ((mixed ^ word % (1 << 64)) * _FACTOR) % (1 << 64)
        mixed ^= mixed >> 32
    return mixed


def text(signature: Signature) -> str:
    """The module."""
    inputs, outputs = signature.inputs, signature.outputs
    count, one = len(inputs), len(signature.varying) == 1
    parts = [
        f"@{TORCH} = global [{len(FUNCTIONS)} x ptr] zeroinitializer, align 8",
        f"@{TABLE} = global ptr null, align 8",
        f"@{KINDS} = global [{_KINDS} x ptr] zeroinitializer, align 8",
        f"@{MISSED} = global ptr null, align 8",
        f"define void @{PUBLISH}(ptr %place, ptr %value) nounwind {{",
        "  store atomic ptr %value, ptr %place release, align 8",
        "  ret void",
        "}",
        f"define void @{CALL}(ptr %stack, i64 %arguments, i64 %results) uwtable {{",
        "entry:",
        f"  %addresses = alloca [{count + len(outputs) + len(signature.varying)} x i64], align 8",
        "  %error = alloca [2 x i64], align 8",
        "  %word = alloca i64, align 8",
        f"  %filled = alloca [{signature.row} x i64], align 8",
        *(
            f"  %f{k} = load ptr, ptr getelementptr (ptr, ptr @{TORCH}, i64 {k}), align 8"
            for k in range(len(FUNCTIONS))
        ),
    ]
    mixed, position = "0", 0
    for k, (rank, dtype, size) in enumerate(inputs):
        parts += _checked(k, rank, dtype, size)
        for what in ("sizes", "strides"):
            for axis in range(rank):
                parts += _word(f"{what}{k}", axis, position, mixed)
                mixed, position = f"%h{position}", position + 1
    parts += [
        f"  %table = load atomic ptr, ptr @{TABLE} acquire, align 8",
        "  %mask = load i64, ptr %table, align 8",
        "  br label %probe",
        "probe:",
        f"  %at = phi i64 [ {mixed}, %checked{count - 1} ], [ %after, %next ]",
        "  %slot = and i64 %at, %mask",
        "  %slot.word = add i64 %slot, 1",
        "  %slot.at = getelementptr ptr, ptr %table, i64 %slot.word",
        "  %row = load atomic ptr, ptr %slot.at acquire, align 8",
        "  %none = icmp eq ptr %row, null",
        f"  br i1 %none, label %{'kinds' if one else 'miss'}, label %compare",
        "compare:",
        *_compared(signature),
        "  br i1 %same, label %hit, label %next",
        "next:",
        "  %after = add i64 %at, 1",
        "  br label %probe",
    ]
    rows = "[ %row, %compare ]"
    if one:
        parts += _of_kind(signature)
        rows += ", [ %filled, %fill ]"
    parts += ["hit:", f"  %found = phi ptr {rows}"]
    parts += _outputs(signature)
    parts += [
        "miss:",
        f"  %missed = load ptr, ptr @{MISSED}, align 8",
        "  %message = call ptr %missed(ptr %stack)",
        "  %fine = icmp eq ptr %message, null",
        "  br i1 %fine, label %done, label %raise",
        "raise:",
        f"  call void %f{_CHECK}(i1 zeroext false, ptr @{CALL}, ptr @empty, i32 0, ptr %message)",
        "  unreachable",
        "done:",
        "  ret void",
        "}",
        "@empty = internal constant [1 x i8] zeroinitializer",
        "declare i64 @llvm.ctlz.i64(i64, i1)",
    ]
    return "\n".join(parts) + "\n"


def _checked(k: int, rank: int, dtype: int, size: int) -> list[str]:
    """Read an input's properties; go on at ``checked`` if it is what the def declares."""
    parts = [
        f"  %in{k}.at = getelementptr ptr, ptr %stack, i64 {k}",
        f"  %in{k} = load ptr, ptr %in{k}.at, align 8",
    ]
    for what, function, type_ in (
        ("dim", _DIM, "i64"),
        ("dtype", _DTYPE, "i32"),
        ("sizes", _SIZES, "ptr"),
        ("strides", _STRIDES, "ptr"),
        ("data", _DATA, "i64"),
    ):
        parts += [
            f"  %{what}{k}.r = call i32 %f{function}(ptr %in{k}, ptr %word)",
            f"  %{what}{k} = load {type_}, ptr %word, align 8",
        ]
    return [
        *parts,
        f"  %failed{k}.a = or i32 %dim{k}.r, %dtype{k}.r",
        f"  %failed{k}.b = or i32 %sizes{k}.r, %strides{k}.r",
        f"  %failed{k}.c = or i32 %failed{k}.a, %failed{k}.b",
        f"  %failed{k}.d = or i32 %failed{k}.c, %data{k}.r",
        f"  %type{k} = xor i32 %dtype{k}, {dtype}",
        f"  %other{k}.a = or i32 %failed{k}.d, %type{k}",
        f"  %other{k}.b = zext i32 %other{k}.a to i64",
        f"  %rank{k} = xor i64 %dim{k}, {rank}",
        f"  %across{k} = and i64 %data{k}, {size - 1}",
        f"  %other{k}.c = or i64 %other{k}.b, %rank{k}",
        f"  %other{k}.d = or i64 %other{k}.c, %across{k}",
        f"  %good{k} = icmp eq i64 %other{k}.d, 0",
        f"  br i1 %good{k}, label %checked{k}, label %miss",
        f"checked{k}:",
        f"  %to{k} = getelementptr i64, ptr %addresses, i64 {k}",
        f"  store i64 %data{k}, ptr %to{k}, align 8",
    ]


def _word(array: str, axis: int, position: int, before: str) -> list[str]:
    """Load a word of the key, and mix it into the hash."""
    return [
        f"  %w{position}.at = getelementptr i64, ptr %{array}, i64 {axis}",
        f"  %w{position} = load i64, ptr %w{position}.at, align 8",
        f"  %h{position}.a = xor i64 {before}, %w{position}",
        f"  %h{position}.b = mul i64 %h{position}.a, {_FACTOR - (1 << 64)}",
        f"  %h{position}.c = lshr i64 %h{position}.b, 32",
        f"  %h{position} = xor i64 %h{position}.b, %h{position}.c",
    ]


def _compared(signature: Signature) -> list[str]:
    """``%same``: whether the row is of this key, and the inputs have memory."""
    parts, differs = [], "false"
    for k in range(signature.key + len(signature.inputs)):
        have = f"w{k}" if k < signature.key else f"data{k - signature.key}"
        parts += [
            f"  %k{k}.at = getelementptr i64, ptr %row, i64 {1 + k}",
            f"  %k{k} = load i64, ptr %k{k}.at, align 8",
            f"  %d{k} = icmp {'ne' if k < signature.key else 'ult'} i64 %{have}, %k{k}",
            f"  %o{k} = or i1 {differs}, %d{k}",
        ]
        differs = f"%o{k}"
    return [*parts, f"  %same = xor i1 {differs}, true"]


def _of_kind(signature: Signature) -> list[str]:
    """Look for a row of the kind of the only size that varies; make ``%filled`` of it."""
    size = f"%w{signature.varying[0]}"
    parts = [
        "kinds:",
        f"  %small = icmp ult i64 {size}, {BUCKETS[-1]}",
        "  br i1 %small, label %look, label %miss",
        "look:",
        f"  %zeros = call i64 @llvm.ctlz.i64(i64 {size}, i1 false)",
        "  %bits = sub i64 64, %zeros",
        "  %bits.twice = shl i64 %bits, 1",
        f"  %beyond = urem i64 {size}, {MULTIPLE}",
        "  %divides = icmp eq i64 %beyond, 0",
        "  %multiple = zext i1 %divides to i64",
        "  %kind = add i64 %bits.twice, %multiple",
        f"  %kind.at = getelementptr ptr, ptr @{KINDS}, i64 %kind",
        "  %all = load atomic ptr, ptr %kind.at acquire, align 8",
        "  %nothing = icmp eq ptr %all, null",
        "  br i1 %nothing, label %miss, label %like",
        "like:",
    ]
    differs, at = "false", 1
    for k in range(signature.key):
        parts += [
            *_linear(f"e{k}", at, size),
            f"  %e{k}.d = icmp ne i64 %e{k}, %w{k}",
            f"  %e{k}.o = or i1 {differs}, %e{k}.d",
        ]
        differs, at = f"%e{k}.o", at + 2
    for k in range(len(signature.inputs)):
        parts += [
            f"  %m{k}.at = getelementptr i64, ptr %all, i64 {at}",
            f"  %m{k} = load i64, ptr %m{k}.at, align 8",
            f"  %m{k}.d = icmp ult i64 %data{k}, %m{k}",
            f"  %m{k}.o = or i1 {differs}, %m{k}.d",
        ]
        differs, at = f"%m{k}.o", at + 1
    parts += [
        f"  br i1 {differs}, label %miss, label %fill",
        "fill:",
        "  %all.entry = load i64, ptr %all, align 8",
        "  store i64 %all.entry, ptr %filled, align 8",
    ]
    first = 1 + signature.key + len(signature.inputs)
    for k in range(signature.layouts):
        parts += [*_linear(f"l{k}", at, size), *_stored(f"%l{k}", first + k)]
        at += 2
    return [*parts, *_stored(size, first + signature.layouts), "  br label %hit"]


def _linear(name: str, at: int, size: str) -> list[str]:
    """``a + b * size``, of two words of the row of a kind."""
    return [
        f"  %{name}.a.at = getelementptr i64, ptr %all, i64 {at}",
        f"  %{name}.a = load i64, ptr %{name}.a.at, align 8",
        f"  %{name}.b.at = getelementptr i64, ptr %all, i64 {at + 1}",
        f"  %{name}.b = load i64, ptr %{name}.b.at, align 8",
        f"  %{name}.p = mul i64 %{name}.b, {size}",
        f"  %{name} = add i64 %{name}.a, %{name}.p",
    ]


def _stored(value: str, at: int) -> list[str]:
    """Put a word into ``%filled``."""
    return [
        f"  %filled.{at} = getelementptr i64, ptr %filled, i64 {at}",
        f"  store i64 {value}, ptr %filled.{at}, align 8",
    ]


def _outputs(signature: Signature) -> list[str]:
    """Make the outputs, call the kernel, and hand the outputs over."""
    parts: list[str] = []
    count = len(signature.inputs)
    at = 1 + signature.key + count
    for k, (rank, dtype) in enumerate(signature.outputs):
        parts += [
            f"  %out{k}.sizes = getelementptr i64, ptr %found, i64 {at}",
            f"  %out{k}.strides = getelementptr i64, ptr %found, i64 {at + rank}",
            f"  %out{k}.r = call i32 %f{_EMPTY}(i64 {rank}, ptr %out{k}.sizes, "
            f"ptr %out{k}.strides, i32 {dtype}, i32 0, i32 0, ptr %word)",
            f"  %out{k} = load ptr, ptr %word, align 8",
            f"  %out{k}.made = icmp eq i32 %out{k}.r, 0",
            f"  br i1 %out{k}.made, label %made{k}, label %undo{k}",
            f"made{k}:",
            f"  %out{k}.got = call i32 %f{_DATA}(ptr %out{k}, ptr %word)",
            f"  %out{k}.data = load i64, ptr %word, align 8",
            f"  %out{k}.to = getelementptr i64, ptr %addresses, i64 {count + k}",
            f"  store i64 %out{k}.data, ptr %out{k}.to, align 8",
        ]
        at += 2 * rank
    last = len(signature.outputs)
    for k in range(len(signature.varying)):
        parts += [
            f"  %size{k}.at = getelementptr i64, ptr %found, i64 {at + k}",
            f"  %size{k} = load i64, ptr %size{k}.at, align 8",
            f"  %size{k}.to = getelementptr i64, ptr %addresses, i64 {count + last + k}",
            f"  store i64 %size{k}, ptr %size{k}.to, align 8",
        ]
    parts += [
        "  %entry.address = load ptr, ptr %found, align 8",
        "  %status = call i32 %entry.address(ptr %addresses, ptr %error)",
        "  %went = icmp eq i32 %status, 0",
        f"  br i1 %went, label %give, label %undo{last}",
        "give:",
    ]
    for k in range(count):
        parts.append(f"  %gone{k} = call i32 %f{_DELETE}(ptr %in{k})")
    for k in range(last):
        parts += [
            f"  %give{k} = getelementptr ptr, ptr %stack, i64 {k}",
            f"  store ptr %out{k}, ptr %give{k}, align 8",
        ]
    parts.append("  br label %done")
    for k in range(last, 0, -1):  # what was made before it failed
        parts += [
            f"undo{k}:",
            f"  %undone{k} = call i32 %f{_DELETE}(ptr %out{k - 1})",
            f"  br label %undo{k - 1}",
        ]
    return [*parts, "undo0:", "  br label %miss"]
