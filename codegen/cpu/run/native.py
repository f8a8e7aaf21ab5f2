"""A kernel as a C function, for callers without Python: operators of frameworks, compiled code.

The function does what ``launch.Launcher`` does for calls from Python. All that a call needs besides
its arguments is one piece of memory, a *frame*: the call's record, the errors of its threads, the
memory by which these meet, the addresses of tensors, scratch memory. A call takes a frame out of a
slot and puts it back after; one that finds no frame makes one, and one that finds no empty slot
frees its own. Slots are changed by single atomic exchanges, so that nobody waits for anybody, not
even in a process that was forked while another thread was in a call. (Making small frames on the
stack was measured too: a call takes 18 ns with slots, 22 so, of which the kernel has 7.)

The code is the same for all kernels: it is compiled once on a machine and loaded for each kernel
anew, with a variable that says what it calls and how its frames look.

Nothing here listens for Ctrl+C: Python's signal handlers run when the caller is back in Python.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Mapping, Sequence

from tcl.codegen.cpu.abi import (
    CLEAR,
    ERROR,
    KERNEL,
    LINE,
    POOL,
    TEAM,
    TENSORS,
    THREADS,
    WORDS,
    apart,
    team_bytes,
    word,
)
from tcl.codegen.cpu.object_code.kept import load_kept
from tcl.codegen.cpu.run.launch import Launcher, lengths
from tcl.grammar.ranges.sized import SizedDef

ENTRY = "tcl_native"
"""The symbol of the function."""

FAILED, NO_MEMORY = 1, 2
"""Its results besides 0: a check of a data-dependent subscript failed; there was no memory for a
frame."""

SLOTS = 8
"""Frames that are kept: up to as many calls at a time make and free none."""

_FREE, _KERNEL = "tcl_native_free", "tcl_native_kernel"

(
    _CALL,
    _PASSED,
    _PLACES,
    _SIZE,
    _HEAD,
    _HEAD_SIZE,
    _MOVED,
    _MOVED_COUNT,
    _ERRORS,
    _LAST,
    _TENSORS,
) = range(11)
"""Words of the variable: the function that takes a call's record, how many addresses a caller
passes and the kernel's arguments that they are of (their numbers' address), the bytes of a frame,
what a new frame begins with (address, bytes), the words of it that are positions in the frame and
so become addresses (their numbers' address, how many), and the positions of the errors, of the last
thread's error, and of the arguments' addresses."""


class NativeEntry:
    """A kernel as ``i32 entry(ptr addresses, ptr error)``.

    ``addresses`` points to the addresses of the def's inputs, then of the outputs that callers
    want. Nothing is checked of them: element types, sizes and strides are those that the kernel was
    compiled for. Memory for the other outputs is kept from call to call, as scratch memory is. The
    result is 0, ``FAILED`` with site and value of the check in the two int64 that ``error`` points
    to, or ``NO_MEMORY``. Safe to call from several threads at once, with or without the GIL; calls
    use the pool of threads as those from Python do.

    The code stays in memory as long as this object, which has to outlive all calls.
    """

    __slots__ = ("__weakref__", "address", "launcher")

    def __init__(
        self,
        launcher: Launcher,
        room: Mapping[int, int] | None = None,
        passed: Sequence[int] | None = None,
    ) -> None:
        """``passed``: the kernel's arguments whose addresses callers pass, in their order, and what
        of the words behind these; all arguments and nothing else unless it is given. ``room``:
        bytes for the others, and for scratch arrays where they are to have more than the launcher
        says. Raises ``CompileError`` where the C library lacks what the function calls."""
        self.launcher = launcher
        """What it calls, and what knows the arguments."""
        code = load_kept(_TEXT, (ENTRY, _FREE, _KERNEL))
        self.address = code.address(ENTRY)
        """Of the function."""
        described = _describe(
            launcher, code.address(_KERNEL), passed or range(launcher.arguments), room or {}
        )
        free = ctypes.CFUNCTYPE(None)(code.address(_FREE))
        # Not at exit: threads of a framework may still run it, and the memory goes anyway.
        weakref.finalize(self, _release, free, code, launcher, described).atexit = False

    def error(self, status: int, site: int, value: int) -> Exception:
        """The exception for a call whose result was not 0, with what it left in ``error``."""
        if status == FAILED:
            return self.launcher.failure(site, value)
        return MemoryError("there is no memory for what a call of the kernel needs on the way")


def returning(
    launcher: Launcher,
    sized: SizedDef,
    places: Sequence[int],
    room: Mapping[int, int] | None = None,
) -> NativeEntry:
    """A kernel as a function of the addresses of its def's inputs, then of those outputs at
    ``places``, in their order. With ``room`` then of the sizes that vary, as the launcher has them,
    for all for which there is room: what ``on_the_way`` says, or more. Raises ``CompileError``."""
    first = len(sized.checked.inputs)
    passed = [*range(first), *(first + k for k in places)]
    if room is not None:
        behind = launcher.arguments + len(launcher.scratch)
        passed += range(behind, behind + len(launcher.sizes))
    return NativeEntry(launcher, room or on_the_way(launcher, sized, places), passed)


def on_the_way(launcher: Launcher, sized: SizedDef, places: Sequence[int]) -> dict[int, int]:
    """The memory that calls of a kernel need besides the outputs at these places: bytes by its
    arguments, behind which its scratch arrays are counted."""
    first = len(sized.checked.inputs)
    left_out = {
        first + k: math.prod(sized.shapes[t.name]) * t.type.itemsize
        for k, t in enumerate(sized.checked.outputs)
        if k not in places
    }
    return left_out | _scratch(launcher)


def _scratch(kernel: Launcher) -> dict[int, int]:
    sizes = enumerate(lengths(kernel.scratch))
    own = [private for _, _, private in kernel.scratch]
    return {
        kernel.arguments + k: kernel.threads * apart(size) if own[k] else size for k, size in sizes
    }


def _release(free: Callable[[], None], *_used: object) -> None:
    """Free the frames that are kept; only then what they are used by may go."""
    free()


def _describe(
    kernel: Launcher, at: int, passed: Sequence[int], room: Mapping[int, int]
) -> tuple[object, ...]:
    """Fill the variable at this address; what it points to has to be kept."""
    errors = 8 * WORDS
    team = errors + LINE * kernel.threads
    tensors = team + team_bytes(kernel.regions)
    sizes = kernel.arguments + len(kernel.scratch)
    head = end = tensors + apart(8 * (sizes + len(kernel.sizes)))
    needed = {**_scratch(kernel), **room}

    image = (ctypes.c_uint64 * (head // 8))()
    image[KERNEL], image[THREADS], image[POOL] = kernel.entry, kernel.threads, kernel.pool
    image[TENSORS], image[ERROR], image[TEAM] = tensors, errors, team
    image[CLEAR] = team_bytes(kernel.regions)
    for k, size in needed.items():
        image[tensors // 8 + k] = end
        end += apart(size)
    for k, size in enumerate(kernel.sizes, sizes):
        image[tensors // 8 + k] = size
    moving = [TENSORS, ERROR, TEAM, *(tensors // 8 + k for k in needed)]
    moved = (ctypes.c_uint64 * len(moving))(*moving)
    places = (ctypes.c_uint64 * len(passed))(*passed)

    words = (ctypes.c_uint64 * (_TENSORS + 1)).from_address(at)
    words[_CALL] = ctypes.cast(kernel.call, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
    words[_PASSED], words[_PLACES] = len(passed), ctypes.addressof(places)
    words[_SIZE] = end
    words[_HEAD], words[_HEAD_SIZE] = ctypes.addressof(image), head
    words[_MOVED], words[_MOVED_COUNT] = ctypes.addressof(moved), len(moving)
    words[_ERRORS], words[_LAST] = errors, errors + LINE * (kernel.threads - 1)
    words[_TENSORS] = tensors
    return image, moved, places


_word = functools.partial(word, record=f"@{_KERNEL}")
"""LLVM IR that loads a word of the variable."""

_TEXT = f"""
@{_KERNEL} = global [{_TENSORS + 1} x i64] zeroinitializer, align {LINE}
@slots = internal global [{SLOTS} x ptr] zeroinitializer, align {LINE}

define i32 @{ENTRY}(ptr %addresses, ptr %error) nounwind {{
entry:
  %frame = call ptr @take()
  %none = icmp eq ptr %frame, null
  br i1 %none, label %poor, label %run
poor:
  ret i32 {NO_MEMORY}
run:
{_word("call", _CALL)}{_word("count", _PASSED, "i64")}{_word("places", _PLACES)}\
{_word("position", _TENSORS, "i64")}\
  %tensors = getelementptr i8, ptr %frame, i64 %position
  br label %pass
pass:
  %a = phi i64 [ 0, %run ], [ %after, %pass ]
  %address.at = getelementptr i64, ptr %addresses, i64 %a
  %address = load i64, ptr %address.at, align 8
  %place.at = getelementptr i64, ptr %places, i64 %a
  %place = load i64, ptr %place.at, align 8
  %tensor = getelementptr i64, ptr %tensors, i64 %place
  store i64 %address, ptr %tensor, align 8
  %after = add i64 %a, 1
  %passing = icmp ult i64 %after, %count
  br i1 %passing, label %pass, label %start
start:
  %result = call i32 %call(ptr %frame)
  %good = icmp eq i32 %result, 0
  br i1 %good, label %done, label %failed
done:
  call void @keep(ptr %frame)
  ret i32 0
failed:
{_word("first", _ERRORS, "i64")}{_word("last", _LAST, "i64")}  br label %look
look:
  %k = phi i64 [ %first, %failed ], [ %next, %more ]
  %own = getelementptr i8, ptr %frame, i64 %k
  %word = load i64, ptr %own, align 8
  %set = icmp ne i64 %word, 0
  %end = icmp eq i64 %k, %last
  %found = or i1 %set, %end
  br i1 %found, label %tell, label %more
more:
  %next = add i64 %k, {LINE}
  br label %look
tell:
  %what = getelementptr i8, ptr %own, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %error, ptr align 8 %what, i64 16, i1 false)
  call void @free(ptr %frame)
  ret i32 {FAILED}
}}

