"""A kernel as a C function, for callers without Python: operators of frameworks, compiled code.

The function, ``entry.c`` of the runtime, does what ``launch.Launcher`` does for calls from Python.
Its code is the same for all kernels: it is loaded for each kernel anew, with a variable that says
what it calls and how its frames look. (Making small frames on the stack was measured too: a call
takes 18 ns with frames that are kept, 22 so, of which the kernel has 7.)

Nothing here listens for Ctrl+C: Python's signal handlers run when the caller is back in Python.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Mapping, Sequence

from tcl.codegen.cpu import abi
from tcl.codegen.cpu.object_code.load import LoadedCode
from tcl.codegen.cpu.run.launch import Launcher, lengths
from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.runtime.structs import EntryStruct, address, fill
from tcl.grammar.ranges.sized import SizedDef

ENTRY = "tcl_entry_call"
"""The symbol of the function."""

FAILED, NO_MEMORY = 1, 2
"""Its results besides 0: a check of a data-dependent subscript failed; there was no memory for a
frame."""

_FREE, _KERNEL = "tcl_entry_free", "tcl_entry"


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
        code = load("entry", (ENTRY, _FREE, _KERNEL))
        self.address = code.address(ENTRY)
        """Of the function."""
        described = _describe(launcher, code, passed or range(launcher.arguments), room or {})
        free = ctypes.CFUNCTYPE(None)(code.address(_FREE))
        # Not at exit: threads of a framework may still run it, and the memory goes anyway.
        weakref.finalize(self, _release, free, code, launcher, described).atexit = False

    def error(self, status: int, site: int, value: int) -> Exception:
        """The exception for a call whose result was not 0, with what it left in ``error``."""
        if status == FAILED:
            return self.launcher.failure(site, value)
        return MemoryError("there is not enough memory for the intermediate results of the kernel")


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
        kernel.arguments + k: abi.movable(kernel.threads * abi.apart(size) if own[k] else size)
        for k, size in sizes
    }


def _release(free: Callable[[], None], *_used: object) -> None:
    """Free the frames that are kept; only then what they are used by may go."""
    free()


def _describe(
    kernel: Launcher, code: LoadedCode, passed: Sequence[int], room: Mapping[int, int]
) -> tuple[object, ...]:
    """Fill the code's variable; what it points to has to be kept."""
    errors = 8 * abi.WORDS
    team = errors + abi.LINE * kernel.threads
    tensors = team + abi.team_bytes(kernel.regions)
    sizes = kernel.arguments + len(kernel.scratch)
    head = end = tensors + abi.apart(8 * (sizes + len(kernel.sizes)))
    needed = {**_scratch(kernel), **room}

    image = (ctypes.c_uint64 * (head // 8))()
    image[abi.KERNEL], image[abi.POOL] = kernel.entry, kernel.pool
    image[abi.TENSORS], image[abi.ERROR], image[abi.TEAM] = tensors, errors, team
    image[abi.THREADS], image[abi.CLEAR] = kernel.threads, abi.team_bytes(kernel.regions)
    image[abi.VARIES] = bool(kernel.sizes)
    for position, (k, size) in enumerate(needed.items()):
        begin = abi.spaced(end, position)
        image[tensors // 8 + k] = begin
        end = begin + abi.apart(size)
    for k, size in enumerate(kernel.sizes, sizes):
        image[tensors // 8 + k] = size
    moving = [abi.TENSORS, abi.ERROR, abi.TEAM, *(tensors // 8 + k for k in needed)]
    moved = (ctypes.c_uint64 * len(moving))(*moving)
    places = (ctypes.c_uint64 * len(passed))(*passed)

    fill(
        code,
        _KERNEL,
        EntryStruct(
            call=address(kernel.call),
            passed=len(passed),
            places=ctypes.addressof(places),
            bytes=end,
            head=ctypes.addressof(image),
            head_bytes=head,
            moved=ctypes.addressof(moved),
            moved_count=len(moving),
            errors=errors,
            tensors=tensors,
            threads=kernel.threads,
        ),
    )
    return image, moved, places
