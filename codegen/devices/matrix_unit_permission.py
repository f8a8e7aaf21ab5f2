"""The matrix unit of x86-64 CPUs (AMX): whether this process may use it.

Linux lets a process use its tile registers once the process asked for that, as they make what it
saves of a thread 8 KiB larger ("Using XSTATE features in user space applications" in the kernel's
documentation). The permission holds for all threads, and children that are forked inherit it;
a program that is started by ``exec``, as workers are, has to ask anew. The kernel refuses where a
thread has a stack for signals that is too small for what is then put on it, and an old kernel or a
sandbox may not know the question at all. A process that is refused has no matrix unit: its
features must not say so.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Mapping

_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@functools.cache
def may_use_tiles() -> bool:
    """Whether the system lets this process use tile registers. It is asked once, and says the
    same from then on."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_long
    arguments = (_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
    return bool(call(*map(ctypes.c_long, arguments)) == 0)


def permitted(features: Mapping[str, bool]) -> dict[str, bool]:
    """LLVM's features of this processor, without those of the matrix unit unless the system lets
    this process use it."""
    tiles = [name for name, there in features.items() if there and name.startswith("amx-")]
    if not tiles or may_use_tiles():
        return dict(features)
    return {name: there and name not in tiles for name, there in features.items()}