; A frame that was kept, or a new one; null where there is no memory for it.
define internal ptr @take() alwaysinline nounwind {{
entry:
  %made = alloca ptr, align 8
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %next, %empty ]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %some = icmp ne ptr %seen, null
  br i1 %some, label %try, label %empty
try:
  %kept = atomicrmw xchg ptr %slot, ptr null acquire
  %lost = icmp eq ptr %kept, null
  br i1 %lost, label %empty, label %found
found:
  ret ptr %kept
empty:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %make
make:
{_word("size", _SIZE, "i64")}{_word("head", _HEAD)}{_word("bytes", _HEAD_SIZE, "i64")}\
{_word("moved", _MOVED)}{_word("count", _MOVED_COUNT, "i64")}\
  %refused = call i32 @posix_memalign(ptr %made, i64 {LINE}, i64 %size)
  %poor = icmp ne i32 %refused, 0
  br i1 %poor, label %none, label %write
none:
  ret ptr null
write:
  %frame = load ptr, ptr %made, align 8
  %base = ptrtoint ptr %frame to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %frame, ptr align 8 %head, i64 %bytes, i1 false)
  br label %move
move:
  %m = phi i64 [ 0, %write ], [ %after, %move ]
  %number.at = getelementptr i64, ptr %moved, i64 %m
  %number = load i64, ptr %number.at, align 8
  %word.at = getelementptr i64, ptr %frame, i64 %number
  %position = load i64, ptr %word.at, align 8
  %address = add i64 %base, %position
  store i64 %address, ptr %word.at, align 8
  %after = add i64 %m, 1
  %moves = icmp ult i64 %after, %count
  br i1 %moves, label %move, label %ready
ready:
  ret ptr %frame
}}

define internal void @keep(ptr %frame) alwaysinline nounwind {{
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %next, %full ]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %try, label %full
try:
  %swap = cmpxchg ptr %slot, ptr null, ptr %frame release monotonic
  %went = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %went, label %done, label %full
done:
  ret void
full:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %drop
drop:
  call void @free(ptr %frame)
  ret void
}}

define void @{_FREE}() nounwind {{
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %each ]
  %slot = getelementptr ptr, ptr @slots, i64 %k
  %frame = atomicrmw xchg ptr %slot, ptr null acquire
  call void @free(ptr %frame)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %each, label %end
end:
  ret void
}}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
"""
